# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
IPoIB between the kernels of two guests on different leafs:

    h1 (guest a: ib0 10.0.0.1)        h5 (guest b: ib0 10.0.0.5)
        leaf1 ------------+------------ leaf2
"""

import itertools
import re

import pytest
from endpoint import addresses_ready
from muslin import wait_until

pytestmark = pytest.mark.guest

BULK = 4 << 20
DATAGRAM = 8000  # several packets of the link's MTU, one checksum
GROUPS = {
    "IPv4": ("UDP4-RECV:9001,ip-add-membership=239.1.2.3:ib0", "UDP4-DATAGRAM:239.1.2.3:9001"),
    "IPv6": ("UDP6-RECV:9001,ipv6-join-group=[ff15::1234]:ib0", "UDP6-DATAGRAM:[ff15::1234]:9001"),
}


def hardware_address(vm):
    """The interface's 20 bytes: flags and QPN, GID."""
    return bytes.fromhex(vm.run("cat /sys/class/net/ib0/address").strip().replace(":", ""))


def gid_of(fabric, host, prefix=0xFE80 << 48):
    return prefix.to_bytes(8, "big") + int(fabric.port(host)["guid"], 16).to_bytes(8, "big")


def counter(vm, family, name):
    """A counter of /proc/net/snmp."""
    names, values = (line.split()[1:] for line in vm.run(f"grep ^{family}: /proc/net/snmp").splitlines())
    return dict(zip(names, map(int, values), strict=True))[name]


def same_file(a, b, paths=("/tmp/got", "/tmp/sent")):
    return a.run(f"md5sum <{paths[0]}") == b.run(f"md5sum <{paths[1]}")


def test_address_and_mtu(shared_fabric, guests):
    for vm, host in zip(guests, ("h1", "h5"), strict=True):
        assert hardware_address(vm)[4:] == gid_of(shared_fabric, host)
        assert vm.run("cat /sys/class/net/ib0/mtu /sys/class/net/ib0/mode").split() == ["2044", "datagram"]
        for net in f"10.0.0.{host[1]}/8", f"fd00::{host[1]}/64":  # as programs of host mode see them
            assert net in vm.run("ip -br addr show ib0").split() and net in shared_fabric.run(host, "ip", "-br", "addr")


def test_broadcast_group(shared_fabric, guests):
    """Both are full members, and have its address as their broadcast address."""
    members = shared_fabric.run("h1", "saquery", "--smkey", "1", "-m", "0xC000")
    for host in ("h1", "h5"):
        assert re.search(rf"PortGid\.*fe80::2:c903:0:{shared_fabric.port(host)['guid'][-2:]}", members)
    brd = re.search(r"brd (\S+)", guests[0].run("ip link show ib0"))[1]
    assert brd == "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff"


@pytest.mark.also_connectx
def test_ping(guests):
    a, b = guests
    for vm in guests:
        addresses_ready(vm, "ib0")
    for vm, addresses in ((a, ("10.0.0.5", "fd00::5")), (b, ("10.0.0.1", "fd00::1"))):
        for to, size in itertools.product(addresses, (56, 1900, 30000)):
            vm.ping(to, size=size, count=2)
    assert "10.0.0.5 dev ib0 lladdr" in a.run("ip neigh")
    assert "fd00::5 dev ib0 lladdr" in a.run("ip neigh")


def test_a_packet_as_long_as_the_mtu_and_one_byte_more(guests):
    guests[0].run("ping -c 1 -W 5 -M do -s 2016 10.0.0.5")  # 2044 without the headers of IPv4 and ICMP
    guests[0].run("ping -c 1 -W 5 -M do -s 2017 10.0.0.5", status=1)


