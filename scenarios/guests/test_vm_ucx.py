# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
UCX in two guests of the distribution alone, by its own mlx5 transports: they write requests into the adapter's queues
and ring its doorbells themselves, without libibverbs. The guests see this machine's files, and so its UCX.

    h1 (guest a: connectx)    h5 (guest b: connectx)
        leaf1 ----------+------------ leaf2
"""

import re

import pytest
import ucx
from endpoint import Endpoint, pair
from muslin import free_port
from test_vm_pyverbs import DEVICE, MOUNTS, SHARE

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx"), ucx.HAS_VERBS]

COUNT = 200
# Of the transport layer: what is measured, how data is handed over, bytes of a message.
TRANSPORTS = [
    "rc_mlx5 am_lat short 8",
    "rc_mlx5 am_bw bcopy 4000",
    "rc_mlx5 am_bw zcopy 4096",
    "rc_mlx5 put_lat short 8",
    "rc_mlx5 put_bw zcopy 65536",
    "rc_mlx5 get bcopy 4096",
    "rc_mlx5 get zcopy 65536",
    "rc_mlx5 add_lat short 8",
    "rc_mlx5 fadd short 8",
    "rc_mlx5 cswap short 8",
    "ud_mlx5 am_lat short 8",
    "ud_mlx5 am_bw bcopy 1500",
    "ud_mlx5 am_bw zcopy 1500",
]
ATOMICS = {"add_lat", "fadd", "cswap"}
WRONG_OFFSET = (1, 16)  # since uct_ib_verbs_mkey_pack() gives a key for atomic operations without DEVX too
# Of the protocol layer, above each: messages by tags, remote memory, streams.
PROTOCOLS = ["tag_lat 8", "tag_bw 65536", "ucp_put_bw 65536", "ucp_get 65536", "stream_bw 4096"]


@pytest.fixture(scope="module")
def guests(shared_fabric, connectx):
    machine = [f"--qemu-arg={word}" for word in f"{SHARE} {DEVICE}".split()]
    vms = [shared_fabric.vm(host, *connectx, *machine) for host in ("h1", "h5")]
    for vm in vms:
        vm.wait_ib0()
        vm.run(MOUNTS)
    yield vms
    for vm in vms:
        vm.stop()


def perftest(shared_fabric, guests, options, settings=""):
    """
    What the client prints of a run in which guest b serves. If the tool is built with MPI, it does not use that when
    its input is a terminal.
    """
    a, b = guests
    tool = f"UCX_NET_DEVICES=mlx5_0:1 {settings} exec ucx_perftest -p {free_port()} {options} -n {COUNT} -w 10"
    server, client = (
        f"chroot /machine env SHELL=/bin/sh script -qec '{tool} {peer}' /dev/null" for peer in ("", "10.0.0.5")
    )
    out, _ = pair(Endpoint(shared_fabric, "h5", b), server, Endpoint(shared_fabric, "h1", a), client)
    assert re.search(rf"^Final:\s+{COUNT}\s", out, re.M), out


def test_offered(guests):
    """The library finds the transports by itself."""
    out = guests[0].run("chroot /machine ucx_info -d")
    offered = set(re.findall(r"Transport: (\w+)\n#\s+Device: mlx5_0:1", out))
    assert {"rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5"} <= offered


@pytest.fixture(scope="module")
def version(guests):
    found = re.search(r"[Vv]ersion:? (\d+)\.(\d+)", guests[0].run("chroot /machine ucx_info -v"))
    return tuple(map(int, found.groups()))


@pytest.mark.parametrize("what", TRANSPORTS)
def test_transport(shared_fabric, guests, version, what):
    transport, test, layout, size = what.split()
    if test in ATOMICS and version >= WRONG_OFFSET:
        pytest.xfail("UCX adds an offset to the address of an atomic operation, which only its DEVX memory keys have")
    perftest(shared_fabric, guests, f"-d mlx5_0:1 -x {transport} -t {test} -D {layout} -s {size}")


@pytest.mark.parametrize("transport", ["rc_x", "ud_x"])
@pytest.mark.parametrize("what", PROTOCOLS)
def test_protocol(shared_fabric, guests, transport, what):
    """rc_x is rc_mlx5, with ud_mlx5 to find the peer; ud_x is ud_mlx5."""
    test, size = what.split()
    perftest(shared_fabric, guests, f"-t {test} -s {size}", f"UCX_TLS={transport}")
