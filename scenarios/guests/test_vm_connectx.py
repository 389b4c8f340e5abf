# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest with unmodified packages, whose HCA is a ConnectX with the mlx5 drivers: probe, faults of its firmware, a
hostile driver, reloads, reboots. Its programs are those of test_vm_verbs.py.

    h1 (guest a: connectx)    h6 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import contextlib
import os
import re
import shutil

import pytest
from endpoint import Endpoint, pair
from muslin import free_port, wait_until
from test_kills import baseline, held, objects, wait_same
from test_vm_hostile import moves, packets

pytestmark = [pytest.mark.guest, pytest.mark.model("connectx")]

WARNINGS = 4  # of the kernel's log levels
RELOADS = int(os.environ.get("MUSLIN_RELOADS", "2"))
REBOOTS = int(os.environ.get("MUSLIN_REBOOTS", "1"))
PROFILE = "mlx5_core.prof_sel"  # the number in muslin's own image is 0, and by default 2
IOMMU = ("--qemu-arg=-device", "--qemu-arg=intel-iommu,intremap=off,caching-mode=on")
UNLOAD = "rmmod mlx5_ib mlx5_core"
LOAD = "modprobe mlx5_ib"


@pytest.fixture(scope="module")
def a(shared_fabric, connectx):
    vm = shared_fabric.vm("h1", *connectx, "--tcp", "0")
    yield vm.wait_ib0()
    vm.stop()


def ib0_up(vm):
    """Waits for ib0 after its driver was loaded again."""
    vm.run("ip addr replace 10.0.0.1/24 dev ib0; ip link set ib0 up")
    vm.wait_ib0()


def counters(fabric):
    (function,) = fabric.node("h1")["guest"]["connectx"]
    return function["counters"]


def said(vm, words):
    """
    said(vm, words)() waits until the kernel has logged the words, from now on. It returns at once then, 0.4 s before
    the driver looks at the health buffer again and gives its recovery up.
    """
    mark = f"before {words}"
    vm.run(f"echo '{mark}' >/dev/kmsg")
    return lambda: vm.run(f"until dmesg | sed '1,/{mark}/d' | grep '{words}'; do sleep 0.05; done", 60)


def warnings(vm):
    """What the driver and those above it have logged above level info."""
    log = [re.match(r"<(\d+)>(.*)", line) for line in vm.run("dmesg -r").splitlines()]
    said = [(int(m[1]) & 7, m[2]) for m in log if m and re.search("mlx5|infiniband|ib0", m[2])]
    assert any("firmware version" in text for _, text in said)
    return [text for level, text in said if level <= WARNINGS]


def test_probe_without_a_warning(a):
    assert warnings(a) == []


def test_nothing_of_muslin_in_the_guest(a):
    assert a.run("find / -xdev -name 'muslin*.ko*' -o -xdev -name 'libmuslin*'") == ""
    assert a.run("cd /sys/class/infiniband; echo *; readlink -f mlx5_0/device/driver") == (
        "mlx5_0\n/sys/bus/pci/drivers/mlx5_core\n"
    )


def test_ibstat(shared_fabric, a):
    out, port = a.run("ibstat mlx5_0"), shared_fabric.port("h1")
    assert "CA type: MT4115" in out and "State: Active" in out and "Link layer: InfiniBand" in out
    assert re.search(rf"Base lid: {port['lid']}\b", out) and f"Port GUID: {port['guid']}" in out
    assert re.search(r"DevId:\.+0x1013$", a.run("smpquery nodeinfo -D 0"), re.M), "as its PCI function, 4115"
    out = a.run("ibv_devinfo -v")
    assert "PORT_ACTIVE" in out and "vendor_part_id:\t\t\t4115" in out


def test_version_of_the_firmware(a):
    """devlink reads it from registers, ibstat from the initialization segment."""
    before = warnings(a)
    out = a.run("devlink dev info pci/$(basename $(readlink /sys/class/infiniband/mlx5_0/device))")
    version = re.search(r"Firmware version: (\S+)", a.run("ibstat mlx5_0"))[1]
    assert re.findall(r"fw.version (\S+)", out) == [version] * 2 and "MUS0000000001" in out
    assert warnings(a) == before


def test_activation_of_firmware(a):
    """The adapter needs a reboot for that, and the driver says so; that of Linux 6.12 finds it unsupported."""
    before = warnings(a)
    function = "pci/$(basename $(readlink /sys/class/infiniband/mlx5_0/device))"
    reload = f"devlink dev reload {function} action fw_activate"
    refused = "FW activate (requires reboot|is unsupported for this function)"
    assert re.search(refused, a.run(f"{reload} 2>&1", status=1))
    # the devlink of iproute2 6.15 sends a limit that the kernel does not take
    limited = a.run(f"{reload} limit no_reset 2>&1", status=1)
    assert "can't be done by FW live patching" in limited or "Attribute failed policy validation" in limited
    assert warnings(a) == before


