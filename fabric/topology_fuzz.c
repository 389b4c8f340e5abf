// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: any text as a topology; a fabric is built from a valid one, or from its last shard. */
#include <stdlib.h>

#include "fabric/fabric.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char err[200];
	struct fabric_topology *t = fabric_topology_parse((const char *)data, size, "fuzz", err, sizeof(err));
	struct loop *loop;
	struct fabric *f;

	if (!t) {
		if (!err[0])
			abort(); /* an error without a message */
		return 0;
	}
	if (t->nshards && fabric_topology_join(t, t->shards[t->nshards - 1].name, err, sizeof(err)) && !err[0])
		abort();
	if (t->nnodes < 100) {
		loop = loop_create_virtual();
		f = fabric_create(loop, t, 1);
		fabric_destroy(f);
		loop_destroy(loop);
	}
	fabric_topology_destroy(t);
	return 0;
}
