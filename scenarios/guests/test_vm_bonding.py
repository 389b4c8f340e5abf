# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two HCAs of a guest as one interface."""

import itertools
import re

import pytest
from test_vm_networks import files_throughout, serve_files

pytestmark = pytest.mark.guest


def test_bonding(new_fabric):
    """
    active-backup over two HCAs of one guest, on different leafs; a cable is pulled and traffic continues: echoes, and
    files whose data is checked. The subnet manager is on h1.

        h1 (SM)  h2 (guest a: ib0)        h5 (guest b)  h6 (guest a: ib1)
            leaf1 -----------+----------- leaf2
    """
    new_fabric.up()
    a = new_fabric.vm("h2,h6")
    b = new_fabric.vm("h5")
    serve_files(b)
    a.run("ip addr flush dev ib0; ip link set ib0 down; ip link set ib1 down")
    a.run("modprobe bonding max_bonds=0")
    a.run("ip link add bond0 type bond mode active-backup miimon 100")
    a.run("ip link set ib0 master bond0; ip link set ib1 master bond0")
    a.run("ip addr add 10.0.0.2/24 dev bond0; ip link set bond0 up")
    a.wait("grep -q 'MII Status: up' /proc/net/bonding/bond0 && ping -c 1 -W 1 10.0.0.5", what="the bond")
    active = a.run("cat /sys/class/net/bond0/bonding/active_slave").strip()
    a.start("ping -i 0.1 10.0.0.5", "ping")
    a.wait("grep -q seq=5 /tmp/ping.log", what="the ping")
    with files_throughout(a, b, "10.0.0.5"):
        new_fabric.command("link", "h2:1" if active == "ib0" else "h6:1", "down")
        moved = f"[ $(cat /sys/class/net/bond0/bonding/active_slave) != {active} ]"
        a.wait(f"{moved} && ping -c 1 -W 1 10.0.0.5", what="the fail-over")
    cut = int(re.findall(r" seq=(\d+) ", a.log("ping"))[-1])
    a.wait(f"grep -q 'seq={cut + 5} ' /tmp/ping.log", what="more answers")
    answered = [int(n) for n in re.findall(r" seq=(\d+) ", a.log("ping"))]
    outage = 0.1 * max(b - a for a, b in itertools.pairwise(answered))
    assert 0 < outage < 5, f"nobody answered for {outage:.1f} s"
