# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Listeners on 0.0.0.0, and on :: for IPv6 alone, as clients reach them by each address of the host.

    h1 h2 -- leaf1 ... leaf2 -- h5       r1 r2 -- sw1
"""

import sys

import pytest
from muslin import free_port
from test_rtnetlink import ETHERNET  # noqa: F401

SERVER = """
import select, socket, sys
port, connections = int(sys.argv[1]), int(sys.argv[2])
kinds = {"4": (socket.AF_INET, "0.0.0.0"), "6": (socket.AF_INET6, "::"), "46": (socket.AF_INET6, "::")}
listeners = {}
for name in sys.argv[3:]:
    family, address = kinds[name]
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, name == "6")
    s.bind((address, port))
    s.listen()
    listeners[s] = name
print("listening", flush=True)
for _ in range(connections):
    for s in select.select(list(listeners), [], [], 20)[0]:
        c, peer = s.accept()
        c.sendall(f"{listeners[s]} {peer[0]} {c.getsockname()[0]}".encode())
        c.close()
print("END")
"""
CLIENT = """
import socket, sys
for address in sys.argv[2:]:
    try:
        with socket.create_connection((address, int(sys.argv[1])), 10) as s:
            print(s.makefile().read())
    except ConnectionRefusedError:
        print("refused")
"""
HOSTS = {"ib": ("h1", "h5", ("10.0.0.1", "fd00::1"), ("10.0.0.5", "fd00::5"))}
HOSTS["roce"] = ("r1", "r2", ("10.1.0.1", "fd10::1"), ("10.1.0.2", "fd10::2"))


@pytest.fixture(params=["ib", "roce"])
def place(request):
    """The fabric, a server, a client, and the addresses of both."""
    fabric = request.getfixturevalue("shared_fabric" if request.param == "ib" else "ethernet")
    return fabric, *HOSTS[request.param]


@pytest.mark.parametrize("listeners", ["6", "46", "4 6", "6 4"])
def test_by_each_address(place, listeners):
    """Which of them accepts, what it sees of the client, and what of itself: the same in both orders."""
    fabric, server, client, (v4, v6), (from_v4, from_v6) = place
    kinds, port = listeners.split(), free_port()
    by_v4, by_v6 = ("4" if "4" in kinds else "46"), ("6" if "6" in kinds else "46")
    prefix = "::ffff:" if by_v4 == "46" else ""
    wanted = [f"{by_v4} {prefix}{from_v4} {prefix}{v4}" if kinds != ["6"] else "refused", f"{by_v6} {from_v6} {v6}"]
    local = ["::1"] if kinds != ["4"] else []
    running = fabric.start(server, sys.executable, "-c", SERVER, port, 4 - (kinds == ["6"]), *kinds).expect("listening")
    assert fabric.run(client, sys.executable, "-c", CLIENT, port, v4, v6).splitlines() == wanted
    own = fabric.run(server, sys.executable, "-c", CLIENT, port, *local, v6).splitlines()
    assert [x.split()[0] for x in own] == [by_v6] * 2
    assert "END" in running.wait(20)


@pytest.mark.parametrize("first, second", [("6", "6"), ("4", "4"), ("46", "4")])
def test_wildcards_of_a_family_exclude_each_other(shared_fabric, first, second):
    port = free_port()
    running = shared_fabric.start("h1", sys.executable, "-c", SERVER, port, 1, first).expect("listening")
    assert "Address already in use" in shared_fabric.run("h1", sys.executable, "-c", SERVER, port, 1, second, status=1)
    running.kill()


def test_hosts_have_the_same_port(shared_fabric):
    """For IPv6 alone: two of them, and an IPv4 wildcard of a third."""
    port = free_port()
    servers = [
        shared_fabric.start(host, sys.executable, "-c", SERVER, port, 1, kind).expect("listening")
        for host, kind in (("h1", "6"), ("h2", "6"), ("h3", "4"))
    ]
    out = shared_fabric.run("h5", sys.executable, "-c", CLIENT, port, "fd00::2", "fd00::1", "10.0.0.3")
    assert [x.split()[::2] for x in out.splitlines()] == [["6", "fd00::2"], ["6", "fd00::1"], ["4", "10.0.0.3"]]
    assert all("END" in s.wait(20) for s in servers)
