# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Limits: of programs, setrlimit(2), that the preload library must not exceed on their behalf; and muslind(8)'s."""

import re

import pytest
from muslin import free_port


@pytest.mark.parametrize("limit", ["fsize=1000000", "nofile=64", "as=6000000000"])
def test_pingpong(shared_fabric, limit):
    """RLIMIT_FSIZE limits memfds as well: a larger one would end the program by SIGXFSZ."""
    args = ["prlimit", f"--{limit}", "ibv_rc_pingpong", "-c", "-p", free_port(), "-n", "20"]
    for out in shared_fabric.pair(("h1", *args), ("h5", *args, "localhost")):
        assert re.search(r"20 iters in [\d.]+ seconds", out), out


CONTEXTS = """
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
setrlimit(RLIMIT_NOFILE, getrlimit(RLIMIT_NOFILE)[1:] * 2)
regions = [MR(PD(Context(name="muslin0")), 4096, 1) for _ in range(300)]
print("END")
"""


def test_devices_opened_by_a_process(shared_fabric):
    """A context for each thread: the memory of each is copied by a thread of the daemon."""
    assert shared_fabric.run("h1", "/usr/bin/python3", "-c", CONTEXTS) == "END\n"


def test_small_stacks(shared_fabric, program):
    """The preload library has no large buffers on stacks that were large enough without it."""
    assert shared_fabric.run("h2", program("small_stacks")) == "a thread\na handler of a signal\n"
