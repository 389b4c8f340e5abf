# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Faults of the subnet manager: it dies, is paused, is one of two, hands over, or its administration responds late, with
BUSY or not at all. It runs inside the fabric's daemon on h1.

    h1 (manager) -- leaf1 --+-- spine1 --+-- leaf2 -- h5 .. h8
                            +-- spine2 --+
"""

import re

import pytest
from muslin import free_port, wait_until

PINGPONG = ["ibv_rc_pingpong", "-p", free_port(), "-n", "100"]


def pingpong(fabric):
    _, out = fabric.pair(("h5", *PINGPONG), ("h2", *PINGPONG, fabric.ip("h5")))
    assert "100 iters" in out


def masters(fabric):
    """The host of the master by the hosts' PortInfo, and the state of the embedded manager."""
    by_lid = {p["lid"]: n["name"] for n in fabric.show()["nodes"] if n["type"] == "ca" for p in n["ports"]}
    sm = fabric.show()["manager"]
    return by_lid[fabric.port("h2")["sm_lid"]], sm and sm["state"]


def rping(fabric, timeout=60):
    """rping from h2 to h5: returns the client when it has ended."""
    ip = fabric.ip("h5")
    server = fabric.start("h5", "rping", "-s", "-a", ip, "-C", "5")

    def attempt():
        client = fabric.start("h2", "rping", "-c", "-a", ip, "-C", "5", "-v")
        out = client.wait(timeout, status=None)
        return client if client.popen.returncode == 0 or "REJECTED" not in out else None

    client = wait_until(attempt, 20, "rping's server", 0.2)
    server.kill()
    return client


@pytest.mark.parametrize("action", ["kill", "pause"])
def test_no_manager(fabric, action):
    """Traffic continues without a manager, but a new link is not configured until there is one again."""
    fault = fabric.fault("sm", action)
    fabric.fault("h8", "down", for_="50ms")
    wait_until(lambda: fabric.port("h8")["state"] == "Initialize", 10, "h8's link", 0.1)
    pingpong(fabric)
    assert fabric.port("h8")["state"] == "Initialize"
    fault.clear()
    wait_until(lambda: fabric.port("h8")["state"] == "Active", 20, "h8's port", 0.1)


def test_the_log_says_why_it_cannot_come_back(fabric):
    """OpenSM has taken its port meanwhile."""
    fault = fabric.fault("sm", "kill")
    log = fabric.sweep("h1").sm_log
    wait_until(lambda: log.exists() and "SUBNET UP" in log.read_text(), 20, "OpenSM")
    fault.clear()
    assert "cannot start on h1: another one has registered" in fabric.daemon_log()


@pytest.mark.parametrize("action", ["kill", "pause"])
def test_the_standby_takes_over(fabric, action):
    """The master dies or is paused; h8's standby becomes master, until the old one is back."""
    fabric.fault("h8", "manager")
    assert masters(fabric) == ("h1", "Master")
    fault = fabric.fault("sm", action)
    wait_until(lambda: masters(fabric)[0] == "h8", 30, "the standby as master", 0.2)
    pingpong(fabric)
    fault.clear()
    wait_until(lambda: masters(fabric) == ("h1", "Master"), 40, "the old master", 0.2)
    pingpong(fabric)


def test_handover_and_back(fabric):
    """A manager with a higher priority starts on h8: it gets the subnet by handover, and LIDs do not change."""
    lids = {n["name"]: n["ports"][0]["lid"] for n in fabric.show()["nodes"] if n["type"] == "ca"}
    with fabric.fault("h8", "manager", priority=5):
        wait_until(lambda: masters(fabric) == ("h8", "Standby"), 20, "the handover", 0.2)
        assert "priority 5 state 3 SMINFO_MASTER" in fabric.run("h2", "sminfo")
        pingpong(fabric)
    wait_until(lambda: masters(fabric) == ("h1", "Master"), 30, "h1's manager as master", 0.2)
    assert {n["name"]: n["ports"][0]["lid"] for n in fabric.show()["nodes"] if n["type"] == "ca"} == lids
    log = fabric.daemon_log()
    assert "Handover from SM" in log and "Acknowledge from SM" in log and "not accepted" not in log


def test_two_masters(fabric):
    """A manager on h8 that ignores others: both are master, and each sets its LID at the hosts."""
    with fabric.fault("h8", "manager", "alone"):
        wait_until(lambda: masters(fabric) == ("h8", "Master"), 20, "a second master", 0.2)
        assert "SMINFO_MASTER" in fabric.run("h2", "sminfo")
        lid = str(fabric.port("h1")["lid"])
        assert "SMINFO_MASTER" in fabric.run("h2", "sminfo", lid)
        pingpong(fabric)
    fabric.fault("sm", "kill").clear()
    wait_until(lambda: masters(fabric) == ("h1", "Master"), 20, "one master", 0.2)


@pytest.mark.parametrize("action, keys", [("slow", {"time": "150ms"}), ("silent", {"first": 1})])
def test_administration_errors(fabric, action, keys):
    """rdma_cm requests a path while the SA is slow or loses a query: rping still connects."""
    fault = fabric.fault("sm", action, **keys)
    client = rping(fabric)
    assert client.popen.returncode == 0, client.output
    assert fault.hits


def test_busy_administration(fabric):
    """
    An SA with status BUSY: the requester gets the status, and rdma_cm, as the kernel's, treats it as an error at once.
    """
    fabric.fault("sm", "busy")
    assert "BUSY" in fabric.run("h2", "saquery", "-s", status=None)
    client = rping(fabric)
    assert client.popen.returncode != 0
    assert re.search("ROUTE_ERROR|ADDR_ERROR|event [13]", client.output), client.output


def test_a_wrong_partition_table(fabric):
    """The manager's Set of h5's P_Key table is altered on the path: h5 is in another partition."""
    fault = fabric.fault("h5", "alter", class_="SubnDR", method="Set", attr="P_KeyTable", offset=64, to="9234")
    fabric.fault("h5", "kill", for_="100ms")
    wait_until(lambda: fault.hits, 20, "h5's table", 0.1)
    wait_until(lambda: fabric.port("h5")["state"] == "Active", 20, "h5's port", 0.1)
    assert "0x9234" in fabric.run("h5", "smpquery", "pkeys", "-D", "0")
    assert "100% packet loss" in fabric.run("h2", "ibping", "-c", "2", str(fabric.port("h5")["lid"]), status=None)
