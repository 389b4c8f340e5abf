# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""iWARP between two daemons on addresses of the loopback interface, and plain TCP between the same addresses."""

from . import by_turns, perftest, report, row
from .roce import between_processes, short_messages

SERVER, CLIENT = "127.89.0.1", "127.89.0.2"
PORT = "18515"
HOSTS = tuple(f"host {host} iwarp {ip}" for host, ip in (("w1", SERVER), ("w2", CLIENT)))


def columns(fabrics, tool, *args):
    """The figures of a perftest program between the second daemon's host and the first one's."""
    return perftest(fabrics, ("w1", "w2"), SERVER, tool, "-R", "-p", PORT, *args)


def iperf3(seconds=1):
    """MB/s of a TCP stream."""
    server = ["iperf3", "-s", "-1", "-B", SERVER, "-p", "18516"]
    client = ["iperf3", "-c", SERVER, "-p", "18516", "-t", str(seconds), "-l", "1M", "-f", "m"]
    return float(between_processes(server, client, r"([\d.]+) Mbits/sec +receiver")) / 8


def write_bw(fabrics, size, n, *args):
    """MB/s of RDMA Writes."""
    return columns(fabrics, "ib_write_bw", "-s", size, "-n", n, *args)[3] * 1.048576


def send_latency(fabrics):
    return columns(fabrics, "ib_send_lat", "-s", 64, "-n", 10000)[5]


def many_connections(bench):
    """MB/s of 64 connections, by io_uring if permitted, and by a system call for each."""
    figures = []
    for uring in ("auto", "off"):
        with bench.pair(HOSTS, f"uring={uring}") as fabrics:
            figures.append(write_bw(fabrics, 1 << 16, 200, "-q", 64))
    return figures


def run(bench):
    with bench.pair(HOSTS) as fabrics:
        mb_s, plain = by_turns(lambda: write_bw(fabrics, 1 << 20, 2000), iperf3)
    with bench.pair(HOSTS, "crc=on") as fabrics:
        with_crc = write_bw(fabrics, 1 << 20, 1000)
    row("iWARP ib_write_bw 1 MiB : iperf3", f"{mb_s:.0f} MB/s", mb_s / plain, ">= 0.7", mb_s >= 0.7 * plain)
    report("  with CRC32C", f"{with_crc:.0f} MB/s")
    ring, calls = many_connections(bench)
    report("  64 connections of 64 KiB, by io_uring", f"{ring:.0f} MB/s")
    report("  64 connections of 64 KiB, by plain calls", f"{calls:.0f} MB/s")
    short_messages(bench, "iWARP", HOSTS, send_latency)
