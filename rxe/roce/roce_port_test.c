// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A RoCEv2 port with one connected queue pair, and a peer on a plain UDP socket that sends arbitrary packets with a
 * correct ICRC: a row per invalid input, with the response and the counter.
 */
#include <errno.h>

#include "emu/lib/row.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce_fixture.h"

#define NAKS(code) (WIRE_AETH_NAK | WIRE_NAK_##code)
#define ACK        31
/* The NAK, and the counter of the responder. */
#define ACCESS_ERROR    NAKS(REMOTE_ACCESS), HCA_CNT_REMOTE_ACCESS_ERR
#define INVALID_REQUEST NAKS(INVALID_REQUEST), HCA_CNT_REMOTE_INV_REQ_ERR
/* A WRITE of 64 bytes to the start of the region. */
#define WRITE(n) .opcode = WIRE_RC_WRITE_ONLY, .psn = PSN + (n), .len = 64, .dmalen = 64, .rkey = 1

/* In order: the queue pair's next PSN is PSN + @next. */
static const struct {
	const char *what;
	struct sent s;
	int syndrome;
	u32 next;
	enum hca_counter counter;
} rows[] = {
	{ "WRITE: ACK", { WRITE(0) }, ACK, 1, HCA_CNT_RCVD_PKTS },
	{ "duplicate (replayed): ACK, not executed", { WRITE(0) }, ACK, 1, HCA_CNT_DUPLICATE_REQUEST },
	{ "an earlier duplicate", { WRITE(-50) }, ACK, 1, HCA_CNT_DUPLICATE_REQUEST },
	{ "a PSN is missing: PSN sequence error NAK", { WRITE(3) }, NAKS(PSN_SEQ), 1, HCA_CNT_OUT_OF_SEQUENCE },
	{ "the next out-of-order packet (reordered): no second NAK", { WRITE(4) }, NONE, 1, HCA_CNT_RCVD_PKTS },
	{ "the same PSN again (next flight): NAK", { WRITE(3) }, NAKS(PSN_SEQ), 1, HCA_CNT_OUT_OF_SEQUENCE },
	{ "a PSN 2^23 ahead is a duplicate", { WRITE(0x800001) }, ACK, 1, HCA_CNT_DUPLICATE_REQUEST },
	{ "an unknown QPN", { WRITE(1), .qpn = 0x123456 }, NONE, 1, HCA_CNT_WRONG_QP },
	{ "another source address, same QPN and PSN", { WRITE(1), .stranger = true }, NONE, 1, HCA_CNT_WRONG_QP },
	{ "another P_Key", { WRITE(1), .pkey = 0x8001 }, NONE, 1, HCA_CNT_PKEY_MISMATCH },
	{ "a UC opcode", { .opcode = WIRE_UC_WRITE_ONLY, 0, PSN + 1, 64, 64, 1, 0 }, NONE, 1, HCA_CNT_WRONG_QP },
	{ "the missing packet: ACK, and a NAK for the next missing one",
	  { WRITE(1) },
	  NAKS(PSN_SEQ),
	  2,
	  HCA_CNT_RCVD_PKTS },
	{ "the next missing packet: the out-of-order buffer is delivered", { WRITE(2) }, ACK, 5, HCA_CNT_RCVD_PKTS },
	{ "SEND without a receive: RNR NAK",
	  { .opcode = WIRE_RC_SEND_ONLY, 0, PSN + 5, 64 },
	  WIRE_AETH_RNR_NAK | 1,
	  5,
	  HCA_CNT_SEND_RNR_ERR },
};

