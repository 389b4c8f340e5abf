# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Attributes of an adapter besides verbs: its PCI function in sysfs, and the network interfaces of its ports.

    h1 -- leaf1 ...       r1 -- sw1 -- v1 (VLAN 10)       w1: iWARP on the machine's lo
"""

import json
import shutil
import subprocess
import sys

import pytest
from muslin import free_port

ETHERNET = """
ethernet sw1 mtu 4200
host r1 ether sw1 ip 10.1.0.1/24 fd10::1/64
host v1 ether sw1 ip 10.1.0.3/24 10.1.10.3/24@10
host w1 iwarp 127.0.0.1
host w2 iwarp 127.83.13.2
host w3 roce 127.83.13.3
"""


@pytest.fixture(params=["ib", "roce", "iwarp"])
def at(request):
    """The fabric, a host, its device, and the interface of its port."""
    if request.param == "ib":
        return request.getfixturevalue("shared_fabric"), "h1", "muslin0", "ib0"
    fabric = request.getfixturevalue("ethernet")
    return (fabric, "r1", "rxe0", "eth0") if request.param == "roce" else (fabric, "w1", "siw0", "lo")


PCI = """
import os, sys
device, netdev = sys.argv[1:]
link = f"/sys/class/infiniband/{device}"
slot = os.path.basename(os.readlink(f"{link}/device"))
path = os.path.realpath(f"{link}/device")
assert os.path.islink(link) and path.startswith("/sys/devices/pci") and os.path.basename(path) == slot, path
assert os.path.realpath(f"/sys/bus/pci/devices/{slot}") == path
assert os.path.realpath(f"{link}/device/infiniband/{device}") == os.path.realpath(link)
assert os.listdir(f"{path}/infiniband_verbs") == ["uverbs0"]
assert os.path.realpath("/sys/class/infiniband_verbs/uverbs0/device") == path
assert os.listdir(f"{path}/net") == [netdev]
def read(name, at=path):
    return open(f"{at}/{name}").read().strip()
def mode(name, at=link):
    return oct(os.stat(f"{at}/{name}").st_mode & 0o777)
assert read("class") == ("0x020700" if netdev == "ib0" else "0x020000")
assert int(read("vendor"), 16) and int(read("device"), 16) and int(read("numa_node")) == 0
assert read("current_link_speed") == "32.0 GT/s PCIe" and read("current_link_width") == "16"
assert f"PCI_SLOT_NAME={slot}" in read("uevent") and read("modalias")
driver = os.path.basename(os.path.realpath(f"{link}/device/driver"))
assert os.path.realpath(f"{path}/driver") == f"/sys/bus/pci/drivers/{driver}"
assert driver in os.listdir("/sys/bus/pci/drivers") and f"DRIVER={driver}" in read("uevent")
assert os.path.realpath(f"/sys/bus/pci/drivers/{driver}/{slot}") == path
assert os.path.isdir(f"/sys/bus/pci/drivers/{driver}/module")
assert all(len(line.split()) == 3 for line in read("resource").splitlines()) and mode("resource", path) == "0o444"
os.chdir(f"{link}/device")
assert os.getcwd() == path
root = os.open("/", os.O_RDONLY)
assert os.readlink(link[1:], dir_fd=root) == os.readlink(link)
assert os.stat("sys/class/infiniband", dir_fd=root)
assert mode("node_guid") == mode("ports/1/state") == mode("vendor", path) == "0o444"
assert mode("node_desc") == mode("numa_node", path) == "0o644"
assert mode("ports/1/gids") == mode("net", path) == "0o755"
print("END")
"""


def test_pci_function(at):
    fabric, host, device, netdev = at
    assert "END" in fabric.run(host, sys.executable, "-c", PCI, device, netdev)


FUNCTIONS = """
import json, os
names = [name for kind in ("devices", "drivers") for name in os.listdir(f"/sys/bus/pci/{kind}")]
print(json.dumps({name: os.path.realpath(f"/sys/bus/pci/devices/{name}") for name in names if ":" in name}))
print(json.dumps([name for name in names if ":" not in name]))
"""


def test_functions_and_drivers_of_the_machine_stay(at):
    """Their resolved paths, too; the host's adapter and driver are added."""
    fabric, host, *_ = at
    here = [json.loads(line) for line in fabric.run(host, sys.executable, "-c", FUNCTIONS).splitlines()]
    own = subprocess.run([sys.executable, "-c", FUNCTIONS], stdout=subprocess.PIPE, text=True, check=True)
    machine = [json.loads(line) for line in own.stdout.splitlines()]
    assert here[0].items() > machine[0].items() and len(here[0]) == len(machine[0]) + 1
    assert sorted(set(here[1]) - set(machine[1])) == ["muslin"] and set(here[1]) > set(machine[1])


def test_functions_of_hwloc(at):
    """Its list of the machine's functions and of the devices on them."""
    if not shutil.which("lstopo-no-graphics"):
        pytest.skip("no hwloc here")
    fabric, host, device, netdev = at
    out = fabric.run(host, "lstopo-no-graphics", "--whole-io", "--of", "console")
    assert f'OpenFabrics "{device}"' in out, out
    assert netdev == "lo" or f'Net "{netdev}"' in out, out


