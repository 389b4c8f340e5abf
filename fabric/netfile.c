// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Topology files in the format of ibnetdiscover and ibsim: parser. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "emu/wire/smp.h"
#include "fabric/build.h"

/* A link as one end declares it; the other end may follow later in the file. */
struct ref {
	char *peer;
	u32 node, line;
	u8 port, peer_port, lanes, speed;
	bool assumed; /* width and speed are not given */
};

struct netfile {
	struct fabric_build *b;
	struct ref *refs;
	u32 nrefs;
	s64 node; /* the current node, whose ports follow; -1: none */
	u64 guid, sysguid;
	u32 vendid, devid;
};

static void skip_space(struct fabric_line *l)
{
	while (l->p < l->end && isspace((u8)*l->p))
		l->p++;
}

/* "[12]" -> 12; negative: no such number. */
static s64 netfile_bracket(struct fabric_line *l)
{
	s64 n = 0;

	if (l->p == l->end || *l->p != '[')
		return -1;
	for (l->p++; l->p < l->end && isdigit((u8)*l->p) && n < 1000; l->p++)
		n = n * 10 + (*l->p - '0');
	while (l->p < l->end && *l->p != ']')
		l->p++;
	if (l->p == l->end)
		return -1;
	l->p++;
	return n;
}

/* "(0002c9...)": the GUID; 0: none. */
static u64 netfile_parens(struct fabric_line *l)
{
	char buf[32];
	size_t n = 0;

	if (l->p == l->end || *l->p != '(')
		return 0;
	for (l->p++; l->p < l->end && *l->p != ')'; l->p++)
		if (n < sizeof(buf) - 1)
			buf[n++] = *l->p;
	l->p += l->p < l->end;
	buf[n] = 0;
	return strtoull(buf, NULL, 16);
}

static bool netfile_quoted(struct fabric_line *l, char *s, size_t size)
{
	skip_space(l);
	return l->p < l->end && *l->p == '"' && fabric_line_word(l, s, size) && *s;
}

static int unknown_code(struct fabric_build *b, const char *word)
{
	return fabric_build_error(
		b, "\"%.40s\": widths are w=1, 2 (4x), 4 (8x), 8 (12x) or 16 (2x), speeds s=1, 2 or 4", word);
}

/* ibsim's w= and s=, codes of PortInfo; ibnetdiscover --full writes them after a rate, which has precedence. */
static int rate_code(struct fabric_build *b, const char *word, u8 *lanes, u8 *speed)
{
	char *end;
	unsigned long v = strtoul(word + 2, &end, 0);

	if (end == word + 2 || *end)
		return unknown_code(b, word);
	if (*word == 'w') {
		*lanes = v < 256 ? (u8)wire_width_lanes((u8)v) : 0;
		return *lanes ? 1 : unknown_code(b, word);
	}
	if (v != 1 && v != 2 && v != 4)
		return unknown_code(b, word);
	*speed = v == 1 ? WIRE_SPEED_SDR : v == 2 ? WIRE_SPEED_DDR : WIRE_SPEED_QDR;
	return 1;
}

/* The last quote of the line: descriptions are not escaped, and may contain quotes. */
static const char *last_quote(const struct fabric_line *l)
{
	const char *p;

	for (p = l->end; p > l->p && p[-1] != '"'; p--)
		;
	return p > l->p ? p - 1 : NULL;
}

/* "enhanced port 0 ..." of a switch, else "base port 0 ..." (IBTA 14.2.5.4 EnhancedPort0). */
static bool netfile_enhanced(const char *from, const char *end)
{
	struct fabric_line l = { from, end };
	char word[16];

	return fabric_line_word(&l, word, sizeof(word)) && !strcmp(word, "enhanced");
}

/* Parses "lid 4 lmc 0" of a port or switch itself, up to @end. */
static void netfile_lid(struct fabric_topology_port *p, const char *from, const char *end)
{
	struct fabric_line l = { from, end };
	char word[32], value[32];

	while (fabric_line_word(&l, word, sizeof(word))) {
		if (strcmp(word, "lid") != 0 && strcmp(word, "lmc") != 0)
			continue;
		if (!fabric_line_word(&l, value, sizeof(value)))
			return;
		if (word[1] == 'i')
			p->lid = (u16)min(strtoul(value, NULL, 10), 0xfffful);
		else
			p->lmc = (u8)min(strtoul(value, NULL, 10), 7ul);
	}
}

