# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Handlers of signals that interrupt calls of the preload library."""

import pytest


@pytest.mark.parametrize("kind", ["descriptors", "forks"])
def test_handler(shared_fabric, program, kind):
    assert shared_fabric.run("h2", program("handlers"), kind, timeout=20) == f"{kind}: ok\n"
