# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""OpenSM's own test program for subnet administration, against muslin's."""

import errno
import re

import pytest


@pytest.fixture(scope="module")
def inventory(shared_fabric):
    """The inventory file of osmtest, which it checks later."""
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


# The default fabric: 8 hosts and 4 switches with 12 links; leafs have 6 ports, spines 2.
RECORDS = {
    "NR": ("NodeRecord dump", 12),
    "PIR": ("PortInfoRecord dump", 8 + 2 * 7 + 2 * 3),
    "SL2VL": ("SL2VLTableRecord dump", 8 + 2 * 7 * 7 + 2 * 3 * 3),
    "VLAR": ("VLArbTableRecord dump", 4 * (8 + 2 * 7 + 2 * 3)),
    "LR": ("LinkRecord dump", 2 * 12),
    "PR": ("PathRecord dump", 12 * 12),
    "LFTR": ("LFT Record dump", 4),
    "MFTR": ("MFT Record dump", 4),
    "GIR": ("GUIDInfo Record dump", 8 * 2 + 4),  # blocks of 8 GUIDs: a host has 16, a switch one
    "SWIR": ("SwitchInfoRecord dump", 4),
    "SMIR": ("SMInfoRecord dump", 1),
    "CPI": ("SA ClassPortInfo", 1),
}


@pytest.mark.parametrize("query", RECORDS)
def test_saquery_finds_all_records(shared_fabric, query):
    title, count = RECORDS[query]
    assert shared_fabric.run("h2", "saquery", query).count(title) == count


def test_agent_with_its_own_rmpp(shared_fabric, program):
    """12 records of 112 bytes are 7 segments, each with 20 bytes of SA header and at most 200 of the records."""
    said = shared_fabric.run("h2", "/usr/bin/python3", program("umad_register2.py"))
    assert said.splitlines() == [f"{errno.EINVAL} 1", f"7 {7 * 20 + 12 * 112}"]


def test_saquery_by_component(shared_fabric):
    lid = {n: shared_fabric.port(n)["lid"] for n in ("h1", "h2", "h5")}

    def query(*args):
        return shared_fabric.run("h2", "saquery", *map(str, args))

    assert query("-L", "h5").split() == [str(lid["h5"])]
    assert query("-O", lid["h5"]).split() == ["h5"]
    assert query("NR", 4000) == ""
    assert query("PIR", f"{lid['h5']}/1").count("PortInfoRecord dump") == 1
    assert query("LR", lid["h5"]).count("LinkRecord dump") == 1
    assert query("LFTR", f"{lid['h5']}/0") == ""  # a host does not forward
    assert f"EndPortLid..............{lid['h1']}\n" in query("-s")
    path = query("--src-to-dst", f"{lid['h1']}:{lid['h5']}")
    assert re.search(rf"dlid\.+{lid['h5']}\n", path) and re.search(rf"slid\.+{lid['h1']}\n", path)
    ends = "PR", "--slid", lid["h1"], "--dlid", lid["h5"]
    assert query(*ends, "--pkey", "0x8001") == ""
    assert re.search(r"mtu\.+0x83\n", query(*ends, "--mtu", "0x83"))  # exactly 1024
    assert query(*ends, "--mtu", "0x05") == ""  # more than 4096
    assert re.search(r"rate\.+0x83\n", query(*ends, "--rate", "0x83"))  # exactly 10 Gb/s


def test_saquery_shows_members_and_keys_to_trusted_requesters(shared_fabric):
    def query(*args, **kwargs):
        return shared_fabric.run("h2", "saquery", *args, **kwargs)

    assert "MGID....................ff12:401b:ffff::ffff:ffff\n" in query("-g")
    assert "(h5)" not in query("-m", "0xC000")
    members = query("--smkey", "1", "-m", "0xC000")
    assert all(f"(h{i})" in members for i in range(1, 9))
    assert "REQ_DENIED" in query("PKTR", status=None)
    assert query("--smkey", "1", "PKTR").count("PKeyTableRecord dump") == 12
    assert re.search(r"SM_Key\.+0x0{16}\n", query("SMIR"))
    assert "timed out" in query("--smkey", "9", "-t", "200", "CPI", status=None)


def test_all_pairs_of_a_large_subnet_are_refused(new_fabric):
    """
    1344 ports have 1.8 million paths: neither a query for them nor one for an unused P_Key delays other requesters.
    """
    fabric = new_fabric.up("fattree k=16 levels=3\n")
    for more in [], ["--pkey", "0x8001"]:
        assert "NO_RESOURCES" in fabric.run("h1", "saquery", "PR", *more, status=None)


@pytest.mark.parametrize("direction, nth", [("in", 3), ("in", 20), ("out", 2)], ids=["segment", "late segment", "ack"])
def test_a_lost_segment_of_a_table_is_sent_again(shared_fabric, direction, nth):
    """All paths are dozens of segments; h2 loses one, or an acknowledgement."""
    lost = shared_fabric.fault("h2", "drop", class_="SA", dir=direction, nth=nth)
    paths = shared_fabric.run("h2", "saquery", "-t", "10000", "PR")
    lost.clear()
    assert lost.hits == 1 and paths.count("PathRecord dump") == 12 * 12
