# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults in a fabric of two daemons: numbers, seeds, and cables and GUIDs that are swapped between the daemons."""

import json
import re
import socket

import pytest
from muslin import wait_until
from test_perftest import free_port
from test_shards import SHARDS, kill_shard, start_shard


def test_faults_and_links_of_both(shards):
    one = shards.fault("leaf1:1", "drop", opcode="ack", nth=2, expect=False)
    two = shards.fault("h3", "drop", opcode="ack", nth=2, expect=False)
    assert one.number != two.number
    assert {f["id"] for f in json.loads(shards.command("fault", "list", "--json"))} == {one.number, two.number}
    two.clear()
    assert [f["id"] for f in json.loads(shards.command("fault", "list", "--json"))] == [one.number]
    one.clear()
    with shards.link("leaf2:3").down():
        wait_until(lambda: shards.port("spine1", 2)["state"] == "Down", 10, "the other daemon's end", 0.05)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Active", 30, "up again", 0.1)
    events = [e[2] for e in json.loads(shards.command("timeline"))["events"]]
    assert any("leaf2:3" in e for e in events) and any("spine1:2" in e for e in events), events


def decisions(fabric, direction):
    """Which of 30 queries, or of their responses, a random fault at the link between the leafs has selected."""
    lid = fabric.port("h3")["lid"]
    select = {"attr": "NodeDescription", "dir": direction, "prob": 0.5, "seed": 7}
    with fabric.fault("leaf2:3", "delay", time="1us", **select) as fault:
        fabric.run("h1", "sh", "-c", f"for i in $(seq 30); do smpquery nodedesc {lid} || exit; done")
        report = fault.report()
    assert report["matches"] == 30, report
    return report["fired"], report["digest"]


def test_the_default_seeds_of_all_shards(shards):
    """A random fault on all links is one in each daemon: they do not decide alike."""
    numbers = [int(n) for n in shards.command("fault", "add", "all", "delay", "time=1us", "prob=50%").split()]
    lids = [shards.port(host)["lid"] for host in ("h2", "h4")]
    queries = "; ".join(f"smpquery nodedesc {lid} || exit" for lid in lids)
    shards.run("h1", "sh", "-c", f"for i in $(seq 20); do {queries}; done")
    found = [f for f in json.loads(shards.command("fault", "list", "--json")) if f["id"] in numbers]
    shards.command("fault", "clear", "all")
    assert len(found) == 2 and all(f["matches"] >= 40 for f in found), found
    one, two = ({n for n in f["fired"] if n <= 40} for f in found)
    assert one != two, found


def first_qpns(fabric):
    """Of clients without a server: a pair may have to start again, and then has the second QPN."""
    outputs = [fabric.run(host, "ibv_rc_pingpong", "-p", free_port(), "localhost", status=1) for host in ("h1", "h3")]
    return [re.search(r"local address:.*QPN (0x\w+)", out)[1] for out in outputs]


def test_a_seed_in_shards_and_in_one_daemon(muslin_make_fabric):
    """The same seed decides the same for the packets of each direction of a link, and gives the same QPNs."""
    found = []
    for name, args in ("seed-one", ()), ("seed-two", ("--shards", "2")):
        f = muslin_make_fabric(name).up("leafs 2 spines 1 hosts 2", *args)
        found.append((decisions(f, "in"), decisions(f, "out"), first_qpns(f)))
        f.down()
    one, two = found
    assert one == two and one[2][0] != one[2][1], found
    assert 5 < len(one[0][0]) < 25


def bring_up_decisions(fabric, faults):
    """The subnet manager starts after the faults: what they select of its SubnSet(PortInfo)."""
    armed = [fabric.fault(*line.split()) for line in faults]
    fabric.start("h1", fabric.muslin.parent / "muslin-sm")
    active(fabric)
    return [(f["matches"], f["hits"], f["fired"]) for f in (fault.report() for fault in armed)]


