# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's kernels: which one, its headers, its modules, and our driver built for it."""

import contextlib
import gzip
import io
import lzma
import os
import pathlib
import re
import shutil

from packages import fail, resolve, run, say, unpack

SOURCES = pathlib.Path(__file__).resolve().parents[2]  # emu/, with guest/ and abi/
INSTALLED = pathlib.Path("/usr/src")


def in_order(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def installed():
    """Versions whose headers are on this machine, the oldest first."""
    found = (p.parent.name.removeprefix("linux-headers-") for p in INSTALLED.glob("linux-headers-*-amd64/Makefile"))
    return sorted(found, key=in_order)


def offered():
    """Versions that apt could fetch, the oldest first."""
    names = run(["apt-cache", "pkgnames", "linux-headers-"]).split()
    found = (re.fullmatch(r"linux-headers-(\d[^-]*(?:-\d+)?-amd64)", n) for n in names)
    return sorted((m[1] for m in found if m and re.match(r"\d+\.\d+\.\d", m[1])), key=in_order)


def choose(wanted):
    """
    The version that @wanted means: all of it, or its beginning ("6.12": the newest of them). Without any it is the one
    that the distribution's linux-headers-amd64 means.
    """
    if wanted:
        for versions in (installed(), offered()):
            for v in reversed(versions):
                if v == wanted or v.startswith(wanted.rstrip(".") + "."):
                    return v
        fail(f"no kernel {wanted} among the installed headers and in what apt knows")
    for _, name, _ in resolve(["linux-headers-amd64"]):
        m = re.match(r"linux-headers-(.*-amd64)_", name)
        if m:
            return m[1]
    fail("apt knows no linux-headers-amd64")


def headers(version, folder):
    """The headers' folder: the installed one, or one unpacked below @folder."""
    if (INSTALLED / f"linux-headers-{version}/Makefile").exists():
        return INSTALLED / f"linux-headers-{version}"
    own = [d for d in resolve([f"linux-headers-{version}"]) if re.match("linux-(headers|kbuild)-", d[1])]
    unpack(own, folder)
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


def uncompressed(image):
    """
    The ELF file in a bzImage, or the bzImage itself: QEMU starts it without the firmware's and the decompressor's work.
    """
    data = image.read_bytes()
    for magic, opener in (
        (b"\xfd7zXZ\0", lambda b: lzma.LZMADecompressor().decompress(b)),
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
    name = f"linux-image-{version}"
    own = [d for d in resolve([name]) if d[1].startswith(name + "_")]
    if not own:
        fail(f"apt knows no {name}")
    unpack(own, folder)


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
    """Leaves the modules @names and what they need."""
    run([*depmod, "-b", root, version])
    base = root / "lib/modules" / version
    want = needed(base, names)
    for f in base.rglob("*.ko*"):
        if str(f.relative_to(base)) not in want:
            f.unlink()
