// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RTR messages (RFC 6581, 9.2): when the initiator sends its first FPDU and repeats it, and what the responder waits
 * for.
 */
#include <unistd.h>

#include "emu/lib/row.h"
#include "siw/fixture.h"

static bool got(int fd, u8 *p, u32 size)
{
	loop_run_idle(loop, 0);
	return recv(fd, p, size, MSG_DONTWAIT) == (ssize_t)size;
}

/* Initiator: its first message is delayed, and an empty WRITE is repeated while the peer sends nothing. */
static void test_rtr(void)
{
	struct hca_qp_attr sqd = { .state = HCA_QPS_SQD };
	const struct mpa_terms was = terms;
	struct hca_cqe c;
	u8 p[64];
	int fd;

	terms = (struct mpa_terms){ .initiator = true, .rtr_write = true, .ird = 4, .ord = 4 };
	fd = open_raw();
	siw_rtr_start(a.qp);
	post(&a, HCA_WR_SEND, 0, 0, 4, 0, 0);
	row(160, "RTR: no FPDU is sent before the delay", !got(fd, p, 1));
	later(3 * MS);
	row(161, "RTR: an empty WRITE, then the delayed request",
	    got(fd, p, 20 + 28) && p[3] == (RDMAP_VERSION | RDMAP_WRITE) && p[20 + 3] == (RDMAP_VERSION | RDMAP_SEND));
	row(162, "RTR: that request completes", next(&a, &c) == 0);
	later(10 * MS);
	row(163, "RTR: the empty WRITE is repeated", got(fd, p, 20) && p[3] == (RDMAP_VERSION | RDMAP_WRITE));
	later(5000 * MS);
	row(164, "RTR: the repetitions end", got(fd, p, 60) && !got(fd, p, 1));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	later(3 * MS);
	row(165, "RTR: the peer sends an FPDU", got(fd, p, 20) && send(fd, p, 20, 0) == 20);
	loop_run_idle(loop, 0);
	later(5000 * MS);
	row(166, "RTR: no repetition after that", !got(fd, p, 1));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	siw_qp_disconnect(a.qp);
	row(167, "RTR: disconnect sends the delayed message", got(fd, p, 20) && p[3] == (RDMAP_VERSION | RDMAP_WRITE));
	side_close(&a);
	close(fd);

	fd = open_raw();
	siw_rtr_start(a.qp);
	post(&a, HCA_WR_SEND, 0, 0, 4, 0, 0);
	loop_run_idle(loop, 0);
	row(168, "RTR: SQD sends it, and the request that waits for it",
	    !hca_qp_modify(a.ctx, a.qpn, &sqd, HCA_QP_STATE) && got(fd, p, 20 + 28) &&
		    p[3] == (RDMAP_VERSION | RDMAP_WRITE) && p[20 + 3] == (RDMAP_VERSION | RDMAP_SEND));
	row(169, "RTR: that request completes", next(&a, &c) == 0);
	side_close(&a);
	close(fd);
	terms = was;
}

/* A responder that has negotiated an empty SEND. */
static void test_rtr_zero_length(void)
{
	const struct mpa_terms was = terms;
	struct hca_cqe c;
	u8 fpdu[128];
	bool ok;
	int fd;

	terms = (struct mpa_terms){ .crc = true, .rtr_zero = true, .ird = 4, .ord = 4 };
	fd = open_raw();
	post_recv(&a, 0, 16);
	post(&a, HCA_WR_RDMA_WRITE, 0, 0, 4, 7, 0);
	row(170, "responder: no FPDU before the initiator's first", !got(fd, fpdu, 1));
	ok = send(fd, fpdu, send_build(fpdu, 1, 0, 0, true), 0) > 0;
	row(171, "responder: sends after a zero-length FPDU", ok && got(fd, fpdu, 24));
	row(172, "responder: its WRITE completes", next(&a, &c) == 0 && c.opcode == HCA_WC_RDMA_WRITE);
	ok = send(fd, fpdu, send_build(fpdu, 2, 0, 4, true), 0) > 0;
	row(173, "a zero-length RTR SEND consumes no receive", ok && next(&a, &c) == 0 && c.byte_len == 4);
	side_close(&a);
	close(fd);
	terms = was;
}

int main(void)
{
	loop = loop_create_virtual();
	test_rtr();
	test_rtr_zero_length();
	loop_destroy(loop);
	return rows_end();
}
