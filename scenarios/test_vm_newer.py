# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest with a newer kernel than the distribution's own beside one with that: what depends on the kernel's version in
the driver, and in its users. All the other scenarios run on such a kernel with --muslin-kernel 6.12.

    h1 (guest a: Linux 6.12)    h5 (guest b: the distribution's)
        leaf1 -------- spines -------- leaf2
"""

import pytest

pytestmark = pytest.mark.guest

KERNEL = "6.12"


@pytest.fixture(scope="module")
def pair(shared_fabric):
    vms = [shared_fabric.vm("h1", "--kernel", KERNEL), shared_fabric.vm("h5")]
    for vm in vms:
        vm.wait_ib0()
    yield vms
    for vm in vms:
        vm.stop()


def test_ports_and_echoes(pair):
    a, b = pair
    assert a.run("uname -r").startswith(KERNEL + ".")
    assert "State: Active" in a.run("ibstat muslin0 1")
    a.ping("10.0.0.5", size=4000)
    b.wait("ping -c 1 -W 1 fd00::1", what="an echo")


def test_connections_of_both(pair):
    """Verbs of a user, over the connection managers of both kernels, in both directions."""
    a, b = pair
    for server, client, address in ((b, a, "10.0.0.5"), (a, b, "10.0.0.1")):
        server.start(f"rping -s -V -v -C 5 -S 20000 -a {address}", "rping")
        client.wait(f"rping -c -V -v -C 5 -S 20000 -a {address}")
        server.wait("! pidof rping", what="the server's end")
        assert server.log("rping").count("server ping data: rdma-ping-") == 5


def test_nfs(pair):
    """The kernel's own verbs: fast registration, remote invalidation, reads and writes by the server."""
    a, b = pair
    assert "rdma 20049" in b.run("nfs-server")
    assert "proto=rdma" in a.run("nfs-mount 10.0.0.5")
    a.run("head -c 5000000 /dev/urandom >/tmp/f && cp /tmp/f /mnt/f && sync && echo 3 >/proc/sys/vm/drop_caches")
    sums = {vm.run(f"sha256sum <{path}") for vm, path in ((a, "/tmp/f"), (b, "/export/f"), (a, "/mnt/f"))}
    a.run("umount /mnt")
    assert len(sums) == 1


def test_driver_goes_and_comes(pair):
    a, _ = pair
    a.run("rmmod muslin")
    assert a.call("[ -e /sys/class/infiniband/muslin0 ]")[0]
    a.run("modprobe muslin; ip addr replace 10.0.0.1/24 dev ib0; ip link set ib0 up")
    a.wait_ib0().wait("ping -c 1 -W 1 10.0.0.5", what="an echo")
