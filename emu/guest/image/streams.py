# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Standard streams of a command in a guest: a virtio port each, since a port has no half that closes."""

import contextlib
import os
import signal
import socket
import sys
import threading

SIZE = 65536


def readable():
    """May this process read its standard input? In the background of a terminal that would stop it."""
    try:
        return not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def feed(sock):
    """Standard input to its end, which closes the port. The socket stays open: QEMU drops what it has not read yet."""
    with contextlib.suppress(OSError):
        while data := os.read(0, SIZE) if readable() else b"":
            sock.sendall(data)
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)


def drain(sock, fd):
    with sock, contextlib.suppress(ConnectionResetError):
        while data := sock.recv(SIZE):
            while data:
                data = data[os.write(fd, data) :]


class Streams:
    """The three of a guest's command: arguments for QEMU, descriptors to pass, and threads that copy."""

    NAMES = ("in", "out", "err")
    command = True

    def __init__(self):
        self.pairs = [socket.socketpair() for _ in self.NAMES]

    def argv(self):
        words = []
        for name, (_, there) in zip(self.NAMES, self.pairs):
            words += ["-chardev", f"socket,id=std{name},fd={there.fileno()}"]
            words += ["-device", f"virtserialport,chardev=std{name},name=muslin.{name}"]
        return words

    def fds(self):
        return [there.fileno() for _, there in self.pairs]

    def run(self, process):
        """Copies until QEMU has ended and all that came is written; its status."""
        for _, there in self.pairs:
            there.close()
        here = [pair[0] for pair in self.pairs]
        threading.Thread(target=feed, args=(here[0],), daemon=True).start()
        failed = []

        def copy(sock, fd):
            try:
                drain(sock, fd)
            except OSError as e:  # nobody reads what the command says: its end is ours
                failed.append(e)
                process.kill()

        copies = [threading.Thread(target=copy, args=(here[fd], fd)) for fd in (1, 2)]
        for thread in copies:
            thread.start()
        status = process.wait()
        for thread in copies:
            thread.join()
        if failed and not isinstance(failed[0], BrokenPipeError):
            sys.exit(f"muslin: standard output: {failed[0].strerror}")
        if failed:
            sys.exit(128 + signal.SIGPIPE)
        return status

    def result(self, file):
        """The command's status, which the guest has written to @file; None: it has not."""
        text = file.read_text().strip() if file.exists() else ""
        return int(text) if text.isdigit() else None
