#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A stream of messages over a reliable connection, as a small application sends it: `stream.py serve` and `stream.py send
ADDRESS`. With --rebuild it creates a new queue pair after an error; without, it continues with the old one, and so
hangs as programs do after a port flap.
"""

import argparse
import random
import socket
import time

import verbs_enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

DEPTH = 32


class Connection:
    """One queue pair, connected to the one at the other end of @sock."""

    def __init__(self, objects, sock, args):
        context, pd, self.cq, self.mr = objects
        self.args = args
        cap = QPCap(max_send_wr=DEPTH, max_recv_wr=DEPTH)
        self.qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1))
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE
        self.qp.to_init(attr)
        psn, lid = random.randrange(1 << 24), context.query_port(1).lid
        sock.sendall(f"{lid} {self.qp.qp_num} {psn}\n".encode())
        said = sock.makefile()
        lid, qpn, their_psn = map(int, said.readline().split())
        attr.path_mtu, attr.dest_qp_num, attr.rq_psn = e.IBV_MTU_1024, qpn, their_psn
        attr.max_dest_rd_atomic, attr.min_rnr_timer = 1, 12
        attr.ah_attr = AHAttr(dlid=lid, port_num=1)
        self.qp.to_rtr(attr)
        attr.sq_psn, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic = psn, 12, 4, args.rnr_retry, 1
        self.qp.to_rts(attr)
        if not args.no_receives:
            for _ in range(DEPTH):
                self.receive()
        sock.sendall(b"\n")
        said.readline()

    def receive(self):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, 4096, self.mr.lkey)]))

    def send(self):
        self.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(self.mr.buf, self.args.size, self.mr.lkey)]))

    def wait(self, timeout):
        """The next completion, or None."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            n, wcs = self.cq.poll(1)
            if n and wcs[0].qp_num == self.qp.qp_num:  # not of a former one
                return wcs[0]
            time.sleep(0.0005)
        return None


def serve(make, args):
    listener = socket.create_server(("", args.port))
    print("serving", flush=True)
    received = 0
    while True:
        listener.settimeout(60)
        sock, _ = listener.accept()
        connection = make(sock)
        sock.setblocking(False)
        while True:
            wc = connection.wait(0.05)
            if wc and wc.status == e.IBV_WC_SUCCESS:
                received += 1
                print("received", received, wc.byte_len, flush=True)
                connection.receive()
            elif wc is None:
                try:
                    if not sock.recv(1):
                        break
                except BlockingIOError:
                    pass


def send(make, args):
    sock = socket.create_connection((args.address, args.port), timeout=20)
    connection = make(sock)
    sent = failed = 0
    while sent < args.count and failed < 20:
        connection.send()
        wc = connection.wait(20)
        if wc and wc.status == e.IBV_WC_SUCCESS:
            sent += 1
            time.sleep(args.pause)
            continue
        failed += 1
        print("status", wc.status if wc else "none", flush=True)
        if not args.rebuild:
            continue
        sock.close()
        time.sleep(0.5)
        sock = socket.create_connection((args.address, args.port), timeout=20)
        connection = make(sock)
    print("sent", sent, "failed", failed, flush=True)
    return 0 if sent == args.count else 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("role", choices=["serve", "send"])
    p.add_argument("address", nargs="?")
    p.add_argument("--port", type=int, default=18600)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--pause", type=float, default=0.01)
    p.add_argument("--rnr-retry", type=int, default=7)
    p.add_argument("--no-receives", action="store_true")
    p.add_argument("--rebuild", action="store_true")
    args = p.parse_args()
    context = Context(name=get_device_list()[0].name.decode())
    pd = PD(context)
    objects = context, pd, CQ(context, 4 * DEPTH), MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)

    def make(sock):
        return Connection(objects, sock, args)

    return send(make, args) if args.role == "send" else serve(make, args)


if __name__ == "__main__":
    raise SystemExit(main())
