// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A stream received in parts of any length: long payload is received by zero-copy, and only after its headers were
 * checked.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/hca/late_fixture.h"
#include "emu/lib/row.h"
#include "siw/fixture.h"

#define STREAM 2048
#define INBOX  (SIZE / 2)

static const struct mpa_terms plain = { .initiator = true, .ird = 4, .ord = 4 };
static u8 bytes[STREAM];

static int open_infpdu_build(const struct mpa_terms *t)
{
	int fd;

	terms = *t;
	fd = open_raw();
	a.qp->siw->direct_min = 1;
	return fd;
}

/* Receives @len bytes, as many per call as the transport requests. False: it closed the stream, or requested none. */
static bool feed(const u8 *p, u32 len)
{
	struct iovec iov[SIW_PIECES];
	u32 room;
	int n, i;

	for (; len && a.qp->fd.fd >= 0; p += room, len -= room) {
		u32 left;

		n = siw_input_prepare(a.qp, iov, SIW_PIECES, &room);
		if (!n)
			return false;
		room = left = min(room, len);
		for (i = 0; i < n; i++) {
			u32 part = min((u32)iov[i].iov_len, left);

			memcpy(iov[i].iov_base, p + (room - left), part);
			left -= part;
		}
		siw_input_received(a.qp, room + (room == len), room);
	}
	return a.qp->fd.fd >= 0;
}

static u32 tagged_build(u8 *at, u8 opcode, u32 stag, u64 to, u32 from, u32 payload, bool last)
{
	const struct iwarp_tagged t = { .c = { .ddp = DDP_TAGGED | DDP_VERSION | (last ? DDP_LAST : 0),
					       .rdmap = RDMAP_VERSION | opcode },
					.stag = cpu_to_be32(stag),
					.to = cpu_to_be64(to) };

	return fpdu_build(at, &t.c, &t.stag, sizeof(t) - sizeof(t.c), from, payload);
}

static bool is_pattern(const u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (p[i] != (u8)(i * 7 + 1))
			return false;
	return true;
}

static bool is_zero(const u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len && !p[i]; i++)
		;
	return i == len;
}

/* Writes all FPDUs with data, of odd lengths; a SEND goes to three SGEs. */
static u32 put_all(u8 *at_)
{
	u8 *p = at_;

	p += tagged_build(p, RDMAP_WRITE, a.rkey, at(&a, 0), 0, 201, false);
	p += tagged_build(p, RDMAP_WRITE, a.rkey, at(&a, 201), 201, 99, true);
	p += send_build(p, 1, 0, 150, false);
	p += tagged_build(p, RDMAP_READ_RESPONSE, a.lkey, at(&a, 1000), 0, 120, false);
	p += send_build(p, 1, 150, 73, true);
	p += tagged_build(p, RDMAP_READ_RESPONSE, a.lkey, at(&a, 1120), 120, 130, true);
	p += send_build(p, 2, 0, 5, true);
	return (u32)(p - at_);
}

static void post_inbox(void)
{
	struct hca_recv_wr wr = { .num_sge = 3 };
	u32 i;

	for (i = 0; i < 3; i++)
		wr.sge[i] = (struct hca_sge){ at(&a, INBOX + 100 * i), 100, a.lkey };
	hca_soft_post_recv(a.wq, &wr);
	post_recv(&a, INBOX + 1000, 100);
	post(&a, HCA_WR_RDMA_READ, 0, 1000, 250, 9, 0);
	loop_run_idle(loop, 0);
}

static bool all_there(void)
{
	u32 recvs = 0, reads = 0;
	struct hca_cqe c;
	bool ok = is_pattern(a.mem, 300) && is_zero(a.mem + 300, 700) && is_pattern(a.mem + 1000, 250) &&
		  is_zero(a.mem + 1250, 100) && is_pattern(a.mem + INBOX, 223) && is_zero(a.mem + INBOX + 223, 77) &&
		  is_pattern(a.mem + INBOX + 1000, 5);

	while (next(&a, &c) == 0) /* receives complete in order; the READ may complete after both */
		if (c.opcode == HCA_WC_RECV)
			ok &= c.byte_len == (recvs++ ? 5 : 223);
		else
			reads += c.opcode == HCA_WC_RDMA_READ && c.byte_len == 250;
	ok &= recvs == 2 && reads == 1;
	return ok && siw_counter(a.hca, SIW_CTR_FPDU_RECEIVED) == 7;
}

