# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest with Debian's kernel for clouds, whose own mlx5 finds a ConnectX. That kernel has no IPoIB, so InfiniBand has no
IP addresses there, and rdma_cm none to connect by.

    h1 (guest a: connectx)    h6 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import re

import pytest
from conftest import build_connectx
from endpoint import Endpoint
from muslin import free_port
from test_vm_connectx import warnings
from test_vm_verbs import PINGPONGS, over_tcp

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

KERNELS = ["6.1-cloud-amd64", "cloud-amd64"]  # the latter is the newest of the distribution


@pytest.fixture(scope="module")
def port():
    return {"guest": free_port(), "host": free_port()}


@pytest.fixture(scope="module", params=KERNELS)
def a(request, shared_fabric, port):
    options = ["--kernel", request.param]
    built = build_connectx(shared_fabric, *options)
    if "no kernel" in built:
        pytest.skip(built.strip())
    vm = shared_fabric.vm("h1", "--model", "connectx", *options, "--tcp", port["guest"])
    vm.wait("ibstat mlx5_0 | grep 'State: Active'", what="the port")
    yield vm
    vm.stop()


@pytest.fixture(params=["a-host", "host-a"])
def ends(request, shared_fabric, a):
    """(client, server)"""
    guest, host = Endpoint(shared_fabric, "h1", a), Endpoint(shared_fabric, "h6")
    return (guest, host) if request.param == "a-host" else (host, guest)


def test_probe_without_a_warning(a):
    assert "-cloud-" in a.run("uname -r")
    assert warnings(a) == []


def test_health_without_a_warning(a):
    """Each reporter is asked; newer kernels have one of the vNIC's counters."""
    health = a.run("devlink health show")
    function, reporters = re.search(r"pci/\S+(?=:\n)", health)[0], re.findall(r"reporter (\S+)", health)
    assert "fw" in reporters
    for reporter in reporters:
        a.run(f"devlink health diagnose {function} reporter {reporter}", status=None)
    assert warnings(a) == []


def test_no_snapshot_of_a_kernel_without_vmgenid(shared_fabric):
    options = ["--model", "connectx", "--kernel", KERNELS[0]]
    built = build_connectx(shared_fabric, *options[2:])
    if "no kernel" in built:
        pytest.skip(built.strip())
    said = shared_fabric.command("vm", "h6", *options, "--snapshot", "--", "true", status=2, timeout=120)
    assert re.search(r"--snapshot: kernel 6\.1\S+ has no driver of the device vmgenid", said)


def test_ibstat(shared_fabric, a):
    out, port = a.run("ibstat mlx5_0"), shared_fabric.port("h1")
    assert "CA type: MT4115" in out and "Link layer: InfiniBand" in out
    assert re.search(rf"Base lid: {port['lid']}\b", out) and f"Port GUID: {port['guid']}" in out
    out = a.run("ibv_devinfo -v")
    assert "PORT_ACTIVE" in out and "vendor_part_id:\t\t\t4115" in out


@pytest.mark.parametrize("a", KERNELS[1:], indirect=True, scope="module")
@pytest.mark.parametrize("tool", PINGPONGS)
def test_pingpong(ends, port, tool):
    for out in over_tcp(ends, port, tool):
        assert "100 iters in" in out


def test_ib_write_bw(ends, port):
    out, _ = over_tcp(ends, port, "ib_write_bw -s 65536 -n 200")
    assert re.search(r"^ *65536 +200 ", out, re.M)


def test_without_ipoib(a):
    """As docs and the manual say; a kernel that has it would run the scenarios of the others."""
    assert a.call("modprobe ib_ipoib")[0] and a.run("ls /sys/class/net").split() in (["eth0", "lo"], ["lo"])
