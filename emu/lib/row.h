/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of a unit test: prints failed ones, counts all. Included by tests only. */
#ifndef MUSLIN_LIB_ROW_H
#define MUSLIN_LIB_ROW_H

#include <stdbool.h>
#include <stdio.h>

static struct {
	unsigned int passed, failed;
} rows_seen;

/* Row @n, or a row identified by its name (@n 0). */
static inline void row(int n, const char *what, bool ok)
{
	rows_seen.passed += ok;
	rows_seen.failed += !ok;
	if (!ok && n)
		printf("row %d: %s\n", n, what);
	else if (!ok)
		printf("FAIL %s\n", what);
}

/* Result @ok of check @what of row @of. */
static inline void row_of(const char *of, const char *what, bool ok)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", of, what);
	row(0, text, ok);
}

/* Called last in main(): returns the exit status. */
static inline int rows_end(void)
{
	printf("%u passed, %u failed\n", rows_seen.passed, rows_seen.failed);
	return rows_seen.failed != 0;
}

#endif
