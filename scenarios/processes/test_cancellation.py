# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that are cancelled in calls of verbs, rdma_cm and sockets leave no lock, descriptor or listener behind."""

import pytest

KINDS = ["events", "registrations", "completions", "addresses", "interfaces", "close"]


@pytest.mark.parametrize("kind", KINDS)
def test_cancelled(shared_fabric, program, kind):
    said = shared_fabric.run("h2", program("cancelled"), kind, timeout=90)
    assert said.strip() == f"{kind}: ok", said