/* These move the queue pair to ERR; each row has a queue pair of its own. */
static const struct {
	const char *what;
	struct sent s;
	int syndrome;
	enum hca_counter counter;
} fatal[] = {
	{ "an invalid R_Key", { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 64, 2, 0 }, ACCESS_ERROR },
	{ "an address outside the region",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 64, 1, SIZE - 63 },
	  ACCESS_ERROR },
	{ "a DMA length of 4 GiB", { .opcode = WIRE_RC_WRITE_FIRST, 0, PSN, 1024, 0xffffffff, 1, 0 }, INVALID_REQUEST },
	{ "payload longer than the path MTU",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 2048, 2048, 1, 0 },
	  INVALID_REQUEST },
	{ "payload shorter than the DMA length",
	  { .opcode = WIRE_RC_WRITE_ONLY, 0, PSN, 64, 128, 1, 0 },
	  INVALID_REQUEST },
	{ "a short FIRST packet", { .opcode = WIRE_RC_WRITE_FIRST, 0, PSN, 64, 2048, 1, 0 }, INVALID_REQUEST },
	{ "MIDDLE without FIRST", { .opcode = WIRE_RC_WRITE_MIDDLE, 0, PSN, 1024 }, INVALID_REQUEST },
	{ "READ with an invalid R_Key", { .opcode = WIRE_RC_READ_REQUEST, 0, PSN, 0, 64, 2, 0 }, ACCESS_ERROR },
	{ "READ of 4 GiB", { .opcode = WIRE_RC_READ_REQUEST, 0, PSN, 0, 0xffffffff, 1, 0 }, INVALID_REQUEST },
};

/* In the tables an R_Key of 1 is the region's, 2 an invalid one, and addresses are offsets in the region. */
static struct sent resolve(struct sent s)
{
	s.rkey = s.rkey == 1 ? rkey : rkey ^ 0x5500;
	s.va += (u64)(uintptr_t)mem;
	s.psn &= 0xffffff;
	return s;
}

static void test_stream(void)
{
	struct hca_qp_attr attr;
	u32 i, psn = 0;

	open_qp();
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sent s = resolve(rows[i].s);
		u64 before = counter(rows[i].counter);
		int got = NONE, more;

		send_packet(&s);
		while ((more = answer(&psn)) >= 0) /* only the last one is checked */
			got = more;
		hca_qp_query(ctx, qpn, &attr);
		row(1 + (int)i, rows[i].what,
		    got == rows[i].syndrome && counter(rows[i].counter) == before + 1 &&
			    attr.rq_psn == PSN + rows[i].next);
	}
	row(30, "acknowledged payload is in memory", mem[0] == 0x5a && mem[63] == 0x5a && !mem[64]);
	close_qp();
}

static void test_fatal(void)
{
	struct hca_qp_attr attr;
	u32 i, psn = 0;

	for (i = 0; i < ARRAY_SIZE(fatal); i++) {
		struct sent s = resolve(fatal[i].s);
		u64 before = counter(fatal[i].counter);
		int got;

		open_qp();
		send_packet(&s);
		got = answer(&psn);
		hca_qp_query(ctx, qpn, &attr);
		row(40 + (int)i, fatal[i].what,
		    got == fatal[i].syndrome && psn == PSN && counter(fatal[i].counter) == before + 1 &&
			    attr.state == HCA_QPS_ERR);
		close_qp();
	}
}

/*
 * A WRITE of nine packets. The first is sent alone; then follows the train of each row, of packets given by their place
 * in the message, whose payload is that number. Then the rest is sent until the message is complete.
 */
#define MTU  1024
#define MOST 8

