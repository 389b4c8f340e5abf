# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The kernel's siw as a test peer: Debian ships its source only, so it is built once for the guests' kernel. Constants of
its source for connection establishment become parameters of the module.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest.mock

IMAGE = pathlib.Path(__file__).resolve().parents[2] / "emu/guest/image"
SOURCE = "drivers/infiniband/sw/siw"
NEEDED = ("crc32c_generic", "libcrc32c")  # modules that it needs and the guests' image lacks
PARAMETERS = {"mpa_crc_required": "bool", "peer_to_peer": "bool", "mpa_version": "byte"}


def _give_parameters(folder):
    for name, kind in PARAMETERS.items():
        for file in ("siw.h", "siw_main.c"):
            path = folder / file
            path.write_text(re.sub(rf"\bconst (\w+ {name}\b)", r"\1", path.read_text()))
        with (folder / "siw_main.c").open("a") as f:
            f.write(f"module_param({name}, {kind}, 0644);\n")


def _unpack_source(folder, series):
    """The driver's part of the kernel's source, which is installed or fetched, in @folder."""
    name = f"linux-source-{series}"
    tar = f"cat /usr/src/{name}.tar.xz"
    if not pathlib.Path(f"/usr/src/{name}.tar.xz").exists():
        deb = next(packages().fetch(*d) for d in packages().resolve([name]) if d[1].startswith(name + "_"))
        tar = f"dpkg-deb --fsys-tarfile {deb} | tar -xO ./usr/src/{name}.tar.xz"
    inner = f"tar -xJ -C {folder} --strip-components=1 --wildcards '{name}/{SOURCE}/*'"
    subprocess.run(["bash", "-o", "pipefail", "-c", f"{tar} | {inner}"], check=True)


def _build(version, out):
    with contextlib.ExitStack() as stack:
        tmp = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=out.parent, prefix="build-")))
        series = re.match(r"\d+\.\d+", version)[0]
        _unpack_source(tmp, series)
        _give_parameters(tmp / SOURCE)
        there = kernel().headers(version, tmp / "headers")
        makefile = tmp / SOURCE / "Makefile"
        makefile.write_text(makefile.read_text().replace("$(CONFIG_RDMA_SIW)", "m"))
        kernel().build_modules(version, there, tmp / SOURCE)
        kernel().unpack_kernel(version, tmp / "kernel")
        made = tmp / "made"
        made.mkdir()
        for name in NEEDED:
            for found in (tmp / "kernel").rglob(f"{name}.ko*"):
                shutil.copy(kernel().decompressed(found), made)
        shutil.move(tmp / SOURCE / "siw.ko", made)
        made.rename(out)


def _module(name):
    sys.path.insert(0, str(IMAGE))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(IMAGE))


def kernel():
    return _module("kernel")


def packages():
    return _module("packages")


def modules(cache):
    """
    The module files for the kernel that guests boot, in the order of loading; built if there are none yet. They have a
    directory beside @cache, which may be another user's.
    """
    with unittest.mock.patch.dict(os.environ, MUSLIN_CACHE=f"{cache}-siw"):
        version = kernel().choose(os.environ.get("MUSLIN_KERNEL"))
        out = packages().cache_folder() / f"siw-{version}"
        with out.with_name("siw.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second process waits, and finds the files of the first one
            if not out.exists():
                _build(version, out)
    return [p for name in (*NEEDED, "siw") if (p := out / f"{name}.ko").exists()]
