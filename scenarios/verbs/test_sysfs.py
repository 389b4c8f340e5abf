# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Attributes of an adapter besides verbs: its PCI function in sysfs, and the network interfaces of its ports.

    h1 -- leaf1 ...       r1 -- sw1 -- v1 (VLAN 10)       w1: iWARP on the machine's lo
"""

import sys

import pytest

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
assert read("class") == ("0x020700" if netdev == "ib0" else "0x020000")
assert int(read("vendor"), 16) and int(read("device"), 16) and int(read("numa_node")) == 0
assert read("current_link_speed") == "32.0 GT/s PCIe" and read("current_link_width") == "16"
assert f"PCI_SLOT_NAME={slot}" in read("uevent") and read("modalias")
os.chdir(f"{link}/device")
assert os.getcwd() == path
root = os.open("/", os.O_RDONLY)
assert os.readlink(link[1:], dir_fd=root) == os.readlink(link)
assert os.stat("sys/class/infiniband", dir_fd=root)
def mode(name, at=link):
    return oct(os.stat(f"{at}/{name}").st_mode & 0o777)
assert mode("node_guid") == mode("ports/1/state") == mode("vendor", path) == "0o444"
assert mode("node_desc") == mode("numa_node", path) == "0o644"
assert mode("ports/1/gids") == mode("net", path) == "0o755"
print("END")
"""


def test_pci_function(at):
    fabric, host, device, netdev = at
    assert "END" in fabric.run(host, sys.executable, "-c", PCI, device, netdev)


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
