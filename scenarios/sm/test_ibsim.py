# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""muslin-sm, the subnet manager as a separate program, on a fabric of ibsim."""

import os
import pathlib
import re
import subprocess

from muslin import Process, wait_until

TREE = pathlib.Path(__file__).parents[2]
NET = pathlib.Path(__file__).parents[1] / "topologies" / "two-leafs.net"


def preload():
    files = subprocess.run(["dpkg", "-L", "libumad2sim0"], capture_output=True, text=True, check=True).stdout.split()
    return next(f for f in files if f.endswith("libumad2sim.so"))


def test_muslin_sm_brings_up_an_ibsim_fabric(tmp_path, muslin_programs):
    env = dict(os.environ, IBSIM_SOCKNAME=f"muslin-{os.getpid()}")
    fifo = tmp_path / "console"
    os.mkfifo(fifo)
    keep = os.open(fifo, os.O_RDWR)
    sim = Process(["ibsim", "-s", NET], tmp_path / "ibsim.log", env=env, cwd=tmp_path, stdin=keep)
    # libumad2sim's read() copies more than it has: a sanitizer in muslin-sm must not check the copies of other
    # libraries
    sanitizer = "verify_asan_link_order=0:replace_intrin=0"
    client = dict(env, LD_PRELOAD=preload(), SIM_HOST="h1", ASAN_OPTIONS=sanitizer)
    sm = None
    try:
        sim.expect("sim>")
        sm = Process([muslin_programs / "muslin-sm"], tmp_path / "sm.log", env=client, cwd=tmp_path)

        def links():
            p = Process(["iblinkinfo"], tmp_path / "links.log", env=client, cwd=tmp_path)
            out = p.wait(30, status=None)
            return len(re.findall(r"Active/\s+LinkUp", out)) == 24 and out

        wait_until(links, 60, "24 Active link ends", 1)
        # ClassPortInfo, since the preload library passes single MADs only; from a host without a manager.
        other = dict(client, SIM_HOST="h2")
        out = Process(["saquery", "CPI"], tmp_path / "sa.log", env=other, cwd=tmp_path).wait(30, status=0)
        assert "Class version" in out
    finally:
        for p in (sm, sim):
            if p:
                p.kill()
        os.close(keep)
