// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packet faults of InfiniBand links. They run at the end of one direction of a link, before the receiving port counts
 * the packet.
 *
 * A packet on a link holds credits of the receiving port's input buffer. A dropped packet returns them. A delayed or
 * reordered packet returns them and takes them again when it is released: a long cable does not use the receiver's
 * buffer. A packet that waits for a rate limit or a stall keeps them, so that the sender runs out of credits.
 */
#include "fabric/fault_internal.h"

#define HELD_SMPS 256 /* packets of VL15, which has no credits, that an unlimited stall holds */

/* Packet operations for the fault engine */

static bool link_match(const struct fault *ft, const void *packet)
{
	return wire_match_test(&ft->match, packet);
}

static bool link_may_match(const struct fault *ft, const void *packet)
{
	return wire_match_flow(&ft->match, packet);
}

static void link_flow(const void *packet, u64 key[2])
{
	const struct wire_packet *p = packet;
	const struct wire_lrh *lrh = wire_packet_lrh(p);
	const struct wire_bth *bth = wire_packet_bth(p);

	key[0] = (u64)wire_bth_qpn(bth) << 40 | (u64)wire_lrh_slid(lrh) << 24 | (u64)wire_lrh_dlid(lrh) << 8 |
		 bth->opcode;
	key[1] = (u64)p->len << 16 | (u64)wire_lrh_sl(lrh) << 8 | p->vl;
}

static void link_forward(struct fault_hook *h, void *packet, u32 after)
{
	struct fabric_port *in = h->at;

	fabric_flight_push_released(in->node->f, in, packet, after);
}

static void link_drop(struct fault_hook *h, void *packet)
{
	fabric_flight_drop(h->at, packet);
}

/* Takes credits of the receiver's buffer. */
static void link_charge(struct fault_hook *h, const struct wire_packet *p)
{
	struct fabric_port *in = h->at;

	if (p->vl != WIRE_VL_MGMT)
		in->rx_blocks[p->vl] += fabric_blocks(p);
}

static void *link_clone(struct fault_hook *h, void *packet)
{
	struct wire_packet *c = wire_packet_clone(packet);

	if (c)
		link_charge(h, c);
	return c;
}

static bool link_hold(struct fault_hook *h, void *packet, u64 when)
{
	const struct wire_packet *p = packet;

	if (p->vl == WIRE_VL_MGMT && when == FAULT_NEVER && h->nheld >= HELD_SMPS)
		return false;
	if (!h->fault->kind->keeps_credits)
		fabric_flight_release(h->at, p->vl, fabric_blocks(p));
	return true;
}

static void link_release(struct fault_hook *h, void *packet)
{
	if (!h->fault->kind->keeps_credits)
		link_charge(h, packet);
}

static u8 *link_bytes(struct fault_hook *h, void *packet, u32 *from, u32 *len)
{
	struct wire_packet *p = packet;

	if (h->fault->what == FAULT_PAYLOAD && p->len && wire_packet_unshare(p)) {
		*len = p->len;
		return p->buf->data;
	}
	if (h->fault->what != FAULT_HEADER)
		return NULL;
	*from = p->bth_off;
	*len = p->hdr_len;
	return p->hdr;
}

/* Corrects the credits that the packet holds after its length has changed. */
static void link_recharge(struct fault_hook *h, const struct wire_packet *p, u32 before)
{
	struct fabric_port *in = h->at;
	u32 *blocks = &in->rx_blocks[p->vl];

	if (p->vl == WIRE_VL_MGMT)
		return;
	*blocks -= min(before, *blocks);
	*blocks += fabric_blocks(p);
	fabric_flight_freed(in, p->vl);
}

/* Parses the packet again after a silent change of its headers; a malformed one is dropped and counted. */
static enum fault_verdict link_reparse(struct fault_hook *h, struct wire_packet *p)
{
	u8 bytes[WIRE_PACKET_MAX];
	u32 before = fabric_blocks(p);
	struct wire_packet *q;
	int n;

