// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory of client processes (hca_dma_ops of host mode).
 *
 * Memory that a process shares with the daemon (mapping.c) is accessed on the loop. Access to its other memory can
 * block without limit: its pages may be served by a userfaultfd, FUSE or NFS. Therefore only a worker thread (mover.c)
 * accesses it, by process_vm_readv() and process_vm_writev(), or, where those are denied, through a thread of the
 * process. The loop passes a move to the worker and waits for a short time (LATE_NS), limited by a share of the time of
 * a process (its credit) and of an iteration of the loop (TURN_NS): most moves finish in this time, which saves two
 * wake-ups. A process whose move has not finished is late: its further moves are queued behind this one, the loop waits
 * for none of them, and the transports suspend its queue pairs (hca_ctx_moved()) until the worker has finished. Memory
 * of a region with on-demand paging is never accessed on the loop: the program may unmap it at any time, of which the
 * daemon is not told. Moves of a late process are not aborted while it lives. Writes keep their order: while one is
 * outstanding, the worker also executes later writes to shared memory.
 */
#include <errno.h>

#include "emu/host/mover.h"
#include "emu/lib/clock.h"

#define LATE_NS     (100 * NSEC_PER_USEC) /* the longest wait for a move */
#define TURN_NS     (300 * NSEC_PER_USEC) /* for all moves in an iteration of the loop */
#define CREDIT_NS   (2 * NSEC_PER_MSEC)   /* for the moves of one process without a pause */
#define CREDIT_PART 2                     /* the credit grows by 1/CREDIT_PART of the elapsed time */

/* Moves segments that are mapped here, if no earlier move is pending. */
static int move_mapped(struct uv_process *p, const struct hca_dma_seg *seg, u32 n, bool write)
{
	if (p->exited)
		return -EFAULT;
	if (p->writes || !p->nmappings)
		return -EAGAIN;
	for (; n; n--, seg++) {
		u8 *at = seg->on_demand ? NULL : uv_mapping_at(p, seg->addr, seg->len);

		if (!at)
			return -EAGAIN;
		if (write) {
			hca_dma_order();
			memcpy(at, seg->local, seg->len);
		} else {
			memcpy(seg->local, at, seg->len);
		}
	}
	return 0;
}

static int dma_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return move_mapped(dma, seg, n, false);
}

static int dma_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return move_mapped(dma, seg, n, true);
}

static void *dma_direct(void *dma, u64 addr, u32 len, bool write)
{
	struct uv_process *p = dma;

	return p->exited || p->writes ? NULL : uv_mapping_at(p, addr, len);
}

/* Registration checks whether the first and the last byte are readable. */
static int dma_check(void *dma, u64 addr, u64 len, bool write)
{
	struct uv_process *p = dma;

	if (p->exited)
		return -EFAULT;
	return uv_mapping_at(p, addr, 1) && uv_mapping_at(p, addr + len - 1, 1) ? 0 : -EAGAIN;
}

static bool is_write(const struct hca_move *m)
{
	return m->op != HCA_MOVE_READ;
}

/* The time for which the loop may wait for the next move of the process. */
static u64 dma_wait_limit(struct uv_process *p, u64 now)
{
	static u64 turn, spent;
	u64 iteration = loop_now(p->loop).ns, left;

	if (p->moves > 1)
		return 0;
	if (turn != iteration) {
		turn = iteration;
		spent = 0;
	}
	p->credit = min(p->credit + (now - p->credit_at) / CREDIT_PART, (u64)CREDIT_NS);
	p->credit_at = now;
	left = min(min(p->credit, (u64)LATE_NS), spent < TURN_NS ? TURN_NS - spent : 0);
	spent += left; /* the limit: the actual wait is not known yet */
	return left;
}

static int dma_start(void *dma, struct hca_move *m)
{
	struct uv_process *p = dma;
	u64 now, wait;

	if (p->exited || (p->needs_copy && !p->mover && p->copy < 0))
		return -EFAULT;
	if (m->op >= HCA_MOVE_FETCH_ADD && !m->seg[0].on_demand && uv_mapping_at(p, m->seg[0].addr, 8))
		return -EBUSY; /* the worker could not do it atomically with respect to the program */
	if (!p->mover)
		p->mover = uv_mover_create(p);
	if (!p->mover)
		return -ENOMEM;
	p->moves++;
	p->writes += is_write(m);
	uv_mover_push(p->mover, m);
	now = clock_read();
	wait = dma_wait_limit(p, now);
	if (!wait || !uv_mover_wait(p->mover, now + wait))
		return -EINPROGRESS;
	p->credit -= min(p->credit, clock_read() - now);
	p->moves--;
	p->writes -= is_write(m);
	return 0;
}

void uv_process_moved(struct uv_process *p, struct hca_move *m)
{
	p->moves--;
	p->writes -= is_write(m);
	hca_move_done(m);
}

static void dma_use(void *dma, int by)
{
	if (by > 0)
		uv_process_get(dma);
	else
		uv_process_put(dma);
}

const struct hca_dma_ops uv_process_dma = {
	.read = dma_read,
	.write = dma_write,
	.check = dma_check,
	.direct = dma_direct,
	.start = dma_start,
	.use = dma_use,
	.on_demand = true,
};
