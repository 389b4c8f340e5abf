# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A RoCEv2 port with hand-made packets: each kind of invalid one gets the standard's response or none, is counted, and
does not affect its connection or others.

    daemon: r1 127.a.b.41, r3 127.a.b.43          this test: 127.a.b.49, and 127.a.b.48 which is nobody's peer
"""

import contextlib
import json
import os
import pathlib
import random
import re
import struct

import pytest
from forge import PSN, Peer, bth, mad, reth
from muslin import wait_until

NET = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
R1, R3, PEER, STRANGER = (f"{NET}.{n}" for n in (41, 43, 49, 48))
MTU = 1024
ACK, PSN_SEQ, INVALID, ACCESS = 0x1F, 0x60, 0x61, 0x62  # of the AETH (IBTA 9.3.5)

SEND_FIRST, SEND_LAST, SEND_ONLY, WRITE_FIRST, WRITE_MIDDLE, WRITE_ONLY, READ, RC_ACK = 0, 2, 4, 6, 7, 10, 12, 17
RESPONSES = range(13, 17)  # to a READ
UD_SEND, CNP = 100, 129
CM, RTU = 7, 0x14  # a management class and an attribute of it (IBTA 16.7.1)


# name: (packets sent to queue pair @q, a list; syndrome and PSN of the response or None; the counter)
ROWS = {
    "right": (lambda q: [bth(SEND_ONLY, q.qpn) + b"abcd"], (ACK, PSN), "hw_counters/rdma_recvs"),
    "replayed": (lambda q: [bth(SEND_ONLY, q.qpn) + b"abcd"], (ACK, PSN), "hw_counters/duplicate_request"),
    "reordered": (
        lambda q: [bth(SEND_ONLY, q.qpn, PSN + 1) + b"2nd."],
        (PSN_SEQ, PSN),
        "hw_counters/out_of_seq_request",
    ),
    "PSN far ahead": (
        lambda q: [bth(SEND_ONLY, q.qpn, PSN + (1 << 23) - 1)],
        (PSN_SEQ, PSN),
        "hw_counters/rx_ooo_discarded",
    ),
    "PSN far behind": (
        lambda q: [bth(SEND_ONLY, q.qpn, (PSN - (1 << 22)) % (1 << 24))],
        (ACK, PSN - 1),
        "hw_counters/duplicate_request",
    ),
    "wrong P_Key": (lambda q: [bth(SEND_ONLY, q.qpn, pkey=0x8001)], None, "hw_counters/rx_pkey_mismatch"),
    "wrong QPN": (lambda q: [bth(SEND_ONLY, 0xABCDEF)], None, "hw_counters/rx_wrong_qp"),
    "QP0": (lambda q: [bth(UD_SEND, 0) + bytes(8 + 256)], None, "counters/roce_not_taken"),
    "another transport": (lambda q: [bth(SEND_ONLY | 0x20, q.qpn)], None, "hw_counters/rx_wrong_qp"),
    "reserved opcode": (lambda q: [bth(0x1F, q.qpn)], None, "counters/roce_malformed"),
    "version of the transport": (lambda q: [bth(SEND_ONLY, q.qpn, tver=1)], None, "counters/roce_malformed"),
    "no header behind the BTH": (lambda q: [bth(WRITE_ONLY, q.qpn)], None, "counters/roce_malformed"),
    "more pad than payload": (lambda q: [bth(SEND_ONLY, q.qpn, pad=3)], None, "counters/roce_malformed"),
    "odd length": (lambda q: [bth(SEND_ONLY, q.qpn) + b"abc"], None, "counters/roce_malformed"),
    "larger than any MTU": (lambda q: [bth(SEND_ONLY, q.qpn) + bytes(4100)], None, "counters/roce_malformed"),
    "a datagram of 60000 bytes": (lambda q: [bth(SEND_ONLY, q.qpn) + bytes(60000)], None, "counters/roce_malformed"),
    "an acknowledge of nothing": (lambda q: [bth(RC_ACK, q.qpn, 5) + b"\x1f\0\0\0"], None, "hw_counters/rx_ghost_acks"),
    "a NAK of nothing": (lambda q: [bth(RC_ACK, q.qpn, 5) + b"\x62\0\0\0"], None, "hw_counters/rx_ghost_acks"),
    "a response of nothing": (
        lambda q: [bth(16, q.qpn, 5) + b"\x1f\0\0\0" + bytes(64)],
        None,
        "hw_counters/rx_ghost_acks",
    ),
    "a notification without the option": (
        lambda q: [bth(CNP, q.qpn, 0) + bytes(16)],
        None,
        "hw_counters/rp_cnp_ignored",
    ),
    "wrong Q_Key": (
        lambda q: [bth(UD_SEND, q.ud) + struct.pack(">II", 0x4321, 7)],
        None,
        "hw_counters/rx_qkey_mismatch",
    ),
    "a MAD of another version": (lambda q: [mad(CM, RTU, base=9)], None, "counters/mad_malformed"),
    "half a MAD": (lambda q: [mad(CM, RTU)[:-128]], None, "counters/mad_malformed"),
    "a MAD with another's Q_Key": (lambda q: [mad(CM, RTU, qkey=7)], None, "counters/mad_qkey_violations"),
    "a connection's last word to nobody": (lambda q: [mad(CM, RTU)], None, "counters/cm_unexpected"),
    # The following ones must end the connection
    "larger than the path's MTU": (lambda q: [bth(SEND_ONLY, q.qpn) + bytes(2 * MTU)], (INVALID, PSN), "invalid"),
    "a first packet that is short": (lambda q: [bth(SEND_FIRST, q.qpn) + bytes(100)], (INVALID, PSN), "invalid"),
    "a middle without a first": (lambda q: [bth(WRITE_MIDDLE, q.qpn) + bytes(MTU)], (INVALID, PSN), "invalid"),
    "more than was received for": (
        lambda q: [bth(SEND_FIRST, q.qpn, ackreq=False) + bytes(MTU)]
        + [bth(1, q.qpn, PSN + 1, ackreq=False) + bytes(MTU), bth(SEND_LAST, q.qpn, PSN + 2) + bytes(4)],
        (INVALID, PSN + 2),
        "invalid",
    ),
    "longer than it said": (
        lambda q: [bth(WRITE_ONLY, q.qpn) + reth(q.addr, q.rkey, 8) + bytes(16)],
        (INVALID, PSN),
        "invalid",
    ),
    "longer than any message": (
        lambda q: [bth(WRITE_FIRST, q.qpn) + reth(q.addr, q.rkey, (1 << 31) + 1) + bytes(MTU)],
        (INVALID, PSN),
        "invalid",
    ),
    "more READs than agreed": (
        lambda q: [bth(READ, q.qpn, PSN + i * 8) + reth(q.addr, q.rkey, 8192) for i in range(3)],
        (INVALID, PSN + 8),
        "invalid",
    ),
    "wrong rkey": (
        lambda q: [bth(WRITE_ONLY, q.qpn) + reth(q.addr, q.rkey ^ 0x555, 4) + b"abcd"],
        (ACCESS, PSN),
        "access",
    ),
    "before the region": (
        lambda q: [bth(WRITE_ONLY, q.qpn) + reth(q.addr - 1, q.rkey, 4) + b"abcd"],
        (ACCESS, PSN),
        "access",
    ),
    "beyond the region": (lambda q: [bth(READ, q.qpn) + reth(q.addr, q.rkey, 8193)], (ACCESS, PSN), "access"),
    "around the end of addresses": (
        lambda q: [bth(READ, q.qpn) + reth((1 << 64) - 8, q.rkey, 64)],
        (ACCESS, PSN),
        "access",
    ),
    "an atomic, which the queue pair does not offer": (
        lambda q: [bth(20, q.qpn) + struct.pack(">QIQQ", q.addr, q.rkey, 1, 0)],
        (INVALID, PSN),
        "invalid",
    ),
}
LONG = {"invalid": "hw_counters/resp_remote_invalid_request", "access": "hw_counters/resp_remote_access_errors"}


class Target:
    """A connection of the program on r1."""

    def __init__(self, said, number):
        self.qpn, self.number = said["qpn"][number], number
        self.ud, self.addr, self.rkey = said["ud"], said["addr"], said["rkey"]


class Stage:
    def __init__(self, fabric, program):
        self.fabric = fabric.up(f"host r1 roce {R1}\nhost r3 roce {R3}\n")
        self.peer, self.stranger = Peer(PEER, R1), Peer(STRANGER, R1)
        self.program = fabric.start("r1", "/usr/bin/python3", program, PEER, str(len(ROWS) + 8))
        said = json.loads(wait_until(lambda: [x for x in self.program.output.splitlines() if x[:1] == "{"], 20)[0])
        self.targets = iter([Target(said, i) for i in range(len(said["qpn"]))])

    def counter(self, name):
        return int(self.fabric.run("r1", "cat", f"/sys/class/infiniband/rxe0/ports/1/{LONG.get(name, name)}"))

    def still_works(self, q, psn=PSN, held=0):
        """The next valid packet is acknowledged, with @held earlier ones, and there was no response before."""
        self.peer.send(bth(SEND_ONLY, q.qpn, psn) + b"good")
        assert self.peer.answer() == (RC_ACK, 0x100 + q.number, psn + held, ACK)


@pytest.fixture(scope="module")
def stage(muslin_make_fabric, program):
    fabric = muslin_make_fabric("roce-hostile")
    yield Stage(fabric, program("roce_target.py"))
    fabric.down()


@pytest.mark.parametrize("name", ROWS)
def test_row(stage, name):
    make, answer, counter = ROWS[name]
    q = next(stage.targets)
    before = stage.counter(counter)
    packets = make(q)
    if name == "more READs than agreed":
        stage.peer.train(packets)
    else:
        for p in packets:
            stage.peer.send(p)
    if answer:
        got = stage.peer.answer()
        while name == "more READs than agreed" and got[0] in RESPONSES:
            got = stage.peer.answer()  # the first READ is answered before the next one is rejected
        assert got == (RC_ACK, 0x100 + q.number, answer[1], answer[0])
    if name == "replayed":
        stage.peer.send(packets[0])
        assert stage.peer.answer() == (RC_ACK, 0x100 + q.number, PSN, ACK)
    if counter not in LONG:
        stage.still_works(q, PSN + (name in ("right", "replayed")), held=int(name == "reordered"))
    assert stage.counter(counter) > before


@pytest.mark.parametrize("length", [*range(0, 16), 17, 18, 19, 21])
def test_truncated(stage, length):
    """Only the first bytes of a valid packet."""

    def counted():
        return stage.counter("counters/roce_malformed") + stage.counter("counters/roce_icrc_errors")

    before = counted()
    packet = bth(SEND_ONLY, 0xABCDEF) + b"abcdefgh"
    stage.peer.raw(stage.peer.sealed(packet)[:length])
    wait_until(lambda: counted() > before, 20, "the count")


def test_wrong_icrc(stage):
    """Each bit of the ICRC inverted, and then the valid packet."""
    q = next(stage.targets)
    before = stage.counter("counters/roce_icrc_errors")
    for bit in range(8):
        stage.peer.send(bth(SEND_ONLY, q.qpn) + b"abcd", damage=1 << bit)
    stage.still_works(q)
    assert stage.counter("counters/roce_icrc_errors") == before + 8


def test_spoofed(stage):
    """Valid except for an address that is not the peer's: requests, ACKs and notifications are ignored."""
    q = next(stage.targets)
    before = stage.counter("hw_counters/rx_wrong_qp")
    for opcode, rest in ((SEND_ONLY, b"evil"), (RC_ACK, b"\x62\0\0\0"), (CNP, bytes(16))):
        stage.stranger.send(bth(opcode, q.qpn) + rest)
    stage.still_works(q)
    assert stage.counter("hw_counters/rx_wrong_qp") == before + 3


