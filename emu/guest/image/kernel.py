#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Debian's kernels: which one, its headers, its modules, and our driver built for it.
usage: kernel.py VERSION FOLDER     prints where its headers are: installed, or below the folder
"""

import contextlib
import ctypes
import gzip
import io
import lzma
import os
import pathlib
import re
import shutil
import sys

from packages import alone, backports, fail, names, resolve, run, say, unpack, words

SOURCES = pathlib.Path(__file__).resolve().parents[2]  # emu/, with guest/ and abi/
INSTALLED = pathlib.Path("/usr/src")


def in_order(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def installed():
    """Versions whose headers are on this machine, the oldest first."""
    found = (p.parent.name.removeprefix("linux-headers-") for p in INSTALLED.glob("linux-headers-*-amd64/Makefile"))
    return sorted(found, key=in_order)


def offered(where=()):
    """Versions whose headers and images apt could fetch there, the oldest first."""
    known = names("linux-", where)
    found = (re.fullmatch(r"linux-headers-(\d[^-]*(?:-\d+)?-amd64)", n) for n in known)
    versions = {m[1] for m in found if m and re.match(r"\d+\.\d+\.\d", m[1])}
    return sorted((v for v in versions if f"linux-image-{v}" in known), key=in_order)


def choose(wanted):
    """
    The version that @wanted means: all of it, or its beginning ("6.12": the newest of them), of those that are
    installed or that the distribution or its backports offer. Without any it is the one that the distribution's
    linux-headers-amd64 means.
    """
    if wanted:
        for versions in (installed, offered, lambda: offered(backports() or ())):
            for v in reversed(versions()):
                if re.match(re.escape(wanted.rstrip(".")) + r"(?!\d)", v):
                    return v
        fail(f"no kernel {wanted} among the installed headers, in what apt knows and in the backports")
    for _, name, _ in resolve(["linux-headers-amd64"]):
        m = re.match(r"linux-headers-(.*-amd64)_", name)
        if m:
            return m[1]
    fail("apt knows no linux-headers-amd64")


def source(version):
    """Where apt finds this kernel."""
    return () if f"linux-image-{version}" in names("linux-") else backports() or ()


def package(version):
    """The kernel's package."""
    return alone([f"linux-image-{version}"], source(version))


def headers(version, folder):
    """The headers' folder: the installed one, or one unpacked below @folder."""
    if (INSTALLED / f"linux-headers-{version}/Makefile").exists():
        return INSTALLED / f"linux-headers-{version}"
    where = source(version)
    depends = run(["apt-cache", "depends", *words(where), f"linux-headers-{version}"])
    needs = re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", depends)
    unpack(alone([f"linux-headers-{version}", *needs], where), folder)
    found = folder / f"usr/src/linux-headers-{version}"
    makefile = found / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
    return found


def build_driver(version, folder):
    """Builds muslin.ko for @version in @folder and returns its path."""
    for room in ("guest", "abi"):
        shutil.copytree(SOURCES / room, folder / "emu" / room, ignore=shutil.ignore_patterns("image"))
    there = headers(version, folder / "headers")
    say(f"building the driver for {version}")
    # Type information for BPF needs a tool and a vmlinux that a build of one module has no other use for.
    words = [f"M={folder}/emu/guest", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]
    run(["make", "-s", "-C", there, *words], env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"})
    ko = folder / "emu/guest/muslin.ko"
    run(["strip", "--strip-debug", ko])
    return ko


def unzstd(data):
    """The frame that @data begins with; behind it the kernel's build has put the size that it unpacks to."""
    lib = ctypes.CDLL("libzstd.so.1")
    size_t = ctypes.c_size_t
    lib.ZSTD_findFrameCompressedSize.restype = lib.ZSTD_decompress.restype = size_t
    length = lib.ZSTD_findFrameCompressedSize(data, size_t(len(data)))
    size = int.from_bytes(data[length : length + 4], "little")
    out = ctypes.create_string_buffer(size)
    if lib.ZSTD_decompress(out, size_t(size), data, size_t(length)) != size:
        raise ValueError("no such frame")
    return out.raw


def uncompressed(image):
    """
    The ELF file in a bzImage, or the bzImage itself: QEMU starts it without the firmware's and the decompressor's work.
    """
    data = image.read_bytes()
    for magic, opener in (
        (b"\xfd7zXZ\0", lambda b: lzma.LZMADecompressor().decompress(b)),
        (b"\x28\xb5\x2f\xfd", unzstd),
        (b"\x1f\x8b\x08", lambda b: gzip.GzipFile(fileobj=io.BytesIO(b)).read()),
    ):
        at = data.find(magic)
        while at >= 0:
            with contextlib.suppress(Exception):
                out = opener(data[at:])
                if out[:4] == b"\x7fELF":
                    return out
            at = data.find(magic, at + 1)
    return data


def unpack_kernel(version, folder):
    """Unpacks the kernel's package in @folder: boot/ and lib/modules/."""
    unpack(package(version), folder)


def needed(base, names):
    """Files of modules and of what they need, by modules.dep; those that the kernel has built in are no files."""
    deps = {}
    for line in (base / "modules.dep").read_text().splitlines():
        file, _, needs = line.partition(":")
        deps[file] = needs.split()
    by_name = {pathlib.Path(f).name.split(".")[0].replace("-", "_"): f for f in deps}
    files = [by_name[n] for n in names if n in by_name]
    return {*files, *(need for f in files for need in deps[f])}


def prune(root, version, names, depmod):
    """
    Leaves the modules @names and what they need. Newer packages have them compressed, which a guest's modprobe does not
    read.
    """
    run([*depmod, "-b", root, version])
    base = root / "lib/modules" / version
    want = needed(base, names)
    for f in base.rglob("*.ko*"):
        if str(f.relative_to(base)) in want and f.suffix == ".xz":
            f.with_suffix("").write_bytes(lzma.decompress(f.read_bytes()))
        if str(f.relative_to(base)) not in want or f.suffix == ".xz":
            f.unlink()


if __name__ == "__main__":
    print(headers(choose(sys.argv[1]), pathlib.Path(sys.argv[2])))
