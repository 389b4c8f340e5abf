// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of the rate limits of log lines, with simulated time. */
#include <string.h>

#include "emu/lib/log_limit.h"
#include "emu/lib/row.h"

/* The number of lines, of @n at @now, that may be written. */
static u32 lines(struct log_class *c, const char *who, u64 source, u64 now, u32 n)
{
	struct log_suppressed before;
	u32 i, got = 0;

	for (i = 0; i < n; i++) {
		if (!log_limit_take(c, who, source, now, &before))
			continue;
		log_limit_note(c, who, source, 1, "a request is wrong");
		got++;
	}
	return got;
}

int main(void)
{
	static struct log_class a, b, many;
	u64 now = 1000 * NSEC_PER_SEC;
	u32 i, got = 0, told = 0;
	struct log_suppressed s;

	row(1, "a burst is let through, a flood is not", lines(&a, "h1", 0, now, 20000) == LOG_SOURCE_BURST);
	row(2, "another source has lines of its own", lines(&a, "h2", 0, now, 5) == 5);
	row(3, "and so has another number", lines(&a, "h1", 7, now, 5) == 5);
	row(4, "and another class", lines(&b, "h1", 0, now, 5) == 5);
	row(5, "one source has suppressed lines", log_limit_pending == 1 && !log_limit_due(now, false, &s));
	now += LOG_SOURCE_PERIOD;
	row(6, "and reports them when they are due",
	    log_limit_due(now, false, &s) && s.n == 20000 - LOG_SOURCE_BURST && !strcmp(s.who, "h1") &&
		    !strcmp(s.text, "a request is wrong") && !log_limit_pending);
	row(7, "which takes the place of a line", lines(&a, "h1", 0, now, 10) == 0 && log_limit_pending == 1);
	now += LOG_SOURCE_PERIOD;
	row(8, "or before the next line", log_limit_take(&a, "h1", 0, now, &s) && s.n == 10 && !log_limit_pending);
	now += LOG_SOURCE_BURST * LOG_SOURCE_PERIOD;
	row(9, "a whole burst after a quiet time", lines(&a, "h1", 0, now, 100) == LOG_SOURCE_BURST);
	row(10, "at the end all are reported", log_limit_due(now, true, &s) && s.n == 100 - LOG_SOURCE_BURST);
	for (i = 0; i < 1000; i++) {
		got += lines(&many, "guest", i, now, 9);
		if (log_limit_take(&many, "guest", i, now, &s))
			got++;
		told += s.n > 0;
	}
	row(11, "many sources have no more than the class", got == LOG_CLASS_BURST);
	for (i = 0; log_limit_due(now, true, &s); i++)
		;
	row(13, "a line for each that was let through before, and none is empty",
	    told + i <= LOG_CLASS_BURST && s.text[0]);
	row(12, "what is known of sources has a limit", i <= LOG_SOURCES && !log_limit_pending);
	return rows_end();
}
