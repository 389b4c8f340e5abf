// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP0 and QP1: the memory of their requests, their protection domain, and requests that fail. */
#include "emu/connectx/frame.h"

#define HEADER     24u
#define RECV_BYTES (40u + MAD_SIZE)
#define LENGTH     1
#define PROTECTION 4
#define AT_RECV    (AT_DATA + 0x1000u)
static u32 qpn, sends, recvs; /* QP0 or QP1, whose queues are in page 0; requests and receives posted */

/* A key of @len bytes from @at on, of this PD, with these rights. */
static u32 key_make(u32 pdn, u32 at, u32 len, bool lr, bool lw)
{
	u8 *mkc = cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry);
	u32 key;

	memset(d.in, 0, sizeof(d.in));
	driver_mkey(&d, 0, true, driver_addr(at), len, 0, &key);
	cx_set(mkc, mkc, lr, lr);
	cx_set(mkc, mkc, lw, lw);
	cx_set(mkc, mkc, pd, pdn);
	cx_set(mkc, mkc, length64, 0);
	row_of("a key", "of a part of the memory", !driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16));
	return (u32)cx_get(d.out, create_mkey_out, mkey_index) << 8 | 0x5a;
}

/* The MAD's packet arrives at QP1 of its port. */
static int mad_loop_back(void *ctx, struct wire_packet *p)
{
	return d.port.mad.receive(d.port.mad.ctx, p);
}

/* Posts a receive of @bytes by the key. */
static void recv_post(u32 key, u32 bytes)
{
	u8 *wqe = d.c.mem + AT_WQ + recvs % (1u << LOG_RQ) * 64;

	driver_data(driver_data(wqe, bytes, key, driver_addr(AT_RECV)), 0, 0x100, 0);
	wire_store(d.c.mem + AT_RECORDS + 64, 4, ++recvs);
}

/* Posts a MAD of @bytes to the queue pair itself, of which those after the header are read by the key. */
static void mad_post(u32 key, u32 bytes)
{
	u8 wqe[2 * CX_WQE_BB] = { 0 }, *s = driver_control(wqe, qpn, sends, CX_OP_SEND, 96), *mad = d.c.mem + AT_DATA;
	u32 i;

	mad[0] = mad[2] = 1;
	mad[1] = MAD_CLASS_PERF;
	wire_store(s, 4, 0x80010000);
	wire_store(s + 8, 4, 1u << 31 | 1);
	wire_store(s + 14, 2, d.lid);
	driver_data(driver_data(s + 48, HEADER, d.lkey, driver_addr(AT_DATA)), bytes - HEADER, key,
		    driver_addr(AT_DATA + HEADER));
	for (i = 0; i < 2; i++)
		memcpy(driver_wqe(&d, 0, sends + i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
	sends += 2;
	driver_posted(&d, 0, qpn, sends);
}

/* Whether the next completion is that of a request, or a receive, with this syndrome; 0: it succeeds. */
static bool completes(bool receive, u8 syndrome)
{
	const u8 *e = driver_poll(&d);

	return e &&
	       e[63] >> 4 == (syndrome  ? (receive ? 14 : 13)
			      : receive ? 2
					: 0) &&
	       (!syndrome || e[55] == syndrome);
}

/* After a request that has failed. */
static bool send_again(void)
{
	memset(d.in, 0, sizeof(d.in));
	return !driver_modify(&d, 0x506, qpn, 0);
}

static const struct wrong_key {
	const char *what;
	u32 flip, begin, missing; /* bits of the key that are wrong; bytes before its begin and behind its end */
	bool receive, other, no_read, no_write;
} wrong[] = {
	{ "by a key that there is not", .flip = 0x12300 },
	{ "by another variant of a key", .flip = 1 },
	{ "by a key of another protection domain", .other = true },
	{ "by a key that ends before it", .missing = 1 },
	{ "by a key that begins in it", .begin = HEADER + 1 },
	{ "by a key without local read", .no_read = true },
	{ "by another variant of a key", .flip = 1, .receive = true },
	{ "by a key of another protection domain", .other = true, .receive = true },
	{ "by a key that ends before it", .missing = 1, .receive = true },
	{ "by a key without local write", .no_write = true, .receive = true },
};

/* L_Keys are checked as those of other queue pairs: key, protection domain, bounds, rights (10.6). */
static void keys(void)
{
	u32 pdn, i;

	row(1, "QP1, and another protection domain",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_GSI, 0, 0, &qpn) && !driver_connect(&d, qpn, 0) &&
		    !driver_command_on(&d, 0x800, 0));
	pdn = (u32)cx_get(d.out, alloc_pd_out, pd);
	d.port.data.receive = mad_loop_back;
	recv_post(key_make(d.pdn, AT_RECV, RECV_BYTES, false, true), RECV_BYTES);
	mad_post(key_make(d.pdn, AT_DATA, MAD_SIZE, true, false), MAD_SIZE);
	row(2, "it sends and receives a MAD by keys of just its bytes, with just the rights",
	    completes(false, 0) && completes(true, 0));
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct wrong_key *k = &wrong[i];
		u32 at = k->receive ? AT_RECV : AT_DATA, bytes = k->receive ? RECV_BYTES : MAD_SIZE;
		u32 key = key_make(k->other ? pdn : d.pdn, at + k->begin, bytes - k->begin - k->missing, !k->no_read,
				   !k->no_write) ^
			  k->flip;

		if (k->receive) {
			recv_post(key, RECV_BYTES);
			mad_post(d.lkey, MAD_SIZE);
			row_of("a MAD is received", k->what, completes(false, 0) && completes(true, PROTECTION));
		} else {
			mad_post(key, MAD_SIZE);
			row_of("a MAD is sent", k->what, completes(false, PROTECTION) && send_again());
		}
	}
	row(3, "none of them has sent or received anything else", !driver_poll(&d));
}

