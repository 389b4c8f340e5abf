# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Endpoint of a connection: a program in a guest, or on a host of the fabric in host mode."""

import collections
import contextlib
import fcntl
import os
import pathlib
import signal

from muslin import wait_until
from muslin.errors import ProcessFailed, WaitTimeout
from muslin.pair import RESTART_BOTH

# A model's driver in the guest: its directory, its devices there, commands that unload and load it.
Driver = collections.namedtuple("Driver", "folder devices unload load")
DRIVERS = {
    "muslin": Driver("/sys/bus/virtio/drivers/muslin", "virtio*", "rmmod muslin", "modprobe muslin"),
    "connectx": Driver("/sys/bus/pci/drivers/mlx5_core", "0000:*", "rmmod mlx5_ib mlx5_core", "modprobe mlx5_ib"),
}


class Endpoint:
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
        """Runs a program to its end; returns its status and output."""
        if self.vm:
            return self.vm.call(command, timeout)
        process = self.fabric.start(self.host, *command.split())
        try:
            out = process.wait(timeout, status=None)
        finally:
            process.kill()
        return process.popen.returncode, out


def addresses_ready(vm, dev):
    """Waits for the end of duplicate address detection: a guest does not answer for a tentative IPv6 address."""
    vm.wait(f"! ip -6 addr show dev {dev} | grep -q tentative", what="duplicate address detection")


def pair(server, command, client, program):
    """
    Runs @command and @program at two endpoints, or in guests, to their ends; the client retries until the server
    listens. Returns both outputs, the client's first. Ports that the server had bound are free for the next program.
    A client by rdma_cm may wait forever for a server that has ended for a reason of RESTART_BOTH.
    """
    running, failed = server.start(command), {}

    def attempt():
        nonlocal running
        try:
            status, out = client.call(program, 120)
        except (AssertionError, ProcessFailed):
            if not RESTART_BOTH.search(running.output):
                raise
            status, out = None, running.output
        if status:
            failed[out] = None
        if RESTART_BOTH.search(out):
            running.kill()
            running = server.start(command)
            return None
        assert status == 0 or running.running(), f"{running}:\n{running.output}\n{program}:\n{out}"
        return status == 0 and (out or " ")

    try:
        out = wait_until(attempt, 60, f"`{program}`", 0.2)
    except WaitTimeout as e:
        raise WaitTimeout("\n".join([f"{e}:", *failed, f"{running}:", running.output])) from None
    return out, running.wait(20, None)


def rping_both_ways(a, b):
    """Between guest @a on h1 and guest @b on h5, over the connection managers of both kernels."""
    for server, client, address in ((b, a, "10.0.0.5"), (a, b, "10.0.0.1")):
        what = f"-V -v -C 5 -S 20000 -a {address}"
        _, said = pair(server, f"rping -s {what}", client, f"rping -c {what}")
        assert said.count("server ping data: rdma-ping-") == 5


def bond(vm, address, peer):
    """Makes an active-backup bond of ib0 and ib1 with @address, which reaches @peer; returns the active interface."""
    vm.run("ip addr flush dev ib0; ip addr flush dev ib1; ip link set ib0 down; ip link set ib1 down")
    vm.run("modprobe bonding max_bonds=0; ip link add bond0 type bond mode active-backup miimon 100")
    vm.run("ip link set ib0 master bond0; ip link set ib1 master bond0")
    vm.run(f"ip addr add {address} dev bond0; ip link set bond0 up")
    vm.wait(f"grep -q 'MII Status: up' /proc/net/bonding/bond0 && ping -c 1 -W 1 {peer}", what="the bond")
    return vm.run("cat /sys/class/net/bond0/bonding/active_slave").strip()


def wait_failed_over(vm, active, peer):
    """Until another interface of the bond than @active reaches @peer."""
    moved = f"[ $(cat /sys/class/net/bond0/bonding/active_slave) != {active} ]"
    vm.wait(f"{moved} && ping -c 1 -W 1 {peer}", what="the fail-over")


def qemu(vm):
    """The process of a guest's QEMU, under the program that has started it; None: there is none yet."""
    pid = vm.process.pid
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another program, which has ended
            if "qemu-system" in pathlib.Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
    return None


def kill_daemon(fabric):
    """By SIGKILL; on return the fabric's lock is free."""
    os.kill(fabric.daemon_pid, signal.SIGKILL)
    with next(fabric.folder.glob(f"run/**/{fabric.name}/pid")).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def replace_daemon(fabric):
    """Kills the daemon, and starts another one."""
    kill_daemon(fabric)
    fabric.up()
