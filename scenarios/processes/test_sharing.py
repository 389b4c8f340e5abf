# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Registered memory that the daemon maps: programs see no difference."""

import pytest
from test_iwarp import may_have_io_uring

LINES = (
    "shared, and its bytes are there",
    "written from one to the other",
    "registered twice",
    "a child has its own",
    "zeroes after MADV_DONTNEED",
    "written after MADV_FREE",
    "other memory at the same place",
    "pages of the heap",
    "not while there are threads",
)


def test_nothing_is_different(shared_fabric, program):
    said = shared_fabric.run("h2", "/usr/bin/python3", program("sharing.py"))
    assert said.splitlines() == list(LINES), said


@pytest.mark.parametrize("threads", [[], ["threads"]], ids=["shared", "unshared"])
def test_memory_that_is_protected(shared_fabric, program, threads):
    """mprotect() after the registration is no concern of the adapter, but other memory in its place is safe."""
    lines = ["RDMA WRITE to pages that are read-only", "to pages without access", "from pages without access"]
    lines += ["RDMA READ", "FETCH & ADD", "a file that is mapped there now has no byte of it"]
    said = shared_fabric.run("h2", program("protected"), *threads, status=None)
    assert said.splitlines() == lines, said


@pytest.mark.parametrize("order", ["before", "after"])
def test_memory_that_io_uring_has_pinned(shared_fabric, program, order):
    """The kernel's own reads into a fixed buffer reach the program, whichever registration of the memory came first."""
    if not may_have_io_uring():
        pytest.skip("no io_uring")
    assert shared_fabric.run("h2", program("pinned"), order) == "the file's bytes\n"
