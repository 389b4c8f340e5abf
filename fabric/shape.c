// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Topologies in the short form, a shape and options: parser. */
#include <stdlib.h>

#include "emu/wire/smp.h"
#include "fabric/build.h"

#define FIRST_GUIDS 0x100000ull /* GUIDs per fabric: "first" keeps those of several fabrics apart */
#define FIRST_MAX   4095

enum shape {
	SHAPE_NONE,
	SHAPE_LEAFS,
	SHAPE_FATTREE,
	SHAPE_RING,
	SHAPE_RAILS,
	SHAPE_DRAGONFLY
};

struct shape_args {
	enum shape shape;
	u32 leafs, spines, hosts, k, levels, ring, ports, trunks, first, rails, units, groups, switches, globals;
	u32 line;
	u32 used[20]; /* line of each word of numbers[] */
};

static int shape_add_named(struct fabric_build *b, u8 type, const char *name, u32 nports, u32 *node)
{
	static const u64 base[] = {
		[NODE_TYPE_CA] = 0x0002c90300000000ull, [NODE_TYPE_SWITCH] = 0x0002c90400000000ull
	};
	s64 n = fabric_build_node(b, type, NULL, nports);
	int err;

	if (n < 0)
		return (int)n;
	*node = (u32)n;
	err = fabric_build_name(b, *node, name);
	return err ? err
		   : fabric_build_guid(b, *node, base[type] + (u64)b->first * FIRST_GUIDS + 0x10ull * (*node + 1));
}

static int shape_add(struct fabric_build *b, u8 type, const char *stem, u32 num, u32 nports, u32 *node)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", stem, num + b->first);
	return shape_add_named(b, type, name, nports, node);
}

static int add_hosts(struct fabric_build *b, const struct shape_args *a, u32 sw, u32 count, u32 *nhosts)
{
	u32 i, p, h;
	int err;

	for (i = 0; i < count; i++) {
		err = shape_add(b, NODE_TYPE_CA, "h", ++*nhosts, a->ports, &h);
		for (p = 1; !err && p <= a->ports; p++)
			err = fabric_build_link(b, h, p, sw, i * a->ports + p);
		if (err)
			return err;
	}
	return 0;
}

/* Each leaf has its hosts on its first ports and then one port to each spine. */
static int build_leafs(struct fabric_build *b, const struct shape_args *a)
{
	u32 i, j, t, down = a->hosts * a->ports, up = a->spines * a->trunks, nhosts = 0, leaf, spine;
	u32 first = b->t->nnodes;
	int err = 0;

	if (!a->leafs || !a->hosts || (a->leafs > 1 && !a->spines))
		return fabric_build_error(b, "leafs, spines and hosts (of each leaf) are at least 1");
	for (i = 0; i < a->leafs && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "leaf", i + 1, down + up, &leaf);
	for (i = 0; i < a->spines && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "spine", i + 1, a->leafs * a->trunks, &spine);
	for (i = 0; i < a->leafs && !err; i++)
		err = add_hosts(b, a, first + i, a->hosts, &nhosts);
	for (i = 0; i < a->leafs; i++)
		for (j = 0; j < a->spines; j++)
			for (t = 0; t < a->trunks && !err; t++)
				err = fabric_build_link(b, first + i, down + j * a->trunks + t + 1,
							first + a->leafs + j, i * a->trunks + t + 1);
	return err;
}

/* Three levels: k pods of k/2 leafs and k/2 spines, (k/2)^2 cores. The first k/2 ports of a switch go down. */
static int build_fattree3(struct fabric_build *b, const struct shape_args *a)
{
	u32 k = a->k, half = k / 2, leaf0 = b->t->nnodes, spine0 = leaf0 + k * half, core0 = spine0 + k * half;
	u32 i, j, sw, nhosts = 0;
	int err = 0;

	for (i = 0; i < k * half && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "leaf", i + 1, k, &sw);
	for (i = 0; i < k * half && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "spine", i + 1, k, &sw);
	for (i = 0; i < half * half && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "core", i + 1, k, &sw);
	for (i = 0; i < k * half && !err; i++)
		err = add_hosts(b, a, leaf0 + i, half, &nhosts);
	for (i = 0; i < k * half; i++)
		for (j = 0; j < half && !err; j++) {
			err = fabric_build_link(b, leaf0 + i, half + j + 1, spine0 + i / half * half + j, i % half + 1);
			if (!err)
				err = fabric_build_link(b, spine0 + i, half + j + 1, core0 + i % half * half + j,
							i / half + 1);
		}
	return err;
}

