# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Upper-layer protocols of the kernels of two guests, each with a link that goes down and up during traffic: RDS, SMC-R,
and block devices by NVMe over Fabrics, iSER, SRP and RNBD. Guest b is the server, guest a the client.

                  leaf1 ------------- leaf2
                 /                         \\
    10.0.0.1  1 h1 (guest a)     (guest b) h5 1  10.0.0.5     InfiniBand
    10.5.0.1  2  |                         |  2  10.5.0.2     RoCE
                sw1 ---------------------- sw2

A ConnectX has the InfiniBand ports alone.
"""

import shutil

import kernel_source
import pytest
from muslin import WaitTimeout, wait_until

pytestmark = pytest.mark.guest

INFINIBAND = "leafs 2 spines 2 hosts 4\n"
ETHERNET = """ethernet sw1 mtu 4200
ethernet sw2 mtu 4200
ethernet sw1 sw2
host h1 nic sw1 roce ip 10.5.0.1/24
host h5 nic sw2 roce ip 10.5.0.2/24
"""
SIZE = 12 << 20
SHARE = """-fsdev local,id=programs,path={},security_model=none,readonly=on
    -device virtio-9p-pci,fsdev=programs,mount_tag=p"""
MOUNT = "modprobe -a 9p 9pnet_virtio; mkdir /p; mount -t 9p -o trans=virtio,ro p /p"

# A memory disk for each protocol, and configfs
DISKS = "modprobe brd rd_nr=4 rd_size=32768; mount -t configfs none /sys/kernel/config"
BACKSTORE = """modprobe -a target_core_mod target_core_iblock; T=/sys/kernel/config/target; D=$T/core/iblock_{0}/disk
mkdir -p /etc/target $D; echo udev_path=/dev/ram{0} >$D/control; echo 1 >$D/enable"""
NVME_TARGET = """modprobe -a nvmet nvmet-rdma; C=/sys/kernel/config/nvmet; mkdir $C/subsystems/disk
cd $C/subsystems/disk; echo 1 >attr_allow_any_host; mkdir namespaces/1; cd namespaces/1
echo /dev/ram0 >device_path; echo 1 >enable
mkdir $C/ports/1; cd $C/ports/1; echo 10.0.0.5 >addr_traddr; echo rdma >addr_trtype; echo 4420 >addr_trsvcid
echo ipv4 >addr_adrfam; ln -s $C/subsystems/disk subsystems/"""
IQN = "iqn.2026-01.org.example:disk"
ISER_TARGET = f"""modprobe -a iscsi_target_mod ib_isert; {BACKSTORE.format(1)}
mkdir -p $T/iscsi/{IQN}/tpgt_1; cd $T/iscsi/{IQN}/tpgt_1; mkdir -p lun/lun_0 np/10.0.0.5:3260; ln -s $D lun/lun_0/
echo 1 >np/10.0.0.5:3260/iser; echo 0 >attrib/authentication; echo 0 >attrib/demo_mode_write_protect
echo 1 >attrib/generate_node_acls; echo 1 >attrib/cache_dynamic_acls; echo 1 >enable"""
# By name: iscsiadm 2.1.8's discovery waits in vain for a text response that came before netlink's answer to its request
ISER_NODE = f"iscsiadm -m node -T {IQN} -p 10.0.0.5 -I iser"
SRP_TARGET = f"""modprobe ib_srpt; {BACKSTORE.format(2)}
P=$T/srpt/0002:c903:0000:0091/disk; mkdir -p $P/lun/lun_0; ln -s $D $P/lun/lun_0/
A=$P/acls/0002:c903:0000:0051/lun_0; mkdir -p $A; ln -s $P/lun/lun_0 $A/; echo 1 >$P/enable"""
# Debian's kernels lack RNBD and RTRS, its transport: directories of their source, and modules in the order of loading
RNBD_SOURCE = ("drivers/infiniband/ulp/rtrs", "drivers/block/rnbd")
RNBD_MODULES = ("rtrs-core", "rtrs-server", "rtrs-client", "rnbd-server", "rnbd-client")
RNBD_LOAD = "modprobe rdma_cm; for m in rtrs-core rtrs-{0} rnbd-{0}; do insmod /p/$m.ko || exit 1; done"
# Linux requests that the parent of a removed SCSI device becomes idle, unless control is on, and warns when it removes
# the parent, too, before the request is executed: iSCSI and SRP do so from work queues that have WQ_MEM_RECLAIM
NO_IDLE = "for c in /sys/bus/scsi/devices/*/power/control; do echo on >$c || exit 1; done"
BLOCK = {
    "nvme": (
        NVME_TARGET,
        "modprobe nvme-rdma; nvme connect -t rdma -a 10.0.0.5 -s 4420 -n disk",
        "nvme disconnect -n disk",
    ),
    "iser": (
        ISER_TARGET,
        f"""modprobe -a ib_iser sd_mod; echo InitiatorName={IQN}-a >/etc/iscsi/initiatorname.iscsi; iscsid
        {ISER_NODE} -o new && {ISER_NODE} --login""",
        f"{NO_IDLE}; iscsiadm -m node -p 10.0.0.5 --logout",
    ),
    "srp": (
        SRP_TARGET,
        "modprobe -a ib_srp sd_mod; srp_daemon -e -o -n -i $(ls /sys/class/infiniband) -p 1",
        f"{NO_IDLE}; for port in /sys/class/srp_remote_ports/*; do echo 1 >$port/delete; done",
    ),
    "rnbd": (
        RNBD_LOAD.format("server"),
        f"""{RNBD_LOAD.format("client")}
        echo sessname=a path=ip:10.0.0.5 device_path=/dev/ram3 >/sys/class/rnbd-client/ctl/map_device""",
        "echo normal >/sys/block/rnbd0/rnbd/unmap_device",
    ),
}
ATTACHED = "cat /proc/partitions | grep -o -E 'nvme[0-9]+n1|sd[a-z]|rnbd[0-9]+'"
WRITE = "dd if=/tmp/f of=/dev/{} bs=256k conv=fsync 2>/dev/null"


@pytest.fixture(scope="module")
def net(muslin_make_fabric, model):
    f = muslin_make_fabric("vm-ulp").up(INFINIBAND + ("" if model == "connectx" else ETHERNET))
    yield f
    f.down()


@pytest.fixture(scope="module")
def programs(program):
    """The directory of this file's programs, which the guests have as /p."""
    return [program(name) for name in ("rds", "smc.so", "smc_mode")][0].parent


