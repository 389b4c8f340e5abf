# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The embedded subnet manager with partitions, topologies and changes, checked by stock tools.

    h1 h2 h3 h4 -- leaf1 --+-- spine1 --+-- leaf2 -- h5 h6 h7 h8
                           +-- spine2 --+
"""

import re

import pytest
from muslin import free_port, wait_until


def guid(fabric, host):
    return fabric.port(host)["guid"]


def pkeys(fabric, host):
    out = fabric.run(host, "smpquery", "pkeys", str(fabric.port(host)["lid"]))
    return re.findall(r"0x(\w{4})", out.split(":", 1)[1])


def test_wrong_partitions_name_the_line(new_fabric):
    path = new_fabric.folder / "partitions.conf"
    path.write_text("Default=0x7fff, ipoib : ALL=full;\nBlue=0x8zz9 : ALL;\n")
    assert "partitions.conf:2" in new_fabric.command("up", "--partitions", path, status=1)


def test_members_of_partitions_are_ports(new_fabric):
    """`muslin show` prints their GUIDs; the log names a member by the GUID of a node, which would be none."""
    path = new_fabric.folder / "partitions.conf"
    shown = new_fabric.up("leafs 1 hosts 2").command("show", "h1")
    (port,) = re.findall(r"^ +1 +Active +LinkUp +4xHDR 200 +leaf1:1 +(0x\w{16})$", shown, re.M)
    assert port == guid(new_fabric, "h1")
    nodes = {h: new_fabric.node(h)["guid"] for h in ("h1", "h2")}
    path.write_text(f"Default=0x7fff : ALL=full;\nBlue=0x8002 : {port}=full, {nodes['h2']}=full;\n")
    new_fabric.command("partitions", path)
    assert pkeys(new_fabric, "h1")[:2] == ["ffff", "8002"] and pkeys(new_fabric, "h2")[:2] == ["ffff", "0000"]
    warning = f"partition Blue: h2 {nodes['h2']} is no port but a node: use the GUIDs of its ports\n"
    assert new_fabric.daemon_log().count(warning) == 1 and nodes["h1"] not in new_fabric.daemon_log()


def test_partitions_without_a_file_or_a_manager(new_fabric):
    new_fabric.up("leafs 1 hosts 2")
    assert "use `muslin partitions FILE`" in new_fabric.command("partitions", status=1)
    new_fabric.fault("sm", "kill", expect=False)
    assert "no embedded subnet manager" in new_fabric.command("partitions", status=1)


def test_partitions_separate(new_fabric):
    """h1 and h5 are blue, h2 is a limited member; h6 is no member and cannot communicate with that P_Key."""
    fabric = new_fabric.up(None, "--no-sm")
    guids = {h: guid(fabric, h) for h in ("h1", "h2", "h5")}
    fabric.down()
    path = fabric.folder / "partitions.conf"
    path.write_text(
        "Default=0x7fff, ipoib : ALL=full;\n"
        f"Blue=0x8002 : {guids['h1']}=full, {guids['h5']}=full, {guids['h2']}=limited;\n"
    )
    fabric.up(None, "--partitions", path)
    assert pkeys(fabric, "h1")[:3] == ["ffff", "8002", "0000"]
    assert pkeys(fabric, "h2")[:3] == ["ffff", "0002", "0000"]
    assert pkeys(fabric, "h6")[:2] == ["ffff", "0000"]
    args = ["ib_send_bw", "-n", "50", "--pkey_index=1", "-p", free_port()]
    fabric.pair(("h1", *args), ("h5", *args, "localhost"))
    lids = [str(fabric.port(h)["lid"]) for h in ("h1", "h5", "h6")]
    out = fabric.run("h1", "saquery", "PR", "--slid", lids[0], "--dlid", lids[1], "--pkey", "0x8002")
    assert "0x8002" in out.lower()
    out = fabric.run("h1", "saquery", "PR", "--slid", lids[0], "--dlid", lids[2], "--pkey", "0x8002", status=None)
    assert "0x8002" not in out.lower()


def test_partitions_of_the_topology(new_fabric):
    """The topology names the file, unless the command line does."""
    path = new_fabric.folder / "partitions.conf"
    path.write_text("Default=0x7fff, ipoib : ALL=full;\nBlue=0x8002 : ALL=full;\n")
    fabric = new_fabric.up(f"leafs 1 spines 1 hosts 2\npartition-file {path}\n")
    assert pkeys(fabric, "h1")[:3] == ["ffff", "8002", "0000"]


@pytest.mark.parametrize(
    "topology, engine",
    [("ring 6 hosts 2\n", "updn"), ("fattree k=4 levels=3\n", "minhop"), ("leafs 3 spines 2 hosts 2\n", "minhop")],
    ids=["ring", "fattree", "leafs"],
)
def test_topologies_come_up(new_fabric, topology, engine):
    """Every pair of hosts has a path that ibtracert can follow."""
    fabric = new_fabric.up(topology)
    assert fabric.show()["manager"]["routing"] == engine
    hosts = [n for n in fabric.show()["nodes"] if n["type"] == "ca"]
    for other in hosts[1:]:
        out = fabric.run("h1", "ibtracert", str(hosts[0]["lid"]), str(other["lid"]))
        assert f'"{other["name"]}"' in out.splitlines()[-1]


def test_lmc(new_fabric):
    """Four LIDs per host; paths to them use different spines, and LIDs do not change with a link."""
    fabric = new_fabric.up(None, "--lmc", "2")
    port = fabric.port("h5")
    assert port["lmc"] == 2 and port["lid"] % 4 == 0
    own = str(fabric.port("h1")["lid"])
    spines = {re.search(r"spine\d", fabric.run("h1", "ibtracert", own, str(port["lid"] + i)))[0] for i in range(4)}
    assert spines == {"spine1", "spine2"}
    fabric.command("link", "h5:1", "down")
    wait_until(lambda: fabric.show()["manager"]["nodes"] == 11, 30, "the sweep without h5")
    fabric.command("link", "h5:1", "up")
    fabric.wait_active()
    assert fabric.port("h5")["lid"] == port["lid"]


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "umad"])
def test_the_managers_cable_is_swapped(new_fabric, embedded):
    """The manager's host at another switch: it sweeps at once, and not when the next light sweep is due, in an hour."""
    sweep = ["--sweep", "3600"]
    fabric = new_fabric.up(None, *(sweep if embedded else ["--no-sm"]))
    if not embedded:
        fabric.start("h1", fabric.muslin.parent / "muslin-sm", *sweep).expect("SUBNET UP")
        fabric.wait_active()
    fabric.fault("h1", "swap", with_="h5", expect=False)
    wait_until(lambda: fabric.port("h1")["peer"] == "leaf2" and fabric.port("h1")["state"] == "Active", 60, "h1's port")
    wait_until(lambda: all(fabric.port(f"h{i}")["state"] == "Active" for i in range(1, 9)), 60, "all ports")
    out = fabric.run("h1", "ibtracert", *(str(fabric.port(h)["lid"]) for h in ("h1", "h5")))
    assert [n for n in ("leaf2", "spine", "leaf1") if f'"{n}' in out] == ["leaf2", "spine", "leaf1"], out


def test_qos_tables(new_fabric):
    """With --qos each SL has its VL, and the arbitration tables have all VLs."""
    fabric = new_fabric.up(None, "--qos")
    lid = str(fabric.node("leaf1")["lid"])
    lanes = re.findall(r"\|\s*(\d+)", fabric.run("h1", "smpquery", "sl2vl", lid, "5").splitlines()[-2])
    assert len(set(lanes)) > 1, lanes
    out = fabric.run("h1", "smpquery", "vlarb", lid, "5")
    assert re.search(r"WEIGHT:.*0x40", out), out


def test_sm_host(new_fabric):
    fabric = new_fabric.up(None, "--sm-host", "h3")
    assert fabric.show()["sm"]["host"] == "h3"
    assert "h99" in fabric.command("up", "--sm-host", "h99", "--name", "other", status=1)


def test_routing_is_named(new_fabric):
    assert "minhop" in new_fabric.command("up", "--routing", "magic", status=1)


def test_a_large_fat_tree(new_fabric):
    """A thousand hosts, within seconds."""
    fabric = new_fabric.up("fattree k=16 levels=3\n")
    manager = fabric.show()["manager"]
    assert manager["up"] and manager["nodes"] == 1344
    assert manager["sweep_seconds"] < 20
