# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A hostile program shares host h1 with another one, which must not be affected:

    h1: victim, hostile  ---- leaf1 ---- spines ---- leaf2 ----  h5: the victim's peer
"""

import contextlib
import os
import shutil
import signal

import pytest
from muslin import free_port, wait_until

MODES = ["handles", "rings", "truncated", "vanishing", "exhaustion"]


def hw_counter(fabric, host, name):
    out = fabric.run(host, "cat", f"/sys/class/infiniband/muslin0/ports/1/hw_counters/{name}")
    return int(out.strip().splitlines()[-1])


def connect(fabric, text, *args):
    """Starts a server on h1 and a client on h5, which prints @text when it has connected."""
    args = ["stdbuf", "-oL", *args, "-p", free_port()]
    srv = fabric.start("h1", *args)

    def reached():
        cli = fabric.start("h5", *args, "localhost")
        wait_until(lambda: not cli.running() or text in cli.output, 10, f"{text} of {cli}")
        return cli if cli.running() else None

    return srv, wait_until(reached, 20, f"a connection to {srv}", 0.2)


@contextlib.contextmanager
def victims(fabric):
    """A ping-pong with data checks between h1 and h5, without pause."""
    pair = connect(fabric, "remote address", "ibv_rc_pingpong", "-e", "-c", "-s", "4096", "-n", "1000000")

    def goes_on():
        before = fabric.port("h1")["counters"]
        wait_until(lambda: moved(fabric, before) > 100, 20, "the victim's traffic", 0.2)
        assert all(p.running() for p in pair), "\n".join(p.output for p in pair)

    goes_on()
    yield
    goes_on()
    for p in pair:
        p.kill()


def moved(fabric, before):
    return int(fabric.port("h1")["counters"]["port_xmit_packets"]) - int(before["port_xmit_packets"])


@pytest.fixture
def hostile(helper, fabric):
    return shutil.copy(helper("hostile"), fabric.folder)


@pytest.mark.parametrize("mode", MODES)
def test_others_continue(fabric, hostile, mode):
    daemon = fabric.daemon_pid
    with victims(fabric):
        if mode == "exhaustion":
            fabric.run("h1", "prlimit", f"--pid={daemon}", "--nofile=1024:")
        out = fabric.run("h1", hostile, mode, "7", timeout=120)
        assert f"{mode}: done, 0 wrong" in out, out
        assert fabric.daemon_pid == daemon
    if mode == "rings":
        assert hw_counter(fabric, "h1", "req_wqe_errors") > 0, "the daemon has counted none of it"
    if mode == "exhaustion":
        assert "out of file descriptors" in fabric.daemon_log()
    wait_until(lambda: "hca_id" in fabric.run("h1", "ibv_devinfo", status=None), 20, "a new program's device")


def test_killed_in_the_middle_of_traffic(fabric):
    with victims(fabric):
        srv, cli = connect(fabric, "RKey", "ib_write_bw", "-D", "60", "-s", "65536", "-F")
        before = fabric.port("h1")["counters"]
        wait_until(lambda: moved(fabric, before) > 100, 20, "traffic", 0.2)
        os.killpg(srv.popen.pid, signal.SIGKILL)
        srv.kill()
        cli.kill()
