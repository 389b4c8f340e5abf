# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Attributes and options of a RoCEv2 port: GID table, traffic class, congestion control.

    daemon a: r1 127.a.b.21, r3 127.a.b.23        daemon b: r2 127.a.b.22
"""

import contextlib
import re
import signal

import pytest
from muslin import free_port, wait_until
from test_roce import frames, icrc_is_right, perftest, roce_ports


@pytest.fixture(scope="module")
def ports(muslin_make_fabric):
    yield from roce_ports(muslin_make_fabric, "port", first=20)


@pytest.fixture(scope="module")
def congested(muslin_make_fabric):
    """Two ports with congestion control; a twentieth of their packets is marked CE."""
    yield from roce_ports(muslin_make_fabric, "congested", first=30, options="dcqcn ce=0.05")


# Output for rxe0 in the documentation of distributions, with the values of this port.
DEVINFO = (
    r"hca_id:\trxe0",
    r"\ttransport:\t\t\tInfiniBand \(0\)",
    r"\tnode_guid:\t\t\t[0-9a-f]{4}(:[0-9a-f]{4}){3}",
    r"\tsys_image_guid:\t\t\t[0-9a-f]{4}(:[0-9a-f]{4}){3}",
    r"\tphys_port_cnt:\t\t\t1",
    r"\t\tport:\t1",
    r"\t\t\tstate:\t\t\tPORT_ACTIVE \(4\)",
    r"\t\t\tmax_mtu:\t\t4096 \(5\)",
    r"\t\t\tactive_mtu:\t\t4096 \(5\)",
    r"\t\t\tsm_lid:\t\t\t0",
    r"\t\t\tport_lid:\t\t0",
    r"\t\t\tport_lmc:\t\t0x00",
    r"\t\t\tlink_layer:\t\tEthernet",
)
IBSTAT = (
    r"CA 'rxe0'",
    r"\tNumber of ports: 1",
    r"\tNode GUID: 0x[0-9a-f]{16}",
    r"\tSystem image GUID: 0x[0-9a-f]{16}",
    r"\tPort 1:",
    r"\t\tState: Active",
    r"\t\tPhysical state: LinkUp",
    r"\t\tRate: [\d.]+",
    r"\t\tBase lid: 0",
    r"\t\tLMC: 0",
    r"\t\tSM lid: 0",
    r"\t\tCapability mask: 0x00010000",
    r"\t\tPort GUID: 0x[0-9a-f]{16}",
    r"\t\tLink layer: Ethernet",
)


@pytest.mark.parametrize("tool, lines", [("ibv_devinfo", DEVINFO), ("ibstat", IBSTAT)])
def test_shown_as_rxe0(ports, tool, lines):
    said = ports.run("r1", tool)
    for line in lines:
        assert re.search(f"^{line}\\s*$", said, re.M), (line, said)


def sysfs(two, host, name):
    return two.run(host, "cat", f"/sys/class/infiniband/rxe0/ports/1/{name}").strip()


def test_gid_table(ports):
    """The address with its interface, as RoCE v2 alone: packets of v1 are not UDP."""
    a, b, c, d = (int(x) for x in ports.ip["r1"].split("."))
    assert sysfs(ports, "r1", "gids/0") == f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
    assert sysfs(ports, "r1", "gid_attrs/types/0") == "RoCE v2"
    assert sysfs(ports, "r1", "gid_attrs/ndevs/0") == "eth0"
    info = ports.run("r1", "ibv_devinfo", "-v")
    assert re.findall(r"GID\[\s*(\d+)\]:\s+(.*)", info) == [("0", f"::ffff:{ports.ip['r1']}, RoCE v2")]


def test_v1_cannot_be_the_default_by_udp(ports, new_fabric):
    assert "a port on UDP sockets has RoCE v2 only" in ports.a.command("mode", "r1", "v1", status=1)
    topology = new_fabric.folder / "v1.topo"
    topology.write_text(f"host r9 roce {ports.ip['r1'].rsplit('.', 1)[0]}.99 mode=v1\n")
    topology.chmod(0o644)
    assert "Protocol not supported" in new_fabric.command("up", topology, status=1)


@contextlib.contextmanager
def capture(two, host):
    """Captures the packets of @host's port during the block; yields the file's path."""
    fabric = two.of(host)
    pcap = fabric.folder / f"{host}-{next(fabric.count)}.pcapng"
    trace = fabric.start_muslin("trace", "-w", pcap, host)
    wait_until(pcap.exists, 10, "the capture")
    yield pcap
    trace.signal(signal.SIGINT)
    trace.wait(20, status=None)


def dissected(two, pcap, *fields, only="infiniband"):
    """Output of tshark for the frames, a tuple of @fields each; none is malformed, and every ICRC is correct."""
    argv = ["tshark", "-r", pcap, "-Y", only, "--disable-protocol", "rpcordma", "-T", "fields", "-e", "_ws.malformed"]
    for f in fields:
        argv += ["-e", f]
    rows = [r.split("\t") for r in two.a._start(argv).wait(60).splitlines() if not r.startswith("Running")]
    assert rows and not [r for r in rows if r[0]]
    assert all(icrc_is_right(f) for f in frames(pcap))
    return [tuple(r[1:]) for r in rows]


def test_traffic_class_is_dscp_and_ecn(ports):
    """The IP header has the class of the connection, also when the other daemon receives it."""
    with capture(ports, "r1") as pcap:
        perftest(ports, "ib_send_bw", "--tclass=104", "-s", "1000", iters=20)
    rows = dissected(ports, pcap, "infiniband.bth.opcode", "ip.dsfield")
    assert {ds for opcode, ds in rows if opcode in ("4", "17")} == {"0x68"}, rows


def test_type_of_service_is_the_same_byte(ports):
    """The argument of rdma_set_option() is the traffic class of the connection, in both directions."""
    argv = ["ucmatose", "-c", "1", "-C", "5", "-t", "72"]
    with capture(ports, "r1") as pcap:
        ports.pair(("r1", *argv), ("r2", *argv, "-s", ports.ip["r1"]))
    rows = dissected(ports, pcap, "infiniband.bth.opcode", "ip.dsfield")
    assert {ds for opcode, ds in rows if opcode in ("4", "17")} == {"0x48"}, rows


def test_perftest_by_type_of_service(ports):
    """The rdma_cm connection for perftest's parameters has no class; the measured one has it."""
    argv = ["ib_send_bw", "-R", "-T", "104", "-n", "20", "-s", "5000", "-F", "-p", free_port()]
    with capture(ports, "r1") as pcap:
        ports.pair(("r1", *argv), ("r2", *argv, ports.ip["r1"]))
    rows = dissected(ports, pcap, "infiniband.bth.opcode", "ip.dsfield", "ip.dsfield.dscp")
    assert {row[1:] for row in rows if row[0] in ("0", "1", "2")} == {("0x68", "26")}, rows


