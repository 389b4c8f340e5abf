# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rdma(8) of iproute2: devices, links, resources and counters by NETLINK_RDMA.

    h1 -- leaf1 ...       r1 -- sw1       w1: iWARP on the machine's lo
"""

import json
import re
import socket
import sys

import pytest
from muslin import free_port, wait_until
from test_kills import wait_ipoib
from test_sysfs import ETHERNET as SYSFS
from test_sysfs import at  # noqa: F401

ETHERNET = SYSFS.replace("127.83.13.", "127.83.15.")  # files run side by side, and a RoCE port binds its address


@pytest.fixture
def rdma(shared_fabric):
    """rdma("link"): its output on h1, as JSON."""
    return lambda *args: json.loads(shared_fabric.run("h1", "rdma", "-j", *args))


def test_devices_and_links(rdma, shared_fabric):
    (link,) = rdma("link", "show")
    assert (link["ifname"], link["port"], link["state"], link["physical_state"]) == ("muslin0", 1, "ACTIVE", "LINK_UP")
    lid, sm_lid = (
        int(shared_fabric.run("h1", "cat", f"/sys/class/infiniband/muslin0/ports/1/{x}"), 16) for x in ("lid", "sm_lid")
    )
    assert (link["lid"], link["sm_lid"], link["subnet_prefix"]) == (lid, sm_lid, "fe80:0000:0000:0000")
    (dev,) = rdma("dev", "show")
    guid = shared_fabric.run("h1", "cat", "/sys/class/infiniband/muslin0/node_guid").strip()
    assert (dev["ifname"], dev["node_type"], dev["fw"], dev["node_guid"]) == ("muslin0", "ca", "1.0.0", guid)
    out = shared_fabric.run("h1", "rdma", "dev", "-d")
    assert "PORT_ACTIVE_EVENT" in out and "MEM_MGT_EXTENSIONS" in out
    assert "netns shared" in shared_fabric.run("h1", "rdma", "system")


def test_interfaces_of_links(at):  # noqa: F811
    """As getifaddrs() returns them."""
    fabric, host, device, netdev = at
    out = fabric.run(host, "rdma", "link", "show", f"{device}/1", "-d")
    found = re.search(r"netdev (\S+) netdev_index (\d+)", out)
    if netdev == "ib0":
        assert not found
    else:
        index = socket.if_nametoindex("lo") if netdev == "lo" else 2
        assert (found[1], int(found[2])) == (netdev, index)


def test_resources_and_counters(rdma, shared_fabric):
    wait_ipoib(shared_fabric)  # it has a queue pair, too
    before = rdma("resource", "show")[0]
    server = shared_fabric.start("h1", "ibv_rc_pingpong", "-p", free_port(), "-g", "0")
    wait_until(lambda: [x["state"] for x in rdma("resource", "show", "qp")] == ["INIT"])
    (qp,) = rdma("resource", "show", "qp")
    assert (qp["type"], qp["comm"]) == ("RC", "ibv_rc_pingpong")
    after = rdma("resource", "show")[0]
    assert [after[x] - before[x] for x in ("qp", "cq", "pd", "mr", "ctx")] == [1] * 5
    server.kill()
    assert "rcvd_pkts" in rdma("statistic", "show")[0]


def test_lists_of_objects(rdma, shared_fabric):
    """Of a program with an SRQ, which refer to each other by number; keys are not shown."""
    server = shared_fabric.start("h1", "ibv_srq_pingpong", "-p", free_port(), "-g", "0", "-s", "5000", "-q", "3")
    wait_until(lambda: [x["state"] for x in rdma("resource", "show", "qp")] == ["INIT"] * 3)
    (pd,), (mr,), (cq,), (ctx,) = (rdma("resource", "show", x) for x in ("pd", "mr", "cq", "ctx"))
    assert {x["comm"] for x in (pd, mr, cq, ctx)} == {"ibv_srq_pingpon"}
    assert pd["pdn"] == mr["pdn"] and pd["ctxn"] == cq["ctxn"] == ctx["ctxn"]
    assert (mr["mrlen"], pd["users"], cq["users"]) == (5000, 5, 6)
    assert cq["cqe"] >= 500 and not {"lkey", "rkey"} & mr.keys()
    first, last = sorted(x["lqpn"] for x in rdma("resource", "show", "qp"))[::2]
    srq = shared_fabric.run("h1", "rdma", "resource", "show", "srq")  # iproute2 6.1 repeats the range as "comm"
    qpns = f"{first}-{last}"[:15]  # rdma(8) has room for no more, which some seeds' numbers need
    assert re.search(rf"srqn \d+ type BASIC +lqpn +{qpns}\d* +pdn {pd['pdn']} +pid {pd['pid']} ", srq), srq
    server.kill()
    wait_until(lambda: rdma("resource", "show", "ctx") == [])


MANY_IDS = """
import ctypes, signal, socket, struct, sys
cm = ctypes.CDLL("librdmacm.so.1")
cm.rdma_create_event_channel.restype = ctypes.c_void_p
channel = ctypes.c_void_p(cm.rdma_create_event_channel())
address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    one = ctypes.c_void_p()
    assert not cm.rdma_create_id(channel, ctypes.byref(one), None, 0x106)
    assert not cm.rdma_bind_addr(one, address)
