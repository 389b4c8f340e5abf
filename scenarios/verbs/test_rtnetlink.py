# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Interfaces, addresses, routes and neighbours by NETLINK_ROUTE: ip(8) of iproute2, and what a socket bears.

    h1 h2 -- leaf1 ... leaf2 -- h5       r1 r2 -- sw1 -- v1 (VLAN 10)       w1: iWARP on the machine's lo, w2 on 127/8
"""

import json
import subprocess
import sys

import pytest
from muslin import free_port, wait_until

ETHERNET = """
ethernet sw1 mtu 4200
host r1 ether sw1 ip 10.1.0.1/24 fd10::1/64
host r2 ether sw1 ip 10.1.0.2/24 fd10::2/64
host v1 ether sw1 ip 10.1.0.3/24 10.1.10.3/24@10
host w1 iwarp 127.0.0.1
host w2 iwarp 127.83.12.2
"""


def ip(fabric, host, *args):
    return [x for x in json.loads(fabric.run(host, "ip", "-j", *args) or "[]") if x]


def addresses(fabric, host, *args):
    """{interface: its addresses}"""
    return {
        x["ifname"]: [f"{a['local']}/{a['prefixlen']}" for a in x["addr_info"]]
        for x in ip(fabric, host, *args, "addr", "show")
    }


LO = ["127.0.0.1/8", "::1/128"]


def test_addresses(shared_fabric, ethernet):
    """As getifaddrs() has them, see test_interfaces.py."""
    assert addresses(shared_fabric, "h1") == {"lo": LO, "ib0": ["10.0.0.1/8", "fd00::1/64"]}
    assert addresses(shared_fabric, "h1", "-6")["ib0"] == ["fd00::1/64"]
    assert addresses(ethernet, "r1") == {"lo": LO, "eth0": ["10.1.0.1/24", "fd10::1/64"]}
    assert addresses(ethernet, "v1") == {"lo": LO, "eth0": ["10.1.0.3/24"], "eth0.10": ["10.1.10.3/24"]}
    assert addresses(ethernet, "w2") == {"lo": LO, "eth0": ["127.83.12.2/8"]}
    (one,) = ip(ethernet, "v1", "addr", "show", "dev", "eth0.10")
    assert one["addr_info"][0]["broadcast"] == "10.1.10.255"


def test_links(shared_fabric, ethernet):
    lo, ib0 = ip(shared_fabric, "h1", "-d", "link")
    assert (lo["ifname"], lo["link_type"], lo["ifindex"]) == ("lo", "loopback", 1)
    assert (ib0["link_type"], ib0["mtu"], ib0["operstate"]) == ("infiniband", 2044, "UP")
    assert ib0["linkinfo"]["info_kind"] == "ipoib" and ib0["linkinfo"]["info_data"]["key"] == "0xffff"
    assert ib0["address"] == shared_fabric.run("h1", "cat", "/sys/class/net/ib0/address").strip()
    _, eth0, vlan = ip(ethernet, "v1", "-d", "link")
    assert (vlan["link"], vlan["linkinfo"]["info_data"]["id"]) == ("eth0", 10)
    assert eth0["address"] == vlan["address"] and eth0["link_type"] == "ether" and "link" not in eth0
    assert ip(ethernet, "v1", "link", "show", "type", "vlan")[0]["ifname"] == "eth0.10"
    assert "does not exist" in ethernet.run("v1", "ip", "link", "show", "dev", "none0", status=1)


def test_a_link_goes_down_and_is_removed(shared_fabric):
    with shared_fabric.fault("h3:1", "down"):
        ib0 = ip(shared_fabric, "h3", "link")[1]
        assert ib0["operstate"] == "DOWN" and "NO-CARRIER" in ib0["flags"]
        assert "linkdown" in ip(shared_fabric, "h3", "route")[0]["flags"]
    with shared_fabric.fault("h3", "unplug"):
        assert addresses(shared_fabric, "h3") == {"lo": LO}
        assert not ip(shared_fabric, "h3", "route")
    assert "ib0" in addresses(shared_fabric, "h3")


LONG = 300  # seconds, on a loaded machine

LISTENER = """
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.bind((0, 0x11))  # links, IPv4 addresses
print("listening", flush=True)
while True:
    data = s.recv(8192)
    while data:
        length, type, flags, seq, pid = struct.unpack("=IHHII", data[:16])
        up = type in (16, 17) and bool(struct.unpack("=I", data[24:28])[0] & 0x10000)
        print({16: "link", 17: "no link", 20: "address", 21: "no address"}[type], up, seq, pid, flush=True)
        data = data[length + 3 & ~3:]
