# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program under test: started, watched, and ended with all processes that it started."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import FrameType
from typing import IO, TypeVar, Union

from .errors import ProcessFailed, WaitTimeout
from .errors import hide as __tracebackhide__  # noqa: F401

T = TypeVar("T")
StrPath = Union[str, "os.PathLike[str]"]
PORT_BLOCK = 64


def _setpriv(user: int | None) -> list[str]:
    """
    Before a command: it runs as @user, and the kernel kills it when the test process ends in any way (parent-death
    signal). A preexec_fn of Python's takes three times as long: it needs a fork, which copies the page tables.
    """
    who = [] if user is None else [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", "--pdeathsig", "KILL", *who, "--"]


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Defers a Ctrl-C until a program that is being started is known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])


@functools.cache
def _port_block(pid: int) -> tuple[socket.socket, Iterator[int]]:
    """
    Ports that no other process of this network namespace hands out while this one, @pid, holds the abstract address of
    their block. They are below those that Linux gives to clients.
    """
    starts = range(20000, 32768 - PORT_BLOCK, PORT_BLOCK)
    for start in random.SystemRandom().sample(starts, len(starts)):
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(f"\0muslin-ports-{start}")
        except OSError as e:
            holder.close()
            if e.errno != errno.EADDRINUSE:
                raise
        else:
            return holder, itertools.cycle(range(start, start + PORT_BLOCK))
    raise OSError(errno.EADDRINUSE, "other processes hold all blocks of ports")


def free_port() -> str:
    """An unused TCP port, as text. Parallel processes get different ones, also before a program listens there."""
    _, ports = _port_block(os.getpid())
    # Linux keeps the port of a closed connection for a minute (TIME_WAIT). A server needs SO_REUSEADDR for such a port,
    # so these are only taken when there is no other one left.
    for reuse in (0, 1):
        for port in itertools.islice(ports, PORT_BLOCK):
            with socket.socket() as s, contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
                s.bind(("", port))
                return str(port)
    raise OSError(errno.EADDRINUSE, "all ports of this process's block are in use")


def wait_until(
    condition: Callable[[], T],
    timeout: float = 60.0,
    what: str = "the condition",
    interval: float | None = None,
    *,
    least: float = 0.05,
    most: float = 0.25,
) -> T:
    """
    Polls @condition until it returns a true value, and returns that; raises WaitTimeout after @timeout seconds. It
    polls each @interval seconds, or (None) after @least and then less often, at last each @most, since a condition
    often runs a program.
    """
    pause = interval or least
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise WaitTimeout(f"{what} did not happen within {timeout:g} s (last: {value!r})")
        time.sleep(pause)
        pause = interval or min(1.2 * pause, most)


class Group(subprocess.Popen[bytes]):
    """
    A program as the leader of a process group. When it has been reaped, its ID is that of the group only while children
    are left; later another program may get it, which signals for this group must not reach.
    """

    left = True  # the group has, or may have, processes

    def _look(self) -> None:
        if self.left and self.returncode is not None:
            with contextlib.suppress(PermissionError):
                try:
                    os.killpg(self.pid, 0)
                except ProcessLookupError:
                    self.left = False

    def poll(self) -> int | None:
        super().poll()
        self._look()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        status = super().wait(timeout)
        self._look()
        return status


class Process:
    """One program in a session of its own, its output (both streams) in a file that expect() reads."""

    def __init__(
        self,
        argv: Iterable[object],
        log: StrPath,
        *,
        env: Mapping[str, str] | None = None,
        cwd: StrPath | None = None,
        user: int | None = None,
        stdin: int | IO[bytes] | None = None,
        pass_fds: Collection[int] = (),
    ) -> None:
        self.argv = [str(a) for a in argv]
        self.log = pathlib.Path(log)
        self._start = functools.partial(
            Group,
            [*_setpriv(user), *self.argv],
            stdin=stdin or subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self.restart()

    def restart(self) -> None:
        """Ends the running program and starts it again, with an empty output."""
        if hasattr(self, "popen"):
            self.kill()
        with self.log.open("wb") as out, _interrupts_later():
            self.popen = self._start(stdout=out)

    @property
    def output(self) -> str:
        """What it has printed until now, to both streams."""
        return self.log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self.popen.pid

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def expect(self, text: str, timeout: float = 60.0) -> Process:
        """Waits until the output contains @text."""

        def seen() -> bool:
            if text in self.output:
                return True
            if not self.running() and text not in self.output:
                raise ProcessFailed(f"{self} ended before it printed {text!r}:\n{self.output}")
            return False

        try:
            wait_until(seen, timeout, f"{text!r} in the output of {self}", 0.05)
        except WaitTimeout as e:
            raise WaitTimeout(f"{e}:\n{self.output}") from None
        return self

    def wait(self, timeout: float = 60.0, status: int | None = 0) -> str:
        """Waits for the end, checks the exit status (None: any) and returns the output."""
        try:
            got = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ProcessFailed(f"{self} still ran after {timeout:g} s:\n{self.output}") from None
        if status is not None and got != status:
            raise ProcessFailed(f"{self} ended with {got}, not {status}:\n{self.output}")
        return self.output

    def signal(self, sig: int) -> None:
        """Sends a signal to the program and its children. No effect if it has ended."""
        if self.popen.left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sig)

    def kill(self) -> None:
        """Ends the program and its children, and reaps it. No effect if it has ended."""
        self.signal(signal.SIGKILL)
        self.popen.wait()
        self.popen.left = False

    def __str__(self) -> str:
        return f"`{' '.join(self.argv)}`"
