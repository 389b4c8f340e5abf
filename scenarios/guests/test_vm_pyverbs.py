# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The pyverbs suite of the distribution in a guest, with this machine's files and so its Python: no test fails, and the
skipped ones are those that a host of the fabric skips.
"""

import json
import pathlib
import re
import shutil
import subprocess

import pytest
from test_pyverbs import RUNNER, SKIPS, check_report, unpack

pytestmark = pytest.mark.guest

SHARE = "-fsdev local,id=machine,path=/,security_model=none,readonly=on,multidevs=remap"
DEVICE = "-device virtio-9p-pci,fsdev=machine,mount_tag=machine"
MOUNTS = """modprobe -a 9p 9pnet_virtio && mkdir /machine
mount -t 9p -o trans=virtio,ro,cache=loose,msize=131072 machine /machine
for d in dev sys proc; do mount --rbind /$d /machine/$d; done
mount -t tmpfs none /machine/mnt; echo 64 >/proc/sys/vm/nr_hugepages"""

# Differences due to a kernel in between: it reports that there is no ODP, and a GUID of zero has a prefix in its table.
ODP = """async_prefetch_rc_traffic implicit_async_prefetch_rc_traffic implicit_rc_traffic
implicit_sync_prefetch_rc_traffic prefetch_async_no_page_fault_rc_traffic
prefetch_sync_no_page_fault_rc_traffic rc_atomic_cmp_and_swp rc_atomic_fetch_and_add rc_huge_traffic
rc_huge_user_addr_traffic rc_mixed_mr rc_rdma_read rc_rdma_write rc_srq_traffic rc_traffic
sync_prefetch_rc_traffic ud_traffic"""
OWN = {
    "tests.test_device.DeviceTest.test_query_gid_ex_bad_flow": "All gid indices populated, cannot check bad flow",
    "tests.test_parent_domain.ParentDomainTrafficTest.test_huge_page_traffic": "Parent Domain is not supported on this "
    "device",
}
OWN |= {f"tests.test_odp.OdpTestCase.test_odp_{name}": "ODP is not supported - No ODP caps" for name in ODP.split()}
# By model: reasons of its own, and the file of the others.
SKIPS_CONNECTX = pathlib.Path(__file__).with_name("pyverbs_skips_connectx.txt")
EXPECTED = {"muslin": (OWN, SKIPS), "connectx": ({}, SKIPS_CONNECTX)}
# By model: parts of objects.py that cannot be, and vectors. mlx5 resizes no SRQ, refuses no post, and has a vector for
# each CPU.
OBJECTS = {"muslin": ([], 4), "connectx": (["srq_resize", "refused"], 1)}


@pytest.fixture(scope="module")
def vm(shared_fabric):
    """A guest with the machine's files in /machine, from which Python loads its modules."""
    vm = shared_fabric.vm("h1", *[f"--qemu-arg={word}" for word in f"{SHARE} {DEVICE}".split()]).wait_ib0()
    vm.run(MOUNTS)
    yield vm
    vm.stop()


PYTHON = "TMPDIR=/mnt PYTHONDONTWRITEBYTECODE=1 chroot /machine /usr/bin/python3"


def python(vm, *args, **kw):
    return vm.run(f"{PYTHON} {' '.join(map(str, args))}", **kw)


def test_suite(shared_fabric, vm):
    folder = shared_fabric.folder
    unpack(folder)
    shutil.copy(RUNNER, folder)
    suite = f"{folder}/{RUNNER.name} {folder}/tests /mnt/result.json 10.0.0.1 -v --dev {vm.device}"
    out = python(vm, suite, timeout=300, status=None)
    status, text = vm.call("cat /machine/mnt/result.json")
    assert status == 0, out[-6000:]
    check_report(json.loads(text), *EXPECTED[vm.model])


def test_objects(shared_fabric, vm, program):
    """Queues change their size under way, and every completion vector has its events."""
    without, vectors = OBJECTS[vm.model]
    out = python(vm, program("objects.py"), vm.device, shared_fabric.port("h1")["lid"], *without)
    done = [part for part in ("srq_resize", "cq_resize", "refused") if part not in without]
    assert out.split() == [*done, "vectors", str(vectors)]
    counts = [sum(map(int, re.findall(r"\d+", line.split(":")[1])[:1]))
              for line in vm.run("grep comp /proc/interrupts").splitlines()]
    assert len(counts) == vectors and all(counts), "an interrupt for each vector"


def test_static_rate_of_datagrams(shared_fabric, vm, program):
    """32 MiB to a port of 2.5 Gb/s take 107 ms at least, less what a late timer may make up for."""
    lid, rate = shared_fabric.port("h5")["lid"], 2  # IBV_RATE_2_5_GBPS
    assert float(vm.run(f"chroot /machine {program('datagram_rate')} {lid} {rate}")) > 100


def version(path):
    """Of the machine's rdma-core, as in the name of the library that the program loads."""
    loaded = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return int(pathlib.Path(re.search(r"libibverbs\S+ => (\S+)", loaded)[1]).resolve().name.split(".")[-2])


def test_thread_domains(vm, program):
    """
    Before rdma-core 60 libmlx5 wants a UAR with BlueFlame for one, which mlx5_ib refuses on an adapter that does not
    offer that; librxe has none.
    """
    path = program("thread_domains")
    offered = vm.model == "connectx" and version(path) >= 60
    out = vm.run(f"chroot /machine {path}")
    assert out == ("thread domains\n" if offered else "Operation not supported\n")


@pytest.mark.model("muslin")
def test_posts_before_rts(vm, program):
    """A post fails while another thread moves the queue pair to RTS: it is not sent later."""
    assert vm.run(f"chroot /machine {program('post_before_rts')} 200", 120) == "200 rounds\n"


EVENTS = {"PORT_ACTIVE": 9, "PORT_ERR": 10, "PKEY_CHANGE": 12}  # enum ibv_event_type


def test_port_events(shared_fabric, vm, program):
    """A program gets the events of a pulled cable, of its return, and of another P_Key."""
    conf = shared_fabric.folder / "partitions.conf"
    conf.write_text("Default=0x7fff, ipoib : ALL=full;\nred=0x0001 : ALL=full;\n")
    conf.chmod(0o644)
    vm.start(f"{PYTHON} {program('async_events.py')} {vm.device}", "events")
    vm.wait("grep -q ready /tmp/events.log", what="the program")
    shared_fabric.command("link", "h1:1", "down")
    vm.wait(f"grep -q '^{EVENTS['PORT_ERR']}$' /tmp/events.log", what="PORT_ERR")
    shared_fabric.command("link", "h1:1", "up")
    vm.wait(f"grep -q '^{EVENTS['PORT_ACTIVE']}$' /tmp/events.log", what="PORT_ACTIVE")
    shared_fabric.wait_active()
    shared_fabric.command("partitions", conf)
    vm.wait(f"grep -q '^{EVENTS['PKEY_CHANGE']}$' /tmp/events.log", what="PKEY_CHANGE")
    vm.run("killall python3", status=None)
