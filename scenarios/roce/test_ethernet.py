# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
RoCE hosts on a simulated Ethernet.

      r1 10.1.0.1     r2 10.1.0.2             r3 10.1.0.3     v3 10.1.10.3 in VLAN 10
      fd01::1         fd01::2                 |               | (untagged there)
      10.1.10.1 in VLAN 10, tagged            |               |
      |               |                       |               |
      +--- 2 sw1 3 ---+                       +--- 2 sw2 3 ---+
             1 ------------- all VLANs ------------- 1
"""

import itertools
import json
import os
import re
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from muslin.process import free_port, wait_until
from test_perftest import RESULT
from test_roce import frames, icrc_is_right
from test_roce_namespaces import inside

TOPOLOGY = """
ethernet sw1 mtu 4200
ethernet sw2 mtu 4200
ethernet sw1 sw2
host r1 ether sw1 ip 10.1.0.1/24 fd01::1/64 10.1.10.1/24@10
host r2 ether sw1 ip 10.1.0.2/24 fd01::2/64
host r3 ether sw2 ip 10.1.0.3/24
host v3 ether sw2 vlan 10 ip 10.1.10.3/24
"""
IP = {"r1": "10.1.0.1", "r2": "10.1.0.2", "r3": "10.1.0.3", "v3": "10.1.10.3"}


@pytest.fixture(scope="module")
def net(muslin_make_fabric):
    fabric = muslin_make_fabric("ethernet")
    fabric.up(TOPOLOGY)
    yield fabric
    fabric.down()


@pytest.mark.parametrize("args", [("fault", "add", "sw1:9", "down"), ("link", "sw1:9", "down"), ("trace", "sw1:9")])
def test_a_port_that_a_switch_does_not_have(net, args):
    assert "sw1:9: the ports of sw1 are 1 to 3" in net.command(*args, status=1)


def test_metrics_name_the_guid(net):
    guid = next(n["guid"] for n in net.show()["nodes"] if n["name"] == "r1")
    assert f'node="r1",port="1",guid="{guid}",link_layer="Ethernet"' in net.command("metrics", guid)


def test_metrics_without_a_subnet(net):
    """No InfiniBand port: that there is no subnet manager is no failure."""
    assert "muslin_sm_up" not in net.command("metrics")


def end(fabric, name, num=1):
    """A switch's port, or a station, with its counters."""
    e = fabric.show()["ethernet"]
    ends = e["stations"] + [p for sw in e["switches"] for p in sw["ports"]]
    return next(p for p in ends if p["name"] == name and p["num"] == num)


def counter(fabric, name, num, which):
    return end(fabric, name, num)["counters"][which]


def roce(fabric, host, which):
    return int(fabric.run(host, "cat", f"/sys/class/infiniband/rxe0/ports/1/counters/roce_{which}"))


def gid(fabric, host, address, kind):
    """The index of the GID @address with type @kind."""
    rows = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), RoCE v(\d)", fabric.run(host, "ibv_devinfo", "-v"))
    plain = {"::ffff:" + address, address}
    if "." in address:
        a, b, c, d = map(int, address.split("."))
        plain.add(f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}")
    return next(int(i) for i, text, v in rows if text in plain and int(v) == kind)


def rping(fabric, server, client, address, *, count=10, size=100):
    argv = ["rping", "-a", address, "-V", "-C", count, "-S", size]
    srv, out = fabric.pair((server, *argv, "-s"), (client, *argv, "-c", "-v"))
    assert out.count("ping data") == count


def perftest(fabric, tool, hosts, *args, iters=100, index=(0, 0)):
    server, client = hosts
    common = [tool, "-p", free_port(), "-n", iters, "-F", *args]
    srv, out = fabric.pair((server, *common, "-x", index[0]), (client, *common, "-x", index[1], IP[server]))
    assert RESULT.search(out), out


