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
        """Starts a server, and returns a function that tells its output once it has ended, None before."""
        if self.vm:
            self.vm.start(f"{command}; echo ended $?", "server")
            return lambda: (self.vm.log("server") if "ended" in self.vm.log("server") else None)
        self.server = self.fabric.start(self.host, *command.split())
        return lambda: None if self.server.running() else self.server.output

    def stop(self, command):
        """Ends the server that was started last, if it has not ended."""
        if self.vm:
            self.vm.run(f"kill -9 $(pidof {command.split()[0]}) 2>/dev/null", status=None)
        else:
            self.server.kill()

    def call(self, command, timeout=60):
        """Runs a program to its end; its status, and what it printed."""
        if self.vm:
            return self.vm.call(command, timeout)
        process = self.fabric.start(self.host, *command.split())
        out = process.wait(timeout, status=None)
        return process.popen.returncode, out