static const struct train_row {
	const char *what;
	u8 n, place[MOST]; /* 0xff: the packet of another queue pair with the same place */
	u8 bad;            /* the packet of the train with a wrong ICRC, counted from 1 */
	u8 placed, next;   /* packets received by zero-copy; the place expected after the train */
	u8 then;           /* and after that packet was received */
	bool stranger;
} trains[] = {
	{ "burst in order: zero-copy", 6, { 1, 2, 3, 4, 5, 6 }, 0, 6, 7, 8, false },
	{ "zero-copy up to the last packet of the message", 8, { 1, 2, 3, 4, 5, 6, 7, 8 }, 0, 7, 9, 9, false },
	{ "one PSN missing: the rest is buffered", 5, { 1, 2, 4, 5, 6 }, 0, 2, 3, 7, false },
	{ "two PSNs missing", 5, { 1, 3, 5, 6, 7 }, 0, 1, 2, 4, false },
	{ "two packets reordered", 5, { 1, 3, 2, 4, 5 }, 0, 3, 6, 7, false },
	{ "an invalid ICRC is a lost packet", 5, { 1, 2, 3, 4, 5 }, 3, 4, 3, 6, false },
	{ "the first packet has an invalid ICRC", 5, { 1, 2, 3, 4, 5 }, 1, 4, 1, 6, false },
	{ "one packet duplicated", 5, { 1, 2, 2, 3, 4 }, 0, 2, 5, 6, false },
	{ "packets of another QP among them", 5, { 1, 0xff, 2, 0xff, 3 }, 0, 1, 4, 5, false },
	{ "a burst that begins after a missing PSN", 4, { 2, 3, 4, 5 }, 0, 0, 1, 6, false },
	{ "a burst from another source", 4, { 1, 2, 3, 4 }, 0, 0, 1, 2, true },
};

static struct sent nth(u32 place)
{
	struct sent s = { .opcode = place == 8 ? WIRE_RC_WRITE_LAST : WIRE_RC_WRITE_MIDDLE,
			  .psn = PSN + place,
			  .len = MTU,
			  .dmalen = 9 * MTU,
			  .rkey = 1,
			  .fill = (u8)(place + 1) };

	if (!place)
		s.opcode = WIRE_RC_WRITE_FIRST;
	return resolve(s);
}

static void send_train(const struct train_row *t)
{
	static struct sending all;
	u32 i;

	for (i = 0; i < t->n; i++) {
		struct sent s = nth(t->place[i] == 0xff ? i + 1 : t->place[i]);

		s.stranger = t->stranger;
		s.qpn = t->place[i] == 0xff ? qpn ^ 0x10 : 0;
		s.flags = t->bad == i + 1 ? WIRE_PKT_BAD_ICRC : 0;
		put_packet(&all, &s);
	}
	send_all(&all);
}

/*
 * Does the memory contain the message up to @place, and its previous contents behind the message? In between it may
 * contain the previous contents, zeroes, and the message; the last packet's place must be unchanged.
 */
static bool memory_is(u32 place)
{
	u32 i;

	for (i = 0; i < SIZE; i++) {
		u8 want = (u8)(i / MTU + 1);
		bool old = mem[i] == 0xee, good = i < 9 * MTU && mem[i] == want;

		if (i < place * MTU ? !good : i < 8 * MTU ? !old && !good && mem[i] : !old)
			return false;
	}
	return true;
}

static void test_trains(void)
{
	struct hca_qp_attr attr;
	u32 i, place;

	for (i = 0; i < ARRAY_SIZE(trains); i++) {
		const struct train_row *t = &trains[i];
		u64 before = roce_port_counter(port, ROCE_CTR_PLACED), icrc = roce_port_counter(port, ROCE_CTR_ICRC);
		struct sent s = nth(0);
		bool ok;

		memset(mem, 0xee, sizeof(mem));
		open_qp();
		send_packet(&s);
		send_train(t);
		hca_qp_query(ctx, qpn, &attr);
		ok = memory_is(t->next) && attr.rq_psn == (u32)PSN + t->next &&
		     roce_port_counter(port, ROCE_CTR_PLACED) == before + t->placed &&
		     roce_port_counter(port, ROCE_CTR_ICRC) == icrc + !!t->bad;
		for (place = t->next; place < 9; place++) {
			s = nth(place);
			send_packet(&s);
			hca_qp_query(ctx, qpn, &attr);
			ok &= place > t->next || (attr.rq_psn == (u32)PSN + t->then && memory_is(t->then));
		}
		row(100 + (int)i, t->what, ok && memory_is(9));
		close_qp();
	}
}

/*
 * A READ of nine packets, of which these arrive in one burst. Only the missing responses are requested again, one range
 * after the other, at once; a duplicate response has no effect.
 */
