# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Two guests on different switches: their HCAs against the kernel's rdma_rxe over virtio-net between the same two, and
two with a ConnectX against two with the virtio device.

    h1 (guest a) -- leaf1 ---- leaf2 -- h5 (guest b)
         |                                   |
         +------ virtio-net, QEMU's dgram ---+
"""

import contextlib
import itertools
import re
import shutil
import statistics
import time

from muslin import wait_until

from . import by_turns, last_row, report, row

LAN = ("10.9.0.1", "10.9.0.2")
MTU = 9000  # the largest that supports rxe: its packets have 4096 bytes, as those of muslin
FILE_MIB = 64
FILE_READS = 4  # each takes 0.2 to 0.5 s, of a clock with steps of 10 ms
T_TYPICAL, T_AVG = 4, 5  # columns of ib_send_lat


def nic(folder, i):
    """A network card whose packets are datagrams between two sockets, to the other guest's card."""
    me, peer = (f"{folder}/lan{n}" for n in (i, 1 - i))
    lan = f"dgram,id=lan,local.type=unix,local.path={me},remote.type=unix,remote.path={peer}"
    card = f"virtio-net-pci,netdev=lan,mac=52:54:00:00:00:0{i + 1}"
    return [f"--qemu-arg={word}" for word in ("-netdev", lan, "-device", card)]


@contextlib.contextmanager
def two_guests(bench, model="muslin", *options):
    """Two guests on a fabric."""
    with bench.fabric(name=f"bench-{model}") as fabric:
        options = ["--model", model, *options]
        fabric.command("vm", "--build", *options, timeout=300)
        guests = []
        try:
            for i, host in enumerate(("h1", "h5")):
                guests.append(fabric.vm(host, *options, *nic(fabric.folder, i)))
            for i, vm in enumerate(guests):
                vm.wait_ib0()
                vm.run("modprobe -a virtio_net crc32_generic rdma_rxe")
                vm.wait("ip link show eth0")
                vm.run(f"ip addr add {LAN[i]}/24 dev eth0; ip link set eth0 mtu {MTU} up")
                vm.run("rdma link add rxe0 type rxe netdev eth0")
            guests[1].ping(LAN[0])
            yield guests
        finally:
            for vm in guests:
                vm.stop()


def perftest(guests, device, program, *args):
    """The last row of figures of a perftest program from the second guest to the first, on this device."""
    a, b = guests
    address = LAN[0] if device == "rxe0" else a.fabric.ip(a.host)
    command = " ".join([program, "-d", device, *(["-x", "1"] if device == "rxe0" else []), *map(str, args)])
    a.start(command, "server")
    try:
        out = wait_until(lambda: connected(b.call(f"{command} {address}", timeout=120)), 60, f"`{command}`", 0.2)
        a.wait(f"! pidof {program}")
    except AssertionError:
        a.run(f"killall -q -KILL {program}", status=None)
        raise
    return last_row(out)


def connected(answer):
    """The output of a client; None if its server was not listening yet."""
    status, out = answer
    if status and not re.search("ouldn't connect|refused", out):
        raise AssertionError(f"status {status}: {out}")
    return None if status else out


def exits(fabric):
    """Kicks that the guests gave for messages, of a ConnectX accesses to registers, and interrupts that they got."""
    found = [n["guest"] for n in fabric.show()["nodes"] if "guest" in n]
    functions = [f["counters"] for guest in found for f in guest["connectx"]]
    return [
        sum(g["counters"].get(ours, 0) for g in found) + sum(c.get(name, 0) for c in functions for name in theirs)
        for ours, theirs in (
            ("doorbell_kicks", ("region_writes", "region_reads")),
            ("completion_interrupts", ("interrupts",)),
        )
    ]


def counted(guests, messages, device, program, *args):
    """As perftest(), and the exits of both guests per message: kicks, interrupts."""
    before = exits(guests[0].fabric)
    figures = perftest(guests, device, program, *args)
    after = exits(guests[0].fabric)
    return figures, [(b - a) / messages for a, b in zip(before, after, strict=True)]


def report_ratio(what, figure, ratio, _want, _good):
    report(what, figure)
    report("  ratio, with KVM", f"{ratio:.3f}")


def printer(guests):
    """The printer of comparisons: row() with targets for guests without KVM; with KVM only the figures."""
    return row if guests[0].call("dmesg | grep -q 'Hypervisor detected: KVM'")[0] else report_ratio


def report_exits(what, each):
    report(f"  exits a message, {what}", f"{sum(each):.3f}")
    report("    of them kicks, interrupts", f"{each[0]:.3f}, {each[1]:.3f}")


def bandwidth(guests):
    n = 5000
    ours, each = counted(guests, n, "muslin0", "ib_write_bw", "-s", 65536, "-n", n)
    theirs = perftest(guests, "rxe0", "ib_write_bw", "-s", 65536, "-n", 200)
    ratio = ours[3] / theirs[3]
    figure = f"{ours[3] * 1.048576:.0f} MB/s"
    printer(guests)("guests' ib_write_bw 64 KiB : rdma_rxe", figure, ratio, ">= 10", ratio >= 10)
    report_exits("ib_write_bw", each)


