# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What lets the user into an image: public keys, and cloud-init's NoCloud seed, which is a folder that QEMU shows as a FAT
file system (its vvfat) labelled "cidata". systemd 252 or newer takes root's keys without cloud-init, from the SMBIOS
tables.
"""

import base64
import json
import os
import pathlib
import pwd
import re
import tempfile

from packages import cache_folder, cache_lock, run

LOGIN = """d=$root/etc/systemd/system/serial-getty@.service.d
mkdir -p $d
printf '[Service]\\nExecStart=\\nExecStart=-/sbin/agetty --autologin root --keep-baud 115200,57600,9600 %%I $TERM\\n' \\
    >$d/autologin.conf
"""  # root's shell on the serial console, in the system at $root


def make_key(key):
    """Makes the pair; at any time @key exists only with its public key."""
    key.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=key.parent) as tmp:
        new = pathlib.Path(tmp) / key.name
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "muslin", "-f", new])
        new.with_suffix(".pub").rename(key.with_suffix(".pub"))
        new.rename(key)


def own_key():
    """The private key of muslin's own, which no passphrase protects; its public one is beside it."""
    key = cache_folder() / "ssh/id_ed25519"
    if not key.exists():
        with cache_lock(key.name):  # of guests that start at once, one makes it
            if not key.exists():
                make_key(key)
    return key


def public_keys():
    """Muslin's own, and the caller's."""
    ours = sorted(p for p in pathlib.Path.home().glob(".ssh/*.pub") if not p.name.endswith("-cert.pub"))
    texts = [p.read_text(errors="replace").strip() for p in [own_key().with_suffix(".pub"), *ours]]
    return [t for t in texts if re.fullmatch(r"[\w@.-]+ [\w+/=]+( [^\n]*)?", t)]


def caller():
    """The caller's name as cloud-init's list of users has it; none for root and for names that are no user's."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return []
    if os.getuid() == 0 or not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", name) or name == "nobody":
        return []
    sudo = "ALL=(ALL) NOPASSWD:ALL"
    return [{"name": name, "sudo": sudo, "shell": "/bin/bash", "ssh_authorized_keys": public_keys()}]


def seed(folder, host, mac):
    """Writes the seed in @folder: the image's default user, the caller's and root have the keys."""
    folder.mkdir()
    user = {
        "disable_root": False,
        "locale": False,  # the image's own: Debian's locale-gen fails for cloud-init's default
        "ssh_authorized_keys": public_keys(),
        "users": ["default", *caller()],
        "bootcmd": [["sh", "-c", f"{LOGIN}systemctl daemon-reload"]],
    }
    card = {"match": {"macaddress": mac}, "dhcp4": True}
    files = {
        "meta-data": json.dumps({"instance-id": f"muslin-{host}", "local-hostname": host}),
        "user-data": f"#cloud-config\n{json.dumps(user)}",
        "network-config": json.dumps({"version": 2, "ethernets": {"user": card}}),
    }
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def seed_argv(folder):
    """For QEMU."""
    keys = base64.b64encode("".join(f"{key}\n" for key in public_keys()).encode()).decode()
    return [
        "-drive",
        f"if=none,id=seed,format=raw,readonly=on,file.driver=vvfat,file.dir={folder},file.label=cidata",
        "-device",
        "virtio-blk-pci,drive=seed,disable-legacy=on",
        "-smbios",
        f"type=11,value=io.systemd.credential.binary:ssh.authorized_keys.root={keys}",
    ]