/* In two parts, split at each byte; and in parts of each length. */
static void test_cuts(int base, const struct mpa_terms *t)
{
	u32 len = 1, cut, ok = 0, steps = 0;

	for (cut = 1; cut < len || cut == 1; cut++) {
		int fd = open_infpdu_build(t);
		u32 at_ = 0, n;

		len = put_all(bytes);
		post_inbox();
		if (feed(bytes, cut) && feed(bytes + cut, len - cut))
			ok += all_there();
		side_close(&a);
		close(fd);

		fd = open_infpdu_build(t);
		len = put_all(bytes);
		post_inbox();
		for (; at_ < len; at_ += n) {
			n = min(cut, len - at_);
			if (!feed(bytes + at_, n))
				break;
		}
		steps += at_ == len && all_there();
		side_close(&a);
		close(fd);
	}
	row(base, "stream cut at each byte", len > 900 && ok == len - 1);
	row(base + 1, "stream in parts of each length", steps == len - 1);
}

static void test_direct(void)
{
	struct iovec iov[SIW_PIECES];
	int fd = open_infpdu_build(&plain);
	u32 len = tagged_build(bytes, RDMAP_WRITE, a.rkey, at(&a, 0), 0, 500, true), room;

	len += tagged_build(bytes + len, RDMAP_WRITE, a.rkey, at(&a, 500), 500, 500, true);
	row(30, "headers with a part of the payload", feed(bytes, 16 + 50) && is_pattern(a.mem, 50));
	row(31, "zero-copy receive of the rest",
	    siw_input_prepare(a.qp, iov, SIW_PIECES, &room) == 2 && iov[0].iov_base == a.mem + 50 &&
		    iov[0].iov_len == 450);
	row(32, "trailer and next headers to the buffer", iov[1].iov_len == 4 + 16 && room == 470);
	row(33, "trailer, next headers and its payload to the buffer",
	    feed(bytes + 66, 470) && siw_input_prepare(a.qp, iov, SIW_PIECES, &room) == 2 && iov[0].iov_len == 500 &&
		    iov[0].iov_base == a.mem + 500);
	row(34, "all payload is placed", feed(bytes + 536, len - 536) && is_pattern(a.mem, 1000));
	side_close(&a);
	close(fd);
}

/* Header errors are detected before the payload is received, and none of it is written. */
static void test_invalid_headers(void)
{
	int fd = open_infpdu_build(&plain);
	struct hca_cqe c;

	tagged_build(bytes, RDMAP_WRITE, a.rkey, at(&a, SIZE - 499), 0, 500, true);
	row(40, "WRITE beyond the end of the region",
	    !feed(bytes, 16 + 100) && answered(fd, DDP_ERR_T_BOUNDS) && is_zero(a.mem + SIZE - 499, 499));
	side_close(&a);
	close(fd);

	fd = open_infpdu_build(&plain);
	tagged_build(bytes, RDMAP_WRITE, a.ro_rkey, at(&a, 0), 0, 500, true);
	row(41, "WRITE to a read-only region", !feed(bytes, 16 + 100) && answered(fd, RDMAP_ERR_ACCESS) && !a.mem[0]);
	side_close(&a);
	close(fd);

	fd = open_infpdu_build(&plain);
	post_recv(&a, 0, 499);
	send_build(bytes, 1, 0, 500, true);
	row(42, "SEND longer than the receive: Terminate",
	    !feed(bytes, 20 + 100) && answered(fd, DDP_ERR_U_TOO_LONG) && !a.mem[0]);
	row(43, "SEND longer than the receive: status", next(&a, &c) == HCA_WC_LOC_LEN_ERR);
	side_close(&a);
	close(fd);

	fd = open_infpdu_build(&plain);
	tagged_build(bytes, RDMAP_READ_RESPONSE, a.lkey, at(&a, 0), 0, 500, true);
	row(44, "READ response without a request",
	    !feed(bytes, 16 + 100) && answered(fd, RDMAP_ERR_OPCODE) && !a.mem[0]);
	side_close(&a);
	close(fd);
}

