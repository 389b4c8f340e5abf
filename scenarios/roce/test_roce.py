# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
RoCEv2 on UDP sockets: two independent daemons on loopback addresses.

    daemon a: r1 127.a.b.1, r3 127.a.b.3          daemon b: r2 127.a.b.2
"""

import os
import re
import signal
import socket
import struct
import subprocess
import zlib

import pytest
from muslin import free_port, wait_until
from test_perftest import RESULT
from two import Two, own_addresses


class Roce(Two):
    """@options: of every port."""

    def __init__(self, a, b, first=1, options=""):
        super().__init__(a, b, "r2", "rxe0")
        self.ip = own_addresses("r", first)
        a.up(f"host r1 roce {self.ip['r1']} {options}\nhost r3 roce {self.ip['r3']} {options}\n")
        b.up(f"host r2 roce {self.ip['r2']} {options}\n")


def roce_ports(make_fabric, name, **options):
    """The ports of two daemons, as a fixture yields them: up, and down afterwards."""
    fabrics = [make_fabric(f"{name}-{letter}") for letter in "ab"]
    yield Roce(*fabrics, **options)
    for f in fabrics:
        f.down()


@pytest.fixture(scope="module")
def two(muslin_make_fabric):
    yield from roce_ports(muslin_make_fabric, "roce")


@pytest.fixture(scope="module")
def lossy(muslin_make_fabric):
    """The same with a loss of one packet in a hundred in each direction."""
    yield from roce_ports(muslin_make_fabric, "lossy", first=10, options="loss=0.01")


def frames(path):
    """The Ethernet frames of a pcapng file, in order."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 6:
            length = struct.unpack_from("<I", data, at + 20)[0]
            yield data[at + 28 : at + 28 + length]
        at += size


def icrc_is_right(frame):
    """Computed from the captured bytes: fields that routers may change count as ones. None: no RoCE packet."""
    at = 12
    while frame[at : at + 2] == b"\x81\x00":
        at += 4
    kind, p = frame[at : at + 2], bytearray(frame[at + 2 :])
    if kind == b"\x08\x00" and p[9] == 17:
        head, masked = 28, (1, 8, 10, 11, 26, 27)
        p = p[: struct.unpack_from(">H", p, 2)[0]]
    elif kind == b"\x86\xdd" and p[6] == 17:
        head, masked = 48, (1, 2, 3, 7, 46, 47)
    elif kind == b"\x89\x15":
        head, masked = 40, (1, 2, 3, 7)
    else:
        return None
    if kind != b"\x08\x00":
        p[0] |= 0x0F
        p = p[: 40 + struct.unpack_from(">H", p, 4)[0]]
    for i in (*masked, head + 4):
        p[i] = 0xFF
    return zlib.crc32(b"\xff" * 8 + p[:-4]) == struct.unpack("<I", p[-4:])[0]


def perftest(two, tool, *args, iters=200, server="r1", client="r2"):
    common = [tool, "-x", "0", "-p", free_port(), "-n", iters, *args]
    srv, out = two.pair((server, *common), (client, *common, two.ip[server]))
    assert RESULT.search(out), out
    assert "Failed" not in out and "Completion with error" not in out
    return out


def test_device(two):
    """As the kernel shows rxe0: Ethernet, active, no LIDs."""
    info = two.run("r1", "ibv_devinfo", "-v")
    for line in (
        "hca_id:\trxe0",
        r"transport:\s+InfiniBand \(0\)",
        r"state:\s+PORT_ACTIVE \(4\)",
        r"max_mtu:\s+4096 \(5\)",
        r"active_mtu:\s+4096 \(5\)",
        r"port_lid:\s+0$",
        r"link_layer:\s+Ethernet",
        rf"GID\[\s*0\]:\s+::ffff:{two.ip['r1']}, RoCE v2",
    ):
        assert re.search(line, info, re.M), (line, info)
    stat = two.run("r1", "ibstat")
    assert "Link layer: Ethernet" in stat and "State: Active" in stat and "Physical state: LinkUp" in stat


@pytest.mark.parametrize("kind", ["rc", "uc", "ud", "srq"])
def test_pingpong(two, kind):
    argv = [f"ibv_{kind}_pingpong", "-g", "0", "-p", free_port()]
    srv, cli = two.pair(("r1", *argv), ("r2", *argv, two.ip["r1"]))
    assert "1000 iters" in srv and "1000 iters" in cli


@pytest.mark.parametrize("size", ["64", "4096", "65536", "1048576"])
@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(two, tool, size):
    perftest(two, tool, "-s", size)


@pytest.mark.parametrize("tool", ["ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_lat"])
def test_latency(two, tool):
    perftest(two, tool)


def test_datagrams(two):
    perftest(two, "ib_send_bw", "-c", "UD", "-s", "2048")


def test_within_one_daemon(two):
    perftest(two, "ib_write_bw", "-s", "65536", server="r1", client="r3")


def test_small_mtu(two):
    perftest(two, "ib_send_bw", "-m", "256", "-s", "20000")


def test_rping(two):
    srv, out = two.pair(
        ("r1", "rping", "-s", "-a", two.ip["r1"], "-V", "-C", "20"),
        ("r2", "rping", "-c", "-a", two.ip["r1"], "-V", "-v", "-C", "20"),
    )
    assert out.count("ping data") == 20