def latency(guests):
    n = 2000
    ours, each = counted(guests, 2 * n, "muslin0", "ib_send_lat", "-s", 64, "-n", n)
    theirs = perftest(guests, "rxe0", "ib_send_lat", "-s", 64, "-n", 500)
    for name, column in (("typical", T_TYPICAL), ("mean", T_AVG)):
        ratio = ours[column] / theirs[column]
        what = f"guests' ib_send_lat 64 B, {name} : rdma_rxe"
        printer(guests)(what, f"{ours[column]:.1f} us", ratio, "<= 0.333", ratio <= 1 / 3)
    report_exits("ib_send_lat that polls", each)


def events(guests):
    n = 2000
    ours, each = counted(guests, 2 * n, "muslin0", "ib_send_lat", "-e", "-s", 64, "-n", n)
    theirs = perftest(guests, "rxe0", "ib_send_lat", "-e", "-s", 64, "-n", 500)
    ratio = ours[T_TYPICAL] / theirs[T_TYPICAL]
    report("guests' ib_send_lat 64 B with events", f"{ours[T_TYPICAL]:.1f} us")
    report("  of rdma_rxe's", f"{ratio:.3f}")
    report_exits("ib_send_lat with events", each)


def datagrams(guests):
    n = 20000
    ours, each = counted(guests, n, "muslin0", "ib_send_bw", "-c", "UD", "-s", 64, "-n", n)
    theirs = perftest(guests, "rxe0", "ib_send_bw", "-c", "UD", "-s", 64, "-n", 2000)
    report("guests' ib_send_bw UD 64 B", f"{ours[4] * 1000:.0f} kmsg/s")
    report("  of rdma_rxe's", f"{ours[4] / theirs[4]:.1f}")
    report_exits("ib_send_bw UD", each)


def stream(guests, address, seconds=3):
    """Mbit/s of TCP from the first guest to the second one's address."""
    a, b = guests
    b.start("iperf3 -s -1", "iperf3")
    b.wait("grep -q :1451 /proc/net/tcp6", what="iperf3's server")
    return float(re.search(r"([\d.]+) Mbits/sec +receiver", a.run(f"iperf3 -c {address} -f m -t {seconds}"))[1])


def ipoib(guests):
    """TCP by ib0 against the other card with the same MTU, for which QEMU supports no offloads on such a network."""
    a, b = guests
    each = []

    def by_ib0():
        before = exits(a.fabric), packets(a)
        rate = stream(guests, a.fabric.ip(b.host))
        after = exits(a.fabric), packets(a)
        each.append([(y - x) / (after[1] - before[1]) for x, y in zip(before[0], after[0], strict=True)])
        return rate

    for vm in guests:
        vm.run("ip link set eth0 mtu 2044")
    ours, theirs = by_turns(by_ib0, lambda: stream(guests, LAN[1]))
    for vm in guests:
        vm.run(f"ip link set eth0 mtu {MTU}")
    report("IPoIB, TCP in datagrams", f"{ours:.0f} Mbit/s")
    report("  of virtio-net's with the same MTU", f"{ours / theirs:.2f}")
    report_exits("packet sent", medians(each))


def medians(rows):
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def packets(vm):
    return vm.fabric.port(vm.host)["counters"]["port_xmit_packets"]


def read_rate(client, mount):
    """MB/s at which the client reads the file, which is in the server's memory."""
    client.run(f"mkdir -p /mnt && {mount}")
    took = 0
    try:
        for _ in range(FILE_READS):
            start, end = client.run(
                "read a _ </proc/uptime; dd if=/mnt/file of=/dev/null bs=1M 2>&1; read b _ </proc/uptime; echo $a $b"
            ).split()[-2:]
            took += float(end) - float(start)
            client.run("echo 3 >/proc/sys/vm/drop_caches")
    finally:
        client.run("umount /mnt")
    return FILE_READS * FILE_MIB * 1.048576 / took


def export_file(guests):
    """The first guest exports a file in its memory, by RDMA and TCP; the second one gets what a mount needs."""
    server, client = guests
    server.run("nfs-server")
    server.run(f"dd if=/dev/zero of=/export/file bs=1M count={FILE_MIB} 2>&1")
    client.run("modprobe -a nfsv4 rpcrdma")


def read_by_rdma(guests, options=""):
    """MB/s at which the second guest reads what the first one exports."""
    server, client = guests
    return read_rate(client, f"nfs-mount {server.fabric.ip(server.host)} /mnt {options}")


