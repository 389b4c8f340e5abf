# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The daemon's loop waits for no program: memory that is never provided, a program that offers copies, queues full of
unwritten entries. Only that program is affected; others have their bandwidth, and `muslin show` responds at once.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import time

import pytest
from muslin import Fabric, free_port, wait_until
from muslin.plugin import make_folder

SOON = 1.0  # seconds: without the threads a wait for a client had no limit
STOPPED = 1.5  # seconds: longer than the earlier limit of a wait for a copy


@pytest.fixture
def root_fabric(request, muslin_programs):
    """A fabric of root, if root runs the tests: only root may create a userfaultfd for its own accesses."""
    if os.geteuid():
        pytest.skip("a userfaultfd takes root")
    folder = make_folder(request.config, "muslin-t-")
    fabric = Fabric(muslin_programs, folder, f"root-{os.getpid()}")
    yield fabric.up()
    fabric.down()
    shutil.rmtree(folder)


def waited(pid):
    """Seconds that a process, or its first thread, has waited for a processor."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def others_go_on(fabric):
    """Two other hosts exchange messages, and the control socket responds, if it has a processor."""
    both = os.getpid(), fabric.daemon_pid
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(fabric.folder / "run" / fabric.name / "control.sock"))
        begin, busy = time.monotonic(), sum(map(waited, both))
        s.sendall(b'{"command": "show"}\n')
        assert json.loads(s.makefile().readline())["ok"]
        took, busy = time.monotonic() - begin, sum(map(waited, both)) - busy
    assert took - busy < SOON, (took, busy)
    args = ["ibv_rc_pingpong", "-p", free_port(), "-s", "1024", "-n", "200"]
    _, client = fabric.pair(("h2", *args), ("h3", *args, "localhost"))
    assert re.search(r"200 iters in [\d.]+ seconds", client), client


def test_memory_that_is_never_provided(root_fabric, program):
    stuck = root_fabric.start("h1", program("late"), "stuck").expect("userfaultfd: registering")
    others_go_on(root_fabric)
    others_go_on(root_fabric)
    stuck.kill()
    others_go_on(root_fabric)


def test_channel_that_is_locked(root_fabric, program):
    """A read into memory that is never provided: the kernel lets no other process read from the channel meanwhile."""
    stuck = root_fabric.start("h1", program("late"), "locked", root_fabric.ip("h1")).expect("reading")
    stuck.expect("destroyed")
    others_go_on(root_fabric)
    stuck.kill()
    others_go_on(root_fabric)


@pytest.mark.parametrize("threads", [[], ["threads"]], ids=["shared", "unshared"])
def test_memory_of_a_child(fabric, program, threads):
    """As with the kernel's current->mm: memory that a child registers is the child's, on any device."""
    out = fabric.run("h1", program("late"), "child", *threads)
    assert "the child holds X" in out and "the parent holds p" in out


def test_memory_that_is_freed(fabric, program):
    assert fabric.run("h1", program("late"), "dereg").split() == ["0", "written", "late"]


@pytest.mark.parametrize("kind", ["verbs", "umad", "control"])
def test_descriptors_that_close_late(fabric, program, kind):
    """Passed with messages, and left in the queue of a socket that is closed; their last close() takes an hour."""
    path = [fabric.folder / "run" / fabric.name / "control.sock"] if kind == "control" else []
    words = ["/usr/bin/python3", program("slow_descriptors.py"), kind, fabric.daemon_pid, *path]
    slow = fabric.start("h1", *words).expect("passed")
    for _ in range(3):
        others_go_on(fabric)
    waiting = fabric.show()["passed_descriptors"]["waiting"]
    slow.kill()
    assert waiting, "none of them was slow"
    wait_until(lambda: not fabric.show()["passed_descriptors"]["waiting"], 20, "the last one to be closed")


def test_queues_in_error(fabric, program):
    hog = fabric.start("h1", program("late"), "flush").expect("flushing")
    others_go_on(fabric)
    hog.kill()


def test_copies_that_are_not_needed(fabric, program):
    """The daemon probes whether it can access a program's memory, and uses its copy thread only if it cannot."""
    assert fabric.run("h1", "/usr/bin/python3", program("offer_copies.py")) == "offered: -22\n"


def unreadable(fabric, path):
    """An executable that cannot be read: process_vm_*() fails for such a process, so a thread of it copies."""
    to = fabric.folder / f"unreadable-{path.name}"
    shutil.copy(path, to)
    to.chmod(0o111)
    return to