MODULES = ["ib_core", "ib_uverbs", "ib_umad", "ib_cm", "iw_cm", "rdma_cm", "rdma_ucm"]


def test_modules(at):
    """Programs look for them by name; IPoIB is of InfiniBand."""
    fabric, host, _, netdev = at
    out = fabric.run(host, "cat", *(f"/sys/module/{name}/initstate" for name in MODULES))
    assert out.split() == ["live"] * len(MODULES)
    fabric.run(host, "test", "-d", "/sys/module/ib_ipoib", status=0 if netdev == "ib0" else 1)


INTERFACE = """
import sys
def read(name):
    return open(f"/sys/class/net/{sys.argv[1]}/{name}").read().strip()
print(*(read(name) for name in sys.argv[2:]))
"""


def test_interface(shared_fabric, ethernet):
    def read(fabric, host, *names):
        return fabric.run(host, sys.executable, "-c", INTERFACE, *names).split()

    assert read(shared_fabric, "h3", "ib0", "mode", "pkey", "speed") == ["datagram", "0xffff", "200000"]
    assert read(ethernet, "r1", "eth0", "duplex") == ["full"]
    names = ["statistics/rx_packets", "statistics/tx_packets", "statistics/tx_bytes"]
    before = [int(n) for n in read(shared_fabric, "h3", "ib0", *names)]
    args = ["ibv_rc_pingpong", "-n", "50", "-s", "1024", "-p", str(free_port())]
    shared_fabric.pair(("h3", *args), ("h4", *args, shared_fabric.ip("h3")))
    after = [int(n) for n in read(shared_fabric, "h3", "ib0", *names)]
    assert after[0] - before[0] >= 50 and after[1] - before[1] >= 50 and after[2] - before[2] > 50 * 1024
    with shared_fabric.fault("h2:1", "down"):
        assert read(shared_fabric, "h2", "ib0", "speed", "statistics/collisions") == ["-1", "0"]


# As ibdev2netdev and its like find a device's interface: the port's number, and the PCI function that both are on.
IBDEV2NETDEV = r"""
for dev in /sys/class/infiniband/*; do
    slot=$(readlink -f "$dev/device")
    for port in "$dev"/ports/*; do
        for net in "$dev"/device/net/*; do
            [ "$(readlink -f "$net/device")" = "$slot" ] || continue
            [ "$(($(cat "$net/dev_port") + 1))" = "${port##*/}" ] || continue
            driver=$(basename "$(readlink -f "$slot/driver")")
            echo "${dev##*/} port ${port##*/} ==> ${net##*/} ($(cat "$net/operstate")) $driver ${slot##*/}"
        done
    done
done
"""


@pytest.mark.parametrize(
    "path",
    ["//sys//class//net//ib0//address", "/sys/./class/infiniband/muslin0/./node_guid", "//dev/infiniband/.//uverbs0"],
)
def test_empty_components_of_a_path(shared_fabric, path):
    """path_resolution(7): they and "." name no other file. ibacm reads the addresses of its endpoints so."""
    shared_fabric.run("h1", "test", "-r", path)
    shared_fabric.run("h1", "dd", f"if={path}", "count=0")


def test_script_like_ibdev2netdev(shared_fabric, ethernet):
    out = shared_fabric.run("h1", "sh", "-c", IBDEV2NETDEV).strip()
    assert out == "muslin0 port 1 ==> ib0 (up) muslin 0000:ef:00.0"
    out = ethernet.run("r1", "sh", "-c", IBDEV2NETDEV).strip()
    assert out == "rxe0 port 1 ==> eth0 (up) muslin 0000:ef:00.0"


def test_state_changes_are_seen(shared_fabric):
    """Also in files without write permission."""
    state = ["cat", "/sys/class/infiniband/muslin0/ports/1/state", "/sys/class/net/ib0/operstate"]
    assert shared_fabric.run("h2", *state).split() == ["4:", "ACTIVE", "up"]
    with shared_fabric.fault("h2:1", "down"):
        assert shared_fabric.run("h2", *state).split() == ["1:", "DOWN", "down"]


INVALID = """
import errno, sys
for name in sys.argv[1:]:
    try:
        print(open("/sys/class/infiniband/" + name).read().strip())
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


def test_attributes_of_gids(shared_fabric, ethernet):
    """The kernel has these files on InfiniBand, too. Its GIDs have no interface: the read fails."""

    def read(fabric, host, *names):
        return fabric.run(host, sys.executable, "-c", INVALID, *names).splitlines()

    ports = "muslin0/ports/1/gid_attrs/"
    assert read(shared_fabric, "h1", ports + "types/0", ports + "ndevs/0") == ["IB/RoCE v1", "EINVAL"]
    ports = "rxe0/ports/1/gid_attrs/"
    assert read(ethernet, "r1", ports + "types/0", ports + "ndevs/0") == ["RoCE v2", "eth0"]
    assert read(ethernet, "v1", ports + "ndevs/0", ports + "ndevs/1") == ["eth0", "eth0.10"]
