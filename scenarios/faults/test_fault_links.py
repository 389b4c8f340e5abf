# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Links, switches and subnet administration fail under stock programs, with OpenSM as the subnet manager.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import re

from muslin import free_port, wait_until

PINGPONG = ["ibv_rc_pingpong", "-p", free_port(), "-n", "300"]


def pingpong(fabric, server="h5", client="h1", timeout=60):
    _, out = fabric.pair((server, *PINGPONG), (client, *PINGPONG, fabric.ip(server)), timeout=timeout)
    assert "300 iters" in out


def spine_between(fabric, *hosts):
    lids = [str(fabric.port(h)["lid"]) for h in hosts]
    return re.search(r"spine\d", fabric.run("h1", "ibtracert", *lids))[0]


def rping(fabric, count, timeout=60):
    """rping from h2 to h5; returns the client's process with any exit status."""
    ip = fabric.ip("h5")
    srv = fabric.start("h5", "rping", "-s", "-a", ip, "-C", count)

    def attempt():
        cli = fabric.start("h2", "rping", "-c", "-a", ip, "-C", count, "-v")
        out = cli.wait(timeout, status=None)
        return cli if cli.popen.returncode == 0 or not re.search("REJECTED|refused|error -?111|event 8", out) else None

    cli = wait_until(attempt, 30, "rping's server", 0.3)
    srv.kill()
    return cli


def test_a_flap_breaks_a_connection_and_nothing_else(fabric):
    """
    h5's link is down for longer than the retries take: status 12. When the port is Active again new connections work.
    """
    flap = fabric.fault("h5", "down", opcode="RC_SEND_ONLY,RC_SEND_LAST", nth=50, for_="5s")
    srv = fabric.start("h5", *PINGPONG)

    def attempt():
        out = fabric.start("h2", *PINGPONG, fabric.ip("h5")).wait(60, status=None)
        return out if "remote address" in out else None

    assert "transport retry counter exceeded (12)" in wait_until(attempt, 20, "a connection", 0.2)
    srv.kill()
    wait_until(lambda: fabric.port("h5")["state"] == "Active", 30, "h5's port", 0.3)
    assert flap.hits == 1
    pingpong(fabric)


def test_rping_outlasts_a_flap(fabric):
    """
    The time-outs of a connection by rdma_cm derive from the SA's packet lifetime: its retries take longer than 3 s.
    """
    flap = fabric.fault("h5", "down", opcode="RC_WRITE_ONLY,RC_READ_REQUEST", nth=20, for_="3s")
    assert rping(fabric, 100).popen.returncode == 0
    assert flap.hits == 1


def test_a_short_flap_is_survived(fabric):
    """The link is up, configured by OpenSM, before a connection with a long time-out has used its retries."""
    fabric.fault("h5", "down", opcode="rc", nth=50, for_="100ms")
    args = ["ib_send_lat", "-p", free_port(), "-n", "1000", "-u", "20"]
    _, out = fabric.pair(("h5", *args), ("h1", *args, fabric.ip("h5")), timeout=90)
    assert re.search(r"^\s*2\s+1000\s", out, re.M), out


def test_a_spine_fails_under_traffic(fabric):
    """The spine with the traffic dies at its 2000th packet: OpenSM routes by the other one."""
    spine = spine_between(fabric, "h1", "h5")
    other = {"spine1": "spine2", "spine2": "spine1"}[spine]
    fault = fabric.fault(spine, "kill", opcode="rc", nth=2000)
    args = ["ib_write_bw", "-p", free_port(), "-s", "65536", "-n", "3000", "-u", "20"]
    _, out = fabric.pair(("h5", *args), ("h1", *args, fabric.ip("h5")), timeout=120)
    assert re.search(r"^\s*65536\s+3000\s", out, re.M), out
    assert fault.hits == 1 and spine_between(fabric, "h1", "h5") == other
    fault.clear()
    wait_until(lambda: all(p["state"] == "Active" for p in fabric.node(spine)["ports"] if p.get("peer")), 40, spine)
    pingpong(fabric)


