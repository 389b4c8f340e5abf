// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two iWARP adapters with a socket pair between them, and one against a peer that sends what it should not: a row per rule, each
 * wrong input answered by the Terminate that names it.
 */
#include <errno.h>
#include <fcntl.h>
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
		row(10 + (int)i, "a SEND comes",
		    next(&b, &c) == 0 && c.opcode == HCA_WC_RECV && c.byte_len == sizes[i] && !c.solicited &&
			    !memcmp(b.mem + SIZE / 2, a.mem, sizes[i]));
		row(20 + (int)i, "and is complete", next(&a, &c) == 0 && c.opcode == HCA_WC_SEND);
		memset(b.mem, 0, SIZE);
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, sizes[i], b.rkey, at(&b, 0));
		row(30 + (int)i, "a WRITE is complete", next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_WRITE);
		row(40 + (int)i, "and in place", !memcmp(b.mem, a.mem, sizes[i]));
		memset(a.mem + SIZE / 2, 0, SIZE / 2);
		post(&a, HCA_WR_RDMA_READ, 0, SIZE / 2, sizes[i], b.rkey, at(&b, 0));
		row(50 + (int)i, "a READ brings it back",
		    next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_READ && c.byte_len == sizes[i] &&
			    !memcmp(a.mem + SIZE / 2, a.mem, sizes[i]));
	}
	post_recv(&b, 0, 64);
	post(&a, HCA_WR_SEND, HCA_SEND_SOLICITED, 0, 5, 0, 0);
	row(60, "a SEND with solicited event", next(&b, &c) == 0 && c.solicited);
	close_both();
}

/* More than the buffers hold, and than the socket takes at once. */
static void test_bulk(void)
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
	row(75, "16 MiB there and one back", ok == 17 && !memcmp(a.mem, b.mem, SIZE));
	pattern(b.mem, SIZE);
	row(76, "undamaged", !memcmp(a.mem, b.mem, SIZE));
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
	row(70, "many READs and fenced WRITEs complete in order", ok == 200);
	close_both();
}

static void test_ends(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_ERR };
	struct hca_cqe c;
	int fds[2];

	open_both();
	post_recv(&b, 0, 64);
	hca_qp_modify(a.ctx, a.qpn, &attr, HCA_QP_STATE);
	row(80, "the other side flushes", next(&b, &c) == HCA_WC_WR_FLUSH_ERR);
	row(81, "and is told of an orderly end", b.closed == 0);
	pair(fds);
	row(82, "a queue pair in error takes no stream",
	    siw_qp_attach(a.hca, a.qpn, fds[0], &terms, NULL, 0, on_closed, &a) == -EINVAL);
	close(fds[1]);
	close_both();

	open_both();
	post(&a, HCA_WR_SEND, 0, 0, 10, 0, 0);
	row(83, "a SEND that nobody waits for ends the connection", next(&a, &c) == 0 && b.closed == -EPROTO);
	row(84, "by a Terminate", siw_counter(a.hca, SIW_CTR_TERMINATE_RECEIVED) == 1);
	close_both();

	open_both();
	post(&a, HCA_WR_RDMA_READ, 0, 0, 10, b.rkey ^ 0x1000, at(&b, 0));
	row(85, "a READ with a wrong STag", next(&a, &c) == HCA_WC_REM_ACCESS_ERR);
	close_both();

	open_both();
	post(&a, HCA_WR_SEND_WITH_IMM, 0, 0, 10, 0, 0);
	row(86, "immediate data is not there", next(&a, &c) == HCA_WC_LOC_QP_OP_ERR);
	close_both();

	open_both();
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE + 1, b.rkey, at(&b, 0));
	row(87, "memory that is not registered", next(&a, &c) == HCA_WC_LOC_PROT_ERR);
	close_both();
}

