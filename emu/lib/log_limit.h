/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many log lines of one class, which is a place in the source, and of one source, which is who caused them, are written: a
 * burst, and then one a second. All sources of a class together have a limit, too, so that it does not help to have many names.
 */
#ifndef MUSLIN_LIB_LOG_LIMIT_H
#define MUSLIN_LIB_LOG_LIMIT_H

#include "emu/lib/types.h"

#define LOG_SOURCE_BURST  20
#define LOG_SOURCE_PERIOD NSEC_PER_SEC
#define LOG_CLASS_BURST   200
#define LOG_CLASS_PERIOD  (NSEC_PER_SEC / 10)
#define LOG_SOURCES       64 /* that are known at a time */

/* Static where the line is written, zeroed. */
struct log_class {
	u64 credit_at; /* the time at which the burst is whole again */
};

/* Suppressed lines, to be reported. */
struct log_suppressed {
	u64 n;
	int level;
	char who[112], text[96]; /* of the last line that was written */
};

/*
 * May a line of @c from @who (and @source, a number such as a LID, or 0) be written at @now? *before is what was suppressed and
 * must be reported first; n is 0 when nothing was.
 */
bool log_limit_take(struct log_class *c, const char *who, u64 source, u64 now, struct log_suppressed *before);
/* Notes the text of a line that has been let through, which stands for those that are not. */
void log_limit_note(const struct log_class *c, const char *who, u64 source, int level, const char *text);
/* The next source whose suppressed lines are due to be reported at @now; with @all whether due or not. False: none. */
bool log_limit_due(u64 now, bool all, struct log_suppressed *s);
/* Sources that have suppressed lines to be reported. */
extern u32 log_limit_pending;

#endif
