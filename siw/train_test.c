// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Trains of which TCP accepts any part: the stream is the same as if all payload had been copied, and no request
 * completes early.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "siw/fixture.h"

#define STREAM 4096

static const struct mpa_terms plain = { .initiator = true, .ird = 4, .ord = 4 };
static struct siw_train train;

/* A stream of short FPDUs, with zero-copy of payload from @direct_min bytes on. */
static int open_train(u32 direct_min)
{
	int fd;

	terms = plain;
	fd = open_raw();
	a.qp->segment = 40;
	a.qp->siw->direct_min = direct_min;
	pattern(a.mem, SIZE);
	return fd;
}

/* Posts requests of all kinds, with odd lengths that need a pad, and READs in both directions. */
static void post_all(void)
{
	struct hca_send_wr wr = { .opcode = HCA_WR_SEND, .num_sge = 3 }, empty = { .opcode = HCA_WR_RDMA_READ };
	u32 i;

	post(&a, HCA_WR_RDMA_WRITE, 0, 1, 101, 7, 1000);
	for (i = 0; i < 3; i++)
		wr.sge[i] = (struct hca_sge){ at(&a, 5000 * i), 7 + 20 * i, a.lkey };
	hca_soft_post_send(a.wq, &wr);
	hca_soft_post_send(a.wq, &empty);
	post(&a, HCA_WR_SEND_WITH_INV, HCA_SEND_SOLICITED, 300, 3, 77, 0);
	post(&a, HCA_WR_RDMA_WRITE, 0, 9, 80, 7, 1000);
	for (i = 0; i < 2; i++)
		a.qp->reads[a.qp->rd_head++] = (struct siw_read){
			.sink_stag = 5, .source_stag = a.rkey, .length = 90 + i, .source_to = at(&a, 700 * i)
		};
}

/* One call of TCP, which accepts @most bytes; -1: nothing to send. */
static int take(u8 *to, u32 most)
{
	u32 got = 0, i;

	if (siw_send_prepare(a.qp, &train) <= 0)
		return -1;
	for (i = 0; i < train.niov && got < most; i++) {
		u32 n = min((u32)train.iov[i].iov_len, most - got);

		memcpy(to + got, train.iov[i].iov_base, n);
		got += n;
	}
	siw_send_done(a.qp, &train, got ? (ssize_t)got : -EAGAIN);
	return (int)got;
}

/* The whole stream: TCP accepts @first bytes first, then all, or @step bytes per call. */
static u32 stream(u8 *to, u32 first, u32 step)
{
	u32 len = 0;
	int got, fd;

	post_all();
	got = take(to, first);
	for (; got >= 0; got = take(to + len, step))
		len += (u32)got;
	fd = a.qp->fd.fd;
	return fd < 0 ? 0 : len;
}

static u32 reference(u8 *to, u32 *fpdus)
{
	int fd = open_train(SIZE);
	u32 len = stream(to, STREAM, STREAM);

	*fpdus = (u32)siw_counter(a.hca, SIW_CTR_FPDU_SENT);
	side_close(&a);
	close(fd);
	return len;
}

/* Three of the five are complete: the READ waits for its response, and the request after it for the READ. */
static bool completes(void)
{
	struct hca_cqe c;

	return next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_WRITE && next(&a, &c) == 0 && c.opcode == HCA_WC_SEND &&
	       next(&a, &c) == -1;
}

