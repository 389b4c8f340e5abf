/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROGRAMS_MUST_H
#define PROGRAMS_MUST_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless @ok, with a line of @what and errno. */
static inline void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

#endif
