// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Faults: read from a line, checked as a whole, armed, and taken away again. */
#include "fabric/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/tap.h"

/* The words of values */

static bool parse_speed(void *to, const char *value)
{
	enum wire_speed speed = wire_speed_from_name(value);

	*(u8 *)to = (u8)speed;
	return speed != WIRE_SPEED_NONE;
}

static bool parse_lanes(void *to, const char *value)
{
	u64 n;

	if (!spec_number(value, 12, &n) || !(BIT((u32)n) & (BIT(1) | BIT(2) | BIT(4) | BIT(8) | BIT(12))))
		return false;
	*(u8 *)to = (u8)n;
	return true;
}

static bool parse_mtu(void *to, const char *value)
{
	u64 n;

	*(u8 *)to = spec_number(value, WIRE_MTU_MAX, &n) ? wire_mtu_code((u32)n) : 0;
	return *(u8 *)to && wire_mtu_bytes(*(u8 *)to) == n;
}

/* "0a1b2c" */
static bool parse_hex(void *to, const char *value)
{
	struct fault_bytes *b = to;
	size_t len = strlen(value), i;

	if (!len || len % 2 || len / 2 > FAULT_ALTER_MAX || strspn(value, "0123456789abcdefABCDEF") != len)
		return false;
	b->n = (u8)(len / 2);
	for (i = 0; i < b->n; i++) {
		char byte[3] = { value[2 * i], value[2 * i + 1], 0 };

		b->data[i] = (u8)strtoul(byte, NULL, 16);
	}
	return true;
}

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, fabric_fault_spec, member, ##__VA_ARGS__)
#define BY(fn, text)                 .parse = fn, .wants = text
#define SPEEDS                       "SDR, DDR, QDR, FDR, EDR, HDR or NDR"
static const struct spec_field fields[] = {
	[FAULT_DIR] = PICK_DIR(fabric_fault_spec, dir),
	WIRE_MATCH_SPEC(FAULT_MATCH, fabric_fault_spec, match),
	PICK_SPEC(FAULT_PICK, fabric_fault_spec, pick, seed),
	[FAULT_TIME] = KEY("time", SPEC_TIME, time),
	[FAULT_JITTER] = KEY("jitter", SPEC_TIME, jitter),
	[FAULT_COPIES] = KEY("copies", SPEC_U32, copies, .max = 16),
	[FAULT_DEPTH] = KEY("depth", SPEC_U32, depth, .max = 1000),
	[FAULT_WHAT] = KEY("what", SPEC_NAME, what, .names = "payload|header|icrc|vcrc",
			   .wants = "payload, header, icrc or vcrc"),
	[FAULT_OFFSET] = KEY("offset", SPEC_U32, offset, .max = WIRE_MTU_MAX),
	[FAULT_SILENT] = KEY("silent", SPEC_FLAG, silent),
	[FAULT_BYTES] = KEY("bytes", SPEC_U32, bytes, .max = WIRE_MTU_MAX),
	[FAULT_STATUS] = KEY("status", SPEC_U16, status, .max = 0x7fff),
	[FAULT_TO] = KEY("to", SPEC_OTHER, alter, BY(parse_hex, "bytes in hexadecimal, such as 00ff")),
	[FAULT_RATE] = KEY("bps", SPEC_RATE, rate),
	[FAULT_FOR] = KEY("for", SPEC_TIME, lasts),
	[FAULT_UP] = KEY("up", SPEC_TIME, up),
	[FAULT_DOWN] = KEY("down", SPEC_TIME, down),
	[FAULT_TIMES] = KEY("times", SPEC_U32, times),
	[FAULT_LANES] = KEY("lanes", SPEC_OTHER, lanes, BY(parse_lanes, "1, 2, 4, 8 or 12")),
	[FAULT_SPEED] = KEY("speed", SPEC_OTHER, speed, BY(parse_speed, SPEEDS)),
	[FAULT_WITH] = KEY("with", SPEC_TEXT, with),
	[FAULT_LID] = KEY("lid", SPEC_U32, lid, .max = 0xffff),
	[FAULT_PORT] = KEY("port", SPEC_U32, port, .max = 255),
	[FAULT_OFF] = KEY("off", SPEC_FLAG, off),
	[FAULT_INDEX] = KEY("index", SPEC_U32, index, .max = WIRE_PORT_PKEYS - 1),
	[FAULT_PKEY] = KEY("pkey", SPEC_U32, pkey, .max = 0xffff),
	[FAULT_LANE] = KEY("lane", SPEC_U8, lane, .max = 14),
	[FAULT_MTU] = KEY("mtu", SPEC_OTHER, mtu, BY(parse_mtu, "256, 512, 1024, 2048 or 4096")),
};
static_assert(ARRAY_SIZE(fields) == FAULT_FIELDS, "one row for each key");

