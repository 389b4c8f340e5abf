# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Modules that Debian's kernels lack though their source has them: built once from Debian's package of that source, for
the kernel that guests boot.
"""

import contextlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest.mock

IMAGE = pathlib.Path(__file__).resolve().parents[2] / "emu/guest/image"


# Directories of the source that modules of scenarios are built of: unpacked at once, since the archive is long.
PARTS = (
    "drivers/block/rnbd",
    "drivers/infiniband/sw/siw",
    "drivers/infiniband/ulp/rtrs",
)


def _archive(version):
    """Name of the kernel's source, its archive if it is installed, and else the package, as resolve() names it."""
    name = "linux-source-" + re.match(r"\d+\.\d+", version)[0]
    tar = pathlib.Path(f"/usr/src/{name}.tar.xz")
    if tar.exists():
        return name, tar, None
    return name, None, next(d for d in packages().resolve([name]) if d[1].startswith(name + "_"))


def _key(version, *functions):
    """Digest of what is built: PARTS of the source, the kernel, the compiler, and the files of @functions."""
    _, tar, deb = _archive(version)
    source = deb or (tar.stat().st_mtime_ns, tar.stat().st_size)
    compiler = packages().run(["gcc", "--version"])
    files = sorted({pathlib.Path(__file__), *(pathlib.Path(inspect.getfile(f)) for f in functions)})
    return packages().digest(version, kernel().package(version), source, compiler, *files)


def _unpack_source(folder, version):
    """PARTS of the kernel's source, which is installed or fetched, in @folder."""
    name, tar, deb = _archive(version)
    tar = f"cat {tar}" if tar else f"dpkg-deb --fsys-tarfile {packages().fetch(*deb)} | tar -xO ./usr/src/{name}.tar.xz"
    wanted = " ".join(f"'{name}/{part}/*'" for part in PARTS)
    inner = f"tar -xJ -C {folder} --strip-components=1 --wildcards {wanted}"
    subprocess.run(["bash", "-o", "pipefail", "-c", f"{tar} | {inner}"], check=True)


def _configure(folder, part):
    """All that a Makefile builds if it is configured becomes a module; it finds headers of other unpacked parts."""
    makefile = part / "Makefile"
    text = re.sub(r"^(obj-)\$\(CONFIG_\w+\)", r"\1m", makefile.read_text(), flags=re.M)
    makefile.write_text(re.sub(r"\$\(srctree\)(?=/drivers/infiniband/ulp/)", str(folder), text))


@contextlib.contextmanager
def _made_once(out):
    """A directory that becomes @out, or None where that exists; a second process waits, and finds it."""
    with packages().cache_lock(out.name):
        if out.exists():
            yield None
            return
        with tempfile.TemporaryDirectory(dir=out.parent, prefix="build-") as tmp:
            made = pathlib.Path(tmp) / "made"
            made.mkdir()
            yield made
            made.rename(out)


def _source(cache, version):
    """PARTS of the source of the kernel @version, in a directory beside those of the modules."""
    out = cache / f"source-{_key(version)}"
    with _made_once(out) as made:
        if made:
            _unpack_source(made, version)
    return out


def _build(version, made, source, *, parts, needed, edit):
    """The files of the modules in @made."""
    with tempfile.TemporaryDirectory(dir=made.parent, prefix="build-") as folder:
        tmp = pathlib.Path(folder)
        shutil.copytree(source, tmp / "source")
        edit(tmp / "source")
        there = kernel().headers(version, tmp / "headers")
        symbols = []
        for part in (tmp / "source" / p for p in parts):
            _configure(tmp / "source", part)
            with unittest.mock.patch.dict(os.environ, KBUILD_EXTRA_SYMBOLS=" ".join(symbols)):
                kernel().build_modules(version, there, part)
            symbols.append(str(part / "Module.symvers"))
            for file in part.glob("*.ko"):
                shutil.move(file, made)
        if needed:
            kernel().unpack_kernel(version, tmp / "kernel")
        for name in needed:
            for found in (tmp / "kernel").rglob(f"{name}.ko*"):
                shutil.copy(kernel().decompressed(found), made)


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
    The module files @files of the source's directories @parts (of PARTS), both in the order in which they depend on
    each other, for the kernel that guests boot; built if there are none yet. They are beside @cache, which may be
    another user's. @needed: modules of Debian's that the guests' image lacks, which come first; @edit: changes the
    source in the directory that it gets.
    """
    with unittest.mock.patch.dict(os.environ, MUSLIN_CACHE=f"{cache}-modules"):
        version, folder = kernel().choose(os.environ.get("MUSLIN_KERNEL")), packages().cache_folder()
        out = folder / f"{name}-{version}-{_key(version, edit)}"
        with _made_once(out) as made:
            if made:
                _build(version, made, _source(folder, version), parts=parts, needed=needed, edit=edit)
    return [p for file in (*needed, *files) if (p := out / f"{file}.ko").exists()]
