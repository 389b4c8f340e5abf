// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of sq.c and sge.c: opcodes by transport service, malformed requests, completion order, and memory of SGEs. */
#include "emu/hca/fixture.h"

struct wqe {
	struct hca_wqe wr;
	u64 after[4]; /* the transport's part: the send queue must not change it */
};

static u32 released;

static void on_release(struct hca_qp *qp, struct hca_wqe *w)
{
	released++;
}

static const struct hca_iw_ops no_connections;
static const struct hca_transport iwarp = { .iw = &no_connections };

#define IWARP (HCA_QPT_UD + 1)

/* Opcode and transport service (9.4; RFC 5040, 4). */
static const struct {
	int n;
	u8 type, opcode, flags;
	u16 num_sge;
	u32 inline_len;
	bool valid, other_port; /* of the address vector than of the queue pair */
} fetches[] = {
	{ 40, HCA_QPT_RC, HCA_WR_SEND, 0, 4, 0, true },
	{ 41, HCA_QPT_RC, HCA_WR_RDMA_READ, 0, 1, 0, true },
	{ 42, HCA_QPT_RC, HCA_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, true },
	{ 43, HCA_QPT_RC, HCA_WR_SEND_WITH_INV, 0, 0, 0, true },
	{ 44, HCA_QPT_RC, HCA_WR_BIND_MW, 0, 0, 0, true },
	{ 45, HCA_QPT_RC, HCA_WR_RDMA_WRITE, HCA_SEND_INLINE, 0, 64, true },
	{ 46, HCA_QPT_RC, HCA_WR_RDMA_READ, HCA_SEND_INLINE, 0, 8, false },
	{ 47, HCA_QPT_RC, HCA_WR_ATOMIC_CMP_AND_SWP, HCA_SEND_INLINE, 0, 8, false },
	{ 48, HCA_QPT_RC, 10, 0, 0, 0, false },
	{ 49, HCA_QPT_RC, 200, 0, 0, 0, false },
	{ 50, HCA_QPT_UC, HCA_WR_RDMA_WRITE_WITH_IMM, 0, 1, 0, true },
	{ 51, HCA_QPT_UC, HCA_WR_RDMA_READ, 0, 1, 0, false },
	{ 52, HCA_QPT_UC, HCA_WR_ATOMIC_CMP_AND_SWP, 0, 1, 0, false },
	{ 53, HCA_QPT_UC, HCA_WR_SEND_WITH_INV, 0, 1, 0, false },
	{ 54, HCA_QPT_UD, HCA_WR_SEND_WITH_IMM, 0, 1, 0, true },
	{ 55, HCA_QPT_UD, HCA_WR_RDMA_WRITE, 0, 1, 0, false },
	{ 56, HCA_QPT_UD, HCA_WR_BIND_MW, 0, 0, 0, false },
	{ 57, HCA_QPT_GSI, HCA_WR_SEND, 0, 1, 0, true },
	{ 58, HCA_QPT_SMI, HCA_WR_RDMA_WRITE, 0, 1, 0, false },
	{ 59, IWARP, HCA_WR_RDMA_WRITE, 0, 4, 0, true },
	{ 60, IWARP, HCA_WR_RDMA_WRITE_WITH_IMM, 0, 1, 0, false },
	{ 61, IWARP, HCA_WR_SEND_WITH_IMM, 0, 1, 0, false },
	{ 62, IWARP, HCA_WR_SEND_WITH_INV, 0, 1, 0, true },
	{ 63, IWARP, HCA_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, false },
	{ 64, IWARP, HCA_WR_RDMA_READ, 0, 1, 0, true },
	{ 65, IWARP, HCA_WR_RDMA_READ, 0, 2, 0, false }, /* RFC 5040: one data sink */
	{ 66, HCA_QPT_RC, HCA_WR_SEND, HCA_SEND_INLINE, 2, 64, true },
	{ 67, HCA_QPT_UD, HCA_WR_SEND, HCA_SEND_INLINE, 1, 64, true },
	{ 68, HCA_QPT_UD, HCA_WR_SEND, 0, 1, 0, false, true },
	{ 69, HCA_QPT_UD, HCA_WR_NOP, 0, 0, 0, true, true },
};

static struct hca_sq sq_of(struct hca_qp *qp)
{
	struct hca_sq sq = { .qp = qp, .wqe_size = sizeof(struct wqe), .release = on_release };

	released = 0;
	hca_sq_alloc(&sq);
	return sq;
}

