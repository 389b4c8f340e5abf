# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Programs whose memory the daemon cannot access (here: since their file cannot be read; in general by a container's
seccomp profile or by Yama) copy the bytes by a thread of their own.
"""

import re
import shutil

import pytest
from muslin import free_port


@pytest.fixture(scope="module")
def unreadable(shared_fabric):
    """
    A copy of a program that can be executed but not read: the kernel denies access to the memory of such a process.
    """

    def copy(name):
        to = shared_fabric.folder / name
        if not to.exists():
            shutil.copy(shutil.which(name), to)
            to.chmod(0o111)
        return to

    return copy


@pytest.mark.parametrize("size", [64, 4096, 1 << 20])
@pytest.mark.parametrize("kind", ["rc", "uc", "ud", "srq"])
def test_pingpong(shared_fabric, unreadable, kind, size):
    size = 2048 if kind == "ud" and size > 2048 else size
    args = [unreadable(f"ibv_{kind}_pingpong"), "-e", "-p", free_port(), "-s", str(size), "-n", "50"]
    args += ["-c"] if kind != "ud" else []
    before = shared_fabric.daemon_log().count("copies for the daemon")
    server, client = shared_fabric.pair(("h1", *args), ("h5", *args, "localhost"))
    for out in (server, client):
        assert re.search(r"50 iters in [\d.]+ seconds", out), out
        assert "invalid data" not in out
    assert shared_fabric.daemon_log().count("copies for the daemon") >= before + 2


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_lat"])
def test_perftest(shared_fabric, unreadable, tool):
    args = [unreadable(tool), "-p", free_port(), "-n", "200", "-F", *([] if "atomic" in tool else ["-s", "65536"])]
    _, client = shared_fabric.pair(("h1", *args), ("h6", *args, "localhost"))
    assert re.search(r"^\s*(65536|8)\s+200\s", client, re.M), client


def test_one_side_only(shared_fabric, unreadable):
    """RDMA READ between such a program and one whose memory the daemon accesses."""
    args = ["-p", free_port(), "-n", "200", "-s", "4096", "-F"]
    _, client = shared_fabric.pair(("h1", unreadable("ib_read_lat"), *args), ("h7", "ib_read_lat", *args, "localhost"))
    assert re.search(r"^\s*4096\s+200\s", client, re.M), client