/* Each ends with one without a name. */
static const struct fault_action *const lists[] = { fault_packet_actions, fault_state_actions, fault_table_actions };

static const struct fault_action *find_action(const char *name)
{
	const struct fault_action *a = NULL;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists) && !a; i++)
		a = spec_row(lists[i], ~0u, sizeof(*a), name);
	return a;
}

bool fabric_fault_action(const char *name)
{
	return find_action(name);
}

void fabric_fault_actions(char *text, size_t len)
{
	size_t at = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists); i++)
		at = spec_names(text, at, len, lists[i], ~0u, sizeof(struct fault_action));
}

static int unknown_action(const char *name, char *err, size_t err_len)
{
	char all[256];

	fabric_fault_actions(all, sizeof(all));
	return spec_refuse(err, err_len, "%.40s: there is no such fault; there are %s", name, all);
}

/* Where */

static struct fabric_node *find_node(struct fabric *f, const char *place, u32 *num, char *err, size_t err_len)
{
	struct fabric_node *n = fabric_node_find(f, place);
	const char *colon = strrchr(place, ':');
	char name[FABRIC_NAME_MAX];
	u64 v;

	*num = 0;
	if (n)
		return n;
	if (colon && (size_t)(colon - place) < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
		n = fabric_node_find(f, name);
	}
	if (!n) {
		spec_refuse(err, err_len, "%.80s: there is no such node", place);
		return NULL;
	}
	if (!spec_number(colon + 1, 255, &v) || !v || v > n->nports) {
		spec_refuse(err, err_len, "%.80s: the ports of %s are 1 to %u", place, n->name, n->nports);
		return NULL;
	}
	*num = (u32)v;
	return n;
}

struct fabric_port *fault_find_port(struct fabric *f, const char *place, char *err, size_t err_len)
{
	u32 num;
	struct fabric_node *n = find_node(f, place, &num, err, err_len);

	if (!n)
		return NULL;
	if (!num && !n->sw && n->nports == 1)
		num = 1;
	if (num)
		return &n->ports[num];
	spec_refuse(err, err_len, "%.80s: which port? Say %s:1 to %s:%u", place, n->name, n->name, n->nports);
	return NULL;
}

static int take_place(struct fabric_fault *ft, const char *place, char *err, size_t err_len)
{
	bool wired = false;
	u32 num, i;

	if (!strcmp(place, "all"))
		return 0;
	ft->node = find_node(ft->f, place, &num, err, err_len);
	if (!ft->node)
		return -EINVAL;
	ft->port = num ? &ft->node->ports[num] : NULL;
	for (i = num ? num : 1; i <= (num ? num : ft->node->nports); i++)
		wired |= ft->node->ports[i].peer != NULL;
	return wired ? 0 : spec_refuse(err, err_len, "%.80s: it has no cable", place);
}

/* Reading */

