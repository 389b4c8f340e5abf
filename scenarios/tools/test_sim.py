# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
muslin-sim: fabric, subnet manager and traffic under a virtual clock.

    h1-h4 -- leaf1 --+-- spine1 --+-- leaf2 -- h5-h8
                     +-- spine2 --+
"""

import pathlib
import re
import subprocess

import pytest

TREE = pathlib.Path(__file__).parents[2]


def test_the_stages_of_the_bring_up(sim):
    """All SMPs and seconds until the subnet is up are of a stage; a light sweep of a port and six switches follows."""
    r = sim("--seconds", 1, "leafs 4 spines 2 hosts 4 propagation 50us")
    stages = {x["stage"]: x for x in r["bring_up_stages"]}
    assert list(stages) == ["discovery", "routes", "switches", "LFTs", "MFTs", "ports", "activation"]
    assert sum(x["smps"] for x in stages.values()) == r["smps"] - 7 and not stages["routes"]["smps"]
    assert sum(x["seconds"] for x in stages.values()) == pytest.approx(r["bring_up_seconds"], rel=0.02)
    assert stages["LFTs"]["smps"] == 6  # a block of each switch
    assert stages["activation"]["seconds"] > 4 * 50e-6
    assert r["bring_up_busiest_switch"]["name"] == "leaf1" and r["busiest_switch"]["packets"] > 50


def test_everything_arrives(sim):
    r = sim("--seconds", 100)
    assert r["active_hosts"] == r["hosts"] == 8 and r["heavy_sweeps"] == 1 and r["light_sweeps"] >= 9
    assert 7000 < r["sent"] == r["arrived"] and r["out_of_order"] == 0


def test_the_time_between_sweeps(sim):
    """Light sweeps of a second."""
    assert [sim("--seconds", 1, "--sweep", s)["light_sweeps"] for s in (0.05, 0.2, 0.5)] == [20, 6, 3]


FAULTS = ["--fault", "all drop prob=5% opcode=uc", "--fault", "h3 reorder prob=30% depth=2 time=1s"]


def drop_times(r):
    """Those of this machine."""
    for key in ("real_seconds", "times_real_time", "cpu_seconds", "events_per_second"):
        del r[key]
    for stage in r["bring_up_stages"]:
        del stage["cpu_seconds"]


def test_the_same_seed_is_the_same_run(sim):
    """Packet by packet, with random losses, order and traffic; another seed is another run."""
    runs = [sim("--seconds", 50, "--seed", s, *FAULTS) for s in (7, 7, 8)]
    for r in runs:
        drop_times(r)
        assert r["out_of_order"] > 0 and all(f["hits"] > 0 for f in r["faults"])
    assert runs[0] == runs[1]
    assert runs[0]["digest"] != runs[2]["digest"]


SPLIT = "leafs 2 spines 2 hosts 4"
SHARDS = f"""{SPLIT}
shard one listen /tmp/trunk.sock nodes leaf1 spine1 h[1-4]
shard two sm nodes leaf2 spine2 h[5-8]
"""


def comparable(sim, *args):
    r = sim("--seconds", 20, "--seed", 7, *FAULTS, *args)
    drop_times(r)
    assert r["active_hosts"] == 8 and r["arrived"] > 0 and all(f["hits"] > 0 for f in r["faults"])
    return r


def dump(fabric):
    """The fabric in ibnetdiscover's format, as text of each node."""
    blocks = fabric.command("show", "--topology").split("\n\n")
    return {re.search('# "(.*?)"', b)[1]: f"{b}\n" for b in blocks if "guid=" in b}


def test_a_topology_in_shards_is_the_whole(sim, tmp_path):
    """Lines shard change no packet."""
    path = tmp_path / "shards"
    path.write_text(SHARDS)
    assert comparable(sim, path) == comparable(sim, SPLIT)


def test_trunks_of_two_topologies_are_cables(sim, tmp_path, muslin_new_fabric):
    """A subnet in one file, and cut into two, whose trunks are its cables: the same run, packet by packet."""
    nodes = dump(muslin_new_fabric.up("leafs 2 spines 2 hosts 4", "--no-sm"))
    assert len(nodes) == 12
    one = ["leaf1", "spine1", "spine2", "h1", "h2", "h3", "h4"]
    two = [n for n in nodes if n not in one]
    whole, first, second = (tmp_path / n for n in ("whole", "first", "second"))
    whole.write_text("\n".join(nodes[n] for n in one + two))
    cut = [f"spine{i}:2" for i in (1, 2)], [f"leaf2:{4 + i}" for i in (1, 2)]
    for path, names, ports, how in ((first, one, cut[0], "listen"), (second, two, cut[1], "to")):
        text = "\n".join(nodes[n] for n in names)
        for port in ports:
            name, num = port.split(":")
            text, n = re.subn(rf'(?s)(# "{name}".*?)\n\[{num}\][^\n]*', r"\1", text, count=1)
            assert n == 1
        trunks = (f"#muslin trunk {p} {how} /tmp/trunk-{i}\n" for i, p in enumerate(ports))
        path.write_text(f"{text}\n{''.join(trunks)}")
    assert comparable(sim, first, second) == comparable(sim, whole)
    said = sim(first, status=1)
    assert re.search(r"first:\d+: no trunk of the other given topologies is the other end of spine1:2", said), said


