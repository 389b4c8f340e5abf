# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
RoCE in guests: the RoCE port of the virtio device is bound to the guest's network card, and the guest's kernel makes
its GIDs of the card's addresses. The card receives all other packets, so that the kernel's own rdma_rxe can be used
instead.

    h2 10.0.0.2 --- InfiniBand --- 1 h1 2 --- sw1 --- g2 (guest b) 10.5.0.2, fd05::2
                              (guest a)        |
                       10.0.0.1   10.5.0.1,    |
                                  fd05::1      r1 10.5.0.9, fd05::9

The adapter of guest a has an InfiniBand port and a RoCE port, that of guest b a RoCE port alone. Programs of h2 and r1
run here.
"""

import itertools
import re

import pytest
from endpoint import Endpoint, addresses_ready, pair
from muslin import free_port, wait_until
from muslin.pair import CONNECT_REFUSED, RESTART_BOTH
from test_ethernet import Capture, end
from test_perftest import RESULT

pytestmark = [pytest.mark.guest, pytest.mark.model("muslin", reason="the ConnectX has no Ethernet port")]

TOPOLOGY = """leafs 1 spines 1 hosts 2
ethernet sw1 trunk 7
host h1 nic sw1 roce ip 10.5.0.1/24 fd05::1/64
host g2 nic sw1 roce ip 10.5.0.2/24 fd05::2/64
host r1 ether sw1 ip 10.5.0.9/24 fd05::9/64
"""
A, B, R = "10.5.0.1", "10.5.0.2", "10.5.0.9"
R_LINK_LOCAL = "fe80::6d:75ff:fe00:3"  # of the third station's address
PORT = {"h1": 2, "g2": 1}  # the RoCE port of the guest's adapter


@pytest.fixture(scope="module")
def net(muslin_make_fabric):
    f = muslin_make_fabric("vm-roce").up(TOPOLOGY)
    yield f
    f.down()


@pytest.fixture(scope="module")
def two(net):
    """Both guests, with their ports up. A test must undo its changes to them."""
    vms = [net.vm(host) for host in PORT]
    for vm in vms:
        vm.wait("rdma link | grep -q 'ACTIVE.*netdev eth0'")
        vm.wait("ping -c 1 -W 1 10.5.0.1 && ping -c 1 -W 1 10.5.0.2")
    yield vms
    for vm in vms:
        vm.stop()


@pytest.fixture(scope="module")
def rxe(two):
    """Guest b without muslin's driver: the kernel's rdma_rxe uses the card."""
    b = two[1]
    b.run("modprobe -r muslin; modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0")
    b.wait("rdma link | grep -q 'rxe0/1 state ACTIVE'")
    return b


def gids(vm):
    """{index: (GID, version, interface)}"""
    folder = f"/sys/class/infiniband/muslin0/ports/{PORT[vm.host]}"
    out = vm.run(
        f"cd {folder}/gid_attrs/types; for i in *; do t=$(cat $i 2>/dev/null) && "
        f"echo $i $(cat {folder}/gids/$i) $(cat {folder}/gid_attrs/ndevs/$i) $t; done; true"
    )
    rows = [line.split(None, 3) for line in out.splitlines()]
    return {int(i): (gid, kind, dev) for i, gid, dev, kind in rows}


def mapped(ip):
    return "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}".format(*map(int, ip.split(".")))


def index(vm, ip, kind="RoCE v2"):
    found = [i for i, (gid, k, _) in gids(vm).items() if gid == mapped(ip) and k == kind]
    return found[0] if found else None


def talk(server, client, command, to, *, each):
    """Runs @command, with the arguments that each() adds for a guest, as server and as client."""
    out, _ = pair(server, f"{command} {each(server)}", client, f"{command} {each(client)} {to}")
    assert re.search(r"\d+ iters in|^ *\d+ +(200|50) ", out, re.M), out


def rping(server, client, to, count=10):
    where = f"-a {to} -v -C {count}"
    assert f"rdma-ping-{count - 1}" in pair(server, f"rping -s {where}", client, f"rping -c {where}")[0]


def test_device(two):
    info = two[0].run("ibv_devinfo -v")
    for line in (
        "hca_id:\tmuslin0",
        r"transport:\s+InfiniBand \(0\)",
        r"state:\s+PORT_ACTIVE \(4\)",
        r"active_mtu:\s+1024 \(3\)",
        r"port_lid:\s+0$",
        r"link_layer:\s+Ethernet",
        rf"GID\[\s*\d+\]:\s+::ffff:{A}, RoCE v2",
    ):
        assert re.search(line, info, re.M), (line, info)
    stat = two[0].run("ibstat")
    assert "Link layer: Ethernet" in stat and "State: Active" in stat and "Physical state: LinkUp" in stat


def test_gids_follow_addresses(two):
    a = two[0]
    assert {k for gid, k, dev in gids(a).values() if gid == mapped(A)} == {"IB/RoCE v1", "RoCE v2"}
    a.run("ip addr add 10.6.0.1/24 dev eth0")
    wait_until(lambda: index(a, "10.6.0.1") and index(a, "10.6.0.1", "IB/RoCE v1"), 10, "GIDs of a new address")
    a.run("ip addr del 10.6.0.1/24 dev eth0")
    wait_until(lambda: index(a, "10.6.0.1") is None, 10, "no GID of an address that has gone")


def test_port_follows_the_interface(two):
    a = two[0]
    a.run("ip link set eth0 down")
    a.wait("rdma link | grep -q 'state DOWN'")
    a.run("ip link set eth0 up; ip addr add fd05::1/64 dev eth0")  # it has lost those of IPv6
    a.wait("rdma link | grep -q 'state ACTIVE'")
    wait_until(lambda: index(a, A), 10, "the address's GID")


def test_rping_both_ways(two):
    a, b = two
    rping(a, b, A)
    rping(b, a, B)


@pytest.mark.parametrize("kind", ["rc", "uc", "ud", "srq"])
@pytest.mark.parametrize("version", ["RoCE v2", "IB/RoCE v1"])
def test_pingpong(two, kind, version):
    a, b = two
    each = lambda vm: f"-i {PORT[vm.host]} -g {index(vm, A if vm is a else B, version)}"  # noqa: E731
    talk(b, a, f"ibv_{kind}_pingpong -n 100", B, each=each)


@pytest.mark.parametrize("tool", ["ib_send_bw -c UD", "ib_write_bw -s 65536", "ib_read_bw -s 65536", "ib_atomic_lat"])
def test_perftest(two, tool):
    a, b = two
    each = lambda vm: f"-i {PORT[vm.host]} -x {index(vm, A if vm is a else B)}"  # noqa: E731
    talk(b, a, f"{tool} -n 200", B, each=each)


def test_vlan(two):
    a, b = two
    for i, vm in enumerate(two, 1):
        vm.run(f"ip link add link eth0 name eth0.7 type vlan id 7; ip addr add 10.7.0.{i}/24 dev eth0.7")
        vm.run("ip link set eth0.7 up")
    wait_until(lambda: index(a, "10.7.0.1") and index(b, "10.7.0.2"), 10, "GIDs on the VLAN")
    assert gids(a)[index(a, "10.7.0.1")][2] == "eth0.7"
    rping(b, a, "10.7.0.2")
    for vm in two:
        vm.run("ip link del eth0.7")
    wait_until(lambda: index(a, "10.7.0.1") is None, 10, "no GID on the VLAN")


def test_group(two):
    """A sender and a receiver join one group; every message is received."""
    a, b = two
    member = b.start(f"mckey -m 225.1.2.3 -b {B} -C 10", "mckey")
    b.wait("grep -q 030201E1 /proc/net/igmp", what="the receiver in its group")
    assert "return status 0" in a.run(f"mckey -m 225.1.2.3 -b {A} -s -C 10")
    assert "return status 0" in member.wait(30)


def test_capture_is_dissected(net, two):
    """A connection, SENDs, READs and WRITEs: no malformed packet, and every ICRC is correct."""
    with Capture(net, "g2") as c:
        rping(two[1], two[0], B)
    assert {"4", "100"} <= {row[0] for row in c.fields("infiniband.bth.opcode", only="infiniband")}
    assert c.sound() > 20


def test_both_ports_at_once(net, two):
    """Two connections of one adapter, over InfiniBand and over RoCE, at the same time."""
    a, b = two
    server = net.start("h2", "rping", "-s", "-a", "10.0.0.2", "-C", 300)
    other = b.start(f"rping -s -a {B} -C 300", "rping")
    before = net.node("h1")["ports"][0]["counters"], end(net, "h1-eth")["counters"]
    client = "until rping -c -a {} -v -C 300 >/tmp/{}.log; do sleep 0.2; done"  # the server may not be listening yet
    a.run(f"{client.format('10.0.0.2', 'ib')} & {client.format(B, 'roce')}; wait")
    for link in ("ib", "roce"):
        assert "rdma-ping-299" in a.log(link)
    for process in (server, other):
        process.wait(20, None)
    after = net.node("h1")["ports"][0]["counters"], end(net, "h1-eth")["counters"]
    for link, counter in enumerate(("port_xmit_packets", "tx_frames")):
        assert after[link][counter] > before[link][counter] + 600


def test_default_mode(net, two):
    """The RoCE mode of a port in the guest's configfs selects the version of its connections."""
    a, b = two
    folder = "/sys/kernel/config/rdma_cm/muslin0"
    a.run(f"mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config; mkdir -p {folder}")
    with Capture(net, "h1-eth") as c:
        for mode in ("IB/RoCE v1", "RoCE v2"):
            a.run(f"echo '{mode}' >{folder}/ports/2/default_roce_mode")
            assert mode in a.run(f"cat {folder}/ports/2/default_roce_mode")
            rping(b, a, B, count=3)
    a.run(f"rmdir {folder}")
    types = [kind for kind, _ in itertools.groupby(row[0] for row in c.fields("eth.type", only="infiniband.bth"))]
    assert types == ["0x8915", "0x0800"]
    assert c.sound()


