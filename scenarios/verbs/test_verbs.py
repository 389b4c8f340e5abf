# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The distribution's verbs programs on one fabric, between hosts on different leafs:

    h1 h2 h3 h4        h5 h6 h7 h8
        leaf1 ----+----- leaf2
                 spine1, spine2
"""

import re

import pytest
from muslin import free_port


def test_devices_are_listed(shared_fabric):
    out = shared_fabric.run("h1", "ibv_devices")
    guid = shared_fabric.node("h1")["guid"].removeprefix("0x")
    assert guid in out.replace(":", "")


def test_devinfo_shows_the_port(shared_fabric):
    out = shared_fabric.run("h2", "ibv_devinfo", "-v")
    port = shared_fabric.port("h2")
    assert re.search(r"state:\s+PORT_ACTIVE", out)
    assert re.search(rf"port_lid:\s+{port['lid']}\b", out)
    assert re.search(r"link_layer:\s+InfiniBand", out)


@pytest.mark.parametrize("tool", ["ibstat", "ibstatus"])
def test_ibstat_shows_the_port(shared_fabric, tool):
    out = shared_fabric.run("h1", tool)
    port = shared_fabric.port("h1")
    assert "ACTIVE" in out.upper() and "LinkUp" in out and "InfiniBand" in out
    assert re.search(rf"lid:\s+({port['lid']}|{port['lid']:#x})\b", out, re.I)


@pytest.mark.parametrize("size", [1, 64, 4096, 65536, 1 << 20])
@pytest.mark.parametrize("events", [False, True], ids=["poll", "events"])
@pytest.mark.parametrize("kind", ["rc", "uc", "ud", "srq"])
def test_pingpong(shared_fabric, kind, events, size):
    if kind == "ud" and size > 2048:
        size = 2048  # a datagram is one packet
    args = [f"ibv_{kind}_pingpong", "-p", free_port(), "-s", str(size), "-n", "50" if size > 65536 else "200"]
    args += ["-e"] if events else []
    if kind != "ud":
        args.append("-c")  # checks the payload
    server, client = shared_fabric.pair(("h1", *args), ("h5", *args, "localhost"))
    for out in (server, client):
        assert re.search(r"\d+ iters in [\d.]+ seconds", out), out
        assert "invalid data" not in out


def test_gid_and_global_route(shared_fabric):
    args = ["ibv_rc_pingpong", "-p", free_port(), "-g", "0", "-n", "100"]
    _, client = shared_fabric.pair(("h1", *args), ("h6", *args, "localhost"))
    assert "100 iters" in client


def test_queue_pair_numbers_distinguish_hosts(shared_fabric):
    """The QPNs of each host start at another number, so that they can be distinguished in a capture."""
    args = ["ibv_rc_pingpong", "-p", free_port(), "-n", "1"]
    _, client = shared_fabric.pair(("h1", *args), ("h6", *args, "localhost"))
    local, remote = (int(n, 16) for n in re.findall(r"QPN (0x\w+)", client))
    assert abs(local - remote) > 1000


def test_posts_before_rts(shared_fabric, program):
    """A post fails while another thread moves the queue pair to RTS: it is not sent later."""
    assert shared_fabric.run("h1", program("post_before_rts"), "200") == "200 rounds\n"
