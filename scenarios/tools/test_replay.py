# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A fabric replayed from a dump of ibnetdiscover, with its speeds, names, LIDs and routes; and topologies by hand.

    node002, node003 (2), MT25408 (2) -- Core "two" - rack 12
"""

import json
import pathlib
import re

import pytest
from muslin import free_port, wait_until
from test_console import console

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
DUMP = """
vendid=0x2c9
devid=0xc738
switchguid=0x10(10)
Switch	8 "S-0000000000000010"		# "Core "two" - rack 12" enhanced port 0 lid 7 lmc 0
[1]	"H-0000000000000020"[1](21) 		# "node002 mlx5_0" lid 12 4xFDR10
[2]	"H-0000000000000030"[1](31) 		# "node003 mlx5_0" lid 16 2xHDR
[3]	"H-0000000000000040"[1](41) 		# "node003 mlx5_1" lid 20 4x???
[4]	"H-0000000000000050"[1](51) 		# "MT25408 ConnectX" lid 24 4xQDR
[5]	"H-0000000000000060"[1](61) 		# "MT25408 ConnectX" lid 28 4xXDR
[6]	"S-0000000000000011"[1]		# "leaf" lid 3 4xNDR

vendid=0x2c9
devid=0xc738
switchguid=0x11(11)
Switch	4 "S-0000000000000011"		# "leaf" base port 0 lid 3 lmc 0
""" + "".join(
    f'\nvendid=0x2c9\ndevid=0x1003\ncaguid=0x{guid}\nCa	1 "H-00000000000000{guid}"		# "{name}"\n'
    f'[1]({guid[0]}1) 	"S-0000000000000010"[{i + 1}]		# lid {lid} lmc 2 "Core "two" - rack 12" lid 7 {rate}\n'
    for i, (guid, name, lid, rate) in enumerate(
        [
            ("20", "node002 mlx5_0", 12, "4xFDR10"),
            ("30", "node003 mlx5_0", 16, "2xHDR"),
            ("40", "node003 mlx5_1", 20, "4x???"),
            ("50", "MT25408 ConnectX", 24, "4xQDR"),
            ("60", "MT25408 ConnectX", 28, "4xXDR"),
        ]
    )
)


def topology(fabric, text, name="site.net"):
    path = fabric.folder / name
    path.write_text(text)
    path.chmod(0o644)
    return path


@pytest.fixture(scope="module")
def replayed(muslin_make_fabric):
    fabric = muslin_make_fabric("replay")
    yield fabric.up(DUMP, "--keep-lids")
    fabric.down()


def port(fabric, node, num=1):
    shown = json.loads(fabric.command("show", "--json", node))["nodes"][0]
    return next(p for p in shown["ports"] if p["num"] == num)


def route(fabric, a, b, num=1):
    return fabric.run("h1", "ibtracert", *(port(fabric, h, num)["lid"] for h in (a, b)), status=None)


@pytest.mark.parametrize(
    "name, guid",
    [
        ("node002", 0x20),
        ("node002 mlx5_0", 0x20),
        ("0x20", 0x20),
        ("0x0000000000000021", 0x20),
        ("H-0000000000000020", 0x20),
        ("node003 mlx5_1", 0x40),
        ("node003-mlx5_1", 0x40),
        ("H-0000000000000060", 0x60),
    ],
)
def test_names(replayed, name, guid):
    assert f"Node GUID: 0x{guid:016x}" in replayed.run(name, "ibstat")
    assert f"{guid:016x}" in replayed.command("show", name)
    fault = replayed.command("fault", "add", f"H-{guid:016x}", "drop", "nth=1").strip()
    assert f" {fault} " in replayed.command("fault", "clear", name)


def test_places_with_blanks(replayed):
    """Faults at a switch, whose name in the dump is its description, and at the description of a host."""
    name = 'Core "two" - rack 12'
    fault = replayed.command("fault", "add", f"{name}:1", "drop", "nth=1").strip()
    assert f" {fault} " in replayed.command("fault", "clear", f"{name}:1")
    fault = replayed.command("fault", "add", "node003 mlx5_1", "lose", "nth=1").strip()
    assert f" {fault} " in replayed.command("fault", "clear", "node003-mlx5_1")
    console(replayed, 'Error "node002 mlx5_0"[1] 50', 'Clear "node002 mlx5_0"[1]')
    assert json.loads(replayed.command("fault", "list", "--json")) == []


def test_switches_by_their_identifiers(replayed):
    """Of the file, by `show`, as a fault's place and as one end of a link."""
    for name in ("S-0000000000000010", "0x10", 'Core "two" - rack 12'):
        assert replayed.command("show", name).count("Active") == 6
    fault = replayed.command("fault", "add", "S-0000000000000010:1", "drop", "nth=1").strip()
    assert f" {fault} " in replayed.command("fault", "clear", "0x10:1")
    replayed.command("link", "S-0000000000000010:6", "down")
    assert port(replayed, "leaf")["state"] == "Down"
    replayed.command("link", "S-0000000000000011:1", "up")
    wait_until(lambda: port(replayed, "leaf")["state"] == "Active", 10, "the link")


