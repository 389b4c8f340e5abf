/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frame of the unit tests: a device and its driver, the parts of the test, its rows. */
#ifndef MUSLIN_CONNECTX_FRAME_H
#define MUSLIN_CONNECTX_FRAME_H

#include "emu/connectx/fixture.h"
#include "emu/lib/log.h"
#include "emu/lib/row.h"

static struct driver d;

/* Runs the parts, the last of which may have closed the connection. Returns the exit status. */
static inline int parts_run(void (*const *part)(void), u32 n)
{
	log_level = LOG_ERROR;
	if (driver_create(&d) || driver_attach(&d)) {
		perror("no device");
		return 1;
	}
	for (; n; n--)
		(*part++)();
	if (connectx_connected(d.dev))
		client_close(&d.c);
	driver_destroy(&d);
	return rows_end();
}

#define PARTS(...)                                                    \
	int main(void)                                                \
	{                                                             \
		static void (*const parts[])(void) = { __VA_ARGS__ }; \
                                                                      \
		return parts_run(parts, ARRAY_SIZE(parts));           \
	}

#endif
