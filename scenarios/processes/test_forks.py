# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Children of a program with registered memory, which the daemon maps: each gets a copy, by all ways to fork."""

import pytest

KINDS = ["fork", "_Fork", "clone", "syscall", "clone3", "raw", "dontfork", "wipe", "threads", "vfork", "inherited"]


@pytest.mark.parametrize("kind", [*KINDS, "linker", "waiting", "numbers"])
def test_child(shared_fabric, program, kind):
    said = shared_fabric.run("h2", program("forks"), kind)
    assert said.strip() == f"{kind}: ok", said


def test_child_after_chroot(shared_fabric, program):
    said = shared_fabric.run("h2", program("forks"), "chroot")
    if said == "chroot: not permitted\n":
        pytest.skip("needs root or a user namespace")
    assert said == "chroot: ok\n"


def test_allocator(shared_fabric, program):
    """A library that takes its lock before fork(), and calls the preload library with it."""
    preload = f'LD_PRELOAD="$LD_PRELOAD:{program("allocator.so")}" exec "$@"'
    assert shared_fabric.run("h2", "sh", "-c", preload, "sh", program("forks"), "allocator") == "allocator: ok\n"