def test_a_swapped_cable(fabric):
    """Two cables are exchanged at leaf1: OpenSM finds the hosts again, with their LIDs."""
    leaf = {p["peer"]: p["num"] for p in fabric.node("leaf1")["ports"] if p.get("peer")}
    lids = {h: fabric.port(h)["lid"] for h in ("h2", "h3")}
    fabric.fault(f"leaf1:{leaf['h2']}", "swap", with_=f"leaf1:{leaf['h3']}")
    assert fabric.port("h2")["peer_port"] == leaf["h3"]
    wait_until(lambda: all(fabric.port(h)["state"] == "Active" for h in lids), 40, "Active ports", 0.3)
    assert {h: fabric.port(h)["lid"] for h in lids} == lids
    wait_until(lambda: fabric.run("h1", "ibtracert", str(fabric.port("h1")["lid"]), str(lids["h2"]), status=None).count(
        f"[{leaf['h3']}]"), 30, "the new route", 0.5)
    pingpong(fabric, "h2", "h3")


def test_a_degraded_link_is_seen(fabric):
    """One lane of four at SDR: ibstat shows it at the host, iblinkinfo at the switch."""
    fault = fabric.fault("h5", "degrade", lanes=1, speed="SDR")
    wait_until(lambda: fabric.port("h5")["state"] == "Active", 30, "h5's port", 0.3)
    assert re.search(r"Rate: 2(\.5)?\b", fabric.run("h5", "ibstat"))
    assert re.search(r"1X\s+2\.5 Gbps.*h5", fabric.run("h1", "iblinkinfo"))
    fault.clear()
    wait_until(lambda: fabric.port("h5")["state"] == "Active", 30, "h5's port", 0.3)
    assert fabric.port("h5")["width"] == 4


def test_a_wrong_forwarding_entry(fabric):
    """leaf1 forwards packets for h5 to h2: retries are exhausted; with the correct entry traffic works again."""
    port = next(p["num"] for p in fabric.node("leaf1")["ports"] if p.get("peer") == "h2")
    fault = fabric.fault("leaf1", "lft", lid=fabric.port("h5")["lid"], port=port)
    before = fabric.port("h2")["counters"]["port_rcv_errors"]
    out = fabric.run("h1", "ibping", "-c", "2", str(fabric.port("h5")["lid"]), status=None)
    assert "100% packet loss" in out or "failed" in out, out
    assert fabric.port("h2")["counters"]["port_rcv_errors"] > before
    fault.clear()
    pingpong(fabric)


def test_sa_does_not_respond_at_first(fabric):
    """The first two responses to PathRecord queries are lost: the queries are retried, and rping connects."""
    fault = fabric.fault("h2", "drop", class_="SA", method="GetResp", attr="PathRecord", first=2)
    assert rping(fabric, 5).popen.returncode == 0
    assert fault.hits == 2


def test_sa_is_silent(fabric):
    """No response at all: rping's route resolution fails, and works again when the SA responds."""
    with fabric.fault("h2", "drop", dir="out", class_="SA", attr="PathRecord"):
        cli = fabric.start("h2", "rping", "-c", "-a", fabric.ip("h5"), "-C", "5")
        out = cli.wait(60, status=None)
        assert cli.popen.returncode != 0 and re.search("ROUTE_ERROR|event 3|-110", out), out
    assert rping(fabric, 5).popen.returncode == 0


def test_sweeps_through_bad_links(fabric):
    """A tenth of all SMPs is lost on every link during a full sweep: the subnet still comes up."""
    loss = fabric.fault("all", "drop", prob="10%", class_="SubnDR")
    with fabric.fault("spine1", "down", for_="1s"):
        wait_until(lambda: fabric.node("spine1")["ports"][1].get("unplugged") is None, 20, "spine1's cables", 0.2)
        ports = [p["num"] for p in fabric.node("spine1")["ports"] if p.get("peer")]
        wait_until(lambda: all(fabric.port("spine1", n)["state"] == "Active" for n in ports), 90, "spine1", 0.5)
    loss.clear()
    wait_until(lambda: swept(fabric.show()["manager"]), 60, "a sweep without a loss", 0.2)
    pingpong(fabric)


def swept(sm):
    return sm["up"] and not sm["sweeping"] and not sm["sweep_errors"]


