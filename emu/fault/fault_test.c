// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The fault engine with a target of numbered items: rejected lines, the order of eight items after each fault, and
 * begin and end of state faults. */
#include "emu/fault/fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/row.h"

/* Selected matches */

static const struct {
	struct pick p;
	const char *want; /* x: selected */
} picks[] = {
	{ { .nth = 3 }, "..x....." },
	{ { .every = 3 }, "..x..x.." },
	{ { .first = 2 }, "xx......" },
	{ { .after = 2, .first = 2 }, "..xx...." },
	{ { .after = 1, .every = 2 }, "..x.x.x." },
	{ { .every = 2, .count = 2 }, ".x.x...." },
	{ { .count = 1 }, "x......." },
	{ { .nth = 0 }, "xxxxxxxx" },
	{ { .by_chance = true, .chance = 0 }, "........" },
	{ { .by_chance = true, .chance = 0xffffffff, .first = 3 }, "xxx....." },
};

static bool pick_ok(u32 i)
{
	struct pick p = picks[i].p;
	char got[9] = "";
	u32 k;

	for (k = 0; k < 8; k++)
		got[k] = pick_next(&p) ? 'x' : '.';
	return !strcmp(got, picks[i].want) && p.seen == 8;
}

/* The same seed gives the same decisions, another seed others. */
static void chances(int n)
{
	struct pick a = { .by_chance = true, .chance = 0x40000000 }, b = a, c = a;
	u32 i, same = 0, other = 0;

	a.rng.state = b.rng.state = 7;
	c.rng.state = 8;
	for (i = 0; i < 4000; i++) {
		bool x = pick_next(&a);

		same += x == pick_next(&b);
		other += x != pick_next(&c);
	}
	row(n, "line", same == 4000 && a.digest == b.digest && !memcmp(a.log, b.log, sizeof(a.log)));
	row(n + 1, "line", other > 1000 && a.digest != c.digest);
	row(n + 2, "line", a.hits > 900 && a.hits < 1100);
}

/* The test target: items of one byte pass a point in two directions. */

enum toy_key {
	TOY_COLOUR = FAULT_OWN,
};
enum {
	TOY_QUERY = 1
};

struct toy_fault {
	struct fault ft; /* must be the first member */
	u8 colour;
};

struct item {
	u8 number, more; /* corrupt modifies the second byte */
};

static struct loop *loop;
static struct fault_set set;
static struct fault_point point;
static char order[200], told[200];
static u32 items, applied, changes;

static struct item *item_create(u8 number)
{
	struct item *it = calloc(1, sizeof(*it));

	it->number = number;
	items++;
	return it;
}

static void item_free(void *packet)
{
	items--;
	free(packet);
}

static void item_arrives(struct item *it)
{
	size_t at = strlen(order);

	snprintf(order + at, sizeof(order) - at, "%u%s", it->number, it->more ? "!" : "");
	item_free(it);
}

/* len= matches the number. */
static bool toy_match(const struct fault *ft, const void *packet)
{
	const struct item *it = packet;

	return !(ft->given & FAULT_MATCH_KEY(LEN)) ||
	       (it->number >= ft->match.len[0] && it->number <= ft->match.len[1]);
}

static void toy_forward(struct fault_hook *h, void *packet, u32 after)
{
	if (fault_pass(h->point, packet, after))
		item_arrives(packet);
}

static void toy_drop(struct fault_hook *h, void *packet)
{
	item_free(packet);
}

static void *toy_clone(struct fault_hook *h, void *packet)
{
	return item_create(((struct item *)packet)->number);
}

static u8 *toy_bytes(struct fault_hook *h, void *packet, u32 *from, u32 *len)
{
	*from = 1;
	*len = 2;
	return packet;
}

static enum fault_verdict toy_corrupted(struct fault_hook *h, void *packet)
{
	return FAULT_PASS;
}

static void toy_flow(const void *packet, u64 key[2])
{
	key[0] = ((const struct item *)packet)->number;
	key[1] = 0;
}

