# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Snapshots of a booted guest. Muslin's own image boots once, on a machine that has no devices, up to the place in its
init that waits for them (root/init); its memory and the state of its machine stay in the cache. A guest that resumes
from there finds the devices of its own QEMU, which the snapshot knows nothing of, by a scan of the PCI bus: the
migration stream that QEMU loads may lack devices. Memory is not in that stream (the capability x-ignore-shared): it is
copied from a file with holes. The device vmgenid has the kernel reseed its random number generator.
"""

import contextlib
import errno
import json
import mmap
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import qemu
from image import forget, layer
from packages import cache_folder, digest, fail, say

FORKED = b"crng reseeded due to virtual machine fork"  # the kernel's message at a vmgenid, which root/init waits for
WAITS = b"muslin: waits for devices"  # what the guest prints on its console when the snapshot can be taken
PATIENCE = 300  # seconds of a boot, and of each command of the monitor
BLOCK = 1 << 16
# With these a guest's devices are its own. Any other argument may be of the machine, which a snapshot fixes.
ADDED = {"-device", "-drive", "-blockdev", "-netdev", "-chardev", "-virtfs", "-fsdev", "-fw_cfg", "-mon", "-monitor"}
ADDED |= {"-object", "-qmp", "-serial", "-trace", "-d", "-D"}
GENERATION = ["-device", "vmgenid,guid=auto"]  # a new one for each guest
UNITS = {"": 1 << 20, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def impossible(args):
    """Why a guest of these arguments cannot resume from a snapshot; None: it can."""
    if args.image:
        return "images of disks boot by themselves"
    if args.arch != "amd64":
        return f"the device vmgenid is not for {args.arch}"
    words = [w.partition(",")[0] for w in args.qemu_arg if w.startswith("-")]
    others = [w for w in words if w not in ADDED]
    if others:
        return f"--qemu-arg={others[0]} may change the machine"
    if any("iommu" in w for w in args.qemu_arg):
        return "Linux finds an IOMMU only while it boots"
    return None if size_of(args.mem) else f"--mem {args.mem} is no plain size"


def has_vmgenid(kernel):
    """Whether the @kernel, an ELF file, has the driver by which a guest gets random numbers of its own."""
    with kernel.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
        return image.find(FORKED) >= 0


def size_of(text):
    """Bytes of QEMU's "768M"; 0: it says more than that."""
    m = re.fullmatch(r"(\d+)([BKMG]?)", text.upper())
    return int(m[1]) * UNITS[m[2]] if m else 0


def memory_argv(fd, size):
    """Guest's memory that vhost-user can share, in a file of ours."""
    return ["-object", f"memory-backend-file,id=mem,size={size},mem-path=/proc/self/fd/{fd},share=on"]


def memfd(size):
    fd = os.memfd_create("guest")
    os.ftruncate(fd, size)
    return fd