def link_local(vm):
    return re.search(r"inet6 (fe80::\S+)/", vm.run("ip -6 addr show dev eth0"))[1]


def host_serves(net, vm, address):
    server = net.start("r1", "rping", "-s", "-a", "::", "-C", 10)
    assert "rdma-ping-9" in vm.wait(f"rping -c -a {address} -v -C 10", what="rping")
    server.wait(20, None)


def guest_serves(net, vm, address):
    where = f"-a {address} -v -C 10"
    assert "rdma-ping-9" in pair(vm, f"rping -s {where}", Endpoint(net, "r1"), f"rping -c {where}")[0]


def test_ipv6(net, two):
    """Global and link-local addresses, between the guests and with a host, by neighbour discovery."""
    a, b = two
    for vm in two:
        addresses_ready(vm, "eth0")
        vm.run("ip neigh flush dev eth0")
    with Capture(net, "sw1:1") as c:
        rping(b, a, "fd05::2")
        rping(b, a, link_local(b) + "%eth0")
        host_serves(net, a, "fd05::9")
        host_serves(net, a, R_LINK_LOCAL + "%eth0")
        guest_serves(net, a, "fd05::1")
    assert {"135", "136"} <= {row[0] for row in c.fields("icmpv6.type", only="icmpv6")}
    sources = {row[0] for row in c.fields("ipv6.src", only="infiniband.bth")}
    assert sources == {"fd05::1", "fd05::2", "fd05::9", R_LINK_LOCAL, link_local(a), link_local(b)}
    assert c.sound() > 60