/* A SEND with invalidate takes a window away, and its receiver is told which one. RFC 5040, 5.1 */
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
	hca_soft_post_send(b.wq, &bind);
	row(90, "a window is bound", next(&b, &c) == 0 && c.opcode == HCA_WC_BIND_MW);
	window = (bind.mw_rkey & ~0xffu) | (u8)(bind.mw_rkey + 1);
	pattern(a.mem, SIZE);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 64, window, at(&b, 0));
	row(91, "and written to", next(&a, &c) == 0 && !memcmp(a.mem, b.mem, 64));
	post_recv(&b, SIZE / 2, 64);
	post(&a, HCA_WR_SEND_WITH_INV, HCA_SEND_SOLICITED, 0, 10, window, 0);
	row(92, "a SEND names the window that it has invalidated",
	    next(&b, &c) == 0 && c.flags & HCA_WC_WITH_INVALIDATE && c.imm == window && c.byte_len == 10 &&
		    c.solicited);
	row(93, "and is complete", next(&a, &c) == 0 && c.opcode == HCA_WC_SEND && b.closed == 1);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 64, window, at(&b, 0));
	next(&a, &c);
	row(94, "nobody writes to it any more",
	    b.closed == -EPROTO && siw_counter(a.hca, SIW_CTR_TERMINATE_RECEIVED) == 1);
	close_both();
}

/* What a hostile peer sends: one FPDU, made of a header and four bytes of payload. */
struct bad {
	const char *what;
	u8 ddp, rdmap;
	u32 w[4]; /* tagged: STag, high and low half of the offset; untagged: STag, queue, MSN, offset */
	u32 payload;
	enum iwarp_error answer;
	enum siw_counter counter;
	bool recv; /* a receive of 16 bytes is posted */
	u32 len;   /* of the ULPDU, 0: right */
	bool bad_crc;
};

#define T       (DDP_TAGGED | DDP_LAST | DDP_VERSION)
#define U       (DDP_LAST | DDP_VERSION)
#define V(o)    (RDMAP_VERSION | RDMAP_##o)
#define MEM     0xffffffff /* stands for the address of the memory */
#define RKEY    0xfffffffe
#define RO_RKEY 0xfffffffd

