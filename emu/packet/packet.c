// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packet and payload pools. Serialization is in serial.c. */
#include <stdlib.h>

#include "emu/lib/poison.h"
#include "emu/packet/header.h"
#include "emu/packet/packet.h"
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"

#define POOL_MAX       4096       /* packets kept for reuse */
#define BUF_CLASSES    5          /* 256, 1 KiB, 4 KiB, 16 KiB, 64 KiB */
#define BUF_POOL_BYTES (4u << 20) /* per class */

static struct list free_packets = { &free_packets, &free_packets };
static u32 nfree, live;

union pooled_buf {
	union pooled_buf *next;
	struct wire_buf buf;
};

static union pooled_buf *free_bufs[BUF_CLASSES];
static u32 nfree_bufs[BUF_CLASSES];

static u32 class_size(u32 c)
{
	return 256u << (2 * c);
}

static u32 size_class(u32 size)
{
	u32 c = 0;

	while (c < BUF_CLASSES && class_size(c) < size)
		c++;
	return c;
}

struct wire_buf *wire_buf_alloc(u32 size)
{
	u32 c = size_class(size);
	bool pooled = POOLS_KEEP && c < BUF_CLASSES;
	union pooled_buf *b;

	if (pooled && free_bufs[c]) {
		b = free_bufs[c];
		free_bufs[c] = b->next;
		nfree_bufs[c]--;
	} else {
		b = malloc(sizeof(*b) + (pooled ? class_size(c) : size));
		if (!b)
			return NULL;
	}
	live++;
	b->buf.refs = 1;
	b->buf.size = size;
	return &b->buf;
}

void wire_buf_put(struct wire_buf *buf)
{
	union pooled_buf *b;
	u32 c;

	if (!buf || --buf->refs)
		return;
	b = container_of(buf, union pooled_buf, buf);
	live--;
	c = size_class(buf->size);
	if (!POOLS_KEEP || c >= BUF_CLASSES || nfree_bufs[c] * class_size(c) >= BUF_POOL_BYTES) {
		free(b);
		return;
	}
	b->next = free_bufs[c];
	free_bufs[c] = b;
	nfree_bufs[c]++;
}

struct wire_packet *wire_packet_alloc(void)
{
	struct wire_packet *p;

	if (list_empty(&free_packets)) {
		p = malloc(sizeof(*p));
		if (!p)
			return NULL;
	} else {
		p = list_first(&free_packets, struct wire_packet, link);
		list_del(&p->link);
		nfree--;
	}
	live++;
	memset(p, 0, offsetof(struct wire_packet, hdr));
	list_init(&p->link);
	return p;
}

void wire_packet_free(struct wire_packet *p)
{
	live--;
	wire_buf_put(p->buf);
	if (!POOLS_KEEP || nfree >= POOL_MAX) {
		free(p);
		return;
	}
	list_add(&free_packets, &p->link);
	nfree++;
}

bool wire_packet_unshare(struct wire_packet *p)
{
	struct wire_buf *own = wire_buf_alloc(p->len);

	if (!own)
		return false;
	memcpy(own->data, p->data, p->len);
	wire_buf_put(p->buf);
	p->buf = own;
	p->data = own->data;
	p->flags &= (u8)~WIRE_PKT_ZCOPY;
	return true;
}

bool wire_packet_own(struct wire_packet *p)
{
	return !(p->flags & WIRE_PKT_ZCOPY) || wire_packet_unshare(p);
}

void wire_packet_truncate(struct wire_packet *p, u32 len)
{
	p->len = len;
	wire_bth_set_pad(wire_packet_bth(p), len);
}

bool wire_packet_parse_bth(struct wire_packet *p, const void *src, u32 at, u32 len, u32 tail)
{
	const struct wire_bth *bth = src;
	const struct wire_opcode *op;
	u32 body;

	if (len < sizeof(*bth) + tail)
		return false;
	op = wire_opcode(bth->opcode);
	if (!op || wire_bth_tver(bth) || len < op->hdr_len + tail)
		return false;
	p->bth_off = (u8)at;
	p->hdr_len = (u16)(at + op->hdr_len);
	body = len - op->hdr_len - tail;
	if (p->hdr_len > WIRE_HDR_MAX || wire_bth_pad(bth) > body || body - wire_bth_pad(bth) > WIRE_MTU_MAX ||
	    (!(op->flags & WIRE_OPF_PAYLOAD) && body))
		return false;
	p->len = body - wire_bth_pad(bth);
	return true;
}

struct wire_packet *wire_packet_clone(const struct wire_packet *p)
{
	struct wire_packet *c = wire_packet_alloc();

	if (!c)
		return NULL;
	*c = *p;
	list_init(&c->link);
	if (c->buf)
		wire_buf_get(c->buf);
	return c;
}

u32 wire_packet_live(void)
{
	return live;
}
