// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rate limits of log lines: token buckets by class and by source. */
#include <stdio.h>
#include <string.h>

#include "emu/lib/log_limit.h"

struct log_source {
	const struct log_class *class; /* NULL: free */
	u64 number, credit_at;
	struct log_suppressed suppressed;
};

static struct log_source sources[LOG_SOURCES];
u32 log_limit_pending;

/* Whether a bucket of @burst tokens, refilled by one per @period, has a token. */
static bool bucket_has(u64 credit_at, u64 now, u32 burst, u64 period)
{
	return credit_at <= now + (burst - 1) * period;
}

static void bucket_take(u64 *credit_at, u64 now, u64 period)
{
	*credit_at = max(*credit_at, now) + period;
}

static bool is_source(const struct log_source *s, const struct log_class *c, const char *who, u64 number)
{
	return s->class == c && s->number == number && !strncmp(s->suppressed.who, who, sizeof(s->suppressed.who) - 1);
}

static struct log_source *source_find(const struct log_class *c, const char *who, u64 number)
{
	u32 i;

	for (i = 0; i < LOG_SOURCES; i++)
		if (is_source(&sources[i], c, who, number))
			return &sources[i];
	return NULL;
}

static void source_report(struct log_source *s, struct log_suppressed *report)
{
	log_limit_pending -= !!s->suppressed.n;
	*report = s->suppressed;
	s->suppressed.n = 0;
}

/* Replaces the source without a line for the longest time. */
static struct log_source *source_new(struct log_class *c, const char *who, u64 number, struct log_suppressed *before)
{
	struct log_source *s = &sources[0];
	u32 i;

	for (i = 1; i < LOG_SOURCES && s->class; i++)
		if (!sources[i].class || sources[i].credit_at < s->credit_at)
			s = &sources[i];
	source_report(s, before);
	memset(s, 0, sizeof(*s));
	s->class = c;
	s->number = number;
	snprintf(s->suppressed.who, sizeof(s->suppressed.who), "%s", who);
	return s;
}

static struct log_source *source_of_class(const struct log_class *c)
{
	u32 i;

	for (i = 0; i < LOG_SOURCES; i++)
		if (sources[i].class == c)
			return &sources[i];
	return NULL;
}

/*
 * A new source of a class that is suppressed counts with a known one, which has a line to be reported; it replaces
 * none.
 */
bool log_limit_take(struct log_class *c, const char *who, u64 source, u64 now, struct log_suppressed *before)
{
	struct log_source *s = source_find(c, who, source);

	before->n = 0;
	if (!s && !bucket_has(c->credit_at, now, LOG_CLASS_BURST, LOG_CLASS_PERIOD))
		s = source_of_class(c);
	if (!s)
		s = source_new(c, who, source, before);
	if (!bucket_has(s->credit_at, now, LOG_SOURCE_BURST, LOG_SOURCE_PERIOD) ||
	    !bucket_has(c->credit_at, now, LOG_CLASS_BURST, LOG_CLASS_PERIOD)) {
		log_limit_pending += !s->suppressed.n++;
		return false;
	}
	if (s->suppressed.n)
		source_report(s, before);
	bucket_take(&s->credit_at, now, LOG_SOURCE_PERIOD);
	bucket_take(&c->credit_at, now, LOG_CLASS_PERIOD);
	return true;
}

void log_limit_note(const struct log_class *c, const char *who, u64 source, int level, const char *text)
{
	struct log_source *s = source_find(c, who, source);

	if (!s)
		return;
	s->suppressed.level = level;
	snprintf(s->suppressed.text, sizeof(s->suppressed.text), "%s", text);
}

bool log_limit_due(u64 now, bool all, struct log_suppressed *report)
{
	u32 i;

	for (i = 0; i < LOG_SOURCES && log_limit_pending; i++) {
		struct log_source *s = &sources[i];

		if (!s->suppressed.n || (!all && !bucket_has(s->credit_at, now, LOG_SOURCE_BURST, LOG_SOURCE_PERIOD)))
			continue;
		bucket_take(&s->credit_at, now, LOG_SOURCE_PERIOD);
		source_report(s, report);
		return true;
	}
	return false;
}
