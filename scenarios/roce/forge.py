# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hand-made RoCEv2 packets on a plain UDP socket."""

import socket
import struct
import zlib

PORT = 4791
PSN = 1000


def bth(opcode, qpn, psn=PSN, *, pkey=0xFFFF, ackreq=True, pad=0, tver=0):
    return struct.pack(">BBHII", opcode, pad << 4 | tver, pkey, qpn, ackreq << 31 | psn % (1 << 24))


def reth(addr, rkey, length):
    return struct.pack(">QII", addr, rkey, length)


def mad(cls, attribute, *, base=1, version=2, qkey=0x80010000):
    """A datagram to QP1 with a MAD whose method is Send and whose content is zero (IBTA 13.4.3)."""
    header = struct.pack(">BBBBHHQHHI", base, cls, version, 3, 0, 0, 7, attribute, 0, 0)
    return bth(100, 1) + struct.pack(">II", qkey, 1) + header + bytes(256 - len(header))


def icrc(src, dst, body):
    """
    ICRC of the datagram with @body from (address, port) @src: fields that routers may change count as ones (A17.3.3).
    """
    ip = struct.pack(">BBHHHBBH", 0x45, 0xFF, 28 + len(body) + 4, 0, 0x4000, 0xFF, 17, 0xFFFF)
    ip += socket.inet_aton(src[0]) + socket.inet_aton(dst)
    udp = struct.pack(">HHHH", src[1], PORT, 12 + len(body), 0xFFFF)
    masked = body[:4] + b"\xff" + body[5:] if len(body) > 4 else body
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + masked))


class Peer:
    """Sends arbitrary packets to @to, from @address and that port (0: any), and receives the responses."""

    def __init__(self, address, to, port=PORT):
        self.to = to
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, port))
        self.sock.settimeout(10)
        self.name = self.sock.getsockname()

    def sealed(self, body):
        return body + icrc(self.name, self.to, body)

    def send(self, body, damage=0):
        whole = self.sealed(body)
        self.raw(whole[:-4] + bytes([whole[-4] ^ damage]) + whole[-3:])

    def raw(self, datagram):
        self.sock.sendto(datagram, (self.to, PORT))

    def train(self, bodies):
        """Sends packets of the same length in one call: they arrive without others in between."""
        segment = (socket.IPPROTO_UDP, 103, struct.pack("H", len(bodies[0]) + 4))  # UDP_SEGMENT
        self.sock.sendmsg([b"".join(map(self.sealed, bodies))], [segment], 0, (self.to, PORT))

    def answer(self):
        """Opcode, QPN, PSN and, with an AETH, its syndrome."""
        d = self.sock.recv(65536)
        qpn, psn = (x & 0xFFFFFF for x in struct.unpack(">II", d[4:12]))
        return d[0], qpn, psn, d[12] if d[0] in (13, 15, 16, 17, 18) else None
