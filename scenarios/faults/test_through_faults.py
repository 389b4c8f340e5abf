# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rping and perftest under faults of the fabric, to a successful end.

    h1..h4 -- leaf1 --+-- spine1 --+-- leaf2 -- h5..h8       12 links
                      +-- spine2 --+
"""

import re

import pytest
from muslin import free_port, wait_until


def rping(fabric, count, again="REJECTED"):
    ip = fabric.ip("h5")
    server = fabric.start("h5", "rping", "-s", "-a", ip, "-V", "-C", count)

    def attempt():
        client = fabric.start("h2", "rping", "-c", "-a", ip, "-V", "-v", "-C", count)
        out = client.wait(100, status=None)
        return out if client.popen.returncode == 0 or not re.search(again, out) else None

    out = wait_until(attempt, 30, "rping's server", 0.2)
    assert out.count("ping data") == int(count), out
    server.wait(20, status=None)


def perftest(fabric, tool, *args):
    """@tool from h2 to h5; returns its row of results."""
    args = [tool, "-p", free_port(), *args]
    _, out = fabric.pair(("h5", *args), ("h2", *args, fabric.ip("h5")), timeout=100)
    assert re.search(r"^\s*\d+\s+\d+\s+[\d.]+", out, re.M), out


TOOLS = {
    "rping": lambda f: rping(f, "20"),
    "ib_send_lat": lambda f: perftest(f, "ib_send_lat", "-n", "1000", "-u", "12"),
    "ib_write_bw": lambda f: perftest(f, "ib_write_bw", "-n", "1000", "-s", "16384", "-u", "12"),
    "ib_read_bw": lambda f: perftest(f, "ib_read_bw", "-n", "500", "-s", "16384", "-u", "12"),
}
FAULTS = {
    "one-percent-lost": ("h5", "drop", {"prob": "1%", "opcode": "rc"}),
    "an-ack-lost": ("h2", "drop", {"dir": "in", "opcode": "response", "nth": 7}),
    "duplicated": ("h5", "duplicate", {"every": 7, "opcode": "rc"}),
    "reordered": ("h5", "reorder", {"every": 20, "depth": 2, "opcode": "rc"}),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("what", FAULTS)
def test_packets(fabric, tool, what):
    place, action, keys = FAULTS[what]
    fabric.fault(place, action, **keys)
    TOOLS[tool](fabric)


@pytest.mark.parametrize("tool", ["rping", "ib_send_lat"])
def test_a_link_flaps(fabric, tool):
    """The server's link is down for a moment, and Active only after the subnet manager has configured it."""
    flap = fabric.fault("h5", "down", opcode="request", nth=25, for_="20ms")
    TOOLS[tool](fabric) if tool == "rping" else perftest(fabric, tool, "-n", "1000", "-u", "20")
    assert flap.hits == 1


def carrier(fabric):
    """The spine on the path from h2 to h5."""
    lids = [str(fabric.port(h)["lid"]) for h in ("h2", "h5")]
    return re.search(r"spine\d", fabric.run("h2", "ibtracert", *lids))[0]


def test_a_spine_fails_under_rping(fabric):
    """The spine on the path dies during rping; the rest takes the other one."""
    spine = carrier(fabric)
    death = fabric.fault(spine, "kill", opcode="rc", nth=60)
    rping(fabric, "30")
    assert death.hits == 1 and carrier(fabric) != spine


def test_ninety_percent_lost_of_what_the_manager_sends(fabric):
    """
    On all twelve links nine of ten management packets are lost while the manager sweeps repeatedly, since h8's link
    came up. Traffic is not affected, and the sweeps end with the loss.
    """
    loss = fabric.fault("all", "drop", prob="90%", class_="SubnDR")
    fabric.fault("h8", "down", for_="50ms")
    perftest(fabric, "ib_write_bw", "-s", "16384", "-D", "2")
    wait_until(lambda: fabric.show()["manager"]["sweep_errors"], 30, "a sweep with errors", 0.2)
    assert loss.hits > 5
    loss.clear()
    wait_until(lambda: fabric.show()["manager"]["up"], 60, "a sweep without errors", 0.2)
    assert fabric.port("h8")["state"] == "Active"
    rping(fabric, "5", again="REJECTED|ADDR_ERROR|ROUTE_ERROR")  # hosts that were removed join their groups again


def test_a_lid_changes_under_traffic(fabric):
    """
    h5's port has another LID from one packet to the next: requesters with the old one exhaust their retries, status
    12; and h5's programs get an event. With the LID that the switches have, traffic works again.
    """
    watch = fabric.start("h5", "stdbuf", "-oL", "ibv_asyncwatch")
    wait_until(lambda: "async event" in watch.output, 10, "ibv_asyncwatch")
    args = ["ib_send_lat", "-p", free_port(), "-n", "100000", "-u", "12"]
    change = fabric.fault("h5", "lid", lid=4000, opcode="request", nth=100, for_="3s")
    server = fabric.start("h5", *args)

    def attempt():
        out = fabric.start("h2", *args, fabric.ip("h5")).wait(60, status=None)
        return out if "Couldn't connect" not in out else None

    out = wait_until(attempt, 20, "a connection", 0.2)
    assert re.search(r"status 12|transport retry counter exceeded", out), out
    assert change.hits == 1
    watch.expect("LID")
    server.kill()
    wait_until(lambda: fabric.port("h5")["lid"] != 4000, 20, "h5's LID", 0.1)
    rping(fabric, "5")


GROUP = "239.5.5.5"


def test_multicast_while_routes_change(fabric):
    """The spine with a group's tree dies: a remaining receiver gets the group's packets by the other one."""
    receiver = ["stdbuf", "-oL", "mckey", "-m", GROUP, "-b", fabric.ip("h2"), "-p", "0x0002"]

    def send(count="10"):
        args = ["mckey", "-m", GROUP, "-b", fabric.ip("h5"), "-s", "-C", count, "-p", "0x0002"]
        return "return status 0" in fabric.run("h5", *args, status=None)

    first = fabric.start("h2", *receiver, "-C", "10").expect("joined")
    lid = re.search(r"mlid (0x[0-9a-f]+)", first.output)[1]
    marks = {s: fabric.fault(s, "ecn", dlid=lid, expect=False) for s in ("spine1", "spine2")}
    assert send()
    first.wait(20)
    spine = max(marks, key=lambda s: marks[s].hits)
    second = fabric.start("h2", *receiver, "-C", "30").expect("joined")
    death = fabric.fault(spine, "kill", dlid=lid, nth=15)
    wait_until(lambda: send() and not second.running(), 40, "thirty messages", 0.1)
    assert "return status 0" in second.output and death.hits == 1
