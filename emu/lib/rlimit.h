/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits of this process. */
#ifndef MUSLIN_LIB_RLIMIT_H
#define MUSLIN_LIB_RLIMIT_H

#include <sys/resource.h>

/* Raises the limit of descriptors to what the user may have: the usual one is 1,024. */
static inline void rlimit_raise_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

#endif
