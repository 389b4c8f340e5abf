// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Trunks of a topology: parser of their lines. */
#include <stdlib.h>
#include <sys/un.h>

#include "emu/lib/host_port.h"
#include "emu/wire/smp.h"
#include "fabric/build.h"

#define TRUNK_LINE "expected trunk NODE:PORT to|listen ADDRESS [peer GUID[:PORT]] [key FILE] [tls on|off]"

/* Adds the ports that trunks name to those of the switch's shape. */
static int trunk_grow(struct fabric_build *b, struct fabric_topology_node *n, u32 port)
{
	struct fabric_topology_port *more;
	u32 p;

	if (n->type != NODE_TYPE_SWITCH || port > FABRIC_SWITCH_PORTS_MAX)
		return fabric_build_error(b, "\"%.60s\" has ports 1 to %u, not %u", n->name, n->nports, port);
	more = realloc(n->ports, (port + 1) * sizeof(*more));
	if (!more)
		return fabric_build_error(b, "out of memory");
	n->ports = more;
	for (p = n->nports + 1u; p <= port; p++)
		more[p] = (struct fabric_topology_port){ .peer = FABRIC_NO_PEER };
	n->nports = (u8)port;
	return 0;
}

static int trunk_place(struct fabric_build *b, const char *word, struct fabric_topology_trunk *tt)
{
	char name[FABRIC_NAME_MAX + 8], *colon, *end;
	struct fabric_topology_node *n;
	unsigned long port;
	s64 node;
	u32 i;
	int err;

	snprintf(name, sizeof(name), "%s", word);
	colon = strrchr(name, ':');
	if (!colon)
		return fabric_build_error(b, TRUNK_LINE);
	*colon = 0;
	port = strtoul(colon + 1, &end, 10);
	node = fabric_build_find_name(b, name);
	if (node < 0)
		return fabric_build_error(b, "there is no node \"%.60s\"", name);
	n = &b->t->nodes[node];
	if (end == colon + 1 || *end || !port || port > FABRIC_SWITCH_PORTS_MAX || n->binding)
		return fabric_build_error(b, "\"%.60s\" has no port \"%.20s\"", name, colon + 1);
	err = port > n->nports ? trunk_grow(b, n, (u32)port) : 0;
	if (err)
		return err;
	for (i = 0; i < b->t->ntrunks; i++)
		if (b->t->trunks[i].node == node && b->t->trunks[i].port == port)
			return fabric_build_error(b, "%.60s:%lu has a trunk already", name, port);
	if (n->ports[port].peer != FABRIC_NO_PEER)
		return fabric_build_error(b, "port %lu of \"%.60s\" is wired already (line %u)", port, name,
					  n->ports[port].line);
	n->ports[port].lanes = b->lanes;
	n->ports[port].speed = b->speed;
	tt->node = (u32)node;
	tt->line = b->line;
	tt->port = (u8)port;
	return 0;
}

/* Parses "0x0002c90400000010:5", or only the GUID. */
static bool trunk_peer(const char *word, struct fabric_topology_trunk *tt)
{
	unsigned long port = 0;
	char *end;

	tt->peer_guid = strtoull(word, &end, 16);
	if (*end == ':')
		port = strtoul(end + 1, &end, 10);
	tt->peer_port = (u8)port;
	return tt->peer_guid && !*end && port <= FABRIC_SWITCH_PORTS_MAX;
}

/* Is the address local? A peer on another machine needs a key. */
static bool trunk_is_local(const char *address)
{
	return address[0] == '/' || !strncmp(address, "127.", 4) || !strncmp(address, "[::1]:", 6);
}

int fabric_build_address(struct fabric_build *b, const char *address, struct fabric_build_trust *trust)
{
	char host[HOST_MAX];

	if (address[0] == '/' ? strlen(address) >= sizeof(((struct sockaddr_un *)0)->sun_path)
			      : !host_port_split(address, host, sizeof(host)))
		return fabric_build_error(
			b, "\"%.60s\": an address of a trunk is the path of a socket (/...), or like 192.0.2.7:4000",
			address);
	if (!trust->tls_given)
		trust->tls = trust->key && !trunk_is_local(address);
	if (trust->tls && (!trust->key || address[0] == '/'))
		return fabric_build_error(b, "tls on: it needs an address of TCP and: key FILE");
	if (trust->key || trunk_is_local(address))
		return 0;
	return fabric_build_error(b, "a trunk at \"%.60s\", which is not of this machine, needs: key FILE", address);
}

int fabric_build_trust(struct fabric_build *b, const char *usage, const char *word, struct fabric_line *l,
		       struct fabric_build_trust *trust)
{
	bool key = !strcmp(word, "key");
	char value[256];

	if (!key && strcmp(word, "tls") != 0)
		return 0;
	if (!fabric_line_word(l, value, sizeof(value)) || (key ? trust->key != NULL : trust->tls_given) ||
	    (!key && strcmp(value, "on") != 0 && strcmp(value, "off") != 0))
		return fabric_build_error(b, "%s", usage);
	if (key) {
		trust->key = strdup(value);
		return trust->key ? 1 : fabric_build_error(b, "out of memory");
	}
	trust->tls_given = true;
	trust->tls = !strcmp(value, "on");
	return 1;
}

static int trunk_options(struct fabric_build *b, struct fabric_line *l, struct fabric_topology_trunk *tt)
{
	struct fabric_build_trust trust = { .key = NULL };
	char word[256], value[256];
	int err = 0;

	while (err >= 0 && fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		err = fabric_build_trust(b, TRUNK_LINE, word, l, &trust);
		if (!err &&
		    (strcmp(word, "peer") != 0 || !fabric_line_word(l, value, sizeof(value)) || !trunk_peer(value, tt)))
			err = fabric_build_error(b, TRUNK_LINE);
	}
	err = err < 0 ? err : fabric_build_address(b, tt->address, &trust);
	tt->key = trust.key;
	tt->tls = trust.tls;
	return err;
}

int fabric_build_trunk(struct fabric_build *b, struct fabric_line *l)
{
	char place[FABRIC_NAME_MAX + 8], how[8], address[160];
	struct fabric_topology_trunk found = { .node = 0 }, *tt;
	int err;

	if (!fabric_line_word(l, place, sizeof(place)) || !fabric_line_word(l, how, sizeof(how)) ||
	    !fabric_line_word(l, address, sizeof(address)) || (strcmp(how, "to") && strcmp(how, "listen")))
		return fabric_build_error(b, TRUNK_LINE);
	err = trunk_place(b, place, &found);
	if (err)
		return err;
	tt = fabric_build_append(&b->t->trunks, &b->t->ntrunks, sizeof(*tt));
	if (!tt)
		return fabric_build_error(b, "out of memory");
	*tt = found;
	tt->listen = !strcmp(how, "listen");
	if (!tt->listen && address[0] == '*')
		return fabric_build_error(b, "\"%.60s\" is an address to listen at, not one to connect to", address);
	tt->address = strdup(address);
	if (!tt->address)
		return fabric_build_error(b, "out of memory");
	return trunk_options(b, l, tt);
}
