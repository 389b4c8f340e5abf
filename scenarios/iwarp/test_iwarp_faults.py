# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Faults of iWARP streams, under stock programs: effects on the TCP connection, and on the programs.

    daemon a: w1 127.a.b.1          daemon b: w2 127.a.b.2
"""

import time

import pytest
from muslin import pair
from muslin.errors import ProcessFailed
from muslin.process import wait_until
from test_iwarp import Iwarp
from test_perftest import free_port


@pytest.fixture(scope="module")
def two(muslin_make_fabric):
    fabrics = [muslin_make_fabric("iwarp-fault-a"), muslin_make_fabric("iwarp-fault-b")]
    yield Iwarp(*fabrics, first=30)
    for f in fabrics:
        f.down()


def broken(two, count=200):
    """An rping whose connection breaks: returns the client's output."""
    args = ["-a", two.ip["w1"], "-V", "-C", count, "-p", free_port()]
    server = two.a.start("w1", "rping", "-s", *args)
    try:
        said = pair.run(server, lambda: two.b.start("w2", "rping", "-c", *args, "-v"), 30)
    except ProcessFailed as failed:
        said = str(failed)
    server.wait(30, status=None)
    return said


@pytest.mark.parametrize("action", ["rst", "half-close", "truncate", "truncate end=fin"])
def test_ends_its_connection(two, action):
    """Only this connection breaks: both programs detect it, and the next connection works."""
    lost = two.counter("w1", "connections_lost")
    with two.a.fault("w1", *action.split(), nth=30) as fault:
        assert 0 < broken(two).count("ping data") < 200
        assert fault.fired == [30]
    if action == "rst":
        assert two.counter("w1", "connections_lost") > lost
    two.rping()


def test_missing_receives(two):
    """
    From the third message on no receive is there, which ends the stream (RFC 5040 7.1): of each of many connections
    both programs learn that, however early it ends, and exit; without the fault connections work.
    """
    with two.a.fault("w1", "rnr", after=2) as fault:
        for _ in range(10):
            before = fault.hits
            broken(two)  # fails if a program hangs
            assert fault.hits > before
    two.rping()


def test_a_stall_ends(two):
    """The connection survives a stall of its stream of two seconds."""
    with two.a.fault("w1", "stall", nth=20, time="2s") as fault:
        begin = time.monotonic()
        two.rping(count=50)
        assert time.monotonic() - begin > 2
        assert fault.fired == [20]


def test_a_stall_ends_when_it_is_cleared(two):
    args = ["-a", two.ip["w1"], "-V", "-C", 50, "-p", free_port()]
    with two.a.fault("w1", "stall", nth=20) as fault:
        server, client = two.a.start_pair(
            ("w1", "rping", "-s", *args),
            ("w2", "rping", "-c", *args, "-v"),
            lambda: fault.hits,
            client_fabric=two.b,
            timeout=30,
            what="the stall",
        )
    assert client.wait(30).count("ping data") == 50
    server.wait(30)


@pytest.mark.parametrize("keys", [{"time": "10ms"}, {"jitter": "10ms"}])
def test_a_delay_is_only_late(two, keys):
    with two.a.fault("w1", "delay", every=5, **keys) as fault:
        two.rping(count=50)
        assert fault.hits > 5


def test_an_fpdu_sets_the_link_down(two):
    """The connection survives; the link is up again after the time."""
    with two.a.fault("w1", "down", nth=20, for_="1s") as fault:
        two.rping(count=50)
        assert fault.fired == [20]


def test_an_fpdu_kills_the_host(two):
    with two.a.fault("w1", "kill", nth=30, for_="100ms") as fault:
        assert 0 < broken(two).count("ping data") < 200
        assert fault.fired == [30]
    wait_until(lambda: two.a.port("w1")["state"] == "Active", 10, "the port", 0.05)
    two.rping()