static void test_cuts(void)
{
	static u8 want[STREAM], got[STREAM];
	u32 fpdus, len = reference(want, &fpdus), cut, ok = 0, counted = 0, complete = 0;

	for (cut = 0; cut <= len; cut++) {
		int fd = open_train(1);

		memset(got, 0, sizeof(got));
		ok += stream(got, cut, STREAM) == len && !memcmp(got, want, len);
		counted += siw_counter(a.hca, SIW_CTR_FPDU_SENT) == fpdus;
		complete += completes();
		side_close(&a);
		close(fd);
	}
	row(10, "TCP accepts a part, of each length: the stream is the same", len > 700 && ok == len + 1);
	row(11, "TCP accepts a part: FPDUs are counted once", counted == len + 1);
	row(12, "TCP accepts a part: completions", complete == len + 1);
	for (ok = 0, cut = 1; cut <= len; cut++) {
		int fd = open_train(cut & 1 ? 1 : 30);

		memset(got, 0, sizeof(got));
		ok += stream(got, cut, cut) == len && !memcmp(got, want, len);
		side_close(&a);
		close(fd);
	}
	row(13, "TCP accepts steps of any length", ok == len);
}

/* Number of consecutive FPDUs up to the end of the stream; 0: the stream is invalid. */
static u32 count_fpdus(const u8 *p, u32 len)
{
	u32 at = 0, n = 0;

	for (; at + sizeof(struct iwarp_ctrl) <= len; n++)
		at += iwarp_fpdu_len(be16_to_cpu(iwarp_hdr(p + at)->ctrl.len));
	return at == len ? n : 0;
}

/* Memory that is written while it is sent: the data is undefined, but the stream is valid. */
static void test_changing(void)
{
	static u8 want[STREAM], got[STREAM];
	u32 fpdus, len = reference(want, &fpdus), step, ok = 0;

	for (step = 1; step < 100; step++) {
		int fd = open_train(1), n;
		u32 at_ = 0;

		post_all();
		while ((n = take(got + at_, step)) >= 0) {
			at_ += (u32)n;
			memset(a.mem, (int)(step + at_), SIZE / 8);
		}
		ok += at_ == len && count_fpdus(got, len) == fpdus;
		side_close(&a);
		close(fd);
	}
	row(14, "payload that changes between calls: FPDUs stay valid", ok == 99);
}

static void test_completion(void)
{
	u8 got[STREAM];
	struct hca_cqe c;
	int fd = open_train(1);
	u32 len, i, early = 0;

	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 100, 7, 0);
	len = 3 * 20 + 100;
	for (i = 0; i + 1 < len; i++)
		early += take(got, 1) != 1 || hca_soft_cq_poll(a.cq, &c, 1);
	row(20, "WRITE: no completion before its last byte is accepted", !early);
	row(21, "WRITE: completion after that", take(got, 1) == 1 && hca_soft_cq_poll(a.cq, &c, 1) == 1 && !c.status);
	side_close(&a);
	close(fd);
}

/* The program may change its memory between two calls. */
static void test_memory(void)
{
	u8 got[STREAM];
	struct hca_cqe c;
	int fd = open_train(1), n;

	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 100, 7, 0);
	row(30, "TCP accepts a part of an FPDU", take(got, 26) == 26);
	hca_mr_dereg(a.ctx, a.lkey);
	n = take(got + 26, STREAM);
	row(31, "the rest of that FPDU is copied", n == 34 && !memcmp(got + 16, a.mem, 40));
	row(32, "the next FPDU's L_Key is invalid", next(&a, &c) == HCA_WC_LOC_PROT_ERR && a.qp->fd.fd < 0);
	side_close(&a);
	close(fd);

	fd = open_train(1);
	a.qp->reads[a.qp->rd_head++] = (struct siw_read){ .source_stag = a.rkey, .length = 60, .source_to = at(&a, 0) };
	row(33, "TCP accepts a part of a READ response", take(got, 26) == 26);
	hca_mr_dereg(a.ctx, a.lkey);
	row(34, "the rest of that READ response is copied",
	    take(got, STREAM) == -1 && recv(fd, got + 26, 34, 0) == 34 && !got[59]);
	row(35, "the next READ response's STag is invalid: Terminate", answered(fd, RDMAP_ERR_STAG));
	side_close(&a);
	close(fd);
}