def test_a_seed_in_shards_in_one_daemon_and_simulated(muslin_make_fabric, sim):
    """The same bring-up by the same manager."""
    topology = "leafs 2 spines 1 hosts 2"
    of = "class=0x81 method=0x02 attr=PortInfo"
    ends = [("leaf2:3", "in"), ("spine1:2", "out")]  # of the direction from the manager, at either daemon
    faults = [f"{p} delay time=1us {of} dir={d} prob=0.5 seed={n}" for n, (p, d) in enumerate(ends * 4, 1)]
    found = []
    for name, args in ("bring-one", ()), ("bring-two", ("--shards", "2")):
        f = muslin_make_fabric(name).up(topology, "--no-sm", *args)
        found.append(bring_up_decisions(f, faults))
        f.down()
    assert found[0] == found[1]
    options = [word for line in faults for word in ("--fault", line)]
    simulated = sim("--seconds", 0.001, *options, topology)["faults"]
    assert [(f["matches"], f["hits"]) for f in simulated] == [f[:2] for f in found[0]], found
    assert 20 < sum(hits for _, hits, _ in found[0]) < sum(matches for matches, *_ in found[0])


def cables(fabric):
    ports = [(n["name"], p) for n in fabric.show()["nodes"] for p in n["ports"] if p.get("peer")]
    return {f"{name}:{p['num']}": f"{p['peer']}:{p['peer_port']}" for name, p in ports}


def whole_again(fabric, before):
    """All cables are as they were, all links Active, and each trunk has its connection."""
    assert cables(fabric) == before
    active(fabric)
    assert all(t["connected"] for t in fabric.show()["trunks"]) and len(fabric.show()["trunks"]) == 4
    assert not any(fabric.show()["trunks_refused"].values()), fabric.show()["trunks_refused"]


def active(fabric):
    def up():
        return all(p["state"] == "Active" for n in fabric.show()["nodes"] for p in n["ports"] if p.get("peer"))

    wait_until(up, 60, "all ports Active", 0.1)


SWAPS = [
    ("h4:1", "h2:1", {"h4:1": "leaf1:2", "h2:1": "leaf2:2"}),  # two cables within daemons become trunks,
    ("leaf1:3", "spine2:2", {"leaf1:3": "leaf2:4", "spine2:2": "spine1:1"}),
    ("leaf2:1", "spine2:1", {"leaf2:1": "leaf1:4", "spine2:1": "h3:1"}),  # one of them has been a trunk,
    ("spine1:2", "leaf1:4", {"spine1:2": "spine2:1", "leaf1:4": "leaf2:3"}),  # or both
]


@pytest.mark.parametrize("place, other, new", SWAPS)
def test_swaps_of_cables_of_two_daemons(shards, place, other, new):
    before = cables(shards)
    with shards.fault(place, "swap", with_=other) as fault:
        assert fault.hits == 1 and len(fault.numbers) == 1
        now = cables(shards)
        assert all(now[p] == q and now[q] == p for p, q in new.items()), now
        assert {p for p in now if now[p] != before[p]} == {*new, *new.values()}
        active(shards)
        common = ["rping", "-a", shards.ip("h4"), "-V", "-C", "10"]
        _, out = shards.pair(("h4", common[0], "-s", *common[1:]), ("h1", common[0], "-c", "-v", *common[1:]))
        assert out.count("ping data") == 10, out
        assert "swapped already" in shards.command("fault", "add", other, "swap", f"with={place}", status=1)
    assert not json.loads(shards.command("fault", "list", "--json"))
    whole_again(shards, before)


def test_swapped_trunks_become_cables_within_daemons(shards):
    """The daemons have no link to each other then: two subnets."""
    before = cables(shards)
    for place, other in ("leaf1:4", "leaf2:3"), ("spine2:1", "spine1:2"):
        with shards.fault(place, "swap", with_=other):
            assert cables(shards)["leaf1:4"] == "spine1:2" and cables(shards)["spine2:1"] == "leaf2:3"
            assert shards.port("leaf1", 4)["phys_state"] == shards.port("leaf2", 3)["phys_state"] == "LinkUp"
            assert not any(t["connected"] for t in shards.show()["trunks"])
        whole_again(shards, before)


