// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two iWARP adapters on a socket pair: operations, their order and completions, and the end of the stream. */
#include <errno.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "siw/fixture.h"

static void test_operations(void)
{
	static const u32 sizes[] = { 0, 1, 3, 4096, SIW_SEGMENT, SIW_SEGMENT + 1, 400000 };
	struct hca_cqe c;
	u32 i;

	open_both();
	pattern(a.mem, SIZE / 2);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		post_recv(&b, SIZE / 2, SIZE / 2);
		post(&a, HCA_WR_SEND, 0, 0, sizes[i], 0, 0);
		row(10 + (int)i, "SEND: the receive completes",
		    next(&b, &c) == 0 && c.opcode == HCA_WC_RECV && c.byte_len == sizes[i] && !c.solicited &&
			    !memcmp(b.mem + SIZE / 2, a.mem, sizes[i]));
		row(20 + (int)i, "SEND: completion", next(&a, &c) == 0 && c.opcode == HCA_WC_SEND);
		memset(b.mem, 0, SIZE);
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, sizes[i], b.rkey, at(&b, 0));
		row(30 + (int)i, "RDMA WRITE: completion", next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_WRITE);
		row(40 + (int)i, "RDMA WRITE: bytes at the peer", !memcmp(b.mem, a.mem, sizes[i]));
		memset(a.mem + SIZE / 2, 0, SIZE / 2);
		post(&a, HCA_WR_RDMA_READ, 0, SIZE / 2, sizes[i], b.rkey, at(&b, 0));
		row(50 + (int)i, "RDMA READ: completion and bytes",
		    next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_READ && c.byte_len == sizes[i] &&
			    !memcmp(a.mem + SIZE / 2, a.mem, sizes[i]));
	}
	post_recv(&b, 0, 64);
	post(&a, HCA_WR_SEND, HCA_SEND_SOLICITED, 0, 5, 0, 0);
	row(60, "SEND with solicited event", next(&b, &c) == 0 && c.solicited);
	close_both();
}

/* Messages longer than the buffers and the socket's send buffer. */
static void test_long_messages(void)
{
	struct hca_cqe c;
	u32 i, ok = 0;

	open_both();
	pattern(a.mem, SIZE);
	for (i = 0; i < 16; i++)
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, b.rkey, at(&b, 0));
	post(&a, HCA_WR_RDMA_READ, 0, 0, SIZE, b.rkey, at(&b, 0));
	for (i = 0; i < 17; i++)
		ok += next(&a, &c) == 0;
	row(75, "WRITEs of 16 MiB and one READ: completions", ok == 17 && !memcmp(a.mem, b.mem, SIZE));
	pattern(b.mem, SIZE);
	row(76, "WRITEs of 16 MiB and one READ: bytes", !memcmp(a.mem, b.mem, SIZE));
	close_both();
}

static void test_order(void)
{
	struct hca_cqe c;
	u32 i, ok = 0;

	open_both();
	for (i = 0; i < 100; i++) {
		post(&a, HCA_WR_RDMA_READ, 0, 0, 100000, b.rkey, at(&b, 0));
		post(&a, HCA_WR_RDMA_WRITE, HCA_SEND_FENCE, 0, 64, b.rkey, at(&b, 0));
	}
	for (i = 0; i < 200; i++)
		ok += next(&a, &c) == 0 && c.token == (i & 1 ? HCA_WR_RDMA_WRITE : HCA_WR_RDMA_READ);
	row(70, "READs and fenced WRITEs complete in order", ok == 200);
	close_both();
}

