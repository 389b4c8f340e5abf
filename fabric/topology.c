// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Topologies: loading, selection of the parser, and defaults after parsing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/wire/smp.h"
#include "fabric/build.h"
#include "fabric/topology_ether.h"

#define TOPOLOGY_FILE_MAX (256u << 20)

/* Default GUIDs and names of nodes. */
static int topology_complete(struct fabric_build *b)
{
	struct fabric_topology *t = b->t;
	u64 next = 0x0002c9fe00000000ull;
	u32 i;
	int err;

	if (!t->nnodes)
		return fabric_build_error(b, "no nodes: it needs an InfiniBand switch, or a host with an adapter");
	for (i = 0; i < t->nnodes; i++) {
		struct fabric_topology_node *n = &t->nodes[i];

		b->line = n->line;
		if (!n->guid) {
			next += 0x10;
			err = fabric_build_guid(b, i, next);
			if (err)
				return err;
		}
		if (!n->sysguid)
			n->sysguid = n->guid;
		if (!n->name[0]) {
			err = fabric_build_name(b, i, n->id);
			if (err)
				return err;
		}
		if (!n->desc[0])
			snprintf(n->desc, sizeof(n->desc), "%s", n->name);
	}
	err = fabric_build_shards(b);
	err = err ? err : fabric_build_ether_check(b);
	return err ? err : fabric_build_addresses(b);
}

static void index_fini(struct fabric_index *x)
{
	free(x->hash);
	free(x->node);
}

struct fabric_topology *fabric_topology_parse(const char *text, size_t len, const char *file, char *err, size_t err_len)
{
	struct fabric_build b = { .file = file,
				  .err = err,
				  .err_len = err_len,
				  .lanes = 4,
				  .speed = WIRE_SPEED_HDR,
				  .delay_ps = FABRIC_DELAY_DEFAULT };
	int rc;

	if (err_len)
		err[0] = 0;
	b.t = calloc(1, sizeof(*b.t));
	if (!b.t)
		return NULL;
	b.t->mtu = WIRE_MTU_4096;
	b.t->vl_cap = 4;
	b.t->propagation_ps = 25000; /* five metres */
	b.t->switch_ps = 130000;
	rc = fabric_shape_match(text, len) ? fabric_shape_parse(&b, text, len) : fabric_netfile_parse(&b, text, len);
	if (!rc)
		rc = topology_complete(&b);
	index_fini(&b.names);
	index_fini(&b.ids);
	index_fini(&b.guids);
	index_fini(&b.port_guids);
	free(b.patterns);
	if (!rc)
		return b.t;
	fabric_topology_destroy(b.t);
	return NULL;
}

static char *read_file(FILE *f, size_t *len)
{
	size_t cap = 1 << 16, n;
	char *text = malloc(cap), *more;

	*len = 0;
	while (text && (n = fread(text + *len, 1, cap - *len, f)) > 0) {
		*len += n;
		if (*len < cap)
			continue;
		more = cap < TOPOLOGY_FILE_MAX ? realloc(text, cap *= 2) : NULL;
		if (!more) {
			free(text);
			errno = EFBIG;
			return NULL;
		}
		text = more;
	}
	if (text && ferror(f)) {
		free(text);
		return NULL;
	}
	return text;
}

struct fabric_topology *fabric_topology_load(const char *path, char *err, size_t err_len)
{
	struct fabric_topology *t;
	FILE *f = fopen(path, "re");
	size_t len = 0;
	char *text = f ? read_file(f, &len) : NULL;

	if (!text)
		snprintf(err, err_len, "%s: %s", *path ? path : "\"\"", strerror(errno));
	if (f)
		fclose(f);
	t = text ? fabric_topology_parse(text, len, path, err, err_len) : NULL;
	free(text);
	return t;
}

struct fabric_topology *fabric_topology_open(const char *topology, char *err, size_t err_len)
{
	/*
	 * If no such file exists, only a path with a slash is a file name: "leafs 2 spines" is then reported as wrong
	 * words.
	 */
	bool words = strpbrk(topology, " \t\n=") && !strchr(topology, '/');

	words |= strchr(topology, '\n') || fabric_shape_match(topology, strlen(topology));
	if (words && access(topology, F_OK))
		return fabric_topology_parse(topology, strlen(topology), "topology", err, err_len);
	return fabric_topology_load(topology, err, err_len);
}

struct fabric_topology *fabric_topology_default(void)
{
	static const char text[] = "leafs 2 spines 2 hosts 4\n";
	char err[80];

	return fabric_topology_parse(text, sizeof(text) - 1, "default", err, sizeof(err));
}

u64 fabric_topology_port_guid(const struct fabric_topology_node *n, u32 num)
{
	if (n->type == NODE_TYPE_SWITCH)
		return n->guid;
	return n->ports[num].guid ? n->ports[num].guid : n->guid + num;
}

int fabric_topology_keep_lids(struct fabric_topology *t)
{
	u32 i, p, n = 0;
	u8 lmc = 0;

	for (i = 0; i < t->nnodes; i++)
		for (p = 0; p <= t->nodes[i].nports; p++) {
			n += t->nodes[i].ports[p].lid != 0;
			lmc = max(lmc, t->nodes[i].ports[p].lmc);
		}
	t->keep_lids = n;
	return n ? lmc : -ENOENT;
}

void fabric_topology_destroy(struct fabric_topology *t)
{
	u32 i;

	if (!t)
		return;
	for (i = 0; i < t->nnodes; i++) {
		free(t->nodes[i].id);
		free(t->nodes[i].ports);
		free(t->nodes[i].ip);
		free(t->nodes[i].binding);
	}
	for (i = 0; i < t->ntrunks; i++) {
		free(t->trunks[i].address);
		free(t->trunks[i].key);
	}
	for (i = 0; i < t->nshards; i++) {
		free(t->shards[i].address);
		free(t->shards[i].key);
	}
	free(t->trunks);
	free(t->shards);
	free(t->nodes);
	free(t->partition_file);
	free(t->partition_place);
	free(t->warning);
	if (t->ether) {
		free(t->ether->sw);
		free(t->ether->cable);
		free(t->ether->station);
		free(t->ether);
	}
	free(t);
}
