# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
iWARP connection establishment, and markers, against a hand-made peer that checks each byte: the test acts as rping's
client or as its server.

    w1 127.a.b.1                 this test: 127.a.b.9
    w2 127.a.b.2 rtr=read
    w3 127.a.b.3 rtr=zero
    w4 127.a.b.4 markers=on crc=on
"""

import os
import socket
import struct

import pytest
from mpa import (
    CRC,
    ENHANCED,
    MARKERS,
    PEER_TO_PEER,
    READ,
    READ_RESPONSE,
    REJECT,
    REPLY,
    REQUEST,
    RTR_READ,
    RTR_WRITE,
    RTR_ZERO,
    SEND,
    TERMINATE,
    WRITE,
    Stream,
    enhanced,
    read_start,
    start_frame,
)
from muslin.process import free_port, wait_until

OPTIONS = {"w1": "", "w2": "rtr=read", "w3": "rtr=zero", "w4": "markers=on crc=on"}
SIZE = 3000  # of a ping: several markers


class Hosts:
    """The fabric, and the test's own connections to it."""

    def __init__(self, fabric):
        net = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
        self.ip = {f"w{i}": f"{net}.{60 + i}" for i in range(1, 5)}
        self.own = f"{net}.69"
        self.port = free_port()
        self.fabric = fabric.up("".join(f"host {h} iwarp {self.ip[h]} {o}\n" for h, o in OPTIONS.items()))
        self.servers = {}

    def counter(self, host, name):
        path = f"/sys/class/infiniband/siw0/ports/1/counters/iwarp_{name}"
        return int(self.fabric.run(host, "cat", path))

    def _server(self, host):
        """An rping server that accepts any number of connections."""
        if host not in self.servers:
            argv = ["rping", "-s", "-P", "-a", self.ip[host], "-p", self.port, "-S", str(SIZE)]
            self.servers[host] = self.fabric.start(host, *argv)
        return socket.create_connection((self.ip[host], int(self.port)), 10)

    def connect(self, host, flags=0, revision=1, data=b""):
        """Establishes a connection; returns the stream, and the reply's (flags, private data)."""
        s = wait_until(lambda: self._connected(host), 20, f"the server on {host}")
        s.sendall(start_frame(flags, revision, data))
        key, got, rev, private = read_start(s)
        assert key == REPLY and not got & REJECT and rev == revision
        markers = {"mark_out": bool(got & MARKERS), "mark_in": bool(flags & MARKERS)}
        return Stream(s, bool(got & CRC), **markers), got, private

    def _connected(self, host):
        try:
            return self._server(host)
        except ConnectionRefusedError:
            return None

    def serve(self, host, answers):
        """
        An rping client on @host connects, and each of its requests is answered by the next one of @answers: a reply,
        or None, which closes. Returns the requests and the last connection's socket.
        """
        with socket.create_server((self.own, 0)) as listener:
            listener.settimeout(10)
            port = str(listener.getsockname()[1])
            argv = ["rping", "-c", "-a", self.own, "-p", port, "-C", "1", "-S", str(SIZE), "-V", "-v"]
            client = self.fabric.start(host, *argv)
            requests = []
            for answer in answers:
                s, _ = listener.accept()
                s.settimeout(10)
                requests.append(read_start(s))
                if answer:
                    s.sendall(answer)
                if answer is not answers[-1]:
                    s.close()
        return client, requests, s


@pytest.fixture(scope="module")
def hosts(muslin_make_fabric):
    fabric = muslin_make_fabric("mpa")
    yield Hosts(fabric)
    fabric.down()


TEXT = b"x" * (SIZE - 1) + b"\0"

# Request and RTR message of an initiator, and the negotiated flags of IRD and ORD.
REQUESTS = [
    ("revision 1", 0, 1, b"", None, 0, 0),
    ("revision 2", ENHANCED, 2, enhanced(3, 5), None, 0, 0),
    ("an empty WRITE", ENHANCED, 2, enhanced(PEER_TO_PEER | 3, RTR_WRITE | 5), WRITE, PEER_TO_PEER, RTR_WRITE),
    ("an empty READ", ENHANCED, 2, enhanced(PEER_TO_PEER | 3, RTR_READ | 5), READ, PEER_TO_PEER, RTR_READ),
    ("an empty SEND", ENHANCED, 2, enhanced(PEER_TO_PEER | RTR_ZERO | 3, 5), SEND, PEER_TO_PEER | RTR_ZERO, 0),
    ("any", ENHANCED, 2, enhanced(PEER_TO_PEER | RTR_ZERO | 3, RTR_WRITE | RTR_READ), WRITE, PEER_TO_PEER, RTR_WRITE),
]


def say_first(stream, rtr):
    if rtr == WRITE:
        stream.tagged(WRITE, 1, 0)
    elif rtr == SEND:
        stream.send()
    elif rtr == READ:
        stream.read_request(1, 0, 0)
        assert stream.receive_tagged(READ_RESPONSE) == b""