static int build_fattree(struct fabric_build *b, const struct shape_args *a)
{
	struct shape_args two = *a;

	if (a->k < 2 || a->k % 2 || a->k > FABRIC_SWITCH_PORTS_MAX || (a->levels != 2 && a->levels != 3) ||
	    a->ports != 1)
		return fabric_build_error(b,
					  "a fat tree has an even k from 2 to 254, 2 or 3 levels, hosts of one port");
	if (a->levels == 3 && a->trunks != 1)
		return fabric_build_error(b, "links: a fat tree of 3 levels has one between two switches");
	if (a->levels == 3)
		return build_fattree3(b, a);
	two.leafs = a->k;
	two.spines = two.hosts = a->k / 2;
	return build_leafs(b, &two);
}

static int build_ring(struct fabric_build *b, const struct shape_args *a)
{
	u32 hosts = a->hosts ? a->hosts : 1, down = hosts * a->ports, first = b->t->nnodes, i, sw, nhosts = 0;
	int err = 0;

	if (a->ring < 3)
		return fabric_build_error(b, "a ring has at least 3 switches");
	for (i = 0; i < a->ring && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "sw", i + 1, down + 2, &sw);
	for (i = 0; i < a->ring && !err; i++)
		err = add_hosts(b, a, first + i, hosts, &nhosts);
	for (i = 0; i < a->ring && !err; i++)
		err = fabric_build_link(b, first + i, down + 2, first + (i + 1) % a->ring, down + 1);
	return err;
}

/*
 * Rails: each unit has one leaf for each rail, to which port r of each of its hosts is cabled; the leafs of all units
 * share the spines. Leaf number: (unit - 1) * rails + rail.
 */
static int build_rails(struct fabric_build *b, const struct shape_args *a)
{
	u32 up = a->spines * a->trunks, leafs = a->units * a->rails, first = b->t->nnodes, i, j, t, h;
	int err = 0;

	if (!a->rails || !a->hosts || !a->units || a->ports != 1 || (leafs > 1 && !a->spines))
		return fabric_build_error(
			b, "rails, hosts (of each unit), units and spines are at least 1, without ports");
	for (i = 0; i < leafs && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "leaf", i + 1, a->hosts + up, &h);
	for (i = 0; i < a->spines && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "spine", i + 1, leafs * a->trunks, &h);
	for (i = 0; i < a->units * a->hosts && !err; i++) {
		err = shape_add(b, NODE_TYPE_CA, "h", i + 1, a->rails, &h);
		for (j = 0; j < a->rails && !err; j++)
			err = fabric_build_link(b, h, j + 1, first + i / a->hosts * a->rails + j, i % a->hosts + 1);
	}
	for (i = 0; i < leafs; i++)
		for (j = 0; j < a->spines; j++)
			for (t = 0; t < a->trunks && !err; t++)
				err = fabric_build_link(b, first + i, a->hosts + j * a->trunks + t + 1,
							first + leafs + j, i * a->trunks + t + 1);
	return err;
}

/*
 * Dragonfly: the switches of a group are cabled all to all, and each has the same number of global links to other
 * groups. Link l of a group (at its switch l / globals) leads to the group 1 + l % (groups - 1) after it, so that all
 * pairs have the same number.
 */