@pytest.mark.parametrize("to", [B, "[fd05::2]"])
def test_card_finishes_what_is_sent(net, two, to):
    """A guest leaves checksums and segmentation to its card: each frame on the link fits, with correct checksums."""
    a, b = two
    sink = b.start("socat -u TCP6-LISTEN:9000,ipv6only=0 CREATE:/tmp/got", "socat")
    a.run("head -c 1000000 /dev/urandom >/tmp/sent")
    sends = "cat /sys/class/net/eth0/statistics/tx_packets"
    before = int(a.run(sends))
    with Capture(net, "h1-eth") as c:
        a.wait(f"socat -u FILE:/tmp/sent TCP:{to}:9000 && echo sent")
        sink.wait(20)
    handed = int(a.run(sends)) - before
    card = net.node("h1")["guest"]["card"]["counters"]
    assert card["tx_frames"] >= handed and card["rx_frames"] and not card["tx_bad"]
    assert a.run("md5sum </tmp/sent") == b.run("md5sum </tmp/got")
    checks = ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE"]
    names = "frame.len", "tcp.checksum.status", "ip.checksum.status"
    rows = c.fields(*names, only="tcp.dstport == 9000", options=checks)
    assert len(rows) > 1000000 / 1460 and handed < len(rows) / 2
    assert max(int(row[0]) for row in rows) == 1514
    assert {(row[1], row[2] or "1") for row in rows} == {("1", "1")}