@pytest.mark.parametrize("address", ["10.0.0.5", "[fd00::5]"])
def test_tcp_bulk(guests, address):
    """In both directions at once."""
    a, b = guests
    for vm in guests:
        vm.run("head -c 8388608 /dev/urandom >/tmp/sent")
    b.start("socat -u OPEN:/tmp/sent TCP6-LISTEN:9000,reuseaddr,ipv6-v6only=0", "source")
    b.start("socat -u TCP6-LISTEN:9001,reuseaddr,ipv6-v6only=0 OPEN:/tmp/got,creat,trunc", "sink")
    b.wait("grep -q :2328 /proc/net/tcp6 && grep -q :2329 /proc/net/tcp6", what="the servers")
    take, give = f"TCP:{address}:9000 OPEN:/tmp/got,creat,trunc", f"OPEN:/tmp/sent TCP:{address}:9001"
    a.run(f"socat -u {take} & socat -u {give} && wait")
    wait_until(lambda: same_file(b, a), 20, "a's file at b")
    assert same_file(a, b)
    assert counter(a, "Tcp", "InCsumErrors") == counter(b, "Tcp", "InCsumErrors") == 0


def bulk_at(a, b, family, address, mbit):
    """The data that a receives when b sends /tmp/sent at that rate."""
    b.run(f"tc qdisc replace dev ib0 root tbf rate {mbit}mbit burst 32kb limit 8mb")
    a.run("sysctl -qw net.core.rmem_max=33554432; rm -f /tmp/got")
    receiver = a.start(f"socat -u -b 65000 {family}-RECV:9000,rcvbuf=16777216 OPEN:/tmp/got,creat,trunc", "rx")
    a.wait("grep -q :2328 /proc/net/udp /proc/net/udp6", what="the receiver")  # 9000
    b.run(f"socat -u -b {DATAGRAM} OPEN:/tmp/sent {family}-SENDTO:{address}:9000")
    b.wait("tc -s qdisc show dev ib0 | grep -q 'backlog 0b 0p'", what="the queue's end")
    b.run("tc qdisc del dev ib0 root")
    a.ping("10.0.0.5")  # after the last datagram
    got = a.read("/tmp/got")
    receiver.kill()
    return got


@pytest.mark.parametrize("family, address", [("UDP4", "10.0.0.1"), ("UDP6", "[fd00::1]")])
def test_udp_bulk(guests, family, address):
    """Received data is correct, and nearly complete at a rate that the receiver's kernel can process."""
    a, b = guests
    b.run(f"head -c {BULK} /dev/urandom >/tmp/sent")
    sent = b.read("/tmp/sent")
    blocks = {sent[i : i + DATAGRAM] for i in range(0, BULK - BULK % DATAGRAM, DATAGRAM)}
    for mbit in (80, 40, 20, 10):  # a guest on a loaded machine sleeps for longer than the receive queue lasts
        got = bulk_at(a, b, family, address, mbit)
        arrived = [got[i : i + DATAGRAM] for i in range(0, len(got) - len(got) % DATAGRAM, DATAGRAM)]
        assert len(arrived) == len(set(arrived)) and blocks.issuperset(arrived)
        if len(arrived) > 0.95 * len(blocks):
            break
    assert len(arrived) > 0.95 * len(blocks)
    assert counter(a, "Udp", "InCsumErrors") == 0


@pytest.mark.parametrize("family", GROUPS)
def test_multicast_both_ways(guests, family):
    """Each has joined a group that it created; the other one's packets to it arrive."""
    receive, send = GROUPS[family]
    members = []
    for vm in guests:
        vm.run("ip route replace 239.0.0.0/8 dev ib0; ip -6 route replace multicast ff15::/16 dev ib0 table local")
        members.append(vm.start(f"socat -u {receive} OPEN:/tmp/heard,creat,trunc", "member"))
    for to, sender in (guests, guests[::-1]):
        def heard(to=to, sender=sender):
            sender.run(f"echo hello from {sender.host} | socat -u - {send}")
            return to.call(f"grep 'hello from {sender.host}' /tmp/heard")[0] == 0

        wait_until(heard, 20, f"multicast from {sender.host}", 0.3)
    for member in members:
        member.kill()


def test_all_hosts_respond_to_a_ping_to_all_nodes(guests):
    a, b = guests
    for vm, other in ((a, "fe80::202:c903:0:91"), (b, "fe80::202:c903:0:51")):
        vm.wait(f"ping -c 2 -i 0.2 -W 3 ff02::1%ib0 | grep 'from {other}'", what="the other's echo")


