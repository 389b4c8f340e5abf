// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fault target: Ethernet links, stations and switches. Packet faults run at the receiving end of a link, before the
 * station or switch there. A rate limits the sending end, whose queue, PAUSE and ECN act as on a slow link.
 */
#include "fabric/eth/eth_internal.h"

enum eth_fault_key {
	ETH_FCS = FAULT_OWN,
	ETH_CLASS,
	ETH_WITH,
};
#define TRIGGER    ((FAULT_MATCH_KEYS & ~WIRE_MATCH_LRH_KEYS(FAULT_MATCH)) | FAULT_PICK_KEYS)
#define FRAME_KEYS (BIT_ULL(FAULT_DIR) | TRIGGER)

struct eth_fault {
	struct fault ft;       /* must be first */
	bool all;              /* the place is all ends of the network */
	struct eth_switch *sw; /* the place is all its ports; NULL: it is @end */
	struct eth_end *end;
	bool fcs;
	u8 classes;
	char with[SPEC_TEXT_MAX];
	struct eth_end *other; /* swap: with= */
};

static struct eth_fault *eth_fault(struct fault *ft)
{
	return container_of(ft, struct eth_fault, ft);
}

/* The end of the network after @end (NULL: the first): each port of a switch, and the station at it. NULL: none. */
static struct eth_end *all_next(const struct eth *e, const struct eth_end *end)
{
	const struct eth_end *port = end && !end->sw ? end->peer : end;
	struct eth_end *next;
	u32 i = 0;

	if (port && port == end && !port->peer->sw)
		return port->peer;
	next = port ? eth_switch_port(port->sw, port->num + 1) : NULL;
	while (port && e->sw[i++] != port->sw)
		;
	for (; !next && i < e->nsw; i++)
		next = eth_switch_port(e->sw[i], 1);
	return next;
}

/* The end of the place after @end (NULL: the first). NULL: none. */
static struct eth_end *place_next(const struct eth_fault *ft, const struct eth_end *end)
{
	if (ft->all)
		return all_next(ft->ft.set->owner, end);
	if (!ft->sw)
		return end ? NULL : ft->end;
	return eth_switch_port(ft->sw, end ? end->num + 1 : 1);
}
#define eth_for_each_end(ft, end) for (end = place_next(ft, NULL); end; end = place_next(ft, end))

/* Packet operations for the fault engine */

static bool frame_match(const struct fault *ft, const void *packet)
{
	const struct eth_frame *f = packet;

	return wire_match_frame(&ft->match, f->buf->data, f->buf->size);
}

static void frame_hit(struct fault_hook *h)
{
	eth_count(h->at, ETH_CTR_FAULTS);
}

