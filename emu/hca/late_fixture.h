/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests of late memory: stands for the thread that executes moves. */
#ifndef MUSLIN_HCA_LATE_FIXTURE_H
#define MUSLIN_HCA_LATE_FIXTURE_H

#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca.h"

static struct hca_move *late_moves[64]; /* those that were started, until the test completes them */
static u32 late_count;

static inline int late_start(void *dma, struct hca_move *m)
{
	if (late_count == ARRAY_SIZE(late_moves))
		exit(1);
	late_moves[late_count++] = m;
	return -EINPROGRESS;
}

/* Executes a move by @read or @write, and completes it. */
static inline void late_move_end(struct hca_move *m, const struct hca_dma_ops *ops, void *dma)
{
	u32 i, at = 0;

	for (i = 0; i < m->n; at += m->seg[i++].len) {
		struct hca_dma_seg seg = { .addr = m->seg[i].addr, .len = m->seg[i].len, .local = m->data + at };

		m->seg[i].failed = (m->op == HCA_MOVE_WRITE ? ops->write : ops->read)(dma, &seg, 1);
	}
	hca_move_done(m);
}

static inline void late_moves_end(const struct hca_dma_ops *ops, void *dma)
{
	u32 i;

	for (i = 0; i < late_count; i++)
		late_move_end(late_moves[i], ops, dma);
	late_count = 0;
}

#endif