static void test_close(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_ERR };
	struct hca_cqe c;
	int fds[2];

	open_both();
	post_recv(&b, 0, 64);
	hca_qp_modify(a.ctx, a.qpn, &attr, HCA_QP_STATE);
	row(80, "ERR: the peer's requests are flushed", next(&b, &c) == HCA_WC_WR_FLUSH_ERR);
	row(81, "ERR: the peer's owner gets an orderly close", b.closed == 0);
	pair(fds);
	row(82, "attach to a queue pair in ERR",
	    siw_qp_attach(a.hca, a.qpn, fds[0], &terms, NULL, 0, on_closed, &a) == -EINVAL);
	close(fds[1]);
	close_both();

	open_both();
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	row(83, "SEND without a receive: the connection is closed", next(&a, &c) == 0 && b.closed == -EPROTO);
	row(84, "SEND without a receive: Terminate", siw_counter(a.hca, SIW_CTR_TERMINATE_RECEIVED) == 1);
	close_both();

	open_both();
	post(&a, HCA_WR_RDMA_READ, 0, 0, 10, b.rkey ^ 0x1000, at(&b, 0));
	row(85, "READ with an invalid STag: status", next(&a, &c) == HCA_WC_REM_ACCESS_ERR);
	close_both();

	open_both();
	post(&a, HCA_WR_SEND_WITH_IMM, 0, 0, 10, 0, 0);
	row(86, "immediate data: status", next(&a, &c) == HCA_WC_LOC_QP_OP_ERR);
	close_both();

	open_both();
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE + 1, b.rkey, at(&b, 0));
	row(87, "an invalid L_Key: status", next(&a, &c) == HCA_WC_LOC_PROT_ERR);
	close_both();
}

/* Memory that is unmapped after the key check: reads and writes of bytes from @gone on fail. */
static const u8 *gone;

static int unmapped_read(void *ctx, const struct hca_dma_seg *seg, u32 n)
{
	return (u64)(uintptr_t)gone - seg->addr < seg->len ? -EFAULT : hca_local_dma.read(ctx, seg, n);
}

static int unmapped_write(void *ctx, const struct hca_dma_seg *seg, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if ((u64)(uintptr_t)gone - seg[i].addr < seg[i].len)
			return -EFAULT;
	return hca_local_dma.write(ctx, seg, n);
}

static const struct hca_dma_ops unmapped_dma = { .read = unmapped_read, .write = unmapped_write };

static void test_unmapped(void)
{
	struct hca_cqe c;

	dma = &unmapped_dma;
	open_both();
	gone = b.mem + 8192;
	post_recv(&b, 0, 64);
	post_recv(&b, 8192, 64);
	post_recv(&b, 4096, 64);
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	row(190, "receive before one whose memory fails", next(&b, &c) == 0 && c.byte_len == 10);
	row(191, "receive whose memory fails", next(&b, &c) == HCA_WC_LOC_PROT_ERR);
	row(192, "receive after it is flushed", next(&b, &c) == HCA_WC_WR_FLUSH_ERR);
	close_both();

	open_both();
	gone = b.mem + 8192;
	post_recv(&b, 0, 64);
	post_recv(&b, 4096, 64);
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 10, b.rkey, at(&b, 8192));
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	row(193, "receive before a WRITE whose memory fails", next(&b, &c) == 0);
	row(194, "receive after that WRITE is flushed", next(&b, &c) == HCA_WC_WR_FLUSH_ERR);
	close_both();

	open_both();
	gone = a.mem + 8192;
	post(&a, HCA_WR_RDMA_READ, 0, 0, 10, b.rkey, at(&b, 0));
	post(&a, HCA_WR_RDMA_READ, 0, 8192, 10, b.rkey, at(&b, 0));
	post(&a, HCA_WR_RDMA_READ, 0, 4096, 10, b.rkey, at(&b, 0));
	row(195, "READ before one whose memory fails", next(&a, &c) == 0);
	row(196, "READ whose memory fails", next(&a, &c) == HCA_WC_LOC_PROT_ERR);
	row(197, "READ after it is flushed", next(&a, &c) == HCA_WC_WR_FLUSH_ERR);
	close_both();

	open_both();
	gone = b.mem + 8192;
	post_recv(&b, 0, 64);
	post(&b, HCA_WR_SEND, 0, 8192, 10, 0, 0);
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	while (next(&b, &c) >= 0 && c.opcode == HCA_WC_SEND)
		;
	row(198, "payload to be sent that cannot be read: no receive fails",
	    c.opcode == HCA_WC_RECV && c.status != HCA_WC_LOC_PROT_ERR);
	close_both();
	dma = &hca_local_dma;
}