class Capture:
    """Captures the packets at a place during the block."""

    def __init__(self, fabric, place):
        self.fabric, self.path = fabric, fabric.folder / f"{place.replace(':', '-')}-{next(fabric.count)}.pcapng"
        self.place = place

    def __enter__(self):
        self.trace = self.fabric.start_muslin("trace", "-w", self.path, self.place)
        wait_until(lambda: self.path.exists() and self.path.stat().st_size, 10, "the capture")
        return self

    def __exit__(self, *_):
        self.trace.signal(2)
        self.trace.wait(20, None)

    def fields(self, *names, only="", options=()):
        # That dissector mistakes payloads for its own protocol.
        argv = ["tshark", "-r", self.path, "-Y", only, "-T", "fields", "--disable-protocol", "rpcordma"]
        for o in options:
            argv += ["-o", o]
        for n in names:
            argv += ["-e", n]
        out = self.fabric._start(argv).wait(60)
        return [line.split("\t") for line in out.splitlines() if not line.startswith("Running")]

    def sound(self):
        """No malformed packet, every ICRC correct. Returns the number of packets with an ICRC."""
        # tshark mistakes payload that begins like an EtherType for a frame: payloads of programs are not checked.
        wrong = self.fields("frame.number", "frame.protocols", only="_ws.malformed")
        assert not [row for row in wrong if "infiniband:ethertype:" not in row[1]]
        checked = [icrc_is_right(f) for f in frames(self.path)]
        assert False not in checked
        return checked.count(True)


def test_device(net):
    info = net.run("r1", "ibv_devinfo", "-v")
    for line in (
        r"state:\s+PORT_ACTIVE \(4\)",
        r"active_mtu:\s+4096 \(5\)",
        r"link_layer:\s+Ethernet",
        r"GID\[\s*0\]:\s+::ffff:10.1.0.1, RoCE v2",
        r"GID\[\s*4\]:\s+\S+, RoCE v1",
    ):
        assert re.search(line, info, re.M), (line, info)


@pytest.mark.parametrize("client", ["r2", "r3"])
def test_rping(net, client):
    """On one switch, and between the two."""
    rping(net, "r1", client, "10.1.0.1")
    rping(net, client, "r1", IP[client])


def test_rping_over_ipv6(net):
    rping(net, "r1", "r2", "fd01::1")


def test_rping_in_a_vlan(net):
    """r1 tags packets from its address in the VLAN; v3's port removes the tag."""
    with Capture(net, "r1") as c:
        rping(net, "v3", "r1", "10.1.10.3")
    assert c.sound() > 20
    assert {row[0] for row in c.fields("vlan.id", only="infiniband")} == {"10"}


def test_vlans_are_isolated(net):
    """r3 and v3 are on one switch, in two VLANs: there is no answer."""
    before = roce(net, "r3", "no_neighbour")
    client = net.start("r3", "rping", "-c", "-a", "10.1.10.3", "-v", "-C", 1)
    wait_until(lambda: roce(net, "r3", "no_neighbour") > before, 20, "the end of neighbour discovery")
    assert "ping data" not in client.output
    client.kill()


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"])
def test_bandwidth(net, tool, kind):
    index = gid(net, "r1", IP["r1"], kind), gid(net, "r3", IP["r3"], kind)
    perftest(net, tool, ("r1", "r3"), *([] if "atomic" in tool else ["-s", "65536"]), index=index)


@pytest.mark.parametrize("kind", [1, 2])
def test_datagrams(net, kind):
    index = gid(net, "r1", IP["r1"], kind), gid(net, "r2", IP["r2"], kind)
    perftest(net, "ib_send_bw", ("r1", "r2"), "-c", "UD", "-s", "2048", index=index)


