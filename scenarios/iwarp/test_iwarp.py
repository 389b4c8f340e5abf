# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
iWARP on the machine's TCP: two independent daemons on loopback addresses.

    daemon a: w1 127.a.b.1, w3 127.a.b.3 and ::1          daemon b: w2 127.a.b.2
"""

import ctypes
import os
import re
import sys

import pytest
from muslin.process import wait_until
from test_perftest import RESULT, free_port
from two import RESTART_ON_TCP, Two, own_addresses


class Iwarp(Two):
    """@a_options, @b_options: options of the hosts, a word each."""

    restart = RESTART_ON_TCP

    def __init__(self, a, b, first=1, a_options="", b_options=""):
        super().__init__(a, b, "w2", "siw0")
        self.ip = own_addresses("w", first)
        w3 = f"{self.ip['w3']} ::1"
        a.up(f"host w1 iwarp {self.ip['w1']} {a_options}\nhost w3 iwarp {w3} {a_options}\n")
        b.up(f"host w2 iwarp {self.ip['w2']} {b_options}\n")

    def counter(self, host, name):
        return super().counter(host, f"iwarp_{name}")

    def rping(self, server="w1", client="w2", count=20, *args):
        _, out = self.pair(
            (server, "rping", "-s", "-a", self.ip[server], "-V", "-C", str(count), *args),
            (client, "rping", "-c", "-a", self.ip[server], "-V", "-v", "-C", str(count), *args),
        )
        assert out.count("ping data") == count, out

    def perftest(self, tool, *args, iters=200, server="w1", client="w2"):
        common = [tool, "-R", "-p", free_port(), "-n", iters, *args]
        _, out = self.pair((server, *common), (client, *common, self.ip[server]))
        assert RESULT.search(out), out
        assert "Failed" not in out and "Completion with error" not in out, out
        return out


@pytest.fixture(scope="module")
def two(muslin_make_fabric):
    fabrics = [muslin_make_fabric("iwarp-a"), muslin_make_fabric("iwarp-b")]
    yield Iwarp(*fabrics)
    for f in fabrics:
        f.down()


# The device


def test_device(two):
    """Each line as in Red Hat's guide for siw0; the MTU is the loopback interface's."""
    info = two.run("w1", "ibv_devinfo")
    for line in (
        r"hca_id:\tsiw0",
        r"\ttransport:\s+iWARP \(1\)",
        r"\tfw_ver:\s+0\.0\.0",
        r"\tnode_guid:\s+[0-9a-f]{4}:[0-9a-f]{2}ff:fe[0-9a-f]{2}:[0-9a-f]{4}",
        r"\tsys_image_guid:\s+[0-9a-f]{4}:[0-9a-f]{2}ff:fe[0-9a-f]{2}:[0-9a-f]{4}",
        r"\tvendor_id:\s+0x626d74",
        r"\tvendor_part_id:\s+1",
        r"\thw_ver:\s+0x0",
        r"\tphys_port_cnt:\s+1",
        r"\t\tport:\s+1",
        r"\t\t\tstate:\s+PORT_ACTIVE \(4\)",
        r"\t\t\tmax_mtu:\s+4096 \(5\)",
        r"\t\t\tactive_mtu:\s+4096 \(5\)",
        r"\t\t\tsm_lid:\s+0",
        r"\t\t\tport_lid:\s+0",
        r"\t\t\tport_lmc:\s+0x00",
        r"\t\t\tlink_layer:\s+Ethernet",
    ):
        assert re.search(f"^{line}$", info, re.M), (line, info)
    status = two.run("w1", "ibstatus")
    assert "state:\t\t 4: ACTIVE" in status and "phys state:\t 5: LinkUp" in status
    assert "link_layer:\t Ethernet" in status


def test_gid_is_the_station_address(two):
    """The first six bytes of the only GID; the node GUID is made of the same address."""
    info = two.run("w1", "ibv_devinfo", "-v")
    assert re.search(r"gid_tbl_len:\s+1$", info, re.M)
    table = two.run("w1", "cat", "/sys/class/infiniband/siw0/ports/1/gids/0").strip().replace(":", "")
    guid = re.search(r"node_guid:\s+(\S+)", info)[1].replace(":", "")
    assert table[12:] == "0" * 20
    assert f"{int(table[:2], 16) ^ 2:02x}{table[2:6]}fffe{table[6:12]}" == guid


def test_what_iwarp_has_not(two):
    """
    No atomics, one SGE for the sink of a READ, no multicast groups, no datagrams, and no RTR without a connection.
    """
    info = two.run("w1", "ibv_devinfo", "-v")
    assert "ATOMIC_NONE" in info
    for name, value in {"max_sge_rd": 1, "max_mcast_grp": 0, "max_ah": 0}.items():
        assert re.search(rf"{name}:\s+{value}$", info, re.M)
    assert "Couldn't create QP" in two.run("w1", "ibv_ud_pingpong", "-g", "0", status=None)
    assert "Operation not supported" in two.run("w1", "udaddy", "-s", two.ip["w2"], status=None)
    assert "Couldn't create QP" in two.run("w1", "ibv_uc_pingpong", "-g", "0", status=None)
    argv = ["ibv_rc_pingpong", "-g", "0", "-p", free_port()]
    server = two.a.start("w1", *argv)
    wait_until(lambda: two.run("w2", *argv, two.ip["w1"], status=None) and not server.running(), 20, "its end")
    assert "Failed to modify QP to RTR" in server.output
    said = two.a.command("vm", "w1", status=1)
    assert "host w1: a guest cannot have its adapter, which is iWARP" in said and "muslin run w1" in said


# Programs


@pytest.mark.parametrize("server, client", [("w1", "w2"), ("w2", "w1"), ("w1", "w3"), ("w3", "w3")])
def test_rping(two, server, client):
    two.rping(server, client)


@pytest.mark.parametrize("listen, connect", [("::", "::1"), ("::1", "::1"), ("0.0.0.0", "w3"), ("::", "w3")])
def test_rping_to_wildcard_and_ipv6(two, listen, connect):
    port = free_port()
    connect = two.ip.get(connect, connect)
    _, out = two.pair(
        ("w3", "rping", "-s", "-a", listen, "-p", port, "-V", "-C", "5"),
        ("w3", "rping", "-c", "-a", connect, "-p", port, "-V", "-v", "-C", "5"),
    )
    assert out.count("ping data") == 5


LISTENER = """
import ctypes, socket, sys
rs = ctypes.CDLL("librdmacm.so.1", use_errno=True)
s, on, port = rs.rsocket(socket.AF_INET6, socket.SOCK_STREAM, 0), ctypes.c_int(1), int(sys.argv[2])
assert not rs.rsetsockopt(s, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, ctypes.byref(on), 4)
address = (10).to_bytes(2, sys.byteorder) + port.to_bytes(2, "big") + bytes(4) + socket.inet_pton(10, sys.argv[1])
failed = rs.rbind(s, address + bytes(4), 28) or rs.rlisten(s, 5)
print(failed and ctypes.get_errno())
"""


@pytest.mark.parametrize("address, errno", [("::", 0), ("::1", 99)])
def test_listener_for_ipv6_on_a_host_without(two, address, errno):
    """The wildcard is no error, as for TCP: tgtd listens on 0.0.0.0 and on ::. An address must be one of the host."""
    assert int(two.run("w1", sys.executable, "-c", LISTENER, address, free_port())) == errno


def test_large_rping(two):
    two.rping("w1", "w2", 50, "-S", "65000")


def test_ucmatose(two):
    argv = ["ucmatose", "-c", "8", "-C", "50"]
    srv, cli = two.pair(("w1", *argv), ("w2", *argv, "-s", two.ip["w1"]))
    assert "return status 0" in srv and "return status 0" in cli


def test_rdma_client(two):
    srv, cli = two.pair(("w1", "rdma_server"), ("w2", "rdma_client", "-s", two.ip["w1"]))
    assert "rdma_server: end 0" in srv and "rdma_client: end 0" in cli


def test_rsockets(two):
    """iWARP has no immediate data, so rsockets send messages instead."""
    argv = ["rstream", "-p", free_port(), "-T", "v", "-S", "65536", "-C", "200"]
    _, out = two.pair(("w1", *argv), ("w2", *argv, "-s", two.ip["w1"]))
    assert re.search(r"custom\s+64k\s+200\s", out), out


@pytest.mark.parametrize("size", ["2", "65536", "1048576"])
@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(two, tool, size):
    two.perftest(tool, "-s", size)


@pytest.mark.parametrize("tool", ["ib_write_lat", "ib_read_lat", "ib_send_lat"])
def test_latency(two, tool):
    two.perftest(tool)


def test_both_ways_on_many_connections(two):
    two.perftest("ib_write_bw", "-b", "-q", "4", "-s", "65536")


def test_within_one_daemon(two):
    two.perftest("ib_write_bw", "-s", "65536", server="w1", client="w3")


def test_private_data(two, program):
    """In both directions, with requests, accepts and rejects: none, one byte, and the maximum of rdma_cm."""
    rows = [(size, how, back) for how in ("accept", "reject") for size in (0, 1, 255) for back in (0, 1, 255)]
    where = [two.ip["w1"], free_port()]
    server = two.a.start("w1", program("private"), "serve", *where, *[f"{how}:{back}" for _, how, back in rows])
    server.expect("serving")
    out = two.run("w2", program("private"), "connect", *where, *[str(size) for size, _, _ in rows])
    answers = re.findall(r"^(ESTABLISHED|REJECTED) (\d+) (\w+)$", out, re.M)
    names = {"accept": "ESTABLISHED", "reject": "REJECTED"}
    assert answers == [(names[how], str(back), "right") for _, how, back in rows], out
    requests = re.findall(r"^CONNECT_REQUEST (\d+) (\w+)$", server.wait(10), re.M)
    assert requests == [(str(size), "right") for size, _, _ in rows]


def test_no_listener(two):
    assert "RDMA_CM_EVENT_REJECTED" in two.run("w2", "rping", "-c", "-a", two.ip["w1"], "-C", "1", status=None)


# Connection establishment


@pytest.mark.parametrize(
    "a, b",
    [
        ("mpa=1", "mpa=1"),
        ("crc=on", ""),
        ("", "crc=on"),
        ("", "mpa=1"),
        ("crc=on rtr=zero", "crc=on rtr=zero"),
        ("rtr=read", "rtr=read"),
        ("rtr=write", "rtr=write"),
        ("rtr=none", "rtr=none"),
        ("markers=on", ""),
        ("markers=on crc=on", "markers=on"),
    ],
)
def test_start(muslin_make_fabric, a, b):
    """MPA revisions, CRCs requested by one side, and each RTR message of an initiator."""
    fabrics = [muslin_make_fabric("start-a"), muslin_make_fabric("start-b")]
    pair = Iwarp(*fabrics, first=20, a_options=a, b_options=b)
    try:
        pair.rping("w1", "w2", 5)
        pair.perftest("ib_read_bw", "-s", "100000", iters=20)
        pair.rping("w2", "w1", 5)
    finally:
        for f in fabrics:
            f.down()


# Data transfer


def may_have_io_uring():
    """Sandboxes of containers often forbid it. 425: io_uring_setup; 64: a ring that is not enabled yet."""
    params = ctypes.create_string_buffer(120)
    params[8] = 64
    fd = ctypes.CDLL(None).syscall(425, 4, params)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


@pytest.mark.parametrize("uring", ["auto", "on", "off"])
def test_io_uring(muslin_make_fabric, uring):
    """Programs get the same results with and without io_uring; the counter shows which was used."""
    fabrics = [muslin_make_fabric("uring-a"), muslin_make_fabric("uring-b")]
    pair = Iwarp(*fabrics, first=30, a_options=f"uring={uring}", b_options=f"uring={uring}")
    try:
        pair.rping("w1", "w2", 10, "-S", "60000")
        pair.perftest("ib_read_bw", "-s", "1048576", iters=50)
        pair.perftest("ib_write_bw", "-b", "-q", "8", "-s", "65536", iters=50)
        calls = [pair.counter(host, "uring_calls") for host in ("w1", "w2")]
        assert all(calls) if uring != "off" and may_have_io_uring() else not any(calls), calls
    finally:
        for f in fabrics:
            f.down()


def test_an_interface_and_its_address(muslin_new_fabric):
    """Two hosts cannot listen at one address, which one of them has by the name of its interface."""
    said = muslin_new_fabric.command("up", "host w1 iwarp lo\nhost w2 iwarp 127.0.0.1\n", status=1)
    assert "host w2 iwarp 127.0.0.1 cannot be created: Address already in use; another host, fabric" in said
    said = muslin_new_fabric.command("up", "host w1 iwarp lo\nhost w2 iwarp lo\n", status=1)
    assert "topology:2: the interface lo of w2 is that of w1 (line 1)" in said
