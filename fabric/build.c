// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Topology builder: adds nodes, names, GUIDs and links, and checks each. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "emu/lib/spec.h"
#include "emu/wire/ip.h"
#include "emu/wire/smp.h"
#include "fabric/build.h"

#define NODES_MAX 48000 /* unicast LIDs end at 0xbfff */

int fabric_build_error(struct fabric_build *b, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	n = b->line ? snprintf(b->err, b->err_len, "%s:%u: ", b->file, b->line)
		    : snprintf(b->err, b->err_len, "%s: ", b->file);
	if (n < 0 || (size_t)n >= b->err_len)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(b->err + n, b->err_len - (size_t)n, fmt, ap);
	va_end(ap);
	for (p = b->err; *p; p++) /* words of a file that is no topology */
		if (iscntrl((u8)*p))
			*p = '?';
	return -EINVAL;
}

/* Limited: a dump without rates has one for each line. */
#define WARNINGS_MAX 8
void fabric_build_warn(struct fabric_build *b, const char *fmt, ...)
{
	char *old = b->t->warning, *all, text[200] = "further lines like these are not listed";
	va_list ap;

	if (++b->warnings > WARNINGS_MAX + 1)
		return;
	va_start(ap, fmt);
	if (b->warnings <= WARNINGS_MAX)
		vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (asprintf(&all, "%s%s%s:%u: %s", old ? old : "", old ? "\n" : "", b->file, b->line, text) < 0)
		return;
	free(old);
	b->t->warning = all;
}

/* Index */

static u64 hash_string(const char *s)
{
	u64 h = 0xcbf29ce484222325ull;

	for (; *s; s++)
		h = (h ^ (u8)*s) * 0x100000001b3ull;
	return h;
}

static u64 hash_guid(u64 g)
{
	g ^= g >> 32;
	g *= 0xd6e8feb86659fd93ull;
	return g ^ g >> 32;
}

static int index_grow(struct fabric_index *x)
{
	struct fabric_index n = { .cap = x->cap ? x->cap * 2 : 64 };
	u32 i, at;

	n.hash = calloc(n.cap, sizeof(*n.hash));
	n.node = calloc(n.cap, sizeof(*n.node));
	if (!n.hash || !n.node) {
		free(n.hash);
		free(n.node);
		return -ENOMEM;
	}
	for (i = 0; i < x->cap; i++) {
		if (!x->node[i])
			continue;
		for (at = x->hash[i] & (n.cap - 1); n.node[at]; at = (at + 1) & (n.cap - 1))
			;
		n.hash[at] = x->hash[i];
		n.node[at] = x->node[i];
	}
	n.used = x->used;
	free(x->hash);
	free(x->node);
	*x = n;
	return 0;
}

static int index_add(struct fabric_index *x, u64 hash, u32 node)
{
	u32 at;

	if (x->used * 2 >= x->cap && index_grow(x))
		return -ENOMEM;
	for (at = hash & (x->cap - 1); x->node[at]; at = (at + 1) & (x->cap - 1))
		;
	x->hash[at] = hash;
	x->node[at] = node + 1;
	x->used++;
	return 0;
}

/* The next candidate under @hash, from *at (initially 0) on; -1 at the end. */
static s64 index_next(const struct fabric_index *x, u64 hash, u32 *at)
{
	for (; x->cap && *at < x->cap; (*at)++) {
		u32 i = (u32)(hash + *at) & (x->cap - 1);

		if (!x->node[i])
			return -1;
		if (x->hash[i] == hash) {
			(*at)++;
			return x->node[i] - 1;
		}
	}
	return -1;
}

s64 fabric_build_find_id(struct fabric_build *b, const char *id)
{
	u64 h = hash_string(id);
	u32 at = 0;
	s64 n;

	while ((n = index_next(&b->ids, h, &at)) >= 0)
		if (b->t->nodes[n].id && !strcmp(b->t->nodes[n].id, id))
			return n;
	return -1;
}

s64 fabric_build_find_name(struct fabric_build *b, const char *name)
{
	u64 h = hash_string(name);
	u32 at = 0;
	s64 n;

	while ((n = index_next(&b->names, h, &at)) >= 0)
		if (!strcmp(b->t->nodes[n].name, name) || !strcmp(b->t->nodes[n].desc, name))
			return n;
	return -1;
}