static const struct read_row {
	const char *what;
	u8 n, place[MOST + 2];
	u8 bad;
	struct {
		u8 place, n; /* n 0: no more requests */
	} missing[3];
} reads[] = {
	{ "READ responses in order", 9, { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, 0, {} },
	{ "one response lost", 8, { 0, 1, 2, 4, 5, 6, 7, 8 }, 0, { { 3, 1 } } },
	{ "the last but one lost", 8, { 0, 1, 2, 3, 4, 5, 6, 8 }, 0, { { 7, 1 } } },
	{ "three consecutive lost", 6, { 0, 1, 5, 6, 7, 8 }, 0, { { 2, 3 } } },
	{ "two lost, not consecutive", 7, { 0, 1, 3, 5, 6, 7, 8 }, 0, { { 2, 1 }, { 4, 1 } } },
	{ "three lost, not consecutive", 6, { 0, 2, 3, 5, 6, 8 }, 0, { { 1, 1 }, { 4, 1 }, { 7, 1 } } },
	{ "the first lost", 8, { 1, 2, 3, 4, 5, 6, 7, 8 }, 0, { { 0, 1 } } },
	{ "all but the last lost", 1, { 8 }, 0, { { 0, 8 } } },
	{ "one with an invalid ICRC", 9, { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, 6, { { 5, 1 } } },
	{ "one duplicated", 10, { 0, 1, 2, 2, 3, 4, 5, 6, 7, 8 }, 0, {} },
	{ "two reordered", 9, { 0, 1, 3, 2, 4, 5, 6, 7, 8 }, 0, { { 2, 1 } } },
};

static struct sent nth_response(u32 place)
{
	struct sent s = { .opcode = place == 8 ? WIRE_RC_READ_RESP_LAST : WIRE_RC_READ_RESP_MIDDLE,
			  .psn = PSN + place,
			  .len = MTU,
			  .syndrome = ACK,
			  .fill = (u8)(place + 1) };

	if (!place)
		s.opcode = WIRE_RC_READ_RESP_FIRST;
	return s;
}

/*
 * Number of packets that the received READ request requests, and the first of them; 0: no request, or an invalid one.
 */
static u32 read_requested(u32 *place)
{
	u8 b[256] = { 0 };
	const struct wire_bth *bth = (const struct wire_bth *)b;
	const struct wire_reth *h = (const struct wire_reth *)(b + sizeof(*bth));

	if (recv(peer_fd, b, sizeof(b), MSG_DONTWAIT) != sizeof(*bth) + sizeof(*h) + WIRE_ICRC_LEN)
		return 0;
	*place = (u32)wire_psn_diff(wire_bth_psn(bth), PSN);
	if (bth->opcode != WIRE_RC_READ_REQUEST || be32_to_cpu(h->rkey) != PEER_RKEY ||
	    be64_to_cpu(h->va) != PEER_VA + (u64)*place * MTU || be32_to_cpu(h->dmalen) % MTU)
		return 0;
	return be32_to_cpu(h->dmalen) / MTU;
}

static void respond(u32 first, u32 n)
{
	u32 i;

	for (i = first; i < first + n; i++) {
		struct sent s = nth_response(i);

		send_packet(&s);
	}
}

static bool read_ok(const struct read_row *t)
{
	static struct sending all;
	struct hca_cqe c;
	u32 i, place, n;
	bool ok;

	start_sending();
	post_read(9 * MTU);
	ok = read_requested(&place) == 9 && !place;
	for (i = 0; i < t->n; i++) {
		struct sent s = nth_response(t->place[i]);

		s.flags = t->bad == i + 1 ? WIRE_PKT_BAD_ICRC : 0;
		put_packet(&all, &s);
	}
	send_all(&all);
	for (i = 0; i < ARRAY_SIZE(t->missing) && t->missing[i].n; i++) {
		n = read_requested(&place);
		ok &= n == t->missing[i].n && place == t->missing[i].place;
		respond(place, n);
	}
	return ok && !read_requested(&place) && memory_is(9) && hca_soft_cq_poll(cq, &c, 1) == 1 && !c.status;
}

/* Of a message longer than any train: packets received by zero-copy when one is lost. */
static u64 placed_behind(u32 lost)
{
	u64 before = roce_port_counter(port, ROCE_CTR_PLACED);
	static struct sending all;
	u32 i;

	start_sending();
	post_read(40 * MTU);
	for (i = 0; i < 30; i++) {
		struct sent s = nth_response(i ? 1 : 0);

		s.psn = PSN + i;
		s.fill = (u8)(i + 1);
		if (i != lost)
			put_packet(&all, &s);
	}
	send_all(&all);
	return is_filled(min(lost, 30u)) ? roce_port_counter(port, ROCE_CTR_PLACED) - before : 0;
}

static void test_reads(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reads); i++) {
		memset(mem, 0xee, sizeof(mem));
		open_qp();
		row(120 + (int)i, reads[i].what, read_ok(&reads[i]));
		close_qp();
	}
	for (i = 0; i < 2; i++) {
		open_qp();
		row(135 + (int)i,
		    i ? "zero-copy up to the missing response" : "zero-copy of all responses but the last",
		    placed_behind(i ? 10 : 0xff) == (i ? 9 : 29));
		close_qp();
	}
}

