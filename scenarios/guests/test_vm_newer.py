# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest with the newest kernel on the newest QEMU of the backports beside one with the distribution's own: parts of the
driver, its users and the device that depend on the versions. All the other scenarios run with --muslin-kernel newest
and --muslin-qemu newest. Testing and unstable have no backports: both guests are the same there.

    h1 (guest a: the newest)             h5 (guest b: the distribution's)
        leaf1 ------------ spines ------------ leaf2
"""

import re

import endpoint
import pytest
from endpoint import DRIVERS
from muslin import wait_until

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def pair(shared_fabric, model):
    """A ConnectX takes the newest QEMU itself, since the backports may have none with vfio-user."""
    newest = ["--kernel", "newest", *([] if model == "connectx" else ["--qemu", "newest"])]
    vms = [shared_fabric.vm(host, "--model", model, *words) for host, words in (("h1", newest), ("h5", []))]
    for vm in vms:
        vm.wait_ib0()
    yield vms
    for vm in vms:
        vm.stop()


def test_ports_and_echoes(pair):
    a, b = pair
    newest, own = ([int(n) for n in re.findall(r"\d+", vm.run("uname -r"))] for vm in pair)
    assert newest >= own
    assert "State: Active" in a.run(f"ibstat {a.device} 1")
    a.wait("ping -c 1 -W 1 10.0.0.5", what="an echo")
    a.ping("10.0.0.5", size=4000)
    b.wait("ping -c 1 -W 1 fd00::1", what="an echo")


def test_connections_of_both(pair):
    """Verbs of a user, over the connection managers of both kernels, in both directions."""
    endpoint.rping_both_ways(*pair)


def test_driver_is_unloaded_and_loaded(pair):
    a, _ = pair
    driver = DRIVERS[a.model]
    a.run(driver.unload)
    assert a.call(f"[ -e /sys/class/infiniband/{a.device} ]")[0]
    a.run(f"{driver.load}; ip addr replace 10.0.0.1/24 dev ib0; ip link set ib0 up")
    a.wait_ib0().wait("ping -c 1 -W 1 10.0.0.5", what="an echo")


def sums(a, b):
    """Checksums of the original file, of the file at the server, and of the file read again by the client."""
    a.run("sync; echo 3 >/proc/sys/vm/drop_caches")
    return {vm.run(f"md5sum <{path}", timeout=120) for vm, path in ((a, "/tmp/f"), (b, "/export/f"), (a, "/mnt/f"))}


@pytest.fixture(scope="module")
def mounted(pair):
    a, b = pair
    assert "rdma 20049" in b.run("nfs-server")
    assert "proto=rdma" in a.run("nfs-mount 10.0.0.5")
    a.run("head -c 1000000 /dev/urandom >/tmp/f && cp /tmp/f /mnt/f")
    yield pair
    a.run("umount /mnt")


def test_nfs(mounted):
    """The kernel's own verbs: fast registration, remote invalidation, reads and writes by the server."""
    assert len(sums(*mounted)) == 1


def echoes(vm):
    return int(vm.run("grep -c 'bytes from' /tmp/echoes.log", status=None))


def start_programs(fabric, a, b):
    """Starts one program on each guest that sends and polls for completions, and one that waits for events."""
    b.start("exec ibv_rc_pingpong -n 1000000000", "pingpong")
    b.wait("netstat -tln | grep -q :18515", what="the server")
    a.start("exec ibv_rc_pingpong -n 1000000000 10.0.0.5", "pingpong")
    a.start("exec ibv_asyncwatch", "watch")
    a.wait("grep -q async /tmp/watch.log", what="ibv_asyncwatch")
    before = int(fabric.port("h1")["counters"]["port_xmit_packets"])
    wait_until(lambda: int(fabric.port("h1")["counters"]["port_xmit_packets"]) > before + 200, 20, "traffic", 0.2)


@pytest.mark.model("muslin", reason="QEMU's vfio-user does not connect again")
def test_daemon_exits(shared_fabric, mounted):
    """
    The daemon dies, and another one with the same topology is started: QEMU reconnects, the drivers find their objects
    unknown, and register new devices. Programs get DEVICE_FATAL; ping and the mount continue.
    """
    a, b = mounted
    a.start("exec /usr/bin/ping -i 0.2 10.0.0.5", "echoes")
    a.wait("[ $(grep -c 'bytes from' /tmp/echoes.log) -gt 3 ]", what="echoes")
    start_programs(shared_fabric, a, b)
    endpoint.replace_daemon(shared_fabric)
    # From 7.2 on, at the latest, ib_mad waits for the response to a DREQ whose send failed: two minutes with its
    # retries.
    a.wait("grep -q IBV_EVENT_DEVICE_FATAL /tmp/watch.log", 150, what="the event")
    a.run("killall -q ibv_asyncwatch", status=None)
    for vm in mounted:
        vm.wait("! pidof ibv_rc_pingpong", what="the end of a program whose requests are flushed")
        assert "Work Request Flushed Error" in vm.log("pingpong")
    before = echoes(a)
    wait_until(lambda: echoes(a) > before + 5, 60, "echoes", 0.3)
    assert len(sums(a, b)) == 1
    a.run("killall -INT ping")
    server = b.start("ibv_rc_pingpong -e", "pingpong")
    a.wait("ibv_rc_pingpong -e 10.0.0.5", what="a connection with interrupts")
    server.wait(20)
