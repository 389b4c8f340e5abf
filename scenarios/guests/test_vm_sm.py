# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
OpenSM in a guest as the manager of the whole fabric, over the guest kernel's umad and issm:

    h1 (guest a: OpenSM)   h2            h5 (guest b)   h8 (the daemon's own manager)
        leaf1 -----------------+------------- leaf2
"""

import re

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest

OPENSM = "mkdir -p /var/cache/opensm /var/log; exec opensm -f /tmp/opensm.log -s 3"


def manager(fabric):
    return fabric.show()["manager"]["state"]


def master(fabric, vm):
    """The LID of the master, as seen by the guest; None while that one does not respond."""
    found = re.search(r"sm lid (\d+)", vm.run("sminfo", status=None))
    return int(found[1]) if found else None


@pytest.mark.also_connectx
def test_opensm_in_a_guest_brings_the_subnet_up(new_fabric, model):
    """The only manager: ports are Initialize until it has swept, and then the guests' interfaces come up."""
    new_fabric.up(None, "--no-sm")
    a, b = new_fabric.vm("h1", "--model", model), new_fabric.vm("h5")
    assert new_fabric.port("h5")["state"] == "Initialize"
    assert b.run("cat /sys/class/net/ib0/carrier", status=None) != "1\n"
    a.start(OPENSM, "opensm")
    new_fabric.wait_active()
    for vm in (a, b):
        vm.wait_ib0()
        assert master(new_fabric, vm) == new_fabric.port("h1")["lid"]
    a.ping("10.0.0.5")
    new_fabric.pair(("h2", "ibv_rc_pingpong", "-n", "50"), ("h6", "ibv_rc_pingpong", "-n", "50", "localhost"))


def test_a_connectx_under_an_m_key(new_fabric):
    """No port answers a Get without the M_Key, which the guest's driver does not know; the adapter's firmware does."""
    fabric = new_fabric.up(None, "--no-sm")
    conf = fabric.folder / "opensm.conf"
    conf.write_text("m_key 0x1122334455667788\nm_key_protection_level 2\n")
    fabric.start("h8", "opensm", "-f", str(fabric.folder / "opensm.log"), "-F", str(conf))
    fabric.wait_active()
    fabric.run("h8", "smpquery", "-D", "portinfo", "0,1", status=255)
    vm = fabric.vm("h1", "--model", "connectx")
    vm.wait_ib0()
    assert "PORT_ACTIVE" in vm.run("ibv_devinfo")


def test_ours_takes_over_when_it_exits(new_fabric):
    """
    The guest's manager is master by its higher priority; when the guest has ended, the daemon's manager takes over.
    """
    new_fabric.up(None, "--sm-host", "h8", "--priority", "2")
    a, b = new_fabric.vm("h1"), new_fabric.vm("h5")
    for vm in (a, b):
        vm.wait_ib0()
    a.start(f"{OPENSM} -p 14", "opensm")
    wait_until(lambda: manager(new_fabric) == "Standby", 30, "our own manager's standby", 0.2)
    wait_until(lambda: master(new_fabric, b) == new_fabric.port("h1")["lid"], 20, "the guest's notice of OpenSM", 0.2)
    a.wait("ping -c 1 -W 1 10.0.0.5", what="IPoIB under OpenSM")
    a.stop()
    wait_until(lambda: manager(new_fabric) == "Master", 60, "our own manager's return", 0.2)
    wait_until(lambda: master(new_fabric, b) == new_fabric.port("h8")["lid"], 20, "the guest's notice of it", 0.2)
    again = new_fabric.vm("h2")
    again.wait_ib0()
    wait_until(lambda: again.call("ping -c 1 -W 1 10.0.0.5")[0] == 0, 30, "IPoIB under our own", 0.3)
