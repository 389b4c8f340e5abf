/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of a unit test: prints failed ones, counts all. Included by tests only. */
#ifndef MUSLIN_LIB_ROW_H
#define MUSLIN_LIB_ROW_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
	unsigned int passed, failed;
	int line[1000]; /* of each number */
} rows_seen;

/* Row @n, or a row identified by its name (@n 0). A number that the call itself contains is of no other one. */
#define row(n, what, ok) row_in_line(#n, __LINE__, n, what, ok)

static inline void row_in_line(const char *number, int line, int n, const char *what, bool ok)
{
	if (n && strspn(number, "0123456789") == strlen(number)) {
		if (rows_seen.line[n] && rows_seen.line[n] != line) {
			printf("the rows of lines %d and %d have the same number\n", rows_seen.line[n], line);
			ok = false;
		}
		rows_seen.line[n] = line;
	}
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
