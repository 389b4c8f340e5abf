# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Modules that Debian's kernels lack though their source has them: built once from Debian's package of that source, for
the kernel that guests boot.
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


def _unpack_source(folder, series, parts):
    """These directories of the kernel's source, which is installed or fetched, in @folder."""
    name = f"linux-source-{series}"
    tar = f"cat /usr/src/{name}.tar.xz"
    if not pathlib.Path(f"/usr/src/{name}.tar.xz").exists():
        deb = next(packages().fetch(*d) for d in packages().resolve([name]) if d[1].startswith(name + "_"))
        tar = f"dpkg-deb --fsys-tarfile {deb} | tar -xO ./usr/src/{name}.tar.xz"
    wanted = " ".join(f"'{name}/{part}/*'" for part in parts)
    inner = f"tar -xJ -C {folder} --strip-components=1 --wildcards {wanted}"
    subprocess.run(["bash", "-o", "pipefail", "-c", f"{tar} | {inner}"], check=True)


def _configure(folder, part):
    """All that a Makefile builds if it is configured becomes a module; it finds headers of other unpacked parts."""
    makefile = folder / part / "Makefile"
    text = re.sub(r"^(obj-)\$\(CONFIG_\w+\)", r"\1m", makefile.read_text(), flags=re.M)
    makefile.write_text(re.sub(r"\$\(srctree\)(?=/drivers/infiniband/ulp/)", str(folder), text))


def _build(version, out, parts, needed, edit):
    with contextlib.ExitStack() as stack:
        tmp = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=out.parent, prefix="build-")))
        series = re.match(r"\d+\.\d+", version)[0]
        _unpack_source(tmp, series, parts)
        edit(tmp)
        there = kernel().headers(version, tmp / "headers")
        kernel().unpack_kernel(version, tmp / "kernel")
        made = tmp / "made"
        made.mkdir()
        symbols = []
        for part in parts:
            _configure(tmp, part)
            stack.enter_context(unittest.mock.patch.dict(os.environ, KBUILD_EXTRA_SYMBOLS=" ".join(symbols)))
            kernel().build_modules(version, there, tmp / part)
            symbols.append(str(tmp / part / "Module.symvers"))
            for file in (tmp / part).glob("*.ko"):
                shutil.move(file, made)
        for name in needed:
            for found in (tmp / "kernel").rglob(f"{name}.ko*"):
                shutil.copy(kernel().decompressed(found), made)
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


def modules(cache, name, parts, files, *, needed=(), edit=lambda folder: None):
    """
    The module files @files of the source's directories @parts, both in the order in which they depend on each other,
    for the kernel that guests boot; built if there are none yet. They have a directory @name beside @cache, which may
    be another user's. @needed: modules of Debian's that the guests' image lacks, which come first; @edit: changes the
    source in the directory that it gets.
    """
    with unittest.mock.patch.dict(os.environ, MUSLIN_CACHE=f"{cache}-{name}"):
        version = kernel().choose(os.environ.get("MUSLIN_KERNEL"))
        out = packages().cache_folder() / f"{name}-{version}"
        with out.with_name(f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second process waits, and finds the files of the first one
            if not out.exists():
                _build(version, out, parts, needed, edit)
    return [p for file in (*needed, *files) if (p := out / f"{file}.ko").exists()]
