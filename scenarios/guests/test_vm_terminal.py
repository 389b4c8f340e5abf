# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The shell of a guest on a terminal: its size, history, Ctrl-C, and what its end leaves.

    h1: the guest
"""

import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from muslin import wait_until

CTRL_A, CTRL_C, UP = b"\1", b"\3", b"\33[A"


class Terminal:
    """`muslin vm HOST` in the foreground of a terminal."""

    def __init__(self, fabric, scratch, *words):
        self.here, self.there = pty.openpty()
        self.resize(33, 101)
        self.before = self.modes()
        who = {} if fabric.user is None else {"user": fabric.user, "group": fabric.user, "extra_groups": []}
        self.popen = subprocess.Popen(
            [str(w) for w in (fabric.muslin, "vm", *words)],
            stdin=self.there,
            stdout=self.there,
            stderr=self.there,
            env={**fabric.env, "TERM": "xterm", "TMPDIR": str(scratch)},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            **who,
        )
        self.text = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.there, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.there), fcntl.fcntl(self.there, fcntl.F_GETFL) & os.O_NONBLOCK

    def expect(self, text, timeout=60):
        """Reads up to @text."""
        end = time.monotonic() + timeout
        while text not in self.text:
            assert time.monotonic() < end, f"no {text} in {self.text}"
            if select.select([self.here], [], [], 0.5)[0]:
                self.text += os.read(self.here, 4096)
        self.text = self.text.partition(text)[2]

    def say(self, keys, *texts):
        """Types @keys, and reads what they show, and the prompt."""
        os.write(self.here, keys)
        for text in (*texts, b"# "):
            self.expect(text)

    def children(self):
        path = pathlib.Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        return [pathlib.Path(f"/proc/{pid}") for pid in path.read_text().split()]

    def end(self, status):
        """By itself: nothing runs any more, and the terminal is as it was."""
        assert self.popen.wait(60) == status
        assert self.modes() == self.before

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        os.close(self.here)
        os.close(self.there)


@pytest.fixture
def scratch(shared_fabric, request):
    """Where the program makes its temporary directory."""
    folder = shared_fabric.folder / request.node.name
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def terminal(shared_fabric, scratch):
    found = Terminal(shared_fabric, scratch, "h1", "--snapshot")
    found.expect(b"# ", 550)
    yield found
    found.close()


@pytest.mark.guest
def test_shell_on_a_terminal(terminal):
    terminal.say(b"stty size; echo $TERM\r", b"33 101", b"xterm")
    terminal.resize(50, 150)
    terminal.say(b"until stty size | grep '50 1''50'; do sleep 0.1; done\r", b"50 150")
    terminal.say(b"echo fir''st\r", b"first")
    terminal.say(UP + b"\r", b"first\r")
    # In a shell of its own: the interactive one ignores the signal between its output and the start of sleep.
    os.write(terminal.here, b"sh -c 'echo sle\"\"eps; exec sleep 1000'\r")
    terminal.expect(b"sleeps")
    terminal.say(CTRL_C)
    terminal.say(b"echo status=$?\r", b"status=130")
    os.write(terminal.here, b"exit\r")
    terminal.end(0)


@pytest.mark.guest
@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP))
def test_signal_ends_guest_and_restores_terminal(terminal, scratch, number):
    processes = terminal.children()
    assert processes and terminal.modes() != terminal.before and list(scratch.iterdir())
    terminal.popen.send_signal(number)
    terminal.end(128 + number)
    assert not [p for p in processes if p.exists()] and not list(scratch.iterdir())


@pytest.mark.guest
def test_signals_that_follow_each_other_leave_no_files(terminal, scratch):
    """As of a session that ends: while the first one's handler runs."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
        terminal.popen.send_signal(number)
    assert terminal.popen.wait(60) in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    wait_until(lambda: not list(scratch.iterdir()), 20, "the end of the temporary directory")


@pytest.mark.guest
def test_qemu_ends_by_its_own_keys(terminal):
    os.write(terminal.here, CTRL_A + b"x")
    terminal.end(0)


@pytest.mark.guest
def test_killed_program_ends_its_guest(terminal, scratch):
    processes = terminal.children()
    terminal.popen.kill()
    wait_until(lambda: not [p for p in processes if p.exists()], 20, "the end of QEMU")
    assert not list(scratch.iterdir())
