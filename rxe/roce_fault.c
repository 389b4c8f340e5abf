// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of a RoCE port on sockets, where no link of ours is on the way: what happens on purpose to packets before they leave, or
 * when they come, before the port counts or captures them. Faults act in the order in which they were armed.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/lib/pick.h"
#include "emu/wire/hdr.h"
#include "emu/wire/match.h"
#include "emu/wire/opcode.h"
#include "rxe/roce_internal.h"

#define HELD_MAX     65536
#define REORDER_TIME NSEC_PER_MSEC
#define COPIES_MAX   16

enum what { /* as the names of what= stand */
	PAYLOAD,
	HEADER,
	ICRC
};

enum field {
	F_DIR,
	F_MATCH,
	F_PICK = F_MATCH + WIRE_MATCH_FIELDS,
	F_TIME = F_PICK + PICK_FIELDS,
	F_JITTER,
	F_COPIES,
	F_DEPTH,
	F_WHAT,
	F_OFFSET,
	F_SILENT,
	F_BYTES,
};
/* There is no LRH, by whose place pcap= counts. */
#define LRH_KEYS                                                                                                 \
	(BIT_ULL(WIRE_MATCH_SLID) | BIT_ULL(WIRE_MATCH_DLID) | BIT_ULL(WIRE_MATCH_SL) | BIT_ULL(WIRE_MATCH_VL) | \
	 BIT_ULL(WIRE_MATCH_PCAP))
#define PACKET_KEYS (BIT_ULL(F_DIR) | (WIRE_MATCH_KEYS(F_MATCH) & ~(LRH_KEYS << F_MATCH)) | PICK_KEYS(F_PICK))

struct spec {
	u64 given;
	u8 dir, what;
	bool silent;
	struct wire_match match;
	struct pick pick;
	u64 time, jitter, seed;
	u32 copies, depth, offset, bytes;
};

/* Packets of one direction. */
struct roce_way {
	struct roce_fault *fault;
	bool out;
	struct list held; /* ->queued is when they go on, ->born behind how many others */
	u32 nheld;
	u64 last, passed;
	struct loop_timer timer;
};

struct action {
	const char *name;
	bool (*packet)(struct roce_way *w, struct wire_packet *p); /* false: it is taken */
	u64 allowed, required;
};

struct roce_fault {
	struct list link; /* the port's, in the order of arming */
	struct roce_port *rp;
	const struct action *action;
	struct spec s;
	struct rng rng;
	struct roce_way way[2];
};

static bool ours(struct roce_way *w, const struct wire_packet *p)
{
	struct spec *s = &w->fault->s;

	if (!wire_match_test(&s->match, p) || !pick_next(&s->pick))
		return false;
	roce_count(w->fault->rp, ROCE_CTR_FAULTS);
	return true;
}

/* On with it */

static bool pass_from(struct roce_port *rp, struct list *at, struct wire_packet *p, bool out)
{
	struct list *next;

	for (; at != &rp->faults; at = next) {
		struct roce_fault *ft = list_entry(at, struct roce_fault, link);

		next = at->next;
		if (ft->s.dir != (out ? PICK_IN : PICK_OUT) && !ft->action->packet(&ft->way[out], p))
			return false;
	}
	if (out || !(p->flags & WIRE_PKT_BAD_ICRC))
		return true;
	roce_count(rp, ROCE_CTR_ICRC);
	wire_packet_free(p);
	return false;
}

bool roce_fault_pass(struct roce_port *rp, struct wire_packet *p, bool out)
{
	return pass_from(rp, rp->faults.next, p, out);
}

/* A packet that does not come with its headers: to the faults behind this one, and then where it was going. */
static void go_on(struct roce_way *w, struct wire_packet *p)
{
	struct roce_port *rp = w->fault->rp;
	struct wire_roce r;

	if (!pass_from(rp, w->fault->link.next, p, w->out))
		return;
	if (w->out) {
		roce_queue(rp, p);
		return;
	}
	wire_roce_from_grh(p, &r);
	roce_arrived(rp, p, &r);
}

static void let_go(struct roce_way *w)
{
	struct wire_packet *p = list_first(&w->held, struct wire_packet, link);

	list_del(&p->link);
	w->nheld--;
	go_on(w, p);
}

static void on_timer(struct loop_timer *timer, struct now now)
{
	struct roce_way *w = container_of(timer, struct roce_way, timer);

	while (!list_empty(&w->held) && list_first(&w->held, struct wire_packet, link)->queued <= now.ns)
		let_go(w);
	if (!list_empty(&w->held))
		loop_timer_set(w->fault->rp->loop, timer, list_first(&w->held, struct wire_packet, link)->queued);
}