def test_flood(stage):
    """Tens of thousands of invalid packets use no memory, and a connection between others works meanwhile."""
    rng = random.Random(1)
    q, idle = next(stage.targets), next(stage.targets)
    pid = stage.fabric.daemon_pid

    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])

    before = resident()
    srv = stage.fabric.start("r3", "rping", "-s", "-a", R3, "-C", "200")
    client = stage.fabric.start("r1", "sh", "-c", f"until rping -c -a {R3} -v -C 200; do sleep 0.1; done")
    kinds = [
        lambda: rng.randbytes(rng.randrange(200)),
        lambda: bth(rng.randrange(256), rng.randrange(1 << 24), rng.randrange(1 << 24)) + rng.randbytes(64),
        lambda: bth(SEND_ONLY, q.qpn, PSN + 1 + rng.randrange(1000)) + bytes(MTU),
        lambda: bth(RC_ACK, q.qpn, rng.randrange(1 << 24)) + b"\x1f\0\0\0",
        lambda: bth(READ, rng.randrange(1 << 24), PSN) + reth(q.addr, q.rkey, 1 << 30),
    ]
    for i in range(30000):
        stage.peer.send(rng.choice(kinds)()) if i % 3 else stage.stranger.send(rng.choice(kinds)())
    client.wait(60)
    srv.wait(60, status=None)
    assert client.output.count("ping data") == 200
    assert resident() < before + 16 * 1024  # KiB
    stage.peer.sock.settimeout(0.5)

    def answered():
        """It may be lost as others were; responses to the flood precede its own."""
        stage.peer.send(bth(SEND_ONLY, idle.qpn) + b"good")
        with contextlib.suppress(TimeoutError):
            while stage.peer.answer() != (RC_ACK, 0x100 + idle.number, PSN, ACK):
                pass
            return True

    wait_until(answered, 20, "an answer")