@pytest.mark.parametrize("kind", [1, 2])
def test_captures_are_dissected(net, kind):
    """Of either version of RoCE: the fields of the annex, no malformed packet, and every ICRC correct."""
    index = gid(net, "r1", IP["r1"], kind), gid(net, "r2", IP["r2"], kind)
    with Capture(net, "sw1:3") as c:
        perftest(net, "ib_write_bw", ("r1", "r2"), "-s", "10001", iters=5, index=index)
        perftest(net, "ib_read_bw", ("r1", "r2"), "-s", "3000", iters=5, index=index)
        perftest(net, "ib_send_bw", ("r1", "r2"), "-c", "UD", "-s", "77", iters=5, index=index)
    assert c.sound() > 30
    types = {row[0].partition(",")[0] for row in c.fields("eth.type", only="infiniband.bth")}  # others are of payloads
    assert types == {"0x8915" if kind == 1 else "0x0800"}


@pytest.mark.parametrize("first, then", [("v1", "v2"), ("v2", "v1")])
def test_the_default_mode_is_changed(net, first, then):
    """New connections by rdma_cm use the default version of their host; existing ones keep theirs."""
    net.command("mode", "r2", first)
    try:
        with Capture(net, "r2") as c:
            rping(net, "r1", "r2", "10.1.0.1", count=3)
            net.command("mode", "r2", then)
            rping(net, "r1", "r2", "10.1.0.1", count=3)
        assert net.command("mode", "r2").strip() == then
    finally:
        net.command("mode", "r2", "v2")
    types = [kind for kind, _ in itertools.groupby(row[0] for row in c.fields("eth.type", only="infiniband.bth"))]
    assert types == [{"v1": "0x8915", "v2": "0x0800"}[mode] for mode in (first, then)]
    assert c.sound()


def test_the_default_mode_of_datagrams(net):
    """Address resolution and SIDR use that version, too."""
    net.command("mode", "r2", "v1")
    try:
        with Capture(net, "r2") as c:
            argv = ["udaddy", "-c", 1, "-C", 3]
            srv, cli = net.pair(("r1", *argv, "-b", "fd01::1"), ("r2", *argv, "-s", "fd01::1"))
        assert "return status 0" in srv and "return status 0" in cli
    finally:
        net.command("mode", "r2", "v2")
    assert {row[0] for row in c.fields("eth.type", only="infiniband.bth")} == {"0x8915"}
    assert c.sound()


def test_a_default_of_the_topology(new_fabric):
    """With mode=v1 the GIDs of v1 are the first ones, and the default of programs; the peer may have another mode."""
    new_fabric.up("ethernet sw1\nhost a ether sw1 ip 10.4.0.1/24 mode=v1\nhost b ether sw1 ip 10.4.0.2/24\n")
    assert new_fabric.command("mode", "a").strip() == "v1"
    versions = re.findall(r"GID\[\s*\d+\]:\s+\S+, RoCE v(\d)", new_fabric.run("a", "ibv_devinfo", "-v"))
    assert versions == ["1", "1", "2", "2"]
    with Capture(new_fabric, "a") as c:
        rping(new_fabric, "b", "a", "10.4.0.2", count=3)
    assert {row[0] for row in c.fields("eth.type", only="infiniband.bth")} == {"0x8915"}
    assert c.sound() > 10


def test_wrong_modes(net):
    assert 'a mode is v1 or v2, not "v3"' in net.command("mode", "r1", "v3", status=1)
    assert 'no host "r9", but r1' in net.command("mode", "r9", status=1)


GROUPS = [("239.1.2.3", "10.1.0.1", "10.1.0.3"), ("ff0e::7", "fd01::1", "fd01::2")]


@pytest.fixture
def modes(net):
    """Sets the RoCE version of r1 and r2."""
    yield lambda mode: [net.command("mode", host, mode) for host in ("r1", "r2")]
    for host in ("r1", "r2"):
        net.command("mode", host, "v2")


