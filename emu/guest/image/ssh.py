# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The way into a guest that boots the image of a disk: SSH as root, by a port of this machine's loopback interface. It
brings what configures the guest (root/usr/lib/muslin/guest.sh), after each boot, and a command with its streams.
"""

import contextlib
import pathlib
import shlex
import shutil
import socket
import subprocess
import threading
import time

from packages import fail
from seed import own_key

SCRIPT = pathlib.Path(__file__).resolve().parent / "root/usr/lib/muslin/guest.sh"
THERE = "/run/muslin/guest.sh"
PATIENCE = 900  # seconds of a boot
OPTIONS = """BatchMode=yes StrictHostKeyChecking=no UserKnownHostsFile=/dev/null GlobalKnownHostsFile=/dev/null
    LogLevel=ERROR IdentitiesOnly=yes ConnectTimeout=30 ServerAliveCountMax=6""".split()
ALIVE, REBOOTED = 20, 3  # seconds between messages: a command survives a busy guest; another boot is to be found soon


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Ssh:
    """@command None: the guest is configured, each time that it boots, until QEMU ends."""

    def __init__(self, port, folder, command=None):
        if not shutil.which("ssh"):
            fail("ssh is missing: `ci/deps vm` installs it")
        self.port, self.command, self.status = port, command, None
        alive = f"ServerAliveInterval={ALIVE if command else REBOOTED}"
        options = [w for o in [*OPTIONS, alive, f"ControlPath={folder}/ssh"] for w in ("-o", o)]
        self.argv = ["ssh", "-F", "/dev/null", "-i", str(own_key()), "-p", str(port), *options, "root@127.0.0.1"]

    def login(self):
        """As a user would type it."""
        return f"ssh -p {self.port} -i {own_key()} root@127.0.0.1"

    def greets(self):
        """QEMU accepts connections before anything in the guest does."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            return sock.recv(4) == b"SSH-"
        return False

    def connect(self, qemu):
        """The connection that later ones share, or None: @qemu has ended, or time is up."""
        end = time.monotonic() + PATIENCE
        options = ["-N", "-o", "ControlMaster=yes"]
        while qemu.poll() is None and time.monotonic() < end:
            if self.greets():
                master = subprocess.Popen(self.argv + options, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while master.poll() is None:
                    if not self.remote(["-O", "check"]).returncode:
                        return master
                    time.sleep(0.1)
            time.sleep(0.5)
        return None

    def remote(self, words, **kw):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        options = quiet | ({} if "input" in kw else {"stdin": subprocess.DEVNULL}) | kw
        return subprocess.run(self.argv + words, **options)

    def configure(self):
        self.remote([f"mkdir -p {THERE.rpartition('/')[0]} && cat >{THERE}"], input=SCRIPT.read_bytes())
        # SSH waits for all that have its streams, what is left in the background among them.
        words = shlex.join(["sh", "-c", f". {THERE}; configure"])
        line = f"{words} </dev/null >{THERE}.log 2>&1; cat {THERE}.log >&2"
        self.remote([line], stderr=None if self.command else subprocess.DEVNULL)

    def run(self, qemu):
        """Until @qemu has ended; its status. That of the command is in self.status."""
        if self.command is None:
            threading.Thread(target=self.attend, args=(qemu,), daemon=True).start()
            return qemu.wait()
        master = self.connect(qemu)
        if not master:
            qemu.poll() is None and fail(f"no SSH server responded in {PATIENCE} s; --console FILE shows why")
            return qemu.returncode
        try:
            self.configure()
            line = f"{shlex.join(self.command)}; s=$?; sync; exit $s"
            status = subprocess.run([*self.argv, shlex.join(["sh", "-c", line])], check=False).returncode
            if qemu.poll() is None and master.poll() is None:
                self.status = status
        finally:
            master.kill()
            master.wait()
        qemu.kill()  # it would say that a signal ended it
        qemu.wait()
        return 0

    def fds(self):
        return []

    def result(self, _):
        """The command's status; None: it has none."""
        return self.status

    def attend(self, qemu):
        while master := self.connect(qemu):
            self.configure()
            master.wait()