/* A key that is invalidated after the requests that use it. */
static void test_local(void)
{
	struct hca_send_wr reg = { .opcode = HCA_WR_REG_MR }, inv = { .opcode = HCA_WR_LOCAL_INV },
			   write = { .opcode = HCA_WR_RDMA_WRITE, .num_sge = 1 };
	int fd = open_train(1), i;
	struct hca_cqe c;
	u8 got[STREAM];
	u64 page = at(&a, 4096) & ~4095ull;
	u32 key, ok = 0;

	row(40, "REG_MR region", !hca_mr_alloc(a.ctx, a.pdn, 4, &key));
	reg.reg_key = key;
	reg.access = HCA_ACCESS_LOCAL_WRITE;
	reg.bind_addr = page;
	reg.bind_len = 4096;
	reg.npages = 1;
	reg.page_shift = 12;
	reg.pages = &page;
	inv.rkey = key;
	write.sge[0] = (struct hca_sge){ page, 100, key };
	hca_soft_post_send(a.wq, &reg);
	hca_soft_post_send(a.wq, &write);
	hca_soft_post_send(a.wq, &inv);
	row(41, "TCP accepts no bytes", take(got, 0) == 0);
	row(42, "TCP accepts all", take(got, STREAM) == 160 && !memcmp(got + 16, (u8 *)(uintptr_t)page, 40));
	take(got, STREAM);
	for (i = 0; i < 3; i++)
		ok += next(&a, &c) == 0;
	row(43, "LOCAL_INV completes last", ok == 3 && c.opcode == HCA_WC_LOCAL_INV);
	side_close(&a);
	close(fd);
}

/* Memory that is unmapped after its registration. */
static void test_unreadable(void)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hca_send_wr wr = { .opcode = HCA_WR_RDMA_WRITE, .num_sge = 1 };
	int fd = open_train(1);
	struct hca_cqe c;
	u32 key, rkey;

	hca_mr_reg(a.ctx, a.pdn, (u64)(uintptr_t)p, (u64)(uintptr_t)p, 8192, 0xf, &key, &rkey);
	wr.sge[0] = (struct hca_sge){ (u64)(uintptr_t)p, 8192, key };
	a.qp->segment = 8192;
	mprotect(p, 8192, PROT_NONE);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 100, 7, 0);
	hca_soft_post_send(a.wq, &wr);
	row(50, "request before one with unmapped memory", next(&a, &c) == 0);
	row(51, "request with unmapped memory", next(&a, &c) == HCA_WC_LOC_PROT_ERR && a.qp->fd.fd < 0);
	side_close(&a);
	close(fd);

	fd = open_train(1);
	hca_mr_reg(a.ctx, a.pdn, (u64)(uintptr_t)p, (u64)(uintptr_t)p, 8192, 0xf, &key, &rkey);
	a.qp->reads[a.qp->rd_head++] =
		(struct siw_read){ .source_stag = rkey, .length = 8192, .source_to = (u64)(uintptr_t)p };
	siw_kick(a.qp);
	loop_run_idle(loop, 0);
	row(52, "READ response with unmapped memory: Terminate", answered(fd, RDMAP_ERR_STAG) && a.closed == -EPROTO);
	side_close(&a);
	close(fd);
	munmap(p, 8192);
}

/* With CRCs or markers payload is copied, so that the bytes do not change after the CRC was computed. */
static void test_copied(void)
{
	static const struct mpa_terms copied[] = { { .initiator = true, .crc = true },
						   { .initiator = true, .mark_out = true } };
	u8 got[STREAM];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(copied); i++) {
		int fd = open_train(1);

		a.qp->terms = copied[i];
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, 200, 7, 0);
		row(60 + (int)i, "streams without zero-copy send",
		    take(got, STREAM) > 200 && !train.nfpdus && train.niov == 1);
		side_close(&a);
		close(fd);
	}
}

int main(void)
{
	loop = loop_create_virtual();
	test_cuts();
	test_changing();
	test_completion();
	test_memory();
	test_local();
	test_unreadable();
	test_copied();
	loop_destroy(loop);
	return rows_end();
}
