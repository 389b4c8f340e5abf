# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The exact statuses with which connections end, and the messages of a program that makes new ones.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import pytest
from muslin import free_port, wait_until


class Stream:
    """The server at h5, and a function that sends to it from h1."""

    def __init__(self, fabric, program):
        self.fabric, self.program = fabric, program
        self.port = free_port()

    def argv(self, *args):
        return ["/usr/bin/python3", self.program, *args, "--port", self.port]

    def serve(self, *args):
        self.server = self.fabric.start("h5", *self.argv("serve", *args)).expect("serving")

    def send(self, *args, status=0, timeout=90):
        return self.fabric.run("h1", *self.argv("send", self.fabric.ip("h5"), *args), status=status, timeout=timeout)


@pytest.fixture
def stream(fabric, program):
    return Stream(fabric, program("stream.py"))


def test_a_failed_completion_and_a_new_connection(stream, fabric):
    """A completion with an error during traffic: one program hangs, the other recovers."""
    fault = fabric.fault("h1", "complete", status="LOC_PROT_ERR", queue="send", nth=50)
    stream.serve()
    assert "status 4\n" in stream.send("--rebuild", "--pause", "0.001")
    fault.clear()


def test_receiver_not_ready_retries_exhausted(stream, fabric):
    """No receive is posted, and the limit is three RNR retries: status 13."""
    stream.serve("--no-receives")
    assert stream.send("--rnr-retry", "3", status=1).startswith("status 13\n")


def test_a_storm_of_receiver_not_ready(stream, fabric):
    """Five RNR NAKs break a connection with three retries, but not one with unlimited retries."""
    storm = fabric.fault("h5", "rnr", after=20, first=5)
    stream.serve()
    assert stream.send("--rnr-retry", "3", status=1).startswith("status 13\n")
    storm.clear()
    fabric.fault("h5", "rnr", after=20, first=5)
    assert "failed 0" in stream.send("--pause", "0.001")


def test_messages_of_no_length(stream, fabric):
    """Each message without a byte arrives and consumes a receive, also when some are lost on the path."""
    fabric.fault("h5", "drop", dir="in", opcode="RC_SEND_ONLY", len=0, every=7)
    stream.serve()
    assert "sent 40 failed 0" in stream.send("--size", "0", "--count", "40")
    wait_until(lambda: "received 40 0\n" in stream.server.output, 10, "forty empty messages")


def test_duplicates_are_delivered_once(stream, fabric):
    """Every request arrives twice: the program sees each once."""
    fabric.fault("h5", "duplicate", dir="in", opcode="request")
    stream.serve()
    stream.send("--count", "50", "--pause", "0.001")
    wait_until(lambda: "received 50 " in stream.server.output, 10, "fifty messages")
    assert "received 51 " not in stream.server.output
