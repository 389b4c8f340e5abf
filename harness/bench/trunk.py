# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A subnet of two daemons: traffic across the trunk, and within each daemon, compared with one daemon."""

import concurrent.futures
import os
import re
import resource

from . import by_turns, cpu_seconds, last_row, perftest, report, row
from .roce import between_processes

SHAPE = "leafs 2 spines 1 hosts {hosts}"
LOOPBACK = "127.0.0.1:18517"
PAIRS = 8
WRITES = 40000
PER_WRITE = 16  # packets of 4 KiB
SECONDS = 4  # perftest counts the messages of the middle half


def write_bw(fabric, client):
    """MB/s of Writes of 64 KiB from @client to h1, which is at the first leaf."""
    arguments = "ib_write_bw", "-F", "-s", 1 << 16, "-n", WRITES
    return perftest((fabric, fabric), ("h1", client), "h1", *arguments)[3] * 1.048576


def write_latency(fabric, client):
    return perftest((fabric, fabric), ("h1", client), "h1", "ib_write_lat", "-F", "-s", 64, "-n", 10000)[4]


def programs_seconds():
    """CPU time of the programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def aggregate(fabric):
    """
    4 KiB Writes of eight pairs at once, each within its leaf: MB/s, and CPU time of a message in us, of the daemons and
    of the programs.
    """

    def one(i):
        hosts = f"h{2 * i + 1}", f"h{2 * i + 2}"
        common = ["ib_write_bw", "-F", "-s", 4096, "-D", SECONDS, "-p", 18520 + i]
        _, out = fabric.pair((hosts[0], *common), (hosts[1], *common, hosts[0]), timeout=240)
        return last_row(out)

    for i in range(2 * PAIRS):  # the daemon writes the files of a host when it is used first
        fabric.run(f"h{i + 1}", "true")
    before = sum(map(cpu_seconds, fabric.daemon_pids)), programs_seconds()
    with concurrent.futures.ThreadPoolExecutor(PAIRS) as pool:
        rows = list(pool.map(one, range(PAIRS)))
    after = sum(map(cpu_seconds, fabric.daemon_pids)), programs_seconds()
    messages = sum(r[4] for r in rows) * 1e6 * SECONDS
    return sum(r[3] for r in rows) * 1.048576, *((a - b) * 1e6 / messages for a, b in zip(after, before, strict=True))


def at_best(daemons, processors, daemon_us, program_us):
    """MB/s of 4 KiB messages if no processor waits, and none does anything else."""
    return 4096 * min(daemons / daemon_us, processors / (daemon_us + program_us))


def across_and_within(bench):
    shape = SHAPE.format(hosts=2)
    with bench.fabric(shape) as one, bench.fabric(shape, "--shards", "2", name="bench-s") as two:
        mb_s, within = by_turns(lambda: write_bw(two, "h3"), lambda: write_bw(one, "h3"))
        ok = mb_s >= 0.6 * within
        row("64 KiB across a trunk : within a daemon", f"{mb_s:.0f} MB/s", mb_s / within, ">= 0.6", ok)
        us, near = by_turns(lambda: write_latency(two, "h3"), lambda: write_latency(one, "h3"))
        row("64 B latency across : within", f"{us:.1f} us", us / near, "<= 2", us <= 2 * near)
        before = cpu_seconds(one.daemon_pid), cpu_seconds(two.daemon_pid)
        for fabric in one, two:
            write_bw(fabric, "h3")
        after = cpu_seconds(one.daemon_pid), cpu_seconds(two.daemon_pid)
        for name, i in (("one daemon", 0), ("the daemon of the responder", 1)):
            ns = (after[i] - before[i]) * 1e9 / WRITES / PER_WRITE
            report(f"  time of {name} for a packet of 4 KiB", f"{ns:.0f} ns")


def two_cores(bench):
    shape = SHAPE.format(hosts=PAIRS)
    with bench.fabric(shape) as one:
        alone, *costs = aggregate(one)
        report("  CPU time of a message: of the daemon, of the programs", "{:.2f}, {:.2f} us".format(*costs))
    with bench.fabric(shape, "--shards", "2") as two:
        both, *costs_of_two = aggregate(two)
        report("  of both daemons, of the programs", "{:.2f}, {:.2f} us".format(*costs_of_two))
    what = f"{PAIRS} pairs of 4 KiB within two shards : one daemon"
    for n in (2, 4, 2 * PAIRS + 2):
        best = at_best(2, n, *costs_of_two) / at_best(1, n, *costs)
        report(f"  the same at best, with {n} processors", f"{best:.2f}")
    if os.cpu_count() >= 2 * PAIRS + 2:
        row(what, f"{both:.0f} MB/s", both / alone, ">= 1.7", both >= 1.7 * alone)
    else:  # the programs themselves need the processors
        report(f"{what} ({os.cpu_count()} processors)", f"{both:.0f} : {alone:.0f} MB/s")


def iperf3(seconds=2):
    """MB/s of a TCP stream."""
    server = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", "18516"]
    client = ["iperf3", "-c", "127.0.0.1", "-p", "18516", "-t", str(seconds), "-f", "m"]
    return float(between_processes(server, client, r"([\d.]+) Mbits/sec +receiver")) / 8


def over_tcp(bench):
    a_text = f"leafs 1 hosts 2\ntrunk leaf1:9 listen {LOOPBACK}\n"
    b_text = f"leafs 1 hosts 2 first 101\ntrunk leaf101:9 to {LOOPBACK}\n"
    with bench.fabric(a_text, name="bench-a") as a, bench.fabric(b_text, "--no-sm", name="bench-b") as b:
        b.wait_active()

        def across():
            common = ["ib_write_bw", "-R", "-F", "-s", 1 << 16, "-n", 60000]
            _, out = a.pair(("h1", *common), ("h101", *common, "10.0.0.1"), client_fabric=b, timeout=240)
            return last_row(out)[3] * 1.048576

        mb_s, plain = by_turns(across, iperf3)
    row("64 KiB across a trunk on TCP : iperf3", f"{mb_s:.0f} MB/s", mb_s / plain, ">= 0.6", mb_s >= 0.6 * plain)


def bring_up(bench, k):
    """Seconds until the fat tree is up, in one daemon and in four, and CPU time of the manager's daemon."""

    def seconds(*args):
        with bench.fabric(f"fattree k={k} levels=3", *args, timeout=600) as fabric:
            out = fabric.processes[0].output
            cpu = cpu_seconds(fabric.daemon_pid)
        return float(re.search(r"subnet up after ([\d.]+) s", out)[1]), cpu

    (four, four_cpu), (one, one_cpu) = seconds("--shards", "4"), seconds()
    what = f"fat tree of {k**3 // 4} hosts in four shards : in one"
    row(what, f"{four:.2f} s", four / one, "<= 1.5", four <= 1.5 * one)
    report("  CPU time of the manager's daemon : of one", f"{four_cpu:.2f} : {one_cpu:.2f} s")


def run(bench):
    across_and_within(bench)
    over_tcp(bench)
    two_cores(bench)
    bring_up(bench, int(os.environ.get("BENCH_TRUNK_K", "36")))