@pytest.mark.parametrize(("group", "a", "b"), GROUPS)
def test_groups(net, modes, group, a, b):
    """
    A group of IPv4 over both switches, one of IPv6 on one: frames have the group's MAC address. As with the kernel,
    groups of IPv6 are of RoCEv1.
    """
    modes("v1" if ":" in group else "v2")
    member = net.start("r1", "mckey", "-m", group, "-b", a, "-C", 20)
    with Capture(net, "r1") as c:
        wait_until(
            lambda: net.run("r2" if ":" in b else "r3", "mckey", "-s", "-m", group, "-b", b, "-C", 20)
            and not member.running(),
            30,
            "the group's packets",
        )
    assert "return status 0" in member.wait(5)
    mac = {"239.1.2.3": "01:00:5e:01:02:03", "ff0e::7": "33:33:00:00:00:07"}[group]
    assert mac in {row[0] for row in c.fields("eth.dst", only="infiniband.deth")}
    assert c.sound() >= 20
    modes("v2")
    if ":" in group:
        assert "failure joining: Unknown error 524" in net.run("r1", "mckey", "-m", group, "-b", a, status=None)


def test_one_port_receives_what_is_for_it(net):
    """When a switch has learned the addresses, other stations do not receive the frames."""
    rping(net, "r1", "r2", "10.1.0.1", count=1)
    before = counter(net, "r3", 1, "rx_frames")
    rping(net, "r1", "r2", "10.1.0.1", count=50)
    assert counter(net, "r3", 1, "rx_frames") - before < 10


def test_damage_is_detected(net):
    """The ICRC detects corruption by a switch, the FCS corruption by a link; the packets are retransmitted."""
    before = roce(net, "r2", "icrc_errors") + roce(net, "r2", "malformed")
    fcs = counter(net, "r2", 1, "rx_fcs_errors")
    net.fault("r2", "corrupt", dir="in", pcap="udp port 4791 and len > 1000", nth=3, offset=200)
    net.fault("r2", "corrupt", "fcs", dir="in", pcap="udp port 4791 and len > 1000", nth=30)
    rping(net, "r2", "r1", IP["r2"], count=40, size=3000)
    assert roce(net, "r2", "icrc_errors") + roce(net, "r2", "malformed") == before + 1
    assert counter(net, "r2", 1, "rx_fcs_errors") == fcs + 1


@pytest.mark.parametrize(
    ("action", "keys"),
    [
        ("drop", {"prob": "2%"}),
        ("duplicate", {"every": 3}),
        ("reorder", {"every": 7}),
        ("delay", {"time": "1ms", "prob": "5%"}),
    ],
)
def test_faults_on_the_way(net, action, keys):
    """Between the switches; in both directions, and large messages arrive completely."""
    net.fault("sw1:1", action, pcap="udp port 4791 or (vlan and udp port 4791)", **keys)
    rping(net, "r3", "r1", IP["r3"], count=30, size=30000)


def test_shown_by_name(net):
    """A switch with all of its ports, a station with its port at the switch."""
    rping(net, "r1", "r3", "10.1.0.1", count=1)
    sw2 = net.command("show", "--counters", "sw2")
    assert re.findall(r"^ethernet (\S+)", sw2, re.M) == ["sw2"] and "r1:1" not in sw2
    assert re.findall(r"^ +\d +up +(\S+)$", sw2, re.M) == ["sw1:1", "r3:1", "v3:1"]
    r3 = net.command("show", "--counters", "r3")
    assert re.findall(r"^ +(\d) +up +(\S+)$", r3, re.M) == [("2", "r3:1")]
    assert re.search(r"^ +tx_frames +\d+$", r3, re.M)
    assert 'has no node "sw3"' in net.command("show", "sw3", status=1)


def test_a_card_by_its_guid(new_fabric):
    """A host that has a network card alone is traced, and its link taken down, by its GUID as by its name."""
    new_fabric.up("ethernet sw1\nhost n1 nic sw1\nhost n2 nic sw1\n")
    guid = next(n["guid"] for n in new_fabric.show()["nodes"] if n["name"] == "n1")
    with new_fabric.trace(guid) as trace:
        pass
    assert b"n1:1" in trace.path.read_bytes()
    new_fabric.command("link", guid, "down")
    assert [end(new_fabric, name)["state"] for name in ("n1", "n2")] == ["down", "up"]


