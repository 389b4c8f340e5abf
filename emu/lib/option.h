/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long options without abbreviations: getopt_long() accepts an abbreviation, other parsers of the same line do not; and
 * their numbers.
 */
#ifndef MUSLIN_OPTION_H
#define MUSLIN_OPTION_H

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/lib/types.h"

#define OPTION_USAGE 2 /* exit status of wrong usage */

/* The first argument that begins with "--" and is not exactly one of @options
 * (terminated by a NULL name); NULL: none. */
static inline const char *option_unknown(int argc, char **argv, const struct option *options)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		size_t len = strcspn(argv[i], "=");
		const struct option *o = options;

		if (strncmp(argv[i], "--", 2) != 0)
			continue;
		while (o->name && (strlen(o->name) != len - 2 || strncmp(o->name, argv[i] + 2, len - 2) != 0))
			o++;
		if (!o->name)
			return argv[i];
		if (o->has_arg == required_argument && !argv[i][len])
			i++; /* its argument */
	}
	return NULL;
}

/*
 * The argument of @option: optarg, a number from @min to @max with the base that C would give it; else the program ends
 * with a message and OPTION_USAGE.
 */
static inline u64 option_number(const char *program, const char *option, u64 min, u64 max)
{
	char *end;
	u64 v;

	errno = 0;
	v = strtoull(optarg, &end, 0);
	if (!errno && *optarg && *optarg != '-' && !*end && v >= min && v <= max)
		return v;
	fprintf(stderr, "%s: %s %s: not a number from %llu to %llu\n", program, option, optarg, (unsigned long long)min,
		(unsigned long long)max);
	exit(OPTION_USAGE);
}

#endif
