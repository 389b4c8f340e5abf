# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One subnet of two daemons, connected by a trunk over a Unix socket, TCP or TLS; and a topology that is split into
shards.

    daemon a: h1, h2 - leaf1:9 ===== leaf101:9 - h101, h102 :daemon b
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading

import pytest
from muslin import wait_until
from test_perftest import RESULT, free_port

KEY = "correct horse battery staple\n"
SHARDS = "leafs 2 spines 2 hosts 2"


def tls_in_build(fabric):
    """Whether the daemon is linked with GnuTLS."""
    argv = ["ldd", fabric.muslin.parent / "muslind"]
    return "libgnutls" in subprocess.run(argv, capture_output=True, text=True).stdout


def write_key(fabric, name="key", text=KEY):
    path = fabric.folder / name
    path.write_text(text)
    path.chmod(0o600)
    if fabric.user is not None:
        shutil.chown(path, fabric.user)
    return path


class Trunk:
    """The subnet manager is on h1 (with @sm of `muslin up`: elsewhere, or none)."""

    def __init__(self, make, carrier, sm=()):
        self.a, self.b = make("trunk-a"), make("trunk-b")
        self.address = f"{self.a.folder}/trunk.sock" if carrier == "unix" else f"127.0.0.1:{free_port()}"
        self.key = write_key(self.a)
        if carrier == "tls" and not tls_in_build(self.a):
            pytest.skip("needs a build with GnuTLS")
        self.options = {"unix": "", "tcp": f"key {self.key}", "tls": f"key {self.key} tls on"}[carrier]
        # The listener starts last: the other daemon retries until then.
        self.up_b("--no-sm")
        self.up_a(*sm)
        self.connected()

    def up_a(self, *args):
        self.a.up(f"leafs 1 hosts 2\ntrunk leaf1:9 listen {self.address} {self.options}\n", *args)

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

    def lost(self, port=9):
        """Lost connections, without those of a daemon that got no processor for 15 seconds."""
        ends = [x for f in (self.a, self.b) for x in f.show()["trunks"] if x["port"] == port]
        return max(ends[0]["lost"] - sum(x["timeouts"] for x in ends), 0)

    def down(self):
        self.a.down()
        self.b.down()


@pytest.fixture(scope="module", params=["unix", "tcp", "tls"])
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


def test_the_manager_in_the_other_daemon_is_known(trunk):
    """By its LID, which Active ports have."""
    lid = trunk.a.port("h1")["lid"]
    assert trunk.a.show()["sm"] == {"host": "h1", "port": 1, "lid": lid}
    assert trunk.b.show()["sm"] == {"lid": lid}
    assert f"fabric {trunk.b.name}, subnet manager in another daemon, lid {lid}\n" in trunk.b.command("show")
    assert re.search(r'^muslin_sm_up\{.*host=""\} 1$', trunk.b.command("metrics"), re.M)


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
    hello = struct.pack(">8sHBBB3xQQ16s64s", b"muslinTK", 4, 9, 0, 2, 0x0002C9FFFF000010, 0, bytes(16), b"x")
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


@pytest.mark.parametrize("trunk", ["tls"], indirect=True)
def test_a_hostile_peer_of_tls(trunk):
    """No TLS, half a handshake, garbage in it: each is rejected and counted, and the trunk still works."""
    host, port = trunk.address.split(":")
    hello = struct.pack(">BBHI", 1, 0, 112, 0) + b"muslinTK" + bytes(104)
    client_hello = b"\x16\3\1\2\0\1\0\1\xfc\3\3"
    rows = {
        "HTTP": b"GET / HTTP/1.0\r\n\r\n",
        "a hello without TLS": hello,
        "a ClientHello of zeros": client_hello + bytes(512 - 6),
        "an alert": b"\x15\3\3\0\2\2\x28",
        "half a ClientHello": client_hello,  # until the time is over
    }
    for i, (name, data) in enumerate(rows.items(), 1):
        with socket.create_connection((host, int(port)), timeout=30) as s:
            s.sendall(data)
            reply = b""
            while part := s.recv(1000):
                reply += part
        assert trunk.a.show()["trunks_refused"]["refused_tls"] == i, name
        assert b"muslinTK" not in reply
        assert trunk.counters()["connected"] and not trunk.lost()
    assert sum(trunk.a.show()["trunks_refused"].values()) == len(rows)
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


