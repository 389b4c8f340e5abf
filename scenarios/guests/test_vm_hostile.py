# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests a and b with traffic, and beside them guests that are hostile or die:

    h1 (guest a)  h2 (another one)      h5 (guest b)  h6 (host mode)
        leaf1 ------------ spines ------------ leaf2
"""

import os
import re
import shutil
import signal

import pytest
from endpoint import qemu
from muslin import wait_until

pytestmark = pytest.mark.guest


def packets(fabric, host):
    return int(fabric.port(host)["counters"]["port_xmit_packets"])


def moves(fabric, host):
    before = packets(fabric, host)
    wait_until(lambda: packets(fabric, host) > before + 100, 20, f"traffic of {host}", 0.2)


@pytest.fixture
def at_work(guests):
    """Checked echoes of 4000 bytes pass between the guests all the time; not one is lost."""
    a, _ = guests
    a.wait("/usr/bin/ping -c 1 -W 1 -s 4000 10.0.0.5", what="an echo")  # the path is resolved
    a.start("exec /usr/bin/ping -i 0.05 -s 4000 10.0.0.5", "echoes")
    a.wait("grep -q icmp_seq=10 /tmp/echoes.log", what="echoes")
    yield

    def answered():
        return [int(n) for n in re.findall(r"icmp_seq=(\d+) ttl", a.log("echoes"))]

    last = answered()[-1]
    wait_until(lambda: answered()[-1] > last + 10, 60, "further echoes")  # ping ends with some in flight
    a.run("killall -INT ping")
    a.wait("grep -q 'packet loss' /tmp/echoes.log", 60, what="the end of ping")
    came, told = answered(), a.log("echoes")
    lost = sorted(set(range(1, came[-1])) - set(came))
    assert not lost and came == sorted(set(came)) and "wrong data" not in told, (lost, told[-2000:])


@pytest.fixture
def boot(shared_fabric):
    """boot(*options) starts a guest on h2, which is removed at the end in any case."""
    vms = []

    def start(*options):
        vms.append(shared_fabric.vm("h2", *options))
        return vms[-1].wait_ib0()

    yield start
    for vm in vms:
        vm.stop()


SENDERS = {
    "rdma": "rping -c -a 10.0.0.6 -C 1000000 -S 65000",
    "datagrams": "/usr/bin/ping -f 10.0.0.1",
}


@pytest.mark.parametrize("what", SENDERS)
def test_killed_while_sending(shared_fabric, at_work, boot, what):
    """SIGKILL for a QEMU whose guest sends: other guests are not affected, and its host is free again."""
    peer = shared_fabric.start("h6", *"rping -s -P -S 65000 -a 10.0.0.6".split())
    vm = boot()
    vm.start(f"for i in 1 2 3 4 5; do {SENDERS[what]} && break; sleep 0.3; done", "sender")
    moves(shared_fabric, "h2")
    os.kill(qemu(vm), signal.SIGKILL)
    wait_until(lambda: not vm.process.running(), 20, "the end of the guest")
    peer.kill()
    boot().ping("10.0.0.5")


@pytest.mark.parametrize("mode", ["rings", "resets"])
def test_hostile_neighbour(helper, shared_fabric, at_work, mode):
    """Of the virtio device; test_vm_connectx.py has one of the other."""
    program = shutil.copy(helper("hostile-guest"), shared_fabric.folder)
    path = re.search(r"path=([^,\s]+)", shared_fabric.command("vm", "h2", "--model", "muslin", "--print"))[1]
    assert f"{mode}: done, 0 wrong" in shared_fabric._start([program, path, mode, 11]).wait(120)


@pytest.mark.also_connectx
def test_resized_at_once(program, boot, model):
    """A program in a guest resizes a CQ by two threads at once: its kernel frees no ring twice."""
    folder = program("resize_at_once").parent
    vm = boot("--model", model, "--share", folder)
    assert vm.run("/share/resize_at_once", timeout=120) == "resized 1000\n"
    vm.ping("10.0.0.5")
    vm.check()
