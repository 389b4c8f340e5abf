# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Options of `muslin trace`: bytes of a packet, selected packets, and the number of files; its end, with a slow reader.

    h1 --- leaf1 --- h2     traced at h2
"""

import os
import re
import select
import signal
import struct

import pytest
from muslin import free_port, wait_until

SHB, IDB, EPB = 0x0A0D0D0A, 1, 6
ERF = 16  # bytes of the pseudo-header


def blocks(path):
    data = path.read_bytes()
    at, found = 0, []
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size % 4 == 0 and struct.unpack_from("<I", data, at + size - 4) == (size,)
        found.append((kind, data[at : at + size]))
        at += size
    return found


def packets(path):
    """(bytes kept, bytes on the link, opcode) of each."""
    for kind, b in blocks(path):
        if kind == EPB:
            kept, length = struct.unpack_from("<II", b, 20)
            yield kept - ERF, length - ERF, b[28 + ERF + 8]


@pytest.fixture
def traced(shared_fabric):
    """traced(options): the packets of 200 RDMA WRITEs of 16 KiB to h2; returns the command's output."""

    def run(path, *options, status=0):
        process = shared_fabric.start_muslin("trace", "-w", path, "h2", *options)
        if status:
            return process.wait(20, status=status)
        first = path if "-C" not in options else path.with_suffix(".0.pcapng")
        wait_until(first.exists, 10, "the capture")
        args = ["ib_write_bw", "-p", free_port(), "-s", "16384", "-n", "200"]
        try:
            shared_fabric.pair(("h2", *args), ("h1", *args, shared_fabric.ip("h2")))
        finally:
            process.popen.terminate()
        return process.wait(20)

    return run


def test_snap_length(traced, shared_fabric):
    path = shared_fabric.folder / "snap.pcapng"
    assert "dropped" not in traced(path, "-s", "40")
    found = list(packets(path))
    assert len(found) >= 800 and max(kept for kept, _, _ in found) == 40 and max(n for _, n, _ in found) > 4096
    assert [struct.unpack_from("<I", b, 12)[0] for kind, b in blocks(path) if kind == IDB] == [40 + ERF]


def test_filter(traced, shared_fabric):
    path = shared_fabric.folder / "filter.pcapng"
    traced(path, "opcode=ack", "pcap=len < 100")
    assert {op for _, _, op in packets(path)} == {0x11}
    assert "opcode=nonsense" in traced(path, "opcode=nonsense", status=1)
    assert "usage" in traced(path, "-W", "2", status=2)


def test_duration(shared_fabric):
    """It ends by itself; a capture without a packet has the headers."""
    path = shared_fabric.folder / "duration.pcapng"
    shared_fabric.command("trace", "-w", path, "--duration", "0.2", "h2", "opcode=atomic", timeout=10)
    assert [kind for kind, _ in blocks(path)] == [SHB, IDB]


def test_ring_of_files(traced, shared_fabric):
    path = shared_fabric.folder / "ring.pcapng"
    traced(path, "-C", "1", "-W", "2")
    files = sorted(path.parent.glob("ring.*.pcapng"))
    assert len(files) == 2 and [f.name for f in files] != ["ring.0.pcapng", "ring.1.pcapng"]
    for f in files:
        kinds = [kind for kind, _ in blocks(f)]
        assert kinds[:2] == [SHB, IDB] and set(kinds[2:]) == {EPB} and f.stat().st_size <= 1000000


@pytest.fixture
def slow(shared_fabric):
    """A trace of the requests to h2 to a pipe that is not read: its process, and the pipe."""
    path = shared_fabric.folder / "slow.fifo"
    os.mkfifo(path)
    path.chmod(0o666)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    process = shared_fabric.start_muslin("trace", "-w", path, "h2", "opcode=write")
    wait_until(lambda: select.select([reader], [], [], 0)[0], 10, "the capture")
    os.set_blocking(reader, True)
    yield process, reader
    os.close(reader)
    path.unlink()


def test_a_slow_reader_gets_all_before_the_end(shared_fabric, slow):
    """Much more than the pipes take; another trace has the same packets."""
    process, reader = slow
    args = ["ib_write_bw", "-p", free_port(), "-s", "16384", "-n", "400"]
    with shared_fabric.trace("h2", "-s", "40", "opcode=write") as other:
        shared_fabric.pair(("h2", *args), ("h1", *args, shared_fabric.ip("h2")))
    process.signal(2)
    while os.read(reader, 1 << 20):
        pass
    out = process.wait(20)
    assert "dropped" not in out and int(re.search(r"(\d+) packets", out)[1]) == len(list(packets(other.path)))


def test_a_trace_ends_before_the_traffic(shared_fabric, slow):
    """Its reader is slower than the traffic, so that there is always more to write."""
    process, reader = slow
    args = ["ib_write_bw", "-p", free_port(), "-s", "16384", "-D", "200"]
    h1 = shared_fabric.host("h1")
    before = h1.counters["port_xmit_packets"]
    ends = shared_fabric.start_pair(
        ("h2", *args), ("h1", *args, shared_fabric.ip("h2")), lambda: h1.counters["port_xmit_packets"] > before + 2000
    )
    for _ in range(1 << 15):
        os.read(reader, 64)
    process.signal(2)
    while os.read(reader, 64):
        pass
    process.wait(20)
    assert all(end.running() for end in ends)
    for end in ends:
        end.kill()


@pytest.mark.parametrize("how", ("killed", "down"))
def test_the_end_of_the_daemon_is_an_error(new_fabric, how):
    """The packets of before are in the file."""
    new_fabric.up("leafs 1 hosts 2")
    path = new_fabric.folder / "end.pcapng"
    trace = new_fabric.start_muslin("trace", "-w", path, "h2")
    top = new_fabric.start_muslin("top", "--interval", "0.05")
    wait_until(path.exists, 10, "the capture")
    if how == "killed":
        os.kill(new_fabric.daemon_pid, signal.SIGKILL)
    else:
        new_fabric.command("down")
    out = trace.wait(20, status=1)
    assert re.search(r"\d+ packets in .*end.pcapng", out) and "the daemon has closed the connection" in out
    assert [kind for kind, _ in blocks(path)][:2] == [SHB, IDB]
    top.wait(20, status=1)
