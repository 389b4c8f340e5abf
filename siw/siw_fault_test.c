// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Faults of iWARP: on the TCP streams of two adapters, when they receive an FPDU, and on the adapter's link. */
#include <errno.h>

#include "emu/lib/row.h"
#include "emu/wire/smp.h"
#include "siw/fixture.h"

/* Sends @n SENDs of 8 bytes from a to b; returns how many complete at b without an error. */
static u32 sends(u32 n)
{
	struct hca_cqe c;
	u32 i, ok = 0;

	for (i = 0; i < n; i++) {
		post_recv(&b, i * 8, 8);
		post(&a, HCA_WR_SEND, 0, i * 8, 8, 0, 0);
	}
	while (next(&b, &c) >= 0)
		ok += c.status == HCA_WC_SUCCESS;
	return ok;
}

static void test_fault_rst(void)
{
	struct fault *ft;

	open_both();
	ft = arm(&b, "w2 rst nth=2");
	row(400, "a reset before the second FPDU", sends(3) == 1 && b.closed == -ECONNRESET && ft->pick.hits == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_half_close(void)
{
	struct fault *ft;
	u32 ok;

	open_both();
	ft = arm(&b, "w2 half-close nth=2");
	ok = sends(2);
	row(410, "data before a half-close is received, and the FPDU itself", ok == 2 && !a.closed);
	fault_remove(ft);
	close_both();
}

static void test_fault_stall(void)
{
	struct fault *ft;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm(&b, "w2 stall nth=2");
	row(420, "a stall before the second FPDU", sends(3) == 1 && a.closed == 1 && b.closed == 1);
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, 8, a.rkey, at(&a, 0));
	later(1000 * MS);
	row(421, "no FPDU is sent either", next(&b, &c) == -1);
	fault_remove(ft);
	for (ok = 0; next(&b, &c) >= 0;)
		ok += c.status == HCA_WC_SUCCESS;
	row(422, "all streams continue when it is cleared", ok == 3 && a.closed == 1 && b.closed == 1);
	close_both();
}

static void test_fault_delay(void)
{
	struct fault *ft;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm(&b, "w2 delay nth=2 time=20ms");
	row(430, "the second FPDU waits", sends(3) == 1);
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, 8, a.rkey, at(&a, 0));
	row(431, "the other direction does not", next(&b, &c) == HCA_WC_SUCCESS && c.token == HCA_WR_RDMA_WRITE);
	later(30 * MS);
	for (ok = 0; next(&b, &c) >= 0;)
		ok += c.status == HCA_WC_SUCCESS;
	row(432, "for its time, once", ok == 2 && ft->pick.hits == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_corrupt(void)
{
	struct fault *ft;

	open_both();
	ft = arm(&b, "w2 corrupt what=payload nth=2");
	row(433, "a damaged FPDU: the CRC detects it, and the stream ends",
	    sends(3) == 1 && b.closed && siw_counter(b.hca, SIW_CTR_CRC) == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_corrupt_without_crc(void)
{
	struct fault *ft;
	u32 ok;

	terms.crc = false;
	open_both();
	ft = arm(&b, "w2 corrupt what=payload offset=3 nth=2");
	memset(a.mem, 0x55, 64);
	ok = sends(3);
	row(434, "without CRC one bit is another",
	    ok == 3 && b.mem[10] == 0x55 && b.mem[11] != 0x55 && b.mem[19] == 0x55);
	fault_remove(ft);
	close_both();
	terms.crc = true;
}

static void test_fault_rate(void)
{
	struct fault *ft;
	struct hca_cqe c;

	open_both();
	ft = arm(&b, "w2 rate bps=8k");
	row(435, "a slow stream", sends(3) == 0);
	later(60 * MS);
	row(436, "one FPDU of 32 bytes in 32 ms", next(&b, &c) == HCA_WC_SUCCESS && next(&b, &c) == -1);
	later(30 * MS);
	row(437, "the next", next(&b, &c) == HCA_WC_SUCCESS && next(&b, &c) == -1);
	fault_remove(ft);
	close_both();
}

static void test_fault_down(void)
{
	struct fault *ft, *other;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm(&b, "w2 down");
	row(450, "a link that is down: no FPDU is received", sends(2) == 0 && b.port.attr.state == PORT_STATE_DOWN);
	post(&b, HCA_WR_RDMA_WRITE, 0, 0, 8, a.rkey, at(&a, 0));
	later(1000 * MS);
	row(451, "nor sent, and the streams stay", next(&b, &c) == -1 && !b.closed == !a.closed && b.closed == 1);
	other = arm(&b, "w2 stall");
	fault_remove(ft);
	row(452, "up, with a stall from the first FPDU after the WRITE",
	    b.port.attr.state == PORT_STATE_ACTIVE && next(&b, &c) == HCA_WC_SUCCESS && c.token == HCA_WR_RDMA_WRITE &&
		    next(&b, &c) == -1);
	fault_remove(other);
	for (ok = 1; next(&b, &c) >= 0;)
		ok += c.status == HCA_WC_SUCCESS;
	row(453, "all streams continue", ok == 3);
	close_both();
}

static void test_fault_kill(void)
{
	struct fault *ft;

	open_both();
	ft = arm(&b, "w2 kill for=1s");
	row(460, "a killed host resets its streams", sends(1) == 0 && b.closed == -ECONNRESET);
	later(1100 * MS);
	row(461, "and is back", b.port.attr.state == PORT_STATE_ACTIVE && !ft->applied);
	fault_remove(ft);
	close_both();
}

static void test_fault_trigger(void)
{
	struct fault *ft;

	open_both();
	ft = arm(&b, "w2 down nth=2 for=1s");
	row(462, "a link that the second FPDU sets down", sends(1) == 1 && b.port.attr.state == PORT_STATE_ACTIVE);
	sends(1);
	row(463, "then, and not before", b.port.attr.state == PORT_STATE_DOWN && ft->pick.hits == 1);
	later(1100 * MS);
	row(464, "for its time", b.port.attr.state == PORT_STATE_ACTIVE && b.closed == 1);
	fault_remove(ft);
	ft = arm(&b, "w2 kill nth=1 qpn=1");
	row(465, "another queue pair's", sends(1) == 1 && !ft->pick.seen);
	fault_remove(ft);
	ft = arm(&b, "w2 kill nth=2");
	sends(2);
	row(466, "a host that is killed by an FPDU", b.closed == -ECONNRESET && ft->pick.hits == 1);
	fault_remove(ft);
	close_both();
}

static void test_fault_jitter(void)
{
	struct fault *ft;
	struct hca_cqe c;
	u32 ok;

	open_both();
	ft = arm(&b, "w2 delay jitter=20ms");
	ok = sends(3);
	row(467, "a random delay of each FPDU", ok < 3);
	later(70 * MS);
	while (next(&b, &c) >= 0)
		ok += c.status == HCA_WC_SUCCESS;
	row(468, "of less than the jitter", ok == 3 && ft->pick.hits == 3);
	fault_remove(ft);
	close_both();
}

/* Half an FPDU is the last that the peer receives. */
static void test_fault_truncate(void)
{
	static const struct {
		const char *what, *text;
		bool reset;
	} rows[] = {
		{ "RST", "w2 truncate nth=2", true },
		{ "FIN", "w2 truncate nth=2 end=fin", false },
		{ "FIN after the length", "w2 truncate nth=2 end=fin bytes=2", false },
	};
	struct hca_cqe c;
	struct fault *ft;
	u32 i, k, done, got;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		open_both();
		ft = arm(&b, rows[i].text);
		for (k = 0; k < 3; k++) {
			post_recv(&a, k * 8, 8);
			post(&b, HCA_WR_SEND, 0, k * 8, 8, 0, 0);
		}
		for (got = 0; next(&a, &c) >= 0;)
			got += c.status == HCA_WC_SUCCESS;
		for (done = 0; next(&b, &c) >= 0;)
			done += c.status == HCA_WC_SUCCESS;
		row(470 + (int)i, rows[i].what, got == 1 && done == 1 && a.closed != 1 && ft->pick.hits == 1);
		row(475 + (int)i, rows[i].what,
		    b.closed != 1 && (b.closed == -ECONNRESET) == rows[i].reset &&
			    siw_counter(a.hca, SIW_CTR_CRC) == 0);
		fault_remove(ft);
		close_both();
	}
}

static void test_fault_of_queue_pair(void)
{
	struct fault *ft;

	open_both();
	ft = arm(&b, "w2 stall qpn=1");
	row(440, "another queue pair's", sends(3) == 3 && !ft->pick.seen);
	fault_remove(ft);
	ft = arm(&b, "w2 stall");
	row(441, "every stream is stalled", sends(3) == 0);
	close_both(); /* with the queue pair stalled, and the fault armed */
}

int main(void)
{
	loop = loop_create_virtual();
	test_fault_rst();
	test_fault_half_close();
	test_fault_stall();
	test_fault_delay();
	test_fault_corrupt();
	test_fault_corrupt_without_crc();
	test_fault_rate();
	test_fault_down();
	test_fault_kill();
	test_fault_trigger();
	test_fault_jitter();
	test_fault_truncate();
	test_fault_of_queue_pair();
	loop_destroy(loop);
	return rows_end();
}
