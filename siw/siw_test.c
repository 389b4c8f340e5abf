// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two iWARP adapters on a socket pair, and one against a peer that violates the protocol: a row per rule, with the
 * Terminate that the adapter has to send for each invalid input.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "emu/wire/smp.h"
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

/* FPDU of a hostile peer: a header and four bytes of payload. */
struct bad {
	const char *what;
	u8 ddp, rdmap;
	u32 w[4]; /* tagged: STag, high and low half of the offset; untagged: STag, queue, MSN, offset */
	u32 payload;
	enum iwarp_error answer;
	enum siw_counter counter;
	bool recv; /* a receive of 16 bytes is posted */
	u32 len;   /* of the ULPDU, 0: the correct length */
	bool bad_crc;
};

#define T       (DDP_TAGGED | DDP_LAST | DDP_VERSION)
#define U       (DDP_LAST | DDP_VERSION)
#define V(o)    (RDMAP_VERSION | RDMAP_##o)
#define MEM     0xffffffff /* replaced by the address of the memory */
#define RKEY    0xfffffffe
#define RO_RKEY 0xfffffffd

static const struct bad bads[] = {
	{ .what = "a wrong CRC", U, V(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_CRC, SIW_CTR_CRC, true, 0, true },
	{ .what = "a ULPDU of one byte", U, V(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_LENGTH, SIW_CTR_LENGTH, true, 1 },
	{ .what = "truncated untagged header",
	  U,
	  V(SEND),
	  { 0, 0, 1, 0 },
	  4,
	  MPA_ERR_LENGTH,
	  SIW_CTR_LENGTH,
	  true,
	  10 },
	{ .what = "truncated tagged header",
	  T,
	  V(WRITE),
	  { RKEY, 0, MEM },
	  4,
	  MPA_ERR_LENGTH,
	  SIW_CTR_LENGTH,
	  false,
	  10 },
	{ .what = "DDP version 0",
	  DDP_LAST,
	  V(SEND),
	  { 0, 0, 1, 0 },
	  4,
	  DDP_ERR_U_VERSION,
	  SIW_CTR_DDP_UNTAGGED,
	  true },
	{ .what = "tagged, version 2",
	  DDP_TAGGED | DDP_LAST | 2,
	  V(WRITE),
	  { RKEY, 0, MEM },
	  4,
	  DDP_ERR_T_VERSION,
	  SIW_CTR_DDP_TAGGED },
	{ .what = "RDMAP version 0", U, RDMAP_SEND, { 0, 0, 1, 0 }, 4, RDMAP_ERR_VERSION, SIW_CTR_RDMAP, true },
	{ .what = "queue 3", U, V(SEND), { 0, 3, 1, 0 }, 4, DDP_ERR_U_QN, SIW_CTR_DDP_UNTAGGED, true },
	{ .what = "a past MSN", U, V(SEND), { 0, 0, 0, 0 }, 4, DDP_ERR_U_MSN, SIW_CTR_DDP_UNTAGGED, true },
	{ .what = "a future MSN", U, V(SEND), { 0, 0, 2, 0 }, 4, DDP_ERR_U_MSN, SIW_CTR_DDP_UNTAGGED, true },
	{ .what = "MO beyond the bytes received",
	  U,
	  V(SEND),
	  { 0, 0, 1, 4 },
	  4,
	  DDP_ERR_U_MO,
	  SIW_CTR_DDP_UNTAGGED,
	  true },
	{ .what = "no receive", U, V(SEND), { 0, 0, 1, 0 }, 4, DDP_ERR_U_NO_BUFFER, SIW_CTR_DDP_UNTAGGED },
	{ .what = "a message longer than the receive",
	  U,
	  V(SEND),
	  { 0, 0, 1, 0 },
	  20,
	  DDP_ERR_U_TOO_LONG,
	  SIW_CTR_DDP_UNTAGGED,
	  true },
	{ .what = "SEND on queue 1", U, V(SEND), { 0, 1, 1, 0 }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP, true },
	{ .what = "an untagged WRITE", U, V(WRITE), { 0, 0, 1, 0 }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP, true },
	{ .what = "a tagged SEND", T, V(SEND), { RKEY, 0, MEM }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP },
	{ .what = "opcode 8", U, RDMAP_VERSION | 8, { 0, 0, 1, 0 }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP, true },
	{ .what = "WRITE to an invalid STag",
	  T,
	  V(WRITE),
	  { 0x77777700, 0, MEM },
	  4,
	  DDP_ERR_T_STAG,
	  SIW_CTR_DDP_TAGGED },
	{ .what = "a WRITE to a region that is read only",
	  T,
	  V(WRITE),
	  { RO_RKEY, 0, MEM },
	  4,
	  RDMAP_ERR_ACCESS,
	  SIW_CTR_RDMAP },
	{ .what = "a WRITE outside the region", T, V(WRITE), { RKEY, 0, 16 }, 4, DDP_ERR_T_BOUNDS, SIW_CTR_DDP_TAGGED },
	{ .what = "READ response without a request",
	  T,
	  V(READ_RESPONSE),
	  { RKEY, 0, MEM },
	  4,
	  RDMAP_ERR_OPCODE,
	  SIW_CTR_RDMAP },
	{ .what = "READ request of an invalid length",
	  U,
	  V(READ_REQUEST),
	  { 0, 1, 1, 0 },
	  4,
	  DDP_ERR_U_MO,
	  SIW_CTR_DDP_UNTAGGED },
	{ .what = "READ of an invalid STag", U, V(READ_REQUEST), { 0, 1, 1, 0 }, 28, RDMAP_ERR_STAG, SIW_CTR_RDMAP },
	{ .what = "Invalidate of an invalid STag",
	  U,
	  V(SEND_INV),
	  { 0x77777700, 0, 1, 0 },
	  4,
	  RDMAP_ERR_CANNOT_INVALIDATE,
	  SIW_CTR_RDMAP,
	  true },
};

static u32 word(const struct side *s, u32 v)
{
	return v == RKEY ? s->rkey : v == RO_RKEY ? s->ro_rkey : v;
}

static u32 make(const struct side *s, const struct bad *t, u8 *p)
{
	bool tagged = t->ddp & DDP_TAGGED;
	u32 hdr = tagged ? sizeof(struct iwarp_tagged) : sizeof(struct iwarp_untagged);
	u32 ulpdu = t->len ? t->len : hdr - IWARP_LEN_SIZE + t->payload, body = iwarp_fpdu_len(ulpdu) - IWARP_CRC_SIZE,
	    i;
	struct iwarp_ctrl c = { .len = cpu_to_be16((u16)ulpdu), .ddp = t->ddp, .rdmap = t->rdmap };
	__le32 crc;

	memset(p, 1, 128);
	memcpy(p, &c, sizeof(c));
	for (i = 0; i < (tagged ? 3 : 4); i++) {
		__be32 w = cpu_to_be32(word(s, t->w[i]));

		memcpy(p + sizeof(c) + 4 * i, &w, sizeof(w));
	}
	if (tagged && t->w[2] == MEM) {
		__be64 to = cpu_to_be64(at(s, 0));

		memcpy(p + sizeof(c) + 4, &to, sizeof(to));
	}
	crc = iwarp_crc(p, body, true);
	memcpy(p + body, &crc, sizeof(crc));
	p[body] ^= t->bad_crc;
	return body + IWARP_CRC_SIZE;
}

static void test_protocol_errors(void)
{
	u8 fpdu[128];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bads); i++) {
		const struct bad *t = &bads[i];
		int fd = open_raw();
		u32 n = make(&a, t, fpdu);
		bool ok;

		if (t->recv)
			post_recv(&a, 0, 16);
		ok = send(fd, fpdu, n, 0) == (ssize_t)n;
		loop_run_idle(loop, 0);
		row(100 + (int)i, t->what,
		    ok && answered(fd, t->answer) && siw_counter(a.hca, t->counter) == 1 && a.closed == -EPROTO);
		side_close(&a);
		close(fd);
	}
}

