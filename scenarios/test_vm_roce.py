# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
RoCE in guests: our device's port is tied to the guest's network card, and the guest's kernel makes its GIDs of the
card's addresses. What is not for them the card gets, so that the kernel's own rdma_rxe can take its place.

    g1 (guest a) 10.5.0.1 --- sw1 --- g2 (guest b) 10.5.0.2
"""

import re

import pytest
from muslin import wait_until
from test_roce import frames, icrc_is_right

pytestmark = pytest.mark.guest

TOPOLOGY = """ethernet sw1 trunk 7
host g1 nic sw1 roce ip 10.5.0.1/24
host g2 nic sw1 roce ip 10.5.0.2/24
"""
A, B = "10.5.0.1", "10.5.0.2"


@pytest.fixture(scope="module")
def net(_make_fabric):
    f = _make_fabric("vm-roce").up(TOPOLOGY)
    yield f
    f.down()


@pytest.fixture(scope="module")
def two(net):
    """Both guests, their ports up. Whatever a test does to them it undoes."""
    vms = [net.vm(host) for host in ("g1", "g2")]
    for vm in vms:
        vm.wait("rdma link | grep -q 'ACTIVE.*netdev eth0'")
        vm.wait("ping -c 1 -W 1 10.5.0.1 && ping -c 1 -W 1 10.5.0.2")
    yield vms
    for vm in vms:
        vm.stop()


@pytest.fixture(scope="module")
def rxe(two):
    """Guest b without our driver: the kernel's rdma_rxe has the card."""
    b = two[1]
    b.run("modprobe -r muslin; modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0")
    b.wait("rdma link | grep -q 'rxe0/1 state ACTIVE'")
    return b


def gids(vm, port=1):
    """{index: (GID, version, interface)}"""
    folder = f"/sys/class/infiniband/muslin0/ports/{port}"
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
    """Runs @command, with what each() adds for a guest, as server and as client."""
    server.start(f"{command} {each(server)}", "talk")
    out = client.wait(f"{command} {each(client)} {to}", what=f"{command}\n{server.log('talk')}")
    assert re.search(r"\d+ iters in|^ *\d+ +200 ", out, re.M), out
    server.wait(f"! pgrep -f '^{command.split()[0]}'")


def rping(server, client, to, count=10):
    server.start(f"rping -s -a {to} -v -C {count}", "rping")
    assert f"rdma-ping-{count - 1}" in client.wait(f"rping -c -a {to} -v -C {count}", what="rping")


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
    a.run("ip link set eth0 up")
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
    talk(b, a, f"ibv_{kind}_pingpong -n 100", B, each=lambda vm: f"-g {index(vm, A if vm is a else B, version)}")


@pytest.mark.parametrize("tool", ["ib_send_bw -c UD", "ib_write_bw -s 65536", "ib_read_bw -s 65536", "ib_atomic_lat"])
def test_perftest(two, tool):
    a, b = two
    talk(b, a, f"{tool} -n 200", B, each=lambda vm: f"-x {index(vm, A if vm is a else B)}")


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
    """A sender and a receiver join one group; every message comes."""
    a, b = two
    b.start(f"mckey -m 225.1.2.3 -b {B} -C 10", "mckey")
    b.wait("grep -q 030201E1 /proc/net/igmp", what="the receiver in its group")
    assert "return status 0" in a.run(f"mckey -m 225.1.2.3 -b {A} -s -C 10")
    assert "return status 0" in b.wait("grep return /tmp/mckey.log && cat /tmp/mckey.log")


def test_capture_is_dissected(net, two):
    """A connection, SENDs, READs and WRITEs: nothing malformed, and every ICRC right."""
    pcap = net.folder / "g1.pcapng"
    trace = net._start([net.muslin, "trace", "-w", pcap, "--duration", "8", "g1"])
    wait_until(pcap.exists, 10, "the capture")
    rping(two[1], two[0], B)
    trace.wait(30)
    show = net._start(["tshark", "-r", pcap, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"])
    rows = [r.split("\t") for r in show.wait(60).splitlines() if "\t" in r]
    assert {"4", "100"} <= {r[0] for r in rows}
    assert not [r for r in rows if r[1:] != [""]]
    roce = [f for f in frames(pcap) if f[12:14] == b"\x08\x00" and f[23] == 17 and f[36:38] == b"\x12\xb7"]
    assert roce and all(icrc_is_right(f) for f in roce)


def test_rping_with_rxe(two, rxe):
    a = two[0]
    rping(a, rxe, A)
    rping(rxe, a, B)


def check_files(a, b):
    """What a writes to the file system that b exports is what b has, and what a reads back."""
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
