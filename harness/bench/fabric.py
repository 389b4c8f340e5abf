# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The simulated fabric and its subnet manager."""

import json
import os
import pathlib
import re
import subprocess
import time

from muslin import wait_until

from . import row


def switch_rate(bench):
    rate = bench.program("fabric/fabric_bench", r"(switch_mpps) ([\d.]+)")["switch_mpps"]
    row("packets through one switch on one core : 3 million", f"{rate:.1f} Mpkt/s", rate / 3, ">= 1", rate >= 3)


def virtual_clock(bench):
    """Ratio of virtual to real time for a hundred hosts and their subnet manager."""
    topology = bench.folder / "sim.topo"
    topology.write_text("fattree k=8 levels=3\n")
    args = [bench.build / "muslin-sim", "--seconds", "20000", "--traffic", "0.1", topology]
    times = json.loads(subprocess.run(args, capture_output=True, text=True, check=True).stdout)["times_real_time"]
    row("virtual clock, 128 hosts swept every 10 s : time", f"{times:.0f} x", times / 1000, ">= 1", times >= 1000)


def events(bench, k):
    """Transmissions and arrivals in a second of the processor: ten thousand hosts send at a tenth of their rates."""
    topology = f"fattree k={k} levels=3"
    args = [bench.build / "muslin-sim", "--seconds", "0.00002", "--load", "0.1", "--size", "2048", topology]
    ran = json.loads(subprocess.run(args, capture_output=True, text=True, check=True, timeout=600).stdout)
    rate = ran["events_per_second"] / 1e6
    row(f"simulated events, {ran['hosts']} hosts : 1 million", f"{rate:.1f} M/s", rate, ">= 1", rate >= 1)


def opensm_on_ibsim(net, folder, nodes, switches, ports):
    """Seconds from the start of opensm to SUBNET UP on ibsim."""
    files = subprocess.run(["dpkg", "-L", "libumad2sim0"], capture_output=True, text=True, check=True).stdout.split()
    env = dict(os.environ, IBSIM_SOCKNAME=f"bench-{os.getpid()}")
    sim = subprocess.Popen(
        ["ibsim", "-s", "-N", str(nodes), "-S", str(switches), "-P", str(ports), str(net)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=folder,
    )
    sm = None
    try:
        while b"ready" not in sim.stdout.readline():
            if sim.poll() is not None:
                raise RuntimeError("ibsim ended")
        log = folder / "opensm.log"
        preload = next(f for f in files if f.endswith("libumad2sim.so"))
        env.update(LD_PRELOAD=preload, OSM_CACHE_DIR=str(folder), OSM_TMP_DIR=str(folder))
        start = time.monotonic()
        sm = subprocess.Popen(["opensm", "-d2", "-f", str(log)], stdout=subprocess.DEVNULL, env=env, cwd=folder)
        wait_until(lambda: log.exists() and "SUBNET UP" in log.read_text(errors="replace"), 400, "SUBNET UP on ibsim")
        return time.monotonic() - start
    finally:
        for p in (sm, sim):
            if p:
                p.kill()
                p.wait()


def fat_tree(bench, k):
    net = bench.folder / "fattree.net"
    start = time.monotonic()
    with bench.fabric(f"fattree k={k} levels=3\n", timeout=600) as fabric:
        ours = time.monotonic() - start
        status = pathlib.Path(f"/proc/{fabric.daemon_pid}/status").read_text()
        net.write_text(fabric.command("show", "--topology"))
    rss = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
    hosts, switches = k**3 // 4, 5 * k * k // 4
    ports = (hosts + switches * (k + 1)) * 2
    theirs = opensm_on_ibsim(net, bench.folder, hosts + switches + 100, switches + 100, ports)
    row(f"fat tree of {hosts} hosts : opensm on ibsim", f"{ours:.1f} s", ours / theirs, "<= 0.1", ours <= theirs / 10)
    row("  the daemon's memory : 1 GiB", f"{rss:.0f} MiB", rss / 1024, "<= 1", rss <= 1024)


def run(bench):
    switch_rate(bench)
    virtual_clock(bench)
    events(bench, int(os.environ.get("BENCH_SIM_K", "34")))
    fat_tree(bench, int(os.environ.get("BENCH_K", "36")))