class Monitor:
    """QEMU's machine protocol over one end of a socket pair."""

    def __init__(self):
        self.here, self.there = socket.socketpair()
        self.here.settimeout(PATIENCE)
        self.stream = self.here.makefile("r")

    def argv(self):
        return ["-chardev", f"socket,id=qmp,fd={self.there.fileno()}", "-qmp", "chardev:qmp"]

    def command(self, name, *fds, **arguments):
        """What QEMU returns; None: it has ended."""
        socket.send_fds(self.here, [json.dumps({"execute": name, "arguments": arguments}).encode()], fds)
        for line in self.stream:
            said = json.loads(line)
            if "error" in said:
                fail(f"QEMU: {name}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]
        return None

    def wait_migration(self):
        """Its status at the end; None: QEMU has ended."""
        while (said := self.command("query-migrate")) is not None:
            if said.get("status") in ("completed", "failed", "cancelled"):
                return said["status"]
            time.sleep(0.005)
        return None

    def begin(self):
        """As both sides of a migration do. @there is QEMU's alone from here on."""
        self.there.close()
        wanted = {"capability": "x-ignore-shared", "state": True}
        self.command("qmp_capabilities")
        return self.command("migrate-set-capabilities", capabilities=[wanted])


def copy_blocks(source, target, size):
    """Copies what is not zero: the target gets holes elsewhere."""
    nothing = bytes(BLOCK)
    with mmap.mmap(source, size, prot=mmap.PROT_READ) as memory:
        for at in range(0, size, BLOCK):
            block = memory[at : at + BLOCK]
            if block != nothing[: len(block)] and os.pwrite(target, block, at) != len(block):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def copy_extents(source, target):
    """Copies what is in no hole."""
    at, end = 0, os.fstat(source).st_size
    while True:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:
            return  # a hole up to the end
        stop = os.lseek(source, at, os.SEEK_HOLE)
        os.lseek(target, at, os.SEEK_SET)
        while at < stop:
            at += os.sendfile(target, source, at, stop - at)
        if at >= end:
            return


def await_guest(console, process):
    """Until the guest waits for devices; what it printed."""
    console.settimeout(1)
    end, text = time.monotonic() + PATIENCE, b""
    while WAITS not in text:
        try:
            data = console.recv(4096)
        except socket.timeout:  # before Python 3.10 it is no TimeoutError
            data = b"" if process.poll() is not None or time.monotonic() > end else None
        if data == b"":
            fail(f"no snapshot: the guest did not boot:\n{text.decode(errors='replace')[-2000:]}")
        text += data or b""


def take(argv, size, out):
    """Boots @argv, and leaves memory and state of the guest that waits in the folder @out."""
    memory, monitor, (here, there) = memfd(size), Monitor(), socket.socketpair()
    argv = [*argv, *memory_argv(memory, size), *monitor.argv()]
    argv += ["-chardev", f"socket,id=console,fd={there.fileno()}", "-serial", "chardev:console", "-no-reboot"]
    fds = [memory, monitor.there.fileno(), there.fileno()]
    process = subprocess.Popen(argv, pass_fds=fds, stdin=subprocess.DEVNULL, preexec_fn=qemu.die_with_parent())
    try:
        there.close()
        monitor.begin()
        await_guest(here, process)
        monitor.command("stop")
        source, target = os.pipe()
        monitor.command("getfd", target, fdname="state")
        os.close(target)
        monitor.command("migrate", uri="fd:state")
        with (out / "state").open("wb") as state, os.fdopen(source, "rb") as stream:
            shutil.copyfileobj(stream, state)
        if monitor.wait_migration() != "completed":
            fail("no snapshot: QEMU's migration failed")
        with (out / "memory").open("wb") as file:
            file.truncate(size)
            copy_blocks(memory, file.fileno(), size)
    finally:
        process.kill()
        process.wait()
        os.close(memory)


def machine_digest(argv, accel):
    """Of all that a snapshot depends on: QEMU's file, machine, kernel, image, and under KVM the processor."""
    flags = re.search(r"^(flags|Features)\s.*$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    parts = [*qemu.file_state(argv[0]), *argv, flags[0] if flags and accel == "kvm" else ""]
    return digest(pathlib.Path(__file__), *parts)


class Snapshot:
    """Of the machine @argv, taken when the cache has none; what a QEMU that resumes from it needs besides @argv."""

    def __init__(self, argv, accel, mem):
        size = size_of(mem)

        def make(out):
            say("taking a snapshot of the booted guest")
            take(argv, size, out)

        argv = [*argv, *GENERATION]
        self.folder = layer("snapshot", machine_digest(argv, accel), make)
        self.file = (self.folder / "memory").open("rb")
        self.state = (self.folder / "state").read_bytes()
        forget(cache_folder())
        say("")
        self.monitor, self.memory, self.size = Monitor(), memfd(size), size
        self.source, self.target = os.pipe()

    def argv(self):
        return [*GENERATION, *memory_argv(self.memory, self.size), *self.monitor.argv(), "-incoming", "defer"]

    def fds(self):
        return [self.memory, self.source, self.monitor.there.fileno()]

    def _feed(self):
        with contextlib.suppress(BrokenPipeError), os.fdopen(self.target, "wb") as stream:
            stream.write(self.state)

    def resume(self, process):
        """The guest continues in @process, which has fds()."""
        uri = f"fd:{self.source}"
        os.close(self.source)
        with self.file:  # QEMU starts meanwhile, and does not access memory before the migration
            copy_extents(self.file.fileno(), self.memory)
        os.close(self.memory)
        threading.Thread(target=self._feed, daemon=True).start()
        status = None
        with contextlib.suppress(OSError):
            self.monitor.begin()
            self.monitor.command("migrate-incoming", uri=uri)
            status = self.monitor.wait_migration()
        if status == "completed":
            self.monitor.command("cont")
            return
        process.kill()
        gone = self.folder.with_name(f"build-{os.getpid()}")  # at once, for those who find it by its name
        with contextlib.suppress(OSError):
            self.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        fail("QEMU did not load the snapshot, which is removed: the next start takes a new one (--no-snapshot: none)")
