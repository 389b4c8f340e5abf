// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Half-closed streams: of a peer that does not read (zero TCP window), or does not close its side. */
#include <unistd.h>

#include "emu/lib/row.h"
#include "siw/fixture.h"

static u32 half_closed(void)
{
	return ((const struct siw *)hca_transport_data(a.hca))->nhalf_closed;
}

/* Reads until the socket is empty; returns the number of bytes. */
static u64 read_all(int fd)
{
	static u8 waste[65536];
	u64 sum = 0;
	ssize_t n;

	do {
		loop_run_idle(loop, 0);
		n = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
		sum += n > 0 ? (u64)n : 0;
	} while (n > 0);
	return sum;
}

#define UNREAD 20 /* WRITEs of 1 MiB */

static int open_zero_window(void)
{
	int fd = open_raw();
	u32 i;

	for (i = 0; i < UNREAD; i++)
		post(&a, HCA_WR_RDMA_WRITE, 0, 0, SIZE, 7, 0);
	loop_run_idle(loop, 0);
	return fd;
}

/* A peer that does not read (zero TCP window), or does not close its side. */
static void test_zero_window(void)
{
	struct hca_cqe c;
	u32 done = 0, i;
	u64 bytes;
	int fd = open_zero_window();

	while (next(&a, &c) == 0)
		done++;
	row(180, "a peer that does not read: bytes in the send buffer", a.qp->out_len <= SIW_OUT && done < 2);
	later(3600 * 1000 * MS);
	row(181, "the same after an hour", a.qp->out_len <= SIW_OUT && next(&a, &c) == -1 && a.closed == 1);
	bytes = read_all(fd);
	while (next(&a, &c) == 0)
		done++;
	row(182, "the peer reads: all requests complete", done == UNREAD && bytes > (u64)UNREAD * SIZE);
	side_close(&a);
	close(fd);

	fd = open_zero_window();
	while (next(&a, &c) == 0)
		;
	siw_qp_disconnect(a.qp);
	loop_run_idle(loop, 0);
	for (i = 0; next(&a, &c) == HCA_WC_WR_FLUSH_ERR; i++)
		;
	row(183, "disconnect does not wait for the peer", i >= UNREAD - 2 && half_closed() == 1);
	later(1100 * MS);
	row(184, "half-closed stream: aborted after its time-out",
	    !half_closed() && siw_counter(a.hca, SIW_CTR_HALF_CLOSED_ABORT) == 1);
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_qp_disconnect(a.qp);
	close(fd);
	loop_run_idle(loop, 0);
	row(185, "half-closed stream: freed when the peer closes",
	    !half_closed() && !siw_counter(a.hca, SIW_CTR_HALF_CLOSED_ABORT));
	side_close(&a);

	fd = open_zero_window();
	side_close(&a);
	bytes = read_all(fd);
	row(186, "half-closed stream: the queue pair is destroyed",
	    bytes && bytes < SIZE && !recv(fd, &c, 1, MSG_DONTWAIT));
	close(fd);
}

int main(void)
{
	loop = loop_create_virtual();
	test_zero_window();
	loop_destroy(loop);
	return rows_end();
}