static void check_fetches(struct fixture *f)
{
	static struct hca_send_wr wr;
	struct hca_soft_cq *cq;
	u32 i;

	hca_soft_cq_create(f->ctx, 16, NULL, NULL, &cq);
	for (i = 0; i < ARRAY_SIZE(fetches); i++) {
		bool iw = fetches[i].type == IWARP;
		struct hca_soft_wq *wq = fixture_qp(f, iw ? HCA_QPT_RC : fetches[i].type, cq, 0);
		struct hca_qp *qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
		u64 errors = hca_counter(f->hca, 1, HCA_CNT_WQE_ERR);
		struct hca_sq sq = sq_of(qp);
		const struct hca_wqe *w;
		bool ok;

		fixture_move(f, wq, HCA_QPS_RTS);
		memset(&wr, 0, sizeof(wr));
		wr.token = 7;
		wr.opcode = fetches[i].opcode;
		wr.flags = fetches[i].flags;
		wr.num_sge = fetches[i].num_sge;
		wr.inline_len = fetches[i].inline_len;
		wr.av.port = fetches[i].other_port ? 2 : 1;
		hca_soft_post_send(wq, &wr);
		f->hca->transport = iw ? &iwarp : NULL;
		w = hca_sq_fetch(&sq, &wr);
		f->hca->transport = NULL;
		ok = w && w->token == 7 && w->state == HCA_WQE_POSTED;
		row(fetches[i].n, "status",
		    ok && w->status == (fetches[i].valid ? HCA_WC_SUCCESS : HCA_WC_LOC_QP_OP_ERR));
		row(fetches[i].n, "SGEs, length",
		    ok && (!fetches[i].valid || (w->num_sge == fetches[i].num_sge && w->length == wr.inline_len)));
		row(fetches[i].n, "the counter", hca_counter(f->hca, 1, HCA_CNT_WQE_ERR) - errors == !fetches[i].valid);
		row(fetches[i].n, "no other request", !hca_sq_fetch(&sq, &wr));
		hca_sq_flush(&sq, HCA_WC_WR_FLUSH_ERR);
		row(fetches[i].n, "released", released == 1 && !hca_soft_wq_sends(wq));
		hca_sq_free(&sq);
		hca_soft_wq_destroy(wq);
	}
	hca_soft_cq_destroy(cq);
}

/* A front end that decodes malformed entries: more SGEs than a request can have. */
static int next_malformed(void *fe, struct hca_send_wr *wr)
{
	u32 *left = fe;

	memset(wr, 0, sizeof(*wr));
	wr->token = 9;
	wr->opcode = HCA_WR_SEND;
	wr->num_sge = 500;
	return *left ? (int)(*left)-- : 0;
}

static void queue_reset(void *fe) {}

static void check_malformed(struct fixture *f)
{
	static const struct hca_wq_ops ops = { .next_send = next_malformed, .reset = queue_reset };
	static struct hca_send_wr wr;
	struct hca_qp_init init = { .type = HCA_QPT_RC, .pdn = f->pdn, .max_send_wr = 4, .max_send_sge = 4 };
	struct hca_soft_cq *cq;
	struct hca_qp *qp;
	struct hca_sq sq;
	struct wqe *w;
	u32 left = 1, qpn;

	hca_soft_cq_create(f->ctx, 16, NULL, NULL, &cq);
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(cq);
	row(70, "queue pair", !hca_qp_create(f->ctx, &init, &ops, &left, &qpn));
	qp = hca_qp_lookup(f->hca, qpn);
	bring_to(qp, fixture_attr(), HCA_QPS_RTS);
	sq = sq_of(qp);
	w = container_of(hca_sq_fetch(&sq, &wr), struct wqe, wr);
	row(71, "too many SGEs", w->wr.status == HCA_WC_LOC_QP_OP_ERR && !w->wr.num_sge && w->wr.token == 9);
	row(72, "the transport's part", !w->after[0] && !w->after[3]);
	hca_sq_free(&sq);
	hca_qp_destroy(f->ctx, qpn);
	hca_soft_cq_destroy(cq);
}