def test_one_guid_twice(new_fabric):
    """h6 reports h5's GUIDs: OpenSM detects it."""
    fabric = new_fabric.up(None, "--no-sm").sweep()
    with fabric.fault("h6", "guid", with_="h5"):
        said = r"[Dd]uplicat"
        wait_until(lambda: re.search(said, fabric.sm_log.read_text(errors="replace")), 40, "OpenSM's complaint", 0.5)


def bandwidth(fabric, server, client, seconds=1):
    """MiB/s of writes from @client to @server."""
    args = ["ib_write_bw", "-p", free_port(), "-s", "65536", "-D", str(seconds), "-u", "20"]
    _, out = fabric.pair((server, *args), (client, *args, fabric.ip(server)), timeout=60)
    return float(re.findall(r"^\s*65536\s.*$", out, re.M)[-1].split()[3])


def waited(fabric, switch, port):
    return fabric.port(switch, port)["counters"]["port_xmit_wait"]


def test_a_slow_host_slows_its_neighbours(fabric):
    """
    h5's link is slow. Packets for it fill the buffers on their path, and so slow down flows that share the path to
    leaf2, though the links of their own hosts are fast: congestion spreading. A flow by the other spine is not
    affected. The slow flow has more unacknowledged packets than all buffers of its path take, also those of a trunk,
    which are deeper.
    """
    spine = {h: spine_between(fabric, "h1", h) for h in ("h5", "h6", "h7", "h8")}
    victim = next(h for h in ("h6", "h7", "h8") if spine[h] == spine["h5"])
    free = next(h for h in ("h6", "h7", "h8") if spine[h] != spine["h5"])
    slow = fabric.fault("h5", "rate", bps="4M", dir="in", opcode="rc")
    args = ["ib_write_bw", "-p", free_port(), "-s", "65536", "-D", "30", "-t", "64", "-q", "4", "-u", "20"]
    hog = fabric.start_pair(
        ("h5", *args), ("h1", *args, fabric.ip("h5")), lambda: slow.report()["held"] > 50, what="a full buffer"
    )
    uplink = next(p["num"] for p in fabric.node("leaf1")["ports"] if p.get("peer") == spine["h5"])
    before = waited(fabric, "leaf1", uplink)
    wait_until(lambda: waited(fabric, "leaf1", uplink) > before, 10, "PortXmitWait of the uplink", 0.1)
    assert bandwidth(fabric, victim, "h2") < bandwidth(fabric, free, "h3") / 10  # both at the same load of the machine
    for p in hog:
        p.kill()


def test_sa_is_slow(fabric):
    """Each response of the SA takes 100 ms: rping connects, but later."""
    fault = fabric.fault("h2", "delay", class_="SA", method="GetResp", time="100ms", dir="in")
    cli = rping(fabric, 5)
    assert cli.popen.returncode == 0, cli.output
    assert fault.hits


def test_a_manager_exits_under_traffic(new_fabric):
    """The master's host loses its link; the standby takes over, and traffic between other hosts is not affected."""
    fabric = new_fabric.up(None, "--no-sm")
    manager = fabric.muslin.with_name("muslin-sm")
    fabric.start("h1", manager, "-p", "10")
    fabric.wait_active()
    wait_until(lambda: (fabric.show()["sm"] or {}).get("host") == "h1", 20, "the master", 0.2)
    fabric.start("h8", manager, "-p", "5")
    ip = fabric.ip("h5")

    def packets():
        return fabric.port("h2")["counters"]["port_xmit_packets"]

    before = packets()
    srv, cli = fabric.start_pair(
        ("h5", "rping", "-s", "-a", ip),
        ("h2", "rping", "-c", "-a", ip, "-C", "100000000"),
        lambda: packets() > before + 500,
        timeout=60,
    )
    fabric.fault("h1", "kill")
    wait_until(lambda: (fabric.show()["sm"] or {}).get("host") == "h8", 40, "the new master", 0.3)
    before = packets()
    wait_until(lambda: packets() > before + 500, 60, "traffic under the new master", 0.2)
    assert cli.running(), cli.output
    cli.kill()
    srv.kill()
    pingpong(fabric, "h5", "h2")