/* The key is invalidated while the payload is being received. */
static void test_revoked(void)
{
	int fd = open_infpdu_build(&plain);
	struct hca_cqe c;

	tagged_build(bytes, RDMAP_WRITE, a.rkey, at(&a, 0), 0, 500, true);
	row(50, "WRITE, a part of its payload", feed(bytes, 16 + 100));
	hca_mr_dereg(a.ctx, a.lkey);
	row(51, "STag invalidated before the rest: Terminate", !feed(bytes + 116, 200) && answered(fd, DDP_ERR_T_STAG));
	row(52, "STag invalidated before the rest: no data placed",
	    is_pattern(a.mem, 100) && is_zero(a.mem + 100, 400));
	side_close(&a);
	close(fd);

	fd = open_infpdu_build(&plain);
	post_recv(&a, 0, 500);
	send_build(bytes, 1, 0, 500, true);
	row(53, "SEND, a part of its payload", feed(bytes, 20 + 100));
	hca_mr_dereg(a.ctx, a.lkey);
	row(54, "L_Key of the receive invalidated before the rest: Terminate",
	    !feed(bytes + 120, 200) && answered(fd, RDMAP_ERR_CATASTROPHIC));
	row(55, "L_Key of the receive invalidated before the rest: status",
	    next(&a, &c) == HCA_WC_LOC_PROT_ERR && is_zero(a.mem + 100, 400));
	side_close(&a);
	close(fd);

	fd = open_infpdu_build(&plain);
	post(&a, HCA_WR_RDMA_READ, 0, 0, 500, 9, 0);
	loop_run_idle(loop, 0);
	recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT); /* the READ request */
	tagged_build(bytes, RDMAP_READ_RESPONSE, a.lkey, at(&a, 0), 0, 500, true);
	row(56, "READ response, a part of its payload", feed(bytes, 16 + 100));
	hca_mr_dereg(a.ctx, a.lkey);
	row(57, "L_Key of the READ invalidated before the rest: Terminate",
	    !feed(bytes + 116, 200) && answered(fd, DDP_ERR_T_STAG));
	row(58, "L_Key of the READ invalidated before the rest: status",
	    next(&a, &c) == HCA_WC_LOC_PROT_ERR && is_zero(a.mem + 100, 400));
	side_close(&a);
	close(fd);

	fd = open_infpdu_build(&plain);
	tagged_build(bytes, RDMAP_WRITE, a.rkey, at(&a, 0), 0, 500, true);
	row(59, "the peer closes inside the payload",
	    feed(bytes, 16 + 100) && !siw_input_received(a.qp, 400, 0) && a.closed == -ECONNRESET);
	side_close(&a);
	close(fd);
}

/* The memory is unmapped after its registration: TCP returns EFAULT. */
static void test_unwritable(void)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_infpdu_build(&plain);
	u32 key, rkey, len;

	hca_mr_reg(a.ctx, a.pdn, (u64)(uintptr_t)p, (u64)(uintptr_t)p, 8192, 0xf, &key, &rkey);
	len = tagged_build(bytes, RDMAP_WRITE, rkey, (u64)(uintptr_t)p, 0, 1000, true);
	mprotect(p, 8192, PROT_NONE);
	row(60, "WRITE to unmapped memory: zero-copy receive fails",
	    send(fd, bytes, 16, 0) == 16 && (loop_run_idle(loop, 0), true) &&
		    send(fd, bytes + 16, len - 16, 0) == (ssize_t)len - 16);
	loop_run_idle(loop, 0);
	row(61, "WRITE to unmapped memory: Terminate", answered(fd, DDP_ERR_T_STAG) && a.closed == -EPROTO);
	side_close(&a);
	close(fd);
	munmap(p, 8192);
}

/* The same FPDUs again: TCP does not repeat data, but a peer may. */
static void test_repeated(void)
{
	static const struct mpa_terms with_crc = { .initiator = true, .crc = true, .ird = 4, .ord = 4 };
	const struct mpa_terms *t[] = { &plain, &with_crc };
	struct hca_cqe c;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int fd = open_infpdu_build(t[i]);
		u32 len;

		post_recv(&a, 0, 100);
		post_recv(&a, 200, 100);
		len = send_build(bytes, 1, 0, 100, true);
		row(70 + 2 * (int)i, "SEND", feed(bytes, len) && next(&a, &c) == 0);
		row(71 + 2 * (int)i, "the same MSN again: Terminate",
		    !feed(bytes, len) && answered(fd, DDP_ERR_U_MSN) && next(&a, &c) == HCA_WC_WR_FLUSH_ERR &&
			    is_zero(a.mem + 200, 100));
		side_close(&a);
		close(fd);
	}
}

