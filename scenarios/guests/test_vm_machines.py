# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests on machines of other kinds than the default one:

    h1 (guest)            h5 (host mode)
        leaf1 ---- spines ---- leaf2
"""

import pathlib
import re

import pytest
from endpoint import Endpoint, pair
from muslin import wait_until

pytestmark = pytest.mark.guest

AVAILABLE = int(re.search(r"MemAvailable: +(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10
IOMMU = ("--qemu-arg=-device", "--qemu-arg=intel-iommu,intremap=off,caching-mode=on", "--append")
PRIVATE = "-object memory-backend-memfd,id=private,size=768M,share=off -machine memory-backend=private"
REFUSED = "the device needs guest-physical addresses: no IOMMU without iommu=pt, no swiotlb=force"


def rping(fabric, vm):
    """The guest serves a host in host mode."""
    what = f"-V -v -C 5 -S 20000 -a {fabric.ip('h1')}"
    _, said = pair(Endpoint(fabric, "h1", vm), f"rping -s {what}", Endpoint(fabric, "h5"), f"rping -c {what}")
    assert said.count("server ping data: rdma-ping-") == 5


@pytest.mark.also_connectx
def test_memory_that_is_not_shared(new_fabric, model):
    """The daemon's log says so: QEMU shares a file of which the guest has a private copy."""
    fabric = new_fabric.up("leafs 1 hosts 1")
    options = [f"--qemu-arg={word}" for word in PRIVATE.split()]
    fabric.start_muslin("vm", "h1", "--model", model, *options, "--", "true")
    wait_until(lambda: "(share=on)" in fabric.daemon_log(), 120, "the log's line", 0.2)
    assert fabric.daemon_log().count(" warn ") == 1


@pytest.mark.model("muslin", reason="a ConnectX has what mlx5 maps")
@pytest.mark.parametrize(
    "options", [(*IOMMU, "intel_iommu=on"), ("--append", "swiotlb=force")], ids=["iommu", "swiotlb"]
)
def test_driver_refuses_dma_addresses_of_others(shared_fabric, options):
    vm = shared_fabric.vm("h1", *options)
    vm.wait(f"dmesg | grep -F '{REFUSED}'", what="the refusal")
    vm.stop()


@pytest.mark.model("muslin", reason="test_vm_connectx has it with an IOMMU that translates")
def test_iommu_that_does_not_translate(shared_fabric):
    vm = shared_fabric.vm("h1", *IOMMU, "intel_iommu=on iommu=pt").wait_ib0()
    vm.run("[ -d /sys/class/iommu/dmar0 ]")
    rping(shared_fabric, vm)
    vm.stop()


@pytest.mark.skipif(AVAILABLE < 8 << 30, reason="needs 8 GiB of memory")
@pytest.mark.also_connectx
def test_memory_above_4_gib(shared_fabric, program, model):
    """A program fills more memory than there is below the PCI hole; regions of it are sent to others."""
    vm = shared_fabric.vm("h1", "--model", model, "--mem", "5G").wait_ib0()
    shared_fabric.command("cp", program("high_memory"), "h1:/tmp/")
    said = vm.run("/tmp/high_memory 4", timeout=180)
    assert int(re.fullmatch(r"15 writes, up to 0x([0-9a-f]+)\n", said)[1], 16) > 4 << 30
    vm.stop()