def traps(fabric, number):
    """Which of a capture's packets are traps of that number."""
    return fabric.packets(f"infiniband.mad.method == 0x05 and infiniband.notice.trapnumberdeviceid == {number}")


def test_partitions_across_a_trunk(new_trunk):
    """
    h1, h2 and h101 have the P_Key 0x8002; h102 does not, and its switch, in the other daemon, drops what h1 sends to it
    with that one, and reports it to the subnet manager.
    """
    t = new_trunk("unix").active()
    path = t.a.folder / "partitions.conf"
    blue = ", ".join(f"{t.of(h).port(h)['guid']}=full" for h in ("h1", "h2", "h101"))
    path.write_text(f"Default=0x7fff, ipoib : ALL=full;\nBlue=0x8002 : {blue};\n")
    t.a.command("partitions", path)
    for host, has in ("h2", True), ("h101", True), ("h102", False):
        table = t.of(host).run(host, "smpquery", "pkeys", t.of(host).port(host)["lid"])
        assert ("0x8002" in table) == has, (host, table)
    args = ["ib_send_bw", "-F", "-n", "50", "--pkey_index=1", "-p", free_port()]
    _, out = t.pair(("h101", *args), ("h1", *args, "localhost"))
    assert RESULT.search(out), out

    def drops(node, port):
        fabric = t.a if node == "leaf1" else t.b
        return fabric.port(node, port)["counters"]["port_xmit_constraint_errors"]

    assert not drops("leaf101", 2) and not drops("leaf101", 1)
    before = t.a.show()["manager"]["traps"]
    with t.a.trace("leaf1:9") as trace:
        args = ["ib_send_bw", "-F", "-n", "50", "-p", free_port()]
        t.b.start("h102", *args)
        clients = []

        def dropped():
            if not clients or not clients[-1].running():  # the server was not listening yet
                clients.append(t.a.start("h1", *args, "--pkey_index=1", "localhost"))
            return drops("leaf101", 2)

        wait_until(dropped, 60, "a packet dropped at h102's switch", 0.1)
        wait_until(lambda: t.a.show()["manager"]["traps"] > before, 30, "the trap at the manager", 0.1)
    assert not drops("leaf101", 1) and not drops("leaf1", 9)
    assert traps(trace, 259)  # a bad P_Key at a switch


def test_a_trap_from_the_other_daemon(new_trunk):
    """A link of the other daemon goes down: its switch sends trap 128 to the embedded subnet manager, which sweeps."""
    t = new_trunk("unix").active()
    before = t.a.show()["manager"]
    with t.a.trace("leaf1:9") as trace:
        t.b.command("link", "h102:1", "down")
        wait_until(lambda: t.a.show()["manager"]["traps"] > before["traps"], 10, "the trap", 0.05)
        wait_until(lambda: t.a.show()["manager"]["nodes"] == before["nodes"] - 1, 10, "the sweep", 0.05)
    assert traps(trace, 128)
    t.b.command("link", "h102:1", "up")
    t.active().rping("h102", "h2")


def test_a_trap_reaches_opensm_in_the_other_daemon(new_trunk):
    t = new_trunk("unix", ("--no-sm",))
    t.a.sweep("h1")
    t.active()
    said = rf"num:128.* from LID:{t.b.node('leaf101')['lid']}\b"
    seen = len(re.findall(said, t.a.sm_log.read_text(errors="replace")))
    t.b.command("link", "h102:1", "down")
    wait_until(lambda: len(re.findall(said, t.a.sm_log.read_text(errors="replace"))) > seen, 30, "the notice", 0.1)
    t.b.command("link", "h102:1", "up")
    t.active().rping("h102", "h2")


