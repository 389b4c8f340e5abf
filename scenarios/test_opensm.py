# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""OpenSM as the only subnet manager, beside ours, and ours on ibsim: neither side knows the other's code."""


from muslin import wait_until


def start_opensm(fabric, host, *args):
    log = fabric.folder / "opensm.log"
    sm = fabric.start(host, "opensm", "-f", str(log), "-s", "5", *args)
    wait_until(lambda: log.exists() and "SUBNET UP" in log.read_text(errors="replace"), 60, "SUBNET UP")
    return sm, log


def test_opensm_alone_brings_the_subnet_up(new_fabric):
    fabric = new_fabric
    fabric.up(None, "--no-sm")
    sm, log = start_opensm(fabric, "h1")
    fabric.wait_active()
    args = ["ibv_rc_pingpong", "-n", "100"]
    fabric.pair(("h2", *args), ("h6", *args, "localhost"))
    assert "SMINFO_MASTER" in fabric.run("h2", "sminfo")
    # It survives a link change: the port is swept and comes back.
    fabric.command("link", "leaf1:" + str(uplink(fabric, "leaf1", "spine1")), "down")
    fabric.command("link", "leaf1:" + str(uplink(fabric, "leaf1", "spine1")), "up")
    fabric.wait_active()
    fabric.pair(("h2", *args), ("h6", *args, "localhost"))
    assert sm.running(), log.read_text(errors="replace")[-2000:]


def uplink(fabric, leaf, spine):
    return next(p["num"] for p in fabric.node(leaf)["ports"] if p.get("peer") == spine)


def test_ours_yields_to_a_higher_priority_and_takes_over(new_fabric):
    fabric = new_fabric
    fabric.up()
    sm, _ = start_opensm(fabric, "h2", "-p", "15")
    lid = fabric.port("h2")["lid"]
    wait_until(lambda: f"sm lid {lid}" in fabric.run("h3", "sminfo"), 60, "OpenSM as master", 1)
    sm.kill()
    wait_until(lambda: f"sm lid {lid} " not in fabric.run("h3", "sminfo", status=None), 60, "ours as master again", 1)
    assert "SMINFO_MASTER" in fabric.run("h3", "sminfo")


def test_osmtest_accepts_our_sa(fabric):
    inventory = str(fabric.folder / "osmtest.dat")
    fabric.run("h1", "osmtest", "-f", "c", "-i", inventory, "-l", str(fabric.folder / "osmtest.log"))
    out = fabric.run("h1", "osmtest", "-f", "a", "-i", inventory, "-l", str(fabric.folder / "osmtest.log"), timeout=120)
    assert "PASS" in out
