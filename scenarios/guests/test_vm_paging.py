# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
On-demand paging in a guest with unmodified packages, whose driver sets the pages of a ConnectX: pingpongs, perftest
with a peer in host mode, and a program whose pages come and go.

    h1 (guest a: connectx)    h6 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import re

import pytest
from endpoint import Endpoint, pair
from muslin import free_port
from test_vm_connectx import LOAD, UNLOAD, counters, ib0_up, warnings
from test_vm_pyverbs import DEVICE, MOUNTS, SHARE

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

OPERATIONS = {
    "rc": ["SEND", "RECV", "WRITE", "READ", "ATOMIC", "SRQ"],
    "ud": ["SEND", "SRQ"],
    "xrc": ["SEND", "RECV", "WRITE", "READ", "ATOMIC", "SRQ"],
}
PERFTESTS = ["ib_write_bw -s 65536", "ib_send_bw -s 65536", "ib_read_bw -s 65536", "ib_send_lat -s 100"]


SWAP = "modprobe brd rd_nr=1 rd_size=65536; for c in mkswap swapon; do chroot /machine $c /dev/ram0 || exit 1; done"


@pytest.fixture(scope="module")
def a(shared_fabric, connectx):
    machine = [f"--qemu-arg={word}" for word in f"{SHARE} {DEVICE}".split()]
    vm = shared_fabric.vm("h1", *connectx, *machine, "--tcp", "0").wait_ib0()
    vm.run(MOUNTS)
    vm.run(SWAP)
    yield vm
    vm.stop()


@pytest.fixture(autouse=True)
def no_warning(a):
    """Neither the driver nor the kernel complains."""
    before = warnings(a)
    yield
    assert warnings(a) == before


def page_faults(fabric):
    return counters(fabric).get("page_faults", 0)


def swapped_in(vm):
    return int(vm.run("sed -n 's/^pswpin //p' /proc/vmstat"))


def test_capabilities(a):
    """As ibv_devinfo(1) shows them."""
    out = a.run("ibv_devinfo -v")
    general = re.search(r"general_odp_caps:\n((?:\s+ODP_\w+\n)+)", out)[1]
    assert general.split() == ["ODP_SUPPORT", "ODP_SUPPORT_IMPLICIT"]
    for service, operations in OPERATIONS.items():
        shown = re.search(rf"\b{service}_odp_caps:\n((?:\s+SUPPORT_\w+\n)+)", out)[1]
        assert re.findall(r"SUPPORT_(\w+)", shown) == operations


@pytest.mark.parametrize("option", ["-o", "-O", "-o -P"])
def test_pingpong(shared_fabric, a, option):
    """Both sides have regions with on-demand paging; in the guest also of all addresses, and prefetched."""
    guest, host = Endpoint(shared_fabric, "h1", a), Endpoint(shared_fabric, "h6")
    tool = f"ibv_rc_pingpong -n 100 -s 20000 -p {free_port()}"
    for out in pair(host, f"{tool} -o", guest, f"{tool} {option} machine"):
        assert "100 iters" in out


@pytest.mark.parametrize("tool", ["rc", "srq", "xsrq"])
def test_pingpong_in_a_guest(shared_fabric, a, tool):
    end = Endpoint(shared_fabric, "h1", a)
    command = f"ibv_{tool}_pingpong -o -n 100 -s 20000"
    for out in pair(end, command, end, f"{command} localhost"):
        assert "success" in out if tool == "xsrq" else "iters in" in out


@pytest.mark.parametrize("tool", PERFTESTS)
def test_perftest(shared_fabric, a, tool):
    guest, host = Endpoint(shared_fabric, "h1", a), Endpoint(shared_fabric, "h6")
    command = f"{tool} --odp -F -n 200 -p {free_port()}"
    out, _ = pair(host, command, guest, f"{command} machine")
    assert re.search(r"^ *\d+ +200 ", out, re.M)


@pytest.mark.parametrize("region", ["", "whole"])
def test_program(shared_fabric, a, program, region):
    """Pages are replaced, dropped, swapped out, copied after a fork, and missing, between requests and under way."""
    before, swapped = page_faults(shared_fabric), swapped_in(a)
    assert a.run(f"chroot /machine {program('paging')} {region}", 300) == "paged\n"
    assert page_faults(shared_fabric) - before > 100 and swapped_in(a) - swapped > 100


def test_reload(shared_fabric, a, program):
    """The driver creates its event queue for page faults again."""
    a.run(UNLOAD, 60)
    a.run(LOAD, 300)
    ib0_up(a)
    assert a.run(f"chroot /machine {program('paging')}", 300) == "paged\n"
