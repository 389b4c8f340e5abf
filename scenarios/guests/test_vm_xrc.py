# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
XRC (IBTA annex A14) between two guests with unmodified packages, by ibverbs-utils, perftest and rdmacm-utils:

    h1 (guest a: connectx)    h5 (guest b: connectx)
        leaf1 ----------+------------ leaf2
"""

import json
import re
import shutil

import pytest
from endpoint import Endpoint, pair
from test_pyverbs import RUNNER, unpack
from test_vm_pyverbs import DEVICE, MOUNTS, SHARE, python

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

SEND_FIRST, SEND_MIDDLE, SEND_LAST, WRITE_ONLY, ACKNOWLEDGE = 0xA0, 0xA1, 0xA2, 0xAA, 0xB1
PYVERBS = ["xrc", "query_rt_values", "timestamp_free_running_rc", "timestamp_real_time_rc"]  # parts of tests' names
SENDS = {SEND_FIRST, SEND_MIDDLE, SEND_LAST}
PERFTESTS = [
    "ib_send_bw -s 65536",
    "ib_send_lat",
    "ib_write_bw -s 65536",
    "ib_read_lat",
    "ib_atomic_bw -A FETCH_AND_ADD",
]


@pytest.fixture(scope="module")
def guests(shared_fabric, connectx):
    machine = [f"--qemu-arg={word}" for word in f"{SHARE} {DEVICE}".split()]
    vms = [shared_fabric.vm("h1", *connectx, *machine), shared_fabric.vm("h5", *connectx)]
    yield [vm.wait_ib0() for vm in vms]
    for vm in vms:
        vm.stop()


def both(shared_fabric, guests, tool):
    """Runs @tool in guest b as the server, and in guest a as its client; they exchange their parameters over IPoIB."""
    a, b = guests
    return pair(Endpoint(shared_fabric, "h5", b), tool, Endpoint(shared_fabric, "h1", a), f"{tool} 10.0.0.5")


def test_xsrq_pingpong(shared_fabric, guests):
    for out in both(shared_fabric, guests, "ibv_xsrq_pingpong -n 100"):
        assert "success" in out


@pytest.mark.parametrize("tool", PERFTESTS)
def test_perftest(shared_fabric, guests, tool):
    out, _ = both(shared_fabric, guests, f"{tool} -c XRC -n 200")
    assert re.search(r"^ *\d+ +200 ", out, re.M)


def test_loss(shared_fabric, guests):
    """A lost request, and a lost ACK."""
    lost = [shared_fabric.fault("h5", "drop", opcode=name, nth=20) for name in ("XRC_SEND_MIDDLE", "XRC_ACK")]
    for out in both(shared_fabric, guests, "ibv_xsrq_pingpong -n 100 -s 5000"):
        assert "success" in out
    assert [fault.hits for fault in lost] == [1, 1]
    shared_fabric.clear()


def test_connection_manager(shared_fabric, guests):
    """The initiator and the target of each side are connected by a REQ each (A14, 12.6)."""
    a, b = guests
    server, client = Endpoint(shared_fabric, "h5", b), Endpoint(shared_fabric, "h1", a)
    for out in pair(server, "rdma_xserver -c x", client, "rdma_xclient -c x -s 10.0.0.5"):
        assert re.search(r"rdma_x(server|client): end 0", out), out


def test_packets(shared_fabric, guests):
    """A SEND names the SRQ of the other side after its BTH. tshark supports the opcodes, but no XRCETH."""
    with shared_fabric.trace("h1") as trace:
        out, _ = both(shared_fabric, guests, "ibv_xsrq_pingpong -n 10 -s 5000")
        both(shared_fabric, guests, "ib_write_lat -c XRC -n 10 -s 64")
    lid = {side: int(got, 16) for side, got in re.findall(r"(local|remote): LID (\w+)", out)}
    srqn = {side: int(got, 16) for side, got in re.findall(r"(local|remote): .*SRQN (\w+)", out)}
    fields = ("infiniband.bth.opcode", "infiniband.lrh.slid", "infiniband.vendor")
    argv = ["tshark", "-r", trace.path, "-Y", "infiniband.bth.opcode >= 0xa0", "-T", "fields"]
    shown = shared_fabric._start([*argv, *(w for f in fields for w in ("-e", f))]).wait(60)
    rows = [line.split("\t") for line in shown.splitlines() if line.count("\t") == len(fields) - 1]
    sends = [row for row in rows if int(row[0]) in SENDS]
    assert {int(row[0]) for row in rows} >= {SEND_FIRST, SEND_MIDDLE, SEND_LAST, WRITE_ONLY, ACKNOWLEDGE}
    for side, peer in (("local", "remote"), ("remote", "local")):
        named = {int(row[2].split(",")[0][:8], 16) for row in sends if int(row[1]) == lid[side]}
        assert named == {srqn[peer]}


def test_pyverbs(shared_fabric, guests):
    """Its tests of XRC, and of the adapter's clock."""
    vm, folder = guests[0], shared_fabric.folder
    vm.run(MOUNTS)
    unpack(folder)
    shutil.copy(RUNNER, folder)
    names = " ".join(f"-k {name}" for name in PYVERBS)
    suite = f"{folder}/{RUNNER.name} {folder}/tests /mnt/result.json 10.0.0.1 -v --dev mlx5_0 {names}"
    out = python(vm, suite, timeout=300, status=None)
    status, text = vm.call("cat /machine/mnt/result.json")
    assert status == 0, out[-6000:]
    report = json.loads(text)
    meant = {test for test in report["tests"] if any(name in test for name in PYVERBS)}
    assert report["failed"] == {} and f"Ran {len(meant)} tests" in out
    assert {why for why in report["skipped"].values() if "ODP" not in why} == set()
    assert len(meant - report["skipped"].keys()) >= 8
