# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a program runs: in a guest, or on a host of the fabric in host mode."""


class Place:
    """The guest @vm on @host, or @host itself."""

    def __init__(self, fabric, host, vm=None):
        self.fabric, self.host, self.vm = fabric, host, vm

    @property
    def address(self):
        return self.fabric.ip(self.host)

    def start(self, command):
        """Starts a server, and returns it."""
        return self.vm.start(command, "server") if self.vm else self.fabric.start(self.host, *command.split())

    def call(self, command, timeout=60):
        """Runs a program to its end; its status, and what it printed."""
        if self.vm:
            return self.vm.call(command, timeout)
        process = self.fabric.start(self.host, *command.split())
        out = process.wait(timeout, status=None)
        return process.popen.returncode, out
