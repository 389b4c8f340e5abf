// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Parser of topology files in the format of ibnetdiscover and ibsim. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "emu/wire/smp.h"
#include "fabric/build.h"

/* A link as one end declares it; the peer may follow later in the file. */
struct ref {
	char *peer;
	u32 node, line;
	u8 port, peer_port, lanes, speed;
};

struct netfile {
	struct fabric_build *b;
	struct ref *refs;
	u32 nrefs;
	s64 node; /* the one whose ports are being listed; -1: none */
	u64 guid, sysguid;
	u32 vendid, devid;
};

static void skip_space(struct fabric_line *l)
{
	while (l->p < l->end && isspace((u8)*l->p))
		l->p++;
}

/* "[12]" -> 12; negative when it is none. */
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

/* "(0002c9...)": the GUID, 0 when there is none. */
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

/* Before the comment: ibsim's w= and s=; in the comment: a rate such as 4xHDR. */
static void link_rate(struct fabric_line *l, u8 *lanes, u8 *speed)
{
	char word[FABRIC_NAME_MAX + 16];
	unsigned long v;

	while (fabric_line_word(l, word, sizeof(word))) {
		if (!strncmp(word, "w=", 2)) {
			v = strtoul(word + 2, NULL, 0);
			if (v < 256 && wire_width_lanes((u8)v))
				*lanes = wire_width_lanes((u8)v);
		} else if (!strncmp(word, "s=", 2)) {
			v = strtoul(word + 2, NULL, 0);
			*speed = v == 1 ? WIRE_SPEED_SDR : v == 2 ? WIRE_SPEED_DDR : v == 4 ? WIRE_SPEED_QDR : *speed;
		} else {
			fabric_build_rate(word, lanes, speed);
		}
	}
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
	link_rate(l, &r->lanes, &r->speed);
	r->node = (u32)f->node;
	r->port = (u8)port;
	r->peer_port = peer_port > 255 ? 255 : (u8)peer_port;
	r->line = f->b->line;
	r->peer = strdup(peer);
	return r->peer ? 0 : fabric_build_error(f->b, "out of memory");
}

/* Switch 8 "S-..." # "name" ...; where there is no name in the comment, the id is the name. */
static int node_line(struct netfile *f, struct fabric_line *l, u8 type)
{
	struct fabric_topology_node *n;
	char word[32], id[FABRIC_NAME_MAX], name[FABRIC_NAME_MAX];
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
	return fabric_build_name(f->b, (u32)f->node, netfile_quoted(l, name, sizeof(name)) ? name : id);
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
			return fabric_build_error(b, "no node is called \"%.60s\"", r->peer);
		if (!r->peer_port && b->t->nodes[peer].type == NODE_TYPE_SWITCH)
			continue; /* a switch's own port has no cable */
		b->lanes = r->lanes;
		b->speed = r->speed;
		err = fabric_build_link(b, r->node, r->port, (u32)peer, r->peer_port);
		if (err)
			return err;
	}
	return 0;
}

/* Comments that start with #muslin: ip "h1" 10.0.0.1 */
static int netfile_remarks(struct fabric_build *b, const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	struct fabric_line l;
	char word[32];
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
		else
			err = fabric_build_error(b, "say: #muslin ip \"HOST\" ADDRESS, or #muslin trunk \"NODE:PORT\" "
						    "to|listen ADDRESS");
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
		err = netfile_remarks(b, text, len);
	for (i = 0; i < f.nrefs; i++)
		free(f.refs[i].peer);
	free(f.refs);
	return err;
}
