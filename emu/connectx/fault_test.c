// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Faults of the firmware: commands that fail, are late or never end, and the health buffer. */
#include "emu/connectx/frame.h"
#include "emu/lib/clock.h"

static const char *const wrong_faults[][2] = {
	{ "t command-status", "command-status: it needs status=" },
	{ "t command-status status=LOC_PROT_ERR", "a command's status such as BAD_RES" },
	{ "t command-delay command=CREATE_QP", "command-delay: it needs time=" },
	{ "t command-timeout command=CREATE_THING", "a command such as CREATE_QP" },
	{ "t health", "health: it needs syndrome= or stopped" },
	{ "t health stopped rfr", "rfr: a request for a reset needs syndrome=" },
	{ "t health syndrome=COLD", "a syndrome such as FW_ERR" },
	{ "t melt", "of a ConnectX there are command-status command-delay command-timeout health" },
};

static void firmware_faults(void)
{
	const u8 *e;
	struct fault *ft;
	char err[512];
	u64 until;
	u32 i;

	e = d.c.mem + AT_QUEUE;
	for (i = 0; i < ARRAY_SIZE(wrong_faults); i++)
		row_of(wrong_faults[i][0], wrong_faults[i][1],
		       !fault_add(&d.faults, wrong_faults[i][0], err, sizeof(err)) && strstr(err, wrong_faults[i][1]));
	ft = driver_fault(&d, "t command-status command=NOP status=LIM_ERR nth=2");
	row(90, "the second NOP has a status, and no other command",
	    !driver_nop(&d) && !driver_command(&d, 0x104, 0, 16, 16) && driver_nop(&d) == CX_LIM && !driver_nop(&d) &&
		    ft->pick.hits == 1);
	fault_remove(ft);
	ft = driver_fault(&d, "t command-delay time=200ms first=1");
	row(91, "a late command is the adapter's until then", driver_nop(&d) == -1);
	driver_poke(&d, 0x18, 1);
	row(92, "whatever is rung", e[63] & 1);
	driver_run_for(&d, 400 * NSEC_PER_MSEC);
	row(93, "and then done, once", !(e[63] & 1) && ft->pick.hits == 1 && !driver_nop(&d));
	fault_remove(ft);
	ft = driver_fault(&d, "t command-delay time=200ms");
	row(94, "a reset forgets it",
	    driver_nop(&d) == -1 && client_call(&d.c, VFIO_CMD_DEVICE_RESET, NULL, 0) == 0 && !driver_objects(&d));
	fault_remove(ft);
	driver_run_for(&d, 400 * NSEC_PER_MSEC);
	row(95, "permanently", e[63] & 1);
	client_close(&d.c);
	row(103, "the next driver", !driver_attach(&d) && !driver_nop(&d));
	e = d.c.mem + AT_QUEUE;
	ft = driver_fault(&d, "t command-delay time=200ms");
	row(141, "a command is late", driver_nop(&d) == -1);
	driver_poke(&d, 0x14, (u32)driver_addr(AT_QUEUE) | 0x100);
	fault_remove(ft);
	driver_run_for(&d, 400 * NSEC_PER_MSEC);
	row(142, "and is not executed any more when the interface is off", e[63] & 1);
	driver_poke(&d, 0x14, (u32)driver_addr(AT_QUEUE));
	row(143, "the next one is", !driver_nop(&d));
	ft = driver_fault(&d, "t command-timeout command=NOP count=1");
	row(96, "one that never ends", driver_nop(&d) == -1);
	fault_remove(ft);
	row(97, "and the next one", !driver_nop(&d));
	ft = driver_fault(&d, "t health syndrome=HIGH_TEMP rfr");
	row(98, "the health buffer", driver_peek(&d, 0x23c) == 0x10 << 16 && driver_peek(&d, 0x238) == 1u << 31);
	row(104, "by bytes", client_read(&d.c, 0, 0x23d, 1) == 0x10 && client_read(&d.c, 0, 0x238, 1) == 0x80);
	fault_remove(ft);
	row(99, "is cleared", !driver_peek(&d, 0x23c) && !driver_peek(&d, 0x238));
	until = clock_read() + 300 * NSEC_PER_MSEC;
	ft = driver_fault(&d, "t health stopped for=300ms");
	i = driver_peek(&d, 0x1010);
	driver_run_for(&d, 250 * NSEC_PER_MSEC);
	row(100, "the counter stops", driver_peek(&d, 0x1010) == i || clock_read() > until);
	driver_run_for(&d, 100 * NSEC_PER_MSEC);
	row(101, "and continues", driver_peek(&d, 0x1010) > i);
	fault_remove(ft);
	row(102, "a driver starts again", !driver_start(&d));
}

PARTS(firmware_faults)
