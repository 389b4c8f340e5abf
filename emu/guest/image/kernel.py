#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Debian's kernels, and those that the user has built: which one, its headers, its modules, and our driver built for it.
usage: kernel.py VERSION FOLDER     prints where its headers are: installed, or below the folder
       kernel.py                    prints the versions that --kernel can mean here, the newest last
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
import struct
import sys

from packages import NATIVE, alone, backports, fail, names, own, remembered, resolve, run, say, unpack, words

SOURCES = pathlib.Path(__file__).resolve().parents[2]  # emu/, with guest/ and abi/
INSTALLED = pathlib.Path("/usr/src")
CROSS = {"amd64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"}
# For `make ARCH=` of the kernel, in its configuration, and its image below the folder of its build
KBUILD = {"amd64": ("x86_64", "X86_64", "arch/x86/boot/bzImage"), "arm64": ("arm64", "ARM64", "arch/arm64/boot/Image")}
VERSION = r"\d+\.\d+\.\d[^-]*(?:-\d+)?-"
NO_KERNEL = "guests need Debian's kernels, which apt does not offer here; --kernel FOLDER takes one of your own"
builds = {}  # folders in which the user has built kernels, by version


def in_order(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def flavour_of(version):
    """The part that tells architecture, page size and configuration: "amd64", "cloud-amd64", "arm64-16k"."""
    return re.search(rf"(?:(?:cloud|rt)-)?(?:{'|'.join(CROSS)})(?:-16k)?$", version)[0]


def configured(folder, option):
    return f"CONFIG_{option}=y\n" in (folder / ".config").read_text()


def arch_of(version):
    if version in builds:
        return next(arch for arch, (_, option, _) in KBUILD.items() if configured(builds[version], option))
    return next(arch for arch in CROSS if arch in flavour_of(version))


def has_pages_16k(version):
    """Not each processor has pages of 16 KiB; those of 4 KiB and 64 KiB are in all that QEMU has."""
    return configured(builds[version], "ARM64_16K_PAGES") if version in builds else version.endswith("-16k")


def built(folder, arch):
    """The version of the kernel that the user has built for @arch in @folder, where it is found from now on."""
    folder = folder.resolve()
    _, option, image = KBUILD[arch]
    release = folder / "include/config/kernel.release"
    if not release.exists() or not (folder / "modules.order").exists():
        fail(f"{folder}: there is no kernel with modules; build one there, or name a version")
    if not configured(folder, option) or not (folder / image).exists():
        fail(f"{folder}: there is no {image}, of {arch}; use --arch for a kernel of another architecture")
    version = release.read_text().strip()
    builds[version] = folder
    return version


def kbuild(version, folder, *words):
    """Calls the kernel's `make` in @folder, which knows the architecture itself where it is Debian's."""
    arch = arch_of(version)
    argv = ["make", "-s", "-C", folder, *([f"ARCH={KBUILD[arch][0]}"] if version in builds else []), *words]
    if arch != NATIVE:
        argv.append(f"CROSS_COMPILE={CROSS[arch]}")
        if not shutil.which(f"{CROSS[arch]}gcc"):
            fail(f"{CROSS[arch]}gcc is missing: install gcc-{CROSS[arch].rstrip('-').replace('_', '-')}")
    run(argv, env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"})


def installed(flavour):
    """Versions whose headers are on this machine, the oldest first."""
    makefiles = INSTALLED.glob(f"linux-headers-*-{flavour}/Makefile")
    found = (p.parent.name.removeprefix("linux-headers-") for p in makefiles)
    return sorted((v for v in found if re.fullmatch(VERSION + flavour, v)), key=in_order)


def offered(flavour, where):
    """Versions whose headers and images apt could fetch there, the oldest first."""
    known = names("linux-", where)
    found = (re.fullmatch(rf"linux-headers-({VERSION}{flavour})", n) for n in known)
    return sorted((m[1] for m in found if m and f"linux-image-{m[1]}" in known), key=in_order)


def places(arch, flavour=None):
    """The versions that are installed, those of the distribution, and those of its backports."""
    yield installed(flavour or arch)
    yield offered(flavour or arch, own(arch))
    there = backports(arch)
    yield offered(flavour or arch, there) if there else []


def all_versions(arch):
    return sorted({v for versions in places(arch) for v in versions}, key=in_order)


def choose(wanted, arch=NATIVE):
    """
    The version for @arch that @wanted means: all of it, or its beginning ("6.12": the newest of them), a flavour
    ("arm64-16k", "cloud-amd64"), or both ("6.12-cloud-amd64"), of those that are installed or that the distribution or
    its backports offer, or "newest" of all. Without any it is the one that the distribution's linux-headers-ARCH means.
    A path is a folder in which the user has built one.
    """
    if wanted and "/" in wanted:
        return built(pathlib.Path(wanted), arch)
    if not shutil.which("apt-get"):
        fail(NO_KERNEL)
    if wanted == "newest":
        return (all_versions(arch) or fail(NO_KERNEL))[-1]
    if wanted:
        m = re.fullmatch(rf"(?:(\d.*?)-?)??((?:(?:cloud|rt)-)?{arch}(?:-16k)?)?", wanted)
        start, flavour = (m[1] or "", m[2]) if m else (wanted, None)
        for versions in places(arch, flavour):
            for v in reversed(versions):
                if re.match(re.escape(start.rstrip(".")) + (r"(?!\d)" if start else ""), v):
                    return v
        fail(f"no kernel {wanted} among the installed headers, in the packages of apt and in the backports")
    if f"linux-headers-{arch}" not in names("linux-", own(arch)):
        fail(NO_KERNEL)
    for _, name, _ in resolve([f"linux-headers-{arch}"], own(arch)):
        m = re.match(rf"linux-headers-(.*-{arch})_", name)
        if m:
            return m[1]
    fail(f"apt has no linux-headers-{arch}")


def source(version):
    """Where apt finds this kernel."""
    where = own(arch_of(version))
    return where if f"linux-image-{version}" in names("linux-", where) else backports(arch_of(version)) or ()


def package(version):
    """The kernel's packages: newer ones have image, modules and lists in their own ones. Of a build: its files."""
    if version in builds:
        folder, (_, _, image) = builds[version], KBUILD[arch_of(version)]
        files = (folder / image, folder / "Module.symvers", folder / ".config")
        return [(str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in files if p.exists()]
    where = source(version)
    name = f"linux-image-{version}"
    depends = remembered(["depends", name], where, lambda: run(["apt-cache", "depends", *words(where), name]))
    parts = re.findall(rf"Depends: (linux-(?:base|binary|modules)-{re.escape(version)})$", depends, re.M)
    return alone([name, *parts], where)


def headers(version, folder):
    """The headers' folder: the installed one, or one unpacked below @folder; or where the kernel was built."""
    if version in builds:
        return builds[version]
    if (INSTALLED / f"linux-headers-{version}/Makefile").exists():
        return INSTALLED / f"linux-headers-{version}"
    where = source(version)
    depends = run(["apt-cache", "depends", *words(where), f"linux-headers-{version}"])
    needs = re.findall(r"Depends: (linux-headers-\S+)", depends)
    kbuild = re.findall(r"Depends: (linux-kbuild-[^\s:]+)", depends)  # programs that run here
    unpack(alone([f"linux-headers-{version}", *needs], where), folder)
    unpack(alone(kbuild, own() if where == own(arch_of(version)) else backports() or ()), folder)
    found = folder / f"usr/src/linux-headers-{version}"
    makefile = found / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
    return found


def build_modules(version, there, folder):
    """Builds the modules of @folder for @version, with its headers @there, without debug information."""
    # Type information for BPF needs a tool and a vmlinux that a build of one module has no other use for.
    plain = ["CONFIG_DEBUG_INFO=", "CONFIG_DEBUG_INFO_BTF_MODULES="]
    kbuild(version, there, f"-j{os.cpu_count()}", f"M={folder}", *plain, "modules")
    cross = "" if arch_of(version) == NATIVE else CROSS[arch_of(version)]
    run([f"{cross}strip", "--strip-debug", *folder.glob("*.ko")])


def driver_sources():
    found = sorted(p for room in ("abi", "guest") for p in (SOURCES / room).iterdir())
    return [p for p in found if p.suffix in (".c", ".h") or p.name == "Kbuild"]


def build_driver(version, folder):
    """Builds muslin.ko for @version in @folder and returns its path."""
    for room in ("guest", "abi"):
        shutil.copytree(SOURCES / room, folder / "emu" / room, ignore=shutil.ignore_patterns("image"))
    there = headers(version, folder / "headers")
    say(f"building the driver for {version}")
    build_modules(version, there, folder / "emu/guest")
    return folder / "emu/guest/muslin.ko"


def unlz4(data, size):
    """What the `lz4 -l` of the kernel's build has made: blocks, each behind its length."""
    lib = ctypes.CDLL("liblz4.so.1")
    out = ctypes.create_string_buffer(size)
    at, done = 4, 0
    while done < size:
        length = int.from_bytes(data[at : at + 4], "little")
        block = data[at + 4 : at + 4 + length]
        got = lib.LZ4_decompress_safe(block, ctypes.byref(out, done), len(block), size - done)
        if got <= 0:
            raise ValueError("no such blocks")
        at, done = at + 4 + length, done + got
    return out.raw


def unzstd(data, size):
    lib = ctypes.CDLL("libzstd.so.1")
    size_t = ctypes.c_size_t
    lib.ZSTD_findFrameCompressedSize.restype = lib.ZSTD_decompress.restype = size_t
    length = lib.ZSTD_findFrameCompressedSize(data, size_t(len(data)))
    out = ctypes.create_string_buffer(size)
    if lib.ZSTD_decompress(out, size_t(size), data, size_t(length)) != size:
        raise ValueError("no such frame")
    return out.raw


DECOMPRESSORS = {
    b"\xfd7zXZ\0": lambda data, _: lzma.LZMADecompressor().decompress(data),
    b"\x1f\x8b\x08": lambda data, _: gzip.GzipFile(fileobj=io.BytesIO(data)).read(),
    b"\x28\xb5\x2f\xfd": unzstd,
    b"\x02\x21\x4c\x18": unlz4,
}


def uncompressed(image):
    """
    The ELF file in a bzImage, or the file itself: QEMU starts it without the firmware's and the decompressor's work.
    The kernel's Documentation/arch/x86/boot.rst has the places; the last four bytes are the size that it unpacks to.
    """
    data = image.read_bytes()
    if data[0x202:0x206] == b"HdrS":
        offset, length = struct.unpack_from("<II", data, 0x248)
        start = ((data[0x1F1] or 4) + 1) * 512 + offset
        payload = data[start : start + length]
        size = int.from_bytes(payload[-4:], "little")
        for magic, decompress in DECOMPRESSORS.items():
            with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError):
                if payload.startswith(magic) and (out := decompress(payload, size)).startswith(b"\x7fELF"):
                    return out
    return data


def install_build(version, folder):
    """Like unpack_kernel(), of a kernel that the user has built."""
    build = builds[version]
    plain = [f"CONFIG_MODULE_COMPRESS_{k}=" for k in ("GZIP", "XZ", "ZSTD")]
    words = [f"INSTALL_MOD_PATH={folder}", "INSTALL_MOD_STRIP=1", "DEPMOD=true", *plain]
    kbuild(version, build, "modules_install", *words)
    for link in ("build", "source"):
        (folder / "lib/modules" / version / link).unlink(missing_ok=True)
    return build / KBUILD[arch_of(version)][2]


def unpack_kernel(version, folder):
    """Unpacks the kernel's packages in @folder, lib/modules/ among them, and returns the path of the kernel."""
    if version in builds:
        return install_build(version, folder)
    unpack(package(version), folder)
    for path in (f"boot/vmlinuz-{version}", f"usr/lib/modules/{version}/vmlinuz", f"lib/modules/{version}/vmlinuz"):
        if (folder / path).exists():
            return folder / path
    fail(f"linux-image-{version} and what it depends on have no vmlinuz")


def needed(base, names):
    """Files of modules and of what they need, by modules.dep; those that the kernel has built in are no files."""
    deps = {}
    for line in (base / "modules.dep").read_text().splitlines():
        file, _, needs = line.partition(":")
        deps[file] = needs.split()
    by_name = {pathlib.Path(f).name.split(".")[0].replace("-", "_"): f for f in deps}
    files = [by_name[n] for n in names if n in by_name]
    return {*files, *(need for f in files for need in deps[f])}


def decompressed(module):
    """The path of the file @module, which newer packages compress by xz: a guest's modprobe and insmod read no such."""
    if module.suffix != ".xz":
        return module
    plain = module.with_suffix("")
    plain.write_bytes(lzma.decompress(module.read_bytes()))
    module.unlink()
    return plain


def depends(module):
    """Names of the modules that the file @module needs: the kernel's build writes them into each."""
    found = re.search(rb"\0depends=([\w,-]+)\0", module.read_bytes())
    return found[1].decode().replace("-", "_").split(",") if found else []


def prune(root, version, names, depmod):
    """Leaves the modules @names and what they need, none of them compressed."""
    base = root / "lib/modules" / version
    files = {f.name.split(".")[0].replace("-", "_"): f for f in base.rglob("*.ko*")}
    todo = [*names]
    while todo:
        if file := files.pop(todo.pop(), None):
            todo += depends(decompressed(file))
    for left in files.values():
        left.unlink()
    run([*depmod, "-b", root, version])


def unknown(base, names):
    """Of @names, those that the kernel has neither as modules nor built in."""
    lines = "".join((base / f"modules.{what}").read_text() for what in ("dep", "builtin")).splitlines()
    known = {pathlib.Path(line.partition(":")[0]).name.split(".")[0].replace("-", "_") for line in lines}
    return [n for n in names if n not in known]


def copy_modules(source, target, names):
    """Of what prune() has left in @source: the modules @names, what they need, and the lists of those built in."""
    lists = [p.name for p in source.glob("modules.[bo]*")]
    for name in [*lists, *needed(source, names)]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)


if __name__ == "__main__" and len(sys.argv) == 1:
    print(*all_versions(NATIVE), sep="\n")
elif __name__ == "__main__":
    print(headers(choose(sys.argv[1]), pathlib.Path(sys.argv[2])))