/* All MADs have 256 bytes (13.4.2), with 40 before them where they are received. */
static void lengths(void)
{
	static const u32 sent[] = { MAD_SIZE - 1, MAD_SIZE + 1, 2 * MAD_SIZE };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		mad_post(d.lkey, sent[i]);
		row(5, "a MAD that is shorter or longer", completes(false, LENGTH) && send_again());
	}
	recv_post(d.lkey, RECV_BYTES - 1);
	mad_post(d.lkey, MAD_SIZE);
	row(6, "a receive that is too short for it", completes(false, 0) && completes(true, LENGTH));
	recv_post(d.lkey, 2 * RECV_BYTES);
	mad_post(d.lkey, MAD_SIZE);
	row(7, "one that is longer", completes(false, 0) && completes(true, 0));
}

/* The queue pair, and no other object, is of the domain. */
static void domain(void)
{
	u32 pdn, own = d.pdn;

	row(10, "a protection domain", !driver_start(&d) && !driver_command_on(&d, 0x800, 0));
	pdn = (u32)cx_get(d.out, alloc_pd_out, pd);
	d.pdn = pdn;
	row(11, "with QP0", !driver_qp(&d, CX_QP_SMI, 0, 0, &qpn));
	d.pdn = own;
	row(12, "is in use", driver_command_on(&d, 0x801, pdn) == CX_BAD_RES_STATE);
	row(13, "until that is destroyed", !driver_command_on(&d, 0x501, qpn) && !driver_command_on(&d, 0x801, pdn));
}

/* Posts a MAD at @addr, request @index of QP0. */
static void smp_post(u32 index, u64 addr)
{
	u8 wqe[2 * CX_WQE_BB] = { 0 }, *s = driver_control(wqe, qpn, index, CX_OP_SEND, 80);
	u32 i;

	wire_store(s + 8, 4, 1u << 31);
	wire_store(s + 14, 2, d.lid);
	driver_data(s + 48, MAD_SIZE, d.lkey, addr);
	for (i = 0; i < 2; i++)
		memcpy(driver_wqe(&d, 0, index + i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
	driver_posted(&d, 0, qpn, index + 2);
}

/* A request that fails stops the send queue until SQERR2RTS (10.3.1). */
static void send_queue_error(void)
{
	const u8 *qpc, *e;

	row(20, "queue pair 0",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_SMI, 0, 0, &qpn) && !driver_connect(&d, qpn, 0));
	smp_post(0, 1ull << 45); /* of the key, but nowhere */
	row(21, "a MAD that is not in memory", driver_failed(driver_poll(&d), false, 4));
	qpc = driver_qp_context(&d, qpn);
	row(22, "stops its send queue", qpc && cx_get(qpc, qpc, state) == 4);
	smp_post(2, driver_addr(AT_DATA));
	row(23, "the next one is flushed", driver_failed(driver_poll(&d), false, 5));
	memset(d.in, 0, sizeof(d.in));
	row(24, "until the driver starts it again", !driver_modify(&d, 0x506, qpn, 0));
	smp_post(4, driver_addr(AT_DATA));
	e = driver_poll(&d);
	row(25, "which sends", e && e[63] >> 4 == 0 && wire_load(e + 60, 2) == 4);
}

PARTS(keys, lengths, domain, send_queue_error)
