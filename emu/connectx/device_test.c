// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stops the adapter (Bus Master Enable, the interface state, a reset), and how much of its work a turn of the loop
 * takes.
 */
#include "emu/connectx/fixture.h"
#include "emu/lib/log.h"
#include "emu/lib/row.h"

#define CONFIG       VFIO_PCI_CONFIG_REGION_INDEX
#define SEVERITY     0x238
#define DOORBELL     0x18
#define QUEUE_LOW    0x14
#define LOG_LARGE_SQ 8 /* four pages of send blocks */

static struct driver d;

static void bus_master(bool on)
{
	client_write(&d.c, CONFIG, 4, on ? 6 : 2, 2);
}

/* Posts NOP @index of the queue pair in page @n. */
static void post_nop(u32 n, u32 qpn, u32 index)
{
	driver_control(driver_wqe(&d, n, index), qpn, index, CX_OP_NOP, 16);
	driver_posted(&d, n, qpn, index + 1);
}

static bool pair(u32 *a, u32 *b)
{
	return !driver_qp(&d, CX_QP_RC, 0, 0, a) && !driver_qp(&d, CX_QP_RC, 1, 0, b) && !driver_connect(&d, *a, *b) &&
	       !driver_connect(&d, *b, *a);
}

/* The adapter has used these queues before, so it has pointers to them. */
static void without_bus_master(void)
{
	u32 a, b, i;

	row(1, "a driver with two queue pairs", !driver_start(&d) && pair(&a, &b));
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	post_nop(0, a, 0);
	row(2, "a completion and its event", driver_poll(&d) && driver_event(&d));
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	bus_master(false);
	post_nop(0, a, 1);
	row(3, "without Bus Master Enable no completion is written", !driver_poll(&d));
	for (i = 0; i < 4; i++)
		driver_poke64(&d, d.uar * 4096ull + 0x20, (u64)(d.cqe - 1) << 32 | d.cqn);
	row(4, "and no event", !driver_event(&d));
	bus_master(true);
	driver_posted(&d, 0, a, 2);
	row(5, "with it the request is executed", driver_poll(&d) != NULL);
}

int main(void)
{
	log_level = LOG_ERROR;
	if (driver_create(&d) || driver_attach(&d)) {
		perror("device_test");
		return 1;
	}
	without_bus_master();
	client_close(&d.c);
	driver_destroy(&d);
	return rows_end();
}
