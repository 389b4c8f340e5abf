# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Faults and captures on every kind of link, with one program: checks each cell of the table of muslin-fault(5).

    h1 -- leaf1 -- h2        e1 -- sw1 -- e2        r1 -- UDP -- r2        w1 -- TCP -- w2

With --muslin-shards the tests of InfiniBand have a fabric of their own, since one with an Ethernet cannot be split:

    h1 -- leaf1 -- spine1 ====== leaf2 -- h2
"""

import json
import pathlib
import re
import time
import urllib.error
import urllib.request

import pytest
from muslin import MuslinError, free_port, report, wait_until

MAN = pathlib.Path(__file__).resolve().parents[2] / "man/muslin-fault.5"
LINKS = {"InfiniBand": "h", "Ethernet": "e", "RoCE on UDP": "r", "iWARP": "w"}
ROW = re.compile(r"^\.It Cm (\S+) Ta ([x-]) Ta ([x-]) Ta ([x-]) Ta ([x-])$", re.M)
TABLE = {kind: dict(zip(LINKS, cells, strict=True)) for kind, *cells in ROW.findall(MAN.read_text())}
CELLS = [(kind, link) for kind, row in TABLE.items() for link, cell in row.items() if cell == "x"]

TOPOLOGY = """\
leafs 1 hosts 2
ethernet sw1 pfc 7
host e1 ether sw1 ip 192.168.7.1/24 dcqcn
host e2 ether sw1 ip 192.168.7.2/24 dcqcn
host r1 roce {} dcqcn
host r2 roce {} dcqcn
host w1 iwarp {}
host w2 iwarp {}
"""
SPLIT = "leafs 2 spines 1 hosts 1"

# Keys of the program's packets.
MATCH = {
    "InfiniBand": {"opcode": "rc"},
    "Ethernet": {"opcode": "rc"},
    "RoCE on UDP": {"opcode": "rc"},
    "iWARP": {},
}
KEYS = {
    "delay": {"time": "5ms"},
    ("rate", "InfiniBand"): {"bps": "10M"},
    ("rate", "RoCE on UDP"): {"bps": "10M"},
    ("rate", "iWARP"): {"bps": "10M"},
    "truncate": {"bytes": 8},
    "stall": {"for_": "50ms"},
    ("stall", "iWARP"): {"time": "50ms"},
    "alter": {"offset": 0, "to": "00"},
    "symbol": {"times": 3},
}
# Each of these ends the connection.
ENDS = {(kind, "iWARP") for kind in ("rst", "half-close", "corrupt", "truncate")} | {
    ("alter", link) for link in ("InfiniBand", "RoCE on UDP")
}
# Faults that start when they are armed, and their place if it is not the host.
STATE = {
    ("rate", "Ethernet"): {"bps": "10M"},
    "down": {},
    "flap": {"down": "10s"},
    "kill": {},
    "degrade": {"lanes": 1},
    "starve": {"lane": 0},
    "swap": {"with_": "h1"},
    ("swap", "Ethernet"): {"with_": "e1"},
    "lft": {"lid": 9, "port": 1},
    "mft": {"lid": 0xC001, "port": 1},
    "guid": {"with_": "h1"},
    "lid": {"lid": 77},
    "pkey": {"index": 1, "pkey": "0x1234"},
    "storm": {},
}
MPA = {"reject": {"nth": 1}, "garble": {"nth": 1}}
PLACES = {"lft": "leaf1", "mft": "leaf1"}
STATES = [cell for cell in CELLS if STATE.get(cell, STATE.get(cell[0])) is not None]


@pytest.fixture(scope="module")
def whole(muslin_make_fabric, muslin_addresses):
    fabric = muslin_make_fabric("parity")
    fabric.up(TOPOLOGY.format(*muslin_addresses(4)))
    yield fabric
    fabric.down()


@pytest.fixture(scope="module")
def split(muslin_make_fabric):
    fabric = muslin_make_fabric("parity-split").up(SPLIT)
    yield fabric
    fabric.down()


@pytest.fixture
def all_links(request):
    """The fabric that has the link of the test, or all."""
    link = request.node.callspec.params.get("link") if hasattr(request.node, "callspec") else None
    apart = link == "InfiniBand" and request.config.getoption("--muslin-shards") > 1
    return request.getfixturevalue("split" if apart else "whole")


@pytest.fixture
def health(all_links):
    """health(): the status and the line of /health of the metrics server."""
    port = free_port()
    server = all_links.start_muslin("metrics", "--listen", port)

    def fetch():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as got:
                return got.status, got.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except (ConnectionError, urllib.error.URLError):
            return None

    wait_until(fetch, 10, "the server")
    yield fetch
    server.kill()


def exchange(fabric, link, rounds=5, size=200):
    """An rping of host 1 with host 2; returns the client's output, also if its connection ends."""
    one, two = f"{LINKS[link]}1", f"{LINKS[link]}2"
    args = ["-a", fabric.ip(two), "-C", rounds, "-S", size]
    try:
        return fabric.pair((two, "rping", "-s", *args), (one, "rping", "-c", "-v", *args), timeout=30)[1]
    except MuslinError as failed:
        return str(failed)