	wire_lrh_set_words(wire_packet_lrh(p), wire_packet_link_len(p) / 4);
	n = wire_packet_serialize(p, bytes, sizeof(bytes));
	q = n > 0 ? wire_packet_parse(bytes, (u32)n, false) : NULL;
	if (!q) {
		fabric_count(h->at, FABRIC_CTR_RCV_ERRORS);
		fabric_count(h->at, FABRIC_CTR_RCV_MALFORMED);
		return fault_discard(h, p);
	}
	wire_buf_put(p->buf);
	p->buf = q->buf ? wire_buf_get(q->buf) : NULL;
	p->data = q->data;
	p->len = q->len;
	p->grh_off = q->grh_off;
	p->bth_off = q->bth_off;
	p->hdr_len = q->hdr_len;
	memcpy(p->hdr, q->hdr, q->hdr_len);
	wire_packet_free(q);
	link_recharge(h, p, before);
	return FAULT_PASS;
}

static u32 link_size(const void *packet)
{
	return wire_packet_link_len(packet) + 2;
}

static enum fault_verdict link_corrupted(struct fault_hook *h, void *packet)
{
	const struct fault *ft = h->fault;
	struct wire_packet *p = packet;

	if (ft->what == FAULT_VCRC)
		p->flags |= WIRE_PKT_BAD_VCRC;
	else if (!ft->silent)
		p->flags |= WIRE_PKT_BAD_ICRC;
	return ft->what == FAULT_HEADER && ft->silent ? link_reparse(h, p) : FAULT_PASS;
}

const struct fault_packet_ops fault_packet_ops = {
	.match = link_match,
	.may_match = link_may_match,
	.flow = link_flow,
	.forward = link_forward,
	.queues = true,
	.drop = link_drop,
	.clone = link_clone,
	.hold = link_hold,
	.release = link_release,
	.bytes = link_bytes,
	.corrupted = link_corrupted,
	.size = link_size,
};

/* Kinds */

static enum fault_verdict truncate_packet(struct fault_hook *h, void *packet)
{
	const struct fault *ft = h->fault;
	struct wire_packet *p = packet;
	u32 before = fabric_blocks(p);

	if (p->len <= ft->bytes || !fault_hit(h, p))
		return FAULT_PASS;
	wire_packet_truncate(p, ft->bytes);
	link_recharge(h, p, before);
	if (ft->silent)
		return link_reparse(h, p);
	p->flags |= WIRE_PKT_EBP | WIRE_PKT_BAD_ICRC;
	return FAULT_PASS;
}

static enum fault_verdict mark(struct fault_hook *h, void *packet)
{
	if (fault_hit(h, packet))
		wire_bth_set_fecn(wire_packet_bth(packet));
	return FAULT_PASS;
}

static enum fault_verdict symbol(struct fault_hook *h, void *packet)
{
	struct fabric_port *in = h->at;
	u32 times = h->fault->times;

	if (fault_hit(h, packet))
		in->ctr[FABRIC_CTR_SYMBOL_ERRORS] += times ? times : 1;
	return FAULT_PASS;
}

const struct fault_kind fault_packet_kinds[] = {
	{ FAULT_KIND_DROP(0) },
	{ FAULT_KIND_DUPLICATE(0) },
	{ FAULT_KIND_REORDER, .allowed = BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_DEPTH) },
	{ FAULT_KIND_DELAY(0) },
	{ FAULT_KIND_RATE(0) },
	{ FAULT_KIND_STALL(0) },
	{ FAULT_KIND_CORRUPT, .allowed = BIT_ULL(FAULT_WHAT) | BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_SILENT) },
	{ .name = "truncate",
	  .packet = truncate_packet,
	  .required = BIT_ULL(FAULT_BYTES),
	  .allowed = BIT_ULL(FAULT_SILENT) },
	{ .name = "ecn", .packet = mark },
	{ FAULT_KIND_ALTER },
	{ .name = "symbol", .packet = symbol, .allowed = BIT_ULL(FAULT_TIMES) },
	{ .name = NULL },
};
