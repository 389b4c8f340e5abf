# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""perftest between h1 and h5 on different leafs: every operation, transport and kind of completion."""

import re

import pytest
from muslin import free_port

# perftest ends the row after its last exchange with the peer, of which it complains in it when the peer was faster. It
# keeps the square of each latency's deviation, in us, in an int: beyond 46 ms the standard deviation is no number.
RESULT = re.compile(r"^\s*\d+\s+\d+(\s+[\d.]+|\s+-nan)+\s*($|ethernet_read_keys: Couldn't read)", re.M)


def perftest(fabric, tool, *args, iters="200"):
    """Runs server and client; returns the rows of figures that the client printed."""
    common = [tool, "-p", free_port(), "-n", iters, *args]
    _, out = fabric.pair(("h1", *common), ("h5", *common, fabric.ip("h1")), timeout=120)
    rows = RESULT.findall(out)
    assert RESULT.search(out), out
    assert "Failed" not in out and "Completion with error" not in out
    return out, rows


@pytest.mark.parametrize("conn", ["RC", "UC", "UD"])
@pytest.mark.parametrize("kind", ["bw", "lat"])
def test_send(shared_fabric, kind, conn):
    perftest(shared_fabric, f"ib_send_{kind}", "-c", conn, "-s", "1024")


@pytest.mark.parametrize("conn", ["RC", "UC"])
@pytest.mark.parametrize("kind", ["bw", "lat"])
def test_write(shared_fabric, kind, conn):
    perftest(shared_fabric, f"ib_write_{kind}", "-c", conn, "-s", "4096")


@pytest.mark.parametrize("kind", ["bw", "lat"])
def test_read(shared_fabric, kind):
    perftest(shared_fabric, f"ib_read_{kind}", "-s", "8192")


@pytest.mark.parametrize("op", ["FETCH_AND_ADD", "CMP_AND_SWAP"])
@pytest.mark.parametrize("kind", ["bw", "lat"])
def test_atomic(shared_fabric, kind, op):
    perftest(shared_fabric, f"ib_atomic_{kind}", "-A", op)


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw", "ib_read_bw"])
def test_all_sizes(shared_fabric, tool):
    out, _ = perftest(shared_fabric, tool, "-a", iters="20")
    assert len(re.findall(r"^\s*\d+\s+20\s", out, re.M)) >= 23


@pytest.mark.parametrize("tool", ["ib_send_lat", "ib_write_lat", "ib_write_bw"])
def test_inline(shared_fabric, tool):
    """Requests of 1,024 bytes: only the first part of each is written."""
    perftest(shared_fabric, tool, "-I", "480", "-s", "8")


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw"])
def test_both_directions(shared_fabric, tool):
    perftest(shared_fabric, tool, "-b", "-s", "65536")


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_send_lat", "ib_read_bw"])
def test_events(shared_fabric, tool):
    perftest(shared_fabric, tool, "-e", "-s", "1024")


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw", "ib_read_lat", "ib_atomic_bw"])
def test_rdma_cm(shared_fabric, tool):
    perftest(shared_fabric, tool, "-R", *([] if "atomic" in tool else ["-s", "1024"]))


def test_rdma_cm_datagrams(shared_fabric):
    perftest(shared_fabric, "ib_send_lat", "-R", "-c", "UD", "-s", "1024")


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw", "ib_read_lat"])
def test_on_demand_paging(shared_fabric, tool):
    perftest(shared_fabric, tool, "--odp", "-s", "65536")
