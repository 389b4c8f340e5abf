# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests on hosts of a fabric, controlled by commands over a virtio port."""

from __future__ import annotations

import base64
import contextlib
import math
import os
import re
import secrets
import shlex
import signal
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .errors import ProcessFailed, WaitTimeout
from .errors import hide as __tracebackhide__  # noqa: F401
from .job import Job
from .process import wait_until

if TYPE_CHECKING:
    from .fabric import Fabric

SPLAT = re.compile(
    r"BUG:|WARNING: CPU|Oops|general protection(?! fault ip:)|Kernel panic|KASAN|UBSAN|rcu: INFO|blocked for more than|"
    r"possible recursive locking|refcount_t:|list_(add|del) corruption|Call Trace:"
)
MODELS = {"muslin": "muslin0", "connectx": "mlx5_0"}  # of the adapter, and the guest's name for its first one
TIMED_OUT = -1  # a guest's response
GRACE = 15  # time-out in seconds of a guest's response
PLAIN = {*range(0x21, 0x7F)} - {ord("\\")}  # what the guest's printf %b leaves as it is
READY = b"muslin: the agent is ready\n"  # printed by the guest when it accepts commands


class VM:
    """A guest on @host ("h1", or "h1,h2" for two HCAs), started by `muslin vm`; ready when it accepts commands."""

    def __init__(self, fabric: Fabric, host: object, *options: object, timeout: float = 120.0) -> None:
        n = next(fabric.count)
        self.fabric = fabric
        self.host: str = str(host)
        words = ["--model", fabric.env.get("MUSLIN_MODEL", "muslin"), *map(str, options)]
        self.model = words[len(words) - words[::-1].index("--model")]
        self.console = fabric.folder / f"{n:03}-{self.host.replace(',', '+')}.console"
        self.sock, agent = socket.socketpair()
        with agent:
            own = ("--agent", agent.fileno(), "--console", self.console)
            self.process = fabric.start_muslin("vm", host, *own, *options, pass_fds=[agent.fileno()])
        self.dmesg_file = self.console.with_suffix(".dmesg")
        self.buffer = b""
        self.told: set[str] = set()
        self.jobs: list[Job] = []
        self.sent: int = 0
        self.delimiter = secrets.token_hex(8)
        try:
            self._wait_ready(timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.process.output[-2000:]}\n{self.console_text()[-4000:]}") from None

    def _wait_ready(self, timeout: float) -> None:
        self._read_until(READY, time.monotonic() + timeout)

    @property
    def device(self) -> str:
        """The name of the RDMA device, of the first one if there are several."""
        return MODELS[self.model]

    def console_text(self) -> str:
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def _fill(self, end: float) -> None:
        self.sock.settimeout(max(0.01, end - time.monotonic()))
        try:
            data = self.sock.recv(65536)
        except socket.timeout:  # before Python 3.10 it is no TimeoutError
            said = self.console_text()[-4000:]
            raise AssertionError(f"the guest on {self.host} did not respond in time:\n{said}") from None
        except ConnectionResetError:  # a command was on its way
            data = b""
        if not data:
            said = f"{self.process.wait(GRACE, status=None)[-2000:]}\n{self.console_text()[-4000:]}"
            raise AssertionError(f"the guest on {self.host} has exited:\n{said}")
        self.buffer += data

    def _read_until(self, last: bytes, end: float) -> bytes:
        """What comes before the bytes @last, which are taken, too."""
        seen = 0
        while (at := self.buffer.find(last, seen)) < 0:
            if last != READY and (again := self.buffer.find(READY, seen)) >= 0:
                self.buffer = self.buffer[again + len(READY) :]
                raise AssertionError(f"the guest on {self.host} has booted again:\n{self.console_text()[-4000:]}")
            seen = max(0, len(self.buffer) - len(READY))
            self._fill(end)
        got, self.buffer = self.buffer[:at], self.buffer[at + len(last) :]
        return got

    def call(self, command: str | Iterable[object], timeout: float = 60.0) -> tuple[int, str]:
        """Runs a shell command and returns (exit status, output); kills one that takes longer, and raises."""
        text = command if isinstance(command, str) else shlex.join(map(str, command))
        began = time.monotonic()
        self._send(text, timeout)
        number, status, out = 0, 0, ""
        while number != self.sent:
            number, status, out = self._answer(began + timeout + GRACE)
        if status == TIMED_OUT:
            raise AssertionError(f"in the guest on {self.host} `{text}` took more than {timeout:g} s:\n{out}")
        return status, out

    def _send(self, text: str, timeout: float) -> None:
        self.sent += 1
        self.sock.settimeout(GRACE)
        escaped = "".join(chr(c) if c in PLAIN else f"\\0{c:03o}" for c in text.encode())
        self.sock.sendall(f"{self.sent} {math.ceil(timeout)} {self.delimiter} {escaped}\n".encode())

    def _answer(self, end: float) -> tuple[int, int, str]:
        """Reads the next response: to this command, or to an earlier one that timed out."""
        out = self._read_until(f"{self.delimiter} ".encode(), end)
        number, status = map(int, self._read_until(b"\n", end).split())
        return number, status, out.decode(errors="replace")

    def run(self, command: str | Iterable[object], timeout: float = 60.0, status: int | None = 0) -> str:
        """Runs a shell command to its end, checks its status (None: any) and returns its output."""
        got, out = self.call(command, timeout)
        if status is not None and got != status:
            raise ProcessFailed(f"in the guest on {self.host} `{command}` ended with {got}, not {status}:\n{out}")
        return out

    def start(self, command: str, name: str = "job") -> Job:
        """Starts a shell command in the background, its output in /tmp/NAME.log, and returns it."""
        self.jobs.append(Job(self, command, name))
        return self.jobs[-1]

    def log(self, name: str = "job") -> str:
        return self.run(f"cat /tmp/{name}.log", status=None)

    def read(self, path: str) -> bytes:
        """The bytes of a file in the guest."""
        return base64.b64decode(self.run(f"base64 {path}"))

    def wait(self, command: str | Iterable[object], timeout: float = 60.0, what: str | None = None) -> str:
        """Waits until the command succeeds; returns its output."""

        def done() -> str | None:
            status, out = self.call(command)
            return out or " " if status == 0 else None

        what = what or f"`{command}` in the guest on {self.host}"
        return wait_until(done, timeout, what, least=0.1, most=0.5) or ""  # an emulated processor has others to run

    def wait_ib0(self, dev: str = "ib0", timeout: float = 60.0) -> VM:
        """Waits until the interface has its carrier: it has joined the broadcast group."""
        try:
            self.wait(f"[ \"$(cat /sys/class/net/{dev}/carrier)\" = 1 ]", timeout)
        except WaitTimeout:
            self.check()  # a crash of the driver is reported in the kernel's log only
            raise
        return self

    def ping(self, to: object, *, size: int = 56, count: int = 3) -> None:
        """Pings an address of either family; every echo must return."""
        out = self.run(f"ping -c {count} -i 0.2 -W 5 -s {size} {to}")
        if f" {count} received" not in out:
            raise AssertionError(f"from the guest on {self.host}:\n{out}")

    def reboot(self, timeout: float = 120.0) -> None:
        """Reboots at once, as a watchdog's reset: without unmounting, and without notice to anybody."""
        self._send("reboot -f", timeout)
        self.buffer = b""
        self._wait_ready(timeout)

    def dmesg(self) -> str:
        return self.run("dmesg")

    def kernel_text(self) -> str:
        """The kernel's log, as far as it is still available."""
        try:
            return self.dmesg() if self.process.running() else self.console_text()
        except (AssertionError, OSError):
            return self.console_text()

    def check(self) -> None:
        """Raises if the kernel has logged a new problem."""
        logs = (self.kernel_text(), self.console_text())  # the latter also of boots before this one
        bad = {line for log in logs for line in log.splitlines() if SPLAT.search(line)} - self.told
        self.told |= bad
        if bad:
            log = next(log for log in logs if any(line in log for line in bad))
            at = min(log.index(line) for line in bad if line in log)
            said = log[max(0, at - 1000) : at + 5000]
            raise AssertionError(f"the kernel of the guest on {self.host} complains:\n{said}")

    def keep(self) -> str:
        """Writes the kernel's log beside the console, in the fabric's directory, and returns it."""
        text = self.kernel_text()
        self.dmesg_file.write_text(text)
        return text

    def job_logs(self, since: float = 0.0) -> list[tuple[str, str]]:
        """
        Of jobs that run, or were started after @since: [(job, end of its output)]. The outputs are also written beside
        the console. Those of a guest that does not respond are omitted.
        """
        logs = {}
        with contextlib.suppress(AssertionError, OSError):
            for job in self.jobs if self.process.running() else []:
                if job.began >= since or job.running():
                    out = self.call(f"tail -c 1000000 {job.log}", timeout=10)[1]
                    self.console.with_suffix(f".{job.name}.log").write_text(out)
                    logs[job.log] = (str(job), out[-4000:])
        return list(logs.values())

    def end(self) -> None:
        """Kills the guest without a shutdown: `muslin vm` kills QEMU at SIGTERM, and removes its files."""
        if self.process.running():
            os.kill(self.process.pid, signal.SIGTERM)
            with contextlib.suppress(ProcessFailed):
                self.process.wait(GRACE, status=None)
            self.process.kill()

    def stop(self) -> None:
        """Kills the guest without a shutdown. No effect if it has ended."""
        self.end()
        self.sock.close()
        if self in self.fabric.vms:
            self.fabric.vms.remove(self)