@pytest.mark.parametrize("opensm", [False, True], ids=["embedded", "opensm"])
def test_exit_and_restart_of_the_daemon_with_the_manager(new_trunk, opensm):
    """The other daemon's hosts keep their links and LIDs meanwhile, and communicate."""
    sm = ("--no-sm",) if opensm else ()
    t = new_trunk("unix", sm)
    if opensm:
        t.a.sweep("h1")
    t.active()
    lids = [t.b.port(h)["lid"] for h in ("h101", "h102")]
    os.kill(t.a.daemon_pid, signal.SIGKILL)
    wait_until(lambda: t.b.port("leaf101", 9)["state"] == "Down", 20, "the link down", 0.1)
    assert [t.b.port(h)["lid"] for h in ("h101", "h102")] == lids
    assert t.b.show()["sm"] is None
    args = ["ib_write_bw", "-F", "-n", "100", "-p", free_port()]
    _, out = t.b.pair(("h101", *args), ("h102", *args, "localhost"))
    assert RESULT.search(out), out
    t.a.down()
    t.up_a(*sm)
    if opensm:
        t.a.sweep("h1")
    t.active()
    known = [n["lid"] for f in (t.a, t.b) for n in f.show()["nodes"]]
    assert all(known) and len(set(known)) == 6, known
    wait_until(lambda: t.b.port("h101")["sm_lid"] == t.a.port("h1")["lid"], 30, "the manager's LID", 0.1)
    t.rping("h101", "h1")
    t.rping("h2", "h102")
    assert not t.lost()


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


# TLS


class Relay:
    """Forwards connections to @port, keeps what it sees, and may change one byte."""

    def __init__(self, port):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port, self.to, self.seen, self.damage = self.server.getsockname()[1], port, bytearray(), False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one = self.server.accept()[0]
            except OSError:
                return
            try:
                other = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                one.close()
                continue
            for pair in (one, other), (other, one):
                threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, source, to):
        with contextlib.suppress(OSError):
            while data := bytearray(source.recv(1 << 16)):
                self.seen += data
                if self.damage:
                    self.damage = False
                    data[-1] ^= 1
                to.sendall(data)
        for s in source, to:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def two(muslin_make_fabric):
    """Starts the daemons of two trunks with the given options at ends a and b: leaf1:9 to leaf101:9, and 10 to 10."""
    fabrics, relays = [], []

    def make(nine, ten):
        fabrics[:] = a, b = muslin_make_fabric("tls-a"), muslin_make_fabric("tls-b")
        if not tls_in_build(a):
            pytest.skip("needs a build with GnuTLS")
        keys = {"KEY": write_key(a), "OTHER": write_key(a, "other", "another key of 16 bytes\n")}
        lines = ["leafs 1 hosts 2\n", "leafs 1 hosts 2 first 101\n"]
        for port, ends in (9, nine), (10, ten):
            relays.append(Relay(free_port()))
            where = f"listen 127.0.0.1:{relays[-1].to}", f"to 127.0.0.1:{relays[-1].port}"
            for i, (leaf, options) in enumerate(zip(("leaf1", "leaf101"), ends, strict=True)):
                words = " ".join(str(keys.get(word, word)) for word in options.split())
                lines[i] += f"trunk {leaf}:{port} {where[i]} {words}\n"
        a.up(lines[0])
        b.up(lines[1], "--no-sm")
        t = Trunk.__new__(Trunk)
        t.a, t.b = a, b
        return t.active(), relays

    yield make
    for f in fabrics:
        f.down()
    for r in relays:
        r.server.close()


def test_tls_encrypts_what_a_trunk_carries(two):
    """rping's text and the trunk's own hello are on a plain connection, and nothing of them within TLS."""
    t, (plain, tls) = two(("key KEY", "key KEY"), ("key KEY tls on", "key KEY tls on"))
    wait_until(lambda: t.a.port("leaf1", 10)["state"] == "Active", 30, "the second trunk", 0.1)
    for carries, other in ((plain, 10), (tls, 9)):
        t.a.command("link", f"leaf1:{other}", "down")
        wait_until(lambda o=other: t.b.port("leaf101", o)["state"] == "Down", 10, "only one trunk", 0.05)

        def works():  # when the routes are those of the other trunk
            try:
                t.rping()
            except AssertionError:
                return False
            return True

        wait_until(works, 60, "rping", 0.2)
        assert len(carries.seen) > 5000
        t.a.command("link", f"leaf1:{other}", "up")
        wait_until(lambda o=other: t.a.port("leaf1", o)["state"] == "Active", 30, "both trunks", 0.1)
    for text in b"muslinTK", b"rdma-ping-", b"leaf1":
        assert text in plain.seen and text not in tls.seen
    by_port = {x["port"]: x for x in t.a.show()["trunks"]}
    assert by_port[10]["tls"] and not by_port[9]["tls"]
    assert not t.lost(10) and not by_port[10]["violations"]

    tls.damage = True  # the keepalives have it
    wait_until(lambda: [x for f in (t.a, t.b) for x in f.show()["trunks"] if x["violations"]], 20, "a bad record", 0.1)
    wait_until(lambda: t.a.port("leaf1", 10)["state"] == "Active", 60, "the trunk again", 0.1)
    assert t.lost(10) and not t.lost(9)


