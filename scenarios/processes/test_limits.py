# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Resource limits of programs (setrlimit(2)) that the preload library must not exceed on their behalf."""

import re

import pytest
from muslin import free_port


@pytest.mark.parametrize("limit", ["fsize=1000000", "nofile=64", "as=6000000000"])
def test_pingpong(shared_fabric, limit):
    """RLIMIT_FSIZE limits memfds as well: a larger one would end the program by SIGXFSZ."""
    args = ["prlimit", f"--{limit}", "ibv_rc_pingpong", "-c", "-p", free_port(), "-n", "20"]
    for out in shared_fabric.pair(("h1", *args), ("h5", *args, "localhost")):
        assert re.search(r"20 iters in [\d.]+ seconds", out), out
