// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fault target: a RoCE port on UDP sockets. Faults run on packets before they are sent, and on received packets before
 * the port counts or captures them, since there is no fabric link between.
 */
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce/roce_internal.h"

#define ROCE_WHAT FAULT_OWN /* the key what= */
/* Keys of fields that RoCE packets do not have; offsets of pcap= count from the LRH. */
#define LRH_KEYS (WIRE_MATCH_LRH_KEYS(FAULT_MATCH) | FAULT_MATCH_KEY(PCAP))

static struct roce_port *hook_port(const struct fault_hook *h)
{
	return h->fault->set->owner;
}

static bool hook_is_out(const struct fault_hook *h)
{
	return h->point == &hook_port(h)->hooks[1];
}

static bool roce_fault_match(const struct fault *ft, const void *packet)
{
	return wire_match_test(&ft->match, packet);
}

static void roce_fault_hit(struct fault_hook *h)
{
	roce_count(hook_port(h), ROCE_CTR_FAULTS);
}

static void roce_fault_drop(struct fault_hook *h, void *packet)
{
	wire_packet_free(packet);
}

static bool fault_pass_from(struct roce_port *rp, struct wire_packet *p, bool out, u32 after)
{
	if (rp->down) {
		roce_fault_drop(NULL, p);
		return false;
	}
	if (!fault_pass(&rp->hooks[out], p, after))
		return false;
	if (out || !(p->flags & WIRE_PKT_BAD_ICRC))
		return true;
	roce_count(rp, ROCE_CTR_ICRC);
	wire_packet_free(p);
	return false;
}

bool roce_fault_sent(struct roce_port *rp, struct wire_packet *p)
{
	return fault_pass_from(rp, p, true, 0);
}

void roce_fault_arrived(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r)
{
	struct wire_roce now = *r;

	if (!fault_pass_from(rp, p, false, 0))
		return;
	now.tos = wire_grh_tclass(wire_packet_grh(p)); /* ecn may have marked it */
	roce_arrived(rp, p, &now);
}

static void roce_fault_forward(struct fault_hook *h, void *packet, u32 after)
{
	struct roce_port *rp = hook_port(h);
	struct wire_roce r;

	if (!fault_pass_from(rp, packet, hook_is_out(h), after))
		return;
	if (hook_is_out(h)) {
		roce_queue(rp, packet);
		return;
	}
	wire_roce_from_grh(packet, &r);
	roce_arrived(rp, packet, &r);
}

static void *roce_fault_clone(struct fault_hook *h, void *packet)
{
	return wire_packet_own(packet) ? wire_packet_clone(packet) : NULL;
}

static bool roce_fault_hold(struct fault_hook *h, void *packet, u64 when)
{
	return wire_packet_own(packet);
}

static u8 *roce_fault_bytes(struct fault_hook *h, void *packet, u32 *from, u32 *len)
{
	struct wire_packet *p = packet;

	if (h->fault->what == FAULT_PAYLOAD && p->len && wire_packet_unshare(p)) {
		*len = p->len;
		return p->buf->data;
	}
	*len = p->hdr_len - p->bth_off;
	return h->fault->what == FAULT_HEADER ? p->hdr + p->bth_off : NULL;
}

/* Sets a wrong ICRC, or a correct one with silent=. Drops a received packet whose headers can no longer be parsed. */
static enum fault_verdict roce_fault_corrupted(struct fault_hook *h, void *packet)
{
	struct wire_packet *p = packet;
	const struct wire_opcode *op = wire_opcode(p->hdr[p->bth_off]);

	if (!h->fault->silent)
		p->flags |= WIRE_PKT_BAD_ICRC;
	if (hook_is_out(h) || (op && op->hdr_len == p->hdr_len - p->bth_off))
		return FAULT_PASS;
	roce_count(hook_port(h), ROCE_CTR_MALFORMED);
	return fault_discard(h, p);
}

/* Truncates the payload; the ICRC is wrong, or with silent= correct. */
static enum fault_verdict roce_truncate(struct fault_hook *h, void *packet)
{
	const struct fault *ft = h->fault;
	struct wire_packet *p = packet;

