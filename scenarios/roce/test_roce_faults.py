# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
RoCEv2 over UDP on a bad network: packets that are lost, duplicated, delayed, reordered, corrupted, truncated or
forged. Each kind increments a counter of its own, the programs' data is correct or they get an error, and a connection
beside it is not affected.

    daemon a: r1 127.a.b.61 ----- faults ----- r2 127.a.b.62 :daemon b
              r3 127.a.b.63 ------------------ r2
"""

import random
import re

import pytest
from forge import Peer, bth
from muslin import free_port, pair, wait_until
from test_roce import perftest, roce_ports

HW = "../hw_counters/"
SEND_ONLY, RC_ACK = 4, 17

# name: (the fault at r1, the host that counts its effect, and the counter). BTH: opcode 0, P_Key 2-3, QPN 5-7, PSN 9-11
ROWS = {
    "lost": ("drop prob=2%", "r1", "roce_faults"),
    "repeated": ("duplicate every=5 copies=2", "r2", HW + "duplicate_request"),
    "late": ("delay every=9 time=300us jitter=2ms", "r1", "roce_faults"),
    "out of order": ("reorder every=7 depth=3", "r2", HW + "out_of_seq_request"),
    "damaged payload": ("corrupt what=payload every=11", "r2", "roce_icrc_errors"),
    "damaged header": ("corrupt what=header every=11", "r2", "roce_icrc_errors"),
    "wrong ICRC": ("corrupt what=icrc every=11", "r2", "roce_icrc_errors"),
    "truncated": ("truncate bytes=100 every=11", "r2", "roce_icrc_errors"),
    "wrong QPN": ("corrupt what=header offset=6 silent every=11", "r2", HW + "rx_wrong_qp"),
    "wrong P_Key": ("corrupt what=header offset=3 silent every=11", "r2", HW + "rx_pkey_mismatch"),
    "PSN out of window": ("corrupt what=header offset=9 silent opcode=write every=11", "r2", HW + "out_of_seq_request"),
}
# Packets that the receiver has to treat as an error of the peer end the connection.
FATAL = {
    "a packet that is short": (
        "truncate bytes=8 silent opcode=RC_WRITE_MIDDLE nth=5",
        HW + "resp_remote_invalid_request",
    ),
    "a wrong R_Key": (
        "corrupt what=header offset=22 silent opcode=RC_WRITE_FIRST nth=5",
        HW + "resp_remote_access_errors",
    ),
}


@pytest.fixture(scope="module")
def two(muslin_make_fabric, program):
    for two in roce_ports(muslin_make_fabric, "roce-faults", first=60):
        two.integrity = program("integrity.py")
        yield two


class Beside:
    """A connection between r3 and r2 during the block, which checks each byte."""

    def __init__(self, two, server="r3", rounds=15):
        self.two, self.host, self.args = two, server, ["--port", free_port(), "--rounds", rounds]

    def __enter__(self):
        program = ["/usr/bin/python3", self.two.integrity]
        self.server = self.two.a.start(self.host, *program, "serve", *self.args).expect("serving")
        self.client = self.two.b.start("r2", *program, "run", self.two.ip[self.host], *self.args)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            assert "all is where it belongs" in self.client.wait(30)
            self.server.wait(30)


def rping(two, count=60):
    """rping of r2 with r1: each byte of 30000 is checked, in each ping. Returns the number of correct pings."""
    args = ["-a", two.ip["r1"], "-V", "-C", count, "-S", 30000, "-p", free_port()]
    _, out = two.pair(("r1", "rping", "-s", *args), ("r2", "rping", "-c", *args, "-v"), timeout=30)
    return out.count("ping data")


def armed(two, text, **keys):
    action, *words = text.split()
    return two.a.fault("r1", action, *words, **keys)


@pytest.mark.parametrize("name", ROWS)
def test_recovered_from(two, name):
    text, host, counter = ROWS[name]
    before = two.counter(host, counter)
    with Beside(two):
        fault = armed(two, text, dir="out", **({} if "opcode" in text else {"opcode": "rc"}))
        assert rping(two) == 60
        fault.clear()
    assert two.counter(host, counter) > before


def test_what_comes(two):
    """The same for packets that r1 receives: it counts, before and after its faults."""
    names = ("roce_icrc_errors", HW + "duplicate_request")
    before = [two.counter("r1", n) for n in names]
    texts = ("corrupt what=payload every=11", "duplicate every=5", "reorder every=7 depth=2")
    faults = [armed(two, text, dir="in", opcode="rc") for text in texts]
    assert rping(two) == 60
    for f in faults:
        f.clear()
    assert all(two.counter("r1", n) > was for n, was in zip(names, before, strict=True))


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_all_at_once(two, tool):
    """Long messages with all faults together, in both directions."""
    for text in ("reorder prob=1% depth=5", "duplicate prob=1%", "corrupt what=payload prob=1%", "drop prob=1%"):
        armed(two, text, opcode="rc")
    with Beside(two):
        perftest(two, tool, "-s", "65536")
    two.a.clear()


@pytest.mark.parametrize("name", FATAL)
def test_ends_its_connection(two, name):
    """Only this connection ends; the program gets an error."""
    text, counter = FATAL[name]
    before = two.counter("r2", counter)
    with Beside(two):
        fault = armed(two, text, dir="out")
        args = ["-a", two.ip["r1"], "-V", "-C", 60, "-S", 30000, "-p", free_port()]
        server = two.a.start("r1", "rping", "-s", *args)
        said = pair.run(server, lambda: two.b.start("r2", "rping", "-c", *args, "-v"), 30)
        out = server.wait(30, status=None)
        fault.clear()
    assert two.counter("r2", counter) == before + 1
    assert server.popen.returncode, (said, out)


def test_forged(two):
    """
    During WRITEs, READs and SENDs between r2 and r1 an attacker that knows both addresses and QPNs, but not the PSNs,
    sends in the name of each, and another one sends correct numbers from its own address.
    """
    here, there = (Peer(two.ip[a], two.ip[b], 0) for a, b in (("r2", "r1"), ("r1", "r2")))
    stranger = Peer(two.ip["r3"], two.ip["r1"], 0)
    names = [HW + n for n in ("out_of_seq_request", "rx_ooo_discarded", "duplicate_request", "rx_wrong_qp")]
    names += ["roce_icrc_errors", "roce_malformed"]
    before = [two.counter("r1", n) for n in names] + [two.counter("r2", HW + "rx_ghost_acks")]
    rng = random.Random(1)
    with Beside(two, "r1", rounds=40) as beside:

        def numbers(p):
            """The numbers in the program's output."""
            return map(int, wait_until(lambda: re.search(r"QPN (\d+) PSN (\d+)", p.output)).groups())

        (qpn, _), (requester, psn) = numbers(beside.server), numbers(beside.client)

        def forge():
            here.send(bth(SEND_ONLY, qpn, psn + (1 << 22)) + b"evil")
            here.send(bth(SEND_ONLY, qpn, psn - (1 << 22)) + b"evil")
            here.send(bth(SEND_ONLY, 0xABCDEF, psn) + b"evil")
            here.send(bth(SEND_ONLY, qpn, psn) + b"evil", damage=1)
            here.raw(bytes(12))
            here.raw(rng.randbytes(100))
            stranger.send(bth(SEND_ONLY, qpn, psn + 5) + b"evil")
            there.send(bth(RC_ACK, requester, psn + (1 << 22)) + b"\x1f\0\0\0")
            there.send(bth(RC_ACK, requester, psn - 1) + b"\x62\0\0\0")
            return not beside.client.running()

        wait_until(forge, 30, "the end of the program", 0.01)
    after = [two.counter("r1", n) for n in names] + [two.counter("r2", HW + "rx_ghost_acks")]
    assert all(now > was for now, was in zip(after, before, strict=True)), (names, before, after)
