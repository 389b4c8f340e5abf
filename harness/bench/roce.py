# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
RoCEv2 between two daemons on addresses of the loopback interface, and other transports between the same addresses.
"""

import functools
import os
import re
import subprocess
import time

from . import by_turns, perftest, report, row

SERVER, CLIENT = "127.88.0.1", "127.88.0.2"
HOSTS = tuple(f"host {host} roce {ip}" for host, ip in (("r1", SERVER), ("r2", CLIENT)))


def columns(fabrics, tool, size, n):
    """The figures of a perftest program between the second daemon's host and the first one's."""
    return perftest(fabrics, ("r1", "r2"), SERVER, tool, "-x", 0, "-s", size, "-n", n)


def bandwidth(fabrics, tool, size, n):
    """MB/s of ib_write_bw or ib_read_bw from the second daemon's host to the first one's."""
    return columns(fabrics, tool, size, n)[3] * 1.048576


def between_processes(server, client, found, **env):
    """Runs a server and a client, and returns the client's output."""
    env = dict(os.environ, **env)
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as srv:
        try:
            for _ in range(50):
                done = subprocess.run(client, capture_output=True, text=True, timeout=120, env=env, check=False)
                if done.returncode == 0 and re.search(found, done.stdout):
                    return re.findall(found, done.stdout)[-1]
                time.sleep(0.1)
            raise RuntimeError(f"{client[0]} found no server: {done.stdout}{done.stderr}")
        finally:
            srv.kill()


def ucx_tcp(size, n):
    """MB/s of UCX's put over TCP."""
    server = ["ucx_perftest", "-p", "13337", "-f"]
    client = ["ucx_perftest", SERVER, *server[1:], "-t", "ucp_put_bw", "-s", str(size), "-n", str(n), "-w", "100"]
    overall = r"(?m)^ +\d+(?: +[\d.]+){4} +([\d.]+) +"
    return float(between_processes(server, client, overall, UCX_TLS="tcp,self", UCX_NET_DEVICES="lo")) * 1.048576


def libfabric_tcp(size, n):
    """MB/s of libfabric's TCP provider, by its ping-pong."""
    args = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-I", str(n), "-S", str(size)]
    rate = r"=\d+ +\S+ +[\d.]+s +([\d.]+)"
    return float(between_processes([*args, "-B", "13338"], [*args, "-P", "13338", SERVER], rate))


def libfabric_latency(size, n):
    """Microseconds per direction by libfabric's TCP provider."""
    args = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-I", str(n), "-S", str(size)]
    rate = r"=\S+ +\S+ +[\d.]+s +[\d.]+ +([\d.]+)"
    return float(between_processes([*args, "-B", "13339"], [*args, "-P", "13339", SERVER], rate))


def short_messages(bench, what, hosts, measure):
    """Average microseconds per direction for 64 bytes, by @measure, against libfabric's ping-pong over TCP."""
    for together, daemons in ((True, "one daemon"), (False, "two daemons")):
        with bench.pair(hosts, together=together) as fabrics:
            us, theirs = by_turns(functools.partial(measure, fabrics), functools.partial(libfabric_latency, 64, 10000))
        row(f"{what} ib_send_lat 64 B, {daemons} : libfabric's tcp", f"{us:.1f} us", us / theirs, "<= 1", us <= theirs)


def send_latency(fabrics):
    return columns(fabrics, "ib_send_lat", 64, 10000)[5]


def latency(bench):
    short_messages(bench, "RoCEv2", HOSTS, send_latency)
    with bench.pair(HOSTS) as fabrics:
        report("  of ib_write_lat, which polls memory", f"{columns(fabrics, 'ib_write_lat', 64, 3000)[5]:.1f} us")


LOSSES = (("ib_write_bw", 16, 20000), ("ib_read_bw", 16, 20000), ("ib_read_bw", 256, 2000))  # of packets


def loss(bench):
    """Remaining part of the bandwidth with a loss of one packet in a hundred, in each direction."""
    found = []
    for options in ("", "loss=0.01"):
        with bench.pair(HOSTS, options) as fabrics:
            found.append([bandwidth(fabrics, tool, packets * 4096, n) for tool, packets, n in LOSSES])
    for (tool, packets, _), whole, lossy in zip(LOSSES, *found, strict=True):
        ratio = lossy / whole
        what = f"{tool} {packets * 4} KiB with 1 % loss : without"
        row(what, f"{lossy:.0f} MB/s", ratio, ">= 0.333", ratio >= 1 / 3)


def run(bench):
    with bench.pair(HOSTS) as fabrics:
        mb_s, plain = by_turns(
            lambda: bandwidth(fabrics, "ib_write_bw", 1 << 20, 5000), lambda: bench.measure_limits()["udp_trains_mb_s"]
        )
    latency(bench)
    ratio = mb_s / plain
    row("RoCEv2 ib_write_bw 1 MiB : UDP with GSO and GRO", f"{mb_s:.0f} MB/s", ratio, ">= 0.7", ratio >= 0.7)
    report("  of UDP with GSO and GRO, messages of 1 MiB", f"{plain:.0f} MB/s")
    report("  of the same 60 KiB again and again, in cache", f"{bench.limits['udp_train_mb_s']:.0f} MB/s")
    for name, theirs in (("UCX over tcp", ucx_tcp(1 << 20, 2000)), ("libfabric's tcp", libfabric_tcp(1 << 20, 500))):
        row(f"RoCEv2 ib_write_bw 1 MiB : {name}", f"{mb_s:.0f} MB/s", mb_s / theirs, "> 1", mb_s > theirs)
    loss(bench)