static const struct fault_packet_ops toy_ops = {
	.match = toy_match,
	.may_match = toy_match,
	.flow = toy_flow,
	.forward = toy_forward,
	.drop = toy_drop,
	.clone = toy_clone,
	.bytes = toy_bytes,
	.corrupted = toy_corrupted,
};

static int toy_place(struct fault *ft, const char *place, char *err, size_t err_len)
{
	return strcmp(place, "h1") ? spec_refuse(err, err_len, "%s: there is no such node", place) : 0;
}

static int toy_attach(struct fault *ft)
{
	return fault_attach(ft, &point, NULL);
}

static void toy_changed(struct fault_set *s)
{
	changes++;
}

static int paint_check(struct fault *ft, char *err, size_t err_len)
{
	if (container_of(ft, struct toy_fault, ft)->colour > 5)
		return spec_refuse(err, err_len, "colour: too bright");
	return 0;
}

static void paint_apply(struct fault *ft)
{
	applied++;
}

static void paint_undo(struct fault *ft)
{
	applied--;
}

#define KEYS (FAULT_PICK_KEYS | FAULT_MATCH_KEY(LEN))
static const struct fault_kind packet_kinds[] = {
	{ FAULT_KIND_DROP(KEYS) },
	{ FAULT_KIND_DUPLICATE(KEYS) },
	{ FAULT_KIND_DELAY(KEYS) },
	{ FAULT_KIND_REORDER, .allowed = KEYS | BIT_ULL(FAULT_TIME), .required = BIT_ULL(FAULT_DEPTH) },
	{ FAULT_KIND_CORRUPT, .allowed = KEYS | BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_SILENT) },
	{ .name = NULL },
};
static const struct fault_kind state_kinds[] = {
	{ .name = "paint",
	  .prepare = paint_check,
	  .apply = paint_apply,
	  .undo = paint_undo,
	  .allowed = KEYS | BIT_ULL(FAULT_FOR) | BIT_ULL(TOY_COLOUR) },
	{ .name = "query", .at = TOY_QUERY, .allowed = FAULT_PICK_KEYS | BIT_ULL(FAULT_FOR) },
	{ .name = "both", .at = TOY_QUERY, .apply = paint_apply, .undo = paint_undo, .allowed = FAULT_PICK_KEYS },
	{ .name = NULL },
};
static const struct fault_kind *const kinds[] = { packet_kinds, state_kinds, NULL };
static const struct spec_field keys[] = {
	[TOY_COLOUR - FAULT_OWN] = SPEC_FIELD("colour", SPEC_U8, toy_fault, colour),
};
static const struct fault_target toy = {
	.of = "of toys ",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct toy_fault),
	.trigger = KEYS,
	.mtu = 100,
	.place = toy_place,
	.attach = toy_attach,
	.changed = toy_changed,
	.packets = &toy_ops,
};
/* The same without points: pick keys apply to fault_at(). */
static struct fault_target queried;

static void on_notify(void *ctx, const struct fault *ft, const char *what)
{
	size_t at = strlen(told);

	snprintf(told + at, sizeof(told) - at, "%s%s", at ? " " : "", what);
}

static void start(void)
{
	loop = loop_create_virtual();
	queried = toy;
	queried.trigger = 0;
	fault_set_init(&set, &toy, loop, NULL, 1);
	set.notify = on_notify;
	order[0] = told[0] = 0;
	changes = 0;
}

static void stop(void)
{
	fault_set_fini(&set);
	loop_destroy(loop);
}

static void run(u64 ns)
{
	loop_run_idle(loop, loop_now(loop).ns + ns);
}

static struct fault *arm(const char *text)
{
	char err[300] = "";
	struct fault *ft = fault_add(&set, text, err, sizeof(err));

	if (!ft)
		printf("%s: %s\n", text, err);
	return ft;
}

static void send(u8 number)
{
	struct item *it = item_create(number);

	if (fault_pass(&point, it, 0))
		item_arrives(it);
}