/* A program writes more SGEs to its receive queue than that may have. */
static void test_malformed_receive(void)
{
	struct hca_recv_wr wr = { .token = 7, .num_sge = 2 };
	int fd = open_infpdu_build(&plain);
	struct hca_cqe c;

	wr.sge[0] = wr.sge[1] = (struct hca_sge){ at(&a, 0), 64, a.lkey };
	hca_soft_post_recv(a.wq, &wr);
	post_recv(&a, 64, 64);
	a.qp->qp->max_recv_sge = 1;
	row(75, "SEND to a malformed receive: Terminate",
	    !feed(bytes, send_build(bytes, 1, 0, 64, true)) && answered(fd, RDMAP_ERR_CATASTROPHIC));
	row(76, "the receive fails", next(&a, &c) == HCA_WC_LOC_QP_OP_ERR && c.opcode == HCA_WC_RECV && c.token == 7);
	row(77, "the next one is flushed", next(&a, &c) == HCA_WC_WR_FLUSH_ERR && c.token == 100);
	row(78, "no data is placed", is_zero(a.mem, 128) && next(&a, &c) == -1);
	side_close(&a);
	close(fd);
}

#define MANY (2 * SIW_COMPS + 3)

/* More messages in one call than SIW_COMPS. */
static void test_many(void)
{
	static const struct mpa_terms with_crc = { .initiator = true, .crc = true, .ird = 4, .ord = 4 };
	static u8 burst[64 * MANY];
	int fd = open_infpdu_build(&with_crc);
	u32 i, len = 0, ok = 0;
	struct hca_cqe c;

	for (i = 0; i < MANY; i++) {
		post_recv(&a, 32 * i, 32);
		len += send_build(burst + len, i + 1, 0, i % 32, true);
	}
	row(80, "more SENDs than completions are queued", feed(burst, len));
	for (i = 0; i < MANY && next(&a, &c) == 0; i++)
		ok += c.byte_len == i % 32 && is_pattern(a.mem + 32 * i, i % 32);
	row(81, "each SEND completes its receive, in order", ok == MANY && next(&a, &c) == -1);
	side_close(&a);
	close(fd);
}

/* While @late, moves start; then they may fail. */
static bool late, failing;

static int late_read(void *ctx, const struct hca_dma_seg *seg, u32 n)
{
	return late ? -EAGAIN : failing ? -EFAULT : hca_local_dma.read(ctx, seg, n);
}

static int late_write(void *ctx, const struct hca_dma_seg *seg, u32 n)
{
	return late ? -EAGAIN : failing ? -EFAULT : hca_local_dma.write(ctx, seg, n);
}

static const struct hca_dma_ops late_dma = { .read = late_read, .write = late_write, .start = late_start };

static void late_end(bool failed)
{
	late = false;
	failing = failed;
	late_moves_end(&late_dma, NULL);
	failing = false;
}

static int open_late(void)
{
	static const struct mpa_terms with_crc = { .initiator = true, .crc = true, .ird = 4, .ord = 4 };
	int fd;

	dma = &late_dma;
	fd = open_infpdu_build(&with_crc);
	dma = &hca_local_dma;
	return fd;
}

static u32 read_request_build(u8 *p, u32 stag, u64 from, u32 len)
{
	const struct iwarp_read r = { .u = { .c = { .ddp = DDP_VERSION | DDP_LAST,
						    .rdmap = RDMAP_VERSION | RDMAP_READ_REQUEST },
					     .qn = cpu_to_be32(DDP_QN_READ),
					     .msn = cpu_to_be32(1) },
				      .size = cpu_to_be32(len),
				      .source_stag = cpu_to_be32(stag),
				      .source_to = cpu_to_be64(from) };

	return fpdu_build(p, &r.u.c, &r.u.inv_stag, sizeof(r) - sizeof(r.u.c), 0, 0);
}