def test_enhanced_port_0(replayed):
    """Each switch has the port 0 of the dump, in SwitchInfo and in what is printed, by us and by ibnetdiscover."""
    for printed in (replayed.command("show", "--topology"), replayed.run("node002", "ibnetdiscover")):
        assert '# "Core "two" - rack 12" enhanced port 0 lid 7 lmc 0' in printed
        assert '# "leaf" base port 0 lid 3 lmc 0' in printed
    for lid, enhanced in (7, 1), (3, 0):
        assert re.search(rf"EnhancedPort0:\.+{enhanced}$", replayed.run("node002", "smpquery", "si", lid), re.M)


def test_remarks_in_a_dump(new_fabric):
    """A cable more and disabled ports, by names and by identifiers of the file, to which ibnetdiscover is blind."""
    remarks = [
        "cable S-0000000000000010:7 leaf:2 2xNDR delay 25ns",
        "cable leaf:3 S-0000000000000010:8 disabled",
        'disable "node003-mlx5_0":1',
        "disable H-0000000000000060:1",
    ]
    new_fabric.up(DUMP + "".join(f"#muslin {r}\n" for r in remarks))
    assert (port(new_fabric, "leaf", 2)["speed"], port(new_fabric, "leaf", 2)["width"]) == ("NDR", 2)
    assert port(new_fabric, "leaf", 2)["state"] == "Active"
    for node, num in ("leaf", 3), ("0x30", 1), ("0x60", 1):
        assert (port(new_fabric, node, num)["state"], port(new_fabric, node, num)["phys_state"]) == ("Down", "Disabled")
    for switch, num in ("leaf", 3), ("0x10", 8):
        new_fabric.run("node002", "ibportstate", port(new_fabric, switch, 0)["lid"], num, "enable")
    wait_until(lambda: port(new_fabric, "leaf", 3)["state"] == "Active", 20, "the enabled cable")


@pytest.mark.parametrize(
    "remark, words",
    [
        ("cable S-0000000000000010:6 leaf:2", "is "),
        ("cable S-0000000000000010:7 nope:2", 'there is no node "nope"'),
        ("disable node002", '"node002" is not a port: expected NODE:PORT'),
        ("disable H-0000000000000060:2", "has ports 1 to 1, not 2"),
    ],
)
def test_wrong_remarks_in_a_dump(new_fabric, remark, words):
    path = topology(new_fabric, DUMP + f"#muslin {remark}\n")
    out = new_fabric.command("up", path, status=1)
    assert f"site.net:{len(path.read_text().splitlines())}: " in out and words in out


def test_names_that_are_not_one(replayed):
    assert "0x0000000000000030, 0x0000000000000040" in replayed.command("run", "node003", "true", status=1)
    assert "more than one node" in replayed.command("fault", "add", "node003", "drop", status=1)
    assert "no such place" in replayed.command("fault", "clear", "nope", status=1)


@pytest.mark.parametrize(
    "node, width, speed",
    [("node002", 4, "FDR10"), ("0x30", 2, "HDR"), ("0x40", 4, "SDR"), ("0x50", 4, "QDR"), ("0x60", 4, "XDR")],
)
def test_speeds(replayed, node, width, speed):
    p = port(replayed, node)
    assert (p["width"], p["speed"]) == (width, speed)


def test_lids_and_lmc_are_the_dumps(replayed):
    assert [(port(replayed, n)["lid"], port(replayed, n)["lmc"]) for n in ("0x20", "0x30", "0x60")] == [
        (12, 2),
        (16, 2),
        (28, 2),
    ]
    assert port(replayed, "leaf", 0)["lid"] == 3 and port(replayed, "Core", 0)["lid"] == 7


