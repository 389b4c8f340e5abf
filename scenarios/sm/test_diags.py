# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""infiniband-diags on a host of the fabric: their output agrees with the topology."""

import re

from muslin import free_port, wait_until

HOSTS = [f"h{i}" for i in range(1, 9)]
SWITCHES = ["leaf1", "leaf2", "spine1", "spine2"]


def test_ibnetdiscover_finds_every_node(shared_fabric):
    out = shared_fabric.run("h1", "ibnetdiscover")
    assert len(re.findall(r"^Switch\s", out, re.M)) == len(SWITCHES)
    assert len(re.findall(r"^Ca\s", out, re.M)) == len(HOSTS)
    for name in HOSTS + SWITCHES:
        assert re.search(rf'"{name}[" ]', out), name


def test_what_ibnetdiscover_prints_is_a_topology(shared_fabric, new_fabric):
    """A dumped fabric is replayed."""
    new_fabric.up(shared_fabric.run("h1", "ibnetdiscover"))
    names = {n["name"].split()[0] for n in new_fabric.show()["nodes"]}
    assert names == set(HOSTS + SWITCHES)


def test_iblinkinfo(shared_fabric):
    out = shared_fabric.run("h1", "iblinkinfo")
    assert len(re.findall(r"Active/\s+LinkUp", out)) >= 2 * 4 + 2 * 8


def test_lists(shared_fabric):
    assert len(re.findall(r"^Ca\s", shared_fabric.run("h1", "ibhosts"), re.M)) == len(HOSTS)
    assert len(re.findall(r"^Switch\s", shared_fabric.run("h1", "ibswitches"), re.M)) == len(SWITCHES)


def test_ibtracert_uses_one_spine(shared_fabric):
    a, b = shared_fabric.port("h1")["lid"], shared_fabric.port("h5")["lid"]
    out = shared_fabric.run("h1", "ibtracert", str(a), str(b))
    assert len(re.findall(r"spine\d", out)) == 1 and "leaf1" in out and "leaf2" in out


def test_smpquery(shared_fabric):
    lid = str(shared_fabric.port("h5")["lid"])
    assert "h5" in shared_fabric.run("h1", "smpquery", "nodedesc", lid)
    assert re.search(r"LinkState:\.*Active", shared_fabric.run("h1", "smpquery", "portinfo", lid, "1"))
    assert "Switch" in shared_fabric.run("h1", "smpquery", "-D", "nodeinfo", "0,1")
    assert "0xffff" in shared_fabric.run("h1", "smpquery", "pkeys", lid)


def test_perfquery_counts_what_passed(shared_fabric):
    port = shared_fabric.port("h5")

    def packets():
        out = shared_fabric.run("h5", "perfquery", "-x", str(port["lid"]), "1")
        return int(re.search(r"PortRcvPkts:\.*(\d+)", out)[1])

    before = packets()
    args = ["ibv_uc_pingpong", "-p", free_port(), "-n", "500", "-s", "64"]
    shared_fabric.pair(("h1", *args), ("h5", *args, "localhost"))
    assert 500 <= packets() - before < 600


def test_saquery(shared_fabric):
    out = shared_fabric.run("h2", "saquery", "-N")
    assert out.count("NodeRecord dump") == len(HOSTS + SWITCHES)
    assert "MCMemberRecord" in shared_fabric.run("h2", "saquery", "-g")
    assert "PathRecord" in shared_fabric.run("h2", "saquery", "-p")


def test_sminfo(shared_fabric):
    assert "SMINFO_MASTER" in shared_fabric.run("h3", "sminfo")


def test_ibping(shared_fabric):
    srv = shared_fabric.start("h1", "ibping", "-S")
    lid = str(shared_fabric.port("h1")["lid"])
    # The server prints nothing when it is ready: until then pings are lost.
    wait_until(lambda: "5 received" in shared_fabric.run("h5", "ibping", "-c", "5", "-f", lid, status=None), 30, "pong")
    srv.kill()


def test_routes(shared_fabric):
    leaf = shared_fabric.node("leaf1")
    lid = next(p["lid"] for p in leaf["ports"] if p.get("lid"))
    out = shared_fabric.run("h1", "ibroute", str(lid))
    for host in HOSTS:
        assert re.search(rf"'{host}[' ]", out), out
    assert "valid lids" in shared_fabric.run("h1", "dump_fts")


def test_ibportstate_takes_a_link_down_and_up(fabric):
    """The port of leaf2 to h5 is disabled, then enabled: h5 sees its port go down and up."""
    lid = next(p["lid"] for p in fabric.node("leaf2")["ports"] if p.get("lid"))
    num = next(p["num"] for p in fabric.node("leaf2")["ports"] if p.get("peer") == "h5")
    fabric.run("h1", "ibportstate", str(lid), str(num), "disable")
    assert "Down" in fabric.run("h5", "ibstat") or "DOWN" in fabric.run("h5", "ibstat")
    fabric.run("h1", "ibportstate", str(lid), str(num), "enable")
    fabric.wait_active()
    assert "Active" in fabric.run("h5", "ibstat")
