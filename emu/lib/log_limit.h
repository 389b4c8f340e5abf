/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits the log lines of one class (a place in the code) and one source (the object that caused them): a burst, then
 * one per second. All sources of a class have a common limit, too, so that many names do not evade it.
 */
#ifndef MUSLIN_LIB_LOG_LIMIT_H
#define MUSLIN_LIB_LOG_LIMIT_H

#include "emu/lib/types.h"

#define LOG_SOURCE_BURST  20
#define LOG_SOURCE_PERIOD NSEC_PER_SEC
#define LOG_CLASS_BURST   200
#define LOG_CLASS_PERIOD  (NSEC_PER_SEC / 10)
#define LOG_SOURCES       64 /* number of sources kept */

/* A static, zeroed variable at the place of the log call. */
struct log_class {
	u64 credit_at; /* the time at which the burst is full again */
};

/* Suppressed lines, to be reported. */
struct log_suppressed {
	u64 n;
	int level;
	char who[112], text[96]; /* of the last written line */
};

/*
 * Whether a line of @c from @who (and @source, a number such as a LID, or 0) may be written at @now. *before:
 * suppressed lines to be reported first; n is 0 if none.
 */
bool log_limit_take(struct log_class *c, const char *who, u64 source, u64 now, struct log_suppressed *before);
/* Records the text of a written line, which represents the suppressed ones. */
void log_limit_note(const struct log_class *c, const char *who, u64 source, int level, const char *text);
/* The next source whose suppressed lines are to be reported at @now; with @all even if not due. False: none. */
bool log_limit_due(u64 now, bool all, struct log_suppressed *s);
/* Number of sources with suppressed lines to be reported. */
extern u32 log_limit_pending;

#endif
