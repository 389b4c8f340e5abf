# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Options of `muslin trace`: bytes of a packet, selected packets, and the number of files.

    h1 --- leaf1 --- h2     traced at h2
"""

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


def test_ring_of_files(traced, shared_fabric):
    path = shared_fabric.folder / "ring.pcapng"
    traced(path, "-C", "1", "-W", "2")
    files = sorted(path.parent.glob("ring.*.pcapng"))
    assert len(files) == 2 and [f.name for f in files] != ["ring.0.pcapng", "ring.1.pcapng"]
    for f in files:
        kinds = [kind for kind, _ in blocks(f)]
        assert kinds[:2] == [SHB, IDB] and set(kinds[2:]) == {EPB} and f.stat().st_size <= 1000000
