// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lists of operations: created from a seed, written to a file and read from it. Each operation has a seed of its own,
 * so that it does not change when others are removed from the list.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxe/chaos/chaos_internal.h"

static struct {
	const char *name;
	u32 weight;
} kinds[] = {
	[CHAOS_SEND] = { "send", 400 },
	[CHAOS_RECV] = { "recv", 220 },
	[CHAOS_RUN] = { "run", 120 },
	[CHAOS_BAD_SEND] = { "bad-send", 16 },
	[CHAOS_BAD_RECV] = { "bad-recv", 6 },
	[CHAOS_ERR] = { "err", 6 },
	[CHAOS_RECONNECT] = { "reconnect", 40 },
	[CHAOS_REBUILD] = { "rebuild", 8 },
	[CHAOS_SQD] = { "sqd", 10 },
	[CHAOS_RTS] = { "rts", 24 },
	[CHAOS_DEREG] = { "dereg", 6 },
	[CHAOS_REG] = { "reg", 12 },
	[CHAOS_BIND] = { "bind", 14 },
	[CHAOS_INVALIDATE] = { "invalidate", 10 },
	[CHAOS_WINDOW_WRITE] = { "window-write", 20 },
	[CHAOS_KILL] = { "kill", 4 },
	[CHAOS_WIRE] = { "wire", 10 },
	[CHAOS_DOWN] = { "down", 4 },
	[CHAOS_BUSY] = { "busy", 10 },
	[CHAOS_NO_POLL] = { "no-poll", 4 },
	[CHAOS_UNMAP] = { "unmap", 3 },
	[CHAOS_CHECK] = { "check", 10 },
};
static_assert(ARRAY_SIZE(kinds) == CHAOS_KINDS, "a name for each kind");

const char *chaos_kind_name(enum chaos_kind k)
{
	return kinds[k].name;
}

int chaos_kind_without(const char *name)
{
	u32 i;

	for (i = 0; i < CHAOS_KINDS; i++)
		if (!strcmp(name, kinds[i].name)) {
			kinds[i].weight = 0;
			return 0;
		}
	return -EINVAL;
}

static u8 kind_draw(struct rng *rng)
{
	u32 sum = 0, i, at;

	for (i = 0; i < CHAOS_KINDS; i++)
		sum += kinds[i].weight;
	at = (u32)(rng_next(rng) % sum);
	for (i = 0; at >= kinds[i].weight; i++)
		at -= kinds[i].weight;
	return (u8)i;
}

void chaos_list_make(struct chaos_list *l, u64 seed, u32 n)
{
	struct rng rng = { seed };
	u32 i;

	*l = (struct chaos_list){ .seed = seed, .n = n, .op = calloc(n, sizeof(*l->op)) };
	if (!l->op)
		abort();
	for (i = 0; i < n; i++)
		l->op[i] = (struct chaos_op){ kind_draw(&rng), (u8)(rng_next(&rng) >> 8), rng_next(&rng) };
}

int chaos_list_save(const struct chaos_list *l, const char *path)
{
	FILE *f = fopen(path, "w");
	u32 i;

	if (!f)
		return -errno;
	fprintf(f, "seed %" PRIu64 "\n", (uint64_t)l->seed);
	for (i = 0; i < l->n; i++)
		fprintf(f, "%s %u %#" PRIx64 "\n", kinds[l->op[i].kind].name, l->op[i].conn, (uint64_t)l->op[i].r);
	return fclose(f) ? -errno : 0;
}

static int op_parse(const char *line, struct chaos_op *op)
{
	char name[32];
	unsigned int conn;
	uint64_t r;
	u32 i;

	if (sscanf(line, "%31s %u %" SCNx64, name, &conn, &r) != 3)
		return -EINVAL;
	for (i = 0; i < CHAOS_KINDS; i++)
		if (!strcmp(name, kinds[i].name)) {
			*op = (struct chaos_op){ (u8)i, (u8)conn, r };
			return 0;
		}
	return -EINVAL;
}

int chaos_list_load(struct chaos_list *l, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[128];
	uint64_t seed;
	int err = 0;

	if (!f)
		return -errno;
	*l = (struct chaos_list){ 0 };
	if (!fgets(line, sizeof(line), f) || sscanf(line, "seed %" SCNu64, &seed) != 1)
		err = -EINVAL;
	else
		l->seed = seed;
	while (!err && fgets(line, sizeof(line), f)) {
		struct chaos_op *op = realloc(l->op, (l->n + 1) * sizeof(*op));

		if (!op)
			abort();
		l->op = op;
		err = op_parse(line, &op[l->n++]);
	}
	fclose(f);
	return err;
}

void chaos_list_free(struct chaos_list *l)
{
	free(l->op);
	l->op = NULL;
}
