// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Benchmark: cost in nanoseconds of the calls on the path of a packet or message. */
#include <time.h>

#include "emu/hca/fixture.h"

#define ROUNDS 4000000u

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void report(const char *what, double start, u32 rounds)
{
	printf("%-40s %6.1f ns\n", what, (now_ns() - start) / rounds);
}

static void on_failed(void *arg, u64 tag) {}

static void bench_batch(struct hca_ctx *ctx, u8 *mem)
{
	static u8 local[64];
	struct hca_batch *b = hca_batch_create();
	struct hca_span span = { ctx, 0, 64, NULL };
	double t = now_ns();
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		span.addr = (u64)(uintptr_t)(mem + (i & 63) * 64);
		hca_batch_write(b, &span, local, on_failed, NULL, 0);
		if ((i & 63) == 63)
			hca_batch_run(b);
	}
	hca_batch_run(b);
	report("batch write of 64 bytes, 64 a run", t, ROUNDS);
	hca_batch_destroy(b);
}

static void bench_messages(struct fixture *f, struct hca_soft_cq *cq, struct hca_soft_wq *wq)
{
	struct hca_qp *qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
	static struct hca_send_wr wr, out;
	struct hca_cqe cqe = { .token = 1 }, polled;
	double t;
	u32 i;

	wr.opcode = HCA_WR_SEND;
	wr.num_sge = 1;
	t = now_ns();
	for (i = 0; i < ROUNDS; i++) {
		hca_soft_post_send(wq, &wr);
		hca_next_send(qp, &out);
		hca_send_done(qp);
	}
	report("post, pull and done of a send", t, ROUNDS);
	t = now_ns();
	for (i = 0; i < ROUNDS; i++) {
		hca_complete_send(qp, &cqe, HCA_WR_SEND);
		if ((i & 15) == 15) {
			hca_flush(f->hca);
			while (hca_soft_cq_poll(cq, &polled, 1))
				;
		}
	}
	report("completion, 16 a burst", t, ROUNDS);
}

int main(void)
{
	static u8 mem[4096];
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_span span[HCA_MAX_SPANS];
	struct hca_av av = { .dlid = 2, .port = 1 };
	struct fixture f;
	struct hca_qp *qp;
	u32 lkey, rkey, ahn, i, qpn, sum = 0;
	double t;

	fixture_init(&f);
	hca_soft_cq_create(f.ctx, 64, NULL, NULL, &cq);
	wq = fixture_qp(&f, HCA_QPT_UD, cq, 0);
	qpn = hca_soft_wq_number(wq);
	fixture_move(&f, wq, HCA_QPS_RTS);
	qp = hca_qp_lookup(f.hca, qpn);
	hca_mr_reg(f.ctx, f.pdn, (u64)(uintptr_t)mem, 0x1000, sizeof(mem), HCA_ACCESS_LOCAL_WRITE, &lkey, &rkey);
	hca_ah_create(f.ctx, f.pdn, &av, &ahn);
	t = now_ns();
	for (i = 0; i < ROUNDS; i++)
		sum += hca_qp_lookup(f.hca, qpn + (i & 1)) != NULL;
	report("QP lookup", t, ROUNDS);
	t = now_ns();
	for (i = 0; i < ROUNDS; i++)
		sum += (u32)hca_key_local(qp, lkey, 0x1000 + (i & 63), 64, HCA_ACCESS_LOCAL_WRITE, span);
	report("local key", t, ROUNDS);
	t = now_ns();
	for (i = 0; i < ROUNDS; i++)
		sum += (u32)hca_ah_av(f.ctx, qpn, ahn, &av);
	report("address handle", t, ROUNDS);
	bench_batch(f.ctx, mem);
	bench_messages(&f, cq, wq);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
	fixture_fini(&f);
	return sum == 0;
}
