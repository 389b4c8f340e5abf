# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""OpenSM on a host of the fabric, alone and beside the embedded manager, which are independent implementations."""

import subprocess

import pytest
from muslin import free_port, wait_until

PINGPONG = ["ibv_rc_pingpong", "-p", free_port(), "-n", "100"]


@pytest.fixture
def swept(new_fabric):
    """The default fabric with OpenSM as its only manager."""
    return new_fabric.up(None, "--no-sm").sweep()


def start_opensm(fabric, host, *args):
    return fabric.start(host, "opensm", "-f", str(fabric.folder / "opensm.log"), "-s", "5", *args)


def manager(fabric):
    return fabric.show()["manager"]


def uplink(fabric, leaf, spine):
    return next(p["num"] for p in fabric.node(leaf)["ports"] if p.get("peer") == spine)


def test_opensm_brings_the_subnet_up(swept):
    swept.pair(("h2", *PINGPONG), ("h6", *PINGPONG, "localhost"))
    assert "SMINFO_MASTER" in swept.run("h2", "sminfo")
    assert manager(swept) is None


def test_opensm_survives_link_changes(swept):
    place = f"leaf1:{uplink(swept, 'leaf1', 'spine1')}"
    swept.command("link", place, "down")
    swept.command("link", place, "up")
    swept.wait_active()
    swept.pair(("h2", *PINGPONG), ("h6", *PINGPONG, "localhost"))
    assert swept.sm.running(), swept.sm_log.read_text(errors="replace")[-2000:]


def test_ours_yields_to_a_higher_priority_and_takes_over(fabric):
    """The LIDs do not change, and traffic passes under either master."""
    lids = [n["lid"] for n in fabric.show()["nodes"]]
    sm = start_opensm(fabric, "h2", "-p", "15")
    lid = fabric.port("h2")["lid"]
    wait_until(lambda: f"sm lid {lid} " in fabric.run("h3", "sminfo", status=None), 60, "OpenSM as master", 0.5)
    assert manager(fabric)["state"] == "Standby"
    fabric.pair(("h2", *PINGPONG), ("h6", *PINGPONG, "localhost"))
    sm.kill()
    wait_until(lambda: manager(fabric)["up"], 60, "the embedded manager as master again", 0.5)
    assert f"sm lid {fabric.port('h1')['lid']} " in fabric.run("h3", "sminfo")
    assert [n["lid"] for n in fabric.show()["nodes"]] == lids
    fabric.pair(("h2", *PINGPONG), ("h6", *PINGPONG, "localhost"))


def test_opensm_yields_to_ours(new_fabric):
    """OpenSM is master first; muslin-sm with a higher priority gets the mastership by handover, and hands it back."""
    fabric = new_fabric.up(None, "--no-sm")
    conf = fabric.folder / "opensm.conf"
    conf.write_text("sminfo_polling_timeout 500\npolling_retry_number 2\n")
    start_opensm(fabric, "h2", "-F", str(conf))
    fabric.wait_active()
    sm = fabric.start("h3", fabric.muslin.parent / "muslin-sm", "-p", "9")
    sm.expect("Master")
    sm.expect("SUBNET UP")
    lid = fabric.port("h3")["lid"]
    wait_until(lambda: f"sm lid {lid} " in fabric.run("h4", "sminfo", status=None), 30, "muslin-sm as master", 0.5)
    fabric.pair(("h2", *PINGPONG), ("h6", *PINGPONG, "localhost"))
    sm.kill()
    lid = fabric.port("h2")["lid"]
    wait_until(lambda: f"sm lid {lid} " in fabric.run("h4", "sminfo", status=None), 60, "OpenSM as master", 0.5)


@pytest.mark.parametrize(
    "args, words",
    [
        (["--lm", "1"], "--lm: no such option"),
        (["--lmc", "8"], "--lmc 8: not a number from 0 to 7"),
        (["-p", "-1"], "-p -1: not a number from 0 to 15"),
        (["-s", "5s"], "-s 5s: not a number from 1 to 86400"),
        (["x"], "usage: muslin-sm"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_options_that_muslin_sm_refuses(muslin_programs, args, words):
    r = subprocess.run([muslin_programs / "muslin-sm", *args], capture_output=True, text=True)
    assert r.returncode == 2 and words in r.stderr, r.stderr