def test_pages_that_come_late(root_fabric, program):
    """Each page is provided 20 ms after its access: transfers take long, and no other program waits."""
    slow = root_fabric.start("h1", program("late"), "slow").expect("slow")
    others_go_on(root_fabric)
    assert slow.running(), slow.output
    os.kill(slow.pid, signal.SIGUSR1)
    assert "\n0 bytes wrong" in slow.wait()


def slowly_copied(fabric, program, path, first=0):
    """The command prefix of a program whose copies take 30 ms each, and the first one @first seconds more."""
    preload = f'LD_PRELOAD="$LD_PRELOAD:{program("slow_copies.so")}" SLOW_COPIES_FIRST={first} exec "$@"'
    return ["sh", "-c", preload, "sh", unreadable(fabric, pathlib.Path(path))]


def test_copies_that_come_late(fabric, program):
    """The first one takes more than a second; it must not end the following ones."""
    slow = fabric.start("h1", *slowly_copied(fabric, program, program("late"), 1), "copies").expect("slow")
    others_go_on(fabric)
    assert "\n0 bytes wrong" in slow.wait()
    assert "copies for the daemon" in fabric.daemon_log()


def test_registration_that_waits(fabric, program):
    """
    Registration blocks on its memory, in one thread: others continue, on that context and another one, and so do
    children.
    """
    out = fabric.run("h1", *slowly_copied(fabric, program, program("late"), 3600), "beside", timeout=30)
    assert out.splitlines() == [f"{who} goes on" for who in ("the same context", "another context", "a child")]


@pytest.mark.parametrize("end", ["destroy", "error", "reset"])
def test_queue_pair_that_ends_at_once(fabric, program, end):
    """Requests posted before the end are sent, as by hardware, however late their payload is read."""
    post = slowly_copied(fabric, program, program("post_and_destroy"))
    assert fabric.run("h1", *post, end) == "received 10\n"


def test_group_that_is_left_at_once(fabric, program):
    """The same of a sender that leaves its multicast group, whose routes the subnet manager then changes."""
    args = ["-m", "239.1.2.3", "-C", "10", "-p", "0x0002", "-b"]
    receiver = fabric.start("h1", "stdbuf", "-oL", "mckey", *args, fabric.ip("h1")).expect("joined")
    mckey = slowly_copied(fabric, program, shutil.which("mckey"))
    fabric.run("h5", *mckey, *args, fabric.ip("h5"), "-s")
    assert "return status 0" in receiver.wait(30)
    assert "copies for the daemon" in fabric.daemon_log()


@pytest.mark.parametrize("copies", [False, True], ids=["moved", "copied"])
@pytest.mark.parametrize("hosts", [("h1", "h5"), ("w1", "w2")], ids=["infiniband", "iwarp"])
def test_programs_that_are_stopped(new_fabric, hosts, copies):
    """
    SIGSTOP during traffic, first of one end, then of the other: each continues, and no byte is wrong (rping -V).
    Programs with threads share no memory with the daemon. A program that copies for the daemon transfers nothing while
    it is stopped.
    """
    net = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
    fabric = new_fabric.up(f"leafs 2 spines 2 hosts 4\nhost w1 iwarp {net}.1\nhost w2 iwarp {net}.2\n")
    rping = pathlib.Path(shutil.which("rping"))
    args = ["stdbuf", "-oL", unreadable(fabric, rping) if copies else rping, "-V", "-v", "-S", "64"]
    args += ["-p", free_port(), "-a", fabric.ip(hosts[0]), "-C", "100000000"]
    client = fabric.host(hosts[1])
    sent = client.counters["port_xmit_packets"]
    ends = fabric.start_pair(
        (hosts[0], *args, "-s"),
        (hosts[1], *args, "-c"),
        lambda: client.counters["port_xmit_packets"] > sent + 1000,
        what="a connection",
    )

    def pings():
        return min(end.output.count("ping data") for end in ends)

    for victim in ends:
        before = pings()
        wait_until(lambda before=before: pings() > before, 20, "a message")
        os.kill(victim.pid, signal.SIGSTOP)
        begin = time.monotonic()
        while time.monotonic() < begin + STOPPED:
            others_go_on(fabric)
        assert all(end.running() for end in ends), ends
        os.kill(victim.pid, signal.SIGCONT)
    before = pings()
    wait_until(lambda: pings() > before, 20, "a message after both went on")
    for end in ends:
        end.kill()
        assert "data verification failed" not in end.output
    for end in ends:
        assert (f"process {end.pid} copies for the daemon" in fabric.daemon_log()) == copies