static int check(struct fabric_fault *ft, char *err, size_t err_len)
{
	const struct fault_action *a = ft->action;
	u64 any = FAULT_MATCH_KEYS | FAULT_PICK_KEYS | BIT_ULL(FAULT_DIR);
	int rc = spec_keys(fields, FAULT_FIELDS, a->name, ft->s.given, any | a->allowed, a->required, err, err_len);

	if (rc)
		return rc;
	if (ft->s.given & BIT_ULL(FAULT_DIR) && !(ft->node && ft->packets))
		return spec_refuse(err, err_len, "dir: %s",
				   ft->node ? "no packets are looked at" : "all links have none");
	return a->check ? a->check(ft, err, err_len) : 0;
}

static int seed(struct fabric_fault *ft, char *err, size_t err_len)
{
	u64 n = ft->f->faults_armed + 1;
	int rc = pick_start(&ft->s.pick, ft->s.given, FAULT_PICK, ft->s.seed, ft->f->seed + n, &ft->rng, err, err_len);

	ft->rng.state = rng_next(&ft->rng);
	if (!rc)
		ft->f->faults_armed = n;
	return rc;
}

static int read_words(struct fabric_fault *ft, const struct spec_words *w, char *err, size_t err_len)
{
	int rc;

	if (w->n < 2)
		return spec_refuse(err, err_len, "%.40s: a fault is a place, an action, and keys",
				   w->n ? w->word[0] : "");
	ft->action = find_action(w->word[1]);
	if (!ft->action)
		return unknown_action(w->word[1], err, err_len);
	rc = spec_words(fields, ARRAY_SIZE(fields), &ft->s, &ft->s.given, w, 2, err, err_len)
		     ?: take_place(ft, w->word[0], err, err_len);
	if (rc)
		return rc;
	ft->packets = ft->action->packet || ft->s.given & (FAULT_MATCH_KEYS | FAULT_PICK_KEYS);
	return check(ft, err, err_len)
		       ?: wire_match_start(&ft->s.match, ft->s.given, FAULT_MATCH, err, err_len) ?: seed(ft, err, err_len);
}

static void destroy(struct fabric_fault *ft)
{
	fault_taps_detach(ft);
	loop_timer_cancel(&ft->timer);
	list_del(&ft->link);
	list_del(&ft->due);
	wire_match_free(&ft->s.match);
	free(ft);
}

struct fabric_fault *fabric_fault_add(struct fabric *f, const char *text, char *err, size_t err_len)
{
	struct fabric_fault *ft = calloc(1, sizeof(*ft));
	struct spec_words words = { .n = 0 };

	if (!ft) {
		spec_refuse(err, err_len, "out of memory");
		return NULL;
	}
	ft->f = f;
	ft->timer.fn = fault_state_timer;
	list_init(&ft->taps);
	list_init(&ft->link);
	list_init(&ft->due);
	if (spec_split(&words, text, err, err_len) || read_words(ft, &words, err, err_len))
		goto err_destroy;
	if (ft->packets && fault_taps_attach(ft)) {
		spec_refuse(err, err_len, "out of memory");
		goto err_destroy;
	}
	list_add(&f->faults, &ft->link);
	if (!ft->packets)
		fault_state_trigger(ft);
	return ft;

err_destroy:
	destroy(ft);
	return NULL;
}

void fabric_fault_remove(struct fabric_fault *ft)
{
	if (ft->applied)
		ft->action->undo(ft);
	destroy(ft);
}

void fabric_fault_info(const struct fabric_fault *ft, struct fabric_fault_info *info)
{
	const struct fabric_tap *t;

	*info = (struct fabric_fault_info){ .pick = &ft->s.pick, .applied = ft->applied };
	list_for_each (t, &ft->taps, link)
		info->held += t->nheld;
}

void fabric_fault_fini(struct fabric *f)
{
	while (!list_empty(&f->faults))
		destroy(list_first(&f->faults, struct fabric_fault, link));
	loop_task_cancel(&f->fault_task);
}
