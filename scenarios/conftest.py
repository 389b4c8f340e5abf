# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What scenarios share: a pair of guests."""

import pytest


@pytest.fixture(scope="module")
def guests(shared_fabric):
    """Guests on h1 and h5, which are on different leafs, both with ib0 up. Whatever a test does to them it undoes."""
    vms = [shared_fabric.vm(host) for host in ("h1", "h5")]
    for vm in vms:
        vm.wait_ib0()
    yield vms
    for vm in vms:
        vm.stop()
