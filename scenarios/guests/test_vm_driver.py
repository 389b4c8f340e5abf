# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The guest's driver is unloaded and loaded, idle and during traffic, and reports events of its device:

    h1 (guest a)          h5 (guest b)
        leaf1 ---- spines ---- leaf2
"""

import pytest
from endpoint import DRIVERS
from muslin import wait_until

pytestmark = pytest.mark.guest


class Device:
    def __init__(self, driver, name):
        self.driver, self.name = driver, name

    def bind(self, vm, how="bind"):
        vm.run(f"echo {self.name} >{self.driver.folder}/{how}", timeout=300)


@pytest.fixture
def device(guests):
    """Guest a's device of the driver; afterwards it is bound again and its ib0 works."""
    a, _ = guests
    driver = DRIVERS[a.model]
    name = a.run(f"cd {driver.folder}; ls -d {driver.devices}").strip()
    yield Device(driver, name)
    if a.call(f"[ -e {driver.folder}/{name} ]")[0]:
        a.run(f"{driver.load}; [ -e {driver.folder}/{name} ] || echo {name} >{driver.folder}/bind")
    ib0_up(a)


def ib0_up(vm):
    vm.run("ip addr replace 10.0.0.1/24 dev ib0; ip addr replace fd00::1/64 dev ib0; ip link set ib0 up")
    vm.wait_ib0()
    vm.wait("ping -c 1 -W 1 10.0.0.5", what="an echo")


def no_device(vm):
    vm.wait(f"[ ! -e /sys/class/infiniband/{vm.device} ]", what="the end of the device")


def test_unbind_and_bind(guests, device):
    a, _ = guests
    for _ in range(3):
        device.bind(a, "unbind")
        no_device(a)
        assert a.call("ls /sys/class/net/ib0")[0] != 0
        device.bind(a)
        ib0_up(a)
    a.run("ibstat | grep -q Active")


def test_module_is_unloaded_and_loaded(guests, device):
    a, _ = guests
    for _ in range(2):
        a.run(device.driver.unload, timeout=300)
        no_device(a)
        a.run(device.driver.load)
        ib0_up(a)


def test_module_is_unloaded_in_use(guests, device):
    """A program loses its open device when the module is unloaded, and another one gets the new device."""
    a, b = guests
    jobs = [b.start("ibv_rc_pingpong -n 1000000", "server")]
    jobs.append(a.start("ibv_rc_pingpong -n 1000000 10.0.0.5", "client"))
    jobs.append(a.start("ibv_asyncwatch", "watch"))
    a.wait("grep -q async /tmp/watch.log", what="ibv_asyncwatch")
    a.run(device.driver.unload, timeout=300)
    no_device(a)
    a.run(device.driver.load)
    ib0_up(a)
    a.wait("ibstat | grep -q Active", what="the new device")
    for job in jobs:
        job.kill()


def packets(fabric):
    return int(fabric.port("h1")["counters"]["port_xmit_packets"])


IN_USE = {
    "rc": ("ibv_rc_pingpong -n 1000000", "ibv_rc_pingpong -n 1000000 10.0.0.5"),
    "ud": ("ibv_ud_pingpong -n 1000000", "ibv_ud_pingpong -n 1000000 10.0.0.5"),
    "cm": ("rping -s -a 10.0.0.5 -C 1000000", "rping -c -a 10.0.0.5 -C 1000000"),
    "ipoib": ("iperf3 -s -1", "iperf3 -c 10.0.0.5 -t 60"),
}


@pytest.mark.parametrize("what", IN_USE)
def test_unbind_in_use(shared_fabric, guests, device, what):
    """Programs that use the device lose it, without other effects; the peer and later programs still work."""
    a, b = guests
    server, client = IN_USE[what]
    jobs = [b.start(server, "server")]
    jobs.append(a.start(f"for i in 1 2 3 4 5; do {client} && break; sleep 0.3; done", "client"))
    before = packets(shared_fabric)
    a.wait(f"pidof {client.split()[0]}", what=client)
    wait_until(lambda: packets(shared_fabric) > before + 200, 20, "traffic", 0.2)
    device.bind(a, "unbind")
    no_device(a)
    for job in jobs:
        job.kill()
    device.bind(a)
    ib0_up(a)
    again = b.start("ibv_rc_pingpong -n 100", "again")
    a.wait("ibv_rc_pingpong -n 100 10.0.0.5", what="ibv_rc_pingpong")
    again.wait(20)


BINDS = "cd {folder}; for i in 1 2 3 4 5 6; do echo {name} >unbind; echo {name} >bind; done"


def test_unbind_while_events_come(shared_fabric, guests, device):
    """
    The port goes down and comes up while the driver is unbound and bound. ib0 is down: an event that IPoIB handles
    while it closes an interface can open it again, which makes Linux (7.2) warn in ipoib_ndo_uninit().
    """
    a, _ = guests
    a.run("ip link set ib0 down")
    job = a.start(BINDS.format(folder=device.driver.folder, name=device.name), "binds")

    def flapped():
        shared_fabric.command("link", "h1:1", "down")
        shared_fabric.command("link", "h1:1", "up")
        return not job.running()

    wait_until(flapped, 300, "the last bind")
    job.wait()
    ib0_up(a)
    a.wait("ibstat | grep -q Active", what="the port")
    a.check()


def test_suspend(guests, device):
    """
    The kernel suspends its devices during traffic and resumes them, as for suspend to RAM, in its own test of that:
    programs lose the device, and there is another one afterwards.
    """
    a, b = guests
    server, client = IN_USE["cm"]
    jobs = [b.start(server, "server"), a.start("ibv_asyncwatch", "watch")]
    a.wait("grep -q async /tmp/watch.log", what="ibv_asyncwatch")
    a.run("echo 0 >/sys/module/suspend/parameters/pm_test_delay; echo devices >/sys/power/pm_test")
    jobs.append(a.start(f"{client} -v", "client"))
    a.wait("grep -q ping /tmp/client.log", what=client)
    a.run("echo mem >/sys/power/state")
    a.wait("grep -q DEVICE_FATAL /tmp/watch.log", what="DEVICE_FATAL")
    for job in jobs:
        job.kill()
    ib0_up(a)
    a.run("echo none >/sys/power/pm_test; ibstat | grep -q Active")
    a.check()


def test_pulled_cable(shared_fabric, guests, device):
    """The port goes down and comes up again, and IPoIB with it."""
    a, _ = guests
    shared_fabric.command("link", "h1:1", "down")
    a.wait("[ $(cat /sys/class/net/ib0/carrier) = 0 ]", what="the end of the carrier")
    assert "Down" in a.run("ibstat")
    shared_fabric.command("link", "h1:1", "up")
    a.wait_ib0()
    a.ping("10.0.0.5")