/* Nodes */

void *fabric_build_append(void *list, u32 *n, size_t size)
{
	void **p = list, *more;

	if (!(*n & (*n - 1))) {
		more = realloc(*p, (*n ? 2 * *n : 1) * size);
		if (!more)
			return NULL;
		*p = more;
	}
	return memset((u8 *)*p + (*n)++ * size, 0, size);
}

s64 fabric_build_node(struct fabric_build *b, u8 type, const char *id, u32 nports)
{
	u32 most = type == NODE_TYPE_CA ? FABRIC_CA_PORTS_MAX : FABRIC_SWITCH_PORTS_MAX;
	u32 node = b->t->nnodes, p;
	struct fabric_topology_node *n;

	if (!nports || nports > most)
		return fabric_build_error(b, "a node of this type has 1 to %u ports, not %u", most, nports);
	if (b->t->nnodes >= NODES_MAX)
		return fabric_build_error(b, "more than %u nodes", NODES_MAX);
	if (id && fabric_build_find_id(b, id) >= 0)
		return fabric_build_error(b, "node \"%.60s\" exists already (line %u)", id,
					  b->t->nodes[fabric_build_find_id(b, id)].line);
	n = fabric_build_append(&b->t->nodes, &b->t->nnodes, sizeof(*n));
	if (!n)
		return fabric_build_error(b, "out of memory");
	n->type = type;
	n->nports = nports;
	n->line = b->line;
	n->vendid = 0x0002c9;
	n->devid = type == NODE_TYPE_CA ? 0x1013 : 0xb924;
	n->id = id ? strdup(id) : NULL;
	n->ports = calloc(nports + 1u, sizeof(*n->ports));
	n->ip = type == NODE_TYPE_CA ? calloc(nports + 1u, sizeof(*n->ip)) : NULL;
	if (!n->ports || (type == NODE_TYPE_CA && !n->ip) ||
	    (id && (!n->id || index_add(&b->ids, hash_string(id), node))))
		return fabric_build_error(b, "out of memory");
	for (p = 0; p <= nports; p++) {
		n->ports[p].peer = FABRIC_NO_PEER;
		n->ports[p].delay_ps = FABRIC_DELAY_DEFAULT;
	}
	return node;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

int fabric_build_name_check(struct fabric_build *b, const char *name, bool host)
{
	if (strlen(name) >= FABRIC_NAME_MAX)
		return fabric_build_error(b, "the name \"%.60s...\" has more than %d characters", name,
					  FABRIC_NAME_MAX - 1);
	if (host && (is_dots(name) || strchr(name, '/')))
		return fabric_build_error(
			b,
			"\"%.60s\": a host has a directory of its name, which has no \"/\" and is not \".\" or \"..\"",
			name);
	return 0;
}

/* Of two nodes with the same description, the second one gets its id as name; a host that cannot have its name, too. */
int fabric_build_name(struct fabric_build *b, u32 node, const char *name)
{
	struct fabric_topology_node *n = &b->t->nodes[node];

	if (!name || !*name)
		return fabric_build_error(b, "a node without a name");
	if (!n->id && fabric_build_name_check(b, name, n->ip != NULL))
		return -EINVAL;
	if (fabric_build_find_name(b, name) >= 0 || (n->ip && is_dots(name))) {
		if (!n->id || fabric_build_find_name(b, n->id) >= 0)
			return fabric_build_error(b, "the name \"%.60s\" is taken (line %u)", name,
						  b->t->nodes[fabric_build_find_name(b, name)].line);
		name = n->id;
	}
	snprintf(n->name, sizeof(n->name), "%s", name);
	return index_add(&b->names, hash_string(n->name), node) ? fabric_build_error(b, "out of memory") : 0;
}

int fabric_build_guid(struct fabric_build *b, u32 node, u64 guid)
{
	u64 h = hash_guid(guid);
	u32 at = 0;
	s64 n;

	if (!guid)
		return fabric_build_error(b, "a GUID is not 0");
	while ((n = index_next(&b->guids, h, &at)) >= 0)
		if (b->t->nodes[n].guid == guid)
			return fabric_build_error(
				b, "GUID 0x%016llx is that of \"%.60s\" already (line %u)", (unsigned long long)guid,
				b->t->nodes[n].id ? b->t->nodes[n].id : b->t->nodes[n].name, b->t->nodes[n].line);
	b->t->nodes[node].guid = guid;
	return index_add(&b->guids, h, node) ? fabric_build_error(b, "out of memory") : 0;
}

int fabric_build_port_guid(struct fabric_build *b, u32 node, u8 port, u64 guid)
{
	u64 h = hash_guid(guid);
	u32 at = 0, p;
	s64 n;

	while ((n = index_next(&b->port_guids, h, &at)) >= 0)
		for (p = 1; p <= b->t->nodes[n].nports; p++)
			if (b->t->nodes[n].ports[p].guid == guid)
				return fabric_build_error(b,
							  "port GUID 0x%016llx is that of port %u of \"%.60s\" already",
							  (unsigned long long)guid, p, b->t->nodes[n].id);
	b->t->nodes[node].ports[port].guid = guid;
	return index_add(&b->port_guids, h, node) ? fabric_build_error(b, "out of memory") : 0;
}

/* Links */

static int link_end(struct fabric_build *b, u32 a, u32 ap, u32 z, u32 zp)
{
	struct fabric_topology_node *n = &b->t->nodes[a];
	struct fabric_topology_port *p;

	if (!ap || ap > n->nports)
		return fabric_build_error(b, "\"%.60s\" has ports 1 to %u, not %u", n->id ? n->id : n->name, n->nports,
					  ap);
	p = &n->ports[ap];
	if (p->peer != FABRIC_NO_PEER && (p->peer != z || p->peer_port != zp))
		return fabric_build_error(b, "port %u of \"%.60s\" is wired already (line %u)", ap,
					  n->id ? n->id : n->name, p->line);
	if (p->peer == FABRIC_NO_PEER) {
		p->line = b->line;
		p->lanes = b->lanes;
		p->speed = b->speed;
		p->disabled |= b->disabled;
		p->delay_ps = b->delay_ps;
	}
	p->peer = z;
	p->peer_port = zp;
	return 0;
}

int fabric_build_link(struct fabric_build *b, u32 a, u32 ap, u32 z, u32 zp)
{
	int err = a == z && ap == zp ? fabric_build_error(b, "port %u is wired to itself", ap) : 0;

	if (!err)
		err = link_end(b, a, ap, z, zp);
	return err ? err : link_end(b, z, zp, a, ap);
}

int fabric_build_rate(struct fabric_build *b, const char *word, u8 *lanes, u8 *speed)
{
	char *end;
	unsigned long n = strtoul(word, &end, 10);
	enum wire_speed found;
	const char *p;

	if (!isdigit((u8)word[0]) || end == word || (*end != 'x' && *end != 'X') || !end[1])
		return 0;
	for (p = end + 1; isalnum((u8)*p) || *p == '?'; p++)
		;
	if (*p)
		return 0;
	if (n != 1 && n != 2 && n != 4 && n != 8 && n != 12)
		return fabric_build_error(b, "\"%.40s\": a link has 1, 2, 4, 8 or 12 lanes", word);
	found = wire_speed_from_name(end + 1);
	if (end[1] == '?') { /* ibnetdiscover writes this for an unknown one */
		fabric_build_warn(b, "the speed of \"%.40s\" is not known: it is taken as SDR", word);
		found = WIRE_SPEED_SDR;
	} else if (!found || !wire_link_rate(found, (unsigned int)n)) {
		return fabric_build_error(
			b,
			"\"%.40s\" is not a rate: speeds are SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR and, to 4x, XDR",
			word);
	}
	*lanes = (u8)n;
	*speed = (u8)found;
	return 1;
}

int fabric_build_place(struct fabric_build *b, struct fabric_line *l, u32 *node, u32 *port)
{
	char name[2 * FABRIC_NAME_MAX], more[8] = "", *colon;
	s64 n;

	if (!fabric_line_word(l, name, sizeof(name) - sizeof(more)) || name[0] == '#')
		return fabric_build_error(b, "a port is missing: expected NODE:PORT");
	if (l->p < l->end && *l->p == ':' && fabric_line_word(l, more, sizeof(more))) /* it was in quotes */
		strcat(name, more);
	colon = strrchr(name, ':');
	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return fabric_build_error(b, "\"%.60s\" is not a port: expected NODE:PORT", name);
	*colon = 0;
	n = fabric_build_find_name(b, name);
	if (n < 0)
		n = fabric_build_find_id(b, name);
	if (n < 0)
		return fabric_build_error(b, "there is no node \"%.60s\"", name);
	*node = (u32)n;
	*port = (u32)strtoul(colon + 1, NULL, 10);
	if (*port && *port <= b->t->nodes[n].nports)
		return 0;
	return fabric_build_error(b, "\"%.60s\" has ports 1 to %u, not %s", name, b->t->nodes[n].nports, colon + 1);
}

/* Lines */

bool fabric_line_next(const char **p, const char *end, struct fabric_line *l)
{
	const char *nl;

	if (*p >= end)
		return false;
	nl = memchr(*p, '\n', (size_t)(end - *p));
	l->p = *p;
	l->end = nl ? nl : end;
	*p = nl ? nl + 1 : end;
	if (l->end > l->p && l->end[-1] == '\r')
		l->end--;
	return true;
}

bool fabric_line_word(struct fabric_line *l, char *word, size_t size)
{
	bool quoted;
	size_t n = 0;

	while (l->p < l->end && isspace((u8)*l->p))
		l->p++;
	if (l->p == l->end)
		return false;
	quoted = *l->p == '"';
	l->p += quoted;
	while (l->p < l->end && (quoted ? *l->p != '"' : !isspace((u8)*l->p))) {
		if (n + 1 < size && *l->p)
			word[n++] = *l->p;
		l->p++;
	}
	if (quoted && l->p < l->end)
		l->p++;
	word[n] = 0;
	return true;
}

/* Addresses */

static bool parse_addr(const char *word, int af, void *addr, u8 *plen, u8 dflt)
{
	const char *slash = strchr(word, '/');
	char buf[64], *end;
	unsigned long len = dflt;

	snprintf(buf, sizeof(buf), "%.*s", slash ? (int)min(slash - word, (ptrdiff_t)60) : 60, word);
	if (slash) {
		len = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end || len < 1 || len > (af == AF_INET ? 32 : 128))
			return false;
	}
	*plen = len;
	return inet_pton(af, buf, addr) == 1;
}