@pytest.mark.parametrize("host", ["r1", "n1"])
@pytest.mark.parametrize("port", ["", ":1"])
def test_a_fault_by_guid(new_fabric, host, port):
    """A fault at a host with a RoCE port or with a card, by its GUID; the messages are those for its name, too."""
    new_fabric.up("ethernet sw1\nhost r1 ether sw1 ip 10.1.0.1/24\nhost n1 nic sw1\n")
    guid = new_fabric.node(host)["guid"]
    with new_fabric.fault(guid + port, "down"):
        assert [name for name in ("r1", "n1") if end(new_fabric, name)["state"] == "down"] == [host]
    assert end(new_fabric, host)["state"] == "up"
    assert "lft: there is no such fault" in new_fabric.command("fault", "add", guid + port, "lft", status=1)
    refused = new_fabric.command("fault", "add", f"{guid}:2", "down", status=1)
    assert f"{guid}:2: the ports of {guid} are 1 to 1" in refused


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ("n1", "n1 has a network card alone, no adapter that could be a ConnectX: leave out --model connectx"),
        ("n1,r1", "r1 has no InfiniBand port, and a ConnectX no other one: use --model muslin"),
    ],
)
def test_a_guest_that_cannot_have_a_connectx(new_fabric, hosts, message):
    new_fabric.up("ethernet sw1\nhost n1 nic sw1\nhost r1 ether sw1 ip 10.1.0.1/24\n")
    assert message in new_fabric.command("vm", hosts, "--model", "connectx", status=1)


MIXED = """
ethernet sw1
host n1 nic sw1
host r1 ether sw1 ip 10.1.0.1/24
switch leaf1 4
host h1 ports 1
cable leaf1:1 h1:1
host h1 nic sw1
"""


def test_the_topology_is_that_of_infiniband(new_fabric):
    """Hosts of the Ethernet alone are no CAs of the subnet."""
    text = new_fabric.up(MIXED).command("show", "--topology")
    assert re.findall(r'^(Ca|Switch)\t.*# "(\w+)"', text, re.M) == [("Switch", "leaf1"), ("Ca", "h1")]


def test_drawn_cards(new_fabric):
    """The card of a host is connected, also where the host has InfiniBand ports."""
    svg = new_fabric.up(MIXED).command("show", "--svg")
    links = re.findall(r"<title>(\S+) - (\S+) Active</title>", svg)
    assert sorted(links) == [("leaf1:1", "h1:1"), ("n1:1", "sw1:1"), ("r1:1", "sw1:2"), ("sw1:3", "h1-eth:1")]


def states(fabric):
    """Those of the ports with a link, by node."""
    return {n["name"]: {p["state"] for p in n["ports"] if "peer" in p} for n in fabric.show()["nodes"]}


def test_a_fault_at_all_links(new_fabric):
    """It is one fault with a number, at links of both kinds."""
    new_fabric.up(MIXED)
    before = states(new_fabric)
    with new_fabric.fault("all", "down") as fault:
        assert {name: {"Down"} for name in before} == states(new_fabric)
        assert fault.hits == 2
    wait_until(lambda: states(new_fabric) == before, 20, "the links", 0.05)
    assert json.loads(new_fabric.command("fault", "list", "--json")) == []