def keys_of(table, kind, link):
    return table.get((kind, link), table.get(kind))


def is_of_packets(kind, link):
    return keys_of(STATE, kind, link) is None and kind not in MPA


@pytest.mark.parametrize("link", LINKS)
def test_packets(all_links, link):
    """All packet faults that a connection survives, together: each acts on a packet of its own."""
    kinds = [k for k, at in CELLS if at == link and is_of_packets(k, link) and (k, link) not in ENDS]
    faults = {}
    for n, kind in enumerate(kinds):
        keys = MATCH[link] | (keys_of(KEYS, kind, link) or {}) | {"nth": 4 + 3 * n}
        faults[kind] = all_links.fault(f"{LINKS[link]}2", kind, expect=False, **keys)
    assert exchange(all_links, link, 40).count("ping data") == 40
    fired = {kind: f.fired for kind, f in faults.items()}
    all_links.clear()
    assert fired == {kind: [4 + 3 * n] for n, kind in enumerate(kinds)}


@pytest.mark.parametrize("link", ["Ethernet", "RoCE on UDP"])
def test_marked_packets_are_notified(all_links, link):
    """ecn, as of a congested switch: the receiver sends CNPs, and the sender reduces its rate."""
    one, two = f"{LINKS[link]}1", f"{LINKS[link]}2"

    def counters():
        names = ((two, "np_ecn_marked_roce_packets"), (two, "np_cnp_sent"), (one, "rp_cnp_handled"))
        path = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
        return [int(all_links.run(host, "cat", f"{path}/{name}")) for host, name in names]

    before = counters()
    with all_links.fault(two, "ecn", dir="in", every=3, **MATCH[link]) as fault:
        assert exchange(all_links, link, 40).count("ping data") == 40
    marked, sent, handled = (now - was for now, was in zip(counters(), before, strict=True))
    assert marked == fault.hits > 10
    assert 0 < handled <= sent <= marked


@pytest.mark.parametrize("kind, link", [c for c in CELLS if c in ENDS or c[0] in MPA], ids=lambda v: v)
def test_connections(all_links, kind, link):
    keys = MATCH[link] | (keys_of(KEYS, kind, link) or {}) | {"nth": 1 if kind in MPA else 5}
    with all_links.fault(f"{LINKS[link]}2", kind, expect=False, **keys) as fault:
        exchange(all_links, link)
        assert fault.fired == [keys["nth"]]


@pytest.mark.parametrize("kind, link", STATES, ids=lambda v: v)
def test_state(all_links, kind, link):
    place, keys = PLACES.get(kind, f"{LINKS[link]}2"), keys_of(STATE, kind, link)
    with all_links.fault(place, kind, expect=False, **keys) as fault:
        assert fault.hits == 1
        if kind in ("down", "flap", "kill"):
            assert all_links.port(f"{LINKS[link]}2")["state"] == "Down"
    wait_until(lambda: all_links.port(f"{LINKS[link]}2")["state"] == "Active", 20, "the port", 0.05)


def test_swapped_hosts_reach_each_other(whole):
    """Two hosts of one Ethernet switch and VLAN, with each other's cable: the switch learns where they are now."""
    assert exchange(whole, "Ethernet").count("ping data") == 5
    before = [whole.port(host)["peer_port"] for host in ("e1", "e2")]
    with whole.fault("e2", "swap", with_="e1", expect=False):
        assert [whole.port(host)["peer_port"] for host in ("e1", "e2")] == before[::-1]
        assert exchange(whole, "Ethernet").count("ping data") == 5
    assert [whole.port(host)["peer_port"] for host in ("e1", "e2")] == before
    assert exchange(whole, "Ethernet").count("ping data") == 5


@pytest.mark.parametrize("link", LINKS)
def test_a_flap_ends_by_itself(all_links, link):
    """The link goes down and up twice, and then stays up: the fault is no longer applied."""
    host = f"{LINKS[link]}2"
    with all_links.fault(host, "flap", down="300ms", up="300ms", times=2) as flap:
        assert all_links.port(host)["state"] == "Down"
        wait_until(lambda: not flap.report()["applied"], 10, "the end of the flap", 0.05)
        wait_until(lambda: all_links.port(host)["state"] == "Active", 20, "the port", 0.05)
        assert exchange(all_links, link).count("ping data") == 5