def test_completion_timestamps(shared_fabric, a):
    """Each completion has a timestamp of the adapter's clock, whose frequency the driver reads."""
    tool = f"ibv_rc_pingpong -n 100 -p {free_port()}"
    guest, host = Endpoint(shared_fabric, "h1", a), Endpoint(shared_fabric, "h6")
    out, _ = pair(host, tool, guest, f"{tool} -t machine")
    cycles = {which: int(n) for which, n in re.findall(r"(M\w+) receive completion clock cycles = (\d+)", out)}
    seconds = float(re.search(r"iters in ([\d.]+) seconds", out)[1])
    assert 0 < cycles["Min"] <= cycles["Max"] <= (seconds + 1) * 156250e3
    assert re.search(r"hca_core_clock:\s+156250kHZ", a.run("ibv_devinfo -v"))


def test_vendor_syndrome(shared_fabric, a):
    """A program has the vendor syndrome of an error as it has it of the adapter."""
    tool = f"ib_write_bw -F -n 100 -Q 1 -p {free_port()}"
    broken = shared_fabric.fault("h1", "complete", status="RETRY_EXC_ERR", queue="send", opcode="write", nth=20)
    server = shared_fabric.start("h6", *tool.split())
    once = f"timeout 10 {tool} machine 2>&1 | tee /tmp/bw.log; grep -q syndrom /tmp/bw.log && break"
    out = a.run(f"for i in $(seq 50); do {once}; done", 60)
    server.kill()
    assert re.search(r"Failed status 12: wr_id \d+ syndrom 0x81", out), out
    assert broken.hits == 1
    broken.clear()


def test_commands_of_srqs(shared_fabric, a):
    """The driver has chosen interface step sequence 1, in whose commands a user index is."""
    used = counters(shared_fabric)
    assert {"CREATE_RMP", "CREATE_XRC_SRQ"} <= used.keys() and "CREATE_SRQ" not in used


def test_ipoib(a):
    for address, sizes in (("10.0.0.6", (56, 1900)), ("fd00::6", (56,))):
        a.wait(f"ping -c 1 -W 1 {address}", what="an echo")
        for size in sizes:
            a.ping(address, size=size, count=2)


def test_what_the_device_counted(shared_fabric, a):
    (function,) = shared_fabric.node("h1")["guest"]["connectx"]
    seen = function["counters"]
    assert function["driver"] and seen["interrupts"] and seen["CREATE_QP"]
    assert {k: v for k, v in seen.items() if k.startswith(("bad_wqes", "bad_dma", "vfio_"))} == {}


def writes(vm):
    """RDMA WRITEs to the guest, the sum of all sets of counters."""
    return int(re.search(r"rx_write_requests (\d+)", vm.run("rdma statistic show link mlx5_0/1"))[1])


def test_counters_of_queue_pairs(shared_fabric, a):
    """A queue pair with a set of counters of its own counts there instead of in the port's: the sum has it once."""
    counted = []
    for mode in ("off", "type on", "off"):
        a.run(f"rdma statistic qp set link mlx5_0/1 auto {mode}")
        before, tool = writes(a), f"ib_write_lat -F -n 100 -s 64 -p {free_port()}"
        pair(Endpoint(shared_fabric, "h6"), tool, Endpoint(shared_fabric, "h1", a), f"{tool} machine")
        counted.append(writes(a) - before)
    assert counted[0] >= 100 and counted == counted[:1] * 3


def test_optional_counters(shared_fabric, a):
    """They need flow tables, which the adapter does not have; a driver allocates a flow counter before it looks."""
    counter = "link mlx5_0/1 optional-counters"
    assert "cc_rx_ce_pkts" in a.run("rdma statistic mode supported")
    assert "not supported" in a.run(f"rdma statistic set {counter} cc_rx_ce_pkts 2>&1", status=None)
    assert counters(shared_fabric)["ALLOC_FLOW_COUNTER"] == counters(shared_fabric)["DEALLOC_FLOW_COUNTER"]
    assert "cc_rx_ce_pkts" not in a.run("rdma statistic show link mlx5_0/1")
    a.check()


def test_a_cq_that_a_program_leaves(shared_fabric, a):
    """perftest leaves the CQ of its receives: rdma-core deallocates the UAR before the kernel destroys the CQ."""
    before, tool = counters(shared_fabric), f"ib_send_bw -n 100 -p {free_port()}"
    pair(Endpoint(shared_fabric, "h6"), tool, Endpoint(shared_fabric, "h1", a), f"{tool} machine")
    after = counters(shared_fabric)
    assert after["DEALLOC_UAR"] > before.get("DEALLOC_UAR", 0)
    assert after.get("bad_commands") == before.get("bad_commands")


