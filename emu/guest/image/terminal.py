# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The terminal: its size, which a serial line does not tell, and which the guest gets by a virtio port, at the start and
on SIGWINCH; and its modes, which QEMU restores unless a signal ends it.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import termios

KINDS = ("linux", "vt100", "vt220", "xterm", "xterm-256color", "screen", "screen-256color", "tmux-256color")


def size():
    with contextlib.suppress(OSError):
        return os.get_terminal_size(0)
    return shutil.get_terminal_size()


def described():
    """Rows, columns and kind of the terminal."""
    kind = os.environ.get("TERM", "")
    return f"{size().lines} {size().columns} {kind if kind in KINDS else 'linux'}"


class Terminal:
    """Arguments and a descriptor for QEMU, and who writes."""

    def __init__(self):
        self.here, self.there = socket.socketpair()
        self.modes = None
        with contextlib.suppress(termios.error):
            self.modes = termios.tcgetattr(0), fcntl.fcntl(0, fcntl.F_GETFL)
        self.send()
        signal.signal(signal.SIGWINCH, lambda *_: self.send())

    def argv(self):
        chardev = f"socket,id=size,fd={self.there.fileno()}"
        return ["-chardev", chardev, "-device", "virtserialport,chardev=size,name=muslin.size"]

    def send(self):
        """What does not fit is dropped: a guest that does not read is told no more."""
        with contextlib.suppress(OSError):
            self.here.send(f"{size().lines} {size().columns}\n".encode(), socket.MSG_DONTWAIT)

    def restore(self):
        """As it was: QEMU makes it raw, and reading not block."""
        if self.modes:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # of who is in the background
            with contextlib.suppress(termios.error, OSError):
                fcntl.fcntl(0, fcntl.F_SETFL, self.modes[1])
                termios.tcsetattr(0, termios.TCSADRAIN, self.modes[0])