@pytest.mark.parametrize(
    "listens, connects, counter",
    [
        ("key KEY tls on", "key OTHER tls on", "refused_key"),
        ("key KEY tls on", "key KEY", "refused_tls"),
        ("key KEY", "key KEY tls on", "refused_tls"),
    ],
    ids=["another key", "plain against TLS", "TLS against plain"],
)
def test_ends_that_differ(two, listens, connects, counter):
    """One trunk of two daemons is refused again and again: it stays down, and the other one does not notice."""
    t, _ = two(("key KEY tls on", "key KEY tls on"), (listens, connects))
    wait_until(lambda: t.a.show()["trunks_refused"][counter] >= 2, 30, "a second attempt", 0.1)
    refused = t.a.show()["trunks_refused"]
    assert refused[counter] == sum(refused.values()), refused
    assert t.a.port("leaf1", 10)["state"] == t.b.port("leaf101", 10)["state"] == "Down"
    t.rping()
    assert not t.lost(9)
    assert ("the peer has another key" if counter == "refused_key" else "TLS") in t.b.command("log")


# Shards


@pytest.fixture(scope="module")
def shards(muslin_make_fabric):
    """leaf1 with h1, h2 and spine1 are in one daemon, leaf2 with h3, h4 and spine2 in the other."""
    f = muslin_make_fabric("shards").up(SHARDS, "--shards", "2")
    yield f
    f.down()


def test_show_is_of_the_whole(shards):
    names = {n["name"] for n in shards.show()["nodes"]}
    assert names == {"h1", "h2", "h3", "h4", "leaf1", "leaf2", "spine1", "spine2"}
    assert all(p["state"] == "Active" for n in shards.show()["nodes"] for p in n["ports"] if p.get("peer"))
    assert shards.port("leaf2", 3)["peer"] == "spine1"
    assert len(json.loads(shards.command("show", "--json", "leaf2"))["nodes"]) == 1
    assert "no node" in shards.command("show", "leaf3", status=1)
    assert "h3" in shards.command("show", "h9", status=1)  # a similar name, of the second daemon
    assert shards.command("show", "--topology").count("Switch") == 4


def test_show_of_a_node_names_the_manager_in_another_daemon(shards):
    for node in "h1", "h3", "leaf2":
        fabric, manager, *_ = shards.command("show", node).splitlines()
        assert re.fullmatch(rf"fabric {shards.name}, subnet manager on h1:1, lid \d+", fabric), node
        assert manager.startswith("embedded manager on h1: Master"), node
        assert json.loads(shards.command("show", "--json", node))["sm"] == shards.show()["sm"]


def test_a_fat_tree_in_four_shards(muslin_new_fabric):
    """192 trunks connect at once, none of them is refused, and the manager waits for them."""
    shown = muslin_new_fabric.up("fattree k=8 levels=3", "--shards", "4").show()
    assert len(shown["trunks"]) == 2 * 96 and all(t["connected"] for t in shown["trunks"])
    assert not any(shown["trunks_refused"].values()), shown["trunks_refused"]
    assert shown["manager"]["heavy_sweeps"] <= 3


def test_each_link_counts_once(muslin_new_fabric):
    """One of the six is between the daemons, which have seven and five ends of links."""
    out = muslin_new_fabric.command("up", "--shards", "2", "leafs 2 spines 1 hosts 2")
    assert "4 hosts, 3 switches, 6 links" in out, out


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


