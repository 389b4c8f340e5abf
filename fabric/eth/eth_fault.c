// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ethernet links as a target of the fault engine. Faults run on frames at the receiving end of a link, before the station or switch
 * there.
 */
#include "fabric/eth/eth_internal.h"

enum eth_fault_key {
	ETH_FCS = FAULT_OWN,
	ETH_CLASS,
};
#define FRAME_KEYS (BIT_ULL(FAULT_DIR) | FAULT_MATCH_KEY(PCAP) | FAULT_MATCH_KEY(LEN) | FAULT_PICK_KEYS)

struct eth_fault {
	struct fault ft; /* the first */
	struct eth_end *end;
	bool fcs;
	u8 classes;
};

static struct eth_fault *eth_fault(struct fault *ft)
{
	return container_of(ft, struct eth_fault, ft);
}

/* Frames for the engine */

static bool frame_match(const struct fault *ft, const void *packet)
{
	const struct eth_frame *f = packet;

	return wire_match_frame(&ft->match, f->buf->data, f->buf->size);
}

static void frame_hit(struct fault_hook *h)
{
	eth_count(h->at, ETH_CTR_FAULTS);
}

static void frame_forward(struct fault_hook *h, void *packet, u32 next)
{
	if (fault_pass(h->point, packet, next))
		eth_end_receive(h->at, packet);
}

static void frame_drop(struct fault_hook *h, void *packet)
{
	eth_frame_free(packet);
}

static void *frame_clone(struct fault_hook *h, void *packet)
{
	const struct eth_frame *f = packet;

	return eth_frame_create(wire_buf_get(f->buf), f->class, NULL);
}

/* The frame behind its addresses, in a buffer of its own. */
static u8 *frame_bytes(struct fault_hook *h, void *packet, u32 *from, u32 *len)
{
	struct eth_frame *f = packet;
	struct wire_buf *own = wire_buf_alloc(f->buf->size);

	if (!own)
		return NULL;
	memcpy(own->data, f->buf->data, own->size);
	wire_buf_put(f->buf);
	f->buf = own;
	*from = ETHER_SIZE;
	*len = own->size;
	return own->data;
}

/* The FCS is wrong with fcs=, else recomputed as by a switch that corrupts frames. */
static enum fault_verdict frame_corrupted(struct fault_hook *h, void *packet)
{
	struct eth_frame *f = packet;

	f->bad_fcs = eth_fault(h->fault)->fcs;
	return FAULT_PASS;
}

static const struct fault_packet_ops frame_ops = {
	.match = frame_match,
	.hit = frame_hit,
	.forward = frame_forward,
	.drop = frame_drop,
	.clone = frame_clone,
	.bytes = frame_bytes,
	.corrupted = frame_corrupted,
};

/* Kinds */

/* The end sends PAUSE for ever. */
static void storm_apply(struct fault *base)
{
	struct eth_fault *ft = eth_fault(base);

	eth_pause_storm(ft->end, ft->classes ? ft->classes : 0xff);
}

static void storm_undo(struct fault *base)
{
	eth_pause_storm(eth_fault(base)->end, 0);
}

static const struct fault_kind frame_kinds[] = {
	{ FAULT_KIND_DROP(FRAME_KEYS) },
	{ FAULT_KIND_DUPLICATE(FRAME_KEYS) },
	{ FAULT_KIND_DELAY(FRAME_KEYS) },
	{ FAULT_KIND_REORDER, .allowed = FRAME_KEYS | BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_DEPTH) },
	{ FAULT_KIND_CORRUPT, .allowed = FRAME_KEYS | BIT_ULL(FAULT_OFFSET) | BIT_ULL(ETH_FCS) },
	{ .name = "storm", .apply = storm_apply, .undo = storm_undo, .allowed = BIT_ULL(ETH_CLASS) },
	{ .name = NULL },
};

/* The target */

static bool parse_class(void *to, const char *value)
{
	u64 n;

	if (!spec_number(value, ETH_CLASSES - 1, &n))
		return false;
	*(u8 *)to = (u8)BIT((u32)n);
	return true;
}

static int eth_fault_place(struct fault *base, const char *place, char *err, size_t err_len)
{
	struct eth_fault *ft = eth_fault(base);

	ft->end = eth_find(base->set->owner, place);
	return ft->end ? 0 : spec_refuse(err, err_len, "%.80s: there is no such port", place);
}

static int eth_fault_attach(struct fault *base)
{
	struct eth_end *end = eth_fault(base)->end;
	int err = 0;

	if (base->dir != PICK_OUT)
		err = fault_attach(base, &end->hooks, end);
	if (!err && base->dir != PICK_IN)
		err = fault_attach(base, &end->peer->hooks, end->peer);
	return err;
}

static const struct spec_field keys[] = {
	[ETH_FCS - FAULT_OWN] = SPEC_FIELD("fcs", SPEC_FLAG, eth_fault, fcs),
	[ETH_CLASS - FAULT_OWN] = SPEC_FIELD("class", SPEC_OTHER, eth_fault, classes, .parse = parse_class,
					     .wants = "a priority, 0 to 7"),
};
static const struct fault_kind *const kinds[] = { frame_kinds, NULL };
const struct fault_target eth_fault_target = {
	.of = "of Ethernet ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct eth_fault),
	.mtu = ETHER_MTU_MAX,
	.ethernet = true,
	.place = eth_fault_place,
	.attach = eth_fault_attach,
	.packets = &frame_ops,
};

struct fault_set *eth_faults(struct eth *e)
{
	return &e->faults;
}
