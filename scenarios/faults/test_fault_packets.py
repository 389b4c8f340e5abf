# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Stock programs with packets that are lost, duplicated, delayed, reordered or corrupted.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import signal

import pytest
from muslin import free_port, wait_until
from pingpong import outcome

PINGPONG = ["ibv_rc_pingpong", "-p", free_port(), "-n", "500", "-c"]


def pingpong(fabric, *extra):
    """A checked ping-pong from h1 to h5; returns the client's output."""
    args = [*PINGPONG, *extra]
    server, client = fabric.pair(("h1", *args), ("h5", *args, fabric.ip("h1")), timeout=120)
    assert "500 iters" in client and "invalid data" not in server + client, server + client
    return client


@pytest.mark.parametrize(
    "place, action, keys",
    [
        ("h5", "drop", {"prob": "1%", "opcode": "rc"}),
        ("leaf1", "drop", {"every": 150, "opcode": "rc"}),
        ("h1", "drop", {"dir": "in", "opcode": "RC_ACK", "nth": 5}),
        ("h5", "drop", {"dir": "in", "opcode": "RC_SEND_LAST,RC_SEND_ONLY", "nth": 100}),
        ("h5", "duplicate", {"every": 10, "opcode": "rc"}),
        ("h5", "duplicate", {"every": 25, "copies": 5, "opcode": "request"}),
        ("h5", "reorder", {"every": 20, "depth": 2, "opcode": "rc"}),
        ("h5", "delay", {"time": "200us", "jitter": "300us", "opcode": "rc"}),
        ("h5", "rate", {"bps": "200M", "opcode": "rc"}),
        ("h5", "corrupt", {"what": "icrc", "every": 100, "opcode": "rc"}),
        ("h5", "corrupt", {"what": "vcrc", "every": 100, "opcode": "rc"}),
        ("h5", "corrupt", {"what": "payload", "every": 100, "opcode": "request"}),
        ("h5", "corrupt", {"what": "header", "every": 100, "opcode": "rc"}),
        ("h5", "truncate", {"bytes": 100, "every": 100, "opcode": "request"}),
        ("h5", "stall", {"for": "20ms", "nth": 50, "opcode": "rc"}),
    ],
    ids=lambda v: "-".join(map(str, v.values())).replace("RC_", "") if isinstance(v, dict) else v,
)
def test_a_reliable_connection_survives(fabric, place, action, keys):
    """Faults of single packets: a reliable connection delivers every byte once and in order."""
    fault = fabric.fault(place, action, **keys)
    pingpong(fabric)
    assert fault.hits


def test_damage_is_detected_where_the_standard_requires(fabric):
    """
    A wrong ICRC is counted by the transport, a wrong VCRC by the link, a truncated packet as a remote error of the
    port.
    """
    fabric.fault("h5", "corrupt", dir="in", what="icrc", opcode="rc", nth=10)
    fabric.fault("h5", "corrupt", dir="in", what="vcrc", opcode="rc", nth=20)
    fabric.fault("h5", "truncate", dir="in", bytes=8, opcode="request", nth=30)
    pingpong(fabric)
    counters = fabric.port("h5")["counters"]
    assert counters["port_rcv_errors"] == 1
    assert counters["port_rcv_remote_physical_errors"] == 1


def test_silent_damage_reaches_the_program(fabric):
    """Corruption with valid CRCs (in a switch's memory, for example): only the program's own check can detect it."""
    first = {"opcode": "RC_SEND_FIRST", "nth": 1}  # h5 returns what it got: further changed bits could restore it
    fabric.fault("h5", "corrupt", "silent", dir="in", what="payload", offset=0, **first)
    assert "invalid data in page" in "".join(outcome(fabric, *PINGPONG))


def test_retries_exhausted(fabric):
    """No packet reaches h5: the client's send ends with status 12 after its retries."""
    fabric.fault("h5", "drop", dir="in", opcode="rc", after=100)
    said = "".join(outcome(fabric, "ibv_rc_pingpong", "-p", free_port(), "-n", "500"))
    assert "Failed status transport retry counter exceeded (12) for wr_id" in said


def test_the_partition_key_is_removed(fabric):
    """h5's P_Key is removed under traffic: its packets are dropped, and retries are exhausted."""
    fabric.fault("h5", "pkey", index=0, pkey="0x1234", opcode="request", nth=100)
    said = "".join(outcome(fabric, "ibv_rc_pingpong", "-p", free_port(), "-n", "5000"))
    assert "transport retry counter exceeded (12)" in said


def test_what_is_lost_shows_in_a_capture(fabric):
    """A capture at h5 has the packets received, not those dropped on the path: the lost PSN is captured only once."""
    fault = fabric.fault("h5", "drop", dir="in", opcode="RC_SEND_ONLY,RC_SEND_LAST", nth=3)
    pcap = fabric.folder / "h5.pcapng"
    trace = fabric._start([fabric.muslin, "trace", "-w", pcap, "h5"])
    wait_until(pcap.exists, 10, "the capture")
    pingpong(fabric)
    trace.signal(signal.SIGINT)
    trace.wait(20, None)
    assert fault.fired == [3]
    rows = fabric._start(["tshark", "-r", pcap, "-Y", "infiniband.bth.opcode in {2, 4}", "-T", "fields", "-e",
                          "infiniband.lrh.slid", "-e", "infiniband.bth.psn"]).wait(30)
    lid = fabric.port("h1")["lid"]
    psns = [int(r.split()[1]) for r in rows.splitlines() if r.split()[:1] == [str(lid)]]
    lost = (psns[0] + 2 * (psns[1] - psns[0])) % (1 << 24)  # a busy machine retransmits some of the others, too
    assert psns.count(lost) == 1 and len(set(psns)) == 500, psns


def test_a_starved_lane_blocks_its_service_level_alone(fabric):
    """SL 2 is mapped to data VL 2, which the arbitration of h1's port never serves; other SLs are not affected."""
    fault = fabric.fault("h1", "starve", lane=2)
    pingpong(fabric, "-l", "1")
    said = "".join(outcome(fabric, "ibv_rc_pingpong", "-p", free_port(), "-n", "500", "-l", "2"))
    assert "transport retry counter exceeded (12)" in said
    fault.clear()
    pingpong(fabric, "-l", "2")
