# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Two network stacks: a daemon in each of two network namespaces, which are connected by a pair of veth interfaces with
Ethernet's MTU. Hosts are bound to the interface, and so to its addresses of both families.

    namespace A: ra, roce v0, 10.9.0.1 and fd09::1 --- veth --- namespace B: rb, roce v0, 10.9.0.2 and fd09::2
"""

import contextlib
import re
import shutil

import pytest
from muslin import free_port, wait_until
from test_perftest import RESULT
from test_roce_port import capture, dissected
from two import Two

NETWORK = """
set -e
unshare -n sleep 600 &
b=$!
until [ "$(readlink /proc/$b/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link add v0 type veth peer name v0 netns $b
ip link set v0 addrgenmode none; ip addr add 10.9.0.1/24 dev v0; ip link set v0 up; ip link set lo up
nsenter -n -t $b sh -c '
    ip link set v0 addrgenmode none; ip addr add 10.9.0.2/24 dev v0; ip link set v0 up; ip link set lo up'
echo namespaces $$ $b
wait
"""


def inside(fabric, pid):
    """From now on the fabric's programs run in the namespaces of @pid."""
    script = fabric.folder / "muslin-inside"
    script.write_text(
        f'#!/bin/sh\nexec nsenter --preserve-credentials -U -n -t {pid} -- {fabric.muslin} "$@"\n', encoding="ascii"
    )
    script.chmod(0o755)
    fabric.muslin = script
    return fabric


@contextlib.contextmanager
def two_machines(make_fabric, letter, kind, prepare=lambda fabric, a, b: None):
    """
    A host in each of two namespaces, named with @letter; @prepare(fabric, pid, pid) is called before they are up.
    """
    if not all(shutil.which(t) for t in ("unshare", "nsenter", "ip")):
        pytest.skip("needs unshare, nsenter and ip")
    a, b = make_fabric("machine-a"), make_fabric("machine-b")
    probe = a._start(["unshare", "-Urn", "true"])
    probe.popen.wait(10)
    if probe.popen.returncode:
        pytest.skip("user namespaces are not permitted here")
    net = a._start(["unshare", "-Urn", "sh", "-c", NETWORK])
    pids = wait_until(lambda: re.search(r"namespaces (\d+) (\d+)", net.output), 10, "the namespaces").groups()
    prepare(a, *pids)
    inside(a, pids[0]).up(f"host {letter}a {kind} v0\n")
    inside(b, pids[1]).up(f"host {letter}b {kind} v0\n")
    yield Two(a, b, f"{letter}b", "siw0" if kind == "iwarp" else "rxe0")
    b.down()
    a.command("down", status=None)
    a.down()  # with the namespaces


def give_ipv6(fabric, *pids):
    for n, pid in enumerate(pids, 1):
        enter = ["nsenter", "--preserve-credentials", "-U", "-n", "-t", pid]
        fabric._start([*enter, "ip", "addr", "add", f"fd09::{n}/64", "dev", "v0", "nodad"]).wait(10)


@pytest.fixture(scope="module")
def machines(muslin_make_fabric):
    with two_machines(muslin_make_fabric, "r", "roce", give_ipv6) as two:
        yield two


def test_mtu_is_the_interfaces(machines):
    info = machines.run("rb", "ibv_devinfo", "-v")
    assert re.search(r"active_mtu:\s+1024 \(3\)", info) and "::ffff:10.9.0.2, RoCE v2" in info
    assert machines.a.node("ra")["ips"] == ["10.9.0.1", "fd09::1"]


def test_gids_of_both_families(machines):
    """In the order of the interface's addresses, all of v2."""
    info = machines.run("rb", "ibv_devinfo", "-v")
    gids = re.findall(r"GID\[\s*(\d+)\]:\s+(.*)", info)
    assert gids == [("0", "::ffff:10.9.0.2, RoCE v2"), ("1", "fd09::2, RoCE v2")]


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(machines, tool):
    argv = [tool, "-x", "0", "-p", free_port(), "-n", "200", "-s", "65536"]
    _, out = machines.pair(("ra", *argv), ("rb", *argv, "10.9.0.1"))
    assert RESULT.search(out), out


@pytest.mark.parametrize("address", ["10.9.0.1", "fd09::1"])
def test_rping(machines, address):
    _, out = machines.pair(
        ("ra", "rping", "-s", "-a", address, "-V", "-C", "20"),
        ("rb", "rping", "-c", "-a", address, "-V", "-v", "-C", "20"),
    )
    assert out.count("ping data") == 20


def test_groups(machines):
    """A sender on one machine and a member on the other."""
    group = ["mckey", "-m", "239.9.0.1", "-C", "10"]
    receiver = machines.a.start("ra", "stdbuf", "-oL", *group, "-b", "10.9.0.1")
    receiver.expect("joined")
    assert "return status 0" in machines.run("rb", *group, "-b", "10.9.0.2", "-s")
    assert "return status 0" in receiver.wait(30)


def test_traffic_over_ipv6_is_dissected(machines):
    """It has the connection's traffic class, and each packet has a correct ICRC."""
    argv = ["ib_send_bw", "-x", "1", "--tclass=104", "-p", free_port(), "-n", "20", "-s", "5000"]
    with capture(machines, "ra") as pcap:
        machines.pair(("ra", *argv), ("rb", *argv, "10.9.0.1"))
    rows = dissected(machines, pcap, "infiniband.bth.opcode", "ipv6.dst", "ipv6.tclass")
    assert {row[1:] for row in rows if row[0] in ("0", "1", "2")} == {("fd09::1", "0x00000068")}, rows
