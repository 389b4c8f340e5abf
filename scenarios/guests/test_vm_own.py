# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A guest for one command, and one by the command line in the manual for a separate QEMU."""

import pathlib
import re
import shutil
import subprocess

import pytest
from muslin import WaitTimeout, wait_until

pytestmark = pytest.mark.guest

TREE = pathlib.Path(__file__).resolve().parents[2]


def manual_line():
    """The command line of muslin(1) as formatted."""
    page = (TREE / "man/muslin.1").read_text()
    return re.search(r"^\.Dl \$ (qemu-system-x86_64 .*)$", page, re.M)[1].replace("\\-", "-")


def with_vfio_user(fabric):
    """The QEMU that `muslin vm` has unpacked for a ConnectX, or else the machine's own."""
    unpacked = pathlib.Path(fabric.env["MUSLIN_CACHE"]).glob("qemu-*/qemu")
    return max(unpacked, key=lambda path: path.stat().st_mtime, default="qemu-system-x86_64")


@pytest.mark.also_connectx
def test_the_line_in_the_manual(fabric, model):
    """A plain QEMU with a kernel and an image; the shell on its console has the HCA."""
    initrd = pathlib.Path(fabric.command("vm", "--build", "--model", model, timeout=300).split()[-1])
    shutil.copy(initrd, fabric.folder / "initrd")
    shutil.copy(initrd.parent / "kernel", fabric.folder / "bzImage")
    line = manual_line()
    assert "$(muslin vm h1 --print)" in line
    line = line.replace("--print", f"--model {model} --print")
    if model == "connectx":
        line = line.replace("qemu-system-x86_64", str(with_vfio_user(fabric)))
    env = fabric.env | {"PATH": f"{fabric.muslin.parent}:{fabric.env['PATH']}"}
    who = {} if fabric.user is None else {"user": fabric.user, "group": fabric.user, "extra_groups": []}
    console = fabric.folder / "console"
    with console.open("wb") as out, subprocess.Popen(
        ["sh", "-c", f"exec {line}"], cwd=fabric.folder, env=env, stdin=subprocess.PIPE, stdout=out, stderr=out, **who
    ) as qemu:

        def said():
            return console.read_text(errors="replace")

        def shows(what):
            try:
                wait_until(lambda: what in said() or qemu.poll() is not None, 240, what, 0.1)
            except WaitTimeout as e:
                raise WaitTimeout(f"{e}:\n{said()[-4000:]}") from None

        def types(text):
            qemu.stdin.write(text)
            qemu.stdin.flush()

        try:
            shows("# ")  # the prompt
            types(b"until ibstat | grep 'State: Activ[e]'; do sleep 0.2; done\n")
            shows("State: Active")
            types(b"ibstat; ip addr show ib0; poweroff -f\n")
            qemu.wait(30)
        finally:
            qemu.kill()
    text = said()
    assert "Link layer: InfiniBand" in text and "link/infiniband" in text, text
    assert fabric.port("h1")["guid"] in text, text
    assert ("CA type: MT4115" in text) == (model == "connectx"), text


def test_a_command_and_its_status(fabric):
    """One line names the accelerator."""
    fabric.command("vm", "--build", timeout=300)
    out = fabric.command("vm", "h2", "--", "sh", "-c", "ibv_devices; cat /proc/uptime; exit 7", timeout=120, status=7)
    assert re.search(r"^muslin: h2 (boots|resumes from a snapshot) on (TCG|KVM)$", out, re.M)
    assert re.search("^ *(muslin0|mlx5_0)", out, re.M)
