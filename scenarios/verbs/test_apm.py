# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Automatic path migration: a connection whose primary path fails continues on its alternate path, and the program only
gets an event. Each host has two ports on one leaf switch; port 2 to port 2 is the alternate path.

    h1:1 --+               +-- h3:1   dies
           leaf1 -- spine1 -- leaf2
    h1:2 --+               +-- h3:2
"""

import re

import pytest
from muslin import free_port, wait_until

TOPOLOGY = "leafs 2 spines 1 hosts 2 ports 2\n"


@pytest.fixture
def apm(new_fabric, program):
    """Sends messages from h1 to h3; returns the output of client and server."""
    new_fabric.up(TOPOLOGY)
    port = free_port()

    def run(*args, status=0):
        server = new_fabric.start("h3", program("apm"), "serve", port).expect("serving")
        client = new_fabric.run("h1", program("apm"), "send", new_fabric.ip("h3"), port, *args, status=status)
        return client, server.wait(30)

    return new_fabric, run


@pytest.mark.parametrize("side", ["h3:1", "h1:1"])
def test_the_path_fails_under_traffic(apm, side):
    """A cable is disconnected at the 500th message: all 2000 arrive, in order and once, by the other ports."""
    fabric, run = apm
    cut = fabric.fault(side, "down", opcode="RC_SEND_ONLY", nth=500)
    client, server = run("2000")
    assert "sent 2000, the last with status 0" in client
    assert "received 2000\n" in server and "in the place of" not in server
    for said in (client, server):
        assert "MIGRATED, port 2\n" in said and said.count("event: path migrated") == 1
    assert cut.hits == 1


def test_without_an_alternate_path(apm):
    """The same without one: retries are exhausted."""
    fabric, run = apm
    fabric.fault("h3:1", "down", opcode="RC_SEND_ONLY", nth=500)
    client, _ = run("2000", "plain", status=1)
    assert re.search(r"sent [1-9]\d*, the last with status 12", client) and "MIGRATED, port 1\n" in client


def test_no_failure(apm):
    """Traffic arms the alternate path on both sides, without migration."""
    for said in apm[1]("100"):
        assert "ARMED, port 1\n" in said and "event: path" not in said


LEAFS = "leafs 2 spines 2 hosts 2\n"
PACKET_LIFE = 56 + 56  # offset of PacketLifeTime in the record, and of the record


def rping_over_a_broken_way(fabric, *options):
    """rping from h2 to h3; leaf1 loses the route to h3's first LID during it. Returns the client's output."""
    fabric.up(LEAFS, "--lmc", "1", *options)
    # a short lifetime of paths, so that time-outs are short: that of the CA's delay, 0.3 s each
    fabric.fault("h2", "alter", class_="SA", attr="PathRecord", method="GetResp", offset=PACKET_LIFE, to="8a")
    gone = fabric.fault("leaf1", "lft", "off", lid=fabric.port("h3")["lid"], opcode="request", nth=100)
    ip = fabric.ip("h3")
    server = fabric.start("h3", "rping", "-s", "-a", ip, "-C", "50")

    def attempt():
        out = fabric.start("h2", "rping", "-c", "-a", ip, "-v", "-C", "50").wait(60, status=None)
        return None if "REJECTED" in out else out

    out = wait_until(attempt, 20, "rping's server", 0.2)
    server.kill()
    assert gone.hits == 1
    return out


def test_rping_by_the_other_lids(new_fabric):
    """
    rdma_cm connections get the path between the ports' second LIDs by LAP and APR: rping, which does not know this,
    continues when the route to the first LID is lost.
    """
    assert rping_over_a_broken_way(new_fabric, "--apm").count("ping data") == 50


def test_rping_without_other_lids(new_fabric):
    """Without an alternate path the connection breaks."""
    out = rping_over_a_broken_way(new_fabric)
    assert out.count("ping data") < 50 and re.search("DISCONNECT|status (12|5)", out), out