static const struct {
	const char *line, *err;
} refused[] = {
	{ "", ": a fault is a place, an action, and keys" },
	{ "h1", "h1: a fault is a place, an action, and keys" },
	{ "h1 burn",
	  "burn: there is no such fault; of toys there are drop duplicate delay reorder corrupt paint query both" },
	{ "h2 drop", "h2: there is no such node" },
	{ "h1 drop psn=1", "psn=1: there is no \"psn\"" }, /* a key of the engine that the target does not have */
	{ "h1 drop =", "=: there is no \"\"" },
	{ "h1 drop colour=1", "colour=1: there is no \"colour\"; there are: len= nth=" },
	{ "h1 paint time=1s", "time=1s: there is no \"time\"; there are:" },
	{ "h1 paint colour=6", "colour: too bright" },
	{ "h1 drop len=101", "len=101: len takes a number or a range such as 5-9 up to 100" },
	{ "h1 drop nth=0", "nth=0: it would never fire" },
	{ "h1 drop nth=3 every=2", "every: it contradicts nth" },
	{ "h1 drop prob=0", "prob=0: it would never fire" },
	{ "h1 drop prob=2", "prob=2: prob takes a chance" },
	{ "h1 drop nth=1 nth=2", "nth=2: duplicate nth" },
	{ "h1 duplicate copies=17", "copies=17: copies takes a number up to 16" },
	{ "h1 delay", "delay: it needs time=, jitter= or both" },
	{ "h1 delay time=5", "time=5: time takes a time such as" },
	{ "h1 reorder", "reorder: it needs depth=" },
	{ "h1 drop 'len=5", "len=5: a quote does not end" },
};

static void test_refused(void)
{
	char err[300];
	u32 i;

	start();
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		bool ok;

		err[0] = 0;
		ok = !fault_add(&set, refused[i].line, err, sizeof(err)) &&
		     !strncmp(err, refused[i].err, strlen(refused[i].err));
		if (!ok)
			printf("%s: %s\n", refused[i].line, err);
		row(300 + (int)i, refused[i].line,
		    ok && fault_set_empty(&set) && !point.n && !changes && set.seed == 1);
	}
	stop();
}

/* Items 1 to 8 are passed at one time. */
static const struct {
	const char *fault, *fault2, *come; /* order of items received immediately */
	const char *after;                 /* all items received after 20 ms; NULL: the same */
	u32 hits, held;
} packets[] = {
	{ "h1 drop", NULL, "", NULL, 8, 0 },
	{ "h1 drop len=4-6 count=2", NULL, "123678", NULL, 2, 0 },
	{ "h1 drop len=4-6 after=1", NULL, "123478", NULL, 2, 0 },
	{ "h1 duplicate nth=2", NULL, "122345678", NULL, 1, 0 },
	{ "h1 duplicate nth=8 copies=3", NULL, "12345678888", NULL, 1, 0 },
	{ "h1 delay time=10ms len=1-2", NULL, "345678", "34567812", 2, 2 },
	{ "h1 delay jitter=10ms", NULL, "", "12345678", 8, 8 },
	{ "h1 delay time=30ms nth=1", NULL, "2345678", NULL, 1, 1 },
	{ "h1 reorder nth=2 depth=3", NULL, "13452678", NULL, 1, 0 },
	{ "h1 reorder nth=7 depth=3", NULL, "1234568", "12345687", 1, 1 },
	{ "h1 reorder first=2 depth=2 time=1s", NULL, "34125678", NULL, 2, 0 },
	{ "h1 corrupt nth=4", NULL, "1234!5678", NULL, 1, 0 },
	{ "h1 corrupt nth=4 offset=2", NULL, "12345678", NULL, 1, 0 }, /* beyond the item's bytes */
	{ "h1 drop len=2", "h1 duplicate len=2-3", "13345678", NULL, 1, 0 },
	{ "h1 duplicate len=2", "h1 drop len=2 nth=2", "12345678", NULL, 1, 0 },
	{ "h1 delay time=5ms", "h1 drop len=4", "", "1235678", 8, 8 },
};

