# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Folders of the machine in a guest, by virtio-9p."""

import argparse
import pathlib
import re


def place(text):
    """Of --share: folder, and path in the guest."""
    folder, _, path = text.partition(":")
    if not pathlib.Path(folder).is_dir():
        raise argparse.ArgumentTypeError(f"{folder}: no such folder")
    if "," in folder or not re.fullmatch(r"(/[\w.+@-]+)+", path or "/share"):
        raise argparse.ArgumentTypeError(f"expected DIR[:/PATH] without commas and blanks, not {text!r}")
    return str(pathlib.Path(folder).resolve()), path or "/share"


def share_argv(shares):
    """For QEMU. The user who runs it owns what the guest creates."""
    argv = []
    for i, (folder, path) in enumerate(shares):
        argv += ["-fsdev", f"local,id=share{i},path={folder},security_model=none,multidevs=remap"]
        argv += ["-device", f"virtio-9p-pci,fsdev=share{i},mount_tag=share{i},disable-legacy=on"]
        argv += ["-fw_cfg", f"name=opt/muslin/share{i},string=share{i} {path}"]
    return argv