"""


def test_events(shared_fabric):
    """A link goes down and up, and the device away and back."""
    listener = shared_fabric.start("h3", sys.executable, "-c", LISTENER).expect("listening", LONG)
    with shared_fabric.fault("h3:1", "down"):
        listener.expect("link False 0 0", LONG)
    listener.expect("link True 0 0", LONG)
    shared_fabric.wait_active()
    with shared_fabric.fault("h3", "unplug"):
        listener.expect("no link", LONG)
    wait_until(lambda: "\naddress" in listener.output, LONG, what="the address")
    events = [x.split(" ")[:-3] for x in listener.output.splitlines()[1:]]
    assert events.index(["no", "address"]) < events.index(["no", "link"]) < events.index(["address"])
    shared_fabric.wait_active()
    listener.kill()


def test_monitor(shared_fabric):
    monitor = shared_fabric.start("h3", "stdbuf", "-oL", "ip", "monitor", "link", "address")

    def has(text, place, action):
        with shared_fabric.fault(place, action):
            return text in monitor.output

    wait_until(lambda: has("state DOWN", "h3:1", "down"), LONG, what="an event of the link")
    wait_until(lambda: has("Deleted 2: ib0    inet 10.0.0.3/8", "h3", "unplug"), LONG, what="the end of an address")
    monitor.expect("Deleted 2: ib0: <", LONG)
    assert monitor.running()
    monitor.kill()
    shared_fabric.wait_active()


def test_routes(shared_fabric, ethernet):
    (net,) = ip(shared_fabric, "h1", "route")
    assert (net["dst"], net["dev"], net["prefsrc"], net["scope"]) == ("10.0.0.0/8", "ib0", "10.0.0.1", "link")
    assert [x["dst"] for x in ip(shared_fabric, "h1", "-6", "route")] == ["::1", "fd00::/64"]
    assert [x["dst"] for x in ip(ethernet, "v1", "route")] == ["10.1.0.0/24", "10.1.10.0/24"]
    assert [x["dst"] for x in ip(ethernet, "v1", "route", "show", "dev", "eth0.10")] == ["10.1.10.0/24"]
    local = [x["dst"] for x in ip(shared_fabric, "h1", "route", "show", "table", "local")]
    assert {"10.0.0.1", "10.255.255.255", "127.0.0.0/8"} <= set(local) and "10.0.0.0/8" not in local
    assert [x["table"] for x in ip(shared_fabric, "h1", "rule")] == ["local", "main", "default"]


@pytest.mark.parametrize(
    "host, to, dev, source",
    [
        ("h1", "10.0.0.5", "ib0", "10.0.0.1"),
        ("h1", "fd00::5", "ib0", "fd00::1"),
        ("h1", "10.0.0.1", "lo", "10.0.0.1"),
        ("h1", "127.1.2.3", "lo", "127.1.2.3"),
        ("h1", "10.0.0.5 from 10.0.0.1", "ib0", "10.0.0.1"),
        ("h1", "10.0.0.5 oif ib0", "ib0", "10.0.0.1"),
        ("r1", "10.1.0.2", "eth0", "10.1.0.1"),
        ("v1", "10.1.10.9", "eth0.10", "10.1.10.3"),
        ("h1", "ff02::1 oif ib0", "ib0", "fd00::1"),
        ("w2", "127.83.12.3", "eth0", "127.83.12.2"),
        ("w2", "127.83.12.2", "lo", "127.83.12.2"),
        ("w2", "127.0.0.1", "lo", "127.0.0.1"),
    ],
)
def test_route_to(request, host, to, dev, source):
    fabric = request.getfixturevalue("shared_fabric" if host[0] == "h" else "ethernet")
    (route,) = ip(fabric, host, "route", "get", *to.split())
    assert (route["dev"], route.get("prefsrc", source)) == (dev, source)
    assert (route.get("type") == "local") == (dev == "lo")


@pytest.mark.parametrize(
    "to, error",
    [
        ("192.0.2.77", "Network is unreachable"),
        ("2001:db8::1", "Network is unreachable"),
        ("10.0.0.5 from 10.0.0.2", "Invalid argument"),
        ("10.0.0.5 oif lo", "Network is unreachable"),
    ],
)
def test_no_route(shared_fabric, to, error):
    assert error in shared_fabric.run("h1", "ip", "route", "get", *to.split(), status=2)


@pytest.mark.parametrize("kind", ["ib", "roce"])
def test_neighbours(request, kind):
    """Those that rdma_cm and RoCE have resolved."""
    fabric, server, client = (
        (request.getfixturevalue("shared_fabric"), "h2", "h6")
        if kind == "ib"
        else (request.getfixturevalue("ethernet"), "r1", "r2")
    )
    address, dev = (fabric.ip("h2"), "ib0") if kind == "ib" else ("10.1.0.1", "eth0")
    words = ["rping", "-a", address, "-p", free_port(), "-C", "3"]
    fabric.pair((server, *words, "-s"), (client, *words, "-c"))
    (found,) = (x for x in ip(fabric, client, "neigh") if x["dst"] == address)
    assert (found["dev"], found["state"]) == (dev, ["REACHABLE"])
    assert found["lladdr"] == fabric.run(server, "cat", f"/sys/class/net/{dev}/address").strip()
    assert found["lladdr"] in fabric.run(client, "ip", "neigh", "get", address, "dev", dev)
    assert "No such file" in fabric.run(client, "ip", "neigh", "get", "10.1.0.99", "dev", dev, status=2)
    assert not ip(fabric, client, "neigh", "show", "dev", "lo")


@pytest.mark.parametrize(
    "words",
    ["link set ib0 down", "addr add 10.9.9.9/8 dev ib0", "route add 10.9.0.0/16 dev ib0", "neigh flush dev ib0"],
)
def test_nothing_is_changed(shared_fabric, words):
    status = {"neigh": 0}.get(words.split()[0], 2)  # there is nothing to flush
    out = shared_fabric.run("h1", "ip", *words.split(), status=status)
    assert status == 0 or "Operation not permitted" in out


def test_a_host_on_sockets_has_those_of_the_machine(ethernet):
    machine = subprocess.run(["ip", "-j", "link"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert [x["ifname"] for x in ip(ethernet, "w1", "link")] == [x["ifname"] for x in json.loads(machine)]


SOCKET = """
import ctypes, errno, os, select, socket, struct
DONE, ERROR, ROOT, DUMP, MULTI = 3, 2, 0x100, 0x300, 2
LINK, NEWLINK, ADDR, ROUTE, NEIGH, RULE = 18, 16, 22, 26, 30, 34
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
def refused(call, *args):
    try:
        call(*args)
    except OSError as e:
        return e.errno