def nfs(guests):
    export_file(guests)
    each = []

    def by_rdma():
        before = exits(guests[0].fabric)
        rate = read_by_rdma(guests)
        after = exits(guests[0].fabric)
        each.append([(b - a) / (FILE_READS * FILE_MIB * 8) for a, b in zip(before, after, strict=True)])
        return rate

    mount = f"mount -t nfs4 -o vers=4.1 {LAN[0]}:/ /mnt"
    rdma, tcp = by_turns(by_rdma, lambda: read_rate(guests[1], mount))
    report("NFS over RDMA, read", f"{rdma:.0f} MB/s")
    report("  of NFS over TCP on virtio-net", f"{rdma / tcp:.2f}")
    report_exits("READs of 128 KiB", medians(each))


# What is compared of guests with either model: unit, whether more is better, and how many messages it takes.
# Linux's client reads 128 KiB ahead, for which it registers one region of our device, but two of a ConnectX, whose
# driver has a max_sge_rd of 30 pages; the server can invalidate only one remotely. READs of 64 KiB take one of either.
BOTH = {
    "ib_write_bw 64 KiB": (
        "MB/s",
        True,
        20000,
        lambda g: perftest(g, g[0].device, "ib_write_bw", "-s", 65536, "-n", 20000)[3],
    ),
    "ib_send_lat 64 B, typical": (
        "us",
        False,
        4000,
        lambda g: perftest(g, g[0].device, "ib_send_lat", "-s", 64, "-n", 2000)[T_TYPICAL],
    ),
    "IPoIB, TCP in datagrams": ("Mbit/s", True, None, lambda g: stream(g, g[0].fabric.ip(g[1].host))),
    "NFS over RDMA, READs of 64 KiB": (
        "MB/s",
        True,
        FILE_READS * FILE_MIB * 16,
        lambda g: read_by_rdma(g, "rsize=65536"),
    ),
    "NFS over RDMA, READs of 128 KiB": ("MB/s", True, FILE_READS * FILE_MIB * 8, read_by_rdma),
}
WANTED = {name: 0.8 for name in BOTH if name.startswith(("IPoIB", "NFS"))}  # ratios to the other model's; else 1
BOOT = 1  # seconds more, at most
TURNS = 5  # of either model, whose medians are compared


@contextlib.contextmanager
def both_models(bench):
    """Two guests of each model, on one QEMU: where the distribution's has no vfio-user, both run on a newer one."""
    with two_guests(bench, "connectx") as theirs:
        qemu = theirs[0].fabric.command("vm", "--build", "--model", "connectx").split("\n")[-3]
        with two_guests(bench, "muslin", "--qemu", qemu) as ours:
            yield ours, theirs


def models(bench):
    with both_models(bench) as (ours, theirs):
        for guests in (ours, theirs):
            export_file(guests)
        for what, (unit, more, messages, measure) in BOTH.items():
            before = exits(theirs[0].fabric)
            figure, peer = by_turns(lambda m=measure: m(theirs), lambda m=measure: m(ours), TURNS)
            after = exits(theirs[0].fabric)
            ratio = figure / peer
            want = WANTED.get(what, 1)
            good = ratio >= want if more else ratio <= want
            wanted = f"{'>=' if more else '<='} {want}"
            row(f"ConnectX's {what} : our device's", f"{figure:.1f} {unit}", ratio, wanted, good)
            if messages:
                each = [(b - a) / messages / TURNS for a, b in zip(before, after, strict=True)]
                report_exits(what.rpartition(", ")[2] if "NFS" in what else what.split()[0], each)


def starts(bench):
    """What a start takes up to a shell, one guest at a time and the models by turns: the least of three each."""
    least, hosts = {}, itertools.count(1)
    with bench.fabric("leafs 1 hosts 16", name="bench-start") as fabric:  # one for each: a stopped guest ends later

        def start(model, word):
            began = time.monotonic()
            vm = fabric.vm(f"h{next(hosts)}", "--model", model, word)
            took = time.monotonic() - began
            vm.stop()
            return took

        for what, word in (("boot", "--no-snapshot"), ("resume", "--snapshot")):
            turns = [{model: start(model, word) for model in ("muslin", "connectx")} for _ in range(4)]
            for model in turns[0]:
                least[model, what] = min(turn[model] for turn in turns[1:])  # the first takes the snapshot
            took, peer = least["connectx", what], least["muslin", what]
            figure = f"{took:.2f} s"
            row(f"ConnectX's {what} to a shell : our device's", figure, took / peer, f"+{BOOT} s", took <= peer + BOOT)
    for model in ("muslin", "connectx"):
        took, boot = least[model, "resume"], least[model, "boot"]
        row(f"{model}'s resume to a shell : its boot", f"{took:.2f} s", took / boot, "<= 0.5", took <= boot / 2)


def run(bench):
    if not shutil.which("qemu-system-x86_64"):
        report("no qemu-system-x86_64 here: ci/deps vm", "-")
        return
    with two_guests(bench) as guests:
        for measure in (bandwidth, latency, events, datagrams, ipoib, nfs):
            bench.run(measure.__name__, measure, guests)
    bench.run("the ConnectX", models, bench)
    bench.run("starts", starts, bench)