def test_a_spine_fails_for_a_while(sim):
    """Packets in flight are lost, and none after the manager has routed by the other spine."""
    r = sim("--seconds", 100, "--fault", "30:spine1 kill for=20s")
    assert r["traps"] > 0 and r["heavy_sweeps"] >= 3
    assert 0.99 * r["sent"] < r["arrived"] <= r["sent"]


def test_a_manager_without_responses(sim):
    """Without SMPs no port comes up; when they pass, all do."""
    r = sim("--seconds", 60, "--fault", "h1 drop class=SubnDR dir=in")
    assert r["active_hosts"] < 8 and r["arrived"] == 0 and r["faults"][0]["hits"] > 0
    assert sim("--seconds", 60, "--fault", "h1 drop class=SubnDR dir=in count=30")["active_hosts"] == 8


def test_much_faster_than_time(sim, tmp_path):
    """More than a hundred hosts, swept every ten seconds: the processor needs less than a thousandth of that time."""
    topology = tmp_path / "tree"
    topology.write_text("fattree k=8 levels=3\n")
    r = sim("--seconds", 1000, "--traffic", 0.1, topology)
    assert r["active_hosts"] == 128 and r["light_sweeps"] >= 95
    assert r["cpu_seconds"] < 1 and r["times_real_time"] > 20  # the latter also beside other programs


# A packet of 64 bytes has LRH, BTH, ICRC and VCRC besides: 90 bytes, 3.6 ns at the 200 Gb/s of 4xHDR's data.
CABLE, SWITCH, PACKET = 25e-9, 130e-9, 3.6e-9


@pytest.mark.parametrize(
    "topology, expected",
    [
        ("leafs 1 hosts 2", 2 * CABLE + SWITCH + PACKET),
        ("leafs 2 spines 1 hosts 1", 4 * CABLE + 3 * SWITCH + PACKET),
        ("leafs 1 hosts 2 speed 1xSDR", 2 * CABLE + SWITCH + 100 * PACKET),
        ("leafs 1 hosts 2 propagation 1us switch-latency 500ns", 2.5e-6 + PACKET),
        ("switch s 4 host a ports 1", None),
    ],
)
def test_latency_is_that_of_cables_switches_and_bytes(sim, tmp_path, topology, expected):
    """
    Switches cut through, so the transmission time counts once, at the last link; a cable with its own delay uses that.
    """
    if expected is None:
        path = tmp_path / "by-hand"
        path.write_text(
            "switch s 4\nhost a ports 1\nhost b ports 1\n"
            "cable s:1 a:1 4xHDR delay 2us\ncable s:2 b:1 4xEDR delay 3us\n"
        )
        topology, expected = path, 5e-6 + SWITCH + 2 * PACKET  # in either direction at EDR, the slower one
    r = sim("--seconds", 1, "--traffic", 100, topology)
    assert r["arrived"] > 100
    for key in ("p50", "p99", "max"):
        assert r["latency"][key] == pytest.approx(expected, abs=4e-9), key


def test_a_link_carries_its_rate_and_no_more(sim):
    """
    Seven hosts at half their rates to one: its link is full, carries the data rate of 4xHDR, and the hosts' queues
    fill.
    """
    r = sim("--seconds", 0.005, "--load", 0.5, "--size", 2048, "--pattern", "incast:h1")
    assert 197 < r["delivered_gbps"] < 200.1
    busiest = r["links"]["busiest"][0]
    assert busiest["port"] == "leaf1:1" and busiest["to"] == "h1" and 0.99 < busiest["utilisation"] < 1.001
    assert r["refused"] > 0 and r["xmit_wait"] > 0 and r["latency"]["p99"] > r["latency"]["p50"] > 1e-5
    free = sim("--seconds", 0.005, "--load", 0.05, "--size", 2048, "--pattern", "incast:h1")
    assert free["latency"]["p50"] < 2e-6 and free["refused"] == 0 and free["fairness"] > 0.95


