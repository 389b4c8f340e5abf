#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Sends and receives management datagrams by the distribution's libibumad for a test: mad_agent.py SOCKET (see agent.py).
"""

import ctypes
import errno
import os
import sys

import agent

HDR = 64  # struct ib_user_mad before the MAD
SIZE = 1 << 20
umad = ctypes.CDLL("libibumad.so.3", use_errno=True)
umad.umad_get_mad.restype = ctypes.c_void_p


def pointer(buf):
    return ctypes.cast(buf, ctypes.c_void_p)


class Port:
    """One open umad file, with its agents by their registrations."""

    def __init__(self):
        self.fd = umad.umad_open_port(None, 0)
        assert self.fd >= 0, os.strerror(-self.fd)
        self.agents = {}
        self.buf = ctypes.create_string_buffer(SIZE)

    def register(self, cls, version, rmpp, methods):
        key = (cls, version, rmpp, tuple(methods))
        if key not in self.agents:
            mask = (ctypes.c_uint32 * 4)()
            for m in methods:
                mask[m // 32] |= 1 << m % 32
            if 0x30 <= cls <= 0x4F:
                number = umad.umad_register_oui(self.fd, cls, rmpp, b"\x00\x14\x05", mask if methods else None)
            else:
                number = umad.umad_register(self.fd, cls, version, rmpp, mask if methods else None)
            assert number >= 0, f"class {cls:#x} methods {methods}: {os.strerror(-number)}"
            self.agents[key] = number
        return self.agents[key]

    def send(self, agent, q, timeout):
        mad = bytes.fromhex(q["mad"])
        self.buf[:HDR] = bytes(HDR)
        self.buf[HDR : HDR + len(mad)] = mad
        umad.umad_set_addr(pointer(self.buf), q["lid"], q["qpn"], q.get("sl", 0), q.get("qkey", 0x80010000))
        if "gid" in q:
            grh = bytes.fromhex(q["gid"])
            self.buf[HDR - 28 : HDR - 24] = bytes([1, 0, 64, 0])  # GRH present, GID index, hop limit, traffic class
            self.buf[HDR - 24 : HDR - 8] = grh
        r = umad.umad_send(self.fd, agent, pointer(self.buf), len(mad), timeout, q.get("retries", 0))
        assert r == 0, os.strerror(-r)

    def recv(self, timeout):
        length = ctypes.c_int(SIZE - HDR)
        r = umad.umad_recv(self.fd, pointer(self.buf), ctypes.byref(length), timeout)
        if r < 0:
            assert -r in (errno.ETIMEDOUT, errno.EAGAIN), os.strerror(-r)
            return {"status": errno.ETIMEDOUT}
        raw = self.buf[: HDR + length.value]
        return {
            "status": int.from_bytes(raw[4:8], sys.byteorder),
            "lid": int.from_bytes(raw[28:30], "big"),
            "qpn": int.from_bytes(raw[20:24], "big"),
            "mad": raw[HDR:].hex(),
        }


class Server:
    def __init__(self):
        self.ports = {}
        self.tid = os.getpid() << 16 & 0xFFFFFFFF
        self.issm = -1

    def port(self, name):
        if name not in self.ports:
            self.ports[name] = Port()
        return self.ports[name]

    def request(self, q):
        """Sends a request and waits for its response, or for its time-out."""
        p = self.port(q.get("port", "request"))
        number = p.register(q["class"], q["version"], q.get("rmpp", 0), [])
        p.send(number, q, q.get("timeout", 2000))
        return p.recv(-1)

    def respond(self, q):
        """Sends a MAD without a response."""
        p = self.port(q.get("port", "send"))
        p.send(p.register(q["class"], q["version"], q.get("rmpp", 0), q.get("methods", [])), q, 0)
        return {}

    def register_agent(self, q):
        """Registers for unsolicited MADs."""
        self.port(q["port"]).register(q["class"], q["version"], q.get("rmpp", 0), q["methods"])
        return {}

    def recv(self, q):
        return self.port(q["port"]).recv(q["timeout"])

    def issm_open(self, q):
        self.issm = os.open("/dev/infiniband/issm0", os.O_RDWR)
        return {}

    def issm_close(self, q):
        os.close(self.issm)
        return {}


assert umad.umad_init() == 0
agent.serve(Server(), sys.argv[1])