@pytest.mark.parametrize("link", LINKS)
def test_a_killed_host_fails_its_peer(all_links, link):
    """ib_write_bw of host 1 to host 2, which is killed amidst: the client's WRITEs fail."""
    one, two = f"{LINKS[link]}1", f"{LINKS[link]}2"
    options = ["-R"] if link == "iWARP" else ["-u", 10]  # a retransmission timeout of 4 ms; iWARP has TCP's
    options += ["-x", 0] if link in ("Ethernet", "RoCE on UDP") else []
    args = ["ib_write_bw", "-p", free_port(), "-s", 4096, "-D", 20, *options]
    before = all_links.host(one).counters["port_xmit_packets"]
    server, client = all_links.start_pair(
        (two, *args),
        (one, *args, all_links.ip(two)),
        lambda: all_links.host(one).counters["port_xmit_packets"] > before + 2000,
    )
    with all_links.fault(two, "kill"):
        out = client.wait(15, status=None)
        assert client.popen.returncode and re.search("Failed status|Completion with error|vendor syndrome", out), out
        server.kill()
    all_links.wait_active()
    assert exchange(all_links, link).count("ping data") == 5


@pytest.mark.parametrize("link", ["Ethernet", "RoCE on UDP"])
def test_a_rate_is_kept(all_links, link):
    """Two megabytes at 10 Mbit/s take at least 1.6 s: rping reads and writes its data once per ping."""
    with all_links.fault(f"{LINKS[link]}2", "rate", bps="10M", expect=False) as rate:
        begin = time.monotonic()
        assert exchange(all_links, link, 20, 50000).count("ping data") == 20
        assert time.monotonic() - begin > 2 * 20 * 50000 * 8 / 10e6 and rate.hits


@pytest.mark.parametrize("link", ["Ethernet", "RoCE on UDP", "iWARP"])
def test_a_connection_outlasts_a_link_that_is_down(all_links, link):
    """A link that is down for a second, during traffic; for InfiniBand see test_fault_links.py."""
    one, two = f"{LINKS[link]}1", f"{LINKS[link]}2"
    args = ["-a", all_links.ip(two), "-C", 150, "-S", 200, "-V"]
    with all_links.fault(two, "delay", time="3ms", **MATCH[link]) as delay:  # or it would end too early
        server, client = all_links.start_pair(
            (two, "rping", "-s", *args), (one, "rping", "-c", "-v", *args), lambda: delay.hits > 30
        )
        with all_links.fault(two, "down", for_="1s") as down:
            wait_until(lambda: all_links.port(two)["state"] == "Active", 10, "the port", 0.05)
            assert down.hits == 1 and client.running()
        assert client.wait(60).count("ping data") == 150
        server.wait(20)


@pytest.mark.parametrize("link", LINKS)
def test_a_fault_that_does_not_exist_is_refused(all_links, link):
    """The message lists the supported faults; and the link still works after all tests."""
    place = f"{LINKS[link]}2"
    for kind in (k for k, row in TABLE.items() if row[link] == "-"):
        out = all_links.command("fault", "add", place, kind, status=1)
        assert out.startswith(f"muslin: {kind}: there is no such fault at {place}; there are: "), out
        names = out.split("there are: ")[1].split()
        assert {k for k, row in TABLE.items() if row[link] == "x"} <= set(names), out
        assert kind not in names
    all_links.wait_active()
    assert exchange(all_links, link).count("ping data") == 5


ALL = {
    "keys of packets": ({"opcode": "rc"}, {"InfiniBand", "Ethernet", "RoCE on UDP"}),
    "keys of frames": ({"pcap": "udp port 4791"}, {"Ethernet"}),
    "keys of both": ({"len": "900-1100"}, {"InfiniBand", "Ethernet", "RoCE on UDP"}),
    "no keys": ({}, set(LINKS)),
}


@pytest.mark.parametrize("name", ALL)
def test_all_links(all_links, name):
    """The place all: links of each kind that has the fault and its keys."""
    keys, where = ALL[name]
    fired = set()
    with all_links.fault("all", "delay", time="1us", expect=False, **keys) as fault:
        for link in LINKS:
            before = fault.hits
            assert exchange(all_links, link, size=1000).count("ping data") == 5  # more than a MAD
            fired |= {link} if fault.hits > before else set()
    assert fired == where