static u32 terminate_build(u8 *p, enum iwarp_error err)
{
	const struct iwarp_terminate t = { .u = { .c = { .ddp = DDP_VERSION | DDP_LAST,
							 .rdmap = RDMAP_VERSION | RDMAP_TERMINATE },
						  .qn = cpu_to_be32(DDP_QN_TERMINATE),
						  .msn = cpu_to_be32(1) },
					   .layer_type = (u8)(err >> 8),
					   .code = (u8)err };

	return fpdu_build(p, &t.u.c, &t.u.inv_stag, sizeof(t) - sizeof(t.u.c), 0, 0);
}

/* The order of events while moves to memory are pending. */
static void test_late(void)
{
	struct hca_qp_attr sqd = { .state = HCA_QPS_SQD };
	u8 got[256];
	struct hca_cqe c;
	int fd;
	u32 n;

	fd = open_late();
	late = true;
	n = tagged_build(bytes, RDMAP_WRITE, a.rkey, at(&a, 0), 0, 64, true);
	n += read_request_build(bytes + n, a.rkey, at(&a, 0), 64);
	feed(bytes, n);
	loop_run_idle(loop, 0);
	row(90, "no response to a READ before the data of the WRITE are in memory",
	    late_count == 1 && recv(fd, got, sizeof(got), MSG_DONTWAIT) < 0);
	late_end(false);
	loop_run_idle(loop, 0);
	row(91, "and then the response with them",
	    recv(fd, got, sizeof(got), MSG_DONTWAIT) == sizeof(struct iwarp_tagged) + 64 + IWARP_CRC_SIZE &&
		    is_pattern(got + sizeof(struct iwarp_tagged), 64));
	side_close(&a);
	close(fd);

	fd = open_late();
	post(&a, HCA_WR_RDMA_READ, 0, 0, 64, 9, 0);
	post(&a, HCA_WR_SEND, 0, 1000, 64, 0, 0);
	post(&a, HCA_WR_RDMA_READ, 0, 2000, 64, 9, 0);
	loop_run_idle(loop, 0);
	late = true;
	n = tagged_build(bytes, RDMAP_READ_RESPONSE, a.lkey, at(&a, 0), 0, 64, true);
	n += terminate_build(bytes + n, RDMAP_ERR_STAG);
	feed(bytes, n);
	row(92, "a READ with pending data, before a Terminate", late_count == 1 && next(&a, &c) == -1);
	late_end(false);
	row(93, "completes", next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_READ && is_pattern(a.mem, 64));
	row(94, "as the SEND after it", next(&a, &c) == 0 && c.opcode == HCA_WC_SEND);
	row(95, "and the next request fails", next(&a, &c) == HCA_WC_REM_ACCESS_ERR && c.opcode == HCA_WC_RDMA_READ);
	side_close(&a);
	close(fd);

	fd = open_late();
	post(&a, HCA_WR_RDMA_READ, 0, 0, 64, 9, 0);
	post(&a, HCA_WR_SEND, HCA_SEND_FENCE, 0, 64, 0, 0);
	loop_run_idle(loop, 0);
	late = true;
	n = tagged_build(bytes, RDMAP_READ_RESPONSE, a.lkey, at(&a, 0), 0, 64, true);
	feed(bytes, n);
	row(96, "only the READ request is sent",
	    late_count == 1 && recv(fd, got, sizeof(got), MSG_DONTWAIT) == sizeof(struct iwarp_read) + IWARP_CRC_SIZE);
	late_end(true);
	hca_qp_modify(a.ctx, a.qpn, &sqd, HCA_QP_STATE);
	loop_run_idle(loop, 0);
	row(97, "a fenced SEND after a READ that failed is not: Terminate", answered(fd, RDMAP_ERR_CATASTROPHIC));
	row(98, "the READ fails", next(&a, &c) == HCA_WC_LOC_PROT_ERR);
	row(99, "and the SEND is flushed", next(&a, &c) == HCA_WC_WR_FLUSH_ERR);
	side_close(&a);
	close(fd);
}