static void frame_forward(struct fault_hook *h, void *packet, u32 after)
{
	if (fault_pass(h->point, packet, after))
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

/* The frame without its addresses, in a private buffer. */
static u8 *frame_bytes(struct fault_hook *h, void *packet, u32 *from, u32 *len)
{
	struct eth_frame *f = packet;

	if (!eth_frame_own(f, f->buf->size))
		return NULL;
	*from = ETHER_SIZE;
	*len = f->buf->size;
	return f->buf->data;
}

/* The FCS is wrong with fcs=, else recomputed, as by a switch that corrupts frames. */
static enum fault_verdict frame_corrupted(struct fault_hook *h, void *packet)
{
	struct eth_frame *f = packet;

	f->bad_fcs = eth_fault(h->fault)->fcs;
	return FAULT_PASS;
}

static u32 frame_size(const void *packet)
{
	return ((const struct eth_frame *)packet)->buf->size;
}

static const struct fault_packet_ops frame_ops = {
	.match = frame_match,
	.hit = frame_hit,
	.forward = frame_forward,
	.drop = frame_drop,
	.clone = frame_clone,
	.bytes = frame_bytes,
	.corrupted = frame_corrupted,
	.size = frame_size,
};

/* Kinds */

/* Whether the fault's place has the end. */
static bool place_has(const struct eth_fault *ft, const struct eth_end *end)
{
	return ft->all || (ft->sw ? end->sw == ft->sw : end == ft->end);
}

/* The frame ends early; the FCS is that of the shorter frame, or with fcs= wrong. */
static enum fault_verdict frame_truncate(struct fault_hook *h, void *packet)
{
	struct eth_frame *f = packet;

	if (f->buf->size <= h->fault->bytes || !fault_hit(h, packet) || !eth_frame_own(f, h->fault->bytes))
		return FAULT_PASS;
	f->bad_fcs = eth_fault(h->fault)->fcs;
	return FAULT_PASS;
}

/* ecn: marks ECN-capable frames CE, as a congested switch does. */
static enum fault_verdict frame_mark(struct fault_hook *h, void *packet)
{
	if (eth_frame_may_mark(packet) && fault_hit(h, packet))
		eth_frame_mark(packet);
	return FAULT_PASS;
}

/* storm: the end sends PAUSE without limit, for the classes of all such faults at it. */
static void storm_changed(struct fault *changed)
{
	struct eth_end *end;
	struct fault *ft;
	u8 classes;

	eth_for_each_end (eth_fault(changed), end) {
		classes = 0;
		list_for_each (ft, &changed->set->faults, link)
			if (ft->applied && ft->kind->apply == storm_changed && place_has(eth_fault(ft), end))
				classes |= eth_fault(ft)->classes ? eth_fault(ft)->classes : 0xff;
		eth_pause_storm(end, classes);
	}
}

static int storm_check(struct fault *base, char *err, size_t err_len)
{
	struct eth_fault *ft = eth_fault(base);
	struct eth_end *end;

	eth_for_each_end (ft, end)
		if (end->cfg.pause || end->cfg.pfc & (ft->classes ? ft->classes : 0xff))
			return 0;
	return spec_refuse(err, err_len,
			   "storm: no link there has PAUSE or priority flow control%s, which stops its sender",
			   ft->classes ? " of this class" : "");
}

static void eth_fault_link(struct fault *base, bool up)
{
	struct eth_end *end;

	eth_for_each_end (eth_fault(base), end) {
		end->pulled += up ? -1u : 1u;
		eth_link_update(end);
	}
}

static void rate_limit(struct eth_end *end, u64 rate)
{
	end->rate = end->rate ? min(end->rate, rate) : rate;
}

static void rate_reset(struct eth_end *end)
{
	end->rate = end->cfg.rate;
	end->peer->rate = end->peer->cfg.rate;
}

static void rate_changed(struct fault *changed);

/* Limits the rate of each end by all applied faults. */
static void rates_limit(const struct fault_set *set)
{
	struct eth_end *end;
	struct fault *ft;

	list_for_each (ft, &set->faults, link) {
		if (!ft->applied || ft->kind->apply != rate_changed)
			continue;
		eth_for_each_end (eth_fault(ft), end) {
			if (ft->dir != PICK_IN)
				rate_limit(end, ft->rate);
			if (ft->dir != PICK_OUT)
				rate_limit(end->peer, ft->rate);
		}
	}
}

/* Sets the rate of each end to the lowest of its cable and of all applied faults. */
static void rate_changed(struct fault *changed)
{
	struct eth_end *end;

	eth_for_each_end (eth_fault(changed), end)
		rate_reset(end);
	rates_limit(changed->set);
}

/*
 * kill: a station or a switch without power. Its links are down, and a switch forgets the stations that it has learned.
 */
static int kill_check(struct fault *base, char *err, size_t err_len)
{
	const struct eth_fault *ft = eth_fault(base);

	return !ft->all && (ft->sw || !ft->end->sw) ? 0
						    : spec_refuse(err, err_len, "kill: it needs a node as its place");
}

static int eth_fault_attach(struct fault *base);

/* swap: exchanges the cables of two stations, or of two switch ports with stations; each end keeps its attributes. */
static void swap_apply(struct fault *base)
{
	struct eth_end *a = eth_fault(base)->end, *b = eth_fault(base)->other, *pa = a->peer, *pb = b->peer;
	struct fault *ft;

	eth_link_cut(a);
	eth_link_cut(b);
	a->peer = pb;
	pb->peer = a;
	b->peer = pa;
	pa->peer = b;
	pb->unplugged = a->unplugged;
	pa->unplugged = b->unplugged;
	rate_reset(a);
	rate_reset(b);
	rates_limit(base->set);
	list_for_each (ft, &base->set->faults, link)
		if (!list_empty(&ft->hooks)) {
			fault_detach(ft);
			eth_fault_attach(ft);
		}
	eth_link_update(a);
	eth_link_update(b);
}

/* Other cables are not swapped: two stations without a switch, or a loop of switches, would result. */
static int swap_check(struct fault *base, char *err, size_t err_len)
{
	struct eth_fault *ft = eth_fault(base);
	struct eth *e = base->set->owner;

	if (ft->all || ft->sw)
		return spec_refuse(err, err_len, "swap: it needs one port as its place");
	ft->other = eth_switch_find(e, ft->with) ? NULL : eth_find(e, ft->with);
	if (!ft->other || ft->other == ft->end)
		return spec_refuse(err, err_len, "with=%s: %s", ft->with,
				   ft->other ? "the same port" : "there is no such port");
	if (!ft->end->sw != !ft->other->sw || (ft->end->sw && (ft->end->peer->sw || ft->other->peer->sw)))
		return spec_refuse(err, err_len, "with=%s: swap takes two hosts, or two ports of switches with hosts",
				   ft->with);
	return 0;
}

static const struct fault_kind frame_kinds[] = {
	{ FAULT_KIND_DROP(FRAME_KEYS) },
	{ FAULT_KIND_DUPLICATE(FRAME_KEYS) },
	{ FAULT_KIND_DELAY(FRAME_KEYS) },
	{ FAULT_KIND_REORDER, .allowed = FRAME_KEYS | BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_DEPTH) },
	{ FAULT_KIND_CORRUPT, .allowed = FRAME_KEYS | BIT_ULL(FAULT_OFFSET) | BIT_ULL(ETH_FCS) },
	{ .name = "truncate",
	  .packet = frame_truncate,
	  .allowed = FRAME_KEYS | BIT_ULL(ETH_FCS),
	  .required = BIT_ULL(FAULT_BYTES) },
	{ .name = "ecn", .packet = frame_mark, .allowed = FRAME_KEYS },
	{ FAULT_KIND_STALL(FRAME_KEYS) },
	{ FAULT_KIND_DOWN(FRAME_KEYS) },
	{ FAULT_KIND_FLAP(FRAME_KEYS) },
	{ .name = "rate",
	  .apply = rate_changed,
	  .undo = rate_changed,
	  .required = BIT_ULL(FAULT_RATE),
	  .allowed = BIT_ULL(FAULT_DIR) | BIT_ULL(FAULT_FOR) },
	{ .name = "kill",
	  .apply = fault_down_apply,
	  .undo = fault_down_undo,
	  .prepare = kill_check,
	  .allowed = FRAME_KEYS | BIT_ULL(FAULT_FOR) },
	{ .name = "swap",
	  .apply = swap_apply,
	  .undo = swap_apply,
	  .prepare = swap_check,
	  .required = BIT_ULL(ETH_WITH),
	  .allowed = BIT_ULL(FAULT_FOR) },
	{ .name = "storm",
	  .apply = storm_changed,
	  .undo = storm_changed,
	  .prepare = storm_check,
	  .allowed = BIT_ULL(ETH_CLASS) },
	{ .name = NULL },
};