def test_the_manager_in_another_shard(muslin_new_fabric):
    """The place sm and partitions are those of the daemon that has the embedded subnet manager."""
    fabric = muslin_new_fabric.up("leafs 2 spines 2 hosts 2", "--shards", "2", "--sm-host", "h3")
    with fabric.fault("sm", "pause") as fault:
        assert fault.hits == 1
    fabric.fault("sm", "busy", expect=False)
    assert "sm busy" in fabric.command("fault", "clear", "sm")
    path = fabric.folder / "partitions.conf"
    path.write_text("Default=0x7fff, ipoib : ALL=full;\nBlue=0x8002 : ALL=full;\n")
    fabric.command("partitions", path)
    assert all("0x8002" in fabric.run(host, "smpquery", "pkeys", "-D", "0") for host in ("h1", "h3"))


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


def test_trace_and_metrics_of_both(shards):
    with shards.trace("h4") as trace:
        shards.run("h3", "smpquery", "nodeinfo", shards.port("h4")["lid"])
    assert trace.packets("infiniband.mad.attributeid == 0x11")
    text = shards.command("metrics")
    for host in ("h1", "h4"):
        one = shards.command("metrics", host)
        assert re.search(r'^muslin_sm_up\{.*host="h\d+"\} 1$', one, re.M) and f'node="{host}",port="1"}} 1' in one
        assert set(re.findall('node="(.*?)"', one)) == {host}
    assert 'node="h1"' in text and 'node="h4"' in text and 'node="spine2"' in text
    assert "leaf2:1" in shards.command("top", "-n", "1", "--interval", "0.1")


def test_console_finds_the_daemon_of_each_node(shards):
    def console(text):
        return shards._start(["sh", "-c", f"printf '{text}' | '{shards.muslin}' console"]).wait(20)

    console('Unlink "h1"[1]\\nUnlink h4\\nError h3[1] 50\\n')
    assert [shards.port(h)["state"] for h in ("h1", "h2", "h3", "h4")] == ["Down", "Active", "Active", "Down"]
    assert "h3:1 drop prob=50%" in shards.command("fault", "list")
    console("Link h1\\nLink h4\\nClear h3[1]\\n")
    wait_until(lambda: all(shards.port(h)["state"] == "Active" for h in ("h1", "h4")), 60, "the links", 0.1)
    assert "drop" not in shards.command("fault", "list")


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


def start_shard(fabric, index):
    daemon = [fabric.muslin.parent / "muslind", "--name", fabric.name, "--shard", f"{index}/2", SHARDS]
    fabric._start(daemon, ()).wait(30)


def kill_shard(fabric, index):
    name = f"{fabric.name}.{index}" if index else fabric.name
    os.kill(int(next((fabric.folder / "run").glob(f"{name}/pid")).read_text()), signal.SIGKILL)


def events(fabric):
    return json.loads(fabric.command("timeline"))["events"]


def do_without(fabric, dead, names):
    """Commands for the whole fabric do without the dead daemon and say so; @names: its nodes, a host first."""

    def said(*args, status=0):
        out = fabric.command(*args, status=status)
        assert f"daemon {dead}, which runs a part of fabric {fabric.name}, is not up" in out, out
        return out

    assert said("show", "--topology").count("Switch") == 2
    numbers = re.findall(r"^\d+$", said("fault", "add", "all", "delay", "time=1us", "prob=1%"), re.M)
    assert [str(f["id"]) for f in json.loads(fabric.command("fault", "list", "--json"))] == numbers
    assert len(numbers) == 1
    fabric.command("fault", "clear", "all")
    assert f"but daemon {dead} has, which is not up" in said("show", names[0], status=1)
    for words in ["show"], ["top", "-n", "1", "--interval", "0.1"], ["metrics"], ["timeline"]:
        out = fabric.command(*words)
        assert not [n for n in names if re.search(rf'^(ca|switch) {n} |^{n}:\d|node="{n}"', out, re.M)], out
    assert {f"==> {fabric.name} <==", f"==> {fabric.name}.1 <=="} <= set(fabric.command("log").splitlines())


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


