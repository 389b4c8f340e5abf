# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
HCA faults of a guest's ConnectX, and how the guest's own mlx5 drivers handle them. Each test leaves the driver working.

    h1 (guest a: connectx)    h6 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import re

import pytest
from endpoint import Endpoint, pair
from muslin import free_port

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

LOAD, UNLOAD = "modprobe mlx5_ib", "rmmod mlx5_ib mlx5_core"


@pytest.fixture(scope="module")
def a(shared_fabric, connectx):
    vm = shared_fabric.vm("h1", *connectx, "--tcp", "0")
    yield vm.wait_ib0()
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


@pytest.mark.parametrize("what, words", [("cq", "create CQ"), ("qp", "create QP"), ("pd", "allocate PD")])
def test_an_object_is_refused(shared_fabric, a, what, words):
    """The driver gives the program the error of the command's status."""
    with shared_fabric.fault("h1", "refuse", object=what):
        assert words in a.run("ibv_rc_pingpong -n 10 2>&1", status=1)
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