static void later(u64 ns)
{
	loop_run_idle(loop, loop_now(loop).ns + ns);
}

#define MS (1000ull * 1000)

static void test_single_bytes(void)
{
	static const struct bad good = { .what = "", U, V(SEND), { 0, 0, 1, 0 }, 4 };
	struct hca_cqe c;
	u8 fpdu[128];
	int fd = open_raw(), got = -1;
	u32 n = make(&a, &good, fpdu), i, ok = 0;

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

static bool got(int fd, u8 *p, u32 size)
{
	loop_run_idle(loop, 0);
	return recv(fd, p, size, MSG_DONTWAIT) == (ssize_t)size;
}

static u32 half_closed(void)
{
	return ((const struct siw *)hca_transport_data(a.hca))->nhalf_closed;
}

/* Reads until the socket is empty; returns the number of bytes. */
static u64 read_all(int fd)
{
	static u8 waste[65536];
	u64 sum = 0;
	ssize_t n;

	do {
		loop_run_idle(loop, 0);
		n = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
		sum += n > 0 ? (u64)n : 0;
	} while (n > 0);
	return sum;
}

#define UNREAD 20 /* WRITEs of 1 MiB */

static int open_zero_window(void)
{
	int fd = open_raw();
	u32 i;

	for (i = 0; i < UNREAD; i++)
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, 7, 0);
	loop_run_idle(loop, 0);
	return fd;
}

