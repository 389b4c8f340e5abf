// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Log lines to stderr, one write each, so that lines of two processes never mix. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/clock.h"
#include "emu/lib/log.h"
#include "emu/lib/types.h"

enum log_level log_level = LOG_INFO;

static u64 total_suppressed;

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static_assert(ARRAY_SIZE(level_names) == LOG_LEVELS, "a name for each level");

/* Does not block on a full pipe or terminal: the line is lost, and the number of lost
 * lines is logged when there is room. */
static void line_write(const char *line, size_t n)
{
	static u64 lost;
	char text[64];
	int len;

	if (poll(&(struct pollfd){ .fd = STDERR_FILENO, .events = POLLOUT }, 1, 0) != 1) {
		lost++;
		return;
	}
	if (lost) {
		len = snprintf(text, sizeof(text), "%llu lines lost: standard error was blocked\n",
			       (unsigned long long)lost);
		lost = 0;
		if (write(STDERR_FILENO, text, (size_t)len) != len)
			return;
	}
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

static void put_line(enum log_level level, const char *who, const char *text)
{
	char line[1024];
	struct timespec ts;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	n = strftime(line, sizeof(line), "%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%06ld %-5s %s%s%s", ts.tv_nsec / 1000, level_names[level],
			      who, *who ? ": " : "", text);
	n = min(n, sizeof(line) - 1);
	line[n++] = '\n';
	line_write(line, n);
}

static void put_suppressed(const struct log_suppressed *s)
{
	char text[256];

	if (!s->n)
		return;
	total_suppressed += s->n;
	snprintf(text, sizeof(text), "%llu similar messages suppressed: \"%s\"", (unsigned long long)s->n, s->text);
	put_line((enum log_level)s->level, s->who, text);
}

static void flush_at(u64 now, bool all)
{
	struct log_suppressed s;

	while (log_limit_due(now, all, &s))
		put_suppressed(&s);
}

void log_flush(void)
{
	flush_at(clock_read(), false);
}

static void flush_all(void)
{
	flush_at(clock_read(), true);
}

u64 log_suppressed_total(void)
{
	return total_suppressed;
}

/* Debug output is not limited. */
static bool admit(struct log_class *class, enum log_level level, const char *who, u64 source)
{
	static bool registered;
	struct log_suppressed before;
	bool ok;

	if (level == LOG_DEBUG)
		return true;
	ok = log_limit_take(class, who, source, clock_read(), &before);
	put_suppressed(&before);
	if (!ok && !registered)
		registered = !atexit(flush_all);
	return ok;
}

void log_line(struct log_class *class, enum log_level level, const char *who, u64 source, const char *fmt, ...)
{
	char text[896];
	va_list ap;

	if (!admit(class, level, who, source))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (level != LOG_DEBUG)
		log_limit_note(class, who, source, level, text);
	put_line(level, who, text);
}

void die(const char *fmt, ...)
{
	char text[896];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_line(LOG_ERROR, "", text);
	exit(1);
}
