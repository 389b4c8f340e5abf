# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests on hosts of different switches, with what their kernels and their stock programs do over our HCA:

    h1 (guest a)          h5 (guest b)   h6 (host mode)
        leaf1 ----+----- leaf2
                 spine1, spine2
"""

import pathlib
import re
import shutil

import pytest
from muslin import wait_until

pytestmark = [
    pytest.mark.skipif(not shutil.which("qemu-system-x86_64"), reason="QEMU is not installed: ci/deps vm"),
    pytest.mark.skipif(
        not list(pathlib.Path("/usr/src").glob("linux-headers-*-amd64/Makefile")),
        reason="no kernel headers to build the guest's driver with: ci/deps vm",
    ),
    pytest.mark.timeout(600),
]

PARTITIONS = """Default=0x7fff, ipoib, mtu=5 : ALL=full;
red=0x0001, ipoib : 0x0002c90300000051=full, 0x0002c90300000091=full;
blue=0x0002, ipoib : 0x0002c90300000051=full;
"""


@pytest.fixture(scope="module")
def guests(shared_fabric):
    """Guests a on h1 and b on h5, both with ib0 up. Whatever a test does to them it undoes."""
    shared_fabric.vm("h1", timeout=240)  # the first one builds the image
    shared_fabric.vm("h5")
    for vm in shared_fabric.vms:
        vm.wait_ib0()
    yield shared_fabric.vms
    for vm in shared_fabric.vms:
        vm.check()
        vm.stop()


def ping(vm, to, *, size=56, count=3):
    out = vm.run(f"ping -c {count} -i 0.2 -W 5 -s {size} {to}")
    assert f"{count} received" in out


def test_ibstat(shared_fabric, guests):
    out = guests[0].run("ibstat")
    port = shared_fabric.port("h1")
    assert "State: Active" in out and "Link layer: InfiniBand" in out
    assert re.search(rf"Base lid: {port['lid']}\b", out)
    assert port["guid"].removeprefix("0x") in out


def test_management_tools(shared_fabric, guests):
    a = guests[0]
    assert "Switch" in a.run("smpquery -D nodeinfo 0,1")
    assert "Channel Adapter" in a.run("smpquery -D nodeinfo 0")
    assert "SMINFO_MASTER" in a.run("sminfo")
    assert "PortXmitPkts" in a.run("perfquery")
    assert a.run("ibnetdiscover").count("Ca\t") == 8
    assert "IsSM ports" in a.run("saquery -s")


def test_ipoib_datagram(guests):
    a, b = guests
    link = a.run("cat /sys/class/net/ib0/address /sys/class/net/ib0/mode")
    assert "fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:51" in link and "datagram" in link
    ping(a, "10.0.0.5")
    ping(b, "10.0.0.1", size=4000)
    ping(a, "fd00::5")
    assert "10.0.0.5 dev ib0" in a.run("ip neigh")


def test_ipoib_multicast(guests):
    out = guests[0].run("ping -c 2 -W 3 -I ib0 ff02::1")
    assert len(set(re.findall(r"from (fe80::[0-9a-f:]+)", out))) >= 1


def test_ipoib_tcp_and_udp(guests):
    a, b = guests
    b.run("dd if=/dev/urandom of=/tmp/sent bs=1M count=8 2>/dev/null")
    b.run("busybox httpd -p 8000 -h /tmp")
    a.run("wget -q -O /tmp/got http://10.0.0.5:8000/sent")
    assert a.run("md5sum </tmp/got") == b.run("md5sum </tmp/sent")
    a.run("wget -q -O /tmp/got 'http://[fd00::5]:8000/sent'")
    assert a.run("md5sum </tmp/got") == b.run("md5sum </tmp/sent")
    b.start("iperf3 -s -1", "iperf")
    out = a.wait("iperf3 -u -b 20M -c 10.0.0.5 -t 2", what="iperf3")
    assert "receiver" in out


def test_ipoib_connected(guests):
    a, b = guests
    for vm in guests:
        vm.run("echo connected >/sys/class/net/ib0/mode && ip link set ib0 mtu 65520")
    for vm in guests:
        vm.wait_ib0()
    ping(a, "10.0.0.5", size=60000)
    b.run("echo datagram >/sys/class/net/ib0/mode")
    b.wait_ib0()
    ping(a, "10.0.0.5", size=1000)  # a datagram peer of a connected one
    a.run("echo datagram >/sys/class/net/ib0/mode")
    a.wait_ib0()
    ping(a, "10.0.0.5", size=1000)


PINGPONGS = [
    "ibv_rc_pingpong -c -s 65536 -n 100",
    "ibv_uc_pingpong -n 100",
    "ibv_ud_pingpong -n 100",
    "ibv_srq_pingpong -n 100",
    "ibv_rc_pingpong -e -n 100",
]


@pytest.mark.parametrize("tool", PINGPONGS)
def test_pingpong(guests, tool):
    a, b = guests
    b.start(tool, "pp")
    assert re.search(r"\d+ iters in", a.wait(f"{tool} 10.0.0.5", what=tool))
    assert re.search(r"\d+ iters in", b.wait("grep iters /tmp/pp.log"))


@pytest.mark.parametrize("tool", ["ib_send_lat -s 64", "ib_write_bw -s 65536", "ib_read_bw -s 65536", "ib_atomic_bw"])
def test_perftest(guests, tool):
    a, b = guests
    b.start(f"{tool} -n 200", "pt")
    assert re.search(r"^ *\d+ +200 ", a.wait(f"{tool} -n 200 10.0.0.5", what=tool), re.M)


def test_rping_between_guests(guests):
    a, b = guests
    b.start("rping -s -a 10.0.0.5 -v -C 5", "rping")
    assert "rdma-ping-4" in a.wait("rping -c -a 10.0.0.5 -v -C 5", what="rping")


def test_rping_from_guest_to_host_mode(shared_fabric, guests):
    server = shared_fabric.start("h6", "rping", "-s", "-a", "10.0.0.6", "-v", "-C", "3")
    assert "rdma-ping-2" in guests[0].wait("rping -c -a 10.0.0.6 -v -C 3", what="rping")
    assert "rdma-ping-2" in server.wait(status=None)


def test_rping_from_host_mode_to_guest(shared_fabric, guests):
    guests[0].start("rping -s -a 10.0.0.1 -v -C 3", "rping")

    def attempt():
        client = shared_fabric.start("h6", "rping", "-c", "-a", "10.0.0.1", "-v", "-C", "3")
        return "rdma-ping-2" in client.wait(30, status=None)

    wait_until(attempt, 30, "rping")


SERVER = """modprobe -a nfsd rpcrdma; mount -t nfsd nfsd /proc/fs/nfsd; mkdir -p /export /var/lib/nfs/v4recovery
mount -t tmpfs -o size=120m tmpfs /export; touch /var/lib/nfs/etab /var/lib/nfs/rmtab; rpcbind; rpc.mountd
exportfs -o rw,no_root_squash,insecure,fsid=0,no_subtree_check '*:/export'
rpc.nfsd 8; echo rdma 20049 >/proc/fs/nfsd/portlist
echo Y >/proc/fs/nfsd/v4_end_grace
grep rdma /proc/fs/nfsd/portlist"""


def test_nfs_over_rdma(guests):
    a, b = guests
    assert "rdma 20049" in b.run(SERVER)
    a.run("modprobe -a nfsv4 rpcrdma; mkdir -p /mnt; mount -t nfs4 -o rdma,port=20049,vers=4.1 10.0.0.5:/ /mnt")
    assert "proto=rdma" in a.run("grep /mnt /proc/mounts")
    for size in (1, 4095, 65536, 1 << 20, 32 << 20):
        a.run(f"head -c {size} /dev/urandom >/mnt/f{size}", timeout=120)
        a.run("echo 3 >/proc/sys/vm/drop_caches")
        assert a.run(f"md5sum </mnt/f{size}") == b.run(f"md5sum </export/f{size}")
    a.run("mkdir /mnt/d && for i in $(seq 200); do : >/mnt/d/$i; done && rm -r /mnt/d", timeout=120)
    a.run("umount /mnt", timeout=60)


def test_command_and_status(shared_fabric):
    out = shared_fabric.command("vm", "h2", "--", "sh", "-c", "ibv_devices; exit 7", timeout=120, status=7)
    assert "muslin0" in out


def test_killed_guest_leaves_the_others_alone(shared_fabric, guests):
    vm = shared_fabric.vm("h3")
    vm.wait_ib0()
    vm.start("ping -f 10.0.0.1", "flood")
    vm.stop()
    shared_fabric.vms.remove(vm)
    ping(guests[0], "10.0.0.5")
    again = shared_fabric.vm("h3")
    again.wait_ib0()
    ping(again, "10.0.0.1")
    again.stop()
    shared_fabric.vms.remove(again)


def test_partitions(new_fabric):
    """Child interfaces: red has both guests, blue only the first."""
    conf = new_fabric.folder / "partitions.conf"
    conf.write_text(PARTITIONS)
    conf.chmod(0o644)
    new_fabric.up(None, "--partitions", conf)
    a, b = new_fabric.vm("h1", timeout=240), new_fabric.vm("h5")
    for i, vm in enumerate((a, b), 1):
        vm.wait_ib0()
        assert vm.run("cat /sys/class/net/ib0/mtu").strip() == "4092"
        vm.run("echo 0x8001 >/sys/class/net/ib0/create_child")
        vm.run(f"ip addr add 10.1.0.{i}/24 dev ib0.8001; ip link set ib0.8001 up")
    for vm in (a, b):
        vm.wait_ib0("ib0.8001")
    ping(a, "10.1.0.2")
    for vm in (a, b):
        vm.run("echo 0x8002 >/sys/class/net/ib0/create_child; ip link set ib0.8002 up")
    a.wait_ib0("ib0.8002")
    assert b.run("cat /sys/class/net/ib0.8002/carrier").strip() == "0"  # not a member
    for vm in (a, b):
        vm.run("echo 0x8001 >/sys/class/net/ib0/delete_child")
        vm.check()
        vm.stop()


def test_bonding(new_fabric):
    """
    active-backup over two HCAs of one guest, on different leafs; a cable is pulled and traffic goes on. The subnet
    manager sits on h1.

        h1 (SM)  h2 (guest a: ib0)        h5 (guest b)  h6 (guest a: ib1)
            leaf1 -----------+----------- leaf2
    """
    new_fabric.up()
    a, b = new_fabric.vm("h2,h6", timeout=240), new_fabric.vm("h5")
    a.run("ip addr flush dev ib0; ip link set ib0 down; ip link set ib1 down")
    a.run("modprobe bonding max_bonds=0")
    a.run("ip link add bond0 type bond mode active-backup miimon 100")
    a.run("ip link set ib0 master bond0; ip link set ib1 master bond0")
    a.run("ip addr add 10.0.0.2/24 dev bond0; ip link set bond0 up")
    a.wait("grep -q 'MII Status: up' /proc/net/bonding/bond0 && ping -c 1 -W 1 10.0.0.5", what="the bond")
    active = a.run("cat /sys/class/net/bond0/bonding/active_slave").strip()
    new_fabric.command("link", "h2:1" if active == "ib0" else "h6:1", "down")
    moved = f"[ $(cat /sys/class/net/bond0/bonding/active_slave) != {active} ]"
    a.wait(f"{moved} && ping -c 1 -W 1 10.0.0.5", what="the fail-over")
    for vm in (a, b):
        vm.check()
        vm.stop()
