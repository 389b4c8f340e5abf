# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One subnet of two daemons, connected by a trunk over a Unix socket or TCP; and a topology that is split into shards.

    daemon a: h1, h2 - leaf1:9 ===== leaf101:9 - h101, h102 :daemon b
"""

import json
import os
import re
import signal
import socket
import struct

import pytest
from muslin import wait_until
from test_perftest import RESULT, free_port

KEY = "correct horse battery staple\n"


class Trunk:
    """The subnet manager is on h1 (with @sm of `muslin up`: elsewhere, or none)."""

    def __init__(self, make, carrier, sm=()):
        self.a, self.b = make("trunk-a"), make("trunk-b")
        self.address = f"{self.a.folder}/trunk.sock" if carrier == "unix" else f"127.0.0.1:{free_port()}"
        self.key = self.a.folder / "key"
        self.key.write_text(KEY)
        self.key.chmod(0o644)
        self.options = "" if carrier == "unix" else f"key {self.key}"
        # The listener starts last: the other daemon retries until then.
        self.up_b("--no-sm")
        self.a.up(f"leafs 1 hosts 2\ntrunk leaf1:9 listen {self.address} {self.options}\n", *sm)
        self.connected()

    def up_b(self, *args):
        self.b.up(f"leafs 1 hosts 2 first 101\ntrunk leaf101:9 to {self.address} {self.options}\n", *args)

    def connected(self, state=None):
        def up():
            return all(
                f.port(n, 9)["state"] == state if state else f.port(n, 9)["phys_state"] == "LinkUp"
                for f, n in ((self.a, "leaf1"), (self.b, "leaf101"))
            )

        wait_until(up, 60, f"the trunk {state or 'up'}", 0.1)
        return self

    def active(self):
        self.connected("Active")
        wait_until(lambda: self.b.port("h101")["state"] == self.b.port("h102")["state"] == "Active", 60, "hosts", 0.1)

        def swept():  # the SA knows paths when the sweep is over, which is after the ports are Active
            managers = [m for m in (f.show()["manager"] for f in (self.a, self.b)) if m]
            return not any(m["sweeping"] or (m["state"] == "Master" and not m["up"]) for m in managers)

        wait_until(swept, 60, "the end of the sweep", 0.1)
        return self

    def of(self, host):
        return self.a if host in ("h1", "h2") else self.b

    def pair(self, server, client, **kw):
        return self.of(server[0]).pair(server, client, client_fabric=self.of(client[0]), **kw)

    def rping(self, server="h101", client="h1", count=10):
        address = self.of(server).ip(server)
        common = ["-a", address, "-V", "-C", str(count)]
        _, out = self.pair((server, "rping", "-s", *common), (client, "rping", "-c", "-v", *common))
        assert out.count("ping data") == count, out

    def counters(self):
        return self.a.show()["trunks"][0]

    def down(self):
        self.a.down()
        self.b.down()


@pytest.fixture(scope="module", params=["unix", "tcp"])
def trunk(request, muslin_make_fabric):
    t = Trunk(muslin_make_fabric, request.param).active()
    yield t
    t.down()


def guids(fabric):
    return {int(n["guid"], 16) for n in fabric.show()["nodes"]}


def test_ibnetdiscover_sees_one_subnet(trunk):
    for host in "h1", "h102":
        out = trunk.of(host).run(host, "ibnetdiscover")
        found = {int(g, 16) for g in re.findall(r'^(?:Switch|Ca)\s+\d+ "[SH]-([0-9a-f]+)"', out, re.M)}
        assert found == guids(trunk.a) | guids(trunk.b), out
        assert re.search(r'^\[9\]\s+"S-[0-9a-f]+"\[9\].*leaf', out, re.M), out


def test_connections_and_datagrams(trunk):
    trunk.rping("h101", "h1")
    trunk.rping("h2", "h102")
    lid = trunk.b.port("h102")["lid"]
    with_server = trunk.b.start("h102", "ibping", "-S")
    wait_until(lambda: "5 received" in trunk.a.run("h2", "ibping", "-f", "-c", "5", lid, status=None), 30, "pong", 0.2)
    with_server.kill()


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(trunk, tool):
    common = [tool, "-R", "-F", "-p", free_port(), "-n", "300", "-s", "65536"]
    _, out = trunk.pair(("h101", *common), ("h1", *common, trunk.b.ip("h101")))
    assert RESULT.search(out), out
    assert not [c for c in ("violations", "rcv_malformed", "lost") if trunk.counters()[c]]
    assert trunk.counters()["rings"] == (2 if trunk.address.startswith("/") else 0)  # one for each direction


def test_a_flap_of_either_end(trunk):
    for fabric, place in ((trunk.a, "leaf1:9"), (trunk.b, "leaf101:9")):
        lids = [n["lid"] for f in (trunk.a, trunk.b) for n in f.show()["nodes"]]
        fabric.command("link", place, "down")
        assert trunk.a.port("leaf1", 9)["state"] == "Down"
        wait_until(lambda: trunk.b.port("leaf101", 9)["state"] == "Down", 10, "down at the other end", 0.05)
        wait_until(lambda: trunk.a.show()["manager"]["nodes"] == 3, 30, "a sweep without it", 0.1)
        fabric.command("link", place, "up")
        trunk.active()
        assert [n["lid"] for f in (trunk.a, trunk.b) for n in f.show()["nodes"]] == lids
    trunk.rping()


def test_faults_of_either_direction(trunk):
    """
    This daemon drops packets that it sends on the trunk, the receiving daemon those that it receives; RC recovers.
    """
    ways = ((trunk.a, "leaf1:9", "out"), (trunk.b, "leaf101:9", "in"), (trunk.b, "leaf101:9", "out"))
    for fabric, place, way in ways:
        fault = fabric.fault(place, "drop", dir=way, opcode="request,ack", nth=5)
        trunk.rping("h101", "h1", 20)
        assert fault.hits == 1
        fault.clear()
    fault = trunk.a.fault("leaf1:9", "degrade", lanes=1, speed="DDR")
    trunk.active()
    for fabric, leaf in ((trunk.a, "leaf1"), (trunk.b, "leaf101")):
        assert (fabric.port(leaf, 9)["width"], fabric.port(leaf, 9)["speed"]) == (1, "DDR")
    fault.clear()
    trunk.active()


@pytest.mark.parametrize("trunk", ["tcp"], indirect=True)
def test_a_hostile_peer(trunk):
    """
    An invalid one is rejected and counted, and the trunk still works. (Only the fabric's user can access a Unix
    socket.)
    """
    host, port = trunk.address.split(":")
    head = struct.pack(">BBHI", 1, 0, 112, 0)
    hello = struct.pack(">8sHBBB3xQQ16s64s", b"muslinTK", 2, 9, 0, 2, 0x0002C9FFFF000010, 0, bytes(16), b"x")
    rows = {
        "refused_hello": b"GET / HTTP/1.0\r\n\r\n" + bytes(200),
        "refused_version": head + hello[:8] + b"\0\7" + hello[10:],
        "refused_busy": head + hello,
    }
    for counter, data in rows.items():
        with socket.create_connection((host, int(port)), timeout=10) as s:
            s.sendall(data)
            while s.recv(1000):
                pass
        assert trunk.a.show()["trunks_refused"][counter] >= 1, counter
    trunk.rping()


def test_exit_and_restart_of_a_daemon(trunk):
    os.kill(trunk.b.daemon_pid, signal.SIGKILL)
    wait_until(lambda: trunk.a.port("leaf1", 9)["state"] == "Down", 20, "the link down", 0.1)
    wait_until(lambda: trunk.a.show()["manager"]["nodes"] == 3, 30, "a sweep without it", 0.1)
    trunk.b.command("down", status=None)
    trunk.up_b("--no-sm")
    trunk.active()
    trunk.rping()
    assert trunk.counters()["lost"] == 1


def test_opensm_brings_both_up(new_trunk):
    """On a host of the connecting daemon: the other daemon is configured by MADs across the trunk."""
    t = new_trunk("unix", ("--no-sm",))
    t.b.sweep("h101")
    t.active()
    wait_until(lambda: t.a.port("h2")["state"] == "Active", 60, "h2 Active", 0.1)
    t.rping("h2", "h102")
    assert t.a.port("h1")["sm_lid"] == t.b.port("h101")["lid"]


def test_two_managers_meet(new_trunk):
    """Each daemon was a subnet with its own manager: that of lower priority becomes standby, and LIDs are unique."""
    t = new_trunk("unix", ("--priority", "9"), b_sm=())
    t.active()
    wait_until(lambda: t.b.show()["manager"]["state"] == "Standby", 60, "one master", 0.1)
    wait_until(lambda: t.a.show()["manager"]["nodes"] == 6, 60, "six nodes", 0.1)
    lids = [n["lid"] for f in (t.a, t.b) for n in f.show()["nodes"]]
    assert len(set(lids)) == 6, lids
    wait_until(lambda: t.b.port("h101")["sm_lid"] == t.a.port("h1")["lid"], 30, "the master's LID", 0.1)
    t.rping()


@pytest.fixture
def new_trunk(muslin_make_fabric):
    made = []

    def make(carrier, sm=(), b_sm=("--no-sm",)):
        t = Trunk.__new__(Trunk)
        made.append(t)
        if b_sm == ():
            t.up_b = lambda *args: Trunk.up_b(t)
        t.__init__(muslin_make_fabric, carrier, sm)
        return t

    yield make
    for t in made:
        t.down()


# Shards


@pytest.fixture(scope="module")
def shards(muslin_make_fabric):
    """leaf1 with h1, h2 and spine1 are in one daemon, leaf2 with h3, h4 and spine2 in the other."""
    f = muslin_make_fabric("shards").up("leafs 2 spines 2 hosts 2", "--shards", "2")
    yield f
    f.down()


def test_show_is_of_the_whole(shards):
    names = {n["name"] for n in shards.show()["nodes"]}
    assert names == {"h1", "h2", "h3", "h4", "leaf1", "leaf2", "spine1", "spine2"}
    assert all(p["state"] == "Active" for n in shards.show()["nodes"] for p in n["ports"] if p.get("peer"))
    assert shards.port("leaf2", 3)["peer"] == "spine1"
    assert len(json.loads(shards.command("show", "--json", "leaf2"))["nodes"]) == 1
    assert "no node" in shards.command("show", "leaf3", status=1)
    assert shards.command("show", "--topology").count("Switch") == 4


def test_a_fat_tree_in_four_shards(muslin_new_fabric):
    """192 trunks connect at once, none of them is refused, and the manager waits for them."""
    shown = muslin_new_fabric.up("fattree k=8 levels=3", "--shards", "4").show()
    assert len(shown["trunks"]) == 2 * 96 and all(t["connected"] for t in shown["trunks"])
    assert not any(shown["trunks_refused"].values()), shown["trunks_refused"]
    assert shown["manager"]["heavy_sweeps"] <= 3


def test_programs_across_shards(shards):
    """By the names and IP addresses of hosts in the other daemon, too."""
    common = ["ib_write_bw", "-F", "-p", free_port(), "-n", "200"]
    _, out = shards.pair(("h3", *common), ("h1", *common, "h3"))
    assert RESULT.search(out), out
    common = ["rping", "-a", shards.ip("h1"), "-V", "-C", "10"]
    _, out = shards.pair(("h1", common[0], "-s", *common[1:]), ("h4", common[0], "-c", "-v", *common[1:]))
    assert out.count("ping data") == 10, out


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


def test_trace_and_metrics_of_both(shards):
    with shards.trace("h4") as trace:
        shards.run("h3", "smpquery", "nodeinfo", shards.port("h4")["lid"])
    assert trace.packets("infiniband.mad.attributeid == 0x11")
    text = shards.command("metrics")
    assert 'node="h1"' in text and 'node="h4"' in text and 'node="spine2"' in text
    assert "leaf2:1" in shards.command("top", "-n", "1", "--interval", "0.1")


def test_a_shard_dies_and_comes_back(shards):
    pid = int(next((shards.folder / "run").glob(f"{shards.name}.1/pid")).read_text())
    topology = "leafs 2 spines 2 hosts 2"
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Down", 20, "its links down", 0.1)
    assert {n["name"] for n in shards.show()["nodes"]} == {"h1", "h2", "leaf1", "spine1"}
    daemon = [shards.muslin.parent / "muslind", "--name", shards.name, "--shard", "1/2", topology]
    shards._start(daemon, ()).wait(30)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Active", 60, "its links", 0.1)
    wait_until(lambda: shards.port("h3")["state"] == "Active", 60, "it is back", 0.1)
    shards.command("down")
    assert not list((shards.folder / "run").glob("*/pid"))
