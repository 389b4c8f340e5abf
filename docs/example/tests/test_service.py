# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service and its client, here rping, which checks the data that it gets back."""

import pytest
from muslin import wait_until

SERVER, CLIENT = ("rping", "-s"), ("rping", "-c", "-v")
# What a bad link does to its packets: a TCP stream is late where others lose packets.
LOSES = {"action": "drop", "prob": "2%", "opcode": "rc"}
IS_LATE = {"action": "delay", "time": "20ms", "every": 20}


def exchange(fabric, rounds=50, **keys):
    """The service on h2, the client on h1; returns what the client says."""
    h1, h2 = fabric.host("h1"), fabric.host("h2")
    args = ("-a", h2.ip, "-C", rounds, "-V")
    return fabric.pair((h2, *SERVER, *args), (h1, *CLIENT, *args), **keys)[1]


def test_every_round_is_answered(muslin_fabric):
    assert exchange(muslin_fabric).count("ping data") == 50


def test_a_bad_link_costs_time_only(muslin_fabric, wire):
    fault = muslin_fabric.host("h2").fault(**IS_LATE if wire == "iwarp" else LOSES)
    assert exchange(muslin_fabric).count("ping data") == 50
    assert fault.hits


def test_a_failed_request_is_reported(muslin_fabric):
    """The tenth RDMA WRITE of the service fails: the client sees that it has ended, and does not wait for ever."""
    h1, h2 = muslin_fabric.host("h1"), muslin_fabric.host("h2")
    fault = h2.fault("complete", opcode="write", nth=10, status="REM_ACCESS_ERR")
    server = h2.start(*SERVER, "-a", h2.ip, "-C", 50)

    def answered():
        out = h1.run(*CLIENT, "-a", h2.ip, "-C", 50, status=None)
        return "ping data" in out and out

    rounds = wait_until(answered, 20, "the first rounds").count("ping data")
    assert 0 < rounds < 50
    assert "cq completion failed status 10" in server.wait(status=None)
    assert fault.fired == [10]


@pytest.mark.parametrize("rounds", [20])
def test_it_works_again_after_the_link(muslin_fabric, rounds):
    link = muslin_fabric.host("h2").link()
    with link.down():
        assert link.state == "Down"
    wait_until(lambda: link.state == "Active", 20, "the link")
    assert exchange(muslin_fabric, rounds).count("ping data") == rounds