/* Fault target */

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

	ft->all = !strcmp(place, FAULT_PLACE_ALL);
	if (fault_given(base, FAULT_DIR) && ft->all)
		return spec_refuse(err, err_len, "dir: the place all has no direction");
	if (fault_given(base, FAULT_DIR) && !fault_sees_packets(base) && base->kind->apply != rate_changed)
		return spec_refuse(err, err_len, "dir: no packets are matched");
	if (ft->all)
		return all_next(base->set->owner, NULL) ? 0
							: spec_refuse(err, err_len, "all: there is no Ethernet link");
	ft->sw = eth_switch_find(base->set->owner, place);
	ft->end = eth_find(base->set->owner, place);
	return ft->end ? 0 : spec_refuse(err, err_len, "%.80s: there is no such port", place);
}

/* One hook at the receiving end of each direction; a cable between two ports of the place has one hook at each end. */
static int eth_fault_attach(struct fault *base)
{
	const struct eth_fault *ft = eth_fault(base);
	struct eth_end *end;
	int err = 0;

	eth_for_each_end (ft, end) {
		bool inner = place_has(ft, end->peer);

		if (base->dir != PICK_OUT || inner)
			err = fault_attach(base, &end->hooks, end);
		if (!err && base->dir != PICK_IN && !inner)
			err = fault_attach(base, &end->peer->hooks, end->peer);
		if (err)
			break;
	}
	return err;
}

static const struct spec_field keys[] = {
	[ETH_FCS - FAULT_OWN] = SPEC_FIELD("fcs", SPEC_FLAG, eth_fault, fcs),
	[ETH_CLASS - FAULT_OWN] = SPEC_FIELD("class", SPEC_OTHER, eth_fault, classes, .parse = parse_class,
					     .wants = "a priority, 0 to 7"),
	[ETH_WITH - FAULT_OWN] = SPEC_FIELD("with", SPEC_TEXT, eth_fault, with),
};
static const struct fault_kind *const kinds[] = { frame_kinds, NULL };
const struct fault_target eth_fault_target = {
	.of = "of Ethernet ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct eth_fault),
	.trigger = TRIGGER,
	.link = eth_fault_link,
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