/* A peer that does not read (zero TCP window), or does not close its side. */
static void test_zero_window(void)
{
	struct hca_cqe c;
	u32 done = 0, i;
	u64 bytes;
	int fd = open_zero_window();

	while (next(&a, &c) == 0)
		done++;
	row(180, "a peer that does not read: bytes in the send buffer", a.qp->out_len <= SIW_OUT && done < 2);
	later(3600 * 1000 * MS);
	row(181, "the same after an hour", a.qp->out_len <= SIW_OUT && next(&a, &c) == -1 && a.closed == 1);
	bytes = read_all(fd);
	while (next(&a, &c) == 0)
		done++;
	row(182, "the peer reads: all requests complete", done == UNREAD && bytes > (u64)UNREAD * SIZE);
	side_close(&a);
	close(fd);

	fd = open_zero_window();
	while (next(&a, &c) == 0)
		;
	siw_qp_disconnect(a.qp);
	loop_run_idle(loop, 0);
	for (i = 0; next(&a, &c) == HCA_WC_WR_FLUSH_ERR; i++)
		;
	row(183, "disconnect does not wait for the peer", i >= UNREAD - 2 && half_closed() == 1);
	later(1100 * MS);
	row(184, "half-closed stream: aborted after its time-out",
	    !half_closed() && siw_counter(a.hca, SIW_CTR_HALF_CLOSED_ABORT) == 1);
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_qp_disconnect(a.qp);
	close(fd);
	loop_run_idle(loop, 0);
	row(185, "half-closed stream: freed when the peer closes",
	    !half_closed() && !siw_counter(a.hca, SIW_CTR_HALF_CLOSED_ABORT));
	side_close(&a);

	fd = open_zero_window();
	side_close(&a);
	bytes = read_all(fd);
	row(186, "half-closed stream: the queue pair is destroyed",
	    bytes && bytes < SIZE && !recv(fd, &c, 1, MSG_DONTWAIT));
	close(fd);
}