print("bound", flush=True)
signal.pause()
"""


def test_a_list_that_no_socket_holds(rdma, shared_fabric):
    """More than fits in the buffer of a socket: the dump goes on as rdma(8) reads."""
    many = 14000
    ids = shared_fabric.start("h1", sys.executable, "-c", MANY_IDS, "10.0.0.1", many)
    ids.expect("bound", 300)
    found = [x["cm-idn"] for x in rdma("resource", "show", "cm_id") if x["comm"].startswith("python")]
    assert len(set(found)) == len(found) == many
    ids.kill()
    wait_until(lambda: not rdma("resource", "show", "cm_id"), 300)


def test_lists_of_ids(rdma, shared_fabric):
    ip, port = shared_fabric.ip("h1"), free_port()
    server = shared_fabric.start("h1", "rping", "-s", "-a", ip, "-p", port, "-P")
    wait_until(lambda: [x["state"] for x in rdma("resource", "show", "cm_id")] == ["LISTEN"])
    client = shared_fabric.start("h5", "rping", "-c", "-a", ip, "-p", port)

    def ids(state):
        return [x for x in rdma("resource", "show", "cm_id") if x["state"] == state]

    connected = wait_until(lambda: next((x for x in ids("CONNECT") if "lqpn" in x), None), what="a connection")
    (listening,) = ids("LISTEN")
    assert (listening["ps"], listening["src-addr"]) == ("TCP", f"{ip}:{port}")
    assert (connected["comm"], connected["qp-type"]) == ("rping", "RC")
    assert connected["dst-addr"].startswith(shared_fabric.ip("h5") + ":")
    assert connected["lqpn"] in [x["lqpn"] for x in rdma("resource", "show", "qp")]
    for program in (client, server):
        program.kill()


def test_nothing_is_changed(shared_fabric):
    """That requires a privilege which no program on a host has."""
    out = shared_fabric.run("h1", "rdma", "dev", "set", "muslin0", "name", "mlx5_0", status=1)
    assert "Operation not permitted" in out


def test_no_device(shared_fabric):
    with shared_fabric.fault("h4", "unplug"):
        assert json.loads(shared_fabric.run("h4", "rdma", "-j", "dev", "show") or "[]") == []
    assert "muslin0" in shared_fabric.run("h4", "rdma", "dev", "show")


SOCKET = """
import os, select, socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 20)
s.bind((0, 0))
assert s.getsockname() == (os.getpid(), 0)
s.setsockopt(270, 11, 1)
def request(type, flags, payload=b"", length=None):
    s.sendto(struct.pack("=IHHII", length or 16 + len(payload), type, 1 | flags, 7, 0) + payload, (0, 0))
def answers():
    while True:
        try:
            data, peer = s.recvfrom(8192)
        except BlockingIOError:
            return
        assert peer == (0, 0)
        yield struct.unpack("=IHHIIi", data[:20])[1:]
NLDEV, DONE, ERROR = 5 << 10, 3, 2
request(NLDEV | 1, 0x300)
assert [(x[0], x[2]) for x in answers()] == [(NLDEV | 1, 7), (DONE, 7)]
for type, payload, error in (
    (NLDEV | 1, b"", 22), (NLDEV | 1, struct.pack("=HHI", 8, 1, 9), 22), (NLDEV | 5, struct.pack("=HHI", 8, 1, 0), 22),
    (NLDEV | 900, b"", 95), (4 << 10, b"", 22), (NLDEV | 2, b"", 1),
    (NLDEV | 15, struct.pack("=HH4s", 60, 69, b"umad"), 22),
):
    request(type, 0, payload)
    assert [(x[0], -x[4]) for x in answers()] == [(ERROR, error)], (type, payload)
request(NLDEV | 1, 0, length=17)
request(NLDEV | 1, 0, length=5)
assert not list(answers())
try:
    while True:
        request(NLDEV | 1, 0x300)
except OSError as e:
    assert e.errno == 105, e
assert len(list(answers())) > 10
assert not select.select([s], [], [], 0.3)[0]  # as with a kernel, there was nothing to wait for in between
request(NLDEV | 6, 4)
assert [x[0] for x in answers()] == [NLDEV | 6, ERROR]
pid = os.fork()
if not pid:
    request(NLDEV | 6, 0)
    assert len(list(answers())) == 1
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("END")
"""


def test_sockets(shared_fabric):
    """
    Errors as the kernel's; malformed requests get no response, and a socket that is not read does not block others.
    """
    assert "END" in shared_fabric.run("h1", sys.executable, "-c", SOCKET)
