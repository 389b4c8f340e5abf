# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The distribution's verbs programs in guests on different leafs, with each other and with host mode:

    h1 (guest a)         h5 (guest b)   h6 (host mode)
        leaf1 ------+------- leaf2 ---------+
"""

import re

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest

PINGPONGS = [
    "ibv_rc_pingpong -c -s 65536 -n 100",
    "ibv_uc_pingpong -n 100",
    "ibv_ud_pingpong -n 100",
    "ibv_srq_pingpong -n 100",
    "ibv_rc_pingpong -e -n 100",
]


@pytest.mark.parametrize("tool", PINGPONGS)
def test_pingpong(guests, tool):
    a, b = guests
    b.start(tool, "pp")
    assert re.search(r"\d+ iters in", a.wait(f"{tool} 10.0.0.5", what=tool))
    assert re.search(r"\d+ iters in", b.wait("grep iters /tmp/pp.log"))


@pytest.mark.parametrize("tool", ["ib_send_lat -s 64", "ib_write_bw -s 65536", "ib_read_bw -s 65536", "ib_atomic_bw"])
def test_perftest(guests, tool):
    a, b = guests
    b.start(f"{tool} -n 200", "pt")
    assert re.search(r"^ *\d+ +200 ", a.wait(f"{tool} -n 200 10.0.0.5", what=tool), re.M)


def test_rping_between_guests(guests):
    a, b = guests
    b.start("rping -s -a 10.0.0.5 -v -C 5", "rping")
    assert "rdma-ping-4" in a.wait("rping -c -a 10.0.0.5 -v -C 5", what="rping")


def test_rping_from_guest_to_host_mode(shared_fabric, guests):
    server = shared_fabric.start("h6", "rping", "-s", "-a", "10.0.0.6", "-v", "-C", "3")
    assert "rdma-ping-2" in guests[0].wait("rping -c -a 10.0.0.6 -v -C 3", what="rping")
    assert "rdma-ping-2" in server.wait(status=None)


def test_rping_from_host_mode_to_guest(shared_fabric, guests):
    guests[0].start("rping -s -a 10.0.0.1 -v -C 3", "rping")

    def attempt():
        client = shared_fabric.start("h6", "rping", "-c", "-a", "10.0.0.1", "-v", "-C", "3")
        return "rdma-ping-2" in client.wait(30, status=None)

    wait_until(attempt, 30, "rping")
