# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""QEMU: the machine's own, or a newer one out of the distribution's backports, which is unpacked in the cache."""

import contextlib
import re
import shutil
import subprocess

from image import cache_lock, layer
from packages import alone, backports, digest, fail, unpack

# Without the libraries that they need: those are there where the machine's own QEMU is.
PACKAGES = {
    "amd64": ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"],
    "arm64": ["qemu-system-arm", "qemu-system-common", "qemu-system-data"],
}
PROGRAMS = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}


def newer(wanted, arch):
    """The program of the backports whose version begins with @wanted, which may be empty; None: they have none."""
    with cache_lock():
        where = backports()
        debs = alone(PACKAGES[arch], where) if where else []
        version = re.escape(wanted) + r"(?!\d)" if wanted else ""
        if not any(re.match(rf"{PACKAGES[arch][0]}_(\d+%3a)?{version}", d[1]) for d in debs):
            return None
        folder = layer("qemu", digest(*(d[1] for d in debs)), lambda out: unpack(debs, out))
    return str(folder / "usr/bin" / PROGRAMS[arch])


def of_version(wanted, arch):
    """The machine's own where it has that version."""
    own = shutil.which(PROGRAMS[arch])
    if wanted == "newest":
        return newer("", arch) or own
    numbers = [int(n) for n in wanted.split(".")]
    if own and list(version(own))[: len(numbers)] == numbers:
        return own
    return newer(wanted, arch) or fail(f"no QEMU {wanted} in the backports")


def find(wanted, arch):
    """The program that @wanted means: its name or path, or the beginning of a version, as "10", or "newest"."""
    program = of_version(wanted, arch) if re.fullmatch(r"\d+(\.\d+)?|newest", wanted) else shutil.which(wanted)
    if not program:
        fail(f"{wanted} is missing: install {PACKAGES[arch][0]} (`ci/deps vm`)")
    return program


def version(program):
    """(10, 0) of 10.0.2; of one that cannot be asked the oldest that will do."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
        if m := re.search(r"version (\d+)\.(\d+)", said):
            return int(m[1]), int(m[2])
    return 7, 2
