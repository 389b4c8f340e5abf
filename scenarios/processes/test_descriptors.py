# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
File descriptor numbers of a program with an open device: dup2() and close_range() act as without the preload library.
"""

import pytest

LINES = (
    "opened",
    "a dup2() that fails",
    "a dup3() that fails",
    "a dup2() to itself",
    "a close_range() that fails",
    "dup2() to every number",
    "nothing is written there",
    "closed, with a duplicate",
    "a write to a channel",
    "each other number closed by syscall()",
    "closed by a system call, and the number used again",
)


def test_numbers(shared_fabric, program):
    said = shared_fabric.run("h2", program("descriptors"), status=None)
    assert said.splitlines() == list(LINES), said


def test_numbers_below_a_small_limit(shared_fabric, program):
    said = shared_fabric.run("h2", program("descriptors"), "few", status=None)
    assert said.splitlines() == ["opened", "dup2() to each number below a small limit"], said


def test_numbers_that_the_library_has_lost(shared_fabric, program):
    """A program closes them by inline system calls, and opens its own file there: errors, but no byte in that file."""
    said = shared_fabric.run("h2", program("descriptors"), "lost", status=None)
    lines = ["opened", "memory", "a post after the library's numbers have been closed", "a command"]
    assert said.splitlines() == [*lines, "a child has the memory", "nothing is written to the program's file"], said


def test_threads_poll_while_the_device_is_closed(shared_fabric, program):
    """They wait on the page of the device that another one closes, and unmaps; those that continue do not delay it."""
    assert "60 times" in shared_fabric.run("h2", program("poll_and_close"))


def test_a_thread_with_priority_closes_the_device(shared_fabric, program):
    said = shared_fabric.run("h2", program("poll_and_close"), "priority")
    if "not permitted" in said:
        pytest.skip("needs CAP_SYS_NICE")
    assert said == "opened and closed 60 times\n"


def test_files_of_events(shared_fabric, program):
    """poll(), and reads that have not the size of an event."""
    rows = [
        "poll() without an event",
        "a short read without an event",
        "poll() with an event",
        "a read of fewer bytes than an event has",
        "a read with room for several",
    ]
    lines = [f"{file}: {row}" for file in ("completion channel", "asynchronous events") for row in rows]
    lines += ["uverbs: a read", "umad: poll() without a MAD"]
    lines += ["umad: a short write, and one of an agent that there is not", "issm: a read and a write"]
    lines += ["rdma_cm: poll() without an event", "rdma_cm: a read without an event", "rdma_cm: poll() with an event"]
    lines += ["rdma_cm: a read", "rdma_cm: an edge for each event", "rdma_cm: an event", "rdma_cm: the last one"]
    said = shared_fabric.run("h2", program("event_files"), shared_fabric.ip("h2"), status=None)
    assert said.splitlines() == lines, said


def test_few_left(shared_fabric, program):
    """What the program has no number for fails with EMFILE: it does not wait, nor use descriptor 0."""
    said = shared_fabric.run("h2", program("few_descriptors"), status=None)
    channel = "a completion channel"
    assert said.splitlines() == ["uverbs0", "umad0", "rdma_cm", channel, f"{channel} after others have failed"], said


@pytest.mark.parametrize("readers", [(), ("processes",)], ids=["threads", "processes"])
def test_readers_of_one_umad_file(shared_fabric, program, readers):
    """Half of them have room for a single MAD: longer records stay for the others, whole."""
    slow = f'LD_PRELOAD="$LD_PRELOAD:{program("slow_reads.so")}" exec "$@"'
    said = shared_fabric.run("h2", "sh", "-c", slow, "sh", program("umad_readers"), *readers)
    assert said == "1000 records, 500 of one MAD, 0 torn\n"