/* Initiator: its first message is delayed, and an empty WRITE is repeated while the peer sends nothing. */
static void test_rtr(void)
{
	const struct mpa_terms was = terms;
	struct hca_cqe c;
	u8 p[64];
	int fd;

	terms = (struct mpa_terms){ .initiator = true, .rtr_write = true, .ird = 4, .ord = 4 };
	fd = open_raw();
	siw_rtr_start(a.qp);
	post(&a, HCA_WR_SEND, 0, 0, 4, 0, 0);
	row(160, "RTR: no FPDU is sent before the delay", !got(fd, p, 1));
	later(3 * MS);
	row(161, "RTR: an empty WRITE, then the delayed request",
	    got(fd, p, 20 + 28) && p[3] == V(WRITE) && p[20 + 3] == V(SEND));
	row(162, "RTR: that request completes", next(&a, &c) == 0);
	later(10 * MS);
	row(163, "RTR: the empty WRITE is repeated", got(fd, p, 20) && p[3] == V(WRITE));
	later(5000 * MS);
	row(164, "RTR: the repetitions end", got(fd, p, 60) && !got(fd, p, 1));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	later(3 * MS);
	row(165, "RTR: the peer sends an FPDU", got(fd, p, 20) && send(fd, p, 20, 0) == 20);
	loop_run_idle(loop, 0);
	later(5000 * MS);
	row(166, "RTR: no repetition after that", !got(fd, p, 1));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	siw_qp_disconnect(a.qp);
	row(167, "RTR: disconnect sends the delayed message", got(fd, p, 20) && p[3] == V(WRITE));
	side_close(&a);
	close(fd);
	terms = was;
}

/* A responder that has negotiated an empty SEND. */
static void test_rtr_zero_length(void)
{
	static const struct bad empty = { .what = "", U, V(SEND), { 0, 0, 1, 0 }, 0 };
	static const struct bad second = { .what = "", U, V(SEND), { 0, 0, 2, 0 }, 4 };
	const struct mpa_terms was = terms;
	struct hca_cqe c;
	u8 fpdu[128];
	bool ok;
	int fd;

	terms = (struct mpa_terms){ .crc = true, .rtr_zero = true, .ird = 4, .ord = 4 };
	fd = open_raw();
	post_recv(&a, 0, 16);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 4, 7, 0);
	row(170, "responder: no FPDU before the initiator's first", !got(fd, fpdu, 1));
	ok = send(fd, fpdu, make(&a, &empty, fpdu), 0) > 0;
	row(171, "responder: sends after a zero-length FPDU", ok && got(fd, fpdu, 24));
	row(172, "responder: its WRITE completes", next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_WRITE);
	ok = send(fd, fpdu, make(&a, &second, fpdu), 0) > 0;
	row(173, "a zero-length RTR SEND consumes no receive", ok && next(&a, &c) == 0 && c.byte_len == 4);
	side_close(&a);
	close(fd);
	terms = was;
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

static struct fault *arm(const char *text)
{
	char err[300] = "";
	struct fault *ft = fault_add(siw_faults(b.hca), text, err, sizeof(err));

	if (!ft)
		printf("%s: %s\n", text, err);
	return ft;
}

/* Sends @n SENDs of 8 bytes from a to b; returns how many complete at b without an error. */
static u32 sends(u32 n)
{
	struct hca_cqe c;
	u32 i, ok = 0;

	for (i = 0; i < n; i++) {
		post_recv(&b, i * 8, 8);
		post(&a, HCA_WR_SEND, 0, i * 8, 8, 0, 0);
	}
	while (next(&b, &c) >= 0)
		ok += c.status == HCA_WC_SUCCESS;
	return ok;
}