/* The stream is closed while payload is fetched and received data are moved, which fails. */
static void test_late_at_close(void)
{
	struct hca_qp_attr error = { .state = HCA_QPS_ERR };
	int fd = open_late(), fds[2];
	struct hca_cqe c;

	post_recv(&a, 0, 64);
	late = true;
	post(&a, HCA_WR_SEND, 0, 1000, 64, 0, 0);
	loop_run_idle(loop, 0);
	feed(bytes, send_build(bytes, 1, 0, 64, true));
	hca_qp_modify(a.ctx, a.qpn, &error, HCA_QP_STATE);
	row(120, "a SEND and a receive are pending in ERR", late_count == 2 && next(&a, &c) == -1);
	late_end(true);
	row(121, "the receive fails if its data cannot be written",
	    next(&a, &c) == HCA_WC_LOC_PROT_ERR && c.opcode == HCA_WC_RECV);
	row(122, "and the SEND is flushed", next(&a, &c) == HCA_WC_WR_FLUSH_ERR && c.opcode == HCA_WC_SEND);
	side_close(&a);
	close(fd);

	fd = open_late();
	post_recv(&a, 0, 64);
	late = true;
	feed(bytes, send_build(bytes, 1, 0, 64, true));
	siw_qp_disconnect(a.qp);
	pair(fds);
	row(123, "no other stream before the end of the first",
	    late_count == 1 && siw_qp_attach(a.hca, a.qpn, fds[0], &plain, NULL, 0, on_closed, &a) == -EINVAL);
	late_end(false);
	row(124, "whose receive completes", next(&a, &c) == 0 && c.opcode == HCA_WC_RECV && a.closed == 0);
	side_close(&a);
	close(fd);
	close(fds[1]);
}

/* One receive fails, @n are flushed, and the stream ends by a Terminate. */
static bool late_failure(int fd, u32 n)
{
	struct hca_cqe c;
	bool ok = next(&a, &c) == HCA_WC_LOC_PROT_ERR;

	for (; n; n--)
		ok &= next(&a, &c) == HCA_WC_WR_FLUSH_ERR && c.opcode == HCA_WC_RECV;
	return ok && next(&a, &c) == -1 && answered(fd, RDMAP_ERR_CATASTROPHIC);
}

/* More SENDs in one call than SIW_COMPS, the first three of them empty, while memory is late. */
static int open_late_burst(void)
{
	static u8 burst[64 * (SIW_COMPS + 6)];
	int fd = open_late();
	u32 i, n = 0;

	for (i = 0; i < SIW_COMPS + 6; i++) {
		post_recv(&a, 32 * i, 32);
		n += send_build(burst + n, i + 1, 0, i < 3 ? 0 : 8, true);
	}
	late = true;
	row(130, "a burst of SENDs to late memory", feed(burst, n) && late_count == 1);
	return fd;
}

/* No message after a SEND that failed is received, and none succeeds. */
static void test_late_failure(void)
{
	struct hca_cqe c;
	u32 i, ok, n;
	int fd;

	fd = open_late_burst();
	row(131, "none completes before its data are in memory", next(&a, &c) == -1);
	late_end(false);
	for (i = ok = 0; i < SIW_COMPS + 6; i++)
		ok += next(&a, &c) == 0 && c.byte_len == (i < 3 ? 0 : 8);
	row(132, "and then all do", ok == SIW_COMPS + 6);
	side_close(&a);
	close(fd);

	fd = open_late_burst();
	late_end(true);
	for (i = ok = 0; i < 3; i++)
		ok += next(&a, &c) == 0 && !c.byte_len;
	row(133, "empty SENDs before the one that fails complete", ok == 3);
	row(134, "it fails, and those after it are flushed", late_failure(fd, SIW_COMPS + 2));
	row(135, "and are not received", is_zero(a.mem, SIZE));
	side_close(&a);
	close(fd);

	fd = open_late();
	post_recv(&a, 0, 64);
	post_recv(&a, 64, 64);
	late = true;
	n = send_build(bytes, 1, 0, 8, true);
	n += send_build(bytes + n, 2, 0, 8, false);
	feed(bytes, n);
	row(136, "a part of a SEND was received after the one that fails", late_count == 1 && next(&a, &c) == -1);
	late_end(true);
	row(137, "and its receive is flushed", late_failure(fd, 1));
	side_close(&a);
	close(fd);
}

/* Another queue pair of the adapter, with a stream of its own. */
static int other_open(struct side *other)
{
	struct hca_qp_init init = { .type = HCA_QPT_RC,
				    .pdn = a.pdn,
				    .send_cqn = hca_soft_cq_number(a.cq),
				    .recv_cqn = hca_soft_cq_number(a.cq),
				    .max_send_wr = 8,
				    .max_recv_wr = 8,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .sq_sig_all = true };
	int fds[2];

	*other = a;
	hca_soft_qp_create(a.ctx, &init, &other->wq);
	other->qpn = hca_soft_wq_number(other->wq);
	to_rts(other);
	pair(fds);
	siw_qp_attach(a.hca, other->qpn, fds[0], &a.qp->terms, NULL, 0, on_closed, other);
	other->qp = hca_qp_lookup(a.hca, other->qpn)->transport;
	return fds[1];
}

