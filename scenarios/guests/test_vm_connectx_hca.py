# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
HCA faults of a guest's ConnectX, and how the guest's own mlx5 drivers handle them. Each test leaves the driver working.

    h1 (guest a: connectx)    h6 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import re

import pytest
from endpoint import Endpoint, pair
from muslin import free_port, wait_until
from test_vm_connectx import said
from test_vm_hostile import packets

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

LOAD, UNLOAD = "modprobe mlx5_ib", "rmmod mlx5_ib mlx5_core"
EVENTS = ["PORT_ERR", "PORT_ACTIVE", "LID_CHANGE", "PKEY_CHANGE", "CLIENT_REREGISTER"]


@pytest.fixture(scope="module")
def a(shared_fabric, connectx):
    vm = shared_fabric.vm("h1", *connectx, "--tcp", "0").wait_ib0()
    pingpong(shared_fabric, vm)  # newer drivers create a PD, a CQ and a QP of their own for the first MR
    yield vm
    vm.stop()


def pingpong(shared_fabric, a):
    """Ends well on both sides."""
    tool = f"ibv_rc_pingpong -n 100 -p {free_port()}"
    pair(Endpoint(shared_fabric, "h6"), tool, Endpoint(shared_fabric, "h1", a), f"{tool} machine")


def ib0_up(vm):
    vm.run("ip addr replace 10.0.0.1/24 dev ib0; ip link set ib0 up")
    vm.wait_ib0()


def reload(vm):
    vm.run(UNLOAD, timeout=300)
    vm.run(LOAD, timeout=300)
    ib0_up(vm)


@pytest.mark.parametrize(
    "status, said", [("REM_OP_ERR", "Failed status 11"), ("RETRY_EXC_ERR", "Failed status 12")]
)
def test_a_completion_with_a_status(shared_fabric, a, status, said):
    port = free_port()
    host = shared_fabric.start("h6", "ib_write_bw", "-p", str(port), "-n", "1000")
    with shared_fabric.fault("h1", "complete", status=status, opcode="write", nth=10) as fault:
        a.wait(f"ib_write_bw -p {port} -n 1000 machine 2>&1 | grep '{said}'", 60, what=said)
        assert fault.hits == 1
    host.kill()


def start_pair(shared_fabric, a, tool, name):
    """@tool on h6, and as its client in the guest, which repeats it until the server listens: (the server, the job)."""
    tool = f"{tool} -p {free_port()}"
    host = shared_fabric.start("h6", *tool.split())
    return host, a.start(f"until {tool} machine; do sleep 0.2; done", name)


def test_a_lost_completion(shared_fabric, a):
    """A request is executed, and its completion is lost: the program waits forever."""

    def is_silent():
        before, last[0] = last[0], packets(shared_fabric, "h1")
        return before == last[0]

    last = [None]
    with shared_fabric.fault("h1", "lose", opcode="write", nth=10) as fault:
        host, job = start_pair(shared_fabric, a, "ib_write_bw -n 1000 -Q 1", "lost")
        wait_until(lambda: fault.hits == 1, 60, "the lost completion", 0.3)
        wait_until(is_silent, 60, "the end of the traffic", 1)
        assert job.running() and host.running()
    job.kill()
    host.kill()


def test_receiver_not_ready(shared_fabric, a):
    with shared_fabric.fault("h1", "rnr", after=20, first=5) as fault:
        pingpong(shared_fabric, a)
        assert fault.hits == 5


def test_a_queue_pair_fails_under_its_program(shared_fabric, a):
    with shared_fabric.fault("h1", "error", nth=30) as fault:
        host, job = start_pair(shared_fabric, a, "ibv_rc_pingpong -n 1000", "error")
        a.wait("grep 'Work Request Flushed Error' /tmp/error.log", 60, what="the program's error")
        assert fault.hits == 1
    job.kill()
    host.kill()


