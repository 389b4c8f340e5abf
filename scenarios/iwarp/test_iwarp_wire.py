# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
An iWARP port with correct, slow, silent and invalid peers: raw TCP peers against an rping server that accepts any
number of connections.

    w1 127.a.b.1: rping -s -P          w2 127.a.b.2: a client that behaves          this test: 127.0.0.1, raw TCP
"""

import contextlib
import fcntl
import os
import re
import signal
import socket
import struct
import termios
import time

import pytest
from mpa import (
    CRC,
    DDP,
    ENHANCED,
    LAST,
    PEER_TO_PEER,
    RDMAP,
    READ,
    READ_RESPONSE,
    REJECT,
    REPLY,
    RTR_WRITE,
    SEND,
    SEND_INV,
    TAGGED,
    TERMINATE,
    WRITE,
    Stream,
    enhanced,
    fpdu,
    read,
    read_start,
    start_frame,
)
from muslin.process import free_port, wait_until

START_MS = 1500


def send_(*, msn=1, offset=0, queue=0, opcode=SEND, payload=b"", ddp=LAST | DDP, rdmap=RDMAP, **kw):
    return fpdu(ddp, rdmap | opcode, 0, queue, msn, offset, payload=payload, **kw)


def tagged(stag, to, *, payload=b"abcd", opcode=WRITE, ddp=TAGGED | LAST | DDP, rdmap=RDMAP):
    return fpdu(ddp, rdmap | opcode, stag, to >> 32, to & 0xFFFFFFFF, payload=payload)


def read_(stag, size=4, queue=1, msn=1):
    return fpdu(LAST | DDP, RDMAP | READ, 0, queue, msn, 0, 7, 0, 0, size, stag, 0, 0)


# Number, data of the peer after negotiation without CRCs, layer and type, code, counter.
WRONG = [
    (1, "a WRITE to no region", tagged(0x12345678, 0x1000), 0x11, 0x00, "tagged_errors"),
    (2, "tagged, version 0 of DDP", tagged(0, 0, ddp=TAGGED | LAST), 0x11, 0x04, "tagged_errors"),
    (3, "a queue that is none", send_(queue=3), 0x12, 0x01, "untagged_errors"),
    (4, "a message number out of turn", send_(msn=5), 0x12, 0x03, "untagged_errors"),
    (5, "an offset that nothing precedes", send_(offset=64), 0x12, 0x04, "untagged_errors"),
    (6, "more than the receive has room for", send_(payload=b"x" * 4000), 0x12, 0x05, "untagged_errors"),
    (7, "untagged, version 2 of DDP", send_(ddp=LAST | 2), 0x12, 0x06, "untagged_errors"),
    (8, "version 2 of RDMAP", send_(rdmap=0x80), 0x02, 0x05, "rdmap_errors"),
    (9, "an opcode that is none", send_(opcode=12), 0x02, 0x06, "rdmap_errors"),
    (10, "a WRITE untagged", send_(opcode=WRITE), 0x02, 0x06, "rdmap_errors"),
    (11, "a SEND tagged", tagged(0, 0, opcode=SEND), 0x02, 0x06, "rdmap_errors"),
    (12, "a READ response that nobody requested", tagged(1, 0, opcode=READ_RESPONSE), 0x02, 0x06, "rdmap_errors"),
    (13, "a READ of no region", read_(0x12345678), 0x01, 0x00, "rdmap_errors"),
    (14, "a READ request in the queue of SENDs", read_(0, queue=0), 0x02, 0x06, "rdmap_errors"),
    (15, "a SEND that invalidates no region", send_(opcode=SEND_INV, payload=b"x" * 16), 0x01, 0x09, "rdmap_errors"),
    (16, "an FPDU shorter than its headers", fpdu(LAST | DDP, RDMAP | SEND, 0, 0), 0x20, 0x03, "length_errors"),
    (17, "an FPDU of one byte", b"\0\1\0\0\0\0\0\0", 0x20, 0x03, "length_errors"),
]

# Data instead of a valid MPA request.
NO_START = [
    (1, b"GET / HTTP/1.0\r\n\r\n" + b"x" * 100),
    (2, start_frame(key=REPLY)),
    (3, start_frame(revision=0)),
    (4, start_frame(revision=3)),
    (5, start_frame(length=513, data=b"x" * 513)),
    (6, start_frame(flags=0x10, revision=2, data=b"ab")),
    (7, start_frame(flags=REJECT)),
]


class Raw:
    """The fabric, its correct client, and raw connections to its server."""

    def __init__(self, fabric):
        net = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
        self.ip = [f"{net}.{40 + i}" for i in range(3)]
        self.fabric = fabric.up(
            f"host w1 iwarp {self.ip[1]} start={START_MS}ms\nhost w2 iwarp {self.ip[2]} crc=on\n"
        )
        self.port = free_port()
        self.server = fabric.start("w1", "rping", "-s", "-P", "-a", self.ip[1], "-p", self.port)
        wait_until(self.good, 20, "the server")

    def good(self):
        """A correct client is served."""
        argv = ["rping", "-c", "-a", self.ip[1], "-p", self.port, "-C", "3", "-v"]
        return self.fabric.run("w2", *argv, status=None).count("ping data") == 3

    def counter(self, name):
        path = f"/sys/class/infiniband/siw0/ports/1/counters/iwarp_{name}"
        return int(self.fabric.run("w1", "cat", path))

    def connect(self):
        return socket.create_connection((self.ip[1], int(self.port)), 10)

    def start(self, flags=0):
        s = self.connect()
        s.sendall(start_frame(flags))
        reply = read(s, 20)
        assert reply[:16] == REPLY and not reply[16] & REJECT and reply[17] == 1
        return s


def ended(s):
    """The other side has closed or reset the connection, after at most some bytes."""
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    s.close()
    return True


@pytest.fixture(scope="module")
def raw(muslin_make_fabric):
    fabric = muslin_make_fabric("wire")
    yield Raw(fabric)
    fabric.down()


@pytest.mark.parametrize("row", WRONG, ids=[f"{w[0]}-{w[1].replace(' ', '-')}" for w in WRONG])
def test_terminate(raw, row):
    """An invalid FPDU causes the Terminate with layer, type and code (RFC 5040, 4.8), and is counted."""
    _, _, bad, layer_type, code, counter = row
    before = raw.counter(counter)
    s = raw.start()
    s.sendall(bad)
    told = read(s, 28)
    assert told[3] == RDMAP | TERMINATE and struct.unpack(">III", told[8:20]) == (2, 1, 0), told.hex()
    assert (told[20], told[21]) == (layer_type, code)
    assert ended(s)
    assert raw.counter(counter) == before + 1
    assert raw.good()


def test_wrong_crc(raw):
    before = raw.counter("crc_errors")
    s = raw.start(CRC)
    s.sendall(send_(payload=b"x" * 16, crc=1))
    told = read(s, 28)
    assert (told[20], told[21]) == (0x20, 0x02) and struct.unpack("<I", told[24:])[0] != 0
    assert ended(s) and raw.counter("crc_errors") == before + 1


@pytest.mark.parametrize("number, bad", NO_START, ids=[str(n[0]) for n in NO_START])
def test_no_start(raw, number, bad):
    """Data that is no MPA request gets no reply; the connection is closed and counted."""
    before = raw.counter("start_errors")
    s = raw.connect()
    s.sendall(bad)
    assert ended(s)
    assert raw.counter("start_errors") == before + 1
    assert raw.good()


def test_silent_and_slow_peers(raw):
    """The MPA request has a time-out, also for slow bytes; a peer that vanishes before is removed."""
    before = raw.counter("start_timeouts")
    silent, slow, gone = raw.connect(), raw.connect(), raw.connect()
    gone.close()
    rest = iter(start_frame())
    wait_until(lambda: dribble(slow, bytes([next(rest)])), 20, "the end of the slow peer")
    assert ended(silent) and ended(slow)
    assert raw.counter("start_timeouts") == before + 2
    assert raw.good()


class OneByOne:
    """A socket that sends byte by byte, and calls @meanwhile in the middle."""

    def __init__(self, sock, meanwhile):
        self.sock, self.meanwhile = sock, meanwhile
        self.recv = sock.recv
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def sendall(self, data):
        for i in range(len(data)):
            if i == len(data) // 2:
                self.meanwhile()
            self.sock.sendall(data[i : i + 1])


def test_slow_fpdus(raw):
    """
    After MPA negotiation there is no time-out: others are served after half of an FPDU, which is processed when
    complete.
    """
    served = []
    s = raw.start(CRC)
    text = bytes(range(1, 64)) + b"\0"
    assert Stream(OneByOne(s, lambda: served.append(raw.good())), crc=True).rping_client(text) == text
    s.close()
    assert served == [True] * 4


def bytes_here(s):
    return struct.unpack("i", fcntl.ioctl(s, termios.FIONREAD, bytes(4)))[0]


def test_peer_that_reads_nothing(raw):
    """Its TCP window closes during a READ response: others are served meanwhile, and the program can be killed."""
    with socket.create_server((raw.ip[0], 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        port = str(listener.getsockname()[1])
        client = raw.fabric.start("w2", "rping", "-c", "-a", raw.ip[0], "-p", port, "-C", "1", "-S", "65000")
        listener.settimeout(10)
        s, _ = listener.accept()
    s.settimeout(10)
    read_start(s)
    s.sendall(start_frame(ENHANCED | CRC, 2, enhanced(PEER_TO_PEER | 4, RTR_WRITE | 1), key=REPLY))
    stream = Stream(s, crc=True)
    to, stag, size = stream.receive_info()
    stream.read_request(stag, to, size)
    wait_until(lambda: bytes_here(s) > 0, 10, "the response's first bytes")
    for _ in range(3):
        assert raw.good()
    assert client.running() and 0 < bytes_here(s) < size / 2
    client.signal(signal.SIGKILL)
    client.wait(10, None)
    assert raw.good()
    assert ended(s)


def dribble(s, data):
    """Sends one more byte of @data; true when the other side has closed."""
    try:
        s.send(data[:1])
        s.settimeout(0.2)
        return s.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        s.settimeout(10)


def test_many_half_open_peers(raw):
    """Their number is limited, and a new one replaces the oldest: correct peers are served meanwhile."""
    before = raw.counter("half_open_dropped")
    crowd = [raw.connect() for _ in range(200)]
    assert raw.good()
    assert raw.counter("half_open_dropped") >= before + 70
    for s in crowd:
        s.close()


def test_many_peers_from_one_address(raw):
    """They have a limit of their own: a slow peer at another address keeps its connection."""

    def attempt():
        """False: the machine was so slow that its time-out expired before the others had connected."""
        before, began = raw.counter("half_open_dropped"), time.monotonic()
        with contextlib.ExitStack() as stack:
            slow = stack.enter_context(socket.create_connection((raw.ip[1], int(raw.port)), 10, (raw.ip[0], 0)))
            for _ in range(150):
                stack.enter_context(raw.connect())
            wait_until(lambda: raw.counter("half_open_dropped") >= before + 150 - 32, 10, "the end of most of them")
            if time.monotonic() - began > START_MS / 2000:
                return False
            slow.sendall(start_frame())
            return read(slow, 20)[:16] == REPLY

    wait_until(attempt, 60)
    assert raw.good()


def test_peer_that_never_closes(raw):
    """A peer that has got a Terminate and does nothing: its stream has a time-out, too."""
    before = raw.counter("ends_unanswered")
    s = raw.start()
    s.sendall(send_(queue=3))
    assert read(s, 28)[3] == RDMAP | TERMINATE
    assert raw.good()
    wait_until(lambda: raw.counter("ends_unanswered") > before, 10, "the end of its stream")
    s.close()


def test_truncated_stream(raw):
    """A peer that closes within an FPDU: a lost connection, without other effects."""
    before = raw.counter("connections_lost")
    s = raw.start()
    s.sendall(send_(payload=b"x" * 16)[:20])
    s.close()
    wait_until(lambda: raw.counter("connections_lost") == before + 1, 10, "the loss")
    assert raw.good()


def test_peer_that_does_not_wait(raw):
    """
    FPDUs before the reply violate MPA (RFC 5044, 7.1.2) unless the reply is faster; either way others are served. Each
    peer waits until rping has reported the one before, since it mistakes two simultaneous requests for each other.
    """
    for _ in range(10):
        said = len(raw.server.output)
        s = raw.connect()
        s.sendall(start_frame() + tagged(0x12345678, 0) * 3)
        assert ended(s)
        wait_until(lambda said=said: len(raw.server.output) > said, 10, "what rping says of it")
    assert raw.good(), raw.server.output


def test_capture_is_dissected(raw):
    """MPA negotiation, SENDs, READs, WRITEs and a Terminate: no malformed packet, each MPA CRC is correct."""
    pcap = raw.fabric.folder / "w2.pcapng"
    trace = raw.fabric.start_muslin("trace", "-w", pcap, "w2")
    wait_until(pcap.exists, 10, "the capture")
    assert raw.good()
    trace.signal(signal.SIGINT)
    trace.wait(20, None)
    argv = ["tshark", "-r", pcap, "-o", "tcp.check_checksum:TRUE", "-O", "iwarp_mpa,iwarp_ddp_rdmap,tcp"]
    out = raw.fabric._start(argv).wait(60)
    operations = [f"OpCode: {o}" for o in ("Write", "Read Request", "Read Response", "Send")]
    for what in ("Request frame header", "Reply frame header", *operations):
        assert what.lower() in out.lower(), (what, out)
    assert len(re.findall(r"Good CRC32", out)) == len(re.findall(r"ULPDU length", out)) > 10, out
    assert not re.search(r"malformed|bad crc|incorrect|bad length", out, re.I), out