int fabric_build_ip(struct fabric_build *b, struct fabric_line *l)
{
	char name[FABRIC_NAME_MAX + 8], word[80], *colon;
	bool v4_given = false, v6_given = false;
	struct fabric_ip *ip;
	struct ip_addr a;
	u64 port = 1;
	__be32 v4;
	s64 n;

	if (!fabric_line_word(l, name, sizeof(name)))
		return fabric_build_error(b, "ip needs a host and an address");
	n = fabric_build_find_name(b, name);
	colon = strrchr(name, ':');
	if (n < 0 && colon) {
		*colon = 0;
		n = fabric_build_find_name(b, name);
		if (!spec_number(colon + 1, FABRIC_CA_PORTS_MAX, &port))
			port = 0;
	}
	if (n < 0 || !b->t->nodes[n].ip)
		return fabric_build_error(b, "there is no host \"%.60s\"", name);
	if (!port || port > b->t->nodes[n].nports)
		return fabric_build_error(b, "\"%.60s\" has ports 1 to %u", name, b->t->nodes[n].nports);
	ip = &b->t->nodes[n].ip[port];
	while (fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		bool *given = &v4_given;

		if (parse_addr(word, AF_INET, &v4, &ip->v4_len, 8)) {
			a = ip_addr_v4(be32_to_cpu(v4));
			ip->v4 = be32_to_cpu(v4);
			ip->v4_line = b->line;
		} else if (parse_addr(word, AF_INET6, a.raw, &ip->v6_len, 64)) {
			given = &v6_given;
			memcpy(ip->v6, a.raw, sizeof(ip->v6));
			ip->v6_line = b->line;
		} else {
			return fabric_build_error(b, "\"%.60s\" is not an IP address", word);
		}
		if (!ip_addr_is_host(&a))
			return fabric_build_error(b, "\"%.60s\" is not an address of one host on a network", word);
		if (*given)
			return fabric_build_error(b, "\"%.60s\": a port has one IPv4 and one IPv6 address", word);
		*given = true;
	}
	return v4_given || v6_given ? 0 : fabric_build_error(b, "ip needs an address");
}