def test_a_pulled_cable(net, two):
    """The card loses its carrier, and the port on it is down; then both are up again."""
    a, b = two
    net.command("link", "sw1:1", "down")
    a.wait("[ $(cat /sys/class/net/eth0/carrier) = 0 ] && rdma link | grep -q 'muslin0/2 state DOWN'")
    assert "muslin0/1" in a.run("rdma link | grep ACTIVE")
    net.command("link", "h1-eth", "up")
    a.wait("[ $(cat /sys/class/net/eth0/carrier) = 1 ] && rdma link | grep -q 'muslin0/2 state ACTIVE'")
    rping(b, a, B)


def measured(server, client, command, to):
    """
    Runs perftest by rdma_cm. Its ends connect twice, and the server listens for the second connection only after it
    has received the client's parameters: a faster client is rejected, and then both start again.
    """
    command += f" -R -F -p {free_port()}"

    def attempt():
        running = server.start(command)
        if server.vm:
            server.vm.wait("rdma res show cm_id | grep -q 'state LISTEN'")
        _, out = client.call(f"{command} {to}", 120)
        running.kill()
        if RESULT.search(out):
            return out
        assert CONNECT_REFUSED.search(out) or RESTART_BOTH.search(out), out
        return None

    return wait_until(attempt, 60, f"{command}, whose client is not refused")


@pytest.fixture
def sides(net, rxe):
    """Guest b with rdma_rxe, and a host."""
    return Endpoint(net, "g2", rxe), Endpoint(net, "r1")


@pytest.fixture(scope="module")
def wire(net, rxe):
    """
    Dissects all packets of the card with rdma_rxe at the end: none malformed, every ICRC correct. Also delays the
    request of perftest's second connection.
    """
    late = "udp dst port 4791 and udp[29] = 7 and (udp[44:2] = 0x10 or udp[44:2] = 0x17)"
    fault = net.fault("r1", "delay", time="150ms", pcap=late)
    with Capture(net, "g2") as c:
        yield
    fault.clear()
    assert c.sound() > 100


TOOLS = ["ib_write_{}", "ib_read_{}", "ib_send_{}", "ib_atomic_{}", "ib_send_{} -c UD -s 1024"]


@pytest.mark.parametrize("tool", TOOLS)
def test_rxe_and_a_host(sides, wire, tool):
    """Every operation in both directions: bandwidth with the host as client, latency with the guest as client."""
    size = "-s 65536" if tool.split("_")[1] in ("write", "read") else ""
    guest, host = sides
    measured(guest, host, f"{tool.format('bw')} {size} -n 50", B)
    measured(host, guest, f"{tool.format('lat')} -n 50", R)