static int build_dragonfly(struct fabric_build *b, const struct shape_args *a)
{
	u32 down = a->hosts * a->ports, local = a->switches - 1, nhosts = 0, first = b->t->nnodes, sw, i, j, k, pairs;
	u32 total = a->switches * a->globals, n = a->groups * a->switches;
	int err = 0;

	if (a->groups < 2 || !a->switches || !a->hosts || total < a->groups - 1)
		return fabric_build_error(
			b, "a dragonfly has at least 2 groups, and switches times globals are at least groups - 1");
	pairs = total / (a->groups - 1);
	for (i = 0; i < n && !err; i++)
		err = shape_add(b, NODE_TYPE_SWITCH, "sw", i + 1, down + local + a->globals, &sw);
	for (i = 0; i < n && !err; i++)
		err = add_hosts(b, a, first + i, a->hosts, &nhosts);
	for (i = 0; i < n; i++) /* port down + 1 + j: to the jth other switch of the group */
		for (j = i + 1; j < (i / a->switches + 1) * a->switches && !err; j++)
			err = fabric_build_link(b, first + i, down + j % a->switches, first + j,
						down + 1 + i % a->switches);
	for (i = 0; i < a->groups; i++)
		for (j = i + 1; j < a->groups; j++)
			for (k = 0; k < pairs && !err; k++) {
				u32 l = j - i - 1 + k * (a->groups - 1);
				u32 m = a->groups - (j - i) - 1 + k * (a->groups - 1);

				err = fabric_build_link(
					b, first + i * a->switches + l / a->globals, down + local + l % a->globals + 1,
					first + j * a->switches + m / a->globals, down + local + m % a->globals + 1);
			}
	return err;
}

/* Words with a number, "word 4" or "word=4", and the shapes that accept them. */
#define S(shape) BIT(SHAPE_##shape)
static const struct {
	const char *word;
	u16 offset;
	u8 shape; /* shape that the word alone selects; SHAPE_NONE */
	u8 of;
	u32 most;
} numbers[] = {
	{ "leafs", offsetof(struct shape_args, leafs), SHAPE_LEAFS, S(LEAFS), 4096 },
	{ "leaves", offsetof(struct shape_args, leafs), SHAPE_LEAFS, S(LEAFS), 4096 },
	{ "leaf", offsetof(struct shape_args, leafs), SHAPE_LEAFS, S(LEAFS), 4096 },
	{ "spines", offsetof(struct shape_args, spines), SHAPE_NONE, S(LEAFS) | S(RAILS), 254 },
	{ "spine", offsetof(struct shape_args, spines), SHAPE_NONE, S(LEAFS) | S(RAILS), 254 },
	{ "hosts", offsetof(struct shape_args, hosts), SHAPE_NONE, S(LEAFS) | S(RING) | S(RAILS) | S(DRAGONFLY), 254 },
	{ "links", offsetof(struct shape_args, trunks), SHAPE_NONE, S(LEAFS) | S(RAILS) | S(FATTREE), 254 },
	{ "k", offsetof(struct shape_args, k), SHAPE_FATTREE, S(FATTREE), 254 },
	{ "levels", offsetof(struct shape_args, levels), SHAPE_FATTREE, S(FATTREE), 3 },
	{ "ring", offsetof(struct shape_args, ring), SHAPE_RING, S(RING), 4096 },
	{ "first", offsetof(struct shape_args, first), SHAPE_NONE, 0xff, FIRST_MAX },
	{ "ports", offsetof(struct shape_args, ports), SHAPE_NONE, 0xff & ~S(NONE), FABRIC_CA_PORTS_MAX },
	{ "rails", offsetof(struct shape_args, rails), SHAPE_RAILS, S(RAILS), FABRIC_CA_PORTS_MAX },
	{ "units", offsetof(struct shape_args, units), SHAPE_NONE, S(RAILS), 254 },
	{ "groups", offsetof(struct shape_args, groups), SHAPE_DRAGONFLY, S(DRAGONFLY), 254 },
	{ "switches", offsetof(struct shape_args, switches), SHAPE_NONE, S(DRAGONFLY), 128 },
	{ "globals", offsetof(struct shape_args, globals), SHAPE_NONE, S(DRAGONFLY), 128 },
};
static_assert(ARRAY_SIZE(numbers) <= ARRAY_SIZE(((struct shape_args *)0)->used), "a line for each word");
#undef S

/* Words without a number that select a shape. */
static const struct {
	const char *word;
	enum shape shape;
} shapes[] = { { "fattree", SHAPE_FATTREE }, { "dragonfly", SHAPE_DRAGONFLY } };

