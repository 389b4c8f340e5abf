// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* partitions.conf. */
#include <stdlib.h>

#include "sm/partition.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = malloc(size + 1), err[80];

	memcpy(text, data, size);
	text[size] = 0;
	sm_partitions_destroy(sm_partitions_parse(text, "f", err, sizeof(err)));
	free(text);
	return 0;
}
