// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life cycle of a fault: parsing and checking its line, arming, applying, ending and removal. */
#include "emu/fault/fault.h"

#include <stdlib.h>

#define COPIES_MAX 16
#define DEPTH_MAX  1000

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, fault, member, ##__VA_ARGS__)
static const struct spec_field common[] = {
	[FAULT_DIR] = PICK_DIR(fault, dir),
	WIRE_MATCH_SPEC(FAULT_MATCH, fault, match),
	PICK_SPEC(FAULT_PICK, fault, pick, seed),
	[FAULT_TIME] = KEY("time", SPEC_TIME, time),
	[FAULT_JITTER] = KEY("jitter", SPEC_TIME, jitter),
	[FAULT_COPIES] = KEY("copies", SPEC_U32, copies, .max = COPIES_MAX),
	[FAULT_DEPTH] = KEY("depth", SPEC_U32, depth, .max = DEPTH_MAX),
	[FAULT_OFFSET] = KEY("offset", SPEC_U32, offset),
	[FAULT_SILENT] = KEY("silent", SPEC_FLAG, silent),
	[FAULT_BYTES] = KEY("bytes", SPEC_U32, bytes),
	[FAULT_FOR] = KEY("for", SPEC_TIME, lasts),
	[FAULT_RATE] = KEY("bps", SPEC_RATE, rate),
	[FAULT_UP] = KEY("up", SPEC_TIME, up),
	[FAULT_DOWN] = KEY("down", SPEC_TIME, down),
	[FAULT_TIMES] = KEY("times", SPEC_U32, times),
	[FAULT_TO] =
		KEY("to", SPEC_OTHER, to, .parse = fault_parse_bytes, .wants = "bytes in hexadecimal, such as 00ff"),
	[FAULT_STATUS] = KEY("status", SPEC_U16, status, .max = 0x7fff),
};
static_assert(ARRAY_SIZE(common) == FAULT_OWN, "one row for each key");
#define BYTE_KEYS (FAULT_MATCH_KEY(LEN) | BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_BYTES))

/* Copies the table of keys; only those that the kind allows keep their names. Returns how many. */
static u32 kind_keys(const struct fault_target *t, const struct fault_kind *k, struct spec_field keys[64])
{
	u64 taken = t->any | k->allowed | k->required;
	u32 i;

	spec_take(keys, common, FAULT_OWN, taken);
	spec_take(&keys[FAULT_OWN], t->keys, t->nkeys, taken >> FAULT_OWN);
	for (i = 0; i < FAULT_OWN; i++)
		if (BYTE_KEYS & BIT_ULL(i))
			keys[i].max = t->mtu;
	return FAULT_OWN + t->nkeys;
}

const struct fault_kind *fault_kind(const struct fault_target *t, const char *name)
{
	const struct fault_kind *const *table, *k = NULL;

	for (table = t->kinds; *table && !k; table++)
		k = spec_row(*table, ~0u, sizeof(*k), name);
	return k;
}

void fault_names(const struct fault_target *t, char *text, size_t len)
{
	const struct fault_kind *const *table;
	size_t at = 0;

	for (table = t->kinds; *table; table++)
		at = spec_names(text, at, len, *table, ~0u, sizeof(**table));
}

static int fault_parse(struct fault *ft, const struct spec_words *w, char *err, size_t err_len)
{
	const struct fault_target *t = ft->set->target;
	struct spec_field keys[64];
	char names[256];
	int rc;
	u32 n;

	if (w->n < 2)
		return spec_refuse(err, err_len, "%.40s: a fault is a place, an action, and keys",
				   w->n ? w->word[0] : "");
	ft->kind = fault_kind(t, w->word[1]);
	if (!ft->kind) {
		fault_names(t, names, sizeof(names));
		return spec_refuse(err, err_len, "%.40s: there is no such fault; %sthere are %s", w->word[1], t->of,
				   names);
	}
	n = kind_keys(t, ft->kind, keys);
	rc = spec_words(keys, n, ft, &ft->given, w, 2, err, err_len);
	if (!rc && t->place)
		rc = t->place(ft, w->word[0], err, err_len);
	rc = rc ?: spec_keys(keys, n, ft->kind->name, ft->given, ft->kind->required, err, err_len);
	rc = rc ?: wire_match_start(&ft->match, ft->given, FAULT_MATCH, t->ethernet, err, err_len);
	rc = rc ?: pick_start(&ft->pick, ft->given, FAULT_PICK, ft->seed, ft->set->seed, &ft->rng, err, err_len);
	ft->rng.state = rng_next(&ft->rng);
	return rc || !ft->kind->prepare ? rc : ft->kind->prepare(ft, err, err_len);
}

/* Applying */

static void fault_notify(const struct fault *ft, const char *what)
{
	if (ft->set->notify)
		ft->set->notify(ft->set->notify_ctx, ft, what);
}

/* Whether a kind with .at and .apply acts in the caller of fault_at(), because the fault has pick keys. */
static bool fault_is_queried(const struct fault *ft)
{
	return ft->kind->at && ft->given & FAULT_PICK_KEYS;
}

