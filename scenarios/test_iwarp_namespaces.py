# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
iWARP between two machines, as far as their networks go: a daemon in each of two network namespaces, each host bound to
the interface and so to its addresses of both families.

    namespace A: wa, iwarp v0, 10.9.0.1 and fd09::1 --- veth --- namespace B: wb, iwarp v0, 10.9.0.2 and fd09::2
"""

import re

import pytest
from muslin import free_port
from test_perftest import RESULT, anew
from test_roce_namespaces import two_machines


def give_ipv6(fabric, *pids):
    for n, pid in enumerate(pids, 1):
        enter = ["nsenter", "--preserve-credentials", "-U", "-n", "-t", pid]
        fabric._start([*enter, "ip", "addr", "add", f"fd09::{n}/64", "dev", "v0", "nodad"]).wait(10)


@pytest.fixture(scope="module")
def machines(_make_fabric):
    with two_machines(_make_fabric, "host wa iwarp v0\n", "host wb iwarp v0\n", give_ipv6) as both:
        yield both


def pair(machines, server, client):
    a, b = machines
    srv = a.start("wa", *server)
    out = b._retry(srv, ("wb", *client), 60)
    return srv.wait(60, status=None), out


def test_device(machines):
    a, b = machines
    info = b.run("wb", "ibv_devinfo", "-v")
    assert re.search(r"active_mtu:\s+1024 \(3\)", info) and "iWARP" in info
    assert a.node("wa")["ips"] == ["10.9.0.1", "fd09::1"]


@pytest.mark.parametrize(
    "listen, connect",
    [
        ("10.9.0.1", "10.9.0.1"),
        ("fd09::1", "fd09::1"),
        ("0.0.0.0", "10.9.0.1"),
        ("::", "fd09::1"),
        ("::", "10.9.0.1"),
    ],
)
def test_rping(machines, listen, connect):
    """To an address, and to a wildcard one of either family."""
    args = ["-p", free_port(), "-V", "-v", "-C", "5"]
    _, out = pair(machines, ["rping", "-s", "-a", listen, *args], ["rping", "-c", "-a", connect, *args])
    assert out.count("ping data") == 5


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(machines, tool):
    def attempt():
        argv = [tool, "-R", "-p", free_port(), "-n", "200", "-s", "65536"]
        return pair(machines, argv, [*argv, "10.9.0.1"])

    _, out = anew(attempt)
    assert RESULT.search(out), out