static void other_close(struct side *other, int fd, int other_fd)
{
	hca_soft_wq_destroy(other->wq);
	side_close(&a);
	close(fd);
	close(other_fd);
}

/* Registers the first page in a's memory by REG_MR; returns its key. */
static u32 region_register(u8 **mem)
{
	u64 page = (at(&a, 0) | 4095) + 1;
	struct hca_send_wr reg = { .opcode = HCA_WR_REG_MR,
				   .access = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ,
				   .bind_addr = page,
				   .bind_len = 4096,
				   .npages = 1,
				   .page_shift = 12,
				   .pages = &page };
	struct hca_cqe c;

	hca_mr_alloc(a.ctx, a.pdn, 1, &reg.reg_key);
	hca_soft_post_send(a.wq, &reg);
	row(100, "a region is registered by a request", next(&a, &c) == 0 && c.opcode == HCA_WC_REG_MR);
	*mem = (u8 *)(uintptr_t)page;
	return reg.reg_key;
}

static void other_recv(struct side *other)
{
	struct hca_recv_wr wr = { .num_sge = 1, .sge = { { at(&a, INBOX), 64, a.lkey } } };

	hca_soft_post_recv(other->wq, &wr);
}

static u32 send_inv_build(u8 *p, u32 stag)
{
	const struct iwarp_untagged u = { .c = { .ddp = DDP_VERSION | DDP_LAST,
						 .rdmap = RDMAP_VERSION | RDMAP_SEND_INV },
					  .inv_stag = cpu_to_be32(stag),
					  .msn = cpu_to_be32(1) };

	return fpdu_build(p, &u.c, &u.inv_stag, sizeof(u) - sizeof(u.c), 0, 0);
}

/* The second SEND to it. */
static bool send_works(struct side *other, int fd)
{
	u32 n = send_build(bytes, 2, 0, 64, true);
	struct hca_cqe c;

	other_recv(other);
	return send(fd, bytes, n, 0) == (ssize_t)n && next(&a, &c) == 0 && c.opcode == HCA_WC_RECV &&
	       is_pattern(a.mem + INBOX, 64);
}

/* A window of a that is bound to the start of its memory; returns its key. */
static u32 window_bind(u32 len)
{
	struct hca_send_wr bind = {
		.opcode = HCA_WR_BIND_MW, .access = HCA_ACCESS_REMOTE_WRITE, .bind_addr = at(&a, 0), .bind_len = len
	};
	struct hca_cqe c;
	u32 rkey;

	hca_mr_reg(a.ctx, a.pdn, at(&a, 0), at(&a, 0), len, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND, &bind.mr_lkey,
		   &rkey);
	hca_mw_alloc(a.ctx, a.pdn, 1, &bind.mw_rkey);
	bind.reg_key = (bind.mw_rkey & ~0xffu) | (u8)(bind.mw_rkey + 1);
	hca_soft_post_send(a.wq, &bind);
	row(101, "a window is bound", next(&a, &c) == 0 && c.opcode == HCA_WC_BIND_MW);
	return bind.reg_key;
}

/*
 * A key loses its access while data of another queue pair's requests by that key are pending: the request that ends it
 * completes when they are in memory.
 */