@pytest.mark.parametrize("tool", ["ib_write_bw -s 65536", "ib_read_lat", "ib_send_bw -c UD -s 1024", "ib_atomic_lat"])
def test_rxe_and_our_adapter(two, rxe, wire, tool):
    a = two[0]
    each = lambda vm: f"-d muslin0 -i 2 -x {index(a, A)}" if vm is a else "-d rxe0 -x 1"  # noqa: E731
    server, client, to = (rxe, a, B) if "bw" in tool else (a, rxe, A)
    talk(server, client, f"{tool} -n 50", to, each=each)


DATA = "udp dst port 4791 and udp[8] < 0x11"  # no ACKs: a kernel waits for seconds after a lost NAK


@pytest.fixture
def lossy(net):
    """Loses one of a hundred packets with data, in either direction."""
    fault = net.fault("g2", "drop", prob="1%", pcap=DATA)
    yield
    fault.clear()


@pytest.mark.parametrize("tool", ["ib_write_bw -n 5 -s 262144", "ib_read_bw -n 10 -s 65536"])
def test_rxe_and_loss(sides, wire, lossy, tool):
    guest, host = sides
    measured(guest, host, tool, B)
    measured(host, guest, tool, R)


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw"])
def test_rxe_and_our_adapter_with_loss(two, rxe, wire, lossy, tool):
    a = two[0]
    each = lambda vm: f"-d muslin0 -i 2 -x {index(a, A)}" if vm is a else "-d rxe0 -x 1"  # noqa: E731
    for server, client, to in ((rxe, a, B), (a, rxe, A)):
        talk(server, client, f"{tool} -s 65536 -n 50", to, each=each)


def test_data_survives_loss(net, two, rxe, wire):
    """Checks each byte of READs from the kernel's adapter and WRITEs to it."""
    fault = net.fault("g2", "drop", prob="1%", pcap=f"{DATA} and udp[8] > 5 and udp[8] != 12")
    what = f"-a {A} -V -v -S 30000 -C 20"
    assert pair(two[0], f"rping -s {what}", rxe, f"rping -c {what}")[0].count("ping data") == 20
    fault.clear()


def shown(text):
    """A tool's output about a device, without its GUIDs and the speed of its interface."""
    return re.sub(r"(?m)(uid:\s+).*|(GUID: ).*|(Rate: ).*|\b[0-9a-f]{16}\b", r"\1\2\3", text).strip()


@pytest.mark.parametrize("tool", ["ibv_devinfo", "ibstat rxe0", "ibv_devices"])
def test_shown_as_rdma_rxe_is(net, rxe, tool):
    """Host mode's rxe0 looks like the kernel's, line by line."""
    assert shown(net.run("r1", *tool.split())) == shown(rxe.run(tool))


def test_rping_with_rxe_over_ipv6(net, rxe):
    host_serves(net, rxe, "fd05::9")
    guest_serves(net, rxe, "fd05::2")


def test_rping_with_rxe(two, rxe):
    a = two[0]
    rping(a, rxe, A)
    rping(rxe, a, B)


def check_files(a, b):
    """Files that a writes to b's export are equal at b, and when a reads them."""
    for size in (1, 65536, 4 << 20):
        a.run(f"head -c {size} /dev/urandom >/mnt/f{size}", timeout=120)
        a.run("echo 3 >/proc/sys/vm/drop_caches")
        assert a.run(f"md5sum </mnt/f{size}") == b.run(f"md5sum </export/f{size}")
    a.run("umount /mnt", timeout=60)


def test_nfs_served_by_rxe(two, rxe):
    assert "rdma 20049" in rxe.run("nfs-server", timeout=120)
    assert "proto=rdma" in two[0].run(f"nfs-mount {B}", timeout=120)
    check_files(two[0], rxe)
    rxe.run("rpc.nfsd 0", timeout=60)


def test_nfs_mounted_by_rxe(two, rxe):
    assert "rdma 20049" in two[0].run("nfs-server", timeout=120)
    assert "proto=rdma" in rxe.run(f"nfs-mount {A}", timeout=120)
    check_files(rxe, two[0])
    two[0].run("rpc.nfsd 0", timeout=60)
