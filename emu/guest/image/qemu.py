# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
QEMU: the machine's own, or a newer one, which is unpacked in the cache: out of the distribution's backports, or of a
later release with its own libraries.
"""

import contextlib
import ctypes
import functools
import os
import re
import shutil
import signal
import subprocess

from image import layer
from packages import LATER, alone, backports, digest, fail, later, remembered, resolve, unpack

# Without the libraries that they need: those are there where the machine's own QEMU is.
PACKAGES = {
    "amd64": ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"],
    "arm64": ["qemu-system-arm", "qemu-system-common", "qemu-system-data"],
}
PROGRAMS = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
VFIO_USER = (10, 1, 1)  # before it, connections to the device end at once, or there is no such device
# Of the packages that it needs, those with libraries and firmware. The others are of maintainer scripts.
COMPLETE = re.compile(r"^(lib(?!pam|semanage|sepol|audit-common)|zlib1g|qemu-system|seabios|ipxe-qemu)")
PR_SET_PDEATHSIG = 1
RUN = """#!/bin/sh
# QEMU of another release by its own loader and libraries
root=$(dirname "$0")
for lib in "$root"/usr/lib/*-linux-gnu; do
    QEMU_MODULE_DIR=$lib/qemu exec "$lib"/ld-linux-*.so.* --library-path "$lib" "$root/usr/bin/{program}" \
        -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -L "$root/usr/lib/ipxe/qemu" "$@"
done
"""


def die_with_parent():
    """Returns a function for the child: a guest does not outlive the process that started it, whatever the end."""
    parent = os.getpid()

    def in_child():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent had ended before
            os._exit(1)

    return in_child


def newer(wanted, arch):
    """The program of the backports whose version begins with @wanted, which may be empty; None: they have none."""
    where = backports()
    debs = alone(PACKAGES[arch], where) if where else []
    version = re.escape(wanted) + r"(?!\d)" if wanted else ""
    if not any(re.match(rf"{PACKAGES[arch][0]}_(\d+%3a)?{version}", d[1]) for d in debs):
        return None
    folder = layer("qemu", digest(*(d[1] for d in debs)), lambda out: unpack(debs, out))
    return str(folder / "usr/bin" / PROGRAMS[arch])


def complete(arch):
    """The program of the release LATER with all that it needs, if it runs here; or None."""

    def make(out):
        unpack(debs, out)
        (out / "qemu").write_text(RUN.format(program=PROGRAMS[arch]))
        (out / "qemu").chmod(0o755)

    where = later()
    found = resolve(PACKAGES[arch][:1], where) if where else []
    debs = [d for d in found if COMPLETE.match(d[1])]
    if not debs:
        return None
    folder = layer("qemu", digest(RUN, *(d[1] for d in debs)), make)
    return str(folder / "qemu")


def file_state(program):
    """Changes whenever the file of @program does."""
    path = os.path.realpath(shutil.which(program) or program)
    try:
        state = os.stat(path)
    except OSError:
        return [path]
    return [path, state.st_mtime_ns, state.st_size, state.st_ino]


def said(program, *argv):
    """What it prints, remembered for this state of its file, since it takes a while to start; raises where it fails."""

    def find():
        return subprocess.run([program, *argv], capture_output=True, text=True, check=True, timeout=20).stdout

    return remembered([*file_state(program), *argv], (), find)


def has_vfio_user(program):
    """Whether it has the device, and one that works."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return version(program) >= VFIO_USER and bool(said(program, "-device", "vfio-user-pci,help"))
    return False


def with_vfio_user(wanted, arch):
    """The program that @wanted means, which must have vfio-user; one that has where nothing is wanted."""
    if wanted:
        program = find(wanted, arch)
        if not has_vfio_user(program):
            fail(f"{program}: a ConnectX needs QEMU 10.1.1 or newer, with vfio-user-pci")
        return program
    for place in (lambda: shutil.which(PROGRAMS[arch]), lambda: complete(arch)):
        program = place()
        if program and has_vfio_user(program):
            return program
    fail(
        "a ConnectX needs QEMU 10.1.1 or newer, which is not installed, and apt here has no Debian archive, "
        f"of whose {LATER}-backports it would be taken"
    )


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
    if not program and "/" in wanted:
        fail(f"--qemu {wanted}: no such program", 2)
    if not program:
        fail(f"{wanted} is missing: install {PACKAGES[arch][0]} (`ci/deps vm`)")
    return program


@functools.cache
def version(program):
    """(10, 0, 2) of 10.0.2; of one that does not run the oldest that will do."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if m := re.search(r"version (\d+)\.(\d+)\.(\d+)", said(program, "--version")):
            return tuple(map(int, m.groups()))
    return 7, 2, 0