def test_a_fault_at_all_links_of_an_ethernet(net):
    """In both directions of each link: the fault counts what those at the links of two hosts count that communicate."""
    rping(net, "r1", "r2", "10.1.0.1", count=1)
    places = ("all", "r1", "r2")
    faults = [net.fault(place, "delay", time="1us", pcap="udp port 4791") for place in places]
    rping(net, "r1", "r2", "10.1.0.1", count=5)
    for fault in faults:
        fault.clear()
    whole, *parts = (fault.matches for fault in faults)
    assert whole == sum(parts) > 20
    for words, message in {
        ("storm",): "storm: no link there has PAUSE or priority flow control, which stops its sender",
        ("kill",): "kill: it needs a node as its place",
        ("rate", "bps=1G", "dir=in"): "dir: the place all has no direction",
        ("lft", "lid=1", "port=1"): "lft: there is no such fault at all; there are: drop",
        ("unplug",): "all: this fault needs a host as its place",
        ("drop", "slid=1"): "slid",
    }.items():
        assert message in net.command("fault", "add", "all", *words, status=1)


def test_a_guest_with_a_card_alone(new_fabric):
    """The counters of its card are shown as those of a guest that has an adapter, too."""
    new_fabric.up("ethernet sw1\nhost n1 nic sw1\n")
    assert "guest" not in new_fabric.node("n1")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(new_fabric.folder / "run" / new_fabric.name / "control.sock"))
        s.sendall(b'{"command": "vm", "name": "n1"}\n')
        assert json.loads(s.makefile().readline())["result"]["card"]["mac"]
    guest = new_fabric.node("n1")["guest"]
    assert "rx_frames" in guest["card"]["counters"] and "driver" not in guest and "counters" not in guest
    shown = new_fabric.command("show", "--counters", "n1")
    assert "guest's network card" in shown and "guest's device" not in shown


def test_metrics_of_a_fabric_behind_a_card(new_fabric):
    """The first node's counters are not those of InfiniBand ports, which have all of theirs, too."""
    new_fabric.up("ethernet sw1\nhost n1 nic sw1\nswitch leaf1 2\nhost h1 ports 1\ncable leaf1:1 h1:1\n")
    assert new_fabric.show()["nodes"][0]["name"] == "n1"
    text = new_fabric.command("metrics")
    assert re.search(r'^muslin_link_downed_total\{.*node="h1",port="1"\} \d+$', text, re.M)
    assert re.search(r'^muslin_tx_frames_total\{.*node="n1",port="1"\} \d+$', text, re.M)


def test_a_link_that_is_down(net):
    net.command("link", "r2", "down")
    assert end(net, "sw1", 3)["state"] == "down"
    assert "PORT_DOWN" in net.run("r2", "ibv_devinfo")
    net.command("link", "sw1:3", "up")
    assert "PORT_ACTIVE" in net.run("r2", "ibv_devinfo")
    rping(net, "r1", "r2", "10.1.0.1")


SLOW = """
ethernet sw1 queue 64k {flow}
host a ether sw1 ip 10.2.0.1/24 rate 200M
host b ether sw1 ip 10.2.0.2/24
host c ether sw1 ip 10.2.0.3/24
"""


def send_at_once(fabric, to, address, senders, messages):
    """Each of @senders writes @messages of 64 KiB to @to."""

    def flow(host):
        argv = ["ib_write_bw", "-p", free_port(), "-x", 0, "-F", "-n", messages, "-s", 65536]
        return fabric.pair((to, *argv), (host, *argv, address))[1]

    with ThreadPoolExecutor() as all_of_them:
        for out in all_of_them.map(flow, senders):
            assert RESULT.search(out), out


def incast(fabric):
    """b and c send at once to a, whose link is slow. Returns the drops of sw1, and the pauses that it has sent."""
    send_at_once(fabric, "a", "10.2.0.1", "bc", 40)
    ports = fabric.show()["ethernet"]["switches"][0]["ports"]
    return sum(p["counters"]["tx_dropped"] for p in ports), sum(p["counters"]["tx_pause"] for p in ports)


