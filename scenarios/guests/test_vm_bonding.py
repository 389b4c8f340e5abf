# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two HCAs of a guest as one interface."""

import itertools
import re

import pytest
from endpoint import bond, wait_failed_over
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
    active = bond(a, "10.0.0.2/24", "10.0.0.5")
    a.start("ping -i 0.1 10.0.0.5", "ping")
    a.wait("grep -q seq=5 /tmp/ping.log", what="the ping")
    with files_throughout(a, b, "10.0.0.5"):
        new_fabric.command("link", "h2:1" if active == "ib0" else "h6:1", "down")
        wait_failed_over(a, active, "10.0.0.5")
    cut = int(re.findall(r" seq=(\d+) ", a.log("ping"))[-1])
    a.wait(f"grep -q 'seq={cut + 5} ' /tmp/ping.log", what="more answers")
    answered = [int(n) for n in re.findall(r" seq=(\d+) ", a.log("ping"))]
    outage = 0.1 * max(b - a for a, b in itertools.pairwise(answered))
    assert 0 < outage < 5, f"nobody answered for {outage:.1f} s"
