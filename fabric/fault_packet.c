// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What faults do to packets, at the end of a link's direction, before the port there sees them.
 *
 * A packet stands on the books of the receiving port's buffer. One that is dropped leaves them. One that is late leaves
 * them and is entered again when it comes: a long cable holds packets without taking the receiver's buffer. One that
 * waits for a slow or stalled link stays on them, so that credits run out and the sender feels it.
 */
#include <stdlib.h>

#include "emu/wire/opcode.h"
#include "fabric/tap.h"

#define HELD_MAX     65536 /* packets behind one tap; more are lost, as if the link had dropped them */
#define HELD_SMPS    256   /* of VL15, which has no credits */
#define TOLD_MAX     32    /* hits of each fault that are told to whoever watches */
#define REORDER_TIME (1 * NSEC_PER_MSEC)

static bool ours(struct fabric_tap *t, const struct wire_packet *p)
{
	struct fabric_fault *ft = t->fault;

	if (!wire_match_test(&ft->s.match, p) || !pick_next(&ft->s.pick))
		return false;
	if (ft->s.pick.hits <= TOLD_MAX)
		fabric_tell(ft->f, FABRIC_EVENT_FAULT, NULL, ft, "fired");
	return true;
}

static u32 tap_index(const struct fabric_tap *t)
{
	u32 i = 0;

	while (t->in->taps && i < t->in->taps->n && t->in->taps->tap[i] != t)
		i++;
	return i;
}

static enum fault_verdict lose(struct fabric_tap *t, struct wire_packet *p)
{
	fabric_relay_drop(t->in, p);
	return FAULT_TAKEN;
}

/* Keeps the packet until @when (ns). @charged: it stays on the receiver's books. */
static enum fault_verdict hold(struct fabric_tap *t, struct wire_packet *p, u64 when, bool charged)
{
	if (t->nheld >= (p->vl == WIRE_VL_MGMT && when == ~0ull ? HELD_SMPS : HELD_MAX))
		return lose(t, p);
	if (!charged)
		fabric_relay_release(t->in, p->vl, p);
	p->queued = when;
	list_add(&t->held, &p->link);
	t->nheld++;
	if (when != ~0ull && !loop_timer_armed(&t->timer))
		loop_timer_set(t->in->node->f->loop, &t->timer, when);
	return FAULT_TAKEN;
}

static bool stays_charged(const struct fabric_tap *t)
{
	const struct fabric_fault_spec *s = &t->fault->s;

	return s->rate || !(s->time || s->jitter || s->depth);
}

/* Sends the first held packet on to the next tap or the port. */
static void let_go(struct fabric_tap *t)
{
	struct wire_packet *p = list_first(&t->held, struct wire_packet, link);

	list_del(&p->link);
	t->nheld--;
	if (!stays_charged(t) && p->vl != WIRE_VL_MGMT)
		t->in->rx_blocks[p->vl] += fabric_blocks(p);
	fabric_flight_push(t->in->node->f, t->in, p, tap_index(t) + 1);
}

void fault_tap_release(struct fabric_tap *t)
{
	while (!list_empty(&t->held))
		let_go(t);
	loop_timer_cancel(&t->timer);
}

void fault_tap_timer(struct loop_timer *timer, struct now now)
{
	struct fabric_tap *t = container_of(timer, struct fabric_tap, timer);

	while (!list_empty(&t->held) && list_first(&t->held, struct wire_packet, link)->queued <= now.ns)
		let_go(t);
	if (!list_empty(&t->held) && list_first(&t->held, struct wire_packet, link)->queued != ~0ull)
		loop_timer_set(t->in->node->f->loop, timer, list_first(&t->held, struct wire_packet, link)->queued);
}

/* The actions */

static enum fault_verdict drop(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	return ours(t, p) ? lose(t, p) : FAULT_PASS;
}

static enum fault_verdict duplicate(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	u32 copies = t->fault->s.copies ? t->fault->s.copies : 1;
	struct wire_packet *c;

	if (!ours(t, p))
		return FAULT_PASS;
	while (copies-- && (c = wire_packet_clone(p))) {
		if (c->vl != WIRE_VL_MGMT)
			t->in->rx_blocks[c->vl] += fabric_blocks(c);
		fabric_flight_push(t->in->node->f, t->in, c, next);
	}
	return FAULT_PASS;
}