@pytest.mark.parametrize("flow", ["", "pause", "pfc 0,3"])
def test_flow_control(new_fabric, flow):
    """With PAUSE or priority flow control no frame is dropped before a slow link; without, many are."""
    new_fabric.up(SLOW.format(flow=flow))
    with Capture(new_fabric, "b") as c:
        dropped, pauses = incast(new_fabric)
    assert (dropped == 0) == bool(flow) and (pauses > 0) == bool(flow)
    opcodes = {row[0] for row in c.fields("macc.opcode", only="macc")}
    assert opcodes == {"": set(), "pause": {"0x0001"}, "pfc 0,3": {"0x0101"}}[flow]


CONGESTED = """
ethernet sw1 ecn 32k
host a ether sw1 ip 10.2.0.1/24 rate 200M dcqcn
host b ether sw1 ip 10.2.0.2/24 dcqcn
host c ether sw1 ip 10.2.0.3/24 dcqcn
"""


def test_a_switch_marks_what_waits(new_fabric):
    """A switch marks queued packets for a slow link CE; they arrive completely, and their sender gets a CNP."""

    def hw(host, name):
        return int(new_fabric.run(host, "cat", f"/sys/class/infiniband/rxe0/ports/1/hw_counters/{name}"))

    new_fabric.up(CONGESTED)
    with Capture(new_fabric, "a") as c:
        incast(new_fabric)
    noticed, handled = hw("a", "np_ecn_marked_roce_packets"), hw("b", "rp_cnp_handled") + hw("c", "rp_cnp_handled")
    assert 100 < noticed <= counter(new_fabric, "sw1", 1, "tx_ecn_marked")
    assert 10 < handled <= hw("a", "np_cnp_sent") < noticed
    data = c.fields("ip.dsfield.ecn", "ip.checksum.status", only="infiniband.reth", options=["ip.check_checksum:TRUE"])
    assert {row[0] for row in data} <= {"2", "3"} and {row[1] for row in data} == {"1"}
    assert c.sound() > noticed


CONTROLLED = """
ethernet sw1 queue 64k ecn 16k
host a ether sw1 ip 10.2.0.1/24 rate 200M dcqcn
host b ether sw1 ip 10.2.0.2/24 dcqcn
host c ether sw1 ip 10.2.0.3/24 dcqcn
ethernet sw2 queue 64k ecn 16k
host x ether sw2 ip 10.3.0.1/24 rate 200M
host y ether sw2 ip 10.3.0.2/24
host z ether sw2 ip 10.3.0.3/24
"""


def test_congestion_control(new_fabric):
    """
    A long incast at two identical switches, of hosts with congestion control and of hosts without.

        b, c --- sw1 --- a, with DCQCN          y, z --- sw2 --- x, without

    The queues of both overflow at first; then those with DCQCN lose hardly any packets, in most runs a thousandth.
    """
    new_fabric.up(CONTROLLED)
    send_at_once(new_fabric, "x", "10.3.0.1", "yz", 250)
    send_at_once(new_fabric, "a", "10.2.0.1", "bc", 250)
    with_it, without = (counter(new_fabric, sw, 1, "tx_dropped") for sw in ("sw1", "sw2"))
    assert without > 5000 and with_it < without / 10
    assert counter(new_fabric, "sw1", 1, "tx_ecn_marked") > 0 == counter(new_fabric, "sw2", 1, "tx_ecn_marked")


def test_a_lost_request(new_fabric):
    """Neighbour discovery is retried before a queue pair that waits for it fails."""
    new_fabric.up(CONTROLLED)
    new_fabric.fault("b", "drop", pcap="arp", nth=1)
    argv = ["ibv_rc_pingpong", "-g", 0, "-p", free_port()]
    _, out = new_fabric.pair(("a", *argv), ("b", *argv, "10.2.0.1"))
    assert "1000 iters in" in out


