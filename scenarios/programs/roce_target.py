#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Connections to a peer without a handshake: `roce_target.py PEER COUNT`. Creates COUNT reliable queue pairs to the
address PEER, where queue pair i expects one with number 0x100 + i and packets from PSN 1000 on, and one for datagrams;
prints their numbers and a region as JSON, and waits to be killed.
"""

import json
import signal
import socket
import sys

import verbs_enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR

SIZE = 8192
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ


def gid(address):
    """The GID of an IPv4 address in the format of pyverbs: eight words of four digits."""
    return (b"\0" * 10 + b"\xff\xff" + socket.inet_aton(address)).hex(":", 2)


class Target:
    def __init__(self, peer):
        self.peer = gid(peer)
        self.context = Context(name=get_device_list()[0].name.decode())
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 1024)
        self.mr = MR(self.pd, SIZE, ACCESS)

    def make(self, kind):
        cap = QPCap(max_send_wr=4, max_recv_wr=8)
        return QP(self.pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap))

    def connect(self, number):
        qp = self.make(e.IBV_QPT_RC)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        qp.to_init(attr)
        attr.path_mtu, attr.dest_qp_num, attr.rq_psn = e.IBV_MTU_1024, 0x100 + number, 1000
        attr.max_dest_rd_atomic, attr.min_rnr_timer = 1, 12
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=GID(self.peer), sgid_index=0))
        qp.to_rtr(attr)
        self.receive(qp)
        return qp

    def datagrams(self):
        qp = self.make(e.IBV_QPT_UD)
        attr = QPAttr(port_num=1)
        attr.qkey = 0x1234
        qp.to_rtr(attr)
        self.receive(qp)
        return qp

    def receive(self, qp):
        for _ in range(4):
            qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, 2048, self.mr.lkey)]))


target = Target(sys.argv[1])
qps = [target.connect(i) for i in range(int(sys.argv[2]))]
ud = target.datagrams()
said = {"qpn": [q.qp_num for q in qps], "ud": ud.qp_num, "addr": target.mr.buf, "rkey": target.mr.rkey}
print(json.dumps(said), flush=True)
signal.pause()