static void fault_apply(struct fault *ft)
{
	const struct fault_kind *k = ft->kind;

	if (ft->applied)
		return;
	ft->applied = true;
	fault_notify(ft, "begins");
	if (k->apply && !fault_is_queried(ft))
		k->apply(ft);
	if (ft->lasts)
		loop_timer_set(ft->set->loop, &ft->timer, loop_now(ft->set->loop).ns + ft->lasts);
}

static void fault_undo(struct fault *ft)
{
	bool applied = ft->applied;

	ft->applied = false;
	if (applied && ft->kind->undo && !(ft->kind->apply && fault_is_queried(ft)))
		ft->kind->undo(ft);
}

static void fault_on_timer(struct loop_timer *timer, struct now now)
{
	struct fault *ft = container_of(timer, struct fault, timer);

	if (ft->kind->step)
		ft->kind->step(ft);
	else
		fault_end(ft);
}

void fault_end(struct fault *ft)
{
	loop_timer_cancel(&ft->timer);
	fault_notify(ft, "ends");
	fault_undo(ft);
}

/* Applies state faults that packets have triggered, outside the packet path. */
static void fault_set_run(struct loop_task *t, struct now now)
{
	struct fault_set *set = container_of(t, struct fault_set, task);

	while (!list_empty(&set->due)) {
		struct fault *ft = list_first(&set->due, struct fault, due);

		list_del(&ft->due);
		fault_apply(ft);
	}
}

void fault_match(struct fault *ft)
{
	if (!pick_next(&ft->pick) || !list_empty(&ft->due))
		return;
	list_add(&ft->set->due, &ft->due);
	loop_task_queue(ft->set->loop, &ft->set->task);
}

void fault_trigger(struct fault_set *set, bool (*concerns)(const struct fault *ft, const void *ctx), const void *ctx)
{
	struct fault *ft;

	list_for_each (ft, &set->faults, link)
		if (fault_sees_packets(ft) && concerns(ft, ctx))
			fault_match(ft);
}

struct fault *fault_at(struct fault_set *set, u8 at, bool (*concerns)(const struct fault *ft, const void *ctx),
		       const void *ctx)
{
	struct fault *ft;

	list_for_each (ft, &set->faults, link)
		if (ft->applied && ft->kind->at && (!at || ft->kind->at == at) && (!concerns || concerns(ft, ctx)) &&
		    pick_next(&ft->pick))
			return ft;
	return NULL;
}

/* Arming and removal */

void fault_set_init(struct fault_set *set, const struct fault_target *target, struct loop *loop, void *owner, u64 seed)
{
	*set = (struct fault_set){ .target = target, .loop = loop, .owner = owner, .seed = seed };
	list_init(&set->faults);
	list_init(&set->due);
	loop_task_init(&set->task, fault_set_run);
}

static void fault_destroy(struct fault *ft)
{
	fault_detach(ft);
	loop_timer_cancel(&ft->timer);
	list_del(&ft->link);
	list_del(&ft->due);
	wire_match_free(&ft->match);
	free(ft);
}

void fault_set_fini(struct fault_set *set)
{
	while (!list_empty(&set->faults))
		fault_destroy(list_first(&set->faults, struct fault, link));
	loop_task_cancel(&set->task);
}

struct fault *fault_add(struct fault_set *set, const char *text, char *err, size_t err_len)
{
	const struct fault_target *t = set->target;
	struct fault *ft = calloc(1, t->size);
	struct spec_words words = { .n = 0 };

	if (!ft) {
		spec_refuse(err, err_len, "out of memory");
		return NULL;
	}
	ft->set = set;
	ft->number = set->armed + 1;
	ft->timer.fn = fault_on_timer;
	list_init(&ft->link);
	list_init(&ft->due);
	list_init(&ft->hooks);
	if (spec_split(&words, text, err, err_len) || fault_parse(ft, &words, err, err_len))
		goto err_destroy;
	if (fault_sees_packets(ft) && t->attach && t->attach(ft)) {
		spec_refuse(err, err_len, "out of memory");
		goto err_destroy;
	}
	set->seed++;
	set->armed = ft->number;
	list_add(&set->faults, &ft->link);
	if (t->changed)
		t->changed(set);
	if (!fault_sees_packets(ft)) {
		if (!ft->kind->at || (ft->kind->apply && !fault_is_queried(ft)))
			pick_next(&ft->pick);
		fault_apply(ft);
	}
	return ft;

err_destroy:
	fault_destroy(ft);
	return NULL;
}

void fault_remove(struct fault *ft)
{
	struct fault_set *set = ft->set;

	fault_undo(ft);
	fault_destroy(ft);
	if (set->target->changed)
		set->target->changed(set);
}

u32 fault_held(const struct fault *ft)
{
	const struct fault_hook *h;
	u32 n = 0;

	list_for_each (h, &ft->hooks, link)
		n += h->nheld;
	return n;
}
