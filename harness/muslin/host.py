# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A host of a fabric, a link, and a capture: returned by Fabric.host(), Fabric.link() and Fabric.trace()."""

import signal
import subprocess

from .errors import FabricError
from .errors import hide as __tracebackhide__  # noqa: F401
from .process import wait_until


class Host:
    """The host @name of @fabric. It formats as its name, so that it can be used in command lines."""

    def __init__(self, fabric, name):
        self.fabric, self.name = fabric, name

    def run(self, *argv, **kw):
        """Runs a program on this host to its end and returns its output: Fabric.run()."""
        return self.fabric.run(self.name, *argv, **kw)

    def start(self, *argv):
        """Starts a program on this host and returns its Process."""
        return self.fabric.start(self.name, *argv)

    def vm(self, *options, **kw):
        """Boots a guest on this host and returns its VM."""
        return self.fabric.vm(self.name, *options, **kw)

    def fault(self, action, *flags, **keys):
        """Arms a fault of this host: Fabric.fault()."""
        return self.fabric.fault(self.name, action, *flags, **keys)

    def trace(self, *options):
        """Captures the packets of this host's port: Fabric.trace()."""
        return self.fabric.trace(self.name, *options)

    def link(self, port=1):
        """The link at @port."""
        return self.fabric.link(f"{self.name}:{port}")

    def port(self, num=1):
        """The attributes of a port: lid, state, gids, counters and more, as in `muslin show --json`."""
        return self.fabric.port(self.name, num)

    @property
    def lid(self):
        """The LID of port 1."""
        return self.port()["lid"]

    @property
    def ip(self):
        """The first IPv4 address."""
        return self.fabric.ip(self.name)

    @property
    def counters(self):
        """The counters of port 1."""
        return self.port()["counters"]

    def __str__(self):
        return self.name


class Link:
    """The link at @place ("leaf1:5", "h1:1"). `with link.down():` sets it up again at the end of the block."""

    def __init__(self, fabric, place):
        self.fabric, self.place = fabric, place

    def up(self):
        """Connects the cable. The port is Active when the subnet manager has configured it."""
        self.fabric.command("link", self.place, "up")
        return self

    def down(self):
        """Disconnects the cable."""
        self.fabric.command("link", self.place, "down")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.up()

    @property
    def state(self):
        """The logical state of its port: "Down", "Initialize", "Armed" or "Active"."""
        node, _, num = self.place.rpartition(":")
        if not node:
            raise FabricError(f"{self.place}: a link is named by a node and a port, as leaf1:5")
        return self.fabric.port(node, int(num))["state"]

    def __str__(self):
        return self.place


class Trace:
    """A capture at @place to the file @path (pcapng). It ends with the block, by stop(), or with the fabric."""

    def __init__(self, fabric, place, path, options):
        self.place, self.path = place, path
        self.process = fabric.start_muslin("trace", place, *options, "-w", path)
        wait_until(lambda: path.exists() or not self.process.running(), 10, f"the capture at {place}", 0.02)
        if not path.exists():
            self.process.wait()  # raises, with its message

    def stop(self):
        """Ends the capture. No effect if it has ended."""
        if self.process.running():
            self.process.signal(signal.SIGINT)
            self.process.wait(10, status=None)
        return self

    def packets(self, display_filter=""):
        """Ends the capture and returns the output lines of tshark for packets that match @display_filter."""
        self.stop()
        argv = ["tshark", "-r", str(self.path), *(["-Y", display_filter] if display_filter else [])]
        r = subprocess.run(argv, capture_output=True, text=True, check=False)
        if r.returncode:
            raise FabricError(f"`{' '.join(argv)}` ended with {r.returncode}:\n{r.stderr}")
        return r.stdout.splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()