def test_source_ports_distinguish_flows(ports):
    """Queue pairs use different source ports, one each."""
    with capture(ports, "r1") as pcap:
        perftest(ports, "ib_write_bw", "-q", "16", "-s", "1000", iters=20)
    rows = set(dissected(ports, pcap, "infiniband.bth.destqp", "udp.srcport", only="infiniband.bth.opcode == 10"))
    assert len(rows) == len({qpn for qpn, _ in rows}) == 16
    assert len({port for _, port in rows}) > 1 and all(int(port) >= 0xC000 for _, port in rows)


@pytest.mark.parametrize("member", ["r3", "r2"])
def test_multicast(ports, member):
    """A sender and a member, in one daemon and in two: each message is received once."""
    # a group for this run only: another worker's daemons on the loopback interface would be members, too
    group = ["-m", "239." + ports.ip["r1"].split(".", 1)[1], "-C", "10"]
    receiver = ports.of(member).start(member, "stdbuf", "-oL", "mckey", *group, "-b", ports.ip[member])
    receiver.expect("joined")
    before = ports.counter(member, "roce_received")
    sent = ports.run("r1", "mckey", *group, "-b", ports.ip["r1"], "-s")
    assert "return status 0" in sent and "return status 0" in receiver.wait(30)
    assert ports.counter(member, "roce_received") == before + 10


def rate(out):
    return float(re.findall(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)", out, re.M)[-1])


def hw(two, host, name):
    return int(sysfs(two, host, f"hw_counters/{name}"))


def test_congestion_slows_down(ports, congested):
    """CE marks cause CNPs, and the sender stays below its link's rate; without marks it does not."""
    out = perftest(congested, "ib_write_bw", "-s", "65536", iters=1000)
    marked, sent = hw(congested, "r1", "np_ecn_marked_roce_packets"), hw(congested, "r1", "np_cnp_sent")
    handled = hw(congested, "r2", "rp_cnp_handled")
    assert marked > sent > 10 and sent == handled
    link = 10e9 / 8 / 2**20  # MiB/s
    assert rate(out) < 0.8 * link
    for name in ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled"):
        assert hw(ports, "r1", name) == hw(ports, "r2", name) == 0


def test_notifications_are_dissected(congested):
    """A CNP has opcode 0x81 and is not ECN-capable itself; requests are, or may be."""
    with capture(congested, "r1") as pcap:
        perftest(congested, "ib_write_bw", "-s", "65536", iters=200)
    rows = dissected(congested, pcap, "infiniband.bth.opcode", "ip.dsfield")
    assert {ds for opcode, ds in rows if opcode == "129"} == {"0xc0"}
    assert {ds for opcode, ds in rows if opcode == "7"} == {"0x02", "0x03"}
