# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
An arm64 guest and one of the machine's own architecture: the driver's rings and registers with weakly ordered memory,
and the kernel users of both. On a machine other than arm64 the guest is emulated.

    h1 (guest a: arm64)                  h5 (guest b: the machine's own)
        leaf1 ------------ spines ------------ leaf2

MUSLIN_ARM64_KERNEL=arm64-16k in the environment: with pages of 16 KiB, for example.
"""

import os
import shutil

import endpoint
import pytest

pytestmark = [
    pytest.mark.model("muslin", reason="its subject is our driver with weakly ordered memory"),
    pytest.mark.guest,
    pytest.mark.skipif(not shutil.which("qemu-system-aarch64"), reason="no qemu-system-aarch64 here: ci/deps test"),
    pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-gcc"), reason="no compiler for arm64 here: ci/deps test"),
]


@pytest.fixture(scope="module")
def pair(shared_fabric):
    which = ["--kernel", os.environ["MUSLIN_ARM64_KERNEL"]] if "MUSLIN_ARM64_KERNEL" in os.environ else []
    vms = [shared_fabric.vm("h1", "--arch", "arm64", "--cpus", "2", *which, timeout=500), shared_fabric.vm("h5")]
    for vm in vms:
        vm.wait_ib0(timeout=60)
    yield vms
    for vm in vms:
        vm.stop()


def test_ports_and_echoes(pair):
    a, b = pair
    assert a.run("uname -m") == "aarch64\n"
    assert "State: Active" in a.run(f"ibstat {a.device} 1")
    a.wait("ping -c 1 -W 1 10.0.0.5", what="an echo")
    a.ping("10.0.0.5", size=4000)
    b.ping("10.0.0.1", size=4000)


def test_rping(pair):
    """Verbs of a user, over the connection managers of both kernels, in both directions."""
    endpoint.rping_both_ways(*pair)


def test_many_requests(pair):
    """Thousands of entries in the work and completion queues, polled and by interrupts, in both directions."""
    a, b = pair
    for server, client, address in ((b, a, "10.0.0.5"), (a, b, "10.0.0.1")):
        for how in ("-c", "-c -e"):
            what = f"ibv_rc_pingpong -n 1000 {how}"
            said, _ = endpoint.pair(server, what, client, f"{what} {address}")
            assert "1000 iters in" in said


def test_nfs(pair):
    """The kernel's own verbs: fast registration, remote invalidation, reads and writes by the server."""
    a, b = pair
    assert "rdma 20049" in b.run("nfs-server")
    assert "proto=rdma" in a.run("nfs-mount 10.0.0.5", timeout=120)
    a.run("head -c 2000000 /dev/urandom >/tmp/f && cp /tmp/f /mnt/f", timeout=120)
    a.run("sync; echo 3 >/proc/sys/vm/drop_caches")
    sums = {vm.run(f"md5sum <{path}", timeout=120) for vm, path in ((a, "/tmp/f"), (b, "/export/f"), (a, "/mnt/f"))}
    assert len(sums) == 1
    a.run("umount /mnt")