/* Completions of five requests, by state and error of each (10.8.2, 11.6.2). */
static const struct {
	int n;
	struct {
		u8 state, status;
	} wqe[5];
	u32 done; /* completed by hca_sq_complete() */
	u8 fail;  /* the status of hca_sq_flush() */
	u8 want[5];
} orders[] = {
#define OK                                   \
	{                                    \
		HCA_WQE_DONE, HCA_WC_SUCCESS \
	}
#define SENT                                 \
	{                                    \
		HCA_WQE_SENT, HCA_WC_SUCCESS \
	}
#define BAD                                       \
	{                                         \
		HCA_WQE_DONE, HCA_WC_LOC_PROT_ERR \
	}
#define LATE                                       \
	{                                          \
		HCA_WQE_POSTED, HCA_WC_LOC_LEN_ERR \
	}
#define F HCA_WC_WR_FLUSH_ERR
	{ 80, { OK, OK, OK, OK, OK }, 5, F, { 0, 0, 0, 0, 0 } },
	{ 81, { OK, SENT, OK, OK, SENT }, 1, F, { 0, F, F, F, F } },
	{ 82, { OK, BAD, OK, SENT, SENT }, 1, F, { 0, HCA_WC_LOC_PROT_ERR, F, F, F } },
	{ 83, { SENT, OK, OK, OK, OK }, 0, HCA_WC_RETRY_EXC_ERR, { HCA_WC_RETRY_EXC_ERR, F, F, F, F } },
	{ 84, { OK, OK, SENT, BAD, LATE }, 2, HCA_WC_REM_ACCESS_ERR, { 0, 0, HCA_WC_REM_ACCESS_ERR, F, F } },
	{ 85, { LATE, LATE, SENT, SENT, SENT }, 0, HCA_WC_LOC_LEN_ERR, { HCA_WC_LOC_LEN_ERR, F, F, F, F } },
	{ 86, { OK, OK, BAD, BAD, OK }, 2, HCA_WC_RETRY_EXC_ERR, { 0, 0, HCA_WC_LOC_PROT_ERR, F, F } },
};

static void check_orders(struct fixture *f)
{
	static struct hca_send_wr wr = { .opcode = HCA_WR_SEND, .flags = HCA_SEND_SIGNALED };
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_sq sq;
	u32 i, k;

	hca_soft_cq_create(f->ctx, 16, NULL, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_RC, cq, 0);
	fixture_move(f, wq, HCA_QPS_RTS);
	sq = sq_of(hca_qp_lookup(f->hca, hca_soft_wq_number(wq)));
	sq.head = sq.tail = ~0u - 2; /* positions wrap */
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		struct hca_cqe cqe[6];
		bool ok = true;

		for (k = 0; k < 5; k++) {
			struct hca_wqe *w;

			wr.token = k;
			hca_soft_post_send(wq, &wr);
			w = hca_sq_fetch(&sq, &wr);
			w->state = orders[i].wqe[k].state;
			w->status = orders[i].wqe[k].status;
		}
		row(orders[i].n, "in order", hca_sq_complete(&sq, sq.head) == orders[i].done);
		hca_sq_flush(&sq, orders[i].fail);
		row(orders[i].n, "once each", hca_soft_cq_poll(cq, cqe, 6) == 5 && sq.tail == sq.head);
		for (k = 0; k < 5; k++)
			ok &= cqe[k].token == k && cqe[k].status == orders[i].want[k];
		row(orders[i].n, "status", ok);
	}
	hca_sq_free(&sq);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
}

/* Ranges of a message in three SGEs of 16, 0 and 32 bytes; the last @bad bytes of the
 * last SGE are outside its region. */
static const struct {
	int n;
	u32 off, len, bad;
	bool remote;
	int want, pieces; /* 0 or an hca_key_error; of hca_mem_direct() with room for two */
} ranges[] = {
	{ 90, 0, 16, 0, false, 0, 1 },
	{ 91, 0, 48, 0, false, 0, 2 },
	{ 92, 15, 2, 0, false, 0, 2 },
	{ 93, 16, 32, 0, false, 0, 1 },
	{ 94, 40, 9, 0, false, HCA_KEY_BOUNDS, HCA_KEY_BOUNDS }, /* the list is too short */
	{ 95, 48, 0, 0, false, 0, 0 },
	{ 96, 0, 48, 8, false, HCA_KEY_INVALID, HCA_KEY_INVALID }, /* the L_Key does not cover its SGE */
	{ 97, 0, 40, 8, false, 0, 2 },
	{ 98, 0, 48, 8, true, HCA_KEY_BOUNDS, HCA_KEY_BOUNDS }, /* the R_Key does not cover it */
};

static void on_failed(void *arg, u64 tag) {}

