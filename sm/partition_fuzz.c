// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: any text as partitions.conf. The parser returns partitions, or one line of error. */
#include <stdlib.h>

#include "sm/partition.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct sm_partitions *ps;
	char *text = malloc(len + 1);
	char err[80] = "";
	u32 i;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = 0;
	ps = sm_partitions_parse(text, "fuzz", err, sizeof(err));
	if (!ps && !err[0])
		abort();
	for (i = 0; ps && i < ps->n; i++)
		if (!ps->part[i].pkey || ps->part[i].pkey > 0x7fff)
			abort();
	sm_partitions_destroy(ps);
	free(text);
	return 0;
}
