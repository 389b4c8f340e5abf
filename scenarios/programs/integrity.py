#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
WRITEs, READs and SENDs of random lengths between random offsets of two memories, with a check of each byte:
`integrity.py serve` and `integrity.py run ADDRESS`. Both ends draw the same operations from one seed; the end that
posts them does the same with a model of each memory. The operations of a round are outstanding together, each in a
slot of its own.
"""

import argparse
import hashlib
import json
import random
import socket

import verbs_enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SLOTS, SLOT = 8, 256 << 10
SIZE = SLOTS * SLOT
KINDS = (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_READ, e.IBV_WR_SEND)


def rounds(args):
    """The operations of each round: kind, length, local and remote offset."""
    rng = random.Random(args.seed)
    for _ in range(args.rounds):
        ops = []
        for slot in range(SLOTS):
            length = rng.choice((rng.randint(1, 5000), rng.randint(5000, SLOT)))
            here, there = (slot * SLOT + rng.randint(0, SLOT - length) for _ in range(2))
            ops.append((rng.choice(KINDS), length, here, there))
        yield ops


class End:
    """One end: memory, queue pair, and the socket that both use for synchronisation."""

    def __init__(self, sock, args, first):
        self.said, self.sock = sock.makefile(), sock
        context = Context(name=get_device_list()[0].name.decode())
        pd = PD(context)
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
        self.mr = MR(pd, SIZE, access)
        self.memory = random.Random(first).randbytes(SIZE)
        self.mr.write(self.memory, SIZE)
        self.cq = CQ(context, 4 * SLOTS)
        cap = QPCap(max_send_wr=2 * SLOTS, max_recv_wr=2 * SLOTS)
        self.qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1))
        self.connect(context, args, access)

    def send_words(self, **words):
        self.sock.sendall(json.dumps(words).encode() + b"\n")

    def recv_words(self):
        return json.loads(self.said.readline())

    def connect(self, context, args, access):
        psn = random.randrange(1 << 24)
        gid = str(context.query_gid(1, 0))
        self.send_words(gid=gid, qpn=self.qp.qp_num, psn=psn, addr=self.mr.buf, rkey=self.mr.rkey)
        print(f"QPN {self.qp.qp_num} PSN {psn}", flush=True)
        self.peer = self.recv_words()
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = access
        self.qp.to_init(attr)
        mtu = {1024: e.IBV_MTU_1024, 4096: e.IBV_MTU_4096}[args.mtu]
        attr.path_mtu, attr.dest_qp_num, attr.rq_psn = mtu, self.peer["qpn"], self.peer["psn"]
        attr.max_dest_rd_atomic, attr.min_rnr_timer = SLOTS, 12
        route = GlobalRoute(dgid=GID(self.peer["gid"]), sgid_index=0, hop_limit=64)
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        self.qp.to_rtr(attr)
        attr.sq_psn, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic = psn, 14, 7, 7, SLOTS
        self.qp.to_rts(attr)

    def complete(self, n):
        while n:
            got, wcs = self.cq.poll(n)
            assert all(wc.status == e.IBV_WC_SUCCESS for wc in wcs), [wc.status for wc in wcs]
            n -= got

    def sge(self, offset, length):
        return [SGE(self.mr.buf + offset, length, self.mr.lkey)]

    def digest(self):
        return hashlib.sha256(self.mr.read(SIZE, 0)).hexdigest()


def serve(args):
    listener = socket.create_server(("", args.port))
    print("serving", flush=True)
    end = End(listener.accept()[0], args, "there")
    for ops in rounds(args):
        receives = [op for op in ops if op[0] == e.IBV_WR_SEND]
        for _, length, _, there in receives:
            end.qp.post_recv(RecvWR(num_sge=1, sg=end.sge(there, length)))
        end.send_words(ready=True)
        end.recv_words()
        end.complete(len(receives))
        end.send_words(digest=end.digest())


def run(args):
    end = End(socket.create_connection((args.address, args.port), timeout=20), args, "here")
    here, there = bytearray(end.memory), bytearray(random.Random("there").randbytes(SIZE))
    for n, ops in enumerate(rounds(args)):
        end.recv_words()
        for kind, length, at, to in ops:
            wr = SendWR(opcode=kind, num_sge=1, sg=end.sge(at, length))
            if kind != e.IBV_WR_SEND:
                wr.set_wr_rdma(end.peer["rkey"], end.peer["addr"] + to)
            end.qp.post_send(wr)
            if kind == e.IBV_WR_RDMA_READ:
                here[at : at + length] = there[to : to + length]
            else:
                there[to : to + length] = here[at : at + length]
        end.complete(len(ops))
        end.send_words(done=True)
        assert end.recv_words()["digest"] == hashlib.sha256(there).hexdigest(), f"round {n}: the peer's memory"
        assert end.digest() == hashlib.sha256(here).hexdigest(), f"round {n}: our memory"
    print("all is where it belongs", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("role", choices=["serve", "run"])
    p.add_argument("address", nargs="?")
    p.add_argument("--port", type=int, default=18700)
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--seed", default="1")
    p.add_argument("--mtu", type=int, default=4096)
    args = p.parse_args()
    (run if args.role == "run" else serve)(args)


if __name__ == "__main__":
    main()