def test_the_plan_of_large_subnets(muslin_programs):
    """ci/scale: what its predictions have in common with the simulation, for 100 and for 1,024 machines."""
    out = subprocess.run([TREE / "ci/scale", muslin_programs], capture_output=True, text=True, check=True).stdout
    trips = re.findall(r"its round trips +([\d.]+) ms +([\d.]+) ms", out)
    packets = re.findall(r"from each host +(\d+) +(\d+)", out)
    assert len(trips) == len(packets) == 2, out
    for simulated, predicted in trips:
        assert 0.5 < float(simulated) / float(predicted) < 1.5, out
    for simulated, predicted in packets:
        assert float(simulated) == pytest.approx(float(predicted), rel=0.05), out
    stages = {name: int(smps) for name, smps in re.findall(r"^  (\w+) +(\d+) .*ms$", out, re.M)}
    assert stages.pop("all") == sum(stages.values()) and stages["discovery"] > stages["LFTs"] > 0, out


def test_patterns(sim, tmp_path):
    """Destinations of the packets: each pattern by the links of the hosts that it loads."""

    def loads(pattern, *args):
        r = sim("--seconds", 0.002, "--load", 0.1, "--size", 1024, "--pattern", pattern, *args)
        assert r["arrived"] > 0 and r["pattern"] == pattern
        return {x["to"]: x["utilisation"] for x in r["links"]["busiest"] if x["to"].startswith("h")}

    for pattern in ("random", "all-to-all", "permutation", "shift:3"):
        assert len(loads(pattern)) == 8, pattern
    assert max(loads("permutation").values()) < 0.12 and max(loads("all-to-all").values()) < 0.12
    assert set(loads("incast:h3,h5")) == {"h3", "h5"}
    hot = loads("hotspot:50%:h2")
    assert hot["h2"] > 3 * max(v for k, v in hot.items() if k != "h2")
    flows = tmp_path / "flows"
    flows.write_text("# src dst\nh1 h5 load=0.5 size=2048\nh2 h5 rate=100000 sl=3 start=0.001 end=0.0015\n")
    by_file = loads(f"file:{flows}")
    assert set(by_file) == {"h5"} and 0.45 < by_file["h5"] < 0.6
    flows.write_text("h1 h5 rate=5000\n")
    assert sim("--seconds", 0.002, "--load", 0.5, "--pattern", f"file:{flows}")["sent"] == 10
    for line, words in [("h1 h9 load=1", ": h9: there is no such host"), ("h1 h5 size=19", ": size=19: expected rate="),
                        ("h1 h5 load=0.5 rate=7", ": rate= and load= exclude each other")]:
        flows.write_text(f"h1 h5\n{line}\n")
        assert "flows:2" + words in sim("--pattern", f"file:{flows}", status=1)


def test_virtual_lanes_are_independent(sim):
    """Two service levels are two VLs, each with its own latencies."""
    r = sim("--seconds", 0.002, "--load", 0.3, "--sl", "0,1", "--size", 1024)
    assert [v["vl"] for v in r["vls"]] == [0, 1]
    assert sum(v["packets"] for v in r["vls"]) == r["arrived"]
    assert all(v["p50"] > 0 and v["bytes"] > 0 for v in r["vls"])


def test_reconvergence(sim, tmp_path):
    """Each failure and each repair has the time until the manager has set new routes; the page has the plots."""
    page = tmp_path / "page.html"
    r = sim("--seconds", 2, "--traffic", 5000, "--fault", "0.5:spine1 kill for=500ms", "--html", page)
    events = r["reconvergence"]
    assert [(e["kind"], round(e["at"], 3)) for e in events] == [("failure", 0.5), ("repair", 1.0)]
    assert all(0 < e["reconvergence_seconds"] < 0.1 and e["ports"] == 4 for e in events)
    links = {f"spine1:{n}" for n in (1, 2)} | {"leaf1:5", "leaf2:5"}
    assert all(set(e["names"]) == links and e["first"].split()[0] == e["names"][0] for e in events)
    text = page.read_text()
    assert f"<details><summary>4</summary>{', '.join(events[0]['names'])}</details>" in text
    assert text.count("<svg") == 4 and "http" not in text and "spine1:1 down" in text


def test_routes_of_a_dump(new_fabric, sim, tmp_path):
    """
    A dump with its LIDs and forwarding tables, in which leaf1 has routes by spine1 alone: it sends nothing to spine2,
    while the routing engine uses both.
    """
    new_fabric.up()
    dump, tables = tmp_path / "site.net", tmp_path / "site.fts"
    dump.write_text(new_fabric.command("show", "--topology"))
    spine = {p["peer"]: f" {p['num']:03} :" for p in new_fabric.node("leaf1")["ports"] if "peer" in p}
    switches = re.split(r"(?=^Unicast)", new_fabric.run("h1", "dump_fts"), flags=re.M)
    assert all(spine[s] in text for s in ("spine1", "spine2") for text in switches if "(leaf1)" in text)
    tables.write_text(
        "".join(t.replace(spine["spine2"], spine["spine1"]) if "(leaf1)" in t else t for t in switches)
    )

    def from_leaf1(*args):
        traffic = ["--seconds", 0.001, "--load", 0.1, "--size", 1024, "--pattern", "all-to-all"]
        r = sim(*traffic, "--keep-lids", *args, dump)
        assert r["active_hosts"] == 8 and r["arrived"] > 100
        return {x["to"] for x in r["links"]["busiest"] if x["port"].startswith("leaf1:") and x["utilisation"] > 0.01}

    assert {"spine1", "spine2"} < from_leaf1()
    by_file = from_leaf1("--lfts", tables)
    assert "spine1" in by_file and "spine2" not in by_file