/* An option of a RoCE port. 1: valid, 0: another option. */
static int roce_option(struct fabric_build *b, const char *word)
{
	static const char *const names[] = { "loss", "ce" }, *const known[] = { "dcqcn", "mode=v1", "mode=v2" };
	const char *value = strchr(word, '=');
	char *end;
	double p;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(word, known[i]))
			return 1;
	if (!value)
		return 0;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strncmp(word, names[i], strlen(names[i])) || word + strlen(names[i]) != value)
			continue;
		p = strtod(++value, &end);
		if (end != value && !*end && p >= 0 && p <= 1)
			return 1;
		return fabric_build_error(b, "%s is from 0 to 1, not \"%.40s\"", names[i], value);
	}
	return fabric_build_error(b, "\"%.40s\": expected mode=v2, dcqcn, ce=P or loss=P", word);
}

/* An MPA option of an iWARP port, see siw/siw.h. 1: valid, 0: another option. */
static int iwarp_option(struct fabric_build *b, const char *word)
{
	static const char *const known[] = { "mpa=1",       "mpa=2",    "crc=on",    "crc=off",  "markers=on",
					     "markers=off", "rtr=none", "rtr=write", "rtr=read", "rtr=zero",
					     "uring=auto",  "uring=on", "uring=off" };
	char *end;
	u32 i;

	if (!strchr(word, '='))
		return 0;
	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(word, known[i]))
			return 1;
	if (!strncmp(word, "start=", 6) && isdigit((u8)word[6]) && strtoul(word + 6, &end, 10) && !strcmp(end, "ms"))
		return 1;
	return fabric_build_error(b,
				  "\"%.40s\": expected mpa=1|2, crc=on|off, markers=on|off, rtr=none|write|read|zero, "
				  "uring=auto|on|off, or start=Nms",
				  word);
}

