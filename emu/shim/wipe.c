// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ranges of shared files (share.c) of which a child gets zeroes, as of private memory with MADV_WIPEONFORK, which the
 * kernel does not accept for shared memory. Called with the lock of share.c.
 */
#include <errno.h>

#include "emu/shim/shim.h"

#define WIPES 256

static struct wipe {
	int file;
	unsigned long long start, end; /* offsets */
} wipes[WIPES];
static unsigned int nwipes;

static void wipe_delete(struct wipe *w)
{
	*w = wipes[--nwipes];
}

int shim_wipe_remove(int file, unsigned long long start, unsigned long long end)
{
	unsigned int i = 0;

	while (i < nwipes) {
		struct wipe *w = &wipes[i];

		if (w->file != file || w->end <= start || w->start >= end) {
			i++;
		} else if (w->start < start && w->end > end) {
			if (nwipes == WIPES)
				return -ENOMEM;
			wipes[nwipes++] = (struct wipe){ file, end, w->end };
			w->end = start;
		} else if (w->start < start) {
			w->end = start;
		} else if (w->end > end) {
			w->start = end;
		} else {
			wipe_delete(w);
		}
	}
	return 0;
}

int shim_wipe_add(int file, unsigned long long start, unsigned long long end)
{
	int err = shim_wipe_remove(file, start, end);

	if (err || nwipes == WIPES)
		return -ENOMEM;
	wipes[nwipes++] = (struct wipe){ file, start, end };
	return 0;
}

bool shim_wipe_next(unsigned int *i, int file, unsigned long long *start, unsigned long long *end)
{
	for (; *i < nwipes; ++*i) {
		const struct wipe *w = &wipes[*i];
		unsigned long long from = w->start > *start ? w->start : *start, to = w->end < *end ? w->end : *end;

		if (w->file != file || from >= to)
			continue;
		++*i;
		*start = from;
		*end = to;
		return true;
	}
	return false;
}
