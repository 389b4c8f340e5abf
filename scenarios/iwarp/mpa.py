# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Hand-made iWARP on a TCP socket: MPA frames, FPDUs with markers and CRCs, and the protocol of rping on them (RFC 5044,
5041, 5040 and 6581).
"""

import struct

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
TAGGED, LAST, DDP, RDMAP = 0x80, 0x40, 0x01, 0x40
WRITE, READ, READ_RESPONSE, SEND, SEND_INV, TERMINATE = 0, 1, 2, 3, 4, 7
PEER_TO_PEER, RTR_ZERO = 0x8000, 0x4000  # flags in the IRD field
RTR_WRITE, RTR_READ = 0x8000, 0x4000  # flags in the ORD field
INTERVAL = 512
INFO = ">QII"  # of rping: address, STag, length


def _entry(value):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


TABLE = [_entry(i) for i in range(256)]


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = TABLE[(c ^ b) & 255] ^ c >> 8
    return c ^ 0xFFFFFFFF


def start_frame(flags=0, revision=1, data=b"", length=None, key=REQUEST):
    return key + struct.pack(">BBH", flags, revision, len(data) if length is None else length) + data


def enhanced(ird=4, ord_=4, data=b""):
    return struct.pack(">HH", ird, ord_) + data


def body(ddp, rdmap, *words, payload=b"", length=None):
    """An FPDU without its CRC."""
    text = struct.pack(">BB", ddp, rdmap) + b"".join(struct.pack(">I", w) for w in words) + payload
    text = struct.pack(">H", len(text) if length is None else length) + text
    return text + b"\0" * (-len(text) % 4)


def fpdu(*args, crc=0, **kw):
    return body(*args, **kw) + struct.pack("<I", crc)


def read(s, size):
    data = b""
    while len(data) < size:
        part = s.recv(size - len(data))
        if not part:
            break
        data += part
    return data


def read_start(s):
    """(key, flags, revision, private data)"""
    head = read(s, 20)
    flags, revision, length = struct.unpack(">BBH", head[16:])
    return head[:16], flags, revision, read(s, length)


class Stream:
    """The stream after MPA negotiation; @mark_out, @mark_in: with markers in sent or received FPDUs."""

    def __init__(self, sock, crc=False, mark_out=False, mark_in=False):
        self.sock, self.crc, self.mark_out, self.mark_in = sock, crc, mark_out, mark_in
        self.sent = self.got = 0
        self.msn = {0: 1, 1: 1}
        self.markers = 0
        self.skew = 0  # error of the marker pointers

    def fpdu(self, *args, **kw):
        text = body(*args, **kw) + bytes(4)
        out, field = bytearray(), None
        for word in (text[i : i + 4] for i in range(0, len(text), 4)):
            if self.mark_out and (self.sent + len(out)) % INTERVAL == 0:
                out += struct.pack(">HH", 0, 0 if field is None else len(out) - field + self.skew)
            field = len(out) if field is None else field
            out += word
        if self.crc:
            out[-4:] = struct.pack("<I", crc32c(out[:-4]))
        self.sent += len(out)
        self.sock.sendall(out)

    def _raw(self, raw, n):
        part = read(self.sock, n)
        assert len(part) == n, f"the stream ends behind {raw.hex()}"
        self.got += n
        raw += part
        return part

    def receive(self):
        """(DDP bits, RDMAP opcode, words of the header, payload) of the next FPDU."""
        raw, text, field, whole = bytearray(), b"", None, 4
        while len(text) < whole:
            if self.mark_in and self.got % INTERVAL == 0:
                marker = self._raw(raw, 4)
                assert struct.unpack(">HH", marker) == (0, 0 if field is None else len(raw) - 4 - field), marker.hex()
                self.markers += 1
            field = len(raw) if field is None else field
            text += self._raw(raw, 4)
            length = struct.unpack(">H", text[:2])[0]
            whole = length + 2 + -(length + 2) % 4 + 4
        sent = struct.unpack("<I", raw[-4:])[0]
        assert sent == (crc32c(raw[:-4]) if self.crc else 0)
        ddp, rdmap = text[2], text[3] & 15
        size = 12 if ddp & TAGGED else 16
        words = struct.unpack(f">{size // 4}I", text[4 : 4 + size])
        return ddp, rdmap, words, text[4 + size : length + 2]

    def receive_more(self):
        """
        The next FPDU that is no empty WRITE: an initiator may repeat its RTR message while the peer sends nothing.
        """
        got = self.receive()
        while got[1] == WRITE and not got[3]:
            got = self.receive()
        return got

    # Protocol of rping

    def send(self, payload=b""):
        self.fpdu(LAST | DDP, RDMAP | SEND, 0, 0, self.msn[0], 0, payload=payload)
        self.msn[0] += 1

    def read_request(self, stag, to, size):
        self.fpdu(LAST | DDP, RDMAP | READ, 0, 1, self.msn[1], 0, 7, 0, 0, size, stag, to >> 32, to & 0xFFFFFFFF)
        self.msn[1] += 1

    def tagged(self, opcode, stag, to, payload=b"", last=True):
        bits = TAGGED | DDP | (LAST if last else 0)
        self.fpdu(bits, RDMAP | opcode, stag, to >> 32, to & 0xFFFFFFFF, payload=payload)

    def receive_tagged(self, opcode):
        """The payload of a whole message."""
        data, last = b"", False
        while not last:
            ddp, got, _, part = self.receive_more()
            assert got == opcode, (got, opcode)
            data, last = data + part, ddp & LAST
        return data

    def receive_info(self):
        _, opcode, words, payload = self.receive_more()
        assert opcode == SEND and words[1] == 0
        return struct.unpack(INFO, payload)

    def rping_client(self, text):
        """One ping of an rping client with @text and a zero in its buffer; returns the data that comes back."""
        self.send(struct.pack(INFO, 0x1000, 0x55, len(text)))
        _, opcode, words, payload = self.receive()
        sink, high, low, size, stag, *to = struct.unpack(">7I", payload)
        assert (opcode, words[1:3], size, stag, to) == (READ, (1, 1), len(text), 0x55, [0, 0x1000])
        half = len(text) // 2
        self.tagged(READ_RESPONSE, sink, high << 32 | low, text[:half], last=False)
        self.tagged(READ_RESPONSE, sink, (high << 32 | low) + half, text[half:])
        self.receive_info()
        self.send(struct.pack(INFO, 0x2000, 0x66, len(text)))
        back = self.receive_tagged(WRITE)
        self.receive_info()
        return back

    def rping_server(self):
        """One ping of an rping server; returns the client's data."""
        to, stag, size = self.receive_info()
        self.read_request(stag, to, size)
        text = self.receive_tagged(READ_RESPONSE)
        self.send(bytes(16))
        to, stag, _ = self.receive_info()
        self.tagged(WRITE, stag, to, text)
        self.send(bytes(16))
        return text