/*
 * Parses the rest after the peer: w= and s=, and in the comment, before and after the peer's description, the port's
 * own LID and LMC, and width and speed, such as 4xHDR.
 */
static int port_remark(struct netfile *f, struct fabric_line *l, struct ref *r)
{
	struct fabric_topology_node *n = &f->b->t->nodes[r->node];
	const char *comment = memchr(l->p, '#', (size_t)(l->end - l->p)), *quote;
	struct fabric_line part = { l->p, comment ? comment : l->end }, rest;
	char word[FABRIC_NAME_MAX + 16];
	bool rate = false, code = false;
	int got;

	rest = (struct fabric_line){ comment ? comment + 1 : l->end, l->end };
	quote = memchr(rest.p, '"', (size_t)(rest.end - rest.p));
	if (quote && n->type == NODE_TYPE_CA)
		netfile_lid(&n->ports[r->port], rest.p, quote);
	if (quote)
		rest.p = last_quote(&rest) + 1;
	while (fabric_line_word(&part, word, sizeof(word)) || fabric_line_word(&rest, word, sizeof(word))) {
		if (!rate && (!strncmp(word, "w=", 2) || !strncmp(word, "s=", 2))) {
			got = rate_code(f->b, word, &r->lanes, &r->speed);
			code |= got > 0;
		} else {
			got = fabric_build_rate(f->b, word, &r->lanes, &r->speed);
			rate |= got > 0;
		}
		if (got < 0)
			return got;
	}
	r->assumed = !rate && !code;
	return 0;
}

/* [port](guid)  "peer"[port](guid)  # ... */
static int port_line(struct netfile *f, struct fabric_line *l)
{
	struct fabric_topology_node *n;
	char peer[FABRIC_NAME_MAX];
	s64 port = netfile_bracket(l), peer_port;
	struct ref *r;
	u64 guid;

	if (f->node < 0)
		return fabric_build_error(f->b, "a port before any node");
	n = &f->b->t->nodes[f->node];
	if (port < 1 || port > n->nports)
		return fabric_build_error(f->b, "\"%.60s\" has ports 1 to %u", n->id, n->nports);
	guid = netfile_parens(l);
	if (guid && n->type == NODE_TYPE_CA && fabric_build_port_guid(f->b, (u32)f->node, (u8)port, guid))
		return -EINVAL;
	while (l->p < l->end && *l->p == '[') /* [ext n] */
		if (netfile_bracket(l) < 0)
			return fabric_build_error(f->b, "a bracket is not closed");
	if (!netfile_quoted(l, peer, sizeof(peer)))
		return fabric_build_error(f->b, "port %u: the peer's name in quotes is missing", (u32)port);
	peer_port = netfile_bracket(l);
	if (peer_port < 0)
		return fabric_build_error(f->b, "port %u: the peer's port in brackets is missing", (u32)port);
	netfile_parens(l);
	r = fabric_build_append(&f->refs, &f->nrefs, sizeof(*r));
	if (!r)
		return fabric_build_error(f->b, "out of memory");
	r->lanes = f->b->lanes;
	r->speed = f->b->speed;
	r->node = (u32)f->node;
	r->port = (u8)port;
	r->peer_port = peer_port > 255 ? 255 : (u8)peer_port;
	r->line = f->b->line;
	r->peer = strdup(peer);
	return r->peer ? port_remark(f, l, r) : fabric_build_error(f->b, "out of memory");
}