	if (p->len <= ft->bytes || !fault_hit(h, p))
		return FAULT_PASS;
	wire_packet_truncate(p, ft->bytes);
	if (!ft->silent)
		p->flags |= WIRE_PKT_BAD_ICRC;
	return FAULT_PASS;
}

/* ecn: marks ECN-capable packets CE, as a congested switch does. */
static enum fault_verdict roce_fault_mark(struct fault_hook *h, void *packet)
{
	if (roce_may_mark(packet) && fault_hit(h, packet))
		roce_mark(hook_port(h), packet);
	return FAULT_PASS;
}

/* All links: each packet is matched once, by the host that receives it. */
static int roce_fault_place(struct fault *ft, const char *place, char *err, size_t err_len)
{
	if (strcmp(place, FAULT_PLACE_ALL))
		return 0;
	if (fault_given(ft, FAULT_DIR))
		return spec_refuse(err, err_len, "dir: the place all has no direction");
	ft->dir = PICK_IN;
	return 0;
}

static int roce_fault_attach(struct fault *ft)
{
	struct roce_port *rp = ft->set->owner;
	int err = 0;

	if (ft->dir != PICK_OUT)
		err = fault_attach(ft, &rp->hooks[0], rp);
	if (!err && ft->dir != PICK_IN)
		err = fault_attach(ft, &rp->hooks[1], rp);
	return err;
}

static u32 roce_fault_size(const void *packet)
{
	return wire_roce_len(packet);
}

static void roce_fault_link(struct fault *ft, bool up)
{
	struct roce_port *rp = ft->set->owner;

	rp->pulled += up ? -1u : 1u;
	roce_link_update(rp);
}

static const struct fault_packet_ops packet_ops = {
	.match = roce_fault_match,
	.hit = roce_fault_hit,
	.forward = roce_fault_forward,
	.drop = roce_fault_drop,
	.clone = roce_fault_clone,
	.hold = roce_fault_hold,
	.bytes = roce_fault_bytes,
	.corrupted = roce_fault_corrupted,
	.size = roce_fault_size,
};
static const struct fault_kind packet_kinds[] = {
	{ FAULT_KIND_DROP(0) },
	{ FAULT_KIND_DUPLICATE(0) },
	{ FAULT_KIND_DELAY(0) },
	{ FAULT_KIND_REORDER, .allowed = BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_DEPTH) },
	{ FAULT_KIND_CORRUPT, .allowed = BIT_ULL(ROCE_WHAT) | BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_SILENT) },
	{ .name = "truncate",
	  .packet = roce_truncate,
	  .allowed = BIT_ULL(FAULT_SILENT),
	  .required = BIT_ULL(FAULT_BYTES) },
	{ FAULT_KIND_ALTER },
	{ .name = "ecn", .packet = roce_fault_mark },
	{ FAULT_KIND_RATE(0) },
	{ FAULT_KIND_STALL(0) },
	{ FAULT_KIND_DOWN(0) },
	{ FAULT_KIND_FLAP(0) },
	{ .name = "kill", .apply = fault_down_apply, .undo = fault_down_undo, .allowed = BIT_ULL(FAULT_FOR) },
	{ .name = NULL },
};
static const struct fault_kind *const kinds[] = { packet_kinds, NULL };
static const struct spec_field keys[] = {
	[ROCE_WHAT - FAULT_OWN] = SPEC_FIELD("what", SPEC_NAME, fault, what, .names = "payload|header|icrc",
					     .wants = "payload, header or icrc"),
};
const struct fault_target roce_fault_target = {
	.of = "of a RoCE port on UDP ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct fault),
	.any = FAULT_PACKET_KEYS & ~LRH_KEYS,
	.trigger = (FAULT_MATCH_KEYS & ~LRH_KEYS) | FAULT_PICK_KEYS,
	.link = roce_fault_link,
	.mtu = WIRE_MTU_MAX,
	.place = roce_fault_place,
	.attach = roce_fault_attach,
	.packets = &packet_ops,
};

struct fault_set *roce_port_faults(struct roce_port *rp)
{
	return &rp->faults;
}