static bool hold(struct roce_way *w, struct wire_packet *p, u64 when)
{
	if (w->nheld >= HELD_MAX || !wire_packet_own(p)) {
		wire_packet_free(p);
		return false;
	}
	p->queued = when;
	list_add(&w->held, &p->link);
	w->nheld++;
	if (!loop_timer_armed(&w->timer))
		loop_timer_set(w->fault->rp->loop, &w->timer, when);
	return false;
}

/* The actions */

static bool drop(struct roce_way *w, struct wire_packet *p)
{
	if (!ours(w, p))
		return true;
	wire_packet_free(p);
	return false;
}

static bool duplicate(struct roce_way *w, struct wire_packet *p)
{
	u32 n = w->fault->s.copies ? w->fault->s.copies : 1;
	struct wire_packet *copy;

	if (!ours(w, p) || !wire_packet_own(p))
		return true;
	while (n-- && (copy = wire_packet_clone(p)))
		go_on(w, copy);
	return true;
}

/* Packets keep their order. */
static bool delay(struct roce_way *w, struct wire_packet *p)
{
	const struct spec *s = &w->fault->s;

	if (!ours(w, p))
		return true;
	w->last = max(w->last, loop_now(w->fault->rp->loop).ns + s->time +
				       (s->jitter ? rng_next(&w->fault->rng) % s->jitter : 0));
	return hold(w, p, w->last);
}

/* Until as many others as the depth says have passed, or for a time, so that the last ones come, too. */
static bool reorder(struct roce_way *w, struct wire_packet *p)
{
	const struct spec *s = &w->fault->s;
	struct wire_packet *first;

	if (ours(w, p)) {
		p->born = w->passed + s->depth;
		return hold(w, p, loop_now(w->fault->rp->loop).ns + (s->time ? s->time : REORDER_TIME));
	}
	w->passed++;
	go_on(w, p);
	while (!list_empty(&w->held)) {
		first = list_first(&w->held, struct wire_packet, link);
		if (first->born > w->passed)
			break;
		let_go(w);
	}
	return false;
}

static void flip(struct roce_fault *ft, u8 *bytes, u32 len)
{
	u64 n = rng_next(&ft->rng);
	u32 at = ft->s.given & BIT_ULL(F_OFFSET) ? ft->s.offset : (u32)(n >> 8) % max(len, 1u);

	if (at < len)
		bytes[at] ^= (u8)(1 << (n & 7));
}

/* Headers that were damaged, and whose ICRC is right, must still be headers for who reads them here. */
static bool readable(struct roce_way *w, struct wire_packet *p)
{
	const struct wire_opcode *op = wire_opcode(p->hdr[p->bth_off]);

	if (w->out || (op && op->hdr_len == p->hdr_len - p->bth_off))
		return true;
	roce_count(w->fault->rp, ROCE_CTR_MALFORMED);
	wire_packet_free(p);
	return false;
}

/* One bit; the ICRC is wrong then or, when it is silent, right. */
static bool corrupt(struct roce_way *w, struct wire_packet *p)
{
	const struct spec *s = &w->fault->s;

	if (!ours(w, p))
		return true;
	if (s->what == PAYLOAD && p->len && wire_packet_unshare(p))
		flip(w->fault, p->buf->data, p->len);
	if (s->what == HEADER)
		flip(w->fault, p->hdr + p->bth_off, p->hdr_len - p->bth_off);
	if (!s->silent)
		p->flags |= WIRE_PKT_BAD_ICRC;
	return readable(w, p);
}

/* The payload ends early; the ICRC is wrong then, or the lengths fit. */
static bool truncate_packet(struct roce_way *w, struct wire_packet *p)
{
	const struct spec *s = &w->fault->s;
	struct wire_bth *bth = (struct wire_bth *)(p->hdr + p->bth_off);

	if (p->len <= s->bytes || !ours(w, p))
		return true;
	p->len = s->bytes;
	bth->flags = (bth->flags & ~0x30) | (-p->len & 3) << 4;
	if (!s->silent)
		p->flags |= WIRE_PKT_BAD_ICRC;
	return true;
}

