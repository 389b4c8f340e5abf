/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Log lines with a level and a speaker. */
#ifndef MUSLIN_LIB_LOG_H
#define MUSLIN_LIB_LOG_H

#include <stdarg.h>

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_LEVELS
};

/* Lines above this level are not formatted. Default LOG_INFO. */
extern enum log_level log_level;

/* One line on stderr: time, level, @who (may be ""), message without newline. */
void log_line(enum log_level level, const char *who, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Start-up only: prints like an error line and exits with status 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#define log_at(level, who, ...)                                \
	do {                                                   \
		if ((level) <= log_level)                      \
			log_line((level), (who), __VA_ARGS__); \
	} while (0)

#endif
