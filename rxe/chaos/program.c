// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs: killed and restarted; checks of their shared receive queue and of the operands of their atomics. */
#include <string.h>

#include "rxe/chaos/model.h"

void chaos_prog_excuse(const struct chaos_prog *p, u32 excuse)
{
	u32 i;

	for (i = 0; i < 2 * CONNS; i++)
		if (chaos_model.conn[i / 2].end[i % 2].prog == p)
			chaos_model.conn[i / 2].excuse |= excuse;
}

void chaos_srq_open(struct chaos_prog *p)
{
	struct hca_srq_attr at = { .max_wr = SRQ_DEPTH, .max_sge = 4 };

	memset(&chaos_model.srq, 0, sizeof(chaos_model.srq));
	chaos_model.srq.prog = p;
	if (hca_soft_srq_create(p->ctx, p->pdn, &at, &chaos_model.srq.wq))
		chaos_fail("a shared receive queue cannot be created");
}

/* Each pulled receive is in the queue again, or belonged to a queue pair that was reset. */
void chaos_srq_check(void)
{
	u32 i, n = 0, held = 2 + chaos_model.srq.lost;

	for (i = 0; i < RING; i++)
		n += chaos_model.srq.recv[i].used;
	if (hca_soft_wq_recvs(chaos_model.srq.wq) > n || n - hca_soft_wq_recvs(chaos_model.srq.wq) > held)
		chaos_fail("%u shared receives are out, and %u are in the queue", n,
			   hca_soft_wq_recvs(chaos_model.srq.wq));
}

void chaos_prog_restart(struct chaos_prog *p)
{
	u32 i;

	chaos_poll_all(true);
	chaos_prog_excuse(p, KILLED);
	if (chaos_model.srq.prog == p)
		chaos_srq_check();
	chaos_prog_kill(p);
	for (i = 0; i < 2 * CONNS; i++) {
		struct end *e = &chaos_model.conn[i / 2].end[i % 2];

		if (e->prog != p)
			continue;
		if (e->wq) {
			hca_soft_wq_orphan(e->wq);
			hca_soft_wq_destroy(e->wq);
		}
		if (e->cq) {
			hca_soft_cq_orphan(e->cq);
			hca_soft_cq_destroy(e->cq);
		}
		e->wq = NULL;
		e->cq = NULL;
		e->died = true;
		e->window.there = false;
	}
	if (chaos_model.srq.prog == p) {
		hca_soft_wq_orphan(chaos_model.srq.wq);
		hca_soft_wq_destroy(chaos_model.srq.wq);
	}
	chaos_prog_start(p);
	if (chaos_model.srq.prog == p)
		chaos_srq_open(p);
	chaos_stats->kills++;
}

void chaos_words_check(const struct chaos_prog *p)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(p->word); i++) {
		u64 v;

		memcpy(&v, p->mem + 8 * i, 8);
		if (v < p->word[i].done)
			chaos_fail("word %u of program %u is %llu after %u additions", i, p->index,
				   (unsigned long long)v, p->word[i].done);
	}
}
