# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One subnet of two daemons, connected by a trunk over a Unix socket, TCP or TLS.

    daemon a: h1, h2 - leaf1:9 ===== leaf101:9 - h101, h102 :daemon b
"""

import contextlib
import os
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