static int shape_choose(struct fabric_build *b, struct shape_args *a, const char *word, enum shape shape)
{
	if (a->shape && a->shape != shape)
		return fabric_build_error(b, "\"%s\" does not belong to the shape of line %u", word, a->line);
	a->shape = shape;
	a->line = b->line;
	return 0;
}

static int shape_number(struct fabric_build *b, struct shape_args *a, u32 i, const char *val)
{
	char *end;
	unsigned long n = strtoul(val, &end, 10);

	if (end == val || *end || n > numbers[i].most)
		return fabric_build_error(b, "%s is a number up to %u, not \"%.40s\"", numbers[i].word, numbers[i].most,
					  val);
	if (a->used[i])
		return fabric_build_error(b, "\"%s\" is given twice (line %u)", numbers[i].word, a->used[i]);
	a->used[i] = b->line;
	memcpy((u8 *)a + numbers[i].offset, &(u32){ (u32)n }, sizeof(u32));
	return numbers[i].shape ? shape_choose(b, a, numbers[i].word, numbers[i].shape) : 0;
}

/* Rejects words of another shape than the selected one. */
static int shape_check(struct fabric_build *b, const struct shape_args *a)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!a->used[i] || numbers[i].of & BIT(a->shape))
			continue;
		b->line = a->used[i];
		if (!a->shape)
			return fabric_build_error(b, "\"%s\" belongs to a shape, and there is none", numbers[i].word);
		return fabric_build_error(b, "\"%s\" does not belong to the shape of line %u", numbers[i].word,
					  a->line);
	}
	return 0;
}

static int shape_keyword(struct fabric_build *b, struct shape_args *a, struct fabric_line *l, char *word)
{
	char val[256], *eq = strchr(word, '=');
	u32 i;

	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		if (!strcmp(word, shapes[i].word))
			return shape_choose(b, a, word, shapes[i].shape);
	if (eq) {
		snprintf(val, sizeof(val), "%s", eq + 1);
		*eq = 0;
	}
	if (eq ? !eq[1] : !fabric_line_word(l, val, sizeof(val)))
		return fabric_build_error(b, "\"%.40s\" needs a value, or is not known", word);
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(word, numbers[i].word))
			return shape_number(b, a, i, val);
	return fabric_option_set(b, word, val);
}

