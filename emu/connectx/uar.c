// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* User access regions (UARs): pages of the BAR, whose writes are doorbells. */
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"

/* Doorbells in a UAR. */
enum {
	UAR_CQ = 0x20,
	UAR_EQ_ARM = 0x40,
	UAR_EQ = 0x48,
	UAR_SEND = 0x800, /* two or four buffers */
};

void cx_uars_init(struct connectx *d)
{
	d->uar_shift = CX_UAR_SHIFT + d->log_uar_page;
	table_init(&d->uars, CX_UARS_AT >> d->uar_shift, (CX_BAR_SIZE >> d->uar_shift) - 1);
}

void cx_uars_fini(struct connectx *d)
{
	struct cx_uar *u;
	u32 i;

	table_for_each (&d->uars, i, u)
		free(u);
	table_fini(&d->uars);
	memset(d->half, 0, sizeof(d->half));
}

bool cx_uar_exists(const struct connectx *d, u32 uar)
{
	const struct cx_uar *u = table_get(&d->uars, uar);

	return u && !u->deallocated;
}

static void uar_free_if_unused(struct connectx *d, u32 uar, const struct cx_uar *u)
{
	if (!u->users && u->deallocated)
		free(table_remove(&d->uars, uar));
}

void cx_uar_use(struct connectx *d, u32 uar, int n)
{
	struct cx_uar *u = table_get(&d->uars, uar);

	u->users += (u32)n;
	uar_free_if_unused(d, uar, u);
}

int cx_alloc_uar(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_uar *u = calloc(1, sizeof(*u));
	u32 n;
	int err = u ? table_add(&d->uars, u, &n) : -ENOMEM;

	if (!err)
		cx_set(c->out, alloc_uar_out, uar, n);
	else
		free(u);
	return err;
}

/*
 * Unlike other objects, also one in use: rdma-core deallocates that of a device's CQs when the device is closed, which
 * is before the kernel destroys the CQs that the program has left (perftest's), and does not do so again. Queues keep
 * its number: doorbells of a later owner must not ring them.
 */
int cx_dealloc_uar(struct connectx *d, const struct cx_cmd *c)
{
	u32 n = (u32)cx_get(c->in, dealloc_uar_in, uar);
	struct cx_uar *u = table_get(&d->uars, n);

	if (!u || u->deallocated)
		return CX_BAD_RES;
	u->deallocated = true;
	uar_free_if_unused(d, n, u);
	return CX_OK;
}

/* ---- doorbells ---- */

/* A driver that arms a CQ has nothing more to do: only requests keep the loop awake for the next ones. */
static void doorbell(struct connectx *d, u32 uar, u32 off, u64 value)
{
	if (off == UAR_CQ) {
		cx_cq_doorbell(d, uar, (u32)(value >> 32), (u32)value);
		return;
	}
	d->found++;
	cx_qp_doorbell(d, uar, (u32)value >> 8);
}

static struct cx_half *half_at(struct connectx *d, u64 at)
{
	u32 i;

	for (i = 0; i < CX_HALVES; i++) {
		if (d->half[i].at == at)
			return &d->half[i];
	}
	return NULL;
}

static void half_keep(struct connectx *d, u64 at, const u8 *bytes)
{
	struct cx_half *h = half_at(d, at) ?: &d->half[d->next_half++ % CX_HALVES];

	h->at = at;
	memcpy(h->bytes, bytes, sizeof(h->bytes));
}

/* Takes the first half of the doorbell at @at; false: there is none. */
static bool half_take(struct connectx *d, u64 at, u8 *bytes)
{
	struct cx_half *h = half_at(d, at);

	if (!h)
		return false;
	memcpy(bytes, h->bytes, sizeof(h->bytes));
	h->at = 0;
	return true;
}

/*
 * Send and CQ doorbells have 8 bytes, which a 32-bit driver writes as two halves. Other bytes of a request in a send
 * buffer (BlueFlame) are ignored: the queue has them, too.
 */
void cx_uar_write(struct connectx *d, u64 at, const u8 *buf, u32 len)
{
	u32 uar = (u32)(at >> d->uar_shift), off = (u32)(at & (BIT(d->uar_shift) - 1));
	u8 whole[8];

	if ((off == UAR_EQ_ARM || off == UAR_EQ) && len == 4) {
		cx_eq_doorbell(d, uar, (u32)wire_load(buf, 4), off == UAR_EQ_ARM);
		return;
	}
	if (off != UAR_CQ && off != UAR_CQ + 4 && (off < UAR_SEND || off % 0x100 > 4))
		return;
	if (len >= 8 && off % 8 == 0) {
		doorbell(d, uar, off, wire_load(buf, 8));
	} else if (len == 4 && off % 8 == 0) {
		half_keep(d, at, buf);
	} else if (len == 4 && half_take(d, at - 4, whole)) {
		memcpy(whole + 4, buf, 4);
		doorbell(d, uar, off - 4, wire_load(whole, 8));
	} else {
		cx_count(d, CX_CTR_BAD_DOORBELLS);
	}
}
