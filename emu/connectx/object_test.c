// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lifetimes of objects: the adapter keeps those that others use. */
#include "emu/connectx/fixture.h"
#include "emu/lib/log.h"
#include "emu/lib/row.h"

static struct driver d;

/* A command of the object with this number. */
static int command_on(u16 op, u32 number)
{
	memset(d.in, 0, sizeof(d.in));
	wire_store(d.in + 8, 4, number);
	return driver_command(&d, op, 0, 16, 16);
}

/* A queue pair, its CQ, and what they are of. */
static void in_use(void)
{
	u32 qpn;

	row(1, "a queue pair", !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn));
	row(2, "its protection domain is in use", command_on(0x801, d.pdn) == CX_BAD_RES_STATE);
	row(3, "its CQ", command_on(0x401, d.cqn) == CX_BAD_RES_STATE);
	row(4, "the CQ's event queue", command_on(0x302, d.eqn) == CX_BAD_RES_STATE);
	row(5, "the queue pair ends", !command_on(0x501, qpn));
	row(6, "then its CQ may", !command_on(0x401, d.cqn));
	row(7, "and the event queue", !command_on(0x302, d.eqn));
	row(8, "a key is of the domain", command_on(0x801, d.pdn) == CX_BAD_RES_STATE);
	row(9, "without it the domain ends", !command_on(0x202, d.lkey >> 8) && !command_on(0x801, d.pdn));
}

int main(void)
{
	log_level = LOG_ERROR;
	if (driver_create(&d) || driver_attach(&d)) {
		perror("object_test");
		return 1;
	}
	in_use();
	client_close(&d.c);
	driver_destroy(&d);
	return rows_end();
}
