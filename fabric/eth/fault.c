// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of Ethernet links: what happens to frames at the end of a link's direction, before the station or switch there sees
 * them. Those of one end act in the order in which they were armed.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/spec.h"
#include "fabric/eth/internal.h"

#define HELD_MAX     65536
#define REORDER_TIME NSEC_PER_MSEC
#define COPIES_MAX   16

enum field {
	F_DIR,
	F_PCAP,
	F_LEN,
	F_PICK,
	F_TIME = F_PICK + PICK_FIELDS,
	F_JITTER,
	F_COPIES,
	F_DEPTH,
	F_OFFSET,
	F_FCS,
	F_CLASS,
};
#define FRAME_KEYS (BIT_ULL(F_DIR) | BIT_ULL(F_PCAP) | BIT_ULL(F_LEN) | PICK_KEYS(F_PICK))

struct spec {
	u64 given;
	u8 dir, classes;
	bool fcs;
	u32 len[2], copies, depth, offset;
	u64 time, jitter, seed;
	struct pick pick;
	char pcap[SPEC_TEXT_MAX];
};

/* Where a fault looks: frames that arrive at an end. */
struct eth_tap {
	struct list link;  /* the end's */
	struct list peers; /* the fault's */
	struct eth_fault *fault;
	struct eth_end *in;
	struct list held; /* frames by the time when they go on */
	u32 nheld;
	u64 last, passed;
	struct loop_timer timer;
};

struct action {
	const char *name;
	/* False: the frame is taken. NULL: what happens, happens at once, to the ends. */
	bool (*frame)(struct eth_tap *t, struct eth_frame *f);
	u64 allowed;
};

struct eth_fault {
	struct eth *e;
	struct list link;
	const struct action *action;
	struct spec s;
	struct eth_end *end;
	struct list taps;
	struct rng rng;
	struct bpf_program program;
	bool compiled;
};

/* Which frames */

static bool matches(const struct eth_fault *ft, const struct eth_frame *f)
{
	struct pcap_pkthdr h = { .caplen = f->buf->size, .len = f->buf->size };

	if (ft->s.len[1] && (f->buf->size < ft->s.len[0] || f->buf->size > ft->s.len[1]))
		return false;
	return !ft->compiled || pcap_offline_filter(&ft->program, &h, f->buf->data);
}

static bool ours(struct eth_tap *t, const struct eth_frame *f)
{
	if (!matches(t->fault, f) || !pick_next(&t->fault->s.pick))
		return false;
	eth_count(t->in, ETH_CTR_FAULTS);
	return true;
}

/* On with it */

static void pass_from(struct eth_end *end, struct list *at, struct eth_frame *f)
{
	struct list *next;

	for (; at != &end->faults; at = next) {
		struct eth_tap *t = list_entry(at, struct eth_tap, link);

		next = at->next;
		if (!t->fault->action->frame(t, f))
			return;
	}
	eth_end_arrive(end, f);
}

void eth_fault_pass(struct eth_end *end, struct eth_frame *f)
{
	pass_from(end, end->faults.next, f);
}

static void let_go(struct eth_tap *t)
{
	struct eth_frame *f = list_first(&t->held, struct eth_frame, link);

	list_del(&f->link);
	t->nheld--;
	pass_from(t->in, t->link.next, f);
}

static void on_timer(struct loop_timer *timer, struct now now)
{
	struct eth_tap *t = container_of(timer, struct eth_tap, timer);

	while (!list_empty(&t->held) && list_first(&t->held, struct eth_frame, link)->when <= now.ns)
		let_go(t);
	if (!list_empty(&t->held))
		loop_timer_set(t->in->e->loop, timer, list_first(&t->held, struct eth_frame, link)->when);
}

static void hold(struct eth_tap *t, struct eth_frame *f, u64 when)
{
	if (t->nheld >= HELD_MAX) {
		eth_frame_free(f);
		return;
	}
	f->when = when;
	list_add(&t->held, &f->link);
	t->nheld++;
	if (!loop_timer_armed(&t->timer))
		loop_timer_set(t->in->e->loop, &t->timer, when);
}

/* The actions */

static bool drop(struct eth_tap *t, struct eth_frame *f)
{
	if (!ours(t, f))
		return true;
	eth_frame_free(f);
	return false;
}

static bool duplicate(struct eth_tap *t, struct eth_frame *f)
{
	u32 n = t->fault->s.copies ? t->fault->s.copies : 1;
	struct eth_frame *copy;

	if (!ours(t, f))
		return true;
	while (n-- && (copy = eth_frame_create(wire_buf_get(f->buf), f->class, NULL)))
		pass_from(t->in, t->link.next, copy);
	return true;
}