/* Responses to a duplicate READ, after a READ of eight packets was answered (9.7.5.1.5). */
static const struct part_row {
	const char *what;
	u32 place, packets; /* first requested, and number */
	u64 rkey;           /* as in the tables above */
	u32 n;              /* responses */
} parts[] = {
	{ "the whole response", 0, 8, 1, 8 }, { "a part in the middle", 2, 3, 1, 3 }, { "one packet", 7, 1, 1, 1 },
	{ "the rest", 5, 3, 1, 3 },           { "longer than the rest", 6, 9, 1, 2 }, { "zero length", 4, 0, 1, 1 },
	{ "another R_Key", 2, 3, 2, 0 },
};

/* Number of READ responses of @len bytes received, each with the expected PSN and payload; 99: unexpected. */
static u32 responses(u32 place, u32 len)
{
	u8 b[2 * MTU];
	const struct wire_bth *bth = (const struct wire_bth *)b;
	u32 n = 0, head;
	ssize_t got;

	while ((got = recv(peer_fd, b, sizeof(b), MSG_DONTWAIT)) >= 0) {
		head = sizeof(*bth) + (bth->opcode == WIRE_RC_READ_RESP_MIDDLE ? 0 : sizeof(struct wire_aeth));
		if (wire_bth_psn(bth) != PSN + place + n || got != (ssize_t)(head + len + WIRE_ICRC_LEN) ||
		    (len && (b[head] != place + n || b[head + len - 1] != place + n)))
			return 99;
		n++;
	}
	return n;
}

static void test_parts(void)
{
	struct sent all = resolve((struct sent){ .opcode = WIRE_RC_READ_REQUEST, 0, PSN, 0, 8 * MTU, 1, 0 });
	u32 i;

	for (i = 0; i < 8 * MTU; i++)
		mem[i] = (u8)(i / MTU);
	open_qp();
	send_packet(&all);
	row(200, "READ: each response once", responses(0, MTU) == 8);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct part_row *t = &parts[i];
		struct sent s = resolve((struct sent){ .opcode = WIRE_RC_READ_REQUEST,
						       .psn = PSN + t->place,
						       .dmalen = t->packets * MTU,
						       .rkey = (u32)t->rkey,
						       .va = t->place * MTU });

		send_packet(&s);
		row(201 + (int)i, t->what, responses(t->place, t->packets ? MTU : 0) == t->n);
	}
	close_qp();
}

/* Sends WRITEs of that length, ahead of the expected PSN. */
static void send_ahead(u32 first, u32 last, u32 len)
{
	static struct sending all;
	u32 i;

	for (i = first; i <= last; i++) {
		struct sent s = resolve((struct sent){ .opcode = WIRE_RC_WRITE_ONLY, 0, PSN + i, len, len, 1, 0 });

		put_packet(&all, &s);
	}
	send_all(&all);
}

