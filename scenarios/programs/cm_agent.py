#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Connection management for a test: cm_agent.py SOCKET (see agent.py). It uses the distribution's librdmacm without queue
pairs, and sends and receives datagrams of the connection manager's class by a UD queue pair with QP1's Q_Key.
"""

import ctypes
import select
import socket
import struct
import sys

import agent
import verbs_enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE, GRH, RECVS = 256, 40, 64
QKEY = 0x80010000
PS = {"tcp": 0x106, "udp": 0x111}
EVENTS = (
    "ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST CONNECT_RESPONSE CONNECT_ERROR UNREACHABLE "
    "REJECTED ESTABLISHED DISCONNECTED DEVICE_REMOVAL MULTICAST_JOIN MULTICAST_ERROR ADDR_CHANGE TIMEWAIT_EXIT"
).split()
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
P = ctypes.c_void_p


class ConnParam(ctypes.Structure):
    _fields_ = [("data", P), ("len", ctypes.c_uint8)]
    _fields_ += [(n, ctypes.c_uint8) for n in ("responder_resources", "initiator_depth", "flow_control")]
    _fields_ += [(n, ctypes.c_uint8) for n in ("retry", "rnr", "srq")]
    _fields_ += [("qp_num", ctypes.c_uint32)]


class Event(ctypes.Structure):
    _fields_ = [("id", P), ("listen_id", P), ("type", ctypes.c_int), ("status", ctypes.c_int), ("conn", ConnParam)]
    _fields_ += [("rest", ctypes.c_uint8 * 64)]


def checked(r, what):
    if r:
        raise OSError(ctypes.get_errno(), f"{what}: errno {ctypes.get_errno()}")


class Datagrams:
    """A UD queue pair that acts as QP1."""

    def __init__(self):
        self.context = Context(name=get_device_list()[0].name.decode())
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 2 * RECVS)
        self.mr = MR(self.pd, (RECVS + 1) * 512, e.IBV_ACCESS_LOCAL_WRITE)
        cap = QPCap(max_send_wr=8, max_recv_wr=RECVS)
        init = QPInitAttr(qp_type=e.IBV_QPT_UD, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        self.qp = QP(self.pd, init, attr)
        self.handles = {}
        self.received = []
        for i in range(RECVS):
            self.post(i)

    def post(self, i):
        self.qp.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(self.mr.buf + i * 512, GRH + SIZE, self.mr.lkey)]))

    def send(self, lid, data):
        if lid not in self.handles:
            self.handles[lid] = AH(self.pd, attr=AHAttr(dlid=lid, port_num=1, is_global=0))
        self.mr.write(data, SIZE, RECVS * 512)
        wr = SendWR(wr_id=RECVS, num_sge=1, sg=[SGE(self.mr.buf + RECVS * 512, SIZE, self.mr.lkey)])
        wr.set_wr_ud(self.handles[lid], 1, QKEY)
        self.qp.post_send(wr)
        while not self.poll():
            pass

    def poll(self):
        """Polls completions. True: one of them was a send."""
        sent = False
        for wc in self.cq.poll(16)[1]:
            assert wc.status == e.IBV_WC_SUCCESS, wc.status
            if wc.wr_id == RECVS:
                sent = True
            else:
                self.received.append(self.mr.read(SIZE, wc.wr_id * 512 + GRH).hex())
                self.post(wc.wr_id)
        return sent


class Server:
    def __init__(self):
        self.ud = Datagrams()
        self.channel = P(cm.rdma_create_event_channel())
        self.fd = ctypes.cast(self.channel, ctypes.POINTER(ctypes.c_int))[0]

    # datagrams

    def info(self, q):
        gid = self.ud.context.query_gid(1, 0).gid
        return {"lid": self.ud.context.query_port(1).lid, "qpn": self.ud.qp.qp_num, "gid": gid}

    def send(self, q):
        self.ud.send(q["lid"], bytes.fromhex(q["mad"]))
        return {}

    def received(self, q):
        self.ud.poll()
        got, self.ud.received = self.ud.received, []
        return {"mads": got}

    # librdmacm

    def create(self, q):
        ident = P()
        checked(cm.rdma_create_id(self.channel, ctypes.byref(ident), None, PS[q["ps"]]), "rdma_create_id")
        return {"id": ident.value}

    def address(self, q):
        ip, port = q["to"]
        return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(ip) + bytes(8)

    def listen(self, q):
        checked(cm.rdma_bind_addr(P(q["id"]), self.address(q)), "rdma_bind_addr")
        checked(cm.rdma_listen(P(q["id"]), 64), "rdma_listen")
        return {}

    def resolve(self, q):
        checked(cm.rdma_resolve_addr(P(q["id"]), None, self.address(q), 2000), "rdma_resolve_addr")
        return {}

    def route(self, q):
        checked(cm.rdma_resolve_route(P(q["id"]), 2000), "rdma_resolve_route")
        return {}

    def param(self, q):
        data = bytes.fromhex(q.get("data", ""))
        self.kept = ctypes.create_string_buffer(data, len(data) + 1)
        counts = q.get("retry", 7), q.get("rnr", 7)
        p = ConnParam(ctypes.cast(self.kept, P), len(data), 1, 1, 0, *counts, 0, q.get("qpn", 0x55))
        return ctypes.byref(p)

    def connect(self, q):
        checked(cm.rdma_connect(P(q["id"]), self.param(q)), "rdma_connect")
        return {}

    def accept(self, q):
        checked(cm.rdma_accept(P(q["id"]), self.param(q)), "rdma_accept")
        return {}

    def establish(self, q):
        checked(cm.rdma_establish(P(q["id"])), "rdma_establish")
        return {}

    def reject(self, q):
        data = bytes.fromhex(q.get("data", ""))
        checked(cm.rdma_reject(P(q["id"]), data, len(data)), "rdma_reject")
        return {}

    def disconnect(self, q):
        checked(cm.rdma_disconnect(P(q["id"])), "rdma_disconnect")
        return {}

    def destroy(self, q):
        checked(cm.rdma_destroy_id(P(q["id"])), "rdma_destroy_id")
        return {}

    def event(self, q):
        """The next event; {} if there is none within q["timeout"] ms."""
        if not select.select([self.fd], [], [], q.get("timeout", 0) / 1000)[0]:
            return {}
        pointer = ctypes.POINTER(Event)()
        checked(cm.rdma_get_cm_event(self.channel, ctypes.byref(pointer)), "rdma_get_cm_event")
        ev = pointer.contents
        data = ctypes.string_at(ev.conn.data, ev.conn.len).hex() if ev.conn.data else ""
        answer = {"type": EVENTS[ev.type], "status": ev.status, "id": ev.id, "listener": ev.listen_id}
        answer |= {"data": data, "qpn": ev.conn.qp_num}
        answer |= {n: getattr(ev.conn, n) for n in ("responder_resources", "initiator_depth", "retry", "rnr")}
        checked(cm.rdma_ack_cm_event(pointer), "rdma_ack_cm_event")
        return answer


agent.serve(Server(), sys.argv[1])