/* Frames keep their order: none goes before the one that came first. */
static bool delay(struct eth_tap *t, struct eth_frame *f)
{
	const struct spec *s = &t->fault->s;

	if (!ours(t, f))
		return true;
	t->last = max(t->last, eth_now(t->in->e) + s->time + (s->jitter ? rng_next(&t->fault->rng) % s->jitter : 0));
	hold(t, f, t->last);
	return false;
}

/* Held until depth others have passed, or for a time, so that the last ones come, too. */
static bool reorder(struct eth_tap *t, struct eth_frame *f)
{
	const struct spec *s = &t->fault->s;

	if (ours(t, f)) {
		f->after = t->passed + (s->depth ? s->depth : 1);
		hold(t, f, eth_now(t->in->e) + (s->time ? s->time : REORDER_TIME));
		return false;
	}
	t->passed++;
	pass_from(t->in, t->link.next, f);
	while (!list_empty(&t->held) && list_first(&t->held, struct eth_frame, link)->after <= t->passed)
		let_go(t);
	return false;
}

/* A bit of the bytes behind the addresses; the FCS is wrong then, too, or right again, as behind a switch that does the damage. */
static bool corrupt(struct eth_tap *t, struct eth_frame *f)
{
	const struct spec *s = &t->fault->s;
	struct wire_buf *own;
	u64 n;
	u32 at;

	if (!ours(t, f))
		return true;
	n = rng_next(&t->fault->rng);
	at = s->offset ? s->offset : ETHER_SIZE + (u32)(n >> 8) % max(f->buf->size - ETHER_SIZE, 1u);
	own = wire_buf_alloc(f->buf->size);
	f->bad_fcs = s->fcs;
	if (!own)
		return true;
	memcpy(own->data, f->buf->data, own->size);
	if (at < own->size)
		own->data[at] ^= (u8)(1 << (n & 7));
	wire_buf_put(f->buf);
	f->buf = own;
	return true;
}

static const struct action actions[] = {
	{ "drop", drop, FRAME_KEYS },
	{ "duplicate", duplicate, FRAME_KEYS | BIT_ULL(F_COPIES) },
	{ "delay", delay, FRAME_KEYS | BIT_ULL(F_TIME) | BIT_ULL(F_JITTER) },
	{ "reorder", reorder, FRAME_KEYS | BIT_ULL(F_TIME) | BIT_ULL(F_DEPTH) },
	{ "corrupt", corrupt, FRAME_KEYS | BIT_ULL(F_OFFSET) | BIT_ULL(F_FCS) },
	{ "storm", NULL, BIT_ULL(F_CLASS) }, /* the end says PAUSE and never ends it */
};

bool eth_fault_action(const char *name)
{
	return SPEC_ROW(actions, name);
}

/* Reading */

static bool parse_class(void *to, const char *value)
{
	u64 n;

	if (!spec_number(value, ETH_CLASSES - 1, &n))
		return false;
	*(u8 *)to = (u8)BIT((u32)n);
	return true;
}

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, spec, member, ##__VA_ARGS__)
static const struct spec_field fields[] = {
	[F_DIR] = PICK_DIR(spec, dir),
	[F_PCAP] = KEY("pcap", SPEC_TEXT, pcap),
	[F_LEN] = KEY("len", SPEC_RANGE, len, .max = ETHER_MTU_MAX),
	PICK_SPEC(F_PICK, spec, pick, seed),
	[F_TIME] = KEY("time", SPEC_TIME, time),
	[F_JITTER] = KEY("jitter", SPEC_TIME, jitter),
	[F_COPIES] = KEY("copies", SPEC_U32, copies, .max = COPIES_MAX),
	[F_DEPTH] = KEY("depth", SPEC_U32, depth, .max = 1000),
	[F_OFFSET] = KEY("offset", SPEC_U32, offset, .max = ETHER_MTU_MAX),
	[F_FCS] = KEY("fcs", SPEC_FLAG, fcs),
	[F_CLASS] = KEY("class", SPEC_OTHER, classes, .parse = parse_class, .wants = "a priority, 0 to 7"),
};

static int compile(struct eth_fault *ft, char *err, size_t err_len)
{
	pcap_t *p;
	int bad;

	if (!ft->s.pcap[0])
		return 0;
	p = pcap_open_dead(DLT_EN10MB, ETHER_MTU_MAX);
	if (!p)
		return spec_refuse(err, err_len, "out of memory");
	bad = pcap_compile(p, &ft->program, ft->s.pcap, 1, PCAP_NETMASK_UNKNOWN);
	if (bad)
		spec_refuse(err, err_len, "pcap=%.60s: %.100s", ft->s.pcap, pcap_geterr(p));
	ft->compiled = !bad;
	pcap_close(p);
	return bad ? -EINVAL : 0;
}

