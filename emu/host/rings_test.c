// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of rings.c: allocation of rings in the file, and the limit of bytes that the daemon writes. */
#include <errno.h>

#include "emu/host/fixture.h"
#include "emu/lib/row.h"

#define MOST  (1u << 18)    /* entries: max_cqe */
#define BYTES (4097u << 12) /* of a ring with 2^18 slots of 64 bytes */
#define CQS   301

static struct {
	struct ib_uverbs_create_cq_resp core;
	struct rxe_create_cq_resp rxe;
} __attribute__((packed)) cq[CQS];

/* Creates CQs until it fails, or CQS; each in the room that one or several others had. Returns how many. */
static u32 create(struct desk *d, u32 entries, u32 most)
{
	struct ib_uverbs_create_cq in = { .cqe = entries, .comp_channel = -1 };
	u32 i;

	for (i = 0; i < most; i++)
		if (desk_command(d, IB_USER_VERBS_CMD_CREATE_CQ, &in, sizeof(in), &cq[i], sizeof(cq[i])) < 0)
			break;
	return i;
}

static bool destroy(struct desk *d, u32 i)
{
	struct ib_uverbs_destroy_cq in = { .cq_handle = cq[i].core.cq_handle };
	struct ib_uverbs_destroy_cq_resp out;

	return desk_command(d, IB_USER_VERBS_CMD_DESTROY_CQ, &in, sizeof(in), &out, sizeof(out)) >= 0;
}

static void test_allocation(void)
{
	static const struct {
		const char *order;
		u32 first, step;
	} rows[] = { { "in order", 0, 1 }, { "each third one at a time", 2, 3 }, { "backwards", CQS - 1, CQS - 1 } };
	u32 fit = (u32)((UV_FILE_SIZE - UV_SHARED_SIZE) / BYTES), i, k, n;
	const struct uverbs *u;
	struct desk d;
	u64 used;

	desk_open(&d);
	u = d.file.priv;
	used = u->used;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		row(1 + 10 * (int)i, "as many of the largest CQs as fit in the file", create(&d, MOST - 1, CQS) == fit);
		row(2 + 10 * (int)i, "nothing is written but their headers",
		    d.file.ring_bytes == (u64)fit * (u64)sysconf(_SC_PAGESIZE));
		for (n = 0, k = rows[i].first; n < CQS; n++, k = (k + rows[i].step) % CQS)
			if (k < fit && !destroy(&d, k))
				abort();
		row_of("all are destroyed", rows[i].order,
		       u->used == used && list_empty(&u->free_areas) && !d.file.ring_bytes);
	}
	create(&d, MOST - 1, 3);
	destroy(&d, 1);
	row(40, "two smaller ones in the room of one",
	    create(&d, MOST / 2 - 1, 1) == 1 && u->used == used + 3ull * BYTES);
	row(41, "at its begin", cq[0].rxe.mi.offset == used + BYTES);
	desk_close(&d);
}

static u32 complete(struct desk *d, u32 i)
{
	struct uverbs *u = d->file.priv;
	struct verbs_cq *base = table_get(&u->verbs.cqs, cq[i].core.cq_handle);
	u32 n = 0;

	while (!uv_cq_ops.complete(container_of(base, struct uv_cq, cq), &(struct hca_cqe){ 0 }))
		n++;
	return n;
}

static void test_limit(void)
{
	const u32 slot = 64, left = 1u << 20;
	struct desk d;
	u64 before;
	u32 n;

	desk_open(&d);
	create(&d, MOST - 1, 3);
	before = d.file.ring_bytes;
	n = complete(&d, 0);
	row(50, "a CQ has the entries that were requested", n == MOST - 1);
	row(51, "its bytes are counted", d.file.ring_bytes == before - (u64)sysconf(_SC_PAGESIZE) + BYTES);
	before = d.file.ring_bytes;
	d.file.ring_bytes = UV_RINGS_MOST - left;
	n = complete(&d, 1);
	row(52, "no completion beyond the limit of a process",
	    (n + 1) * slot <= left && (n + 1) * slot > left * 9 / 10 && d.file.ring_bytes <= UV_RINGS_MOST);
	destroy(&d, 1);
	row(53, "when its room is free", complete(&d, 2) == n);
	d.file.ring_bytes = UV_RINGS_MOST;
	row(54, "nor another queue", !create(&d, 1, 1));
	d.file.ring_bytes = before;
	desk_close(&d);
}

/* A library puts requests into the ring before the call that refuses them. */
static int post(struct desk *d, const struct desk_objects *o, u64 id)
{
	struct rxe_queue_buf *sq = (void *)(d->base + o->ring[2].offset);
	struct rxe_send_wqe *w = (void *)(sq->data + ((sq->producer_index & sq->index_mask) << sq->log2_elem_size));
	struct ib_uverbs_post_send in = { .qp_handle = o->qp[0] };
	struct ib_uverbs_post_send_resp out;
	int err;

	*w = (struct rxe_send_wqe){ .wr = { .wr_id = id, .opcode = HCA_WR_RDMA_WRITE, .send_flags = 2 } };
	w->wr.wr.rdma.remote_addr = (u64)(uintptr_t)desk_arena;
	w->wr.wr.rdma.rkey = o->rkey;
	sq->producer_index = (sq->producer_index + 1) & sq->index_mask;
	err = desk_command(d, IB_USER_VERBS_CMD_POST_SEND, &in, sizeof(in), &out, sizeof(out));
	desk_run(d, NSEC_PER_MSEC);
	return err < 0 ? err : 0;
}

static void move(struct desk *d, u32 qp, u8 state)
{
	struct ib_uverbs_modify_qp m = { .qp_handle = qp, .attr_mask = HCA_QP_STATE, .qp_state = state };
	u32 out;

	desk_command(d, IB_USER_VERBS_CMD_MODIFY_QP, &m, sizeof(m), &out, 0);
	desk_run(d, NSEC_PER_MSEC);
}

static void test_refused(void)
{
	struct rxe_queue_buf *ring;
	struct desk_objects o;
	struct desk d;

	desk_open(&d);
	desk_make(&d, &o);
	ring = (void *)(d.base + o.ring[0].offset);
	move(&d, o.qp[0], HCA_QPS_RESET);
	row(60, "a post before RTS is refused", post(&d, &o, 1) == -EINVAL && post(&d, &o, 2) == -EINVAL);
	desk_qp_ready(&d, o.qp[0], o.qpn[1], HCA_QPT_RC);
	desk_run(&d, 10 * NSEC_PER_MSEC);
	row(61, "and not executed in RTS", !ring->producer_index);
	row(62, "the next one is",
	    !post(&d, &o, 3) && (desk_run(&d, 10 * NSEC_PER_MSEC), ring->producer_index == 1) &&
		    ((struct ib_uverbs_wc *)(void *)ring->data)->wr_id == 3);
	desk_close(&d);
}

int main(void)
{
	test_refused();
	test_allocation();
	test_limit();
	return rows_end();
}