def test_a_swap_of_two_daemons_ends(shards):
    before = cables(shards)
    shards.fault("h1", "swap", with_="h3", **{"for": "300ms"})
    assert cables(shards)["h1:1"] == "leaf2:1"
    wait_until(lambda: cables(shards) == before, 10, "the end in both daemons", 0.05)
    shards.command("fault", "clear", "h3")
    assert not json.loads(shards.command("fault", "list", "--json"))
    whole_again(shards, before)


def test_swaps_of_two_daemons_that_are_refused(shards):
    for line, why in (
        ("leaf1:4 swap with=spine2:1", "with=spine2:1: the other end of the same cable"),
        ("h1 swap with=h3 nth=3", "takes no keys of packets"),
        ("h1 swap with=leaf2", "leaf2: which port?"),
        ("h1 swap with=leaf2:9", "the ports of leaf2 are 1 to"),
        ("h1 swap with=h9", "h9: there is no such node"),
        ("h9 swap with=h1", "h9: there is no such node"),
        ("h1 guid with=h9", "there is no such node"),
    ):
        assert why in shards.command("fault", "add", *line.split(), status=1), line
    assert not json.loads(shards.command("fault", "list", "--json"))


def test_a_daemon_dies_while_cables_are_swapped(muslin_new_fabric):
    """It comes back with the cables of the topology, and so do the other daemons."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2")
    before = cables(fabric)
    for index in 1, 0:
        fault = fabric.fault("h2", "swap", with_="h4", expect=False)
        active(fabric)
        kill_shard(fabric, index)
        start_shard(fabric, index)
        wait_until(lambda: cables(fabric) == before, 20, "the cables of the topology", 0.1)
        active(fabric)
        assert [f["applied"] for f in json.loads(fabric.command("fault", "list", "--json"))] == [False]
        for number in [f["id"] for f in json.loads(fabric.command("fault", "list", "--json"))]:
            fabric.command("fault", "clear", number)
        fault.last = {"hits": 1}
        assert cables(fabric) == before
        active(fabric)


def test_one_guid_in_two_daemons(muslin_new_fabric):
    """OpenSM in one daemon detects it; afterwards each host has its own one again."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2", "--no-sm").sweep()
    guid = {n["name"]: n["guid"] for n in fabric.show()["nodes"]}
    with fabric.fault("h4", "guid", with_="h1"):
        assert fabric.node("h4")["guid"] == fabric.node("h1")["guid"] == guid["h1"]
        assert guid["h1"][2:] in fabric.run("h4", "smpquery", "nodeinfo", "-D", "0")
        said = r"[Dd]uplicat"
        wait_until(lambda: re.search(said, fabric.sm_log.read_text(errors="replace")), 40, "OpenSM's complaint", 0.5)
    assert fabric.node("h4")["guid"] == guid["h4"]
    with fabric.fault("leaf2", "guid", with_="spine1", expect=False):  # whose trunks come back
        wait_until(lambda: fabric.port("leaf2", 3)["phys_state"] == "LinkUp", 20, "its trunk", 0.1)
        assert fabric.node("leaf2")["guid"] == guid["spine1"]


def test_a_fault_on_all_links_in_all_daemons_or_none(shards):
    """The second daemon refuses it, for it has as many as it may have."""
    request = json.dumps({"command": "fault", "op": "add", "fault": "h3 delay time=1us opcode=UC_SEND_ONLY"}) + "\n"
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(next((shards.folder / "run").glob(f"{shards.name}.1/control.sock"))))
        answers = s.makefile()
        for _ in range(100):
            s.sendall(request.encode() * 100)
            assert all(json.loads(answers.readline())["ok"] for _ in range(100))
    assert "10000 faults are armed" in shards.command("fault", "add", "all", "delay", "time=1us", status=1)
    armed = json.loads(shards.command("fault", "list", "--json"))
    assert len(armed) == 10000 and all(f["fault"].startswith("h3 ") for f in armed)
    shards.command("fault", "clear")
    assert "lane" in shards.command("fault", "add", "all", "starve", "lane=14", status=1)
    assert json.loads(shards.command("fault", "list", "--json")) == []