static void test_packets(void)
{
	u32 i;
	u8 k;

	for (i = 0; i < ARRAY_SIZE(packets); i++) {
		struct fault *a, *b;
		bool ok;

		start();
		a = arm(packets[i].fault);
		b = packets[i].fault2 ? arm(packets[i].fault2) : NULL;
		for (k = 1; k <= 8; k++)
			send(k);
		ok = !strcmp(order, packets[i].come) && fault_held(a) == packets[i].held;
		run(20 * NSEC_PER_MSEC);
		ok = ok && !strcmp(order, packets[i].after ? packets[i].after : packets[i].come) &&
		     a->pick.hits == packets[i].hits;
		if (!ok)
			printf("%s: %s\n", packets[i].fault, order);
		fault_remove(a); /* releases its held items */
		if (b)
			fault_remove(b);
		row(400 + (int)i, packets[i].fault, ok && !items && !point.n && !point.hook);
		stop();
	}
}

/* More faults than a flow's cache entry has room for. */
static void test_many(void)
{
	struct fault *ft[20];
	u32 i;

	start();
	for (i = 0; i < ARRAY_SIZE(ft); i++)
		ft[i] = arm(i == 19 ? "h1 drop len=3" : "h1 duplicate copies=1 nth=9");
	for (i = 1; i < 5; i++)
		send((u8)i);
	row(500, "the last of twenty acts", !strcmp(order, "124") && ft[19]->pick.hits == 1 && ft[0]->pick.seen == 4);
	row(501, "each has its seed", set.seed == 21);
	for (i = 0; i < ARRAY_SIZE(ft); i++)
		fault_remove(ft[i]);
	stop();
}

static void test_state(void)
{
	struct fault *ft;

	start();
	ft = arm("h1 paint colour=3");
	row(510, "applied when it is armed, and counted", applied == 1 && ft->applied && ft->pick.hits == 1);
	row(511, "which is notified", !strcmp(told, "begins") && changes == 1);
	fault_remove(ft);
	row(512, "and undone when it is removed", !applied && changes == 2);
	ft = arm("h1 paint for=10ms");
	run(20 * NSEC_PER_MSEC);
	row(513, "it ends after for=", !applied && !ft->applied && !strcmp(told, "begins begins ends"));
	fault_remove(ft);
	row(514, "once", !applied);
	ft = arm("h1 paint len=2 for=10ms");
	row(515, "with keys of packets it waits", !applied && !ft->applied);
	send(1);
	run(0);
	row(516, "for one that matches", !applied);
	send(2);
	row(517, "whose path it does not change", !applied && !strcmp(order, "12"));
	run(0);
	row(518, "but after it", applied == 1 && ft->pick.hits == 1);
	run(20 * NSEC_PER_MSEC);
	send(2);
	run(0);
	row(519, "and again", applied == 1 && ft->pick.hits == 2);
	fault_remove(ft);
	row(520, "until it is removed", !applied);
	stop();
}

static void test_queried(void)
{
	struct fault *ft;

	start();
	set.target = &queried;
	ft = arm("h1 query nth=2");
	row(530, "fault_at() picks",
	    !fault_at(&set, TOY_QUERY, NULL, NULL) && fault_at(&set, TOY_QUERY, NULL, NULL) == ft &&
		    !fault_at(&set, TOY_QUERY + 1, NULL, NULL) && ft->pick.seen == 2);
	fault_remove(ft);
	ft = arm("h1 query for=1ms");
	row(531, "arming counts nothing", !ft->pick.seen && fault_at(&set, FAULT_AT_ANY, NULL, NULL) == ft);
	run(2 * NSEC_PER_MSEC);
	row(532, "it ends after for=", !fault_at(&set, TOY_QUERY, NULL, NULL) && ft->pick.seen == 1);
	fault_remove(ft);
	ft = arm("h1 both");
	row(533, "a kind that does both acts at once", applied == 1 && ft->pick.hits == 1);
	fault_remove(ft);
	ft = arm("h1 both nth=1");
	row(534, "but with a choice only where it is queried",
	    !applied && !ft->pick.seen && fault_at(&set, TOY_QUERY, NULL, NULL) == ft);
	fault_remove(ft);
	row(535, "then nothing is reverted", !applied);
	stop();
}

int main(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(picks); i++)
		row(100 + (int)i, "the picked one", pick_ok(i));
	chances(200);
	test_refused();
	test_packets();
	test_many();
	test_state();
	test_queried();
	return rows_end();
}
