# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
IPoIB between the kernels of two guests on different leafs:

    h1 (guest a: ib0 10.0.0.1)        h5 (guest b: ib0 10.0.0.5)
        leaf1 ------------+------------ leaf2
"""

import re

import pytest

pytestmark = pytest.mark.guest


def test_ipoib_datagram(guests):
    a, b = guests
    link = a.run("cat /sys/class/net/ib0/address /sys/class/net/ib0/mode")
    assert "fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:51" in link and "datagram" in link
    a.ping("10.0.0.5")
    b.ping("10.0.0.1", size=4000)
    a.ping("fd00::5")
    assert "10.0.0.5 dev ib0" in a.run("ip neigh")


def test_ipoib_multicast(guests):
    out = guests[0].run("ping -c 2 -W 3 -I ib0 ff02::1")
    assert len(set(re.findall(r"from (fe80::[0-9a-f:]+)", out))) >= 1


def test_ipoib_tcp_and_udp(guests):
    a, b = guests
    b.run("dd if=/dev/urandom of=/tmp/sent bs=1M count=8 2>/dev/null")
    b.run("busybox httpd -p 8000 -h /tmp")
    a.run("wget -q -O /tmp/got http://10.0.0.5:8000/sent")
    assert a.run("md5sum </tmp/got") == b.run("md5sum </tmp/sent")
    a.run("wget -q -O /tmp/got 'http://[fd00::5]:8000/sent'")
    assert a.run("md5sum </tmp/got") == b.run("md5sum </tmp/sent")
    b.start("iperf3 -s -1", "iperf")
    out = a.wait("iperf3 -u -b 20M -c 10.0.0.5 -t 2", what="iperf3")
    assert "receiver" in out


def test_ipoib_connected(guests):
    a, b = guests
    for vm in guests:
        vm.run("echo connected >/sys/class/net/ib0/mode && ip link set ib0 mtu 65520")
    for vm in guests:
        vm.wait_ib0()
    a.ping("10.0.0.5", size=60000)
    b.run("echo datagram >/sys/class/net/ib0/mode")
    b.wait_ib0()
    a.ping("10.0.0.5", size=1000)  # a datagram peer of a connected one
    a.run("echo datagram >/sys/class/net/ib0/mode")
    a.wait_ib0()
    a.ping("10.0.0.5", size=1000)