static const struct action actions[] = {
	{ "drop", drop, 0, 0 },
	{ "duplicate", duplicate, BIT_ULL(F_COPIES), 0 },
	{ "delay", delay, BIT_ULL(F_JITTER) | BIT_ULL(F_TIME), 0 },
	{ "reorder", reorder, BIT_ULL(F_TIME), BIT_ULL(F_DEPTH) },
	{ "corrupt", corrupt, BIT_ULL(F_OFFSET) | BIT_ULL(F_SILENT), BIT_ULL(F_WHAT) },
	{ "truncate", truncate_packet, BIT_ULL(F_SILENT), BIT_ULL(F_BYTES) },
};

bool roce_fault_action(const char *name)
{
	return SPEC_ROW(actions, name);
}

/* Reading */

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, spec, member, ##__VA_ARGS__)
static const struct spec_field fields[] = {
	[F_DIR] = PICK_DIR(spec, dir),
	WIRE_MATCH_SPEC(F_MATCH, spec, match),
	PICK_SPEC(F_PICK, spec, pick, seed),
	[F_TIME] = KEY("time", SPEC_TIME, time),
	[F_JITTER] = KEY("jitter", SPEC_TIME, jitter),
	[F_COPIES] = KEY("copies", SPEC_U32, copies, .max = COPIES_MAX),
	[F_DEPTH] = KEY("depth", SPEC_U32, depth, .max = 1000),
	[F_WHAT] = KEY("what", SPEC_NAME, what, .names = "payload|header|icrc", .wants = "payload, header or icrc"),
	[F_OFFSET] = KEY("offset", SPEC_U32, offset, .max = WIRE_MTU_MAX),
	[F_SILENT] = KEY("silent", SPEC_FLAG, silent),
	[F_BYTES] = KEY("bytes", SPEC_U32, bytes, .max = WIRE_MTU_MAX),
};

static int read_words(struct roce_fault *ft, const char *text, u64 seed, char *err, size_t err_len)
{
	struct spec_words words = { .n = 0 };
	struct spec *s = &ft->s;
	int rc = spec_split(&words, text, err, err_len);

	if (rc)
		return rc;
	ft->action = SPEC_ROW(actions, words.n ? words.word[0] : "");
	if (!ft->action)
		return spec_refuse(err, err_len, "%.40s: a RoCE port on UDP has no such fault",
				   words.n ? words.word[0] : "");
	rc = spec_words(fields, ARRAY_SIZE(fields), s, &s->given, &words, 1, err, err_len)
		     ?: spec_keys(fields, ARRAY_SIZE(fields), ft->action->name, s->given,
				  PACKET_KEYS | ft->action->allowed, ft->action->required, err, err_len);
	if (!rc && ft->action->packet == corrupt && s->silent && s->what == ICRC)
		rc = spec_refuse(err, err_len, "silent: damage to the ICRC is what the receiver notices");
	if (!rc && ft->action->packet == delay && !s->time && !s->jitter)
		rc = spec_refuse(err, err_len, "delay: it needs time=, jitter= or both");
	rc = rc ?: wire_match_start(&s->match, s->given, F_MATCH, err, err_len);
	return rc ?: pick_start(&s->pick, s->given, F_PICK, s->seed, seed, &ft->rng, err, err_len);
}

struct roce_fault *roce_fault_add(struct roce_port *rp, const char *text, u64 seed, char *err, size_t err_len)
{
	struct roce_fault *ft = calloc(1, sizeof(*ft));
	u32 out;

	if (!ft) {
		spec_refuse(err, err_len, "out of memory");
		return NULL;
	}
	if (read_words(ft, text, seed, err, err_len)) {
		wire_match_free(&ft->s.match);
		free(ft);
		return NULL;
	}
	ft->rp = rp;
	for (out = 0; out < 2; out++) {
		ft->way[out] = (struct roce_way){ .fault = ft, .out = out, .timer.fn = on_timer };
		list_init(&ft->way[out].held);
	}
	list_add(&rp->faults, &ft->link);
	return ft;
}

void roce_fault_remove(struct roce_fault *ft)
{
	u32 out;

	for (out = 0; out < 2; out++) {
		while (!list_empty(&ft->way[out].held))
			let_go(&ft->way[out]);
		loop_timer_cancel(&ft->way[out].timer);
	}
	list_del(&ft->link);
	wire_match_free(&ft->s.match);
	free(ft);
}

const struct pick *roce_fault_pick(const struct roce_fault *ft)
{
	return &ft->s.pick;
}

u32 roce_fault_held(const struct roce_fault *ft)
{
	return ft->way[0].nheld + ft->way[1].nheld;
}
