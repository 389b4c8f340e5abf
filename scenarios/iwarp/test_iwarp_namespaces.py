# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
iWARP between two network stacks: a daemon in each of two network namespaces, each host bound to the interface and so
to its addresses of both families.

    namespace A: wa, iwarp v0, 10.9.0.1 and fd09::1 --- veth --- namespace B: wb, iwarp v0, 10.9.0.2 and fd09::2
"""

import re

import pytest
from muslin import free_port
from test_perftest import RESULT
from test_roce_namespaces import give_ipv6, two_machines
from two import RESTART_ON_TCP


@pytest.fixture(scope="module")
def machines(muslin_make_fabric):
    with two_machines(muslin_make_fabric, "w", "iwarp", give_ipv6) as two:
        two.restart = RESTART_ON_TCP
        yield two


def test_device(machines):
    info = machines.run("wb", "ibv_devinfo", "-v")
    assert re.search(r"active_mtu:\s+1024 \(3\)", info) and "iWARP" in info
    assert machines.a.node("wa")["ips"] == ["10.9.0.1", "fd09::1"]


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
    """To an address, and to a wildcard address of either family."""
    args = ["-p", free_port(), "-V", "-v", "-C", "5"]
    _, out = machines.pair(("wa", "rping", "-s", "-a", listen, *args), ("wb", "rping", "-c", "-a", connect, *args))
    assert out.count("ping data") == 5


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(machines, tool):
    argv = [tool, "-R", "-p", free_port(), "-n", "200", "-s", "65536"]
    _, out = machines.pair(("wa", *argv), ("wb", *argv, "10.9.0.1"))
    assert RESULT.search(out), out


@pytest.mark.parametrize("provider, endpoint", [("verbs", "msg"), ("verbs;ofi_rxm", "rdm")])
def test_libfabric(machines, provider, endpoint):
    """libfabric lists devices of interfaces other than loopback."""
    words, port = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "50", "-S", "64"], free_port()
    _, out = machines.pair(("wa", *words, "-B", port), ("wb", *words, "-P", port, "10.9.0.1"))
    assert re.search(r"^64\s+50\s", out, re.M), out