def test_rping_to_any_address_over_ipv6(new_fabric):
    """The only IPv6 address of every machine, so that only one run at a time can use it."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 4791))
        except OSError as e:
            pytest.skip(f"[::1]:4791: {e}")
    new_fabric.up("host r3 roce ::1\n")
    srv, out = new_fabric.pair(
        ("r3", "rping", "-s", "-a", "::", "-V", "-C", "5"),
        ("r3", "rping", "-c", "-a", "::1", "-V", "-v", "-C", "5"),
    )
    assert out.count("ping data") == 5


@pytest.mark.parametrize("tool", ["ucmatose", "udaddy"])
def test_rdma_cm(two, tool):
    argv = [tool, "-c", "4", "-C", "20"]
    srv, cli = two.pair(("r1", *argv), ("r2", *argv, "-s", two.ip["r1"]))
    assert "return status 0" in srv and "return status 0" in cli


def test_garbage_is_counted_and_harmless(two):
    """Invalid datagrams of all kinds to port 4791, while others use the port."""
    garbage = [b"", b"x", b"\0" * 15, b"\0" * 16, b"\x04" + b"\0" * 63, os.urandom(999), os.urandom(4000), b"\xff" * 64]
    send = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for w in sys.argv[2:]: s.sendto(bytes.fromhex(w), (sys.argv[1], 4791))"
    )
    before = two.counter("r1", "roce_icrc_errors")
    for _ in range(10):
        subprocess.run(["/usr/bin/python3", "-c", send, two.ip["r1"], *[g.hex() for g in garbage]], check=True)
    perftest(two, "ib_send_bw", "-s", "65536")
    assert two.counter("r1", "roce_icrc_errors") > before


def test_an_address_that_is_taken(two, new_fabric):
    """A second daemon cannot bind the address, and reports that."""
    topology = new_fabric.folder / "taken.topo"
    topology.write_text(f"leafs 1 spines 1 hosts 2\nhost r9 roce {two.ip['r1']}\n")
    topology.chmod(0o644)
    said = new_fabric.command("up", topology, status=1)
    assert f"host r9 roce {two.ip['r1']} cannot be created: Address already in use; another host, fabric" in said


@pytest.mark.parametrize(
    "binding, why",
    [
        ("roce 192.0.2.1", "of this machine"),
        ("roce nosuchif0", "of this machine"),
        ("roce 127.0.0.9 mode=v1", "RoCE v1 has no UDP"),
    ],
)
def test_a_binding_that_is_impossible(new_fabric, binding, why):
    """The message has the words of the topology, and what is wrong with them."""
    said = new_fabric.command("up", f"host r1 {binding}", status=1)
    assert f"host r1 {binding} cannot be created: " in said and why in said


@pytest.mark.parametrize("args", ["write -s 65536", "read -s 65536", "read -s 1048576", "send -s 65536", "atomic"])
def test_loss_is_recovered_from(lossy, args):
    tool, *size = args.split()
    perftest(lossy, f"ib_{tool}_bw", *size)
    assert lossy.counter("r2", "roce_faults") > 0


def test_data_survives_loss(lossy):
    srv, out = lossy.pair(
        ("r1", "rping", "-s", "-a", lossy.ip["r1"], "-V", "-C", "100", "-S", "30000"),
        ("r2", "rping", "-c", "-a", lossy.ip["r1"], "-V", "-v", "-C", "100", "-S", "30000"),
    )
    assert out.count("ping data") == 100


@pytest.mark.parametrize("mtu", ["1024", "4096"])
@pytest.mark.parametrize("pair", ["two", "lossy"])
def test_every_byte_is_where_it_belongs(pair, mtu, request, program):
    """
    Long messages by zero-copy from and to the memory of programs: lost and duplicated packets do not change the data.
    """
    pair = request.getfixturevalue(pair)
    argv, args = ["/usr/bin/python3", program("integrity.py")], ["--mtu", mtu, "--port", free_port()]
    before = pair.counter("r1", "roce_placed")
    srv = pair.a.start("r1", *argv, "serve", *args)
    srv.expect("serving")
    assert "all is where it belongs" in pair.run("r2", *argv, "run", pair.ip["r1"], *args)
    srv.wait(20)
    assert pair.counter("r1", "roce_placed") > before


def test_capture_is_dissected(two):
    """Connection, SENDs, READs, WRITEs, atomics and datagrams: no malformed packet, and every ICRC correct."""
    pcap = two.a.folder / "r1.pcapng"
    trace = two.a._start([two.a.muslin, "trace", "-w", pcap, "r1"])
    wait_until(pcap.exists, 10, "the capture")
    test_rping(two)
    perftest(two, "ib_atomic_bw")
    perftest(two, "ib_send_bw", "-c", "UD", "-s", "1000")
    perftest(two, "ib_write_bw", "-s", "10001", iters=5)
    trace.signal(signal.SIGINT)
    trace.wait(20, None)
    show = two.a._start(["tshark", "-r", pcap, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"])
    rows = [r.split("\t") for r in show.wait(60).splitlines() if not r.startswith("Running")]
    assert {"4", "6", "7", "8", "10", "12", "16", "17", "18", "20", "100"} <= {r[0] for r in rows}
    assert not [r for r in rows if r[1:] != [""]]
    assert all(icrc_is_right(f) for f in frames(pcap))
