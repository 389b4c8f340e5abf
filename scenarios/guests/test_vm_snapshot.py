# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests that resume from one snapshot of a booted guest: each has devices, a clock and random numbers of its own. All
guests with a ConnectX resume in `make test`, and test_vm_connectx.py has one that is reset then.

    h1, h5: guests
"""

import os
import pathlib
import shutil
import time

import pytest
from endpoint import Endpoint, rping_both_ways

FORKED = "crng reseeded due to virtual machine fork"
SMALL = 560  # MiB, which no other guest has
UNUSED = 556  # the same, of a guest without a snapshot


@pytest.fixture(scope="module")
def resumed(shared_fabric, model):
    """Two guests of one snapshot, with a folder of the machine each."""
    shared = shared_fabric.folder / f"shared-{model}"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "given").write_text("of the machine")
    words = ["--model", model, "--snapshot", "--share", f"{shared}:/data"]
    vms = [shared_fabric.vm(host, *words) for host in ("h1", "h5")]
    for vm in vms:
        vm.wait_ib0()
    yield vms
    for vm in vms:
        vm.stop()


@pytest.mark.guest
def test_what_guests_of_one_snapshot_do_not_share(resumed):
    """Random numbers, host names and the kernel's identifiers differ, and the clock is that of the machine."""
    for vm, host in zip(resumed, ("h1", "h5"), strict=True):
        assert vm.dmesg().count(FORKED) == 1
        assert vm.run("hostname").strip() == host
        before = int(time.time())
        assert before - 2 <= int(vm.run("date +%s")) <= time.time() + 2
        assert vm.run("cat /data/given") == "of the machine"
    for source in ("/dev/urandom", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/random/uuid"):
        read = [vm.run(f"head -c 32 {source} | base64") for vm in resumed]
        assert read[0] != read[1], source


@pytest.mark.guest
def test_fabric_of_guests_of_one_snapshot(resumed):
    a, b = resumed
    a.ping("10.0.0.5")
    rping_both_ways(*(Endpoint(vm.fabric, vm.host, vm) for vm in (a, b)))


@pytest.mark.guest
def test_reboot_of_a_resumed_guest(resumed):
    """It boots as others do, and finds the same devices."""
    a = resumed[0]
    a.reboot()
    assert FORKED not in a.dmesg()
    assert a.wait_ib0().run("cat /data/given") == "of the machine"


def small_snapshots(fabric, size=SMALL):
    """Folders of the cache with a snapshot of that memory."""
    memories = pathlib.Path(fabric.env["MUSLIN_CACHE"]).glob("snapshot-*/memory")
    return [m.parent for m in memories if os.path.getsize(m) == size << 20]


@pytest.mark.guest
def test_no_snapshot(new_fabric, monkeypatch):
    """The option has priority over the environment: the guest boots, and none is taken."""
    fabric = new_fabric.up("leafs 1 hosts 2")
    monkeypatch.setitem(fabric.env, "MUSLIN_SNAPSHOT", "1")
    before = small_snapshots(fabric, UNUSED)
    vm = fabric.vm("h1", "--no-snapshot", "--mem", f"{UNUSED}M")
    assert FORKED not in vm.run("dmesg") and "Linux version" in vm.run("dmesg")
    assert vm.run("hostname").strip() == "h1"
    vm.stop()
    assert small_snapshots(fabric, UNUSED) == before


@pytest.mark.guest
def test_snapshot_that_is_damaged(new_fabric, tmp_path):
    """QEMU does not load it; it goes, and the next guest is of a new one."""
    fabric = new_fabric.up("leafs 1 hosts 2")
    for left_by_an_earlier_run in small_snapshots(fabric):
        shutil.rmtree(left_by_an_earlier_run)
    words = ["--snapshot", "--mem", f"{SMALL}M"]
    fabric.vm("h1", *words).stop()
    (own,) = small_snapshots(fabric)
    os.truncate(own / "state", 1000)
    said = fabric.command("vm", "h2", *words, "--", "true", status=1, timeout=120)
    assert "did not load the snapshot" in said and not own.exists()
    assert "7" in fabric.vm("h1", *words).run("echo $((3 + 4))")


def test_what_cannot_resume_says_why(new_fabric, folder):
    fabric = new_fabric.up("leafs 1 hosts 1")
    image = folder / "image"
    image.write_bytes(b"QFI\xfb")
    for words, why in (
        (["--image", image], "images of disks boot by themselves"),
        (["--qemu-arg=-cpu", "--qemu-arg=qemu64"], "may change the machine"),
        (["--qemu-arg=-device", "--qemu-arg=intel-iommu,intremap=off"], "Linux finds an IOMMU only while it boots"),
        (["--mem", "512M,slots=2"], "is no plain size"),
    ):
        out = fabric.command("vm", "h1", "--snapshot", *words, "--", "true", status=2)
        assert out.startswith("muslin: --snapshot: ") and why in out