assert s.getsockname() == (0, 0) and refused(s.setsockopt, 270, 99, 1) == errno.ENOPROTOOPT
assert refused(socket.socket, socket.AF_NETLINK, socket.SOCK_STREAM, 0) == errno.ESOCKTNOSUPPORT
s.bind((0, 1))
assert refused(s.bind, (0, 1)) == errno.EINVAL  # it has a number now
assert s.getsockname() == (os.getpid(), 1) and s.getsockopt(socket.SOL_SOCKET, 38) == 0
s.setsockopt(270, 1, 5)
assert s.getsockname() == (os.getpid(), 17) and refused(s.setsockopt, 270, 1, 0) == errno.EINVAL
s.setsockopt(270, 2, 5)
assert s.getsockopt(270, 9) == 1
s.setsockopt(270, 12, 1)
def ask(type, flags=0, payload=b"", length=None, sock=s):
    return sock.sendto(struct.pack("=IHHII", length or 16 + len(payload), type, 1 | flags, 7, 0) + payload, (0, 0))
def parse(data):
    while data:
        length, type, flags, seq, pid = struct.unpack("=IHHII", data[:16])
        assert 16 <= length <= len(data) and seq == 7
        yield type, flags, pid, data[16:length]
        assert type != ERROR or not flags & MULTI
        data = data[length + 3 & ~3:]