def test_rename_by_guid(guests):
    """By a udev rule for the device and a user's rule for the interface; traffic continues."""
    a = guests[0]
    guid = "0002c90300000050"
    assert f"ibx{guid}" in a.run(f"/usr/lib/udev/rdma_rename {a.device} NAME_GUID; rdma dev")
    a.run("/usr/lib/udev/rdma_rename ibx0002c90300000050 NAME_PCI; rdma dev | grep -E ': ibp[0-9]+s'")
    a.run(f"rdma dev set $(ls /sys/class/infiniband) name {a.device}")
    rule = """for dev in /sys/class/net/*; do
        case $(cat $dev/address) in *:00:02:c9:03:00:00:00:51) d=${dev##*/}; ip link set $d down; ip link set $d name $1
            ip link set $1 up;; esac; done"""
    a.run(f"set -- storage; {rule}")
    a.wait_ib0("storage")
    a.run("ip addr replace fd00::1/64 dev storage")
    a.ping("10.0.0.5")
    a.run(f"set -- ib0; {rule}")
    a.wait_ib0()
    a.run("ip addr replace fd00::1/64 dev ib0")
    a.wait("ping -c 1 -W 1 fd00::5", what="IPv6, once the address is known to be nobody else's")


def test_mtu_of_the_partition_and_prefix_of_the_subnet(new_fabric):
    """mtu=5 sets IPoIB's MTU to 4092; the addresses have the subnet's prefix."""
    conf = new_fabric.folder / "partitions.conf"
    conf.write_text("Default=0x7fff, ipoib, mtu=5 : ALL=full;\n")
    conf.chmod(0o644)
    new_fabric.up(None, "--partitions", conf, "--subnet-prefix", "0xfec0000000000001")
    a, b = new_fabric.vm("h1"), new_fabric.vm("h5")
    for vm, host in ((a, "h1"), (b, "h5")):
        vm.wait_ib0()
        assert vm.run("cat /sys/class/net/ib0/mtu").strip() == "4092"
        assert hardware_address(vm)[4:] == gid_of(new_fabric, host, 0xFEC0000000000001)
        assert "subnet_prefix fec0:0000:0000:0001" in vm.run("rdma link")
    a.ping("10.0.0.5")
    a.run("ping -c 1 -W 5 -M do -s 4064 10.0.0.5")
    a.run("ping -c 1 -W 5 -M do -s 4065 10.0.0.5", status=1)
    b.ping("fd00::1", size=20000)


# Connected mode (RFC 4755).


@pytest.fixture
def connected(guests):
    for vm in guests:
        vm.run("echo connected >/sys/class/net/ib0/mode && ip link set ib0 mtu 65520")
        vm.wait_ib0()
    yield guests
    for vm in guests:
        vm.run("echo datagram >/sys/class/net/ib0/mode; ip link set ib0 mtu 2044")
        vm.wait_ib0()


@pytest.mark.also_connectx
def test_connected_bulk(connected):
    a, b = connected
    a.ping("10.0.0.5", size=65000)
    a.run("ping -c 1 -W 5 -M do -s 65492 10.0.0.5")
    # The neighbour's queue has no room for three of these while the other side detects duplicates of its address.
    b.wait("ping -c 1 -W 2 fd00::1", what="the neighbour's address")
    b.ping("fd00::1", size=60000)
    b.run("head -c 16777216 /dev/urandom >/tmp/sent; busybox httpd -p 8000 -h /tmp")
    a.run("wget -q -O /tmp/got http://10.0.0.5:8000/sent")
    assert same_file(a, b)
    b.run("kill $(pidof busybox)", status=None)


def test_connected_and_datagram_peers(connected):
    """The connected side uses datagram mode for this peer, and reports the path's MTU to senders."""
    a, b = connected
    b.run("echo datagram >/sys/class/net/ib0/mode; ip link set ib0 mtu 2044")
    b.wait_ib0()
    a.run("ip neigh flush dev ib0")
    a.ping("10.0.0.5", size=1000)
    a.wait("ping -c 1 -W 2 -s 30000 10.0.0.5", what="a ping in fragments")
    b.ping("10.0.0.1", size=30000)
    b.run("head -c 4194304 /dev/urandom >/tmp/sent; busybox httpd -p 8001 -h /tmp")
    a.run("wget -q -O /tmp/got http://10.0.0.5:8001/sent")
    assert same_file(a, b)