def test_all_links_go_down(all_links):
    hosts = [f"{first}{n}" for first in LINKS.values() for n in (1, 2)]
    with all_links.fault("all", "down", expect=False):
        assert {all_links.port(h)["state"] for h in hosts} == {"Down"}
    all_links.wait_active()


def test_what_no_link_has(all_links):
    """The message has the answers of all kinds of link, each once."""
    for words, message in {
        ("drop", "nth=x"): "nth=x: nth takes a number",
        ("kill",): "kill: it needs a node as its place",
        ("corrupt", "fcs", "what=icrc"): "; and at Ethernet links ",
        ("corrupt", "fcs", "what=fcs"): "; and at iWARP hosts ",
        ("delay", "dir=in", "time=1ms"): "dir: the place all has no direction",
        ("melt",): "melt: there is no such fault at all; there are: drop",
    }.items():
        out = all_links.command("fault", "add", "all", *words, status=1)
        assert message in out and out.count(message) == 1, out
    kinds = out.partition("there are: ")[2].split()
    assert {"drop", "storm", "reject", "symbol"} < set(kinds) and len(set(kinds)) == len(kinds), out


@pytest.mark.parametrize("link", LINKS)
def test_sights(all_links, link, tmp_path, health):
    """Traffic, and a link that is set down, in all commands that show a fabric."""
    host = all_links.host(f"{LINKS[link]}2")
    before = host.counters
    with all_links.trace(str(host)) as trace:
        with all_links.trace(str(host)) as second:
            assert exchange(all_links, link).count("ping data") == 5
        assert exchange(all_links, link).count("ping data") == 5
    assert len(second.packets()) > 10
    assert len(trace.packets()) > len(second.packets()) + 10
    for name in ("port_xmit_packets", "port_rcv_packets", "port_xmit_data", "port_rcv_data"):
        assert host.counters[name] > before[name], name
    with host.link().down() as down:
        assert down.state == "Down"
        linked = 8 if all_links.name.startswith("parity-split") else 12
        active = linked - (1 if link in ("RoCE on UDP", "iWARP") else 2)
        assert health() == (503, f"{active} of {linked} linked ports are Active; the subnet manager is on h1\n")
        assert f'node="{host}",port="1"}} 0' in all_links.command("metrics", host)
        assert re.search(rf"^{host}:1 +Down ", all_links.command("top", "-n", "1", "--interval", "0.1"), re.M)
    wait_until(lambda: host.link().state == "Active", 20, "the link")
    wait_until(lambda: health()[0] == 200, 20, "the other end")
    timeline = json.loads(all_links.command("timeline"))
    events = [what for _, kind, what in timeline["events"] if kind == "port"]
    assert events.index(f"{host}:1 Down") < len(events) - 1 - events[::-1].index(f"{host}:1 Active")
    wait_until(lambda: json.loads(all_links.command("timeline"))["bytes"][str(host)][-1] > 2000, 10, "a sample")
    metrics = all_links.command("metrics", host)
    assert re.search(rf'muslin_port_xmit_packets_total{{fabric="[^"]+",node="{host}",port="1"}} [1-9]', metrics)
    svg = all_links.command("show", "--svg")
    switch = {"InfiniBand": "leaf1", "Ethernet": "sw1"}.get(link)
    assert f">{host}<" in svg and (not switch or f"{switch}:" in svg or f">{switch}<" in svg)
    page = report.page(report.collect(all_links), "title", True, "again")
    assert f"{host}:1" in page and "Nothing happened" not in page
    assert f"{host}" in all_links.command("show", host)


@pytest.mark.parametrize("link", LINKS)
def test_a_trace_of_one_opcode(all_links, link):
    """Keys of packets select frames by the RoCE packet in them."""
    host = f"{LINKS[link]}2"
    if link == "iWARP":
        out = all_links.command("trace", "-w", all_links.folder / "none.pcapng", host, "opcode=ack", status=1)
        assert 'there is no "opcode"; there are: len= pcap=' in out
        return
    with all_links.trace(host) as whole, all_links.trace(host, "opcode=RC_SEND_ONLY") as sends:
        assert exchange(all_links, link).count("ping data") == 5
    assert 10 < len(sends.packets()) < len(whole.packets())


def test_the_whole_fabric(all_links):
    shown = all_links.show()
    assert {n["name"] for n in shown["nodes"] if n["type"] == "switch"} == {"leaf1", "sw1"}
    out = all_links.command("show")
    assert "ethernet sw1" in out and re.search(r"^ca w2 .* iwarp .*\n +1 +Active", out, re.M)
