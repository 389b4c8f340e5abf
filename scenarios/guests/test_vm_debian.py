# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Debian as a user installs it, on a disk of its own (`muslin vm --image debian`): systemd, udev, cloud-init and the
distribution's packages alone. Its mlx5 finds a ConnectX, and cloud-init the seed. Only `make test-connectx` runs this:
the disk and the boots take minutes.

    h1 (guest: connectx)    h5 (host mode)
        leaf1 ------ spines ------ leaf2
"""

import json
import re

import pytest
from conftest import build_connectx
from endpoint import Endpoint, pair
from test_vm_connectx import warnings

pytestmark = [
    pytest.mark.guest,
    pytest.mark.model("connectx"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def debian(shared_fabric):
    build_connectx(shared_fabric)
    options = ["--image", "debian", "--model", "connectx", "--packages", "cloud-init"]
    vm = shared_fabric.vm("h1", *options, timeout=600)
    vm.run("cloud-init status --wait", 240)
    yield vm
    vm.stop()


def test_cloud_init_takes_the_seed(debian):
    """Without an error, from the data source that muslin writes: name, keys, and the keys of root."""
    result = json.loads(debian.run("cat /run/cloud-init/result.json"))["v1"]
    assert result["errors"] == [] and "NoCloud" in result["datasource"], result
    assert debian.run("hostname").strip() == "h1"
    key = debian.run("cat /root/.ssh/authorized_keys")
    assert "ssh-ed25519 " in key and debian.run("cat /home/debian/.ssh/authorized_keys").split()[1] in key


def test_driver_is_the_distributions(debian):
    assert re.search(r"^intree: +Y$", debian.run("modinfo mlx5_core"), re.M)
    assert "not found" in debian.run("modinfo muslin", status=1)


def test_probe_without_a_warning(debian):
    assert warnings(debian) == []


def test_ibstat(shared_fabric, debian):
    out = debian.run("ibstat")
    assert "CA type: MT4115" in out and f"Base lid: {shared_fabric.port('h1')['lid']}\n" in out


@pytest.mark.parametrize("server", ["guest", "host"])
def test_rping(shared_fabric, debian, server):
    """By IPoIB's addresses, both ways."""
    guest, host = Endpoint(shared_fabric, "h1", debian), Endpoint(shared_fabric, "h5")
    to, of = (guest, host) if server == "guest" else (host, guest)
    common = f"rping -a {to.address} -V -C 10"
    out, _ = pair(to, f"{common} -s", of, f"{common} -c -v")
    assert out.count("ping data") == 10


def test_ib_write_bw(shared_fabric, debian):
    guest, host = Endpoint(shared_fabric, "h1", debian), Endpoint(shared_fabric, "h5")
    out, _ = pair(host, "ib_write_bw -F -R -n 200", guest, f"ib_write_bw -F -R -n 200 {host.address}")
    assert "BW average" in out


def test_adapter_after_a_reboot(debian):
    debian.reboot(300)
    debian.wait("ibstat | grep -q 'State: Active'", 120)