def test_the_tools_are_quiet(replayed):
    """
    MLNXExtendedPortInfo is supported: no tool reports an error, and FDR10 is distinguished from QDR at both ends.
    """
    out = replayed.run("node002", "sh", "-c", "ibnetdiscover 2>&1")
    assert "bad status" not in out and len(re.findall("4xFDR10", out)) == 2 and "4xQDR" in out
    assert '# "Core "two" - rack 12"' in out
    out = replayed.run("node002", "sh", "-c", "iblinkinfo 2>&1; ibqueryerrors 2>&1; ibhosts 2>&1")
    assert "bad status" not in out and "FDR10" in out
    assert "LinkSpeedActive:.................0x01" in replayed.run("node002", "smpquery", "mepi", "12", "1")


def links(text):
    """Each port's line of a topology, with normalised blanks, and without speeds that old tools do not support."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.startswith("[")]
    return {re.sub(r"\) ?", ") ", re.sub(r" 4x(XDR|QDR)$", "", line)) for line in lines}


def test_show_topology_is_ibnetdiscovers(replayed):
    mine, theirs = replayed.command("show", "--topology"), replayed.run("node002", "ibnetdiscover")
    assert links(mine) == links(theirs) and len(links(mine)) == 12


def test_opensm_is_quiet(new_fabric):
    """With FDR10, which OpenSM queries at all nodes: no ERR of attribute 0xff90; it keeps the LIDs of the ports."""
    new_fabric.up(DUMP, "--no-sm", "--keep-lids").sweep("node002")
    wait_until(lambda: "MASTER" in new_fabric.run("0x20", "sminfo", status=None), 30, "OpenSM's subnet")
    assert " ERR " not in new_fabric.sm_log.read_text(errors="replace")  # unbuffered
    assert port(new_fabric, "node002")["speed"] == "FDR10" and port(new_fabric, "node002")["lid"] == 12


@pytest.mark.parametrize(
    "rate, words",
    [("8xFOO", 'bad.net:2: "8xFOO" is not a rate'), ("3xHDR", 'bad.net:2: "3xHDR"'), ("w=9", 'bad.net:2: "w=9"')],
)
def test_wrong_rates_are_refused(new_fabric, rate, words):
    text = f'Switch 4 "s"\n[1] "a"[1] {"" if "=" in rate else "# lid 0 "}{rate}\nCa 1 "a"\n'
    assert words in new_fabric.command("up", topology(new_fabric, text, "bad.net"), status=1)


def test_assumed_rates_are_reported(new_fabric):
    text = 'Switch 4 "s"\n[1] "a"[1]\n[2] "b"[1] # "b" lid 1 4x???\nCa 1 "a"\nCa 1 "b"\n'
    out = new_fabric.command("up", topology(new_fabric, text))
    assert re.search(r"^muslin: warning: .*site.net:2: port 1 has no width and speed: it is taken as 4xHDR$", out, re.M)
    assert re.search(r'^muslin: warning: .*site.net:3: the speed of "4x\?\?\?"', out, re.M), out


def test_cables_by_hand(new_fabric):
    """Rates and a disabled port by hand; ibportstate enables it."""
    new_fabric.up(
        "switch a 4\nhost x ports 2\nhost y ports 1\ncable a:1 x:1 4xNDR\ncable a:2 y:1 2xXDR\ncable a:3 x:2 4xEDR\n"
        "disable a:3\n"
    )
    assert "3  Down        Disabled" in new_fabric.command("show", "a")
    assert port(new_fabric, "x")["rate"] == 400 and port(new_fabric, "y")["speed"] == "XDR"
    new_fabric.run("x", "ibportstate", port(new_fabric, "a", 0)["lid"], 3, "enable")
    wait_until(lambda: port(new_fabric, "a", 3)["state"] == "Active", 10, "the enabled port")
    assert port(new_fabric, "a", 3)["speed"] == "EDR"


def test_static_forwarding_tables(new_fabric):
    """Switches have the output of dump_fts with one changed route; where that would fail, the manager's route."""
    new_fabric.up("leafs 2 spines 2 hosts 2")
    tables = new_fabric.run("h1", "dump_fts")
    before = route(new_fabric, "h1", "h3")
    h3 = port(new_fabric, "h3")["lid"]
    new_fabric.down()
    old, new, spine = (3, 4, "spine2") if "spine1" in before else (4, 3, "spine1")
    line = f"0x{h3:04x} {old:03d} : (Channel"
    first, leaf1 = tables.split("(leaf1):")
    assert spine not in before and line in leaf1
    changed = first + "(leaf1):" + leaf1.replace(line, f"0x{h3:04x} {new:03d} : (Channel", 1)
    new_fabric.up("leafs 2 spines 2 hosts 2", "--lfts", topology(new_fabric, changed, "tables"))
    assert "routing file" in new_fabric.command("show")
    assert spine in route(new_fabric, "h1", "h3")
    new_fabric.command("fault", "add", spine, "kill")

    def goes_round():
        out = route(new_fabric, "h1", "h3")
        return "From" in out and spine not in out

    wait_until(goes_round, 10, "the way round")