/* Switch 8 "S-..." # "name" ...; without a name in the comment, the id is the name. */
static int node_line(struct netfile *f, struct fabric_line *l, u8 type)
{
	struct fabric_topology_node *n;
	char word[32], id[FABRIC_NAME_MAX], name[FABRIC_NAME_MAX];
	const char *quote;
	int err;

	if (!fabric_line_word(l, word, sizeof(word)) || !isdigit((u8)word[0]))
		return fabric_build_error(f->b, "the number of ports is missing");
	if (!netfile_quoted(l, id, sizeof(id)))
		return fabric_build_error(f->b, "the node's name in quotes is missing");
	f->node = fabric_build_node(f->b, type, id, (u32)strtoul(word, NULL, 10));
	if (f->node < 0)
		return (int)f->node;
	n = &f->b->t->nodes[f->node];
	n->sysguid = f->sysguid;
	if (f->vendid)
		n->vendid = f->vendid & 0xffffff;
	if (f->devid)
		n->devid = f->devid;
	err = f->guid ? fabric_build_guid(f->b, (u32)f->node, f->guid) : 0;
	f->guid = f->sysguid = 0;
	f->vendid = f->devid = 0;
	if (err)
		return err;
	while (l->p < l->end && *l->p != '#')
		l->p++;
	l->p += l->p < l->end;
	skip_space(l);
	quote = l->p < l->end && *l->p == '"' ? last_quote(l) : NULL;
	if (!quote || quote <= l->p + 1)
		return fabric_build_name(f->b, (u32)f->node, id);
	snprintf(n->desc, sizeof(n->desc), "%.*s", (int)min(quote - l->p - 1, (ptrdiff_t)NODEDESC_SIZE), l->p + 1);
	snprintf(name, sizeof(name), "%.*s", FABRIC_NAME_MAX - 1, n->desc);
	if (type == NODE_TYPE_SWITCH) {
		n->enhanced_port0 = netfile_enhanced(quote + 1, l->end);
		netfile_lid(&n->ports[0], quote + 1, l->end);
	}
	return fabric_build_name(f->b, (u32)f->node, name);
}

static const struct {
	const char *word;
	u8 type;
} node_words[] = {
	{ "Switch", NODE_TYPE_SWITCH },
	{ "Ca", NODE_TYPE_CA },
	{ "Hca", NODE_TYPE_CA },
	{ "Rt", NODE_TYPE_CA },
};

/* key=value before a node. */
static int attr_line(struct netfile *f, const char *word)
{
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : 0;
	u64 v = eq ? strtoull(eq + 1, NULL, 16) : 0;

	if (!eq)
		return fabric_build_error(f->b, "\"%.40s\" is not understood", word);
	if (len >= 4 && !strncmp(word + len - 4, "guid", 4)) {
		if (!strncmp(word, "sysimg", 6)) {
			f->sysguid = v;
		} else {
			f->guid = v;
			f->node = -1;
			if (!v)
				return fabric_build_error(f->b, "a GUID is not 0");
		}
	} else if (!strncmp(word, "vendid", len)) {
		f->vendid = (u32)v;
	} else if (!strncmp(word, "devid", len)) {
		f->devid = (u16)v;
	} else {
		return fabric_build_error(f->b, "\"%.40s\" is not understood", word);
	}
	return 0;
}

static int netfile_line(struct netfile *f, struct fabric_line *l)
{
	char word[128];
	u32 i;

	skip_space(l);
	if (l->p == l->end || *l->p == '#')
		return 0;
	if (*l->p == '[')
		return port_line(f, l);
	fabric_line_word(l, word, sizeof(word));
	if (!strcmp(word, "Chassis")) /* ibnetdiscover --grouping */
		return 0;
	for (i = 0; i < ARRAY_SIZE(node_words); i++)
		if (!strcmp(word, node_words[i].word))
			return node_line(f, l, node_words[i].type);
	return attr_line(f, word);
}

static int netfile_resolve(struct netfile *f)
{
	struct fabric_build *b = f->b;
	u32 i;
	int err;

	for (i = 0; i < f->nrefs; i++) {
		const struct ref *r = &f->refs[i];
		s64 peer = fabric_build_find_id(b, r->peer);

		b->line = r->line;
		if (peer < 0)
			peer = fabric_build_find_name(b, r->peer);
		if (peer < 0)
			return fabric_build_error(b, "there is no node \"%.60s\"", r->peer);
		if (!r->peer_port && b->t->nodes[peer].type == NODE_TYPE_SWITCH)
			continue; /* port 0 of a switch has no cable */
		b->lanes = r->lanes;
		b->speed = r->speed;
		if (r->assumed && b->t->nodes[r->node].ports[r->port].peer == FABRIC_NO_PEER)
			fabric_build_warn(b, "port %u has no width and speed: it is taken as 4xHDR", r->port);
		err = fabric_build_link(b, r->node, r->port, (u32)peer, r->peer_port);
		if (err)
			return err;
	}
	return 0;
}