/* Words whose line is handled in the second pass, when the nodes of the shape exist. */
static bool is_host_line(const char *word)
{
	static const char *const words[] = { "ip", "host", "ethernet", "switch", "cable", "disable", "trunk", "shard" };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

#define HOST_LINES                                                                                                    \
	"expected host NAME ip ADDRESS, host NAME ports N, host NAME roce|iwarp ADDRESS, or host NAME ether|nic|tap " \
	"SWITCH"

/* A node that is connected by cable lines: "switch NAME PORTS", "host NAME ports PORTS". */
static int node_line(struct fabric_build *b, u8 type, const char *name, struct fabric_line *l)
{
	char word[16] = "", *end;
	unsigned long n;
	u32 node;

	if (!fabric_line_word(l, word, sizeof(word)) || word[0] == '#')
		return fabric_build_error(b, "the number of ports of \"%.60s\" is missing", name);
	n = strtoul(word, &end, 10);
	if (*end || n > FABRIC_SWITCH_PORTS_MAX)
		return fabric_build_error(b, "\"%.40s\" is not a number of ports", word);
	if (fabric_line_word(l, word, sizeof(word)) && word[0] != '#')
		return fabric_build_error(b, "\"%.40s\" behind the number of ports is not known", word);
	return shape_add_named(b, type, name, (u32)n, &node);
}

static int host_line(struct fabric_build *b, struct fabric_line l, const char *word)
{
	char name[FABRIC_NAME_MAX + 8], what[8], text[400];
	struct fabric_line ip;
	int n;

	if (!strcmp(word, "ip"))
		return fabric_build_ip(b, &l);
	if (!strcmp(word, "ethernet"))
		return fabric_build_ethernet(b, &l);
	if (!strcmp(word, "trunk"))
		return fabric_build_trunk(b, &l);
	if (!strcmp(word, "shard"))
		return fabric_build_shard(b, &l);
	if (!strcmp(word, "cable"))
		return fabric_option_cable(b, &l);
	if (!strcmp(word, "disable"))
		return fabric_option_disable(b, &l);
	if (!strcmp(word, "switch"))
		return fabric_line_word(&l, name, sizeof(name)) && name[0] != '#'
			       ? node_line(b, NODE_TYPE_SWITCH, name, &l)
			       : fabric_build_error(b, "expected switch NAME PORTS");
	if (!fabric_line_word(&l, name, sizeof(name)) || !fabric_line_word(&l, what, sizeof(what)))
		return fabric_build_error(b, HOST_LINES);
	if (!strcmp(what, "ports"))
		return node_line(b, NODE_TYPE_CA, name, &l);
	if (!strcmp(what, "roce") || !strcmp(what, "iwarp"))
		return fabric_build_bound(b, name, what, &l);
	if (!strcmp(what, "ether") || !strcmp(what, "nic") || !strcmp(what, "tap"))
		return fabric_build_station(b, name, what, &l);
	if (strcmp(what, "ip"))
		return fabric_build_error(b, HOST_LINES);
	n = snprintf(text, sizeof(text), "\"%s\" %.*s", name, (int)min(l.end - l.p, (ptrdiff_t)300), l.p);
	ip = (struct fabric_line){ text, text + n };
	return fabric_build_ip(b, &ip);
}

static int shape_pass(struct fabric_build *b, struct shape_args *a, const char *text, size_t len, bool hosts)
{
	const char *p = text, *end = text + len;
	struct fabric_line l;
	char word[256];
	int err = 0;

	for (b->line = 1; !err && fabric_line_next(&p, end, &l); b->line++)
		while (!err && fabric_line_word(&l, word, sizeof(word)) && word[0] != '#') {
			bool host = is_host_line(word);

			if (host && hosts)
				err = host_line(b, l, word);
			else if (!host && !hosts)
				err = shape_keyword(b, a, &l, word);
			if (host)
				break;
		}
	return err;
}

int fabric_shape_parse(struct fabric_build *b, const char *text, size_t len)
{
	static int (*const build[])(struct fabric_build * b, const struct shape_args *a) = {
		[SHAPE_LEAFS] = build_leafs, [SHAPE_FATTREE] = build_fattree,     [SHAPE_RING] = build_ring,
		[SHAPE_RAILS] = build_rails, [SHAPE_DRAGONFLY] = build_dragonfly,
	};
	struct shape_args a = { .levels = 3, .ports = 1, .trunks = 1, .units = 1, .first = 1, .line = 1 };
	int err = shape_pass(b, &a, text, len, false);

	err = err ? err : shape_check(b, &a);

	b->line = a.line;
	if (!err && (!a.ports || !a.trunks || !a.first))
		err = fabric_build_error(b, "ports, links and first are at least 1");
	b->first = a.first - 1;
	if (!err && a.shape) /* there may be only hosts without a fabric */
		err = build[a.shape](b, &a);
	err = err ? err : shape_pass(b, &a, text, len, true);
	if (err || b->t->nnodes || b->t->ether)
		return err;
	b->line = a.line;
	return fabric_build_error(b, "unknown shape: expected leafs N spines N hosts N, fattree k=N levels=N, ring N, "
				     "rails N hosts N spines "
				     "N, or dragonfly groups N switches N hosts N globals N");
}

bool fabric_shape_match(const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	struct fabric_line l;
	char word[64], *eq;
	u32 i;

	while (fabric_line_next(&p, end, &l)) {
		if (!fabric_line_word(&l, word, sizeof(word)) || word[0] == '#')
			continue;
		eq = strchr(word, '=');
		if (eq)
			*eq = 0;
		for (i = 0; i < ARRAY_SIZE(numbers); i++)
			if (!strcmp(word, numbers[i].word))
				return true;
		for (i = 0; i < ARRAY_SIZE(shapes); i++)
			if (!strcmp(word, shapes[i].word))
				return true;
		return is_host_line(word) || fabric_option_known(word);
	}
	return false;
}
