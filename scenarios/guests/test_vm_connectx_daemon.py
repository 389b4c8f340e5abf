# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The daemon ends, or is stopped, under a guest with a ConnectX, whose QEMU does not connect to another one.

    h1 (guest a: connectx)    h6 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import contextlib
import os
import pathlib
import signal

import pytest
from endpoint import kill_daemon, qemu
from muslin import free_port, wait_until
from test_vm_connectx import said

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]


@pytest.fixture
def a(fabric, connectx):
    vm = fabric.vm("h1", *connectx).wait_ib0()
    yield vm
    vm.stop()


def states(pid):
    """Of the threads of a process: one letter each, as in /proc."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.add(path.read_text().rpartition(") ")[2][0])
    return found


def kill_daemon_at_rest(fabric, vm):
    """
    With nothing of QEMU's unread: else QEMU gets ECONNRESET instead of the end of the stream, and 11.1 aborts at that
    (vfio_user_recv_hdr() sets an error that is set).
    """
    os.kill(qemu(vm), signal.SIGSTOP)
    wait_until(lambda: states(qemu(vm)) == {"T"}, 20, "the stop of QEMU")
    wait_until(lambda: states(fabric.daemon_pid) == {"S"}, 20, "an idle daemon")
    kill_daemon(fabric)
    os.kill(qemu(vm), signal.SIGCONT)


@pytest.mark.parametrize("how", ["killed", "down"])
def test_ends(fabric, a, how):
    """The driver finds the adapter gone, programs get DEVICE_FATAL, and the guest lives on without an HCA."""
    watch = a.start("ibv_asyncwatch", "watch")
    a.wait("grep -q 'async event' /tmp/watch.log", what="ibv_asyncwatch")
    log = said(a, "Fatal error")
    if how == "killed":
        kill_daemon_at_rest(fabric, a)
    else:
        fabric.command("down")
    a.wait("grep -q DEVICE_FATAL /tmp/watch.log", 120, what="DEVICE_FATAL")
    log()
    watch.kill()
    a.wait("! ibv_devinfo", 120, what="the end of the device")
    fabric.up()
    assert a.call("ibv_devinfo")[0], "another daemon has given the guest its adapter again"
    a.check()


def test_stopped(fabric, a):
    """
    For longer than QEMU waits for a reply: the driver finds the adapter gone. QEMU disconnects at the late replies, the
    daemon destroys the guest's objects, and the guest lives on without an HCA.
    """
    daemon = fabric.daemon_pid
    os.kill(daemon, signal.SIGSTOP)
    try:
        wait_until(lambda: "Fatal error" in a.console_text(), 300, "the driver's error", 0.5)
    finally:
        os.kill(daemon, signal.SIGCONT)
    wait_until(lambda: not fabric.node("h1")["guest"]["connectx"][0]["driver"], 60, "the end of the connection", 0.3)
    a.wait("! ibv_devinfo", 120, what="the end of the device")
    a.check()
    pingpong = ["ibv_rc_pingpong", "-n", "50", "-p", free_port()]
    fabric.pair(("h6", *pingpong), ("h2", *pingpong, fabric.ip("h6")))
    assert fabric.daemon_pid == daemon