static int seed(struct eth_fault *ft, char *err, size_t err_len)
{
	u64 n = ft->e->faults_armed + 1;
	int rc = pick_start(&ft->s.pick, ft->s.given, F_PICK, ft->s.seed, ft->e->seed + n, &ft->rng, err, err_len);

	ft->rng.state = rng_next(&ft->rng);
	if (!rc)
		ft->e->faults_armed = n;
	return rc;
}

static int read_words(struct eth_fault *ft, const struct spec_words *w, char *err, size_t err_len)
{
	int rc;

	if (w->n < 2)
		return spec_refuse(err, err_len, "a fault is a place, an action, and keys");
	ft->action = SPEC_ROW(actions, w->word[1]);
	if (!ft->action)
		return spec_refuse(err, err_len, "%.40s: Ethernet has no such fault", w->word[1]);
	ft->end = eth_find(ft->e, w->word[0]);
	if (!ft->end)
		return spec_refuse(err, err_len, "%.80s: there is no such port", w->word[0]);
	rc = spec_words(fields, ARRAY_SIZE(fields), &ft->s, &ft->s.given, w, 2, err, err_len)
		     ?: spec_keys(fields, ARRAY_SIZE(fields), ft->action->name, ft->s.given, ft->action->allowed, 0,
				  err, err_len);
	if (rc)
		return rc;
	if (ft->action->frame == delay && !ft->s.time && !ft->s.jitter)
		return spec_refuse(err, err_len, "delay: it needs time= or jitter=");
	return compile(ft, err, err_len) ?: seed(ft, err, err_len);
}

static int attach(struct eth_fault *ft, struct eth_end *in)
{
	struct eth_tap *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fault = ft;
	t->in = in;
	t->timer.fn = on_timer;
	list_init(&t->held);
	list_add(&in->faults, &t->link);
	list_add(&ft->taps, &t->peers);
	return 0;
}

static int attach_all(struct eth_fault *ft, char *err, size_t err_len)
{
	int rc = 0;

	if (!ft->action->frame) {
		ft->s.pick.seen = ft->s.pick.hits = 1;
		eth_pause_storm(ft->end, ft->s.classes ? ft->s.classes : 0xff);
		return 0;
	}
	if (ft->s.dir != PICK_OUT)
		rc = attach(ft, ft->end);
	if (!rc && ft->s.dir != PICK_IN)
		rc = attach(ft, ft->end->peer);
	return rc ? spec_refuse(err, err_len, "out of memory") : 0;
}

struct eth_fault *eth_fault_add(struct eth *e, const char *text, char *err, size_t err_len)
{
	struct eth_fault *ft = calloc(1, sizeof(*ft));
	struct spec_words words = { .n = 0 };

	if (!ft) {
		spec_refuse(err, err_len, "out of memory");
		return NULL;
	}
	ft->e = e;
	list_init(&ft->taps);
	list_init(&ft->link);
	if (spec_split(&words, text, err, err_len) || read_words(ft, &words, err, err_len) ||
	    attach_all(ft, err, err_len))
		goto err_remove;
	list_add(&e->faults, &ft->link);
	return ft;

err_remove:
	ft->end = NULL;
	eth_fault_remove(ft);
	return NULL;
}

void eth_fault_remove(struct eth_fault *ft)
{
	if (ft->end && !ft->action->frame)
		eth_pause_storm(ft->end, 0);
	while (!list_empty(&ft->taps)) {
		struct eth_tap *t = list_first(&ft->taps, struct eth_tap, peers);

		while (!list_empty(&t->held))
			let_go(t);
		loop_timer_cancel(&t->timer);
		list_del(&t->peers);
		list_del(&t->link);
		free(t);
	}
	if (ft->compiled)
		pcap_freecode(&ft->program);
	list_del(&ft->link);
	free(ft);
}

void eth_faults_destroy(struct eth *e)
{
	while (!list_empty(&e->faults))
		eth_fault_remove(list_first(&e->faults, struct eth_fault, link));
}

const struct pick *eth_fault_pick(const struct eth_fault *ft)
{
	return &ft->s.pick;
}

u32 eth_fault_held(const struct eth_fault *ft)
{
	const struct eth_tap *t;
	u32 n = 0;

	list_for_each (t, &ft->taps, peers)
		n += t->nheld;
	return n;
}
