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

/* A UAR may be deallocated when no queue has doorbells in it. */
static void uars(void)
{
	u32 qpn[3], cqn, i;

	row(20, "a queue pair of each kind",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn[0]) && !driver_qp(&d, CX_QP_GSI, 1, 0, &qpn[1]) &&
		    !driver_qp(&d, CX_QP_UMR, 2, 0, &qpn[2]));
	row(21, "all queues are of the UAR", command_on(0x803, d.uar) == CX_BAD_RES_STATE);
	row(22, "a CQ that is not created", driver_cq(&d, 12, &cqn) == CX_BAD_PARAM);
	for (i = 0; i < 3; i++) {
		row(23, "a queue pair ends", !command_on(0x501, qpn[i]));
		row(24, "others do not", command_on(0x803, d.uar) == CX_BAD_RES_STATE);
	}
	row(25, "the CQ ends", !command_on(0x401, d.cqn));
	row(26, "the event queue does not", command_on(0x803, d.uar) == CX_BAD_RES_STATE);
	row(27, "the event queue ends", !command_on(0x302, d.eqn));
	row(28, "nothing uses the UAR", !command_on(0x803, d.uar));
	row(29, "it is no more", command_on(0x803, d.uar) == CX_BAD_RES);
	row(30, "the driver leaves one that is in use",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, qpn) && !command_on(0x103, 0) && !driver_objects(&d));
}

int main(void)
{
	log_level = LOG_ERROR;
	if (driver_create(&d) || driver_attach(&d)) {
		perror("object_test");
		return 1;
	}
	in_use();
	uars();
	client_close(&d.c);
	driver_destroy(&d);
	return rows_end();
}