@pytest.fixture(scope="module")
def rnbd(net, programs):
    """RNBD's modules in /p."""
    for file in kernel_source.modules(net.env["MUSLIN_CACHE"], "rnbd", RNBD_SOURCE, RNBD_MODULES):
        shutil.copy(file, programs)


@pytest.fixture(scope="module")
def two(net, programs, model):
    """Both guests."""
    share = [f"--qemu-arg={w}" for w in SHARE.format(programs).split()]
    vms = [net.vm(host, "--model", model, *share) for host in ("h1", "h5")]
    for vm in vms:
        vm.run(MOUNT)
        vm.wait_ib0()
    vms[1].run(DISKS)
    vms[0].run(f"head -c {SIZE} /dev/urandom >/tmp/f")
    yield vms
    for vm in vms:
        vm.stop()


def traffic(sent, jobs, timeout, what):
    """Waits for 100 packets more, which the running @jobs send."""
    least = sent() + 100
    try:
        wait_until(lambda: sent() > least, timeout, what, 0.1)
    except WaitTimeout:
        for job in jobs:
            assert job.running(), job.output
        raise


def flap(net, a, place, sent, jobs):
    """During traffic of the @jobs, which guest a sends, @place goes down and up again."""
    traffic(sent, jobs, 30, "traffic")
    with net.link(place).down():
        if place == "h1:1":
            a.wait("[ $(cat /sys/class/net/ib0/carrier) = 0 ]", what="the carrier's loss")
    a.wait_ib0()
    traffic(sent, jobs, 60, "traffic again")


def flap_infiniband(net, a, *jobs):
    flap(net, a, "h1:1", lambda: net.port("h1")["counters"]["port_xmit_packets"], jobs)


