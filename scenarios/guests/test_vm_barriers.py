# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A guest's barriers and atomic accesses hold for the daemon, which accesses its memory at the same time."""

import pathlib
import platform
import subprocess

import endpoint
import pytest
from conftest import PROGRAMS
from muslin import wait_until

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the guest's side is a boot sector of a PC"),
]
ROUNDS = 50000


def machine(vm):
    """QEMU, with its own loader and firmware if any, and options of the processors that it emulates for @vm."""
    argv = pathlib.Path(f"/proc/{endpoint.qemu(vm)}/cmdline").read_text().split("\0")
    program = next(i for i, word in enumerate(argv) if pathlib.Path(word).name.startswith("qemu-system"))
    found = argv[: program + 1]
    for i, word in enumerate(argv):
        if word in ("-L", "-accel", "-machine", "-cpu", "-smp"):
            found += argv[i : i + 2]
    return found


def test_a_write_and_a_read_by_both_sides(shared_fabric, program, folder):
    """
    Of two sides that write and then read what the other one writes, one sees it: the guest must not sleep without an
    interrupt, nor the daemon without a doorbell. QEMU's TCG omits barriers where only one processor is possible.
    """
    vm = shared_fabric.vm("h1")
    argv = machine(vm)
    vm.stop()
    objects, boot, memory = (folder / name for name in ("boot.o", "boot", "memory"))
    subprocess.run(["cc", "-c", "-m32", "-o", objects, PROGRAMS / "store_buffer.S"], check=True)
    subprocess.run(
        ["ld", "-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary", "-o", boot, objects], check=True
    )
    with boot.open("ab") as disk:
        disk.truncate(1 << 20)  # the firmware takes no smaller one
    argv += ["-m", "64", "-object", f"memory-backend-file,id=mem,mem-path={memory},size=64M,share=on"]
    argv += ["-drive", f"file={boot},format=raw,snapshot=on", "-display", "none", "-nodefaults"]
    with subprocess.Popen(argv) as guest:
        try:
            wait_until(lambda: memory.exists() and memory.stat().st_size, 20, "the guest's memory")
            side = [program("store_buffer"), memory, str(ROUNDS)]
            out = subprocess.run(side, capture_output=True, text=True, timeout=60, check=True)
        finally:
            guest.kill()
    assert out.stdout == "0\n", f"{out.stdout.strip()} of {ROUNDS} rounds, {argv}"
