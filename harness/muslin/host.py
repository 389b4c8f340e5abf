# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A host of a fabric, a link, and a capture: returned by Fabric.host(), Fabric.link() and Fabric.trace()."""

from __future__ import annotations

import pathlib
import signal
import subprocess
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .errors import FabricError
from .errors import hide as __tracebackhide__  # noqa: F401
from .process import Process, wait_until

if TYPE_CHECKING:
    from .fabric import Fabric
    from .fault import Fault
    from .vm import VM


class Host:
    """The host @name of @fabric. It formats as its name, so that it can be used in command lines."""

    def __init__(self, fabric: Fabric, name: str) -> None:
        self.fabric, self.name = fabric, name

    def run(self, *argv: object, timeout: float = 60.0, status: int | None = 0) -> str:
        """Runs a program on this host to its end and returns its output: Fabric.run()."""
        return self.fabric.run(self.name, *argv, timeout=timeout, status=status)

    def start(self, *argv: object) -> Process:
        """Starts a program on this host and returns its Process."""
        return self.fabric.start(self.name, *argv)

    def vm(self, *options: object, timeout: float = 300.0) -> VM:
        """Boots a guest on this host and returns its VM."""
        return self.fabric.vm(self.name, *options, timeout=timeout)

    def fault(self, action: str, *flags: str, expect: bool = True, **keys: object) -> Fault:
        """Arms a fault of this host: Fabric.fault()."""
        return self.fabric.fault(self.name, action, *flags, expect=expect, **keys)

    def trace(self, *options: object) -> Trace:
        """Captures the packets of this host's port: Fabric.trace()."""
        return self.fabric.trace(self.name, *options)

    def link(self, port: int = 1) -> Link:
        """The link at @port."""
        return self.fabric.link(f"{self.name}:{port}")

    def port(self, num: int = 1) -> dict[str, Any]:
        """The attributes of a port: lid, state, gids, counters and more, as in `muslin show --json`."""
        return self.fabric.port(self.name, num)

    @property
    def lid(self) -> int:
        """The LID of port 1."""
        return int(self.port()["lid"])

    @property
    def ip(self) -> str:
        """The first IPv4 address."""
        return self.fabric.ip(self.name)

    @property
    def counters(self) -> dict[str, int]:
        """The counters of port 1."""
        return dict(self.port()["counters"])

    def __str__(self) -> str:
        return self.name


class Link:
    """The link at @place ("leaf1:5", "h1:1"). `with link.down():` sets it up again at the end of the block."""

    def __init__(self, fabric: Fabric, place: str) -> None:
        self.fabric, self.place = fabric, place

    def up(self) -> Link:
        """Connects the cable. The port is Active when the subnet manager has configured it."""
        self.fabric.command("link", self.place, "up")
        return self

    def down(self) -> Link:
        """Disconnects the cable."""
        self.fabric.command("link", self.place, "down")
        return self

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *exc: object) -> None:
        self.up()

    @property
    def state(self) -> str:
        """The logical state of its port: "Down", "Initialize", "Armed" or "Active"."""
        node, _, num = self.place.rpartition(":")
        if not node:
            raise FabricError(f"{self.place}: a link is named by a node and a port, as leaf1:5")
        return str(self.fabric.port(node, int(num))["state"])

    def __str__(self) -> str:
        return self.place


class Trace:
    """A capture at @place to the file @path (pcapng). It ends with the block, by stop(), or with the fabric."""

    def __init__(self, fabric: Fabric, place: object, path: pathlib.Path, options: Iterable[object]) -> None:
        self.place, self.path = place, path
        self.process = fabric.start_muslin("trace", place, *options, "-w", path)
        wait_until(lambda: path.exists() or not self.process.running(), 60, f"the capture at {place}", 0.02)
        if not path.exists():
            self.process.wait()  # raises, with its message

    def stop(self) -> Trace:
        """Ends the capture. No effect if it has ended."""
        if self.process.running():
            self.process.signal(signal.SIGINT)
            self.process.wait(60, status=None)  # it writes all packets that came before
        return self

    def packets(self, display_filter: str = "") -> list[str]:
        """Ends the capture and returns the output lines of tshark for packets that match @display_filter."""
        self.stop()
        argv = ["tshark", "-r", str(self.path), *(["-Y", display_filter] if display_filter else [])]
        try:
            r = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            why = f"there is no tshark, which dissects {self.path}: install Debian's package tshark"
            raise FabricError(why) from None
        if r.returncode:
            raise FabricError(f"`{' '.join(argv)}` ended with {r.returncode}:\n{r.stderr}")
        return r.stdout.splitlines()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
