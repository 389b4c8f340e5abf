# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests on hosts of different switches: their HCA as the distribution's tools see it, and their lives.

    h1 (guest a)   h2   h3        h5 (guest b)
        leaf1 ------------+------------ leaf2
"""

import re

import pytest

pytestmark = pytest.mark.guest

PARTITIONS = """Default=0x7fff, ipoib, mtu=5 : ALL=full;
red=0x0001, ipoib : 0x0002c90300000051=full, 0x0002c90300000091=full;
blue=0x0002, ipoib : 0x0002c90300000051=full;
"""


def test_ibstat(shared_fabric, guests):
    out = guests[0].run("ibstat")
    port = shared_fabric.port("h1")
    assert "State: Active" in out and "Link layer: InfiniBand" in out
    assert re.search(rf"Base lid: {port['lid']}\b", out)
    assert port["guid"].removeprefix("0x") in out


def test_management_tools(shared_fabric, guests):
    a = guests[0]
    assert "Switch" in a.run("smpquery -D nodeinfo 0,1")
    assert "Channel Adapter" in a.run("smpquery -D nodeinfo 0")
    assert "SMINFO_MASTER" in a.run("sminfo")
    assert "PortXmitPkts" in a.run("perfquery")
    assert a.run("ibnetdiscover").count("Ca\t") == 8
    assert "IsSM ports" in a.run("saquery -s")


def test_command_and_status(shared_fabric):
    out = shared_fabric.command("vm", "h2", "--", "sh", "-c", "ibv_devices; exit 7", timeout=120, status=7)
    assert "muslin0" in out


def test_killed_guest_leaves_the_others_alone(shared_fabric, guests):
    vm = shared_fabric.vm("h3")
    vm.wait_ib0()
    vm.start("ping -f 10.0.0.1", "flood")
    vm.stop()
    guests[0].ping("10.0.0.5")
    again = shared_fabric.vm("h3")
    again.wait_ib0()
    again.ping("10.0.0.1")
    again.stop()


def test_partitions(new_fabric):
    """Child interfaces: red has both guests, blue only the first."""
    conf = new_fabric.folder / "partitions.conf"
    conf.write_text(PARTITIONS)
    conf.chmod(0o644)
    new_fabric.up(None, "--partitions", conf)
    a, b = new_fabric.vm("h1"), new_fabric.vm("h5")
    for i, vm in enumerate((a, b), 1):
        vm.wait_ib0()
        assert vm.run("cat /sys/class/net/ib0/mtu").strip() == "4092"
        vm.run("echo 0x8001 >/sys/class/net/ib0/create_child")
        vm.run(f"ip addr add 10.1.0.{i}/24 dev ib0.8001; ip link set ib0.8001 up")
    for vm in (a, b):
        vm.wait_ib0("ib0.8001")
    a.ping("10.1.0.2")
    for vm in (a, b):
        vm.run("echo 0x8002 >/sys/class/net/ib0/create_child; ip link set ib0.8002 up")
    a.wait_ib0("ib0.8002")
    assert b.run("cat /sys/class/net/ib0.8002/carrier").strip() == "0"  # not a member
    for vm in (a, b):
        vm.run("echo 0x8001 >/sys/class/net/ib0/delete_child")