def test_a_pause_storm(new_fabric):
    """A station that sends PAUSE without limit stops those that send to it, until the fault is cleared."""
    new_fabric.up(SLOW.format(flow="pause"))
    rping(new_fabric, "b", "c", "10.2.0.2", count=1)
    storm = new_fabric.fault("b", "storm")
    argv = ["rping", "-a", "10.2.0.2", "-V", "-C", 3]
    srv = new_fabric.start("b", *argv, "-s")
    cli = new_fabric.start("c", *argv, "-c", "-v")
    wait_until(lambda: end(new_fabric, "sw1", 2)["counters"]["rx_pause"] > 100, 20, "pauses")
    new_fabric.fault("all", "storm", expect=False).clear()  # which does not end the other one
    before = end(new_fabric, "sw1", 2)["counters"]["rx_pause"]
    wait_until(lambda: end(new_fabric, "sw1", 2)["counters"]["rx_pause"] > before + 100, 20, "more pauses")
    assert "ping data" not in cli.output
    storm.clear()
    assert cli.wait(30).count("ping data") == 3
    srv.wait(30, None)
    assert counter(new_fabric, "sw1", 2, "tx_paused_us") > 100000


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("host r1 ether sw9 ip 10.0.0.1\n", '1: "sw9" is not an Ethernet switch'),
        ("ethernet sw1\nethernet sw1\n", "2: Ethernet switch"),
        ("ethernet sw1\nhost r1 ether sw1\n", "2: a RoCE host needs an address"),
        ("ring 3 hosts 1 ports 2\nethernet e1\nhost h1 nic e1 roce\n", ": h1 has two ports on the fabric already"),
        ("ethernet sw1 rate fast\n", 'rate: "fast" is not a valid value'),
        ("ethernet sw1\nhost r1 ether sw1 ip 10.0.0.1/40\n", "is not an address"),
        ("ethernet sw1\nhost r1 ether sw1 ip 10.0.0.1 vlan 5000\n", 'vlan: "5000" is not a valid value'),
    ],
)
def test_wrong_topologies(new_fabric, text, error):
    path = new_fabric.folder / "wrong.topo"
    path.write_text(text)
    path.chmod(0o644)
    assert error in new_fabric.command("up", path, status=1)


TAP = """
ethernet sw1
host r1 ether sw1 ip 10.3.0.1/24 fd03::1/64
host m tap sw1 tap0
"""
TAP_UP = """
ip link set tap0 addrgenmode none; ip addr add 10.3.0.9/24 dev tap0; ip addr add fd03::9/64 dev tap0 nodad
ip link set tap0 up
"""


def test_tap(new_fabric):
    """
    The machine's own kernel is on the Ethernet: it resolves the RoCE host by ARP and neighbour discovery, and gets
    echo replies.

        a network namespace: tap0 10.3.0.9 --- sw1 --- r1
    """
    if not all(shutil.which(t) for t in ("unshare", "nsenter", "ip", "ping")):
        pytest.skip("needs unshare, nsenter, ip and ping")
    space = new_fabric._start(["unshare", "-Urn", "sh", "-c", "echo namespace $$; exec sleep 600"])
    pid = wait_until(lambda: re.search(r"namespace (\d+)|ermitted", space.output), 10, "the namespace")[1]
    if not pid or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("user namespaces or /dev/net/tun are not permitted here")
    enter = ["nsenter", "--preserve-credentials", "-U", "-n", "-t", pid, "--"]
    inside(new_fabric, pid).up(TAP)
    new_fabric._start([*enter, "sh", "-c", TAP_UP]).wait(20)
    with Capture(new_fabric, "m") as c:
        for address in ("10.3.0.1", "fd03::1"):
            out = new_fabric._start([*enter, "ping", "-c", "3", "-i", "0.2", "-s", "1000", address]).wait(20)
            assert " 0% packet loss" in out
    wrong = "_ws.malformed || icmp.checksum.status == 0 || icmpv6.checksum.status == 0"
    assert not c.fields("frame.number", only=wrong)
    assert len(c.fields("frame.number", only="icmp || icmpv6.type == 129")) >= 9
    space.kill()
