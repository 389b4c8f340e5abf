# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Tests of other modules on the default fabric in two shards: each leaf with its four hosts and one spine is a daemon.

    daemon 1: h1-h4 - leaf1, spine1 ===== spine2, leaf2 - h5-h8 :daemon 2
"""

import pytest
from test_diags import (  # noqa: F401
    test_iblinkinfo,
    test_ibnetdiscover_finds_every_node,
    test_ibping,
    test_ibportstate_takes_a_link_down_and_up,
    test_ibtracert_uses_one_spine,
    test_lists,
    test_perfquery_counts_what_passed,
    test_routes,
    test_saquery,
    test_sminfo,
    test_smpquery,
)
from test_faults import test_a_killed_program_leaves_nothing, test_traffic_continues_by_the_other_spine  # noqa: F401
from test_rdmacm import (  # noqa: F401
    test_a_killed_server_is_a_disconnect,
    test_hosts_are_known_by_name,
    test_mckey,
    test_no_listener,
    test_rping_over_ipv6,
    test_rping_verifies_its_data,
    test_udaddy,
    test_unknown_address,
)


@pytest.fixture(scope="module")
def shared_fabric(muslin_make_fabric):
    f = muslin_make_fabric("sharded").up(None, "--shards", "2")
    yield f
    f.down()


@pytest.fixture
def fabric(muslin_new_fabric):
    return muslin_new_fabric.up(None, "--shards", "2")
