# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""QEMU: the machine's own, or a newer one out of the distribution's backports, which is unpacked in the cache."""

import contextlib
import re
import shutil
import subprocess

from image import cache_lock, layer
from packages import alone, backports, digest, fail, unpack

# Without the libraries that they need: those are there where the machine's own QEMU is.
PACKAGES = ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]


def newer(wanted):
    """The program of the backports whose version begins with @wanted."""
    with cache_lock():
        where = backports()
        debs = alone(PACKAGES, where) if where else []
        if not any(re.match(rf"qemu-system-x86_(\d+%3a)?{re.escape(wanted)}(?!\d)", d[1]) for d in debs):
            fail(f"no QEMU {wanted} in the backports")
        folder = layer("qemu", digest(*(d[1] for d in debs)), lambda out: unpack(debs, out))
    return str(folder / "usr/bin/qemu-system-x86_64")


def of_version(wanted):
    """The machine's own where it has that version."""
    own = shutil.which("qemu-system-x86_64")
    numbers = [int(n) for n in wanted.split(".")]
    return own if own and list(version(own))[: len(numbers)] == numbers else newer(wanted)


def find(wanted):
    """The program that @wanted means: its name or path, or the beginning of a version, as "10"."""
    program = of_version(wanted) if re.fullmatch(r"\d+(\.\d+)?", wanted) else shutil.which(wanted)
    if not program:
        fail(f"{wanted} is missing: install qemu-system-x86 (`ci/deps vm`)")
    return program


def version(program):
    """(10, 0) of 10.0.2; of one that cannot be asked the oldest that will do."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
        if m := re.search(r"version (\d+)\.(\d+)", said):
            return int(m[1]), int(m[2])
    return 7, 2
