# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests on hosts of different switches: their HCA by the distribution's tools; boot, reset and end.

    h1 (guest a)   h2   h3        h5 (guest b)
        leaf1 ------------+------------ leaf2
"""

import re

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest


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


def test_killed_guest_does_not_affect_others(shared_fabric, guests):
    vm = shared_fabric.vm("h3")
    vm.wait_ib0()
    vm.start("ping -f 10.0.0.1", "flood")
    vm.stop()
    guests[0].ping("10.0.0.5")
    again = shared_fabric.vm("h3")
    again.wait_ib0()
    again.ping("10.0.0.1")
    again.stop()


def test_guest_reboots(fabric):
    """
    A guest's machine is reset during traffic: its HCA comes back, and other guests are not affected.

        h1 (a)   h2 (c: is reset)        h5 (b)
            leaf1 ---------+---------- leaf2
    """
    a, b, c = (fabric.vm(h) for h in ("h1", "h5", "h2"))
    for vm in (a, b, c):
        vm.wait_ib0()
    b.start("socat -u TCP-LISTEN:9000 OPEN:/tmp/got,creat,trunc", "sink")
    b.wait("grep -q :2328 /proc/net/tcp", what="the receiver")
    a.run("head -c 40000000 /dev/urandom >/tmp/sent", timeout=200)
    a.start("socat -u OPEN:/tmp/sent TCP:10.0.0.5:9000", "source")
    c.start("ping -f 10.0.0.1", "flood")
    wait_until(lambda: int(b.run("stat -c %s /tmp/got || echo 0").split()[-1]) > 0, 30, "the transfer's start", 0)
    for _ in range(2):
        c.reboot()
        c.wait_ib0()
        c.ping("10.0.0.5")
        a.wait("ping -c 1 -W 1 10.0.0.2", what="the guest that is back")
    b.wait("[ $(stat -c %s /tmp/got) = 40000000 ]", 60, "the transfer's end")
    assert a.run("md5sum </tmp/sent") == b.run("md5sum </tmp/got")