#define MANY_QPS 70 /* queue pairs: their out-of-order buffers together exceed RXE_OOO_BYTES */

static void test_ooo_buffer(void)
{
	const struct rxe *rxe = hca_transport_data(hca);
	u64 before = counter(HCA_CNT_OOO_DISCARDED);
	struct hca_soft_wq *qps[MANY_QPS];
	struct hca_qp_attr attr;
	u32 i;

	open_qp();
	send_ahead(1, RXE_OOO_PACKETS - 1, 64);
	row(140, "out-of-order buffer: full",
	    counter(HCA_CNT_OOO_DISCARDED) == before && rxe->ooo_bytes == (RXE_OOO_PACKETS - 1) * 64);
	send_ahead(RXE_OOO_PACKETS, RXE_OOO_PACKETS + 9, 64);
	row(141, "out-of-order buffer: more packets are dropped and counted",
	    counter(HCA_CNT_OOO_DISCARDED) == before + 10 && rxe->ooo_bytes == (RXE_OOO_PACKETS - 1) * 64);
	send_ahead(0, 0, 64);
	hca_qp_query(ctx, qpn, &attr);
	row(142, "out-of-order buffer: empty after the missing packet",
	    attr.rq_psn == (u32)PSN + RXE_OOO_PACKETS && !rxe->ooo_bytes);
	close_qp();
	before = counter(HCA_CNT_OOO_DISCARDED);
	for (i = 0; i < MANY_QPS; i++) {
		open_qp();
		qps[i] = wq;
		send_ahead(1, RXE_OOO_PACKETS - 1, MTU);
	}
	row(143, "out-of-order buffers: bytes of all QPs are limited",
	    counter(HCA_CNT_OOO_DISCARDED) - before == MANY_QPS * (RXE_OOO_PACKETS - 1) - RXE_OOO_BYTES / MTU &&
		    rxe->ooo_bytes == RXE_OOO_BYTES);
	send_ahead(0, 0, MTU);
	hca_qp_query(ctx, qpn, &attr);
	row(144, "a QP without an out-of-order buffer receives in order", attr.rq_psn == (u32)PSN + 1);
	for (i = 0; i < MANY_QPS; i++) {
		wq = qps[i];
		close_qp();
	}
	row(145, "out-of-order buffers: empty after the QPs are destroyed", !rxe->ooo_bytes);
}

/* Effects of a fault of the port on received WRITEs of the peer, and on sent ACKs. */
static const struct fault_row {
	const char *what, *text;
	u8 n, next; /* packets sent; the place expected then */
	u8 acks;    /* ACKs received, the last one with PSN @next - 1 */
	int counter;
	u8 counted;
} faults[] = {
	{ "lost", "drop dir=in nth=2", 2, 1, 1, -1, 0 },
	{ "the second way is left alone", "drop dir=out nth=1", 1, 1, 0, -1, 0 },
	{ "by opcode", "drop opcode=RC_SEND_ONLY", 2, 2, 2, -1, 0 },
	{ "by PSN", "drop psn=101", 2, 1, 1, -1, 0 },
	{ "an ACK twice", "duplicate dir=out copies=1 nth=1", 1, 1, 2, -1, 0 },
	{ "a request thrice", "duplicate dir=in copies=2 nth=1", 1, 1, 1, -1, 0 },
	{ "damaged", "corrupt what=payload dir=in nth=2", 2, 1, 1, ROCE_CTR_ICRC, 1 },
	{ "damaged header", "corrupt what=header dir=in nth=2", 2, 1, 1, ROCE_CTR_ICRC, 1 },
	{ "cut", "truncate bytes=8 dir=in nth=2", 2, 1, 1, ROCE_CTR_ICRC, 1 },
	{ "an opcode that has other headers", "corrupt what=header offset=0 silent dir=in nth=1 seed=7", 1, 0, 0,
	  ROCE_CTR_MALFORMED, 1 },
	{ "a link that is down", "down", 1, 0, 0, -1, 0 },
	{ "one that is set down by the second request", "down nth=2 dir=in", 3, 2, 0, -1, 0 },
	{ "a host that is killed", "kill for=1h", 1, 0, 0, -1, 0 },
	{ "altered: a valid ICRC", "alter offset=2 to=77aa dir=in nth=1", 1, 1, 1, ROCE_CTR_ICRC, 0 },
	{ "late by one", "reorder depth=1 dir=in nth=1", 2, 2, 0, -1, 0 },
};