/* SEND with Invalidate unbinds a window; the receive completion reports its key (RFC 5040, 5.1). */
static void test_invalidation(void)
{
	struct hca_send_wr bind = { .opcode = HCA_WR_BIND_MW,
				    .access = HCA_ACCESS_REMOTE_WRITE,
				    .bind_len = SIZE,
				    .flags = HCA_SEND_SIGNALED };
	struct hca_cqe c;
	u32 rkey, window;

	open_both();
	bind.bind_addr = at(&b, 0);
	hca_mr_reg(b.ctx, b.pdn, at(&b, 0), at(&b, 0), SIZE, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND, &bind.mr_lkey,
		   &rkey);
	hca_mw_alloc(b.ctx, b.pdn, 2, &bind.mw_rkey);
	bind.reg_key = (bind.mw_rkey & ~0xffu) | (u8)(bind.mw_rkey + 1);
	hca_soft_post_send(b.wq, &bind);
	row(90, "BIND_MW", next(&b, &c) == 0 && c.opcode == HCA_WC_BIND_MW);
	window = bind.reg_key;
	pattern(a.mem, SIZE);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 64, window, at(&b, 0));
	row(91, "RDMA WRITE by the window's STag", next(&a, &c) == 0 && !memcmp(a.mem, b.mem, 64));
	post_recv(&b, SIZE / 2, 64);
	post(&a, HCA_WR_SEND_WITH_INV, HCA_SEND_SOLICITED, 0, 10, window, 0);
	row(92, "SEND with Invalidate: STag in the receive completion",
	    next(&b, &c) == 0 && c.flags & HCA_WC_WITH_INVALIDATE && c.imm == window && c.byte_len == 10 &&
		    c.solicited);
	row(93, "SEND with Invalidate: completion", next(&a, &c) == 0 && c.opcode == HCA_WC_SEND && b.closed == 1);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 64, window, at(&b, 0));
	next(&a, &c);
	row(94, "RDMA WRITE by the invalidated STag",
	    b.closed == -EPROTO && siw_counter(a.hca, SIW_CTR_TERMINATE_RECEIVED) == 1);
	close_both();
}

static void test_single_bytes(void)
{
	struct hca_cqe c;
	u8 fpdu[128];
	int fd = open_raw(), got = -1;
	u32 n = send_build(fpdu, 1, 0, 4, true), i, ok = 0;

	post_recv(&a, 0, 16);
	for (i = 0; i < n; i++) {
		ok += send(fd, fpdu + i, 1, 0) == 1;
		later(60 * 1000 * MS);
		got = next(&a, &c);
		if (i + 1 < n && got != -1)
			break;
	}
	row(150, "an FPDU in single bytes, one a minute", ok == n && got == 0);
	ok = send(fd, fpdu, 7, 0) == 7;
	close(fd);
	loop_run_idle(loop, 0);
	row(151, "the peer closes inside an FPDU", ok && a.closed == -ECONNRESET);
	side_close(&a);

	fd = open_raw();
	post_recv(&a, 0, 16);
	ok = send(fd, fpdu, n - 1, 0) == (ssize_t)n - 1;
	later(60 * 1000 * MS);
	side_close(&a);
	row(152, "the queue pair is destroyed inside an FPDU", ok && recv(fd, fpdu, 1, MSG_DONTWAIT) == 0);
	close(fd);
}

static void test_markers(void)
{
	static const struct mpa_terms marked[] = {
		{ .initiator = true, .crc = true, .mark_in = true, .mark_out = true, .ird = 4, .ord = 4 },
		{ .initiator = true, .mark_in = true, .mark_out = true, .ird = 4, .ord = 4 },
	};
	const struct mpa_terms was = terms;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(marked); i++) {
		terms = marked[i];
		test_operations();
		test_long_messages();
		test_order();
	}
	terms = was;
}

int main(void)
{
	loop = loop_create_virtual();
	test_operations();
	test_long_messages();
	test_order();
	test_markers();
	test_close();
	test_unmapped();
	test_invalidation();
	test_single_bytes();
	loop_destroy(loop);
	return rows_end();
}
