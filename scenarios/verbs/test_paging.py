# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""On-demand paging of a program in host mode, whose pages come and go; that of guests is in test_vm_paging.py."""

import pytest


@pytest.mark.parametrize("region", [[], ["whole"]], ids=["explicit", "whole"])
def test_program(shared_fabric, program, region):
    assert shared_fabric.run("h1", program("paging"), *region, timeout=120) == "paged\n"
