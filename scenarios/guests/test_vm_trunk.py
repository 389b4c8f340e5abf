# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest in either of two daemons that hold one topology: IPoIB and rping across the trunks, and the death of a daemon.

    h1 (guest a) - leaf1 - spine1 ====== leaf2 - h5 (guest b)
         daemon 0                    :        daemon 1
"""

import os
import pathlib
import signal

import pytest
from endpoint import rping_both_ways
from muslin import wait_until

pytestmark = pytest.mark.guest


def has_ended(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat")
    return not stat.exists() or ") Z " in stat.read_text()


def test_guests_of_two_daemons(new_fabric):
    fabric = new_fabric.up("leafs 2 spines 1 hosts 4", "--shards", "2")
    a, b = fabric.vm("h1"), fabric.vm("h5")
    for vm in (a, b):
        vm.wait_ib0()
    for vm, to in ((a, "10.0.0.5"), (b, "10.0.0.1"), (a, "fd00::5")):
        vm.ping(to)
        vm.ping(to, size=30000, count=2)
    a.run("head -c 8388608 /dev/urandom >/tmp/sent")
    b.start("socat -u TCP-LISTEN:9000 OPEN:/tmp/got,creat,trunc", "sink")
    b.wait("grep -q :2328 /proc/net/tcp", what="the receiver")  # 9000
    a.run("socat -u OPEN:/tmp/sent TCP:10.0.0.5:9000")
    wait_until(lambda: b.run("md5sum </tmp/got") == a.run("md5sum </tmp/sent"), 30, "the file", 0.5)
    rping_both_ways(a, b)
    trunks = fabric.show()["trunks"]
    assert sum(t["rings"] for t in trunks) >= 2 and not sum(t["violations"] for t in trunks), trunks

    pid = int(next((fabric.folder / "run").glob(f"{fabric.name}.1/pid")).read_text())
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: has_ended(pid), 20, "its end")  # until then its control socket accepts connections
    wait_until(lambda: fabric.port("spine1", 2)["state"] == "Down", 20, "its links down", 0.1)
    a.ping("10.0.0.1")
    fabric.command("down")
