# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Registers an agent by IB_USER_MAD_REGISTER_AGENT2, first with a flag that there is not, then with its own RMPP
(13.6), and gets all NodeRecords of subnet administration. Prints the flags that the kernel has, and "SEGMENTS BYTES".
"""

import fcntl
import os
import select
import struct
from pathlib import Path

REGISTER_AGENT2 = 0xC0281B04
USER_RMPP = 1
DATA, ACK, ACTIVE, LAST = 1, 2, 1, 4
SA, GET_TABLE, NODE_RECORD, RESPONSE = 3, 0x12, 0x11, 0x80
HEADER = 64  # of a record, with the P_Key index

agent = struct.Struct("=IIBBHI2QIB3x")  # ID, QPN, class and version, reserved, flags, methods, OUI, RMPP version
mad = struct.Struct(">BBBBHHQHHI BBBBII")  # common header, RMPP header

(port,) = Path("/sys/class/infiniband").glob("*/ports/1")
lid = int((port / "sm_lid").read_text(), 0)
fd = os.open("/dev/infiniband/umad0", os.O_RDWR)


def register(flags):
    arg = bytearray(agent.pack(0, 1, SA, 2, 0, flags, 0, 0, 0, 1))
    try:
        fcntl.ioctl(fd, REGISTER_AGENT2, arg)
    except OSError as e:
        return e.errno, agent.unpack(arg)[5]
    return 0, agent.unpack(arg)[0]


def send(data, timeout):
    head = struct.pack("=IIIII", number, 0, timeout, 0, 0) + struct.pack(">IIH", 1, 0x80010000, lid)
    os.write(fd, head.ljust(HEADER, b"\0") + data.ljust(256, b"\0"))


error, flags = register(0x80)
print(error, flags)
error, number = register(USER_RMPP)
assert not error, os.strerror(error)
send(mad.pack(1, SA, 2, GET_TABLE, 0, 0, 7, NODE_RECORD, 0, 0, 0, 0, 0, 0, 0, 0), 2000)
segments, total, last = 0, 0, False
while not last:
    assert select.select([fd], [], [], 10)[0], "no segment"
    record = os.read(fd, 1000)
    assert len(record) == HEADER + 256 and not struct.unpack_from("=I", record, 4)[0], len(record)
    field = list(mad.unpack_from(record, HEADER))
    assert field[3] == GET_TABLE | RESPONSE and field[11] == DATA, field
    segments += 1
    assert field[14] == segments, field
    last = bool(field[12] & LAST)
    total += field[15] if last else 220
    field[3] ^= RESPONSE
    field[11:] = ACK, ACTIVE, 0, segments, segments + 4
    send(mad.pack(*field), 0)
print(segments, total)