def test_lmc(sim):
    """32 LIDs for each of eight hosts: forwarding tables of five blocks instead of one in each of four switches."""
    one, many = (sim("--seconds", 1, "--lmc", n) for n in (0, 5))
    assert many["smps"] - one["smps"] == 4 * 4 and many["arrived"] == one["arrived"] > 0


def test_partitions(sim, tmp_path):
    """All but the manager's host are limited members, which only exchange packets with that."""
    path = tmp_path / "partitions.conf"
    path.write_text("Default=0x7fff : ALL=limited, SELF=full;\n")
    r = sim("--seconds", 10, "--partitions", path)
    assert 0 < r["arrived"] < r["sent"] / 2
    to_full = sim("--seconds", 10, "--partitions", path, "--pattern", "incast:h1")
    assert to_full["arrived"] == to_full["sent"] > 0
    topology = tmp_path / "site.topo"
    topology.write_text(f"leafs 1 hosts 4\npartition-file {path}\n")
    assert sim("--seconds", 10, topology)["arrived"] < 0.8 * sim("--seconds", 10, "leafs 1 hosts 4")["arrived"]


def test_examples(build_folder):
    """The topologies of docs/examples, which come up and carry their traffic."""
    tree = pathlib.Path(__file__).resolve().parents[2]
    argv = ["make", "-s", "-C", tree, f"O={build_folder}", "examples"]
    out = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300).stdout
    examples = sorted((tree / "docs/examples").glob("*.topo"))
    assert [f"== docs/examples/{e.name}" for e in examples] == re.findall("^== .*", out, re.M)
    active = re.findall(r"^(\d+) ports of hosts \((\d+) Active\)", out, re.M)
    arrived = re.findall(r"arrived (\d+), out of order 0$", out, re.M)
    assert len(active) == len(arrived) == len(examples) > 1
    assert all(a == b for a, b in active) and all(int(n) > 1000 for n in arrived)


def test_summary_in_plain_text(muslin_programs):
    argv = [muslin_programs / "muslin-sim", "--summary", "--seconds", "1"]
    p = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "8 ports of hosts (8 Active)" in p.stdout and "p99" in p.stdout and "link utilisation" in p.stdout


@pytest.mark.parametrize(
    "args, words",
    [
        (["--fault", "h1 drp"], "drp: there is no such fault"),
        (["--fault", "5:h9 drop"], "h9: there is no such node"),
        (["--fault", "-1:h1 drop"], "no such time"),
        (["/nonexistent"], "/nonexistent"),
        (["--fault", "9000:spine1 kill", "--seconds", "10"], "is after the end"),
        (["--pattern", "incast:h9"], "h9: there is no such host"),
        (["--pattern", "shift:8"], "would send to itself"),
        (["--lfts", "/nonexistent"], "/nonexistent: No such file"),
        (["--partitions", "/nonexistent"], "/nonexistent: No such file"),
        (["--keep-lids"], "--keep-lids: the topology gives no LIDs"),
        (["leafs 1 hosts 1"], "a simulation needs two hosts with InfiniBand links"),
        (["host r1 roce 127.0.0.2 host r2 roce 127.0.0.3"], "RoCE and iWARP are not simulated"),
    ],
)
def test_what_is_wrong_is_named(sim, args, words):
    assert words in sim(*args, status=1)


@pytest.mark.parametrize(
    "args, words",
    [
        (["--pattern", "foo"], "expected random"),
        (["--pattern", "hotspot:h1"], "expected random"),
        (["--load", "2"], "a number from"),
        (["--traffic", "5", "--load", "0.5"], "--traffic and --load exclude each other"),
        (["--size", "10"], "a number from 20 to 4096"),
        (["--size", "64.5"], "a whole number"),
        (["--seconds", "0"], "a number from"),
        (["--sl", "16"], "numbers from 0 to 15"),
        (["--rates", "fast"], "enforced or nominal"),
        (["--lmc", "8"], "a number from 0 to 7"),
        (["--sec", "1"], "--sec: no such option"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_options_are_refused(sim, args, words):
    assert words in sim(*args, status=2)
