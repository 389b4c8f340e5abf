// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: any text as a file of forwarding tables. The parser returns tables, or one line of error. */
#include <stdlib.h>

#include "sm/sm_internal.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	char *text = malloc(len + 1), err[80] = "";
	struct sm_lfts *l;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = 0;
	l = sm_lfts_parse(text, "fuzz", err, sizeof(err));
	if (!l && !err[0])
		abort();
	sm_lfts_destroy(l);
	free(text);
	return 0;
}
