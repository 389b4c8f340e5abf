# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest of a host with two ports: its ConnectX has a PCI function for each of them, as adapters since ConnectX-4 have.

                          +-- port 1 -- leaf1 -- port 1 --+
    h1 (guest a: connectx)|              |                |h2 (host mode; the subnet manager's node)
                          +-- port 2 -- leaf2 -- port 2 --+
"""

import re

import pytest
from endpoint import Endpoint, bond, pair, wait_failed_over

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

TOPOLOGY = """switch leaf1 3
switch leaf2 3
host h2 ports 2
host h1 ports 2
cable leaf1:1 h1:1
cable leaf2:1 h1:2
cable leaf1:2 h2:1
cable leaf2:2 h2:2
cable leaf1:3 leaf2:3
host h1:1 ip 10.1.0.1/24
host h1:2 ip 10.2.0.1/24
host h2:1 ip 10.1.0.2/24
host h2:2 ip 10.2.0.2/24
"""
PORTS = (1, 2)


@pytest.fixture(scope="module")
def fabric(muslin_make_fabric):
    f = muslin_make_fabric("two-ports")
    yield f.up(TOPOLOGY)
    f.down()


@pytest.fixture(scope="module")
def a(fabric):
    built = fabric.start_muslin("vm", "--build", "--model", "connectx")
    built.wait(300, status=None)
    if "a ConnectX needs QEMU" in built.output:
        pytest.skip(built.output.strip())
    vm = fabric.vm("h1", "--model", "connectx")
    # Both are in one broadcast domain: each interface answers for its own address alone.
    vm.run("echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce")
    vm.run("ip neigh flush all")
    for n in PORTS:
        vm.wait_ib0(f"ib{n - 1}")
    yield vm
    vm.stop()


def sent(fabric, port):
    return fabric.port("h1", port)["counters"]["port_xmit_packets"]


@pytest.mark.parametrize("port", PORTS)
def test_ibstat(fabric, a, port):
    """Each function is a device of one port, which is that of the host."""
    out, found = a.run(f"ibstat mlx5_{port - 1}"), fabric.port("h1", port)
    assert "Number of ports: 1" in out and "State: Active" in out and "CA type: MT4115" in out
    assert re.search(rf"Base lid: {found['lid']}\b", out) and f"Port GUID: {found['guid']}" in out


@pytest.mark.parametrize("port", PORTS)
def test_ping_and_rping(fabric, a, port):
    """By the interface and the device of the port, and by no other port of the host."""
    before = {n: sent(fabric, n) for n in PORTS}
    guest, host = Endpoint(fabric, "h1", a), Endpoint(fabric, "h2")
    a.wait(f"ping -c 1 -W 1 10.{port}.0.2", what="an echo")
    a.ping(f"10.{port}.0.2", size=1900)
    for server, client, last in ((host, guest, 2), (guest, host, 1)):
        what = f"-V -v -C 5 -S 5000 -a 10.{port}.0.{last}"
        pair(server, f"rping -s {what}", client, f"rping -c {what}")
    more = {n: sent(fabric, n) - before[n] for n in PORTS}
    assert more[port] > 50 and more[3 - port] < 20, more


def test_pingpong_of_both_at_once(fabric, a):
    """Programs of the guest, one on each function, with one another."""
    port = "-e -p 18520 -n 100"
    server = a.start(f"ibv_rc_pingpong -d mlx5_1 {port}", "pingpong")
    a.wait(f"ibv_rc_pingpong -d mlx5_0 {port} 127.0.0.1", what="the server")
    server.wait(20)


def test_the_driver_is_unloaded_and_loaded(fabric, a):
    a.run("rmmod mlx5_ib mlx5_core", timeout=300)
    assert not any(f["driver"] for f in fabric.node("h1")["guest"]["connectx"])
    a.run("modprobe mlx5_ib", timeout=300)
    for n in PORTS:
        a.wait_ib0(f"ib{n - 1}")
        a.wait(f"ping -c 1 -W 1 10.{n}.0.2", what="an echo")


def test_bonding_of_both(fabric, a):
    """active-backup over both functions: the active port's link goes down, and the other port takes over."""
    active = bond(a, "10.1.0.1/24", "10.1.0.2")
    fabric.command("link", "h1:1" if active == "ib0" else "h1:2", "down")
    wait_failed_over(a, active, "10.1.0.2")
