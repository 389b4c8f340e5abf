# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The connection manager with the distribution's programs: h1 on one leaf serves, h5 on the other connects to its IP
address, which is resolved by ARP on the broadcast group, as by IPoIB.
"""

import re

import pytest
from muslin import pair
from test_hostile import hw_counter


def test_rping_verifies_its_data(shared_fabric):
    ip = shared_fabric.ip("h1")
    args = ["-a", ip, "-V", "-C", "20"]
    _, out = shared_fabric.pair(("h1", "rping", "-s", *args), ("h5", "rping", "-c", "-v", *args))
    assert out.count("ping data") == 20


def test_hosts_are_known_by_name(shared_fabric):
    args = ["-a", "h3", "-C", "5"]
    _, out = shared_fabric.pair(("h3", "rping", "-s", *args), ("h6", "rping", "-c", "-v", *args))
    assert out.count("ping data") == 5


def test_rping_over_ipv6(shared_fabric):
    ip = next(a.split("/")[0] for a in shared_fabric.node("h2")["ips"] if ":" in a)
    args = ["-a", ip, "-V", "-C", "5"]
    _, out = shared_fabric.pair(("h2", "rping", "-s", *args), ("h6", "rping", "-c", "-v", *args))
    assert out.count("ping data") == 5


def test_close_waits_for_the_thread_that_reads_events(shared_fabric, program):
    """A thread between two rdma_get_cm_event() calls does not get EBADF, which ended rping with status 255."""
    assert shared_fabric.run("h1", program("close_channel"), shared_fabric.ip("h5")) == "waits\n"


def test_waiting_for_events_restarts_after_signals(shared_fabric, program):
    """As system calls do where the handler has SA_RESTART, such as those of signal(3)."""
    said = shared_fabric.run("h1", program("signals"), "10.255.255.250")
    assert said.splitlines() == ["signals: RDMA_CM_EVENT_ADDR_ERROR", "signals: Interrupted system call"]


@pytest.mark.parametrize("size", [64, 16384])
def test_ucmatose(shared_fabric, size):
    args = ["ucmatose", "-c", "4", "-C", "20", "-S", str(size)]
    srv, cli = shared_fabric.pair(("h1", *args), ("h5", *args, "-s", shared_fabric.ip("h1")))
    assert "test complete" in cli and "return status 0" in cli and "return status 0" in srv


def test_udaddy(shared_fabric):
    args = ["udaddy", "-c", "3", "-C", "10"]
    srv, cli = shared_fabric.pair(("h2", *args), ("h6", *args, "-s", shared_fabric.ip("h2")))
    assert "return status 0" in cli and "return status 0" in srv


@pytest.mark.parametrize("group", ["239.1.2.3", "ff0e::4321"])
def test_mckey(shared_fabric, group):
    """A sender and a receiver join one group; every message is received."""
    src = {h: next(a for a in shared_fabric.node(h)["ips"] if (":" in a) == (":" in group)) for h in ("h1", "h5")}
    line_wise = ("stdbuf", "-oL")
    rcv = shared_fabric.start("h1", *line_wise, "mckey", "-m", group, "-b", src["h1"], "-C", "10", "-p", "0x0002")
    rcv.expect("joined")
    snd = shared_fabric.run("h5", "mckey", "-m", group, "-b", src["h5"], "-s", "-C", "10", "-p", "0x0002")
    out = rcv.wait(30)
    assert "return status 0" in snd and "return status 0" in out


def test_send_only_join(shared_fabric):
    """A send-only join is that of a full member, as in the kernel, and creates the group."""
    node = shared_fabric.node("h5")
    src = next(a for a in node["ips"] if ":" not in a)
    member = shared_fabric.start("h5", "stdbuf", "-oL", "mckey", "-m", "239.1.2.4", "-b", src, "-o", "-C", "1")
    member.expect("joined")
    records = shared_fabric.run("h1", "saquery", "--smkey", "1", "-m").split("MCMemberRecord member dump")
    own = [r for r in records if ":f01:204" in r and "h5" in r]
    assert own and all("ScopeState..............0x28" in r for r in own), records
    member.kill()


def test_rstream(shared_fabric):
    args = ["rstream", "-T", "v", "-S", "65536", "-C", "200"]
    _, out = shared_fabric.pair(("h3", *args), ("h7", *args, "-s", shared_fabric.ip("h3")))
    assert re.search(r"custom\s+64k\s+200\s", out), out


def test_udpong(shared_fabric):
    """
    Until rsocket's thread has an address handle, it sends datagrams by UDP; those arrive later, some of them only when
    udpong has ended its count. The fabric itself loses none.
    """
    ip = shared_fabric.ip("h3")

    def dropped():
        return [hw_counter(shared_fabric, host, "rx_ud_dropped") for host in ("h3", "h8")]

    before = dropped()
    srv = shared_fabric.start("h3", "udpong", "-b", ip, "-S", "64", "-C", "100")
    out = pair.run(srv, lambda: shared_fabric.start("h8", "udpong", "-s", ip, "-S", "64", "-C", "100"), 60)
    count = re.search(r"custom\s+64\s+(\d+)\s", out)
    assert count and 0 < int(count[1]) <= 100, out
    assert dropped() == before


def test_cmtime(shared_fabric):
    """As a server and a client; from rdma-core 59 on as two peers, with a connection for synchronisation first."""
    ip, own = shared_fabric.ip("h4"), shared_fabric.ip("h8")
    common = ("cmtime", "-c", "20", "-b")
    if "controller" in shared_fabric.run("h4", "cmtime", "-h", status=None):
        argv = (*common, ip, "-C", ip, "-L"), (*common, own, "-C", ip)
    else:
        argv = (*common, ip), (*common, own, "-s", ip)
    srv = shared_fabric.start("h4", *argv[0])
    silent = re.compile(r"\A\Z")  # as the two peers fail when the first one does not listen yet
    out = pair.run(srv, lambda: shared_fabric.start("h8", *argv[1]), 60, silent)
    srv.kill()
    assert re.search(r"^(cm )?connect\b", out, re.M) and re.search(r"^disconnect\b", out, re.M), out


def test_rdma_client_and_server(shared_fabric):
    srv, out = shared_fabric.pair(("h2", "rdma_server"), ("h7", "rdma_client", "-s", shared_fabric.ip("h2")))
    assert "end 0" in out and "end 0" in srv


def test_no_listener(shared_fabric):
    """A connection to a port without a listener is rejected, and reported so."""
    out = shared_fabric.run("h5", "rping", "-c", "-a", shared_fabric.ip("h1"), "-p", "9", "-C", "1", status=None)
    assert "REJECTED" in out or "error 8" in out or "wait for CONNECTED" in out


def test_unknown_address(shared_fabric):
    p = shared_fabric.start("h5", "rping", "-c", "-a", "10.255.255.250", "-C", "1")
    out = p.wait(40, status=None)
    assert p.popen.returncode != 0
    assert re.search(r"ADDR_ERROR|ADDR_RESOLVED|resolve_addr", out), out


@pytest.mark.parametrize("program", [("ucmatose", "-P", "ib"), ("ucmatose",), ("udaddy",)], ids=" ".join)
def test_addresses_may_be_gids(shared_fabric, program):
    """AF_IB: no IP address and no ARP."""
    gid = {h: shared_fabric.run(h, "cat", "/sys/class/infiniband/muslin0/ports/1/gids/0").strip() for h in ("h1", "h5")}
    args = [*program, "-f", "gid", "-C", "5"]
    srv, cli = shared_fabric.pair(("h1", *args, "-b", gid["h1"]), ("h5", *args, "-s", gid["h1"], "-b", gid["h5"]))
    assert "return status 0" in cli and "return status 0" in srv


def test_a_killed_server_is_a_disconnect(shared_fabric):
    """The daemon sends the DREQ for the killed program, as its kernel would."""
    ip = shared_fabric.ip("h4")
    srv = shared_fabric.start("h4", "stdbuf", "-oL", "rping", "-s", "-d", "-a", ip)
    srv.expect("rdma_listen")
    cli = shared_fabric.start("h7", "rping", "-c", "-a", ip, "-v", "-C", "1000000")
    cli.expect("rdma-ping-20:", 20)
    srv.kill()
    out = cli.wait(20, status=None)
    assert "DISCONNECT" in out or "wait for" in out, out[-500:]
    again = shared_fabric.start("h4", "rping", "-s", "-a", ip)
    out = pair.run(again, lambda: shared_fabric.start("h7", "rping", "-c", "-a", ip, "-v", "-C", "3"), 20)
    assert out.count("ping data") == 3