def test_wrong_forwarding_tables(new_fabric):
    path = topology(new_fabric, "Unicast lids [0x0-0x1] of switch Lid 1 guid 0x1 (x):\n0x0001 banana\n", "tables")
    assert "tables:2: an entry is LID and port" in new_fabric.command("up", "--lfts", path, status=1)


def test_packet_life(new_fabric):
    """PacketLifeTime of paths, which determines the time-outs of connections."""
    new_fabric.up("leafs 1 hosts 2", "--packet-life", "12")
    assert re.search(r"pkt_life\.*0x8c", new_fabric.run("h1", "saquery", "PR", "--src-to-dst", "1:3"), re.I)


def test_rails(new_fabric):
    """Port r of each host is on the leaf of rail r: one switch on the path within a unit, three to the other unit."""
    new_fabric.up(topology(new_fabric, (EXAMPLES / "rails.topo").read_text()))
    assert len(re.findall("^Switch", new_fabric.run("h1", "ibnetdiscover"), re.M)) == 20
    near, far = route(new_fabric, "h1", "h2", 3), route(new_fabric, "h1", "h5", 3)
    assert '"leaf3"' in near and "spine" not in near
    assert '"leaf3"' in far and "spine" in far and '"leaf11"' in far
    assert port(new_fabric, "h1", 8)["rate"] == 400


def test_dragonfly(new_fabric):
    """Every pair of groups has one global link."""
    new_fabric.up(topology(new_fabric, (EXAMPLES / "dragonfly.topo").read_text()))
    text = new_fabric.run("h1", "ibnetdiscover")
    assert len(re.findall("^Switch", text, re.M)) == 36 and len(re.findall("^Ca", text, re.M)) == 72
    shown = json.loads(new_fabric.command("show", "--json"))
    group = {n["name"]: (int(n["name"][2:]) - 1) // 4 for n in shown["nodes"] if n["type"] == "switch"}
    pairs = [
        tuple(sorted((group[n["name"]], group[p["peer"]])))
        for n in shown["nodes"]
        if n["name"] in group
        for p in n["ports"]
        if p.get("peer") in group and group[p["peer"]] != group[n["name"]]
    ]
    assert len(pairs) == 2 * len(set(pairs)) == 9 * 8
    assert '"h72"' in route(new_fabric, "h1", "h72")


def test_rates_enforced_live(new_fabric):
    """1xSDR carries 2 Gb/s of data, 238 MiB/s; two cables of 5 ms and a switch are 10 ms in each direction."""
    new_fabric.up("leafs 1 hosts 2\nspeed 1xSDR rates enforced propagation 5ms\n")
    common = ["-F", "-p", free_port()]
    latency, bandwidth = ["ib_write_lat", "-n", "20", *common], ["ib_write_bw", "-n", "1000", *common]
    out = new_fabric.pair(("h1", *latency), ("h2", *latency, "localhost"))[1]
    assert 9990 < float(re.search(r"^\s*2\s+20\s+([\d.]+)", out, re.M)[1]) < 15000  # the fastest of 20
    new_fabric.down()
    new_fabric.up("leafs 1 hosts 2\nspeed 1xSDR rates enforced\n")
    out = new_fabric.pair(("h1", *bandwidth), ("h2", *bandwidth, "localhost"))[1]
    assert 5 < float(re.search(r"^\s*65536\s+1000\s+[\d.]+\s+([\d.]+)", out, re.M)[1]) < 238