static void test_fault_rst(void)
{
	struct fault *ft;

	open_both();
	ft = arm("w2 rst nth=2");
	row(400, "a reset before the second FPDU", sends(3) == 1 && b.closed == -ECONNRESET && ft->pick.hits == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_half_close(void)
{
	struct fault *ft;
	u32 ok;

	open_both();
	ft = arm("w2 half-close nth=2");
	ok = sends(2);
	row(410, "data before a half-close is received, and the FPDU itself", ok == 2 && !a.closed);
	fault_remove(ft);
	close_both();
}

static void test_fault_stall(void)
{
	struct fault *ft;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm("w2 stall nth=2");
	row(420, "a stall before the second FPDU", sends(3) == 1 && a.closed == 1 && b.closed == 1);
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, 8, a.rkey, at(&a, 0));
	later(1000 * MS);
	row(421, "no FPDU is sent either", next(&b, &c) == -1);
	fault_remove(ft);
	for (ok = 0; next(&b, &c) >= 0;)
		ok += c.status == HCA_WC_SUCCESS;
	row(422, "all streams continue when it is cleared", ok == 3 && a.closed == 1 && b.closed == 1);
	close_both();
}

static void test_fault_delay(void)
{
	struct fault *ft;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm("w2 delay nth=2 time=20ms");
	row(430, "the second FPDU waits", sends(3) == 1);
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, 8, a.rkey, at(&a, 0));
	row(431, "the other direction does not", next(&b, &c) == HCA_WC_SUCCESS && c.token == HCA_WR_RDMA_WRITE);
	later(30 * MS);
	for (ok = 0; next(&b, &c) >= 0;)
		ok += c.status == HCA_WC_SUCCESS;
	row(432, "for its time, once", ok == 2 && ft->pick.hits == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_corrupt(void)
{
	struct fault *ft;

	open_both();
	ft = arm("w2 corrupt what=payload nth=2");
	row(433, "a damaged FPDU: the CRC detects it, and the stream ends",
	    sends(3) == 1 && b.closed && siw_counter(b.hca, SIW_CTR_CRC) == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_corrupt_without_crc(void)
{
	struct fault *ft;
	u32 ok;

	terms.crc = false;
	open_both();
	ft = arm("w2 corrupt what=payload offset=3 nth=2");
	memset(a.mem, 0x55, 64);
	ok = sends(3);
	row(434, "without CRC one bit is another",
	    ok == 3 && b.mem[10] == 0x55 && b.mem[11] != 0x55 && b.mem[19] == 0x55);
	fault_remove(ft);
	close_both();
	terms.crc = true;
}

static void test_fault_rate(void)
{
	struct fault *ft;
	struct hca_cqe c;

	open_both();
	ft = arm("w2 rate bps=8k");
	row(435, "a slow stream", sends(3) == 0);
	later(60 * MS);
	row(436, "one FPDU of 32 bytes in 32 ms", next(&b, &c) == HCA_WC_SUCCESS && next(&b, &c) == -1);
	later(30 * MS);
	row(437, "the next", next(&b, &c) == HCA_WC_SUCCESS && next(&b, &c) == -1);
	fault_remove(ft);
	close_both();
}

static void test_fault_down(void)
{
	struct fault *ft, *other;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm("w2 down");
	row(450, "a link that is down: no FPDU is received", sends(2) == 0 && b.port.attr.state == PORT_STATE_DOWN);
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, 8, a.rkey, at(&a, 0));
	later(1000 * MS);
	row(451, "nor sent, and the streams stay", next(&b, &c) == -1 && !b.closed == !a.closed && b.closed == 1);
	other = arm("w2 stall");
	fault_remove(ft);
	row(452, "up, with a stall from the first FPDU after the WRITE",
	    b.port.attr.state == PORT_STATE_ACTIVE && next(&b, &c) == HCA_WC_SUCCESS && c.token == HCA_WR_RDMA_WRITE &&
		    next(&b, &c) == -1);
	fault_remove(other);
	for (ok = 1; next(&b, &c) >= 0;)
		ok += c.status == HCA_WC_SUCCESS;
	row(453, "all streams continue", ok == 3);
	close_both();
}

static void test_fault_kill(void)
{
	struct fault *ft;

	open_both();
	ft = arm("w2 kill for=1s");
	row(460, "a killed host resets its streams", sends(1) == 0 && b.closed == -ECONNRESET);
	later(1100 * MS);
	row(461, "and is back", b.port.attr.state == PORT_STATE_ACTIVE && !ft->applied);
	fault_remove(ft);
	close_both();
}

static void test_fault_trigger(void)
{
	struct fault *ft;

	open_both();
	ft = arm("w2 down nth=2 for=1s");
	row(462, "a link that the second FPDU sets down", sends(1) == 1 && b.port.attr.state == PORT_STATE_ACTIVE);
	sends(1);
	row(463, "then, and not before", b.port.attr.state == PORT_STATE_DOWN && ft->pick.hits == 1);
	later(1100 * MS);
	row(464, "for its time", b.port.attr.state == PORT_STATE_ACTIVE && b.closed == 1);
	fault_remove(ft);
	ft = arm("w2 kill nth=1 qpn=1");
	row(465, "another queue pair's", sends(1) == 1 && !ft->pick.seen);
	fault_remove(ft);
	ft = arm("w2 kill nth=2");
	sends(2);
	row(466, "a host that is killed by an FPDU", b.closed == -ECONNRESET && ft->pick.hits == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_jitter(void)
{
	struct fault *ft;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm("w2 delay jitter=20ms");
	ok = sends(3);
	row(467, "a random delay of each FPDU", ok < 3);
	later(70 * MS);
	while (next(&b, &c) >= 0)
		ok += c.status == HCA_WC_SUCCESS;
	row(468, "of less than the jitter", ok == 3 && ft->pick.hits == 3);
	fault_remove(ft);
	close_both();
}

/* Half an FPDU is the last that the peer receives. */
static void test_fault_truncate(void)
{
	static const struct {
		const char *what, *text;
		bool reset;
	} rows[] = {
		{ "RST", "w2 truncate nth=2", true },
		{ "FIN", "w2 truncate nth=2 end=fin", false },
		{ "FIN after the length", "w2 truncate nth=2 end=fin bytes=2", false },
	};
	struct hca_cqe c;
	struct fault *ft;
	u32 i, k, done, got;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		open_both();
		ft = arm(rows[i].text);
		for (k = 0; k < 3; k++) {
			post_recv(&a, k * 8, 8);
			post(&b, HCA_WR_SEND, 0, k * 8, 8, 0, 0);
		}
		for (got = 0; next(&a, &c) >= 0;)
			got += c.status == HCA_WC_SUCCESS;
		for (done = 0; next(&b, &c) >= 0;)
			done += c.status == HCA_WC_SUCCESS;
		row(470 + (int)i, rows[i].what, got == 1 && done == 1 && a.closed != 1 && ft->pick.hits == 1);
		row(475 + (int)i, rows[i].what,
		    b.closed != 1 && (b.closed == -ECONNRESET) == rows[i].reset &&
			    siw_counter(a.hca, SIW_CTR_CRC) == 0);
		fault_remove(ft);
		close_both();
	}
}

static void test_fault_of_queue_pair(void)
{
	struct fault *ft;

	open_both();
	ft = arm("w2 stall qpn=1");
	row(440, "another queue pair's", sends(3) == 3 && !ft->pick.seen);
	fault_remove(ft);
	ft = arm("w2 stall");
	row(441, "every stream is stalled", sends(3) == 0);
	close_both(); /* with the queue pair stalled, and the fault armed */
}

static void test_faults(void)
{
	test_fault_rst();
	test_fault_half_close();
	test_fault_stall();
	test_fault_delay();
	test_fault_corrupt();
	test_fault_corrupt_without_crc();
	test_fault_rate();
	test_fault_down();
	test_fault_kill();
	test_fault_trigger();
	test_fault_jitter();
	test_fault_truncate();
	test_fault_of_queue_pair();
}

int main(void)
{
	loop = loop_create_virtual();
	test_operations();
	test_long_messages();
	test_order();
	test_markers();
	test_rtr();
	test_rtr_zero_length();
	test_close();
	test_unmapped();
	test_invalidation();
	test_protocol_errors();
	test_single_bytes();
	test_zero_window();
	test_faults();
	loop_destroy(loop);
	return rows_end();
}