/* Holds a packet until depth others have passed, or for a time, so that the last ones come, too. */
static enum fault_verdict reorder(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	u64 now = t->in->node->f->now.ns, wait = t->fault->s.time ? t->fault->s.time : REORDER_TIME;
	struct wire_packet *q, *tmp;

	if (ours(t, p)) {
		p->born = t->passed + t->fault->s.depth;
		return hold(t, p, now + wait, false);
	}
	t->passed++;
	list_for_each_safe (q, tmp, &t->held, link) {
		if (q->born > t->passed)
			break;
		let_go(t);
	}
	return FAULT_PASS;
}

/* Packets keep their order: none goes before the one that came first. */
static enum fault_verdict delay(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	const struct fabric_fault_spec *s = &t->fault->s;
	u64 when = t->in->node->f->now.ns + s->time;

	if (!ours(t, p))
		return FAULT_PASS;
	if (s->jitter)
		when += rng_next(&t->fault->rng) % s->jitter;
	when = max(when, t->busy_until);
	t->busy_until = when;
	return hold(t, p, when, false);
}

static enum fault_verdict rate(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	u64 now = t->in->node->f->now.ns, bits = (wire_packet_link_len(p) + 2) * 8ull;

	if (!ours(t, p))
		return FAULT_PASS;
	t->busy_until = max(t->busy_until, now) + bits * NSEC_PER_SEC / t->fault->s.rate;
	return hold(t, p, t->busy_until, true);
}

static enum fault_verdict stall(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	const struct fabric_fault_spec *s = &t->fault->s;
	u64 now = t->in->node->f->now.ns;

	/* Once it is stalled everything of the kind waits behind the first. */
	if (t->nheld ? !wire_match_test(&s->match, p) : !ours(t, p))
		return FAULT_PASS;
	if (!t->nheld)
		t->busy_until = s->lasts ? now + s->lasts : ~0ull;
	return hold(t, p, t->busy_until, true);
}

static void flip(struct fabric_fault *ft, u8 *bytes, u32 from, u32 len)
{
	u64 n = rng_next(&ft->rng);
	u32 at = ft->s.given & BIT_ULL(FAULT_OFFSET) ? ft->s.offset : from + (u32)(n >> 8) % (len - from);

	if (at < len)
		bytes[at] ^= (u8)(1 << (n & 7));
}

/* The packet's length has changed: so do the books. */
static void recharge(struct fabric_tap *t, const struct wire_packet *p, u32 before)
{
	u32 *books = &t->in->rx_blocks[p->vl];

	if (p->vl == WIRE_VL_MGMT)
		return;
	*books -= min(before, *books);
	*books += fabric_blocks(p);
	if (t->in->peer)
		fabric_arb_kick(t->in->peer);
}

/* What comes after silent damage to headers must hold for the packet's readers: it goes through the door once more. */
static enum fault_verdict reenter(struct fabric_tap *t, struct wire_packet *p)
{
	u8 bytes[WIRE_HDR_MAX + WIRE_MTU_MAX + 16];
	u32 before = fabric_blocks(p);
	struct wire_packet *q;
	int n;

