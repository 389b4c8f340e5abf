// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests that a driver posts before the adapter has completed as many as its queue has blocks. */
#include "emu/connectx/fixture.h"
#include "emu/lib/log.h"
#include "emu/lib/row.h"

#define UMR_BLOCKS 3u
#define UMRS       20u /* with 60 blocks, in a queue of 16 */

static struct driver d;

/* Posts request @index of queue pair @qpn, in page 0: registers a range of memory for @key. */
static void post_umr(u32 qpn, u32 index, u32 key)
{
	u8 wqe[UMR_BLOCKS * 64] = { 0 };
	u32 i;

	driver_control(wqe, qpn, index, CX_OP_UMR, 144);
	wire_store(wqe + 12, 4, key);
	wqe[16] = 0x80; /* inline */
	wire_store(wqe + 20, 2, 1);
	wire_store(wqe + 24, 8, 1 << 0 | 1 << 6 | 1 << 18 | 1 << 20 | 1 << 29);
	cx_set(wqe + 64, mkc, lw, 1);
	cx_set(wqe + 64, mkc, rw, 1);
	cx_set(wqe + 64, mkc, start_addr, 0x9000);
	cx_set(wqe + 64, mkc, len, 8);
	driver_data(wqe + 128, 8, d.lkey, driver_addr(AT_DATA));
	for (i = 0; i < UMR_BLOCKS; i++)
		memcpy(driver_wqe(&d, 0, index + i), wqe + (size_t)i * 64, 64);
	driver_posted(&d, 0, qpn, index + UMR_BLOCKS);
}

/*
 * A SEND to a queue pair that is in RESET is not acknowledged; the memory key requests behind it are executed, but not
 * completed.
 */
static void lists_in_flight(void)
{
	u64 pages, before;
	u32 a, b, key, i, at = 1;

	row(1, "a queue pair, whose peer does not respond",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &a) && !driver_qp(&d, CX_QP_RC, 1, 0, &b) &&
		    !driver_connect(&d, a, b));
	memset(d.in, 0, sizeof(d.in));
	row(2, "a key of ranges", !driver_mkey(&d, 2, false, 0, 0, 4, &key));
	pages = d.dev->pages;
	before = driver_counter(&d, "memory_key_requests");
	driver_data(driver_control(driver_wqe(&d, 0, 0), a, 0, CX_OP_SEND, 32), 8, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, a, 1);
	for (i = 0; i < UMRS; i++, at += UMR_BLOCKS)
		post_umr(a, at, key);
	row(3, "more requests than the queue has blocks are taken, and none is complete",
	    driver_counter(&d, "memory_key_requests") == before + UMRS && !driver_poll(&d));
	row(4, "each has its list", d.dev->pages == pages + UMRS * 3);
	memset(d.in, 0, sizeof(d.in));
	row(5, "a reset of the queue pair", !driver_modify(&d, 0x50a, a, 0));
	row(6, "releases all lists", d.dev->pages == pages);
}

int main(void)
{
	log_level = LOG_ERROR;
	if (driver_create(&d) || driver_attach(&d)) {
		perror("wqe_test");
		return 1;
	}
	lists_in_flight();
	client_close(&d.c);
	driver_destroy(&d);
	return rows_end();
}