static struct fault *arm(const char *text, char *err, size_t err_len)
{
	struct fault_set *set = roce_port_faults(port);
	char line[200];

	snprintf(line, sizeof(line), "h1 %s", text);
	set->seed = 1;
	return fault_add(set, line, err, err_len);
}

static bool fault_ok(const struct fault_row *t)
{
	u64 before = t->counter < 0 ? 0 : roce_port_counter(port, (enum roce_counter)t->counter);
	struct fault *ft;
	struct hca_qp_attr attr;
	u32 i, psn = 0, acks = 0;
	char err[200];
	bool ok;
	int got;

	open_qp();
	ft = arm(t->text, err, sizeof(err));
	if (!ft) {
		printf("%s\n", err);
		return false;
	}
	for (i = 0; i < t->n; i++)
		send_ahead(i, i, 64);
	while ((got = answer(&psn)) != NOTHING)
		acks += got == ACK;
	hca_qp_query(ctx, qpn, &attr);
	ok = attr.rq_psn == (u32)PSN + t->next && (!t->acks || acks == t->acks);
	ok &= t->counter < 0 || roce_port_counter(port, (enum roce_counter)t->counter) == before + t->counted;
	ok &= !fault_held(ft);
	fault_remove(ft);
	close_qp();
	return ok;
}

static const char *const refused[] = {
	"",         "burn",        "drop slid=1", "drop pcap=len", "corrupt what=vcrc", "corrupt what=icrc silent",
	"truncate", "drop dir=up", "alter",       "alter to=7",
};

/* A request that a fault holds when the link goes down does not arrive when it is up again. */
static void test_link_loses_held(void)
{
	struct hca_qp_attr attr;
	struct fault *ft;
	char err[200];
	u32 psn;

	open_qp();
	ft = arm("stall dir=in", err, sizeof(err));
	send_ahead(0, 0, 64);
	row(390, "a request that a fault holds", answer(&psn) == NOTHING && fault_held(ft));
	roce_port_set_up(port, false);
	roce_port_set_up(port, true);
	fault_remove(ft);
	psn = answer(&psn) == NOTHING;
	hca_qp_query(ctx, qpn, &attr);
	row(391, "is lost when the link goes down", psn && attr.rq_psn == PSN);
	close_qp();
}

static void test_faults(void)
{
	struct fault *ft;
	char err[200];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		row(160 + (int)i, faults[i].what, fault_ok(&faults[i]));
	ft = arm("flap down=1h up=1h", err, sizeof(err));
	row(176, "a flap: the port is down", roce_port_wire(port)->attr.state == PORT_STATE_DOWN);
	roce_port_set_up(port, false);
	fault_remove(ft);
	row(177, "a link set down by command remains down", roce_port_wire(port)->attr.state == PORT_STATE_DOWN);
	roce_port_set_up(port, true);
	row(178, "and up", roce_port_wire(port)->attr.state == PORT_STATE_ACTIVE);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		*err = 0;
		ft = arm(refused[i], err, sizeof(err));
		row(180 + (int)i, refused[i], !ft && *err);
	}
}

