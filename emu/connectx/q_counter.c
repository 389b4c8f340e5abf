// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sets of counters: each has those of the queue pairs that name it. A driver gives its queue pairs one set, and another
 * one to those that a user counts by themselves ("rdma statistic qp").
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"

/* Several counters of the HCA may be one of the adapter. */
static const struct {
	const char *name; /* counter of the HCA */
	struct wire_field field;
} q_counters[] = {
	{ "rx_write_requests", CX_FIELD(query_q_counter_out, rx_write_requests) },
	{ "rx_read_requests", CX_FIELD(query_q_counter_out, rx_read_requests) },
	{ "rx_atomic_requests", CX_FIELD(query_q_counter_out, rx_atomic_requests) },
	{ "out_of_seq_request", CX_FIELD(query_q_counter_out, out_of_sequence) },
	{ "duplicate_request", CX_FIELD(query_q_counter_out, duplicate_request) },
	{ "rcvd_rnr_err", CX_FIELD(query_q_counter_out, rnr_nak_retry_err) },
	{ "send_rnr_err", CX_FIELD(query_q_counter_out, out_of_buffer) },
	{ "rx_ud_dropped", CX_FIELD(query_q_counter_out, out_of_buffer) },
	{ "rcvd_seq_err", CX_FIELD(query_q_counter_out, packet_seq_err) },
	{ "local_ack_timeout_err", CX_FIELD(query_q_counter_out, local_ack_timeout_err) },
};

struct cx_counter_set {
	struct hca_counter_set *counters;
	u64 cleared_at[ARRAY_SIZE(q_counters)]; /* values when the set was last cleared */
};

static void set_destroy(struct cx_counter_set *set)
{
	hca_counter_set_destroy(set->counters);
	free(set);
}

void cx_counter_sets_destroy(struct connectx *d)
{
	struct cx_counter_set *set;
	u32 i;

	table_for_each (&d->counter_sets, i, set)
		set_destroy(set);
	table_fini(&d->counter_sets);
}

bool cx_counter_set_exists(const struct connectx *d, u32 id)
{
	return !id || table_get(&d->counter_sets, id);
}

void cx_counter_set_use(struct connectx *d, u32 id, u32 qpn)
{
	struct cx_counter_set *set = table_get(&d->counter_sets, id);

	hca_qp_set_counters(d->verbs.ctx, qpn, set ? set->counters : NULL);
}

int cx_alloc_q_counter(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_counter_set *set = calloc(1, sizeof(*set));
	u32 n;
	int err;

	if (!set)
		return -ENOMEM;
	set->counters = hca_counter_set_create();
	err = set->counters ? table_add(&d->counter_sets, set, &n) : -ENOMEM;
	if (!err) {
		cx_set(c->out, alloc_q_counter_out, counter_set_id, n);
		return CX_OK;
	}
	if (set->counters)
		hca_counter_set_destroy(set->counters);
	free(set);
	return err;
}

/*
 * Unlike other objects, also a set of queue pairs, which have none then: Linux deallocates the set of a queue pair that
 * has its own ("rdma statistic qp set auto") before it destroys the queue pair.
 */
int cx_dealloc_q_counter(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_counter_set *set =
		table_remove(&d->counter_sets, (u32)cx_get(c->in, dealloc_q_counter_in, counter_set_id));

	if (!set)
		return CX_BAD_RES;
	set_destroy(set);
	return CX_OK;
}

int cx_query_q_counter(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_counter_set *set =
		table_get(&d->counter_sets, (u32)cx_get(c->in, query_q_counter_in, counter_set_id));
	const char *name;
	u32 n, i;

	if (!set)
		return CX_BAD_RES;
	for (n = 0; (name = hca_counter_name(n)); n++) {
		u64 now = hca_counter_set_value(set->counters, n);

		for (i = 0; i < ARRAY_SIZE(q_counters); i++) {
			if (strcmp(name, q_counters[i].name))
				continue;
			wire_set(c->out, q_counters[i].field,
				 wire_get(c->out, q_counters[i].field) + now - set->cleared_at[i]);
			if (cx_get(c->in, query_q_counter_in, clear))
				set->cleared_at[i] = now;
		}
	}
	return CX_OK;
}