def flap_ethernet(net, a, *jobs):
    """Between the switches: SMC's connections end when a port's interface loses its carrier."""
    stations = {s["name"]: i for i, s in enumerate(net.show()["ethernet"]["stations"])}
    at = stations["h1-eth"]
    flap(net, a, "sw1:1", lambda: net.show()["ethernet"]["stations"][at]["counters"]["tx_frames"], jobs)


@pytest.mark.also_connectx
@pytest.mark.parametrize(
    "kind", ["nvme", *(pytest.param(k, marks=pytest.mark.one_model) for k in ("iser", "srp", "rnbd"))]
)
def test_block_device(request, net, two, kind):
    """Written repeatedly while the link flaps; then both sides read the written data."""
    a, b = two
    if kind == "rnbd":
        request.getfixturevalue("rnbd")
    target, attach, detach = BLOCK[kind]
    b.run(target)
    # Linux's ib_core overlooks an ARP response that comes before its request is in the list (rdma_resolve_ip()), and
    # waits for all of the timeout then: 30 s for RNBD, which itself waits no longer.
    a.ping("10.0.0.5")
    a.run(attach)
    device = a.wait(ATTACHED, what="the disk").strip()
    write = WRITE.format(device)
    a.run("rm -f /tmp/go")
    job = a.start(f"until [ -e /tmp/go ]; do {write} || exit 1; done; {write} && echo written", kind)
    flap_infiniband(net, a, job)
    a.run("touch /tmp/go")
    assert "written" in job.wait(60)
    a.run("echo 3 >/proc/sys/vm/drop_caches")
    disk = f"/dev/ram{list(BLOCK).index(kind)}"
    found = [vm.run(f"head -c {SIZE} {d} | md5sum", 60) for vm, d in ((a, f"/dev/{device}"), (b, disk))]
    assert found == [a.run("md5sum </tmp/f")] * 2
    a.run(detach)
    a.wait(f"! {ATTACHED}", what="the disk's end")
    for vm in two:
        vm.check()


def test_rds(net, two):
    """Messages, and RDMA in both directions, with data that the programs check."""
    a, b = two
    for vm in two:
        vm.run("rm -f /tmp/go; modprobe rds_rdma")
    server = b.start("exec /p/rds server 10.0.0.5", "server")
    b.wait("grep bound /tmp/server.log", what="the server's socket")  # a message before is acknowledged and dropped
    job = a.start("exec /p/rds client 10.0.0.1 10.0.0.5 /tmp/go", "client")
    a.wait("grep pong /tmp/client.log", what="the other kernel's answer to a ping")
    flap_infiniband(net, a, server, job)
    a.run("touch /tmp/go")
    assert "answers" in job.wait(60)
    assert server.running(), server.output
    server.kill()
    for vm in two:
        vm.check()


@pytest.mark.model("muslin", reason="SMC-R needs RoCE, and the ConnectX has no Ethernet port")
def test_smc_r(net, two):
    """A TCP program's stream, by AF_SMC and not by TCP."""
    a, b = two
    if "smc.ko" not in a.run("cat /lib/modules/*/modules.dep"):
        pytest.skip("the guests' kernel is built without SMC")
    for vm in two:
        vm.run("rm -f /tmp/go; modprobe -a smc smc_diag")
    smc = "LD_PRELOAD=/p/smc.so socat -u"
    sink = b.start(f"{smc} TCP-LISTEN:9000 - 2>/dev/null | md5sum", "sink")
    a.run("rm -f /tmp/sum; mkfifo /tmp/sum")
    stream = "until [ -e /tmp/go ]; do cat /tmp/f; done; echo end"
    to = f"{smc} - TCP:10.5.0.2:9000,retry=50,interval=0.1 2>/dev/null"  # it reports short writes
    source = a.start(f"md5sum </tmp/sum & ({stream}) | tee /tmp/sum | {to} && wait", "source")
    connected = "/p/smc_mode | grep ' 9000 SMCR'"
    a.wait(connected, what="a connection by SMC-R")
    flap_ethernet(net, a, sink, source)
    a.run(connected)
    assert "9000" in b.run("/p/smc_mode | grep SMCR")
    a.run("touch /tmp/go")
    assert source.wait(60) == sink.wait(60)
    for vm in two:
        vm.check()
