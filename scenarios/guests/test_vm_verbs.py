# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The distribution's verbs programs in guests on different leafs, with each other and with host mode, in both directions:

    h1 (guest a)         h5 (guest b)   h6 (host mode)
        leaf1 ------+------- leaf2 ---------+

Programs that first communicate over TCP do so over IPoIB between guests, and with host mode by `muslin vm --tcp`; the
others use addresses or LIDs. In a whole run guest a has each model of adapter in turn, and guest b the virtio device.
"""

import re

import pytest
from endpoint import Endpoint, pair
from muslin import free_port, wait_until

pytestmark = pytest.mark.guest

PINGPONGS = [
    "ibv_rc_pingpong -c -s 65536 -n 100",
    "ibv_uc_pingpong -n 100",
    "ibv_ud_pingpong -n 100",
    "ibv_srq_pingpong -n 100",
    "ibv_rc_pingpong -e -n 100",
]
MORE_PERFTESTS = [
    "ib_send_bw -c RC",
    "ib_send_lat -s 64",
    "ib_write_lat -c UC",
    "ib_read_bw -s 65536",
    "ib_atomic_lat",
    "ib_send_bw -R",
]
PERFTESTS = [
    "ib_write_bw -s 65536",
    "ib_read_lat -R",
    "ib_read_lat -e",
    "ib_atomic_bw",
    "ib_send_bw -c UC",
    "ib_send_bw -c UD",
    *(pytest.param(tool, marks=pytest.mark.one_model) for tool in MORE_PERFTESTS),
]
RPING = "rping -v -C 4 -S 20000"
CM = [f"{RPING} -V", "ucmatose -S 4096 -C 20", "udaddy -C 5 -S 1000"]


def sockets_of(server, seen_from):
    """The address by which sockets of an endpoint reach the server."""
    return "machine" if seen_from.vm and not server.vm else server.address


@pytest.fixture(scope="module")
def port():
    """Port of servers: in host mode not the forwarded one."""
    return {"guest": free_port(), "host": free_port()}


@pytest.fixture(scope="module")
def guests(request, shared_fabric, port, model):
    models = {"h1": model, "h5": request.config.getoption("--muslin-model") or "muslin"}
    vms = [shared_fabric.vm(host, "--model", m, "--tcp", port["guest"]) for host, m in models.items()]
    for vm in vms:
        vm.wait_ib0()
    yield vms
    for vm in vms:
        vm.stop()


@pytest.fixture(params=["a-b", "a-host", "host-a"])
def ends(request, shared_fabric, guests):
    """(client, server)"""
    a, b = Endpoint(shared_fabric, "h1", guests[0]), Endpoint(shared_fabric, "h5", guests[1])
    host = Endpoint(shared_fabric, "h6")
    return {"a-b": (a, b), "a-host": (a, host), "host-a": (host, a)}[request.param]


def over_tcp(ends, port, tool):
    """Runs a tool whose two sides connect to a port, by the RDMA address if rdma_cm uses it, or by that of sockets."""
    client, server = ends
    tool = f"{tool} -p {port['guest' if server.vm else 'host']}"
    address = server.address if " -R" in tool else sockets_of(server, client)
    return pair(server, tool, client, f"{tool} {address}")


@pytest.mark.also_connectx
@pytest.mark.parametrize("tool", PINGPONGS)
def test_pingpong(ends, port, tool):
    for out in over_tcp(ends, port, tool):
        assert "100 iters in" in out


@pytest.mark.also_connectx
@pytest.mark.parametrize("tool", PERFTESTS)
def test_perftest(ends, port, tool):
    out, _ = over_tcp(ends, port, f"{tool} -n 200")
    assert re.search(r"^ *\d+ +200 ", out, re.M)


@pytest.mark.also_connectx
@pytest.mark.parametrize("tool", CM, ids=["rping", "ucmatose", "udaddy"])
def test_connection_manager(ends, tool):
    """By address: the kernel's rdma_cm and its IPoIB in the guests, the daemon's on the host."""
    client, server = ends
    serve, connect = ("-s -a", "-c -a") if tool.startswith("rping") else ("-b", "-s")
    out, other = pair(server, f"{tool} {serve} {server.address}", client, f"{tool} {connect} {server.address}")
    if tool.startswith("rping"):
        assert out.count("ping data: rdma-ping-") == other.count("ping data: rdma-ping-") == 4
    else:
        assert "test complete" in out and "return status 0" in out and "return status 0" in other


@pytest.mark.also_connectx
def test_ibping(ends):
    """A user-space agent on the other side's QP1 responds."""
    client, server = ends
    lid = server.fabric.port(server.host)["lid"]
    agent = server.start("ibping -S")

    def echoes():
        status, out = client.call(f"ibping -c 3 -f {lid}")
        return out if status == 0 and "3 received, 0% packet loss" in out else None

    wait_until(echoes, 30, "echoes", 0.2)
    agent.kill()


def test_counters_of_the_other_end(ends):
    """
    perfquery reads and resets the counters of the other side's port by its LID, which are those of `muslin show`.
    """
    client, server = ends
    lid = server.fabric.port(server.host)["lid"]

    def packets():
        return int(re.search(r"PortXmitPkts:\.*(\d+)", client.call(f"perfquery -x {lid} 1")[1])[1])

    before = server.fabric.port(server.host)["counters"]["port_xmit_packets"]
    assert before <= packets() <= server.fabric.port(server.host)["counters"]["port_xmit_packets"]


@pytest.mark.also_connectx
def test_ibstat(ends):
    for place in ends:
        out = place.call("ibstat")[1]
        port = place.fabric.port(place.host)
        assert "State: Active" in out and "Link layer: InfiniBand" in out and "Rate: 200" in out
        assert re.search(rf"Base lid: {port['lid']}\b", out) and f"Port GUID: {port['guid']}" in out
