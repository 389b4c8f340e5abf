# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same tests on every kind of link."""

import pytest

IB = """\
leafs 2 spines 1 hosts 1
"""

ROCE = """\
ethernet sw1 mtu 4200
host h1 ether sw1 ip 192.168.1.1/24
host h2 ether sw1 ip 192.168.1.2/24
"""

# TCP on addresses of the machine: those of muslin_addresses() are no other worker's.
IWARP = """\
host h1 iwarp {}
host h2 iwarp {}
"""


@pytest.fixture(params=["ib", "roce", "iwarp"])
def wire(request):
    """The kind of link; `pytest -k roce` picks one."""
    return request.param


@pytest.fixture
def muslin_topology(wire, muslin_addresses):
    """What muslin_fabric is made of: hosts h1 and h2."""
    return {"ib": IB, "roce": ROCE, "iwarp": IWARP.format(*muslin_addresses(2))}[wire]