	wire_lrh_set_words(fabric_lrh(p), wire_packet_link_len(p) / 4);
	n = wire_packet_serialize(p, bytes, sizeof(bytes));
	q = n > 0 ? wire_packet_parse(bytes, (u32)n, false) : NULL;
	if (!q) {
		fabric_count(t->in, FABRIC_CTR_RCV_ERRORS);
		fabric_count(t->in, FABRIC_CTR_RCV_MALFORMED);
		return lose(t, p);
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
	recharge(t, p, before);
	return FAULT_PASS;
}

static enum fault_verdict corrupt(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	const struct fabric_fault_spec *s = &t->fault->s;

	if (!ours(t, p))
		return FAULT_PASS;
	if (s->what == FAULT_PAYLOAD && p->len && wire_packet_unshare(p))
		flip(t->fault, p->buf->data, 0, p->len);
	if (s->what == FAULT_HEADER)
		flip(t->fault, p->hdr, p->bth_off, p->hdr_len);
	if (s->what == FAULT_VCRC)
		p->flags |= WIRE_PKT_BAD_VCRC;
	else if (!s->silent)
		p->flags |= WIRE_PKT_BAD_ICRC;
	return s->what == FAULT_HEADER && s->silent ? reenter(t, p) : FAULT_PASS;
}

static enum fault_verdict truncate_packet(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	const struct fabric_fault_spec *s = &t->fault->s;
	u32 before = fabric_blocks(p);

	if (p->len <= s->bytes || !ours(t, p))
		return FAULT_PASS;
	p->len = s->bytes;
	recharge(t, p, before);
	if (s->silent) {
		struct wire_bth *bth = fabric_bth(p);

		bth->flags = (bth->flags & ~0x30) | (-p->len & 3) << 4;
		return reenter(t, p);
	}
	p->flags |= WIRE_PKT_EBP | WIRE_PKT_BAD_ICRC;
	return FAULT_PASS;
}

static enum fault_verdict mark(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	if (ours(t, p))
		wire_bth_set_fecn(fabric_bth(p));
	return FAULT_PASS;
}

static enum fault_verdict alter(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	const struct fabric_fault_spec *s = &t->fault->s;

	if ((s->given & BIT_ULL(FAULT_STATUS) && !wire_match_mad(p)) || p->len < s->offset + s->alter.n || !ours(t, p))
		return FAULT_PASS;
	if (!p->len || !wire_packet_unshare(p))
		return FAULT_PASS;
	memcpy(p->buf->data + s->offset, s->alter.data, s->alter.n);
	if (s->given & BIT_ULL(FAULT_STATUS)) /* beside the D bit of directed routes */
		wire_set(p->buf->data, MAD_STATUS, (wire_get(p->buf->data, MAD_STATUS) & 0x8000) | s->status);
	return FAULT_PASS;
}

static enum fault_verdict symbol(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	struct fabric_port *in = t->in;

	if (!ours(t, p))
		return FAULT_PASS;
	in->ctr[FABRIC_CTR_SYMBOL_ERRORS] += t->fault->s.times ? t->fault->s.times : 1;
	return FAULT_PASS;
}

static int check_alter(struct fabric_fault *ft, char *err, size_t err_len)
{
	const struct fabric_fault_spec *s = &ft->s;

	if (!s->alter.n && !(s->given & BIT_ULL(FAULT_STATUS)))
		return spec_refuse(err, err_len, "alter: it needs to=HEX or status=");
	return 0;
}

static int check_silent(struct fabric_fault *ft, char *err, size_t err_len)
{
	if (ft->s.silent && (ft->s.what == FAULT_ICRC || ft->s.what == FAULT_VCRC))
		return spec_refuse(err, err_len, "silent: damage to a CRC is what the receiver notices");
	return 0;
}

static int check_jitter(struct fabric_fault *ft, char *err, size_t err_len)
{
	if (!ft->s.time && !ft->s.jitter)
		return spec_refuse(err, err_len, "delay: it needs time=, jitter= or both");
	return 0;
}

const struct fault_action fault_packet_actions[] = {
	{ .name = "drop", .packet = drop },
	{ .name = "duplicate", .packet = duplicate, .allowed = BIT_ULL(FAULT_COPIES) },
	{ .name = "reorder",
	  .packet = reorder,
	  .all_packets = true,
	  .allowed = BIT_ULL(FAULT_TIME),
	  .required = BIT_ULL(FAULT_DEPTH) },
	{ .name = "delay",
	  .packet = delay,
	  .check = check_jitter,
	  .allowed = BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_JITTER) },
	{ .name = "rate", .packet = rate, .required = BIT_ULL(FAULT_RATE) },
	{ .name = "stall", .packet = stall, .allowed = BIT_ULL(FAULT_FOR) },
	{ .name = "corrupt",
	  .packet = corrupt,
	  .check = check_silent,
	  .required = BIT_ULL(FAULT_WHAT),
	  .allowed = BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_SILENT) },
	{ .name = "truncate",
	  .packet = truncate_packet,
	  .required = BIT_ULL(FAULT_BYTES),
	  .allowed = BIT_ULL(FAULT_SILENT) },
	{ .name = "ecn", .packet = mark },
	{ .name = "alter",
	  .packet = alter,
	  .check = check_alter,
	  .allowed = BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_TO) | BIT_ULL(FAULT_STATUS) },
	{ .name = "symbol", .packet = symbol, .allowed = BIT_ULL(FAULT_TIMES) },
	{ .name = NULL },
};
