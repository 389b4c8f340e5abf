# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Implements the shim's protocol (emu/host/proto.h): opens the first verbs device and offers to copy for the daemon.
"""

import os
import socket
import struct

UVERBS, OPEN, COPY = 1, 0, 5


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ["MUSLIN_SOCKET"])
    return s


def request(s, op, data=b""):
    s.send(struct.pack("<II", op, 0) + data)
    answer, *_ = s.recvmsg(65536, 4096)
    return struct.unpack("<i", answer[:4])[0], answer[8:]


def opening(cookie):
    return struct.pack("<II64sQ", UVERBS, 0, os.environ["MUSLIN_HOST"].encode(), cookie)


file, offer = connect(), connect()
result, opened = request(file, OPEN, opening(0))
assert not result
result, _ = request(offer, OPEN, opening(struct.unpack("<Q", opened[:8])[0]))
assert not result
print(f"offered: {request(offer, COPY)[0]}")
