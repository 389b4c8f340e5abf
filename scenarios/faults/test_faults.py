# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Failures: a spine's link, a program, the daemon.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import re
import signal

from muslin import free_port, wait_until


def uplinks(fabric, leaf):
    return {p["peer"]: p for p in fabric.node(leaf)["ports"] if p.get("peer", "").startswith("spine")}


def test_traffic_continues_by_the_other_spine(fabric):
    """The spine with the traffic of h1 to h5 loses its link; after the sweep the other one carries the traffic."""
    lids = [str(fabric.port(h)["lid"]) for h in ("h1", "h5")]
    spine = re.search(r"spine\d", fabric.run("h1", "ibtracert", *lids))[0]
    other = {"spine1": "spine2", "spine2": "spine1"}[spine]
    fabric.command("link", f"leaf1:{uplinks(fabric, 'leaf1')[spine]['num']}", "down")
    wait_until(lambda: other in fabric.run("h1", "ibtracert", *lids, status=None), 30, "a route by " + other, 0.5)
    args = ["ibv_rc_pingpong", "-p", free_port(), "-n", "200"]
    _, out = fabric.pair(("h1", *args), ("h5", *args, "localhost"))
    assert "200 iters" in out
    assert fabric.port("h1")["lid"] == int(lids[0])


def test_a_killed_program_leaves_nothing(fabric):
    """Its peer's retries are exhausted, the daemon destroys its objects, and the host can be used at once."""
    args = ["ib_write_bw", "-p", free_port(), "-s", "65536", "-D", "30"]
    srv, cli = fabric.start_pair(
        ("h1", *args),
        ("h5", *args, fabric.ip("h1")),
        lambda: int(fabric.port("h1")["counters"]["port_rcv_packets"]) > 5000,
    )
    srv.signal(signal.SIGKILL)
    out = cli.wait(60, status=None)
    assert cli.popen.returncode != 0
    assert re.search(r"status 12|transport retry counter exceeded|Completion with error", out), out
    args = ["ibv_rc_pingpong", "-p", free_port(), "-n", "100"]
    fabric.pair(("h1", *args), ("h5", *args, "localhost"))


def test_fabrics_coexist(fabric, request):
    """Another name is another fabric; the first is not affected when the second ends."""
    other = request.getfixturevalue("muslin_make_fabric")("other")
    try:
        other.up("leafs 1 spines 1 hosts 2\n")
        assert {n["name"] for n in other.show()["nodes"] if n["type"] == "ca"} == {"h1", "h2"}
        assert len([n for n in fabric.show()["nodes"] if n["type"] == "ca"]) == 8
    finally:
        other.down()
    assert "h8" in fabric.command("show")
