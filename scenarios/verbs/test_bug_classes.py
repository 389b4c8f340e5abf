# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Kinds of bugs that users of RDMA have reported, each with a small program that has the bug and, with another option,
the correct behaviour. The programs are in programs/.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import signal

import pytest
from muslin import free_port


@pytest.fixture
def served(fabric, program):
    """A program that serves at h5, and a function to run its client at h1."""

    def run(name, *args, serve=(), status=0):
        port = free_port()
        server = fabric.start("h5", program(name), "serve", port, *serve).expect("serving")
        client = fabric.start("h1", program(name), "send", fabric.ip("h5"), port, *args)
        return server, client.wait(60, status)

    return run


FLAP = {"opcode": "RC_SEND_ONLY", "nth": 100, "for_": "1s"}


def test_queue_pairs_kept_after_a_flap(fabric, served):
    """A port flaps. The engine waits until it is active again and continues with its queue pair, in vain."""
    flap = fabric.fault("h5", "down", **FLAP)
    _, out = served("rebuild", "60", "keep", status=1)
    assert "failed: transport retry counter exceeded" in out and out.count("the port is active") == 10
    assert "10 failed" in out and flap.hits == 1


def test_queue_pairs_rebuilt_after_a_flap(fabric, served):
    """The same flap, and a new queue pair: every batch arrives."""
    flap = fabric.fault("h5", "down", **FLAP)
    _, out = served("rebuild", "60", "rebuild")
    assert "60 batches" in out and flap.hits == 1


FLICKER = {"opcode": "RC_SEND_ONLY", "after": 200, "every": 300, "count": 4, "for_": "300ms"}


def test_an_initiator_fails_when_a_port_flaps(fabric, served):
    """Requests are freed with their connection, while the shared completion queue still has their completions."""
    fabric.fault("h5", "down", **FLICKER)
    served("flicker", "3000", "careless", status=-signal.SIGSEGV)


def test_an_initiator_survives_a_flap(fabric, served):
    """One that polls those completions first reconnects as often as needed, and completes all requests."""
    flicker = fabric.fault("h5", "down", **FLICKER)
    _, out = served("flicker", "3000", "careful")
    assert "done 30" in out and flicker.hits >= 2
    assert int(out.split()[-1]) > 2


@pytest.mark.parametrize("hello, arrives", [("0", False), ("1", True), ("imm", True)])
def test_empty_messages_are_lost(fabric, served, hello, arrives):
    """An adapter drops messages without payload: a handshake by an empty message never completes."""
    fabric.fault("h5", "drop", dir="in", opcode="RC_SEND_ONLY", len=0, expect=not arrives)
    server, out = served("hello", hello, serve=[hello], status=0 if arrives else 1)
    assert ("sent: success" in out) == arrives
    said = server.wait(20, status=None)
    assert ("hello: success" in said) == arrives and ("nobody has said hello" in said) != arrives


def test_empty_messages(served):
    """On a correct adapter an empty message arrives as any other."""
    server, _ = served("hello", "0", serve=["0"])
    assert "hello: success" in server.wait(20)
