# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A shell command in the background of a guest: started, watched, and ended with all processes that it started."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from .errors import ProcessFailed
from .errors import hide as __tracebackhide__  # noqa: F401
from .process import wait_until

if TYPE_CHECKING:
    from .vm import VM

KILLED = 137


class Job:
    """@command in a session of its own in the guest @vm, both streams in /tmp/@name.log there. Used like a Process."""

    def __init__(self, vm: VM, command: str, name: str) -> None:
        self.vm, self.command, self.name, self.log = vm, command, name, f"/tmp/{name}.log"
        self.began = time.time()
        self.end = f"/tmp/{name}.{vm.sent}.end"
        told = f"sh -c {shlex.quote(command)}; echo $? >{self.end}"
        self.pid = int(vm.run(f"setsid sh -c {shlex.quote(told)} >{self.log} 2>&1 </dev/null & echo $!"))

    @property
    def output(self) -> str:
        return self.vm.run(f"cat {self.log}")

    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        said = self.vm.run(f"[ -d /proc/{self.pid} ] || cat {self.end} 2>/dev/null || echo {KILLED}")
        return int(said) if said else None

    def running(self) -> bool:
        return self.status() is None

    def wait(self, timeout: float = 60.0, status: int | None = 0) -> str:
        """Waits for the end, checks the exit status (None: any) and returns the output."""
        try:
            wait_until(lambda: not self.running(), timeout, str(self), 0.2)
        except AssertionError:
            self.kill()
            raise ProcessFailed(f"{self} still ran after {timeout:g} s:\n{self.output}") from None
        got = self.status()
        if status is not None and got != status:
            raise ProcessFailed(f"{self} ended with {got}, not {status}:\n{self.output}")
        return self.output

    def kill(self) -> None:
        """Ends the command and the processes that it started. No effect if it has ended."""
        self.vm.run(f"kill -9 -{self.pid} 2>/dev/null; while [ -d /proc/{self.pid} ]; do sleep 0.05; done")

    def __str__(self) -> str:
        return f"`{self.command}` in the guest on {self.vm.host}"
