# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest of the distribution alone, whose HCA is a ConnectX and whose driver is mlx5, with a guest that has muslin's own
device, and with host mode, both ways:

    h1 (guest a: connectx)    h5 (guest b: muslin)   h6 (host mode)
        leaf1 ----------+------------ leaf2 ---------------+
"""

import re

import pytest
from muslin import free_port
from place import Place, pair, rping_both_ways

pytestmark = pytest.mark.guest

PINGPONGS = [
    "ibv_rc_pingpong -c -s 65536 -n 100",
    "ibv_rc_pingpong -e -n 100",
    "ibv_uc_pingpong -n 100",
    "ibv_ud_pingpong -n 100",
    "ibv_srq_pingpong -n 100",
]
PERFTESTS = ["ib_write_bw -s 65536", "ib_read_lat -R", "ib_atomic_bw"]
WARNINGS = 4  # of the kernel's log levels


@pytest.fixture(scope="module")
def port():
    return {"guest": free_port(), "host": free_port()}


@pytest.fixture(scope="module")
def a(shared_fabric, port):
    options = ("--model", "connectx", "--tcp", port["guest"])
    built = shared_fabric.start_muslin("vm", "--build", *options[:2])
    built.wait(300, status=None)
    if "a ConnectX needs QEMU" in built.output:
        pytest.skip(built.output.strip())
    vm = shared_fabric.vm("h1", *options)
    yield vm.wait_ib0()
    vm.stop()


@pytest.fixture(scope="module")
def b(shared_fabric, a):
    vm = shared_fabric.vm("h5")
    yield vm.wait_ib0()
    vm.stop()


@pytest.fixture(params=["to", "from"])
def ends(request, shared_fabric, a):
    """(client, server)"""
    guest, host = Place(shared_fabric, "h1", a), Place(shared_fabric, "h6")
    return (guest, host) if request.param == "to" else (host, guest)


def over_tcp(ends, port, tool):
    client, server = ends
    tool = f"{tool} -p {port['guest' if server.vm else 'host']}"
    address = server.address if server.vm or " -R" in tool else "machine"
    return pair(server, tool, client, f"{tool} {address}")


def test_probe_without_a_warning(a):
    """What the driver, and those above it, say is for information."""
    log = [re.match(r"<(\d+)>(.*)", line) for line in a.run("dmesg -r").splitlines()]
    said = [(int(m[1]) & 7, m[2]) for m in log if m and re.search("mlx5|infiniband|ib0", m[2])]
    assert any("firmware version" in text for _, text in said)
    assert [text for level, text in said if level <= WARNINGS] == []


def test_nothing_of_muslin_in_the_guest(a):
    assert a.run("find / -xdev -name 'muslin*.ko*' -o -xdev -name 'libmuslin*'") == ""
    assert a.run("cd /sys/class/infiniband; echo *; readlink -f mlx5_0/device/driver") == (
        "mlx5_0\n/sys/bus/pci/drivers/mlx5_core\n"
    )


def test_ibstat(shared_fabric, a):
    out, port = a.run("ibstat mlx5_0"), shared_fabric.port("h1")
    assert "CA type: MT4115" in out and "State: Active" in out and "Link layer: InfiniBand" in out
    assert re.search(rf"Base lid: {port['lid']}\b", out) and f"Port GUID: {port['guid']}" in out
    out = a.run("ibv_devinfo -v")
    assert "PORT_ACTIVE" in out and "vendor_part_id:\t\t\t4115" in out


@pytest.mark.parametrize("tool", PINGPONGS)
def test_pingpong(ends, port, tool):
    for out in over_tcp(ends, port, tool):
        assert "100 iters in" in out


def test_completion_timestamps(shared_fabric, a, port):
    """Each completion has one of the adapter's clock, which the driver knows the frequency of."""
    tool = f"ibv_rc_pingpong -n 100 -p {port['host']}"
    guest, host = Place(shared_fabric, "h1", a), Place(shared_fabric, "h6")
    out, _ = pair(host, tool, guest, f"{tool} -t machine")
    cycles = {which: int(n) for which, n in re.findall(r"(M\w+) receive completion clock cycles = (\d+)", out)}
    seconds = float(re.search(r"iters in ([\d.]+) seconds", out)[1])
    assert 0 < cycles["Min"] <= cycles["Max"] <= (seconds + 1) * 156250e3
    assert re.search(r"hca_core_clock:\s+156250kHZ", a.run("ibv_devinfo -v"))


@pytest.mark.parametrize("tool", PERFTESTS)
def test_perftest(ends, port, tool):
    out, _ = over_tcp(ends, port, f"{tool} -n 200")
    assert re.search(r"^ *\d+ +200 ", out, re.M)


def test_rping(ends):
    client, server = ends
    what = f"-v -V -C 4 -S 20000 -a {server.address}"
    for out in pair(server, f"rping -s {what}", client, f"rping -c {what}"):
        assert out.count("ping data: rdma-ping-") == 4


def test_ipoib(a, b):
    for vm, address in ((a, "10.0.0.5"), (b, "10.0.0.1"), (a, "fd00::5")):
        vm.wait(f"ping -c 1 -W 1 {address}", what="an echo")
    for size in (56, 1900, 30000):
        a.ping("10.0.0.5", size=size, count=2)


def test_rping_of_two_kernels(a, b):
    rping_both_ways(a, b)


def test_driver_goes_and_comes(a):
    a.run("rmmod ib_ipoib mlx5_ib mlx5_core && modprobe mlx5_ib && modprobe ib_ipoib")
    a.run("ip addr replace 10.0.0.1/24 dev ib0; ip link set ib0 up")
    a.wait_ib0()
    assert "State: Active" in a.run("ibstat mlx5_0")


def test_reboot(a):
    """The machine is reset with everything at work."""
    a.reboot()
    a.wait_ib0()
    assert "State: Active" in a.run("ibstat mlx5_0")


def test_what_the_device_counted(shared_fabric, a):
    (function,) = shared_fabric.node("h1")["guest"]["connectx"]
    counters = function["counters"]
    assert function["driver"] and counters["interrupts"] and counters["CREATE_QP"]
    assert {k: v for k, v in counters.items() if k.startswith(("bad_wqes", "bad_dma", "vfio_"))} == {}
