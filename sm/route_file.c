// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Linear forwarding tables from a file, in the format of dump_fts(8) and ibroute(8). Entries that the file does not
 * have, or that do not reach their destination in the current topology, are those of the routing engine.
 *
 * LIDs may differ from those of the file: an entry with a port GUID applies to that port.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sm/sm_internal.h"

#define UNKNOWN 255

struct lft_entry {
	u64 guid; /* of the destination's port; 0: not given */
	u16 lid;
	u8 port;
};

struct lft_table {
	u64 guid; /* of the switch's node */
	u32 first, n;
};

struct sm_lfts {
	struct lft_table *table;
	struct lft_entry *entry;
	u32 ntables, nentries;
};

struct lft_reader {
	struct sm_lfts *l;
	const char *file;
	u32 line;
	bool unicast; /* in a section of unicast entries */
	char *err;
	size_t err_len;
};

static int lft_refuse(struct lft_reader *r, const char *what)
{
	snprintf(r->err, r->err_len, "%s:%u: %s", r->file, r->line, what);
	return -EINVAL;
}

/* Makes room for one more element; the capacity is a power of two. */
static bool lft_grow(void *array, u32 n, size_t size)
{
	void **p = array, *more;

	if (n & (n - 1))
		return true;
	more = realloc(*p, (n ? 2 * n : 1) * size);
	if (more)
		*p = more;
	return more;
}

/* "Unicast lids [0x0-0x2f] of switch Lid 4 guid 0x0002c90300000010 (leaf1):" */
static int lft_section(struct lft_reader *r, const char *line)
{
	const char *guid = strstr(line, "guid 0x");
	struct sm_lfts *l = r->l;
	char *end;
	u64 v = guid ? strtoull(guid + 5, &end, 16) : 0;
	u32 i;

	if (!v)
		return lft_refuse(r, "the GUID of the switch is missing");
	for (i = 0; i < l->ntables; i++)
		if (l->table[i].guid == v)
			return lft_refuse(r, "this switch already has a table");
	if (!lft_grow(&l->table, l->ntables, sizeof(*l->table)))
		return lft_refuse(r, "out of memory");
	l->table[l->ntables++] = (struct lft_table){ .guid = v, .first = l->nentries };
	r->unicast = true;
	return 0;
}

/* "0x0003 021 : (Channel Adapter portguid 0x0002c90300000051: 'h1')" */
static int lft_line(struct lft_reader *r, const char *line)
{
	const char *guid = strstr(line, "portguid 0x");
	struct sm_lfts *l = r->l;
	char *end, *behind;
	unsigned long lid = strtoul(line, &end, 16), port = strtoul(end, &behind, 10);

	if (end == line || behind == end || (*behind && !isspace((u8)*behind)) || lid >= SM_LIDS || port > UNKNOWN)
		return lft_refuse(r, "an entry is LID and port, such as 0x0003 021");
	if (!lft_grow(&l->entry, l->nentries, sizeof(*l->entry)))
		return lft_refuse(r, "out of memory");
	l->entry[l->nentries++] = (struct lft_entry){ .guid = guid ? strtoull(guid + 9, NULL, 16) : 0,
						      .lid = (u16)lid,
						      .port = (u8)port };
	l->table[l->ntables - 1].n++;
	return 0;
}

static int lft_any_line(struct lft_reader *r, const char *line)
{
	static const char *const heads[] = { "Lid ", "Port ", "MLid", "Ports:", "Switch multicast" };
	char *end;
	u32 i;

	while (isspace((u8)*line))
		line++;
	if (!*line || *line == '#')
		return 0;
	if (!strncmp(line, "Unicast lids", 12))
		return lft_section(r, line);
	if (!strncmp(line, "Multicast mlids", 15)) {
		r->unicast = false;
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(heads); i++)
		if (!strncmp(line, heads[i], strlen(heads[i])))
			return 0;
	strtoul(line, &end, 10); /* "8 valid lids dumped" */
	if (end > line && strstr(end, "lids dumped"))
		return 0;
	if (r->unicast && !strncmp(line, "0x", 2))
		return lft_line(r, line);
	if (r->l->ntables && !r->unicast)
		return 0; /* multicast entries */
	return lft_refuse(r, "expected the format of dump_fts or ibroute");
}

void sm_lfts_destroy(struct sm_lfts *l)
{
	if (!l)
		return;
	free(l->table);
	free(l->entry);
	free(l);
}

struct sm_lfts *sm_lfts_parse(const char *text, const char *file, char *err, size_t err_len)
{
	struct lft_reader r = { .l = calloc(1, sizeof(*r.l)), .file = file, .err = err, .err_len = err_len };
	const char *p = text, *nl;
	int bad = 0;

	if (!r.l) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	for (r.line = 1; !bad && *p; r.line++, p = nl + (*nl == '\n')) {
		char line[256];

		nl = strchrnul(p, '\n');
		snprintf(line, sizeof(line), "%.*s", (int)min(nl - p, (ptrdiff_t)250), p);
		bad = lft_any_line(&r, line);
	}
	if (!bad && !r.l->ntables)
		bad = lft_refuse(&r, "no table of a switch");
	if (!bad)
		return r.l;
	sm_lfts_destroy(r.l);
	return NULL;
}

