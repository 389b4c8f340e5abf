# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Passes descriptors to the daemon whose last close() takes an hour: slow_descriptors.py KIND PID [SOCKET]. They are TCP
sockets with SO_LINGER whose peer, in this program, does not read.
"""

import array
import os
import signal
import socket
import struct
import sys

LINGER = 3600
COUNT = 100


def slow_socket(keep):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    s = socket.create_connection(listener.getsockname())
    keep.append(listener.accept()[0])
    listener.close()
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
    return s


def connect(kind, path):
    if kind == "umad":  # the descriptor is the program's end of a socket pair
        return socket.socket(fileno=os.open("/dev/infiniband/umad0", os.O_RDWR))
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if kind == "verbs" else socket.SOCK_STREAM)
    s.connect(path or os.environ["MUSLIN_SOCKET"])
    return s


def pass_to(s, what, data):
    fds = array.array("i", [x.fileno() for x in what])
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])


kind, pid, path = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None
peers = []
slow = [slow_socket(peers) for _ in range(COUNT)]
daemon, late = connect(kind, path), connect(kind, path)
os.kill(pid, signal.SIGSTOP)  # so that the daemon has the last references
for i in range(0, COUNT - 10, 10):
    pass_to(daemon, slow[i : i + 10], b"\n" * 8)
# A message without bytes is an end of file for a receiver that ignores its descriptors.
pass_to(daemon, slow[-10:-5], b"" if kind == "verbs" else b"\n")
pass_to(late, slow[-5:], b"\n")
late.close()
for s in slow:
    s.close()
os.kill(pid, signal.SIGCONT)
print("passed", flush=True)
signal.pause()
