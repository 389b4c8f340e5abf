# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One topology file of three daemons, which `muslin up --join` brings up in any order.

    one: h1, h2 - leaf1 ===== spine1 :core ===== leaf2 - h3, h4 :two
"""

import json
import os
import re
import signal
import urllib.error
import urllib.request

import pytest
from muslin import wait_until
from test_perftest import free_port
from test_trunk import tls_in_build, traps, write_key

TOPOLOGY = """leafs 2 spines 1 hosts 2
shard core listen {listen} nodes spine1
shard one sm nodes leaf1 h1 h2
shard two nodes leaf2 h[34]
"""


class Shards:
    def __init__(self, make, carrier, prefix="join"):
        self.of = {name: make(f"{prefix}-{name}") for name in ("core", "one", "two")}
        core = self.of["core"]
        if carrier == "tls" and not tls_in_build(core):
            pytest.skip("needs a build with GnuTLS")
        listen = f"{core.folder}/trunk.sock"
        if carrier == "tls":
            listen = f"127.0.0.2:{free_port()} key {write_key(core)} tls on"
        self.text = TOPOLOGY.format(listen=listen)

    def up(self, *names, options=()):
        for name in names:
            self.of[name].up(self.text, "--join", name, *options)
        return self

    def host(self, name):
        return self.of["one" if name in ("h1", "h2") else "two"]

    def active(self):
        ports = [("one", "leaf1", 3), ("two", "leaf2", 3), ("core", "spine1", 1), ("core", "spine1", 2)]
        ports += [("one", "h1", 1), ("one", "h2", 1), ("two", "h3", 1), ("two", "h4", 1)]
        for shard, node, port in ports:
            wait_until(
                lambda s=shard, n=node, p=port: self.of[s].port(n, p)["state"] == "Active", 60, f"{node}:{port}", 0.1
            )

        def swept():
            m = self.of["one"].show()["manager"]
            return m["up"] and not m["sweeping"] and m["nodes"] == 7

        wait_until(swept, 60, "the end of the sweep", 0.1)
        return self

    def rping(self, server, client):
        common = ["-a", self.host(server).ip(server), "-V", "-C", "10"]
        client_fabric = self.host(client)
        _, out = self.host(server).pair(
            (server, "rping", "-s", *common), (client, "rping", "-c", "-v", *common), client_fabric=client_fabric
        )
        assert out.count("ping data") == 10, out

    def down(self):
        for f in self.of.values():
            f.down()


@pytest.fixture(scope="module", params=["unix", "tls"])
def shards(request, muslin_make_fabric):
    s = Shards(muslin_make_fabric, request.param).up("two", "core", "one").active()
    yield s
    s.down()


def test_each_has_its_nodes_and_the_subnet_has_all(shards):
    names = {shard: {n["name"] for n in f.show()["nodes"]} for shard, f in shards.of.items()}
    assert names == {"core": {"spine1"}, "one": {"leaf1", "h1", "h2"}, "two": {"leaf2", "h3", "h4"}}
    guids = {int(n["guid"], 16) for f in shards.of.values() for n in f.show()["nodes"]}
    for host in "h1", "h4":
        out = shards.host(host).run(host, "ibnetdiscover")
        assert {int(g, 16) for g in re.findall(r'^(?:Switch|Ca)\s+\d+ "[SH]-([0-9a-f]+)"', out, re.M)} == guids, out
    assert [shards.host(h).ip(h) for h in ("h1", "h4")] == ["10.0.0.1", "10.0.0.4"]
    for shard in "core", "two":
        assert "subnet manager in shard one" in shards.of[shard].command("show")
        assert shards.of[shard].show()["manager"] is None


def test_programs_connect_across(shards):
    shards.rping("h3", "h1")
    shards.rping("h2", "h4")


@pytest.mark.parametrize("name", ["core", "two"])
def test_health_of_a_shard_without_the_manager(shards, name):
    port = free_port()
    server = shards.of[name].start_muslin("metrics", "--listen", port)

    def health():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as got:
                return got.read().decode()
        except urllib.error.HTTPError as e:
            return e.read().decode()
        except (ConnectionError, urllib.error.URLError):
            return None

    said = wait_until(health, 10, "the server")
    ports = {"core": 2, "two": 5}[name]
    assert said == f"{ports} of {ports} linked ports are Active; the subnet manager is in another daemon\n"
    server.kill()


def test_the_default_seeds_of_all_shards(shards):
    """The first random faults of two daemons do not decide alike, but with the same key seed."""

    def decisions(**more):
        hosts = [(shards.host(h), h) for h in ("h2", "h4")]
        faults = [f.fault(h, "delay", time="1us", prob=0.5, attr="NodeDescription", **more) for f, h in hosts]
        lids = [f.port(h)["lid"] for f, h in hosts]
        queries = "; ".join(f"smpquery nodedesc {lid} || exit" for lid in lids)
        shards.of["one"].run("h1", "sh", "-c", f"for i in $(seq 20); do {queries}; done")
        reports = [f.report() for f in faults]
        for f in faults:
            f.clear()
        assert all(r["matches"] == 40 for r in reports), reports
        return [r["fired"] for r in reports]

    one, two = decisions()
    assert one != two
    one, two = decisions(seed=7)
    assert one == two


@pytest.mark.parametrize("name, left", [("two", 4), ("core", 3)])
def test_a_shard_dies_and_comes_back(shards, name, left):
    """The others keep what they have; the manager finds the nodes again, with their LIDs."""

    def lids():
        return {n["name"]: n["lid"] for f in shards.of.values() for n in f.show()["nodes"]}

    before = lids()
    os.kill(shards.of[name].daemon_pid, signal.SIGKILL)
    wait_until(lambda: shards.of["one"].show()["manager"]["nodes"] == left, 60, "a sweep without it", 0.1)
    shards.of[name].command("down", status=None)
    shards.up(name)
    shards.active()
    assert lids() == before
    shards.rping("h4", "h1")


def part_of_swap(fabric, place, other):
    """`muslin fault add`, whose output names the parts of other shards. Its number, and these parts."""
    out = fabric.command("fault", "add", place, "swap", f"with={other}")
    return int(re.search(r"^\d+$", out, re.M)[0]), re.findall(r"shard (\w+) needs its part: muslin fault add (.*)", out)


def test_a_swap_is_a_command_in_each_shard(shards):
    """The cables to the spine exchange their ports there; one command ends it in all."""
    core, one, two = (shards.of[name] for name in ("core", "one", "two"))
    number, parts = part_of_swap(one, "leaf1:3", "leaf2:3")
    assert dict(parts) == {"core": "spine1:1 swap with=spine1:2", "two": "leaf2:3 swap with=leaf1:3"}
    for name, line in parts:
        part_of_swap(shards.of[name], line.split()[0], line.split("with=")[1])
    shards.active()
    assert [core.port("spine1", n)["peer"] for n in (1, 2)] == ["leaf2", "leaf1"]
    shards.rping("h3", "h1")
    one.command("fault", "clear", number)
    ended = ("leaf1", 2)
    wait_until(lambda: (core.port("spine1", 1)["peer"], two.port("leaf2", 3)["peer_port"]) == ended, 20, "the end", 0.1)
    shards.active()
    for f in core, two:
        assert [p["applied"] for p in json.loads(f.command("fault", "list", "--json"))] == [False]
        f.command("fault", "clear")
    assert not any(v for f in shards.of.values() for v in f.show()["trunks_refused"].values())
    shards.rping("h4", "h2")


def test_a_swap_that_nobody_could_listen_for(shards):
    said = shards.of["one"].command("fault", "add", "h2", "swap", "with=h4", status=1)
    assert 'shard "one" needs listen ADDRESS' in said, said
    assert 'shard "two" has' in shards.of["one"].command("fault", "add", "h4", "swap", "with=h2", status=1)
    assert 'shard "core" has' in shards.of["one"].command("show", "spine1", status=1)
    shards.active()


def test_a_guid_of_another_shard(shards):
    two, before = shards.of["two"], shards.of["two"].node("h4")["guid"]
    with two.fault("h4", "guid", with_="h1"):
        assert two.node("h4")["guid"] == shards.of["one"].node("h1")["guid"]
        assert two.node("h4")["guid"][2:] in two.run("h4", "smpquery", "nodeinfo", "-D", "0")
    assert two.node("h4")["guid"] == before
    shards.active()


def test_a_swap_of_shards_without_a_cable_between_them(muslin_make_fabric):
    """The earlier one begins to listen for it, with the key of its line; and what happens when a shard dies."""
    s = Shards(muslin_make_fabric, "tls", "swap")
    one, two = s.of["one"], s.of["two"]
    s.text = s.text.replace("one sm", f"one listen localhost:{free_port()} key {write_key(one)} tls on sm")
    s.up("core", "one", "two").active()

    def swap():
        for f, place, other in (two, "h4", "h2"), (one, "h2", "h4"):
            assert len(part_of_swap(f, place, other)[1]) == 1
        wait_until(lambda: one.port("h2")["state"] == two.port("h4")["state"] == "Active", 60, "the ports", 0.1)
        assert (one.port("h2")["peer"], two.port("h4")["peer"]) == ("leaf2", "leaf1")
        s.active()

    swap()
    s.rping("h4", "h2")
    for name, other in ("two", one), ("one", two):
        os.kill(s.of[name].daemon_pid, signal.SIGKILL)
        s.of[name].command("down", status=None)
        s.up(name)
        host, leaf = ("h2", "leaf1") if other is one else ("h4", "leaf2")
        wait_until(lambda o=other, h=host, n=leaf: o.port(h).get("peer") == n, 20, "the end of the swap", 0.1)
        s.active()
        other.command("fault", "clear")
        swap()
    one.command("fault", "clear")
    wait_until(lambda: two.port("h4").get("peer") == "leaf2", 10, "the end in the other shard", 0.1)
    s.down()


@pytest.fixture
def late_shards(muslin_make_fabric):
    s = Shards(muslin_make_fabric, "unix", "late")
    yield s
    s.down()


def test_a_shard_that_joins_late_is_swept_at_once(late_shards):
    """
    A switch at the end of its trunk sends trap 128: that of the manager's own shard, then that of another one. No light
    sweep, which would find it, too, is due in an hour.
    """
    one = late_shards.up("one", options=["--sweep", "3600"]).of["one"]

    def manager():
        return one.show()["manager"]

    assert manager()["up"] and manager()["nodes"] == 3
    for name, nodes in ("core", 4), ("two", 7):
        before = manager()
        with one.trace("leaf1:3") as trace:
            late_shards.up(name)
            wait_until(lambda n=nodes: manager()["nodes"] == n and manager()["up"], 60, f"a sweep with {name}", 0.05)
        assert manager()["traps"] > before["traps"]
        assert name == "core" or traps(trace, 128)
    late_shards.active().rping("h4", "h1")


@pytest.mark.parametrize(
    "topology, args, words",
    [
        (TOPOLOGY, ["--join", "three"], 'no shard "three"'),
        ("ring 3\n\n", ["--join", "a"], "no lines with shard"),
        (None, ["--join", "a"], "--join needs a topology"),
        (TOPOLOGY, ["--join", "one", "--shards", "2"], "exclude each other"),
        (TOPOLOGY.replace("[34]", "3"), ["--join", "two"], 'fabric.topo:1: "h4" is in no shard'),
        (TOPOLOGY.replace("listen {listen} ", ""), ["--join", "two"], 'fabric.topo:2: shard "core" needs listen'),
        (TOPOLOGY.replace("one sm", "one").replace("core", "core sm"), ["--join", "core"], "no host on which a subnet"),
    ],
    ids=lambda v: "_".join(v) if isinstance(v, list) else "",
)
def test_what_is_wrong_is_named(muslin_new_fabric, topology, args, words):
    path = muslin_new_fabric.folder / "fabric.topo"
    path.write_text((topology or "").format(listen=f"{muslin_new_fabric.folder}/trunk.sock"))
    path.chmod(0o644)
    status = 2 if "exclude" in words or "needs a topology" in words else 1
    out = muslin_new_fabric.command("up", *args, *([path] if topology else []), status=status)
    assert words in out, out
