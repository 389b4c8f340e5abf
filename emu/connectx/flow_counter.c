// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flow counters: packets and octets of entries of flow tables. The adapter has no flow tables, so all of them stay 0.
 * They can be allocated nevertheless: for an optional counter ("rdma statistic set") Linux allocates one before it
 * looks for a flow table. Without a table it frees it, and the user gets "not supported"; but if the allocation fails,
 * mlx5_ib keeps the error as its pointer to the counter, and the kernel crashes when the counters are next read.
 */
#include "emu/connectx/connectx_internal.h"

/* One at a time: flow_counter_bulk_alloc and log_max_flow_counter_bulk are 0. */
int cx_alloc_flow_counter(struct connectx *d, const struct cx_cmd *c)
{
	u32 n;
	int err;

	if (cx_get(c->in, alloc_flow_counter_in, flow_counter_bulk))
		return CX_BAD_PARAM;
	err = table_add(&d->flow_counters, &d->flow_counters, &n);
	if (!err)
		cx_set(c->out, alloc_flow_counter_out, flow_counter_id, n);
	return err;
}

int cx_dealloc_flow_counter(struct connectx *d, const struct cx_cmd *c)
{
	u32 n = (u32)cx_get(c->in, dealloc_flow_counter_in, flow_counter_id);

	return table_remove(&d->flow_counters, n) ? CX_OK : CX_BAD_RES;
}

int cx_query_flow_counter(struct connectx *d, const struct cx_cmd *c)
{
	if (cx_get(c->in, query_flow_counter_in, num_of_counters) > 1)
		return CX_BAD_PARAM;
	return table_get(&d->flow_counters, (u32)cx_get(c->in, query_flow_counter_in, flow_counter_id)) ? CX_OK
													: CX_BAD_RES;
}
