// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of rings.c: allocation of rings in the file, and the limit of bytes that the daemon writes. */
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

int main(void)
{
	test_allocation();
	test_limit();
	return rows_end();
}