def test_a_shard_dies_and_comes_back(shards):
    kill_shard(shards, 1)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Down", 20, "its links down", 0.1)
    assert {n["name"] for n in shards.show()["nodes"]} == {"h1", "h2", "leaf1", "spine1"}
    do_without(shards, f"{shards.name}.1", ["h3", "h4", "leaf2", "spine2"])
    start_shard(shards, 1)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Active", 60, "its links", 0.1)
    wait_until(lambda: shards.port("h3")["state"] == "Active", 60, "it is back", 0.1)
    before = events(shards)  # it does not record yet
    shards.command("timeline", "--start")
    with shards.link("h3").down():
        wait_until(lambda: shards.port("leaf2", 1)["state"] == "Down", 10, "the switch's end", 0.05)
    later = [t for t, _, what in events(shards) if what == "leaf2:1 Down"]
    assert len(later) == 1 and before and later[0] > max(t for t, *_ in before), (before, later)
    traffic = json.loads(shards.command("timeline"))["bytes"]
    assert abs(len(traffic["h1"]) - len(traffic["h3"])) <= 2, {h: len(b) for h, b in traffic.items()}
    shards.command("down")
    assert not list((shards.folder / "run").glob("*/pid"))


def test_the_first_shard_dies_and_comes_back(muslin_new_fabric):
    """It has the subnet manager; the other daemon's hosts go on without."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2")
    common = ["ib_write_bw", "-F", "-p", free_port(), "-n", "2000"]
    fabric.pair(("h4", *common), ("h3", *common, "h4"))
    top = fabric.start_muslin("top", "-n", "2", "--interval", "2")
    top.expect("packets/s")
    kill_shard(fabric, 0)
    wait_until(lambda: fabric.port("leaf2", 3)["state"] == "Down", 20, "its links down", 0.1)
    assert {n["name"] for n in fabric.show()["nodes"]} == {"h3", "h4", "leaf2", "spine2"}
    rows = [line.split() for line in top.wait(30).split("packets/s")[-1].splitlines() if line]
    assert rows and not [r for r in rows if r[0].startswith(("h1:", "h2:", "leaf1:", "spine1:"))], rows
    assert not [r for r in rows if float(r[-3]) + float(r[-2]) > 0.5], rows  # another port's counters
    do_without(fabric, fabric.name, ["h1", "h2", "leaf1", "spine1"])
    fabric.pair(("h4", *common), ("h3", *common, "h4"))
    start_shard(fabric, 0)
    wait_until(lambda: all(fabric.port(h)["state"] == "Active" for h in ("h1", "h3")), 60, "it is back", 0.1)
    wait_until(lambda: fabric.show()["manager"]["nodes"] == 8, 60, "the manager's sweep", 0.1)
    wait_until(lambda: fabric.show()["manager"]["up"], 60, "the subnet up", 0.1)
    fabric.pair(("h3", *common), ("h1", *common, "h3"))
    kill_shard(fabric, 0)
    fabric.command("down")
    assert not list((fabric.folder / "run").glob("*/pid"))


def test_a_shard_dies_while_commands_ask_it(muslin_new_fabric):
    """They do without it, as without one that is not up."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2")
    first = fabric.daemon_pid
    os.kill(first, signal.SIGSTOP)
    asks = [fabric.start_muslin(*words) for words in (["show"], ["show", "h3"], ["metrics", "h3"])]

    def connected(p):
        links = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{p.popen.pid}/fd").iterdir()]
        return any(link.startswith("socket:") for link in links)

    for p in asks:
        wait_until(lambda p=p: connected(p), 10, "its connection", 0.05)
    os.kill(first, signal.SIGKILL)
    for p in asks:
        out = p.wait(20)
        assert "h3" in out and "h1" not in out, out


def test_refused_peers_of_all_daemons_count(muslin_new_fabric):
    """The second of three daemons refuses one."""
    fabric = muslin_new_fabric.up("leafs 3 spines 2 hosts 1", "--shards", "3")
    assert not any(fabric.show()["trunks_refused"].values())
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(next((fabric.folder / "run").glob(f"{fabric.name}.1/trunk.sock"))))
        s.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(200))
        while s.recv(1000):
            pass
    refused = fabric.show()["trunks_refused"]
    assert refused["refused_hello"] == sum(refused.values()) == 1, refused


def test_partitions_of_the_manager_in_another_shard(muslin_new_fabric):
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2", "--sm-host", "h3")
    path = fabric.folder / "partitions.conf"
    path.write_text("Default=0x7fff, ipoib : ALL=full;\nBlue=0x8002 : ALL=full;\n")
    fabric.command("partitions", path)
    for host in "h1", "h4":
        assert "0x8002" in fabric.run(host, "smpquery", "pkeys", fabric.port(host)["lid"])