struct first_word {
	char word[FABRIC_NAME_MAX];
	u32 node;
};

static int by_word(const void *a, const void *b)
{
	return strcmp(((const struct first_word *)a)->word, ((const struct first_word *)b)->word);
}

/*
 * Names hosts without blanks, as single words for commands and files: "node002 mlx5_0" is node002, or node002-mlx5_0 if
 * several hosts have that first word. Descriptions are unchanged.
 */
static int netfile_name_hosts(struct fabric_build *b)
{
	struct first_word *w = calloc(b->t->nnodes ? b->t->nnodes : 1, sizeof(*w));
	u32 i, n = 0;
	int err = 0;

	if (!w)
		return fabric_build_error(b, "out of memory");
	for (i = 0; i < b->t->nnodes; i++) {
		const struct fabric_topology_node *node = &b->t->nodes[i];

		if (node->type != NODE_TYPE_CA || !strpbrk(node->name, " /"))
			continue;
		w[n].node = i;
		memcpy(w[n++].word, node->name, strcspn(node->name, " /"));
	}
	qsort(w, n, sizeof(*w), by_word);
	for (i = 0; i < n && !err; i++) {
		struct fabric_topology_node *node = &b->t->nodes[w[i].node];
		bool alone = (!i || strcmp(w[i].word, w[i - 1].word) != 0) &&
			     (i + 1 == n || strcmp(w[i].word, w[i + 1].word) != 0) && w[i].word[0];
		char name[FABRIC_NAME_MAX], *p;

		snprintf(name, sizeof(name), "%s", node->name);
		while ((p = strpbrk(name, " /")))
			*p = '-';
		b->line = node->line;
		err = fabric_build_name(b, w[i].node,
					alone && fabric_build_find_name(b, w[i].word) < 0 ? w[i].word : name);
	}
	free(w);
	return err;
}

/* Comments that start with #muslin: ip "h1" 10.0.0.1, cables, disabled ports and options of the fabric. */
static int netfile_remarks(struct fabric_build *b, const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	struct fabric_line l;
	char word[32], value[256];
	int err = 0;

	for (b->line = 1; !err && fabric_line_next(&p, end, &l); b->line++) {
		if (!fabric_line_word(&l, word, sizeof(word)) || strcmp(word, "#muslin"))
			continue;
		if (!fabric_line_word(&l, word, sizeof(word)))
			word[0] = 0;
		if (!strcmp(word, "ip"))
			err = fabric_build_ip(b, &l);
		else if (!strcmp(word, "trunk"))
			err = fabric_build_trunk(b, &l);
		else if (!strcmp(word, "shard"))
			err = fabric_build_shard(b, &l);
		else if (!strcmp(word, "disable"))
			err = fabric_option_disable(b, &l);
		else if (!strcmp(word, "cable"))
			err = fabric_option_cable(b, &l);
		else if (!fabric_option_known(word) || !strcmp(word, "speed") ||
			 !fabric_line_word(&l, value, sizeof(value)))
			err = fabric_build_error(b, "expected #muslin ip \"HOST\" ADDRESS, trunk NODE:PORT to|listen "
						    "ADDRESS, shard NAME ..., disable NODE:PORT, cable ..., or an "
						    "option such as rates enforced");
		else
			err = fabric_option_set(b, word, value);
	}
	return err;
}

int fabric_netfile_parse(struct fabric_build *b, const char *text, size_t len)
{
	struct netfile f = { .b = b, .node = -1 };
	const char *p = text, *end = text + len;
	struct fabric_line l;
	int err = 0;
	u32 i;

	for (b->line = 1; !err && fabric_line_next(&p, end, &l); b->line++)
		err = netfile_line(&f, &l);
	if (!err)
		err = netfile_resolve(&f);
	if (!err)
		err = netfile_name_hosts(b);
	if (!err)
		err = netfile_remarks(b, text, len);
	for (i = 0; i < f.nrefs; i++)
		free(f.refs[i].peer);
	free(f.refs);
	return err;
}