/* An option, or an address or interface. 1: the latter, 0: an option, or negative (reported). */
static int bound_word(struct fabric_build *b, struct fabric_ip *ip, const char *kind, const char *word)
{
	int got = strcmp(kind, "iwarp") ? roce_option(b, word) : iwarp_option(b, word);
	u8 addr[16];
	u8 len = 0;
	__be32 v4;

	if (got)
		return min(got, 0);
	if (strchr(word, '/'))
		return fabric_build_error(b, "\"%.60s\": an address of the machine has no length here", word);
	if (parse_addr(word, AF_INET, &v4, &len, 32)) {
		if (!ip->v4)
			ip->v4 = be32_to_cpu(v4);
		ip->v4_len = 32;
	} else if (parse_addr(word, AF_INET6, addr, &len, 128)) {
		if (!ip->v6_len)
			memcpy(ip->v6, addr, sizeof(addr));
		ip->v6_len = 128;
	} else if (strlen(word) >= 16 || strpbrk(word, ":/ ")) { /* the daemon checks later that the interface exists */
		return fabric_build_error(b, "\"%.60s\" is neither an IP address nor an interface", word);
	}
	return 1;
}

s64 fabric_build_bound_node(struct fabric_build *b, const char *name, const char *binding)
{
	s64 n = fabric_build_node(b, NODE_TYPE_CA, NULL, 1);
	int err = n < 0 ? (int)n : fabric_build_name(b, (u32)n, name);

	if (err)
		return err;
	b->t->nodes[n].binding = strdup(binding);
	return b->t->nodes[n].binding ? n : fabric_build_error(b, "out of memory");
}

int fabric_build_bound(struct fabric_build *b, const char *name, const char *kind, struct fabric_line *l)
{
	struct fabric_ip ip = { .v4 = 0 };
	char word[80], text[256];
	size_t at = (size_t)snprintf(text, sizeof(text), "%s", kind);
	bool any = false;
	int got;
	s64 n;

	while (fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		got = bound_word(b, &ip, kind, word);
		if (got < 0)
			return got;
		any |= got > 0;
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s", word);
		if (at >= sizeof(text))
			return fabric_build_error(b, "too many addresses");
	}
	if (!any)
		return fabric_build_error(b, "%s needs an address or an interface of the machine", kind);
	n = fabric_build_bound_node(b, name, text);
	if (n >= 0)
		b->t->nodes[n].ip[1] = ip;
	return n < 0 ? (int)n : 0;
}
