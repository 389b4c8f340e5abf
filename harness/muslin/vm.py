# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests on hosts of a fabric, driven by commands over a virtio port."""

import base64
import math
import re
import shlex
import socket
import time

from .errors import ProcessFailed, WaitTimeout
from .job import KILLED, Job
from .process import wait_until

SPLAT = re.compile(
    r"BUG:|WARNING: CPU|Oops|general protection|Kernel panic|KASAN|UBSAN|rcu: INFO|possible recursive locking|"
    r"blocked for more than|refcount_t:|list_(add|del) corruption|Call Trace:"
)
MODELS = {"muslin": "muslin0", "connectx": "mlx5_0"}  # of the adapter, and what the guest calls its first one
GRACE = 15  # seconds that a guest may take to answer
READY = "ready"  # what the guest says once it serves commands


class VM:
    """A guest on @host ("h1", or "h1,h2" for two HCAs), started by `muslin vm`; ready when it serves commands."""

    def __init__(self, fabric, host, *options, timeout=120.0):
        n = next(fabric.count)
        self.fabric, self.host = fabric, host
        words = ["--model", fabric.env.get("MUSLIN_MODEL", "muslin"), *map(str, options)]
        self.model = words[len(words) - words[::-1].index("--model")]
        self.console = fabric.folder / f"{n:03}-{host.replace(',', '+')}.console"
        self.sock, agent = socket.socketpair()
        with agent:
            options = ("--agent", agent.fileno(), "--console", self.console, *options)
            self.process = fabric.start_muslin("vm", host, *options, pass_fds=[agent.fileno()])
        self.dmesg_file = self.console.with_suffix(".dmesg")
        self.buffer = b""
        self.told = set()
        self.sent = 0
        try:
            self._wait_ready(timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.process.output[-2000:]}\n{self.console_text()[-4000:]}") from None

    def _wait_ready(self, timeout):
        end = time.monotonic() + timeout
        while self._line(end) != READY:
            pass

    @property
    def device(self):
        """The name of the RDMA device, the first one where there are several."""
        return MODELS[self.model]

    def console_text(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def _fill(self, end):
        self.sock.settimeout(max(0.01, end - time.monotonic()))
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            said = self.console_text()[-4000:]
            raise AssertionError(f"the guest on {self.host} did not answer in time:\n{said}") from None
        if not data:
            raise AssertionError(f"the guest on {self.host} is gone:\n{self.console_text()[-4000:]}")
        self.buffer += data

    def _line(self, end):
        while b"\n" not in self.buffer:
            self._fill(end)
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def call(self, command, timeout=60.0):
        """Runs a shell command and returns (exit status, output); one that takes longer is killed, and fails."""
        text = command if isinstance(command, str) else shlex.join(map(str, command))
        self._send(text, timeout)
        began = time.monotonic()
        number = 0
        while number != self.sent:
            number, status, out = self._answer(began + timeout + GRACE)
        if status == KILLED and time.monotonic() - began >= timeout:
            raise AssertionError(f"in the guest on {self.host} `{text}` took more than {timeout:g} s:\n{out}")
        return status, out

    def _send(self, text, timeout):
        self.sent += 1
        self.sock.settimeout(GRACE)
        self.sock.sendall(f"{self.sent} {math.ceil(timeout)} {base64.b64encode(text.encode()).decode()}\n".encode())

    def _answer(self, end):
        """The next one: to this command, or to one that nobody has waited for."""
        answer = self._line(end)
        if answer == READY:
            raise AssertionError(f"the guest on {self.host} has booted again:\n{self.console_text()[-4000:]}")
        number, status, size = map(int, answer.split())
        while len(self.buffer) < size:
            self._fill(end)
        out, self.buffer = self.buffer[:size], self.buffer[size:]
        return number, status, out.decode(errors="replace")

    def run(self, command, timeout=60.0, status=0):
        """Runs a shell command to its end, checks its status (None: any) and returns what it printed."""
        got, out = self.call(command, timeout)
        if status is not None and got != status:
            raise ProcessFailed(f"in the guest on {self.host} `{command}` ended with {got}, not {status}:\n{out}")
        return out

    def start(self, command, name="job"):
        """Starts a shell command in the background, its output in /tmp/NAME.log, and returns it."""
        return Job(self, command, name)

    def log(self, name="job"):
        return self.run(f"cat /tmp/{name}.log", status=None)

    def read(self, path):
        """The bytes of a file in the guest."""
        return base64.b64decode(self.run(f"base64 {path}"))

    def wait(self, command, timeout=30.0, what=None):
        """Until the command succeeds; returns its output."""

        def done():
            status, out = self.call(command)
            return out or " " if status == 0 else None

        return wait_until(done, timeout, what or f"`{command}` in the guest on {self.host}", 0.3)

    def wait_ib0(self, dev="ib0", timeout=30.0):
        """Until the interface has its carrier: it has joined the broadcast group."""
        try:
            self.wait(f"[ \"$(cat /sys/class/net/{dev}/carrier)\" = 1 ]", timeout)
        except WaitTimeout:
            self.check()  # a driver that has crashed says so in the kernel's log alone
            raise
        return self

    def ping(self, to, *, size=56, count=3):
        """Pings an address of either family; every echo comes."""
        out = self.run(f"ping -c {count} -i 0.2 -W 5 -s {size} {to}")
        if f" {count} received" not in out:
            raise AssertionError(f"from the guest on {self.host}:\n{out}")

    def reboot(self, timeout=120.0):
        """Boots again at once, as after a watchdog's reset: nothing is unmounted, nobody is told."""
        self._send("reboot -f", timeout)
        self.buffer = b""
        self._wait_ready(timeout)

    def dmesg(self):
        return self.run("dmesg")

    def kernel_text(self):
        """What the kernel has said, as far as that can still be had."""
        try:
            return self.dmesg() if self.process.running() else self.console_text()
        except (AssertionError, OSError):
            return self.console_text()

    def check(self):
        """No complaint of the kernel that it has not told before."""
        text = self.kernel_text()
        said = text if text == self.console_text() else text + self.console_text()  # of boots before this one, too
        bad = {line for line in said.splitlines() if SPLAT.search(line)} - self.told
        self.told |= bad
        if bad:
            raise AssertionError(f"the kernel of the guest on {self.host} complains:\n{said[-6000:]}")

    def keep(self):
        """Leaves what the kernel has said beside the console, in the fabric's folder, and returns it."""
        text = self.kernel_text()
        self.dmesg_file.write_text(text)
        return text

    def stop(self):
        """Pulls the plug. Harmless when the guest has ended."""
        if self.process.running():
            self.process.kill()
        self.sock.close()
        if self in self.fabric.vms:
            self.fabric.vms.remove(self)
