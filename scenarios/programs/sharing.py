#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A program whose registered memory the daemon maps, on a host of its own: the program must see no difference in its
memory. Prints a line for each passed check.
"""

import ctypes
import mmap
import os
import threading

import verbs_enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

SIZE = 1 << 20
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE


def anonymous(size=SIZE):
    """Memory with consecutive byte values, and its address."""
    m = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m[:] = bytes(range(256)) * (size // 256)
    return m, ctypes.addressof(ctypes.c_char.from_buffer(m))


def shared(address):
    with open("/proc/self/maps", encoding="ascii") as f:
        for line in f:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if start <= address < end:
                return "memfd:muslin-memory" in line
    raise AssertionError("not mapped")


class Loop:
    """A queue pair that is connected to itself."""

    def __init__(self):
        self.context = Context(name=get_device_list()[0].name.decode())
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 16)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=8), sq_sig_all=1)
        self.qp = QP(self.pd, init)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        self.qp.to_init(attr)
        attr.path_mtu, attr.dest_qp_num = e.IBV_MTU_1024, self.qp.qp_num
        attr.max_dest_rd_atomic, attr.min_rnr_timer = 1, 12
        gr = GlobalRoute(dgid=self.context.query_gid(1, 0))
        attr.ah_attr = AHAttr(dlid=self.context.query_port(1).lid, port_num=1, is_global=1, gr=gr)
        self.qp.to_rtr(attr)
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic = 14, 7, 7, 1
        self.qp.to_rts(attr)

    def register(self, address, size=SIZE):
        return MR(self.pd, size, ACCESS, address)

    def write(self, from_mr, from_addr, to_mr, to_addr, size):
        wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(from_addr, size, from_mr.lkey)])
        wr.set_wr_rdma(to_mr.rkey, to_addr)
        self.qp.post_send(wr)
        while True:
            n, wcs = self.cq.poll(1)
            if n:
                assert wcs[0].status == e.IBV_WC_SUCCESS, wcs[0]
                return


def in_the_heap(loop, libc, b, pb, mb):
    libc.memalign.restype = ctypes.c_void_p
    size = 2 * mmap.PAGESIZE
    heap = libc.memalign(ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_size_t(size))
    ctypes.memset(heap, ord("h"), size)
    mh = loop.register(heap, size)
    assert shared(heap) and ctypes.string_at(heap, size) == b"h" * size
    child = os.fork()
    if not child:
        ctypes.memset(heap, ord("c"), size)
        os._exit(1 if shared(heap) else 0)
    assert os.waitpid(child, 0)[1] == 0
    loop.write(mh, heap, mb, pb, size)
    assert b[:size] == b"h" * size
    print("pages of the heap")


def returned_to_the_kernel(write, a, b):
    """@write copies all of @a to @b."""
    a.madvise(mmap.MADV_DONTNEED)
    assert a[:] == bytes(SIZE)
    write()
    assert b[:] == bytes(SIZE)
    print("zeroes after MADV_DONTNEED")

    a.madvise(mmap.MADV_FREE)
    a[:100] = b"f" * 100
    write()
    assert a[:100] == b"f" * 100 and b[:] == a[:]
    print("written after MADV_FREE")


def main():
    loop = Loop()
    (a, pa), (b, pb) = anonymous(), anonymous()
    ma, mb = loop.register(pa), loop.register(pb)
    assert shared(pa) and shared(pb) and a[:] == bytes(range(256)) * (SIZE // 256)
    print("shared, and its bytes are there")

    a[:] = os.urandom(SIZE)
    loop.write(ma, pa, mb, pb, SIZE)
    assert a[:] == b[:]
    print("written from one to the other")

    mc = loop.register(pa + 100, 70000)  # the same memory again, with unaligned bounds
    loop.write(mc, pa + 101, mb, pb + 7, 69000)
    assert b[7 : 7 + 69000] == a[101 : 101 + 69000]
    print("registered twice")

    child = os.fork()
    if not child:
        own = a[:100]
        a[:100] = b"c" * 100
        os._exit(0 if not shared(pa) and own != a[:100] else 1)
    assert os.waitpid(child, 0)[1] == 0 and a[:100] != b"c" * 100
    print("a child has its own")

    returned_to_the_kernel(lambda: loop.write(ma, pa, mb, pb, SIZE), a, b)

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
    assert libc.mmap(pa, SIZE, mmap.PROT_READ | mmap.PROT_WRITE, fixed, -1, 0) == pa
    a[:] = b"n" * SIZE
    inside = pa + 8192
    md = loop.register(inside, 4000)  # no whole page, which is not shared: its earlier contents are not tested
    assert not shared(pa)
    loop.write(md, inside, mb, pb, 4000)
    assert b[:4000] == b"n" * 4000
    print("other memory at the same place")

    in_the_heap(loop, libc, b, pb, mb)

    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    c, pc = anonymous()
    me = loop.register(pc)
    assert not shared(pc)
    loop.write(me, pc, mb, pb, SIZE)
    assert b[:] == c[:]
    done.set()
    thread.join()
    print("not while there are threads")


main()