static void check_ranges(struct fixture *f)
{
	static u8 mem[256], in[64], out[64], want[64];
	struct hca_batch *b = hca_batch_create();
	struct hca_mem_batch mb = { b, on_failed, NULL, 0 };
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u64 at = (u64)(uintptr_t)mem;
	u32 i, k, lkey, rkey;

	hca_soft_cq_create(f->ctx, 16, NULL, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_RC, cq, 0);
	fixture_move(f, wq, HCA_QPS_RTS);
	hca_mr_reg(f->ctx, f->pdn, at, at, 128, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE, &lkey, &rkey);
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct hca_sge sge[3] = { { at + 64, 16, lkey }, { at, 0, 0 }, { at + 96 + ranges[i].bad, 32, lkey } };
		struct hca_mem m = { hca_qp_lookup(f->hca, hca_soft_wq_number(wq)), sge, 3,
				     ranges[i].remote ? hca_key_remote : hca_key_local, HCA_ACCESS_LOCAL_WRITE };
		u32 off = ranges[i].off, len = ranges[i].len;
		struct iovec iov[2];
		int err;

		for (k = 0; k < sizeof(mem); k++)
			mem[k] = (u8)k;
		for (k = 0; k < len; k++)
			want[k] = off + k < 16 ? (u8)(64 + off + k) : (u8)(96 + ranges[i].bad + off + k - 16);
		row(ranges[i].n, "check", hca_mem_check(&m, off, len) == ranges[i].want);
		row(ranges[i].n, "direct", hca_mem_direct(&m, off, len, iov, 2) == ranges[i].pieces);
		err = hca_mem_read(&m, off, len, in, &mb);
		hca_batch_run(b);
		row(ranges[i].n, "read", err == ranges[i].want && (err || !memcmp(in, want, len)));
		memset(out, 0xee, sizeof(out));
		err = hca_mem_write(&m, off, len, out, &mb);
		hca_batch_run(b);
		for (k = 0; !err && k < len; k++)
			err |= mem[want[k]] != 0xee;
		row(ranges[i].n, "write", err == ranges[i].want);
	}
	hca_batch_destroy(b);
	hca_mr_dereg(f->ctx, lkey);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
}

/* Inline data stands before the list's bytes. */
static void check_head(struct fixture *f)
{
	static const struct {
		u32 off, len;
	} parts[] = { { 0, 30 }, { 0, 10 }, { 4, 6 }, { 4, 7 }, { 9, 2 }, { 10, 20 }, { 17, 13 }, { 30, 0 } };
	struct hca_send_wr copy = { 0 };
	struct hca_wqe w = { .num_sge = 1, .head = 10, .copy = &copy };
	struct hca_batch *b = hca_batch_create();
	struct hca_mem_batch mb = { b, on_failed, NULL, 0 };
	static u8 mem[20];
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_mem m;
	struct iovec iov;
	u32 i, k, rkey;
	u8 in[32];

	hca_soft_cq_create(f->ctx, 16, NULL, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_RC, cq, 0);
	fixture_move(f, wq, HCA_QPS_RTS);
	w.sge[0] = (struct hca_sge){ (u64)(uintptr_t)mem, sizeof(mem), 0 };
	hca_mr_reg(f->ctx, f->pdn, w.sge[0].addr, w.sge[0].addr, sizeof(mem), 0, &w.sge[0].lkey, &rkey);
	for (k = 0; k < 30; k++)
		*(k < 10 ? &copy.inline_data[k] : &mem[k - 10]) = (u8)k;
	m = hca_wqe_payload(hca_qp_lookup(f->hca, hca_soft_wq_number(wq)), &w);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		u32 off = parts[i].off, len = parts[i].len;
		bool ok = !hca_mem_check(&m, off, len) && !hca_mem_read(&m, off, len, in, &mb);

		hca_batch_run(b);
		for (k = 0; k < len; k++)
			ok &= in[k] == off + k;
		row(110 + (int)i, "a part of both", ok);
		row(110 + (int)i, "only the list is mapped",
		    hca_mem_direct(&m, off, len, &iov, 1) == (len && off >= 10));
	}
	row(119, "the list is too short", hca_mem_check(&m, 5, 26) == HCA_KEY_BOUNDS);
	hca_batch_destroy(b);
	hca_mr_dereg(f->ctx, w.sge[0].lkey);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
}

int main(void)
{
	struct fixture f;

	fixture_init(&f);
	check_fetches(&f);
	check_malformed(&f);
	check_orders(&f);
	check_ranges(&f);
	check_head(&f);
	fixture_fini(&f);
	return rows_end();
}
