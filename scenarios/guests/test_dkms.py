# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests with another image: the driver by DKMS for every kernel with installed headers."""

import pathlib
import shutil
import subprocess

import pytest

HEADERS = sorted(p.parent for p in pathlib.Path("/usr/src").glob("linux-headers-*-amd64/Makefile"))


@pytest.mark.skipif(not shutil.which("dkms"), reason="no dkms here: ci/deps test")
@pytest.mark.parametrize("headers", HEADERS, ids=lambda p: p.name)
def test_dkms(muslin_programs, tmp_path, headers):
    """The installed files are a source tree for DKMS, which builds the module for the kernel of these headers."""
    source = muslin_programs.parent / "share/muslin/src"
    version = headers.name.removeprefix("linux-headers-")
    for d in ("tree", "source", "modules"):
        (tmp_path / d).mkdir()
    shutil.copytree(source, tmp_path / "source/muslin-1.0.0")
    where = ["--dkmstree", tmp_path / "tree", "--sourcetree", tmp_path / "source"]
    subprocess.run(["dkms", "add", *where, "muslin/1.0.0"], check=True, capture_output=True, timeout=60)
    build = ["dkms", "build", *where, "-k", version, "--kernelsourcedir", headers, "muslin/1.0.0"]
    r = subprocess.run(build, capture_output=True, text=True, timeout=200, check=False)
    logs = "".join(p.read_text() for p in tmp_path.glob("tree/**/make.log"))
    assert r.returncode == 0, r.stdout + r.stderr + logs
    built = list(tmp_path.glob(f"tree/muslin/1.0.0/{version}/x86_64/module/muslin.ko*"))
    assert len(built) == 1 and "warning:" not in logs, logs
    info = subprocess.run(["/sbin/modinfo", built[0]], check=True, capture_output=True, text=True).stdout
    assert f"vermagic:       {version} " in info and "virtio:d00000002v*" in info