@pytest.mark.parametrize("flags", [0, CRC, MARKERS, MARKERS | CRC], ids=["plain", "crc", "markers", "markers+crc"])
@pytest.mark.parametrize("request_", REQUESTS, ids=[r[0].replace(" ", "-") for r in REQUESTS])
def test_responder(hosts, request_, flags):
    """The reply to each request: RTR as offered, with CRCs and markers if the initiator requests them."""
    _, own, revision, data, rtr, ird, ord_ = request_
    stream, _, private = hosts.connect("w1", own | flags, revision, data)
    assert stream.crc == bool(flags & CRC) and not stream.mark_out
    if own:
        limits = [depth & 0x3FFF for depth in reversed(struct.unpack(">HH", data[:4]))]
        got = struct.unpack(">HH", private[:4])
        assert (got[0] & 0xC000, got[1] & 0xC000, got[0] & 0x3FFF, got[1] & 0x3FFF) == (ird, ord_, *limits)
    say_first(stream, rtr)
    assert stream.rping_client(TEXT) == TEXT
    assert bool(stream.markers) == bool(flags & MARKERS)
    stream.sock.close()


def test_responder_that_wants_markers(hosts):
    stream, flags, _ = hosts.connect("w4")
    assert flags & MARKERS and flags & CRC
    assert stream.rping_client(TEXT) == TEXT
    stream.sock.close()


def test_marker_that_points_elsewhere(hosts):
    """The Terminate for a marker that does not match the length of its FPDU (RFC 5044, 8)."""
    before = hosts.counter("w4", "length_errors")
    stream, _, _ = hosts.connect("w4")
    stream.skew = 8
    stream.send(bytes(600))
    _, opcode, words, payload = stream.receive()
    assert opcode == TERMINATE and words[1:] == (2, 1, 0) and payload[:2] == bytes([0x20, 0x03])
    assert hosts.counter("w4", "length_errors") == before + 1
    stream.sock.close()


# muslin's initiators

REPLIES = [
    ("a WRITE", "w1", 0, RTR_WRITE, WRITE),
    ("a READ of two", "w1", 0, RTR_READ, READ),
    ("a READ", "w2", 0, RTR_READ, READ),
    ("a SEND", "w3", RTR_ZERO, 0, SEND),
]


@pytest.mark.parametrize("flags", [0, MARKERS | CRC], ids=["plain", "markers+crc"])
@pytest.mark.parametrize("reply", REPLIES, ids=[r[0].replace(" ", "-") for r in REPLIES])
def test_initiator(hosts, reply, flags):
    """It sends the RTR message that the responder selected; its FPDUs have markers if the responder requests them."""
    _, host, zero, ord_, rtr = reply
    answer = start_frame(ENHANCED | flags, 2, enhanced(PEER_TO_PEER | zero | 4, ord_ | 1), key=REPLY)
    client, ((key, _, revision, private),), s = hosts.serve(host, [answer])
    assert key == REQUEST and revision == 2 and struct.unpack(">H", private[:2])[0] & PEER_TO_PEER
    stream = Stream(s, bool(flags), mark_in=bool(flags))
    ddp, opcode, words, payload = stream.receive()
    assert opcode == rtr
    if rtr == READ:
        sink, high, low, size = struct.unpack(">4I", payload[:16])
        assert size == 0
        stream.tagged(READ_RESPONSE, sink, high << 32 | low)
    else:
        assert payload == b""
    assert len(stream.rping_server()) == SIZE
    assert "ping data" in client.wait(20, status=None)
    assert bool(stream.markers) == bool(flags)
    s.close()


def test_initiator_that_wants_markers(hosts):
    answer = start_frame(ENHANCED | CRC, 2, enhanced(PEER_TO_PEER | 4, RTR_WRITE | 1), key=REPLY)
    client, ((_, flags, _, _),), s = hosts.serve("w4", [answer])
    assert flags & MARKERS and flags & CRC
    stream = Stream(s, True, mark_out=True)
    assert stream.receive()[1] == WRITE
    stream.rping_server()
    assert "ping data" in client.wait(20, status=None)
    s.close()


@pytest.mark.parametrize(
    "refusal",
    [None, start_frame(revision=1, key=REPLY), start_frame(REJECT, 1, key=REPLY)],
    ids=["closes", "answers", "rejects"],
)
def test_peer_of_revision_1(hosts, refusal):
    """A peer without revision 2 gets a second MPA Request in any case (RFC 6581, 10)."""
    before = hosts.counter("w1", "fallbacks")
    client, requests, s = hosts.serve("w1", [refusal, start_frame(key=REPLY)])
    assert [r[2] for r in requests] == [2, 1] and requests[1][1] & ENHANCED == 0 and requests[1][3] == b""
    Stream(s).rping_server()
    assert "ping data" in client.wait(20, status=None)
    assert hosts.counter("w1", "fallbacks") == before + 1
    s.close()


def test_peer_that_rejects(hosts):
    """A rejection with revision 2 is that of the program: there is no second request."""
    client, _, s = hosts.serve("w1", [start_frame(ENHANCED | REJECT, 2, enhanced(), key=REPLY)])
    assert "REJECTED" in client.wait(20, status=None)
    s.close()
