# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""OpenSM as the only subnet manager of the fabric, on a host of it."""

import pytest


@pytest.fixture
def fabric(new_fabric):
    return new_fabric.up(None, "--no-sm").sweep()


def uplink(fabric, leaf, spine):
    return next(p["num"] for p in fabric.node(leaf)["ports"] if p.get("peer") == spine)


def test_opensm_brings_the_subnet_up(fabric):
    args = ["ibv_rc_pingpong", "-n", "100"]
    fabric.pair(("h2", *args), ("h6", *args, "localhost"))
    assert "SMINFO_MASTER" in fabric.run("h2", "sminfo")


def test_opensm_survives_link_changes(fabric):
    place = f"leaf1:{uplink(fabric, 'leaf1', 'spine1')}"
    fabric.command("link", place, "down")
    fabric.command("link", place, "up")
    fabric.wait_active()
    args = ["ibv_rc_pingpong", "-n", "100"]
    fabric.pair(("h2", *args), ("h6", *args, "localhost"))
    assert fabric.sm.running(), fabric.sm_log.read_text(errors="replace")[-2000:]
