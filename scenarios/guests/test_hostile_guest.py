# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A hostile guest has the device of host h1, whose adapter a program uses; the program must not be affected:

    h1: victim, hostile guest  ---- leaf1 ---- spines ---- leaf2 ----  h5: the victim's peer
"""

import pathlib
import re
import shutil

import pytest
from test_hostile import victims

MODES = ["rings", "descriptors", "memory", "commands", "handles", "config", "resets", "killed", "cut", "messages"]


@pytest.fixture
def hostile(request, fabric):
    """hostile(host, mode, seed) runs the program on that host's device and returns its output."""
    source = pathlib.Path(request.config.getoption("--muslin-build")) / "hostile-guest"
    program = shutil.copy(source, fabric.folder)

    def run(host, mode, seed=7):
        path = re.search(r"path=([^,\s]+)", fabric.command("vm", host, "--model", "muslin", "--print"))[1]
        return fabric._start([program, path, mode, seed]).wait(120)

    return run


@pytest.mark.parametrize("mode", MODES)
def test_others_continue(fabric, hostile, mode):
    daemon = fabric.daemon_pid
    with victims(fabric):
        assert f"{mode}: done, 0 wrong" in hostile("h1", mode)
        assert fabric.daemon_pid == daemon
