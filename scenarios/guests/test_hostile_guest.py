# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A hostile guest, or its QEMU, has the device of host h1, whose adapter a program uses; the program must not be affected:

    h1: victim, hostile guest  ---- leaf1 ---- spines ---- leaf2 ----  h5: the victim's peer
"""

import re
import shutil

import pytest
from test_hostile import victims

MODES = ["rings", "descriptors", "memory", "commands", "handles", "config", "resets", "killed", "cut", "messages"]
QEMU_MODES = ["messages", "cut", "maps", "shrunk", "killed"]


@pytest.fixture
def hostile(helper, fabric):
    """hostile(program, model, host, mode) runs the program on that host's device and returns its output."""

    def run(name, model, host, mode, seed=7):
        program = shutil.copy(helper(name), fabric.folder)
        line = fabric.command("vm", host, "--model", model, "--print")
        path = re.search(r'path(?:=|":")([^,"\s]+)', line)[1]
        return fabric._start([program, path, mode, seed]).wait(120)

    return run


@pytest.mark.parametrize("mode", MODES)
def test_others_continue(fabric, hostile, mode):
    daemon = fabric.daemon_pid
    with victims(fabric):
        assert f"{mode}: done, 0 wrong" in hostile("hostile-guest", "muslin", "h1", mode)
        assert fabric.daemon_pid == daemon


@pytest.mark.parametrize("mode", QEMU_MODES)
def test_others_continue_beside_a_hostile_qemu(fabric, hostile, mode):
    """Of a ConnectX, by vfio-user."""
    daemon = fabric.daemon_pid
    with victims(fabric):
        assert f"{mode}: done, 0 wrong" in hostile("hostile-qemu", "connectx", "h1", mode)
        assert fabric.daemon_pid == daemon