/* ecn: CE in received packets that are ECN-capable (IP_TOS of the peer's socket). */
static void test_ecn(void)
{
	u64 marked = roce_port_counter(port, ROCE_CTR_MARKED), ce = roce_port_counter(port, ROCE_CTR_ECN);
	int ect = WIRE_ECN_ECT, none = 0;
	struct fault *ft;
	char err[200];

	open_qp();
	ft = arm("ecn dir=in nth=1", err, sizeof(err));
	send_ahead(0, 0, 64);
	row(190, "ecn: a packet that is not ECN-capable is no match", !ft->pick.seen);
	setsockopt(peer_fd, IPPROTO_IP, IP_TOS, &ect, sizeof(ect));
	send_ahead(1, 1, 64);
	row(191, "ecn: one that is arrives marked CE, and is counted",
	    roce_port_counter(port, ROCE_CTR_ECN) == ce + 1 && roce_port_counter(port, ROCE_CTR_MARKED) == marked + 1);
	send_ahead(2, 2, 64);
	row(192, "ecn: the next one is not selected",
	    ft->pick.seen == 2 && roce_port_counter(port, ROCE_CTR_ECN) == ce + 1);
	setsockopt(peer_fd, IPPROTO_IP, IP_TOS, &none, sizeof(none));
	fault_remove(ft);
	close_qp();
}

static void test_port(void)
{
	struct sent smp = { .opcode = WIRE_UD_SEND_ONLY, 0, 1, 256 };
	struct wire_packet *p = wire_packet_alloc();
	u64 before = roce_port_counter(port, ROCE_CTR_REFUSED);

	smp.qpn = 1 << 24; /* QP0, of 24 bits */
	send_packet(&smp);
	row(60, "a packet for QP0 is dropped", roce_port_counter(port, ROCE_CTR_REFUSED) == before + 1);
	p->bth_off = 8;
	p->hdr_len = 20;
	before = roce_port_counter(port, ROCE_CTR_UNROUTED);
	row(61, "a packet without GRH is dropped",
	    wire_port_send(roce_port_wire(port), p) == 0 && roce_port_counter(port, ROCE_CTR_UNROUTED) == before + 1);
	row(62, "GUIDs of two addresses differ", roce_guid(&own) != roce_guid(&peer));
	row(63, "an unknown interface", netdev_addrs("nosuch0", &(struct ip_addr){ 0 }, 1) == -ENODEV);
}

/* The port has one IPv4 address. */
static void test_groups(void)
{
	struct hca_qp_init init = { .type = HCA_QPT_UD, .pdn = pdn };
	struct wire_gid v6 = wire_gid_make(0xff15000000000000ull, 1), gid;
	struct hca_soft_wq *ud;
	u32 i, n;

	init.send_cqn = init.recv_cqn = hca_soft_cq_number(cq);
	row(1, "a datagram queue pair", !hca_soft_qp_create(ctx, &init, &ud));
	n = hca_soft_wq_number(ud);
	row(2, "an IPv6 group", !hca_mcast_attach(ctx, n, &v6, 0) && !hca_mcast_detach(ctx, n, &v6, 0));
	for (i = 0; i < ROCE_GROUPS; i++) {
		gid = wire_gid_from_v4(0xef00fe00 | i);
		row((int)(3 + i), "an IPv4 group", !hca_mcast_attach(ctx, n, &gid, 0));
	}
	gid = wire_gid_from_v4(0xef00ff00);
	row((int)(3 + i), "above the limit", hca_mcast_attach(ctx, n, &gid, 0) == -ENOMEM);
	for (i = 0; i < ROCE_GROUPS; i++) {
		gid = wire_gid_from_v4(0xef00fe00 | i);
		hca_mcast_detach(ctx, n, &gid, 0);
	}
	row((int)(3 + i), "left", !hca_soft_wq_destroy(ud));
}

int main(void)
{
	open_port();
	test_stream();
	test_fatal();
	test_trains();
	test_reads();
	test_parts();
	test_ooo_buffer();
	test_faults();
	test_link_loses_held();
	test_ecn();
	test_port();
	test_groups();
	hca_soft_cq_destroy(cq);
	hca_ctx_destroy(ctx);
	hca_destroy(hca);
	roce_port_destroy(port);
	loop_destroy(loop);
	row(70, "no packet is leaked", wire_packet_live() == 0);
	close(peer_fd);
	close(stranger_fd);
	return rows_end();
}