def answers(sock=s, size=8192):
    while True:
        try:
            data, peer = sock.recvfrom(size)
        except BlockingIOError:
            return
        assert peer == (0, 0) and len(data) <= 4096
        yield from parse(data)
def errors():
    return [-struct.unpack("=i", x[3][:4])[0] for x in answers() if x[0] == ERROR]

assert ask(LINK, DUMP, bytes(16)) == 32
got = list(answers())
assert [x[0] for x in got] == [NEWLINK, NEWLINK, DONE], got
assert {x[1] & MULTI for x in got} == {MULTI} and {x[2] for x in got} == {os.getpid()}
ask(LINK, DUMP, b"\\0")  # a struct rtgenmsg, as glibc's
assert len(list(answers())) == 3

# Peeking at a datagram larger than the buffer, and one that is cut off
ask(ADDR, DUMP, b"\\0")
whole = s.recv(1, socket.MSG_PEEK | socket.MSG_TRUNC)
data, _, flags, _ = s.recvmsg(20)
assert len(data) == 20 and flags & socket.MSG_TRUNC
list(answers())
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
ask(ROUTE, DUMP, b"\\0")
assert [x[0] for x in answers()][-1] == DONE

# Errors as the kernel's
link = lambda index: struct.pack("=BxHiII", 0, 0, index, 0, 0)
name = lambda text, kind=3: struct.pack("=HH16s", 20, kind, text)
route = lambda family, *attrs: struct.pack("=BBBBBBBBI", family, 32, 0, 0, 0, 0, 0, 0, 0) + b"".join(attrs)
for type, payload, error in (
    (LINK, link(0), errno.EINVAL), (LINK, link(99), errno.ENODEV), (LINK, link(-5), errno.EINVAL),
    (LINK, b"\\0", errno.EINVAL),
    (LINK, link(0) + name(b"none0"), errno.ENODEV), (LINK, link(0) + name(b"i" * 16), errno.ENODEV),
    (ADDR, bytes(8), errno.EOPNOTSUPP), (ROUTE, route(0), errno.EINVAL), (ROUTE, route(2), errno.EINVAL),
    (ROUTE, route(2, struct.pack("=HHH", 6, 1, 1)), errno.EINVAL), (ROUTE, route(200), errno.EOPNOTSUPP),
    (ROUTE, route(2, struct.pack("=HH4s", 8, 1, bytes((192, 0, 2, 1)))), errno.ENETUNREACH),
    (NEIGH, bytes(12), errno.EINVAL),
    (NEIGH, struct.pack("=BxxxiHBBHH4B", 2, 2, 0, 0, 0, 8, 1, 10, 0, 0, 99), errno.ENOENT),
    (16, link(2), errno.EPERM), (17, link(2), errno.EPERM), (19, link(2), errno.EPERM), (20, bytes(8), errno.EPERM),
    (24, bytes(12), errno.EPERM), (29, bytes(12), errno.EPERM), (38, bytes(20), errno.EOPNOTSUPP),
    (999, bytes(20), errno.EOPNOTSUPP),
):
    ask(type, 0, payload)
    assert errors() == [error], (type, payload)
    ask(type, 0x600, payload)  # NLM_F_CREATE, NLM_F_EXCL: a bit of NLM_F_DUMP, but of no dump
    assert len(errors()) <= 1
