/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the hostile programs that drive a ConnectX: a correct driver with queue pairs that send messages to themselves,
 * before and after all that is invalid. The includer defines what emu/connectx/driver.h asks for, and the driver d. Its
 * driver_poke() returns from a doorbell of commands when the command is complete or after ANSWER_NS.
 */
#ifndef MUSLIN_HOSTILE_HONEST_H
#define MUSLIN_HOSTILE_HONEST_H

#include <stdio.h>
#include <stdlib.h>

#include "emu/connectx/driver.h"
#include "emu/lib/clock.h"
#include "harness/hostile/draw.h"

#define QPS     4
#define MESSAGE 1000

static u32 wrong, qpn[QPS];

static void driver_limit(void); /* may replace the key of all memory */
static void driver_kick(void);  /* the doorbell of commands alone */

static void must(int status, const char *what)
{
	if (!status)
		return;
	printf("%s: status %#x\n", what, status);
	exit(1);
}

/* Initializes the HCA, whatever it was used for before, and queries the port's LID. */
static void attach(void)
{
	driver_poke(&d, 0x10, (u32)(driver_addr(AT_QUEUE) >> 32));
	driver_poke(&d, 0x14, (u32)driver_addr(AT_QUEUE));
	memset(d.in, 0, sizeof(d.in));
	must(driver_command(&d, 0x104, 0, 16, 16), "ENABLE_HCA");
	must(driver_command(&d, 0x103, 0, 16, 16), "TEARDOWN_HCA");
	must(driver_command(&d, 0x102, 0, 16, 16), "INIT_HCA");
	must(driver_command(&d, 0x762, 0, 16, CX_BYTES_query_hca_vport_context_out), "QUERY_HCA_VPORT_CONTEXT");
	d.lid = (u16)cx_get(cx_ptr(d.out, query_hca_vport_context_out, hca_vport_context), hca_vport_context, lid);
}

static void start(void)
{
	u32 i;

	attach();
	must(driver_start(&d), "objects");
	driver_limit();
	for (i = 0; i < QPS; i++) {
		must(driver_qp(&d, CX_QP_RC, i, 0, &qpn[i]), "a queue pair");
		must(driver_connect(&d, qpn[i], qpn[i]), "its connection");
	}
}

/* Sends a valid message from a queue pair to itself. */
static void honest(void)
{
	u64 end = clock_read() + ANSWER_NS;
	u32 n = 0;

	start();
	memset(d.c.mem + AT_DATA, 0x5a, MESSAGE);
	driver_recv(&d, 0, 0, MESSAGE, driver_addr(AT_DATA + 8192));
	driver_data(driver_control(driver_wqe(&d, 0, 0), qpn[0], 0, CX_OP_SEND, 32), MESSAGE, d.lkey,
		    driver_addr(AT_DATA));
	driver_posted(&d, 0, qpn[0], 1);
	while (n < 2 && clock_read() < end) {
		const u8 *e = driver_poll(&d);

		if (!e)
			continue;
		n++;
		if (e[63] >> 4 > 2) {
			wrong++;
			printf("an honest request failed with %#x\n", e[55]);
		}
	}
	if (n < 2 || memcmp(d.c.mem + AT_DATA, d.c.mem + AT_DATA + 8192, MESSAGE)) {
		wrong++;
		printf("an honest message did not come: %u completions\n", n);
	}
	must(driver_command(&d, 0x103, 0, 16, 16), "TEARDOWN_HCA");
}

/* Posts messages of each queue pair to itself and a command, and waits for none of them. */
static void post_all(void)
{
	u32 i, k;

	for (i = 0; i < QPS; i++) {
		for (k = 0; k < 1u << LOG_RQ; k++) {
			driver_recv(&d, i, k, MESSAGE, driver_addr(AT_DATA + 8192));
			driver_data(driver_control(driver_wqe(&d, i, k), qpn[i], k, CX_OP_SEND, 32), MESSAGE, d.lkey,
				    driver_addr(AT_DATA));
		}
		driver_posted(&d, i, qpn[i], k);
	}
	memset(d.in, 0, sizeof(d.in));
	wire_store(d.in, 2, 0x800); /* ALLOC_PD */
	driver_entry(&d, 16, 16);
	driver_kick();
}

#endif
