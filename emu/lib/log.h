/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Log lines with a level and the name of an object, rate-limited. */
#ifndef MUSLIN_LIB_LOG_H
#define MUSLIN_LIB_LOG_H

#include <stdarg.h>

#include "emu/lib/log_limit.h"

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_LEVELS
};

/* Lines above this level are not formatted. Default LOG_INFO. */
extern enum log_level log_level;

/*
 * Writes one line to stderr: time, level, @who (may be ""), message without newline; or none, if there have been too
 * many of @class from @who and @source. The number of suppressed lines is logged when another line may be written.
 */
void log_line(struct log_class *class, enum log_level level, const char *who, u64 source, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Logs the number of suppressed lines if due. Called by the loop while log_limit_pending is not 0. */
void log_flush(void);
u64 log_suppressed_total(void);
/* Start-up only: prints like an error line and exits with status 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* @source: a number that distinguishes objects of the same @who, such as a peer's LID, so that one
 * does not use up the lines of another. */
#define log_from(level, who, source, ...)                                             \
	do {                                                                          \
		static struct log_class log_class_;                                   \
		if ((level) <= log_level)                                             \
			log_line(&log_class_, (level), (who), (source), __VA_ARGS__); \
	} while (0)
#define log_at(level, who, ...) log_from(level, who, 0, __VA_ARGS__)

#endif