ask(LINK, 0, link(2))
assert [x[0] for x in answers()] == [NEWLINK]
ask(LINK, 4, link(0) + name(b"ib0\\0"))
assert [x[0] for x in answers()] == [NEWLINK, ERROR]
ask(LINK, 4, link(2))
assert [(x[0], x[1]) for x in answers()][1:] == [(ERROR, 0x100)]  # NLM_F_CAPPED
ask(LINK, 0, link(99))
assert [(x[0], x[1], len(x[3])) for x in answers()] == [(ERROR, 0, 36)]  # with the whole request
for type in (38, 66, 82, 90, 106):  # lists that are empty
    ask(type, DUMP, bytes(20))
    assert [x[0] for x in answers()] == [DONE], type

# Cut short, and lengths that lie
ask(LINK, DUMP)
assert not list(answers())  # without even a family
for length in (5, 15, 17, 4000, 0xffffffff):
    ask(LINK, DUMP, length=length)
assert refused(s.send, b"") == errno.ENODATA
assert refused(s.sendto, bytes(20), (1234567, 0)) == errno.ECONNREFUSED
s.send(bytes(7))
assert not list(answers())
for attr in (struct.pack("=HH", 3, 3), struct.pack("=HH", 65535, 3), struct.pack("=HH", 4, 3), b"\\x08"):
    ask(LINK, 0, link(0) + attr)
    assert len(errors()) == 1
ask(ROUTE, 0, route(2, struct.pack("=HH4s", 8, 1, bytes((10, 0, 0, 5))), struct.pack("=HHH", 6, 4, 1)))
assert [x[0] for x in answers()] == [24]
dump = lambda type: struct.pack("=IHHIIxxxx", 17, type, 1 | DUMP, 7, 0)
s.send(dump(LINK) + dump(ADDR)[:17])
assert [x[0] for x in answers()].count(DONE) == 2
assert os.write(s.fileno(), dump(RULE)[:17]) == 17
assert len(list(answers())) == 6

# A socket that nobody reads blocks nobody
try:
    while True:
        ask(ROUTE, DUMP, b"\\0")
except OSError as e:
    assert e.errno == errno.ENOBUFS, e
other = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, socket.NETLINK_ROUTE)
other.bind((77777, 0))
assert other.getsockname() == (77777, 0)
ask(LINK, 0, link(2), sock=other)
assert [x[2] for x in parse(other.recv(4096))] == [77777]
assert len(list(answers())) > 10
assert not select.select([s], [], [], 0.3)[0]  # as with a kernel, there was nothing to wait for in between
pid = os.fork()
if not pid:
    ask(LINK, DUMP, b"\\0")
    assert len(list(answers())) == 3
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0

# As any descriptor: its number may change, and it has the requests of all files
t = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 0)
assert t.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_DGRAM
t.settimeout(60)  # FIONBIO
ask(LINK, DUMP, b"\\0", sock=t)
fd = os.dup(t.fileno())
number = t.fileno()
t.close()
null = os.open("/dev/null", os.O_RDONLY)
assert null == number
assert [len(list(parse(os.read(fd, 8192)))) for _ in range(2)] == [2, 1]  # the end of a dump is a datagram of its own

# What recvfrom() is in programs with _FORTIFY_SOURCE
u = socket.socket(fileno=fd)
ask(LINK, DUMP, b"\\0", sock=u)
buf, address, size = ctypes.create_string_buffer(8192), ctypes.create_string_buffer(12), ctypes.c_uint(12)
n = ctypes.CDLL(None).__recvfrom_chk(fd, buf, 8192, 8192, 0, address, ctypes.byref(size))
assert n > 100 and size.value == 12 and address.raw == struct.pack("=HHII", socket.AF_NETLINK, 0, 0, 0)
print("END")
"""


def test_sockets(shared_fabric):
    """Errors as the kernel's; what is malformed has no answer, and a socket that nobody reads blocks nobody."""
    assert "END" in shared_fabric.run("h1", sys.executable, "-c", SOCKET)