def test_queues_are_stuck(shared_fabric, a):
    """No request is sent until the fault is cleared; then the program goes on to its end."""
    with shared_fabric.fault("h1", "stuck") as fault:
        host, job = start_pair(shared_fabric, a, "ibv_rc_pingpong -n 100", "stuck")
        wait_until(lambda: fault.hits, 60, "a request", 0.3)
        assert job.running() and host.running()
    assert "100 iters in" in job.wait(60)
    host.wait(20)


def test_a_completion_queue_overflows(shared_fabric, a):
    """The driver reports the adapter's event."""
    log = said(a, "CQ error on CQN")
    with shared_fabric.fault("h1", "overrun", nth=20):
        host, job = start_pair(shared_fabric, a, "ibv_rc_pingpong -n 1000", "overrun")
        log()
    job.kill()
    host.kill()
    pingpong(shared_fabric, a)


def test_events(shared_fabric, a):
    watch = a.start("ibv_asyncwatch", "watch-events")
    a.wait("grep -q 'async event' /tmp/watch-events.log", what="ibv_asyncwatch")
    for name in EVENTS:
        with shared_fabric.fault("h1", "event", name=name, expect=False):
            a.wait(f"grep -q IBV_EVENT_{name} /tmp/watch-events.log", 30, what=name)
    watch.kill()
    a.wait_ib0()


# Linux 6.4 and newer keep the keys of deregistered regions for 30 s: a command is sent only for a longer one.
REFUSED = [
    ("cq", "ibv_rc_pingpong", "create CQ"),
    ("qp", "ibv_rc_pingpong", "create QP"),
    ("pd", "ibv_rc_pingpong", "allocate PD"),
    ("mr", "ibv_rc_pingpong -s 3000000", "register MR"),
    ("srq", "ibv_srq_pingpong", "create SRQ"),
]


@pytest.mark.parametrize("what, tool, words", REFUSED)
def test_an_object_is_refused(shared_fabric, a, what, tool, words):
    """The driver gives the program the error of the command's status."""
    with shared_fabric.fault("h1", "refuse", object=what):
        assert words in a.run(f"{tool} -n 10 2>&1", status=1)
    pingpong(shared_fabric, a)


def test_capabilities(shared_fabric, a):
    """The driver asks for them when it starts; numbers are powers of two."""
    with shared_fabric.fault("h1", "caps", max_qp=1000, max_qp_rd_atom=1, max_mcast_grp=64):
        a.run(UNLOAD, timeout=300)
        a.run(LOAD, timeout=300)
        out = a.run("ibv_devinfo -v")
        ib0_up(a)
    for name, value in {"max_qp": 512, "max_qp_rd_atom": 1, "max_mcast_grp": 64}.items():
        assert re.search(rf"{name}:\s+{value}\b", out), name
    reload(a)


@pytest.mark.parametrize("action", ["fatal", "unplug"])
def test_the_adapter_fails(shared_fabric, a, action):
    """
    Programs get DEVICE_FATAL, and lose the device when the driver has seen it. What it recovers by itself while the
    fault is there is not enough for mlx5_ib; it begins anew afterwards.
    """
    watch = a.start("ibv_asyncwatch", f"watch-{action}")
    a.wait(f"grep -q 'async event' /tmp/watch-{action}.log", what="ibv_asyncwatch")
    with shared_fabric.fault("h1", action):
        a.wait(f"grep -q DEVICE_FATAL /tmp/watch-{action}.log", 60, what="DEVICE_FATAL")
        a.wait("! ibv_devinfo", 120, what="a driver that has given it up")
        watch.kill()
    reload(a)
    pingpong(shared_fabric, a)


def test_a_command_never_ends(shared_fabric, a):
    """
    The driver gives it up after a minute; later ones go on. Last: the driver leaks the command's slot, and waits for it
    when it is unloaded or the adapter fails.
    """
    with shared_fabric.fault("h1", "command-timeout", command="ALLOC_XRCD", nth=1) as fault:
        assert a.call("ibv_xsrq_pingpong -n 10 2>&1", 150)[0]
        assert fault.fired == [1]
    assert "ALLOC_XRCD" in a.run("dmesg | grep timeout")
    pingpong(shared_fabric, a)