/* The current LID of an entry's destination; @base: the first LID of the same port in the table (LMC). 0: none. */
static u32 lft_lid_now(const struct sm *sm, const struct lft_entry *e, u16 base)
{
	const struct sm_port *p = e->guid ? sm_port_by_guid(sm, e->guid) : NULL;
	u32 offset = (u32)(e->lid - base);

	if (!e->guid)
		return e->lid <= sm->max_lid && sm->by_lid[e->lid] ? e->lid : 0;
	return p && p->lid && offset < BIT(p->lmc) ? p->lid + offset : 0;
}

/* Output ports of the file, by current LID: @want[lid], UNKNOWN if the file has no entry, or an invalid one. */
static void lft_wanted(const struct sm *sm, const struct sm_lfts *l, const struct sm_node *sw, u8 *want)
{
	const struct lft_table *t = NULL;
	u64 guid = 0;
	u16 base = 0;
	u32 i;

	memset(want, UNKNOWN, sm->max_lid + 1u);
	for (i = 0; i < l->ntables && !t; i++)
		if (l->table[i].guid == sw->guid)
			t = &l->table[i];
	for (i = 0; t && i < t->n; i++) {
		const struct lft_entry *e = &l->entry[t->first + i];
		u32 lid;

		if (e->guid != guid) {
			guid = e->guid;
			base = e->lid;
		}
		lid = lft_lid_now(sm, e, base);
		if (lid && e->port <= sw->nports && (!e->port || sw->ports[e->port].peer))
			want[lid] = e->port;
	}
}

/* State of each switch on the path to a LID. */
enum lft_mark {
	LFT_UNSEEN,
	LFT_ON_WAY,
	LFT_ARRIVES
};

/*
 * Follows the tables from switch @s. @path has room for all switches. False: a loop, or the path ends at another port.
 */
static bool lft_walk(const struct sm *sm, u32 s, u32 lid, u8 **lft, u8 *mark, u32 *path)
{
	const struct sm_port *to = sm->by_lid[lid];
	bool arrives = false;
	u32 n = 0;

	while (!arrives && mark[s] == LFT_UNSEEN) {
		const struct sm_node *sw = sm->graph.node[s];
		u8 out = lft[s][lid];
		const struct sm_port *p = out == LFT_PORT_NONE ? NULL : out ? sw->ports[out].peer : &sw->ports[0];

		if (out == LFT_PORT_NONE && !n)
			return true; /* the engine has no path from here either */
		mark[s] = LFT_ON_WAY;
		path[n++] = s;
		arrives = p == to || (p && to->node == p->node && sm_node_is_switch(to->node));
		if (!arrives && (!p || !out || p->node->sw == SM_NONE))
			return false;
		s = arrives ? s : p->node->sw;
	}
	if (!arrives && mark[s] != LFT_ARRIVES)
		return false;
	while (n)
		mark[path[--n]] = LFT_ARRIVES;
	return true;
}

/* Do all switches with an entry for the LID reach it? */
static bool lft_reaches(const struct sm *sm, u32 lid, u8 **lft, u8 *mark, u32 *path)
{
	u32 s;

	memset(mark, LFT_UNSEEN, sm->graph.n);
	for (s = 0; s < sm->graph.n; s++)
		if (!lft_walk(sm, s, lid, lft, mark, path))
			return false;
	return true;
}

int sm_lfts_apply(struct sm *sm, const struct sm_lfts *l, u8 **lft)
{
	u32 n = sm->graph.n, s, lid, refused = 0;
	size_t row = sm->max_lid + 1u;
	u8 *want = malloc(n * row + 1), *old = malloc(n + 1u), *mark = malloc(n + 1u);
	u32 *path = calloc(n + 1u, sizeof(*path));
	int err = want && old && mark && path ? 0 : -ENOMEM;
	bool any;

	if (err)
		goto out_free;
	for (s = 0; s < n; s++)
		lft_wanted(sm, l, sm->graph.node[s], want + s * row);
	for (lid = 1; lid <= sm->max_lid; lid++) {
		for (s = 0, any = false; s < n; s++) {
			u8 port = want[s * row + lid];

			old[s] = lft[s][lid];
			any |= port != UNKNOWN && port != old[s];
			if (port != UNKNOWN)
				lft[s][lid] = port;
		}
		if (!any || !sm->by_lid[lid] || lft_reaches(sm, lid, lft, mark, path))
			continue;
		for (s = 0; s < n; s++)
			lft[s][lid] = old[s];
		refused++;
	}
	if (refused)
		sm_log(sm, LOG_WARN, "the forwarding tables of the file do not lead to %u LIDs: these are routed anew",
		       refused);
out_free:
	free(want);
	free(old);
	free(mark);
	free(path);
	return err;
}
