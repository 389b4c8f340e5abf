// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Log lines to stderr, one write each so that lines of two processes never mix. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/types.h"

enum log_level log_level = LOG_INFO;

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static_assert(ARRAY_SIZE(level_names) == LOG_LEVELS, "a name for each level");

static void put_line(enum log_level level, const char *who, const char *fmt, va_list ap)
{
	char line[1024];
	struct timespec ts;
	struct tm tm;
	size_t n;
	int m;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	n = strftime(line, sizeof(line), "%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%06ld %-5s %s%s", ts.tv_nsec / 1000, level_names[level],
			      who, *who ? ": " : "");
	if (n < sizeof(line) - 1) {
		m = vsnprintf(line + n, sizeof(line) - n, fmt, ap);
		n += m > 0 ? (size_t)m : 0;
	}
	if (n > sizeof(line) - 1)
		n = sizeof(line) - 1;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void log_line(enum log_level level, const char *who, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(level, who, fmt, ap);
	va_end(ap);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(LOG_ERROR, "", fmt, ap);
	va_end(ap);
	exit(1);
}