def test_a_mad_of_a_class_without_an_agent(shared_fabric, a):
    """The driver has the adapter respond to vendor-specific classes; it says that it does not support them."""
    before, lid = counters(shared_fabric), str(shared_fabric.port("h1")["lid"])
    here = a.run(f"vendstat -N {lid} 2>&1", status=None)
    for out in (here, shared_fabric.run("h6", "vendstat", "-N", lid, status=None)):
        assert "vendstat" in out and "timed out" not in out
    after = counters(shared_fabric)
    assert after["MAD_IFC"] > before["MAD_IFC"] and after.get("bad_commands") == before.get("bad_commands")


# Faults of the firmware


def test_a_command_fails(shared_fabric, a):
    """The driver returns the error of the status to its user."""
    with shared_fabric.fault("h1", "command-status", command="CREATE_CQ", status="LIM_ERR", nth=1) as fault:
        assert "Couldn't create CQ" in a.run("ibv_rc_pingpong -n 10", status=1)
        assert fault.fired == [1]
    assert a.run("dmesg | grep 'CREATE_CQ.*failed.*limits exceeded'")


def test_a_command_is_slow(a, shared_fabric):
    with shared_fabric.fault("h1", "command-delay", command="ALLOC_PD", time="1500ms"):
        out = a.run("read s _ </proc/uptime; ibv_rc_pingpong -g 99 2>&1; read e _ </proc/uptime; echo $s $e")
    start, end = out.split()[-2:]
    assert float(end) - float(start) >= 1.5


def test_the_firmware_has_a_syndrome(shared_fabric, a):
    """The driver reads the health buffer every two seconds, and reports a syndrome; the adapter still works."""
    reporter = "$(basename $(readlink /sys/class/infiniband/mlx5_0/device)) reporter fw"
    with shared_fabric.fault("h1", "health", syndrome="HIGH_TEMP"):
        a.wait(f"devlink health show pci/{reporter} | grep 'error 1'", what="the driver's report")
        assert "High temperature" in a.run(f"devlink health diagnose pci/{reporter}")
    assert "State: Active" in a.run("ibstat mlx5_0")


def test_the_firmware_requests_a_reset(shared_fabric, a):
    """Programs and interfaces lose their device; the driver resets the adapter, which ends the request."""
    log = said(a, "health recovery succeeded")
    with shared_fabric.fault("h1", "health", "rfr", syndrome="HW_UNRECOVERABLE_ERR"):
        log()
    a.wait("ibstat mlx5_0 | grep 'State: Active'", 120, what="the driver's recovery")
    ib0_up(a)


def test_the_firmware_stops(shared_fabric, a):
    log = said(a, "health compromised")
    with shared_fabric.fault("h1", "health", "stopped"):
        log()
    assert "State: Active" in a.run("ibstat mlx5_0")


# A program of the guest's root instead of the driver


FOLDER = "/sys/bus/pci/drivers/mlx5_core"


@contextlib.contextmanager
def a_neighbour(shared_fabric):
    """rping between two other hosts, without pause."""
    args = ["-a", shared_fabric.ip("h6"), "-C", "1000000", "-S", "1000"]
    server = shared_fabric.start("h6", "rping", "-s", *args)
    client = shared_fabric.start("h2", "rping", "-c", *args)

    def flows():
        if not client.running():  # the server was not listening yet
            client.restart()
        return packets(shared_fabric, "h2") > before + 100

    before = packets(shared_fabric, "h2")
    wait_until(flows, 20, "rping", 0.2)
    yield client, server
    client.kill()
    server.kill()


# The driver


def reloaded(fabric, vm):
    """The objects of a driver that nobody has used yet: a newer one creates its UMR CQ for the first registration."""
    vm.run(f"{UNLOAD} && {LOAD}", timeout=300)
    ib0_up(vm)
    return stable_objects(fabric)


@pytest.mark.timeout(600 + 60 * RELOADS)
def test_reloads(shared_fabric, a):
    """
    MUSLIN_RELOADS=1000 in the environment: number of reloads. No object may be leaked.
    """
    with_driver, without = reloaded(shared_fabric, a), None
    for _ in range(RELOADS):
        a.run(UNLOAD, timeout=300)
        without = without or baseline(shared_fabric)
        wait_same(held, shared_fabric, without)
        a.run(LOAD, timeout=300)
        ib0_up(a)
    wait_same(objects, shared_fabric, with_driver, 120)
    assert "State: Active" in a.run("ibstat mlx5_0")


def profile(vm):
    return vm.run(f"cat /sys/module/{PROFILE.replace('.', '/parameters/')}").strip()