static const struct bad bads[] = {
	{ .what = "a wrong CRC", U, V(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_CRC, SIW_CTR_CRC, true, 0, true },
	{ .what = "a ULPDU of one byte", U, V(SEND), { 0, 0, 1, 0 }, 4, MPA_ERR_LENGTH, SIW_CTR_LENGTH, true, 1 },
	{ .what = "an untagged header that is cut",
	  U,
	  V(SEND),
	  { 0, 0, 1, 0 },
	  4,
	  MPA_ERR_LENGTH,
	  SIW_CTR_LENGTH,
	  true,
	  10 },
	{ .what = "a tagged header that is cut",
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
	{ .what = "a message number that was",
	  U,
	  V(SEND),
	  { 0, 0, 0, 0 },
	  4,
	  DDP_ERR_U_MSN,
	  SIW_CTR_DDP_UNTAGGED,
	  true },
	{ .what = "one that is not yet", U, V(SEND), { 0, 0, 2, 0 }, 4, DDP_ERR_U_MSN, SIW_CTR_DDP_UNTAGGED, true },
	{ .what = "an offset beyond what came",
	  U,
	  V(SEND),
	  { 0, 0, 1, 4 },
	  4,
	  DDP_ERR_U_MO,
	  SIW_CTR_DDP_UNTAGGED,
	  true },
	{ .what = "no receive", U, V(SEND), { 0, 0, 1, 0 }, 4, DDP_ERR_U_NO_BUFFER, SIW_CTR_DDP_UNTAGGED },
	{ .what = "more than the receive holds",
	  U,
	  V(SEND),
	  { 0, 0, 1, 0 },
	  20,
	  DDP_ERR_U_TOO_LONG,
	  SIW_CTR_DDP_UNTAGGED,
	  true },
	{ .what = "a SEND on the queue of READs",
	  U,
	  V(SEND),
	  { 0, 1, 1, 0 },
	  4,
	  RDMAP_ERR_OPCODE,
	  SIW_CTR_RDMAP,
	  true },
	{ .what = "an untagged WRITE", U, V(WRITE), { 0, 0, 1, 0 }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP, true },
	{ .what = "a tagged SEND", T, V(SEND), { RKEY, 0, MEM }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP },
	{ .what = "opcode 8", U, RDMAP_VERSION | 8, { 0, 0, 1, 0 }, 4, RDMAP_ERR_OPCODE, SIW_CTR_RDMAP, true },
	{ .what = "a WRITE to no region", T, V(WRITE), { 0x77777700, 0, MEM }, 4, DDP_ERR_T_STAG, SIW_CTR_DDP_TAGGED },
	{ .what = "a WRITE to a region that is read only",
	  T,
	  V(WRITE),
	  { RO_RKEY, 0, MEM },
	  4,
	  RDMAP_ERR_ACCESS,
	  SIW_CTR_RDMAP },
	{ .what = "a WRITE outside the region", T, V(WRITE), { RKEY, 0, 16 }, 4, DDP_ERR_T_BOUNDS, SIW_CTR_DDP_TAGGED },
	{ .what = "a READ response that nobody asked for",
	  T,
	  V(READ_RESPONSE),
	  { RKEY, 0, MEM },
	  4,
	  RDMAP_ERR_OPCODE,
	  SIW_CTR_RDMAP },
	{ .what = "a READ request of a wrong length",
	  U,
	  V(READ_REQUEST),
	  { 0, 1, 1, 0 },
	  4,
	  DDP_ERR_U_MO,
	  SIW_CTR_DDP_UNTAGGED },
	{ .what = "a READ of no region", U, V(READ_REQUEST), { 0, 1, 1, 0 }, 28, RDMAP_ERR_STAG, SIW_CTR_RDMAP },
	{ .what = "an invalidation of what is not there",
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

static void test_bad(void)
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

static void test_slow(void)
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
	row(150, "an FPDU in single bytes, a minute between them", ok == n && got == 0);
	ok = send(fd, fpdu, 7, 0) == 7;
	close(fd);
	loop_run_idle(loop, 0);
	row(151, "a peer that goes in the middle of one", ok && a.closed == -ECONNRESET);
	side_close(&a);

	fd = open_raw();
	post_recv(&a, 0, 16);
	ok = send(fd, fpdu, n - 1, 0) == (ssize_t)n - 1;
	later(60 * 1000 * MS);
	side_close(&a);
	row(152, "the queue pair may go in the middle of one", ok && recv(fd, fpdu, 1, MSG_DONTWAIT) == 0);
	close(fd);
}

static bool got(int fd, u8 *p, u32 size)
{
	loop_run_idle(loop, 0);
	return recv(fd, p, size, MSG_DONTWAIT) == (ssize_t)size;
}

static u32 lingering(void)
{
	return ((const struct siw *)hca_transport_data(a.hca))->nlingering;
}

/* All that the peer can read, in bytes. */
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

#define STUCK 20 /* WRITEs of 1 MiB */

static int open_stuck(void)
{
	int fd = open_raw();
	u32 i;

	for (i = 0; i < STUCK; i++)
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, 7, 0);
	loop_run_idle(loop, 0);
	return fd;
}

/* A peer that reads nothing, or does not go when it is told to. */
static void test_stuck(void)
{
	struct hca_cqe c;
	u32 done = 0, i;
	u64 bytes;
	int fd = open_stuck();

	while (next(&a, &c) == 0)
		done++;
	row(180, "of what a peer does not read little is kept", a.qp->out_len <= SIW_OUT && done < 2);
	later(3600 * 1000 * MS);
	row(181, "however long it takes", a.qp->out_len <= SIW_OUT && next(&a, &c) == -1 && a.closed == 1);
	bytes = read_all(fd);
	while (next(&a, &c) == 0)
		done++;
	row(182, "and then it reads all", done == STUCK && bytes > (u64)STUCK * SIZE);
	side_close(&a);
	close(fd);

	fd = open_stuck();
	while (next(&a, &c) == 0)
		;
	siw_qp_end(a.qp);
	loop_run_idle(loop, 0);
	for (i = 0; next(&a, &c) == HCA_WC_WR_FLUSH_ERR; i++)
		;
	row(183, "an end does not wait for it", i >= STUCK - 2 && lingering() == 1);
	later(1100 * MS);
	row(184, "nor for ever for its own end", !lingering() && siw_counter(a.hca, SIW_CTR_LINGER) == 1);
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_qp_end(a.qp);
	close(fd);
	loop_run_idle(loop, 0);
	row(185, "a peer that goes, too", !lingering() && !siw_counter(a.hca, SIW_CTR_LINGER));
	side_close(&a);

	fd = open_stuck();
	side_close(&a);
	bytes = read_all(fd);
	row(186, "its queue pair may go meanwhile", bytes && bytes < SIZE && !recv(fd, &c, 1, MSG_DONTWAIT));
	close(fd);
}

/* An initiator: its first message waits for a moment, and an empty WRITE is said again while the peer is silent. */
static void test_first(void)
{
	const struct mpa_terms was = terms;
	struct hca_cqe c;
	u8 p[64];
	int fd;

	terms = (struct mpa_terms){ .initiator = true, .rtr_write = true, .ird = 4, .ord = 4 };
	fd = open_raw();
	siw_rtr_start(a.qp);
	post(&a, HCA_WR_SEND, 0, 0, 4, 0, 0);
	row(160, "nothing is sent at once", !got(fd, p, 1));
	later(3 * MS);
	row(161, "then an empty WRITE, and what waited",
	    got(fd, p, 20 + 28) && p[3] == V(WRITE) && p[20 + 3] == V(SEND));
	row(162, "which is complete", next(&a, &c) == 0);
	later(10 * MS);
	row(163, "and the empty WRITE again", got(fd, p, 20) && p[3] == V(WRITE));
	later(5000 * MS);
	row(164, "but not for ever", got(fd, p, 60) && !got(fd, p, 1));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	later(3 * MS);
	row(165, "a peer that has spoken", got(fd, p, 20) && send(fd, p, 20, 0) == 20);
	loop_run_idle(loop, 0);
	later(5000 * MS);
	row(166, "needs no second one", !got(fd, p, 1));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	siw_qp_end(a.qp);
	row(167, "an end does not forget it", got(fd, p, 20) && p[3] == V(WRITE));
	side_close(&a);
	close(fd);
	terms = was;
}

/* A responder that agreed on an empty SEND. */
static void test_zero(void)
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
	row(170, "it waits for that", !got(fd, fpdu, 1));
	ok = send(fd, fpdu, make(&a, &empty, fpdu), 0) > 0;
	row(171, "and then sends", ok && got(fd, fpdu, 24));
	row(172, "its WRITE", next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_WRITE);
	ok = send(fd, fpdu, make(&a, &second, fpdu), 0) > 0;
	row(173, "the receive is for the next SEND", ok && next(&a, &c) == 0 && c.byte_len == 4);
	side_close(&a);
	close(fd);
	terms = was;
}

static void test_marked(void)
{
	static const struct mpa_terms marked[] = {
		{ .crc = true, .mark_in = true, .mark_out = true, .ird = 4, .ord = 4 },
		{ .mark_in = true, .mark_out = true, .ird = 4, .ord = 4 },
	};
	const struct mpa_terms was = terms;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(marked); i++) {
		terms = marked[i];
		test_operations();
		test_bulk();
		test_order();
	}
	terms = was;
}

int main(void)
{
	loop = loop_create_virtual();
	test_operations();
	test_bulk();
	test_order();
	test_marked();
	test_first();
	test_zero();
	test_ends();
	test_invalidation();
	test_bad();
	test_slow();
	test_stuck();
	loop_destroy(loop);
	return rows_end();
}