static void test_late_by_others(void)
{
	struct hca_send_wr unbind = { .opcode = HCA_WR_BIND_MW }, inv = { .opcode = HCA_WR_LOCAL_INV };
	struct hca_qp_attr error = { .state = HCA_QPS_ERR };
	struct side other;
	struct hca_cqe c;
	int fd, other_fd;
	u8 got[256], *page;
	u32 n;

	fd = open_late();
	other_fd = other_open(&other);
	unbind.mw_rkey = window_bind(64);
	late = true;
	feed(bytes, tagged_build(bytes, RDMAP_WRITE, unbind.mw_rkey, at(&a, 0), 0, 64, true));
	hca_soft_post_send(other.wq, &unbind);
	row(102, "BIND_MW waits for a WRITE through the window", late_count == 1 && next(&a, &c) == -1);
	late_end(false);
	row(103, "and completes after it", next(&a, &c) == 0 && c.opcode == HCA_WC_BIND_MW && is_pattern(a.mem, 64));
	other_close(&other, fd, other_fd);

	fd = open_late();
	other_fd = other_open(&other);
	inv.rkey = region_register(&page);
	late = true;
	feed(bytes, tagged_build(bytes, RDMAP_WRITE, inv.rkey, (u64)(uintptr_t)page, 0, 64, true));
	hca_soft_post_send(other.wq, &inv);
	row(104, "LOCAL_INV waits for a WRITE to the region", late_count == 1 && next(&a, &c) == -1);
	late_end(false);
	row(105, "and completes after it", next(&a, &c) == 0 && c.opcode == HCA_WC_LOCAL_INV && is_pattern(page, 64));
	other_close(&other, fd, other_fd);

	fd = open_late();
	other_fd = other_open(&other);
	inv.rkey = region_register(&page);
	late = true;
	feed(bytes, tagged_build(bytes, RDMAP_WRITE, inv.rkey, (u64)(uintptr_t)page, 0, 64, true));
	hca_soft_post_send(other.wq, &inv);
	loop_run_idle(loop, 0);
	hca_qp_modify(a.ctx, other.qpn, &error, HCA_QP_STATE);
	row(106, "LOCAL_INV waits for it in ERR, too", late_count == 1 && next(&a, &c) == -1);
	hca_soft_post_send(other.wq, &inv);
	row(107, "and so does a request posted later", next(&a, &c) == -1);
	late_end(false);
	row(108, "it was executed, and completes",
	    next(&a, &c) == 0 && c.opcode == HCA_WC_LOCAL_INV && is_pattern(page, 64));
	row(109, "the later one is flushed, and the owner of the connection is notified",
	    next(&a, &c) == HCA_WC_WR_FLUSH_ERR && other.closed == 0);
	other_close(&other, fd, other_fd);

	fd = open_late();
	other_fd = other_open(&other);
	inv.rkey = region_register(&page);
	memset(page, 1, 64);
	late = true;
	feed(bytes, read_request_build(bytes, inv.rkey, (u64)(uintptr_t)page, 64));
	loop_run_idle(loop, 0);
	hca_soft_post_send(other.wq, &inv);
	row(110, "LOCAL_INV waits for a READ of the region", late_count == 1 && next(&a, &c) == -1);
	late_end(false);
	row(111, "and completes after it", next(&a, &c) == 0 && c.opcode == HCA_WC_LOCAL_INV);
	row(112, "whose response is sent",
	    recv(fd, got, sizeof(got), MSG_DONTWAIT) == sizeof(struct iwarp_tagged) + 64 + IWARP_CRC_SIZE &&
		    got[sizeof(struct iwarp_tagged)] == 1);
	other_close(&other, fd, other_fd);

	fd = open_late();
	other_fd = other_open(&other);
	inv.rkey = region_register(&page);
	other_recv(&other);
	late = true;
	feed(bytes, tagged_build(bytes, RDMAP_WRITE, inv.rkey, (u64)(uintptr_t)page, 0, 64, true));
	n = send_inv_build(bytes, inv.rkey);
	row(113, "SEND with Invalidate waits for a WRITE to the region",
	    send(other_fd, bytes, n, 0) == (ssize_t)n && late_count == 1 && next(&a, &c) == -1);
	late_end(false);
	row(114, "and completes after it",
	    next(&a, &c) == 0 && c.opcode == HCA_WC_RECV && c.imm == inv.rkey && is_pattern(page, 64));
	row(115, "and more is received", send_works(&other, other_fd));
	other_close(&other, fd, other_fd);
}

int main(void)
{
	static const struct mpa_terms with_crc = { .initiator = true, .crc = true, .ird = 4, .ord = 4 };

	loop = loop_create_virtual();
	test_cuts(10, &plain);
	test_cuts(20, &with_crc);
	test_direct();
	test_invalid_headers();
	test_revoked();
	test_unwritable();
	test_repeated();
	test_malformed_receive();
	test_many();
	test_late();
	test_late_at_close();
	test_late_failure();
	test_late_by_others();
	loop_destroy(loop);
	return rows_end();
}