def has_cache(vm):
    """Whether this kernel's driver has a cache of memory keys in its default profile."""
    return int(vm.run("uname -r").split(".")[0]) < 7


def test_the_default_profile(shared_fabric, a, connectx):
    """
    As in images of disks: the driver fills its cache of memory keys, one of which a program's registration gets. No
    object is left of a driver that is unloaded when the cache is full, nor of one that is still filling it.

    The adapter is behind an IOMMU, by which QEMU maps each page of the guest's memory by itself.
    """
    assert profile(a) == "0"
    stable_objects(shared_fabric)
    idle = of_h2(shared_fabric)
    vm = shared_fabric.vm("h2", *connectx, *IOMMU, "--append", f"{PROFILE}=2 intel_iommu=on").wait_ib0()
    assert profile(vm) == "2" and vm.run("ls /sys/kernel/iommu_groups")
    stable_objects(shared_fabric)
    assert shared_fabric.node("h2")["objects"]["mr"] > 1000 or not has_cache(vm)
    tool = f"ibv_rc_pingpong -n 100 -p {free_port()}"
    pair(Endpoint(shared_fabric, "h1", a), tool, Endpoint(shared_fabric, "h2", vm), f"{tool} 10.0.0.1")
    for unload in (UNLOAD, f"{LOAD} && {UNLOAD}"):
        vm.run(unload, timeout=300)
        wait_same(of_h2, shared_fabric, idle)
    vm.stop()


def of_h2(fabric):
    """Without the other guest's: the driver there keeps what its first registration takes."""
    return {k: v for k, v in objects(fabric).items() if k.startswith("h2 ")}


def stable(value, what):
    """What value() returns when it has not changed for three seconds."""
    last = []

    def same():
        last.append(value())
        return last[-1] if last[-1:] * 4 == last[-4:] else None

    return wait_until(same, 120, what, 1)


def stable_objects(fabric):
    """The objects when the driver has filled its cache of memory keys, which it does in the background."""
    return stable(lambda: objects(fabric), "the driver's cache of memory keys")


@pytest.mark.timeout(600 + 120 * REBOOTS)
def test_reboots(shared_fabric, a):
    """The machine is reset during traffic; MUSLIN_REBOOTS=100 in the environment: number of resets."""
    reloaded(shared_fabric, a)
    before = baseline(shared_fabric)
    for _ in range(REBOOTS):
        a.reboot()
        a.wait_ib0()
    assert "State: Active" in a.run("ibstat mlx5_0")
    wait_same(held, shared_fabric, before, 120)


def test_a_function_level_reset(shared_fabric, a):
    """
    Beneath the driver, which finds the interface disabled and restarts the adapter. This follows a reboot: mlx5_core
    restarts no adapter within a minute of another recovery.

    No join may be in progress. As an adapter fails, Linux's mlx5_ib reports MADs flushed that were sent, and ib_sa ends
    a query twice whose response it has: the multicast group of the join is freed in use, which ipoib finds later.
    """
    stable(lambda: counters(shared_fabric)["doorbells"], "a guest that sends nothing")
    log = said(a, "starting health recovery flow")
    a.run("echo 1 >$(readlink -f /sys/class/infiniband/mlx5_0/device)/reset")
    log()
    a.wait("ibstat mlx5_0 | grep 'State: Active'", 120, what="the driver's recovery")
    ib0_up(a)
    a.wait("ping -c 1 -W 1 10.0.0.6", what="an echo")


@pytest.fixture(scope="module")
def hostile(helper, shared_fabric, a):
    """hostile(mode): the output of the program, which has the function to itself until the end of this file."""
    shared_fabric.command("cp", shutil.copy(helper("hostile-connectx"), shared_fabric.folder), "h1:/tmp/")
    name = a.run(f"cd {FOLDER}; ls -d 0000:*").strip()
    a.run(f"echo {name} >{FOLDER}/unbind", timeout=300)
    yield lambda mode: a.run(f"/tmp/hostile-connectx /sys/bus/pci/devices/{name} {mode} 7")
    a.run(f"echo 0 >/proc/sys/vm/nr_hugepages; echo {name} >{FOLDER}/bind", timeout=300)
    ib0_up(a)


@pytest.mark.parametrize("mode", ["commands", "queues", "bar", "resets"])
def test_a_hostile_guest(shared_fabric, hostile, mode):
    """Other hosts are not affected, and the device works with a correct driver afterwards."""
    daemon = shared_fabric.daemon_pid
    with a_neighbour(shared_fabric) as programs:
        assert f"{mode}: done, 0 wrong" in hostile(mode)
        moves(shared_fabric, "h2")
        assert all(p.running() for p in programs) and shared_fabric.daemon_pid == daemon
    assert not shared_fabric.node("h1")["guest"]["connectx"][0]["driver"]
