# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
MADs sent by a program's UD queue pair change nothing in the subnet, and do not fill the log:

    h1: the manager ---- leaf1 ---- spines ---- leaf2 ---- h6: the program
"""

import pytest
from muslin import wait_until


@pytest.fixture(scope="module")
def datagrams(shared_fabric, program):
    path = program("datagrams")
    return lambda *args: shared_fabric.run("h6", path, *map(str, args))


def counter(fabric, node, port, name):
    return int(fabric.port(node, port)["counters"][name])


def manager(fabric):
    return fabric.show()["manager"]


@pytest.mark.parametrize("node", ["h2", "leaf1"])
def test_qp0_is_no_destination(shared_fabric, datagrams, node):
    """IBTA 9.2.3.2: packets to QP0 on a VL other than VL15 are discarded."""
    fabric = shared_fabric
    port = 1 if node == "h2" else 0
    states = [(p["state"], p["phys_state"]) for n in fabric.show()["nodes"] for p in n["ports"]]
    before = counter(fabric, node, port, "rcv_qp0_not_vl15")
    datagrams("smp", fabric.node(node)["lid"], 1)
    wait_until(lambda: counter(fabric, node, port, "rcv_qp0_not_vl15") == before + 1, 10, "the discarded packet")
    assert [(p["state"], p["phys_state"]) for n in fabric.show()["nodes"] for p in n["ports"]] == states


def test_a_wrong_key_again_and_again(shared_fabric, datagrams):
    fabric = shared_fabric
    before, lines = manager(fabric), len(fabric.daemon_log().splitlines())
    datagrams("sa", fabric.show()["sm"]["lid"], 9, 5000)
    wait_until(lambda: manager(fabric)["sa_key_errors"] >= before["sa_key_errors"] + 4000, 10, "the requests")
    wait_until(lambda: "similar messages suppressed" in fabric.daemon_log(), 10, "the number of suppressed lines")
    assert len(fabric.daemon_log().splitlines()) - lines < 100
    assert fabric.show()["log_suppressed"] > 4000
    assert "SA ClassPortInfo" in fabric.run("h6", "saquery", "CPI")


def test_traps_of_a_program(shared_fabric, datagrams):
    fabric = shared_fabric
    before = manager(fabric)
    leaf = fabric.node("leaf1")["lid"]
    datagrams("trap", fabric.show()["sm"]["lid"], leaf, 2000)
    after = manager(fabric)
    assert (after["traps"], after["heavy_sweeps"]) == (before["traps"], before["heavy_sweeps"])
