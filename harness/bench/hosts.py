# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Host mode: programs on two hosts of an InfiniBand fabric."""

import re

from muslin import wait_until

from . import cpu_seconds, perftest, row


def columns(fabric, *argv):
    """The figures of a perftest program from h5 to h1."""
    return perftest((fabric, fabric), ("h1", "h5"), "localhost", *argv)


def write_bandwidth(fabric, limits):
    mb_s = columns(fabric, "ib_write_bw", "-s", 1 << 20, "-n", 3000)[3] * 1.048576
    ratio = mb_s / limits["bounce_mb_s"]
    row("ib_write_bw 1 MiB : process_vm bounce", f"{mb_s:.0f} MB/s", ratio, ">= 0.5", ratio >= 0.5)


def captured_bandwidth(fabric, folder):
    """The first 128 bytes of each packet go to a ring of two files."""
    path = folder / "h1.pcapng"
    trace = fabric.start_muslin("trace", "-s", "128", "-C", "100", "-W", "2", "-w", path, "h1")
    wait_until(path.with_suffix(".0.pcapng").exists, 10, "the capture")
    mb_s = columns(fabric, "ib_write_bw", "-s", 1 << 16, "-n", 50000)[3] * 1.048576
    trace.popen.terminate()
    kept_all = "dropped" not in trace.wait(20)
    figure = f"{mb_s:.0f} MB/s"
    row("ib_write_bw 64 KiB, captured with -s 128 : 2 GB/s", figure, mb_s / 2000, ">= 1", mb_s >= 2000 and kept_all)


def message_rate(fabric):
    """Nanoseconds of the daemon's CPU time per message."""
    n = 200000
    before = cpu_seconds(fabric.daemon_pid)
    figures = columns(fabric, "ib_send_bw", "-s", 64, "-n", n, "-t", 128, "-r", 512)
    cpu = cpu_seconds(fabric.daemon_pid) - before
    rate = n / cpu / 1e6
    figure = f"{figures[-1]:.3f} Mmsg/s"
    row("ib_send_bw 64 B, depth 128 : us of daemon CPU", figure, rate, ">= 1", rate >= 1)
    return 1000 / rate


def faults(bench, message_ns):
    """Cost of a hundred faults that inspect every packet of a link, in both directions, and match none."""
    ns = max(0.0, bench.program("fabric/fabric_bench", r"(faults_ns) (-?[\d.]+)")["faults_ns"])
    ratio = 2 * ns / message_ns
    row("100 faults that match nothing : CPU of a message", f"{2 * ns:.1f} ns", ratio, "<= 0.1", ratio <= 0.1)


def pingpong(fabric, *extra):
    args = ["ibv_rc_pingpong", "-s", "64", "-n", "20000", *extra]
    _, out = fabric.pair(("h1", *args), ("h5", *args, "localhost"), timeout=240)
    return float(re.search(r"= ([\d.]+) usec/iter", out)[1]) / 2


def latency(fabric, limits):
    events = pingpong(fabric, "-e")
    ratio = events / limits["eventfd_us"]
    row("rc_pingpong -e 64 B, one way : eventfd ping-pong", f"{events:.1f} us", ratio, "<= 4", ratio <= 4)
    polled = pingpong(fabric)
    ratio = polled / events
    row("rc_pingpong 64 B polling : the same with -e", f"{polled:.1f} us", ratio, "<= 2", ratio <= 2)


def run(bench):
    with bench.fabric() as fabric:
        write_bandwidth(fabric, bench.limits)
        captured_bandwidth(fabric, bench.folder)
        faults(bench, message_rate(fabric))
        latency(fabric, bench.limits)
