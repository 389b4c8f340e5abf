# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""OpenSM's own test program for subnet administration, against ours."""

import pytest


@pytest.fixture(scope="module")
def inventory(shared_fabric):
    """What osmtest found, and checks against."""
    path = shared_fabric.folder / "osmtest.dat"
    shared_fabric.run("h2", "osmtest", "-f", "c", "-i", path, "-l", path.with_suffix(".log"))
    return path


FLOWS = {
    "all": "a",
    "inventory": "v",
    "services": "s",
    "events": "e",
    "stress": "f",
    "groups": "m",
    "qos": "q",
    "traps": "t",
}


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS.keys())
def test_osmtest(shared_fabric, inventory, flow):
    log = shared_fabric.folder / f"osmtest-{flow}.log"
    out = shared_fabric.run("h2", "osmtest", "-f", flow, "-i", inventory, "-l", log, timeout=120, status=None)
    assert "PASS" in out, log.read_text(errors="replace")[-3000:]
