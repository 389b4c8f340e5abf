#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Verbs objects at work, within one device. Prints a line a part, without those that are named; fails where one does.

    objects.py DEVICE PORT-LID [PART...]
"""

import contextlib
import sys

import verbs_enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 64


class Pair:
    """Two RC queue pairs that are connected to each other; the second one receives from @srq if given."""

    def __init__(self, ctx, pd, cq, lid, srq=None, *, early=None):
        """@early: the first one refuses a send from that region before it is connected."""
        self.cq = cq
        cap = QPCap(max_send_wr=32, max_recv_wr=32)
        self.qps = [QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, srq=s, cap=cap)) for s in (None, srq)]
        for qp, peer in zip(self.qps, reversed(self.qps), strict=True):
            attr = QPAttr(port_num=1)
            attr.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
            attr.dest_qp_num = peer.qp_num
            attr.path_mtu = e.IBV_MTU_1024
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
            attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 1
            attr.ah_attr = AHAttr(port_num=1, dlid=lid, is_global=0)
            if early and qp == self.qps[0]:
                with contextlib.suppress(PyverbsRDMAError):
                    self.send(early)
                    raise AssertionError("a send in RESET")
            qp.to_rts(attr)

    def send(self, mr, n=1):
        for _ in range(n):
            self.qps[0].post_send(SendWR(num_sge=1, sg=[SGE(mr.buf, SIZE, mr.lkey)]))

    def received(self, n):
        """Work request IDs of @n receives, in the order of completion."""
        got = []
        while len(got) < n:
            for wc in self.cq.poll(1)[1]:
                assert wc.status == e.IBV_WC_SUCCESS, wc
                got += [wc.wr_id] if wc.opcode & e.IBV_WC_RECV else []
        return got


def srq_resize(ctx, pd, mr, lid):
    """Receives posted before and after a resize complete in order, and once."""
    with CQ(ctx, 200) as cq, SRQ(pd, SrqInitAttr(SrqAttr(max_wr=10, max_sge=1))) as srq:
        pair = Pair(ctx, pd, cq, lid, srq)
        recv = [SGE(mr.buf + SIZE, SIZE, mr.lkey)]
        for i in range(10):
            srq.post_recv(RecvWR(wr_id=i, num_sge=1, sg=recv))
        pair.send(mr, 3)
        assert pair.received(3) == [0, 1, 2]
        srq.modify(SrqAttr(max_wr=60), e.IBV_SRQ_MAX_WR)
        assert srq.query().max_wr >= 60
        for i in range(10, 60):
            srq.post_recv(RecvWR(wr_id=i, num_sge=1, sg=recv))
        got = []
        while len(got) < 57:
            pair.send(mr, 19)
            got += pair.received(19)
        assert got == list(range(3, 60)), got
        for qp in pair.qps:
            qp.close()


def cq_resize(ctx, pd, mr, lid):
    """Unpolled completions survive a resize."""
    with CQ(ctx, 40) as cq:
        pair = Pair(ctx, pd, cq, lid)
        for i in range(20):
            pair.qps[1].post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(mr.buf + SIZE, SIZE, mr.lkey)]))
        pair.send(mr, 5)
        assert pair.received(1) == [0]
        cq.resize(100)
        pair.send(mr, 5)
        assert pair.received(9) == list(range(1, 10))
        cq.resize(30)
        pair.send(mr, 5)
        assert pair.received(5) == list(range(10, 15))
        for qp in pair.qps:
            qp.close()


def refused(ctx, pd, mr, lid):
    """A send that was refused before RTS is not sent later."""
    with CQ(ctx, 40) as cq:
        pair = Pair(ctx, pd, cq, lid, early=mr)
        for i in range(2):
            pair.qps[1].post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(mr.buf + SIZE, SIZE, mr.lkey)]))
        pair.send(mr)
        done = []
        while len(done) < 2 or e.IBV_WC_SEND not in done:
            done += [wc.opcode for wc in cq.poll(1)[1]]
        assert sorted(done) == [e.IBV_WC_SEND, e.IBV_WC_RECV], done
        for qp in pair.qps:
            qp.close()


def vectors(ctx, pd, mr, lid):
    """Every completion vector has events."""
    for vector in range(ctx.num_comp_vectors):
        with CompChannel(ctx) as channel, CQ(ctx, 40, None, channel, vector) as cq:
            pair = Pair(ctx, pd, cq, lid)
            pair.qps[1].post_recv(RecvWR(wr_id=1, num_sge=1, sg=[SGE(mr.buf + SIZE, SIZE, mr.lkey)]))
            cq.req_notify()
            pair.send(mr)
            channel.get_cq_event(cq)
            cq.ack_events(1)
            assert pair.received(1) == [1]
            for qp in pair.qps:
                qp.close()
    return ctx.num_comp_vectors


def main():
    name, lid, skipped = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    with Context(name=name) as ctx, PD(ctx) as pd, MR(pd, 2 * SIZE, e.IBV_ACCESS_LOCAL_WRITE) as mr:
        for part in (srq_resize, cq_resize, refused, vectors):
            if part.__name__ not in skipped:
                print(part.__name__, part(ctx, pd, mr, lid) or "")


if __name__ == "__main__":
    main()
