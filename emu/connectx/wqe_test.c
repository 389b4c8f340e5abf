// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests that a driver posts before the adapter has completed as many as its queue has blocks, and datagrams with
 * large send and checksum offload.
 */
#include "emu/connectx/frame.h"
#include "emu/wire/inet.h"

#define UMRS 20u /* with 60 blocks, in a queue of 16 */

#define GRH       40u /* bytes before a received datagram */
#define HEADERS   44u /* of IPoIB, IPv4 and TCP */
#define MSS       1000u
#define LSO_BYTES 2500u
#define BUFFER    4096u /* for a received datagram; the adapter's MTU is that, too */
#define AT_RECV   (AT_DATA + 0x4000u)
#define CHECKSUMS 0xc0u /* of the IP header and of TCP: offload them */
#define CHECKED   0x06u /* both are valid */

/*
 * A SEND to a queue pair that is in RESET is not acknowledged; the memory key requests behind it are executed, but not
 * completed.
 */
static void lists_in_flight(void)
{
	struct driver_umr r = { .mask = UMR_REGISTER, .octowords = 1, .len = 8 };
	u64 pages, before;
	u32 a = 0, b, i, at = 1;

	row(1, "a queue pair, whose peer does not respond",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &a) && !driver_qp(&d, CX_QP_RC, 1, 0, &b) &&
		    !driver_connect(&d, a, b));
	memset(d.in, 0, sizeof(d.in));
	row(2, "a key of ranges", !driver_mkey(&d, 2, false, 0, 0, 4, &r.key));
	pages = d.dev->pages;
	before = driver_counter(&d, "memory_key_requests");
	driver_data(driver_control(driver_wqe(&d, 0, 0), a, 0, CX_OP_SEND, 32), 8, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, a, 1);
	r.entry[0].bytes = 8;
	r.entry[0].lkey = d.lkey;
	r.entry[0].addr = driver_addr(AT_DATA);
	for (i = 0; i < UMRS; i++)
		driver_umr(&d, &r, 0, a, &at);
	row(3, "more requests than the queue has blocks are taken, and none is complete",
	    driver_counter(&d, "memory_key_requests") == before + UMRS && !driver_poll(&d));
	row(4, "each has its list", d.dev->pages == pages + UMRS * 3);
	memset(d.in, 0, sizeof(d.in));
	row(5, "a reset of the queue pair", !driver_modify(&d, 0x50a, a, 0));
	row(6, "releases all lists", d.dev->pages == pages);
}

/* A queue pair that only receives has no requests, whatever its doorbell record says. */
static void no_send_queue(void)
{
	u8 *qpc = cx_ptr(d.in, create_qp_in, qpc);
	const u8 *e;
	u32 a;

	row(7, "a queue pair", !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &a));
	cx_set(qpc, qpc, no_sq, 1);
	row(8, "without a send queue", !driver_command(&d, 0x500, 0, CX_BYTES_create_qp_in + 8, 16));
	a = (u32)cx_get(d.out, create_qp_out, qpn);
	row(9, "connected", !driver_connect(&d, a, a));
	driver_recv(&d, 0, 0, 64, driver_addr(AT_RECV));
	driver_posted(&d, 0, a, 3);
	memset(d.in, 0, sizeof(d.in));
	row(17, "in ERR", !driver_modify(&d, 0x507, a, 0));
	loop_run_idle(d.loop, 0);
	e = driver_poll(&d);
	row(18, "its receive is flushed, and nothing else", e && e[63] >> 4 == 14 && !driver_poll(&d));
}

/* Sends by queue pair @qpn[0], of UD, whose LSO and checksums the driver leaves to the adapter, to @qpn[1]. */
static void datagram_pair(bool offload, u32 *qpn)
{
	u32 i;
	int err = driver_start(&d);

	d.offload = offload;
	for (i = 0; i < 2; i++)
		err |= driver_qp(&d, CX_QP_UD, i, 0, &qpn[i]) | driver_connect(&d, qpn[i], 0);
	row(10, "two queue pairs of UD", !err);
	for (i = 0; i < 4; i++)
		driver_recv(&d, 1, i, BUFFER, driver_addr(AT_RECV + i * BUFFER));
}

static void tcp_headers(u8 *p)
{
	static const u8 h[HEADERS] = { 8, 0, 0, 0,  0x45, [10] = 0x40, [12] = 64, 6,           [16] = 10,
				       0, 0, 1, 10, 0,    0,           5,         [36] = 0x50, TCP_PSH };

	memcpy(p, h, sizeof(h));
}

/* A request of @op with an address vector and an Ethernet segment; @header bytes are in that and behind it. */
struct offload {
	const char *what;
	u8 op, checksums;
	u16 mss, header;
	u32 header_bytes; /* that the request has room for */
	u32 bytes;        /* at AT_DATA */
	u8 syndrome;      /* of its completion */
	bool plain;       /* the queue pair is created without offloads */
};

static void post_offload(const struct offload *o, const u32 *qpn)
{
	u32 rest = o->header_bytes > 2 ? (o->header_bytes - 2 + 15) / 16 * 16 : 0, size = 16 + 48 + 32 + rest + 16, i;
	u8 wqe[4 * CX_WQE_BB] = { 0 }, headers[HEADERS], *s = driver_control(wqe, qpn[0], 0, o->op, size);

	tcp_headers(headers);
	wire_store(s, 4, 0x11);
	wire_store(s + 8, 4, 1u << 31 | qpn[1]);
	wire_store(s + 14, 2, d.lid);
	s += 48 + 16;
	s[4] = o->checksums;
	wire_store(s + 6, 2, o->mss);
	wire_store(s + 12, 2, o->header);
	memcpy(s + 14, headers, min(o->header_bytes, HEADERS));
	driver_data(s + 16 + rest, o->bytes, d.lkey, driver_addr(AT_DATA));
	for (i = 0; i * CX_WQE_BB < size; i++)
		memcpy(driver_wqe(&d, 0, i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
	driver_posted(&d, 0, qpn[0], i);
}

static bool is_received(const u8 *e, u32 bytes, u8 checksums)
{
	return e && e[63] >> 4 == 2 && wire_load(e + 44, 4) == GRH + bytes && (e[28] & CHECKED) == checksums;
}

/* Whether receive @n has segment @n of the packet: its lengths, numbers, flags and checksums. */
static bool is_segment(u32 n)
{
	const u8 *p = d.c.mem + AT_RECV + n * BUFFER + GRH, *ip = p + WIRE_INET_ENCAP, *tcp = ip + 20;
	u32 bytes = min(LSO_BYTES - n * MSS, MSS);

	return wire_inet_ok(p, HEADERS + bytes) && wire_get(ip, IP4_TOTAL) == HEADERS - WIRE_INET_ENCAP + bytes &&
	       wire_get(ip, IP4_ID) == n && wire_get(tcp, TCP_SEQ) == n * MSS &&
	       !(wire_get(tcp, TCP_FLAGS) & TCP_PSH) == (bytes == MSS) &&
	       !memcmp(p + HEADERS, d.c.mem + AT_DATA + n * MSS, bytes);
}

static void large_send(void)
{
	static const struct offload lso = { "LSO", CX_OP_LSO, CHECKSUMS, MSS, HEADERS, HEADERS, LSO_BYTES, 0, false };
	u32 qpn[2], i, completions = 0, segments = 0, sent = 0;
	const u8 *e;

	datagram_pair(true, qpn);
	for (i = 0; i < LSO_BYTES; i++)
		d.c.mem[AT_DATA + i] = (u8)(i * 7);
	post_offload(&lso, qpn);
	while ((e = driver_poll(&d))) {
		sent += e[63] >> 4 == 0 && e[56] == CX_OP_LSO;
		completions += is_received(e, HEADERS + min(LSO_BYTES - completions * MSS, MSS), CHECKED);
	}
	for (i = 0; i < 3; i++)
		segments += is_segment(i);
	row(11, "a large send is three datagrams, whose checksums are valid, and one request",
	    completions == 3 && sent == 1);
	row(12, "with the headers and bytes of each segment", segments == 3);
}

/* The packet at AT_DATA has checksums of 0. */
static void checksums(void)
{
	static const struct offload send = { "send", CX_OP_SEND, CHECKSUMS, 0, 0, 0, HEADERS + 100, 0, false };
	const u8 *got = d.c.mem + AT_RECV + GRH, *sent = d.c.mem + AT_DATA;
	struct offload none = send;
	u32 qpn[2];

	datagram_pair(true, qpn);
	tcp_headers(d.c.mem + AT_DATA);
	wire_set(d.c.mem + AT_DATA + WIRE_INET_ENCAP, IP4_TOTAL, send.bytes - WIRE_INET_ENCAP);
	post_offload(&send, qpn);
	row(13, "checksums are filled in, and found valid",
	    driver_poll(&d) && is_received(driver_poll(&d), send.bytes, CHECKED) && wire_inet_ok(got, send.bytes) &&
		    !wire_inet_ok(sent, send.bytes));
	none.checksums = 0;
	datagram_pair(true, qpn);
	post_offload(&none, qpn);
	row(14, "a request that does not ask for them is sent as it is, and found invalid",
	    driver_poll(&d) && is_received(driver_poll(&d), send.bytes, 0) && !memcmp(got, sent, send.bytes));
}

static const struct offload refused[] = {
	{ "LSO of a queue pair without offloads", CX_OP_LSO, 0, MSS, HEADERS, HEADERS, LSO_BYTES, 2, true },
	{ "LSO without a segment size", CX_OP_LSO, 0, 0, HEADERS, HEADERS, LSO_BYTES, 2, false },
	{ "LSO without headers", CX_OP_LSO, 0, MSS, 0, 0, LSO_BYTES, 2, false },
	{ "LSO with headers of a byte", CX_OP_LSO, 0, MSS, 1, 2, LSO_BYTES, 2, false },
	{ "LSO with headers that reach beyond the request", CX_OP_LSO, 0, MSS, 100, HEADERS, LSO_BYTES, 2, false },
	{ "LSO with headers that reach beyond inline data", CX_OP_LSO, 0, MSS, 0xffff, HEADERS, LSO_BYTES, 2, false },
	{ "LSO with headers that are not TCP's", CX_OP_LSO, 0, MSS, 20, 20, LSO_BYTES, 2, false },
	{ "LSO with segments beyond the MTU", CX_OP_LSO, 0, 4096, HEADERS, HEADERS, 2 * LSO_BYTES, 1, false },
};

static void refused_offloads(void)
{
	u32 i, qpn[2];

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		const u8 *e;

		datagram_pair(!refused[i].plain, qpn);
		post_offload(&refused[i], qpn);
		e = driver_poll(&d);
		row(20 + (int)i, refused[i].what,
		    e && e[63] >> 4 == 13 && e[55] == refused[i].syndrome && !driver_poll(&d));
	}
}

/* LSO segments datagrams; it is no SEND of a connected service. */
static void connected_offload(void)
{
	const u8 *e;
	u32 qpn = 0;

	row(30, "a queue pair of RC",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn));
	driver_recv(&d, 0, 0, BUFFER, driver_addr(AT_RECV));
	driver_data(driver_control(driver_wqe(&d, 0, 0), qpn, 0, CX_OP_LSO, 32), 8, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, qpn, 1);
	e = driver_poll(&d);
	row(31, "LSO of it", e && e[63] >> 4 == 13 && e[55] == 2);
}

/* Posts a request of @bytes to its own memory. Returns whether it succeeds. */
static bool post_remote(u32 qpn, u32 index, u8 op, u32 bytes)
{
	bool atomic = op == CX_OP_CMP_SWAP;
	u8 *s = driver_control(driver_wqe(&d, 0, index), qpn, index, op, atomic ? 64 : 48);
	const u8 *e;

	wire_store(s, 8, driver_addr(AT_RECV));
	wire_store(s + 8, 4, d.lkey);
	driver_data(s + (atomic ? 32 : 16), bytes, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, qpn, index + 1);
	e = driver_poll(&d);
	return e && e[63] >> 4 == 0 && !driver_poll(&d);
}

/* RTS2RTS_QP with the queue pair's set of counters. */
static int count_in(u32 qpn, u32 set)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, rst2init_qp_in, qpc), qpc, counter_set_id, set);
	return driver_modify(&d, 0x505, qpn, BIT(25));
}

static int set_query(u32 set, bool clear)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_q_counter_in, counter_set_id, set);
	cx_set(d.in, query_q_counter_in, clear, clear);
	return driver_command(&d, 0x773, 0, CX_BYTES_query_q_counter_in, CX_BYTES_query_q_counter_out);
}

static int set_dealloc(u32 set)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, dealloc_q_counter_in, counter_set_id, set);
	return driver_command(&d, 0x772, 0, 16, 16);
}

/* As many as there are numbers for, besides those in use. */
static bool sets_alloc(u32 n)
{
	while (n-- && !driver_command_on(&d, 0x771, 0))
		;
	return n == ~0u && driver_command_on(&d, 0x771, 0) == CX_LIM;
}

static bool counted(u32 set, u32 writes)
{
	return !set_query(set, false) && cx_get(d.out, query_q_counter_out, rx_write_requests) == writes;
}

/* A set of counters has the requests of the responders that name it, each once however many packets it has. */
static void counted_requests(void)
{
	static const u8 posted[] = { CX_OP_WRITE, CX_OP_WRITE, CX_OP_WRITE, CX_OP_READ, CX_OP_READ, CX_OP_CMP_SWAP };
	const u8 *qpc;
	u32 qpn = 0, i, set, other;

	row(40, "a queue pair that is connected to itself, and counters",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn) &&
		    !driver_command_on(&d, 0x771, 0));
	set = (u32)cx_get(d.out, alloc_q_counter_out, counter_set_id);
	row(39, "two sets of them", !driver_command_on(&d, 0x771, 0));
	other = (u32)cx_get(d.out, alloc_q_counter_out, counter_set_id);
	row(53, "of which it gets the first", !count_in(qpn, set));
	qpc = driver_qp_context(&d, qpn);
	row(54, "as the adapter reports", qpc && cx_get(qpc, qpc, counter_set_id) == set);
	for (i = 0; i < ARRAY_SIZE(posted); i++)
		row(41 + (int)i, "WRITE, READ, compare and swap",
		    post_remote(qpn, i, posted[i], posted[i] == CX_OP_CMP_SWAP ? 8 : 3000));
	row(49, "are counted",
	    counted(set, 3) && cx_get(d.out, query_q_counter_out, rx_read_requests) == 2 &&
		    cx_get(d.out, query_q_counter_out, rx_atomic_requests) == 1);
	row(50, "and returned once more by the query that clears them",
	    !set_query(set, true) && cx_get(d.out, query_q_counter_out, rx_write_requests) == 3);
	row(51, "but not by the next one", counted(set, 0));
	row(52, "nor by another set", counted(other, 0));
	row(55, "which counts when the queue pair has it",
	    !count_in(qpn, other) && post_remote(qpn, i++, CX_OP_WRITE, 8) && counted(other, 1) && counted(set, 0));
	row(56, "a set that does not exist changes nothing",
	    count_in(qpn, 99) == CX_BAD_RES && post_remote(qpn, i++, CX_OP_WRITE, 8) && counted(other, 2));
	row(57, "without a set it works, too",
	    !count_in(qpn, 0) && post_remote(qpn, i++, CX_OP_WRITE, 8) && counted(other, 2) && counted(set, 0));
	row(58, "and with one that is deallocated",
	    !count_in(qpn, set) && !set_dealloc(set) && post_remote(qpn, i++, CX_OP_WRITE, 8) &&
		    set_query(set, false) == CX_BAD_RES);
	row(59, "whose number then has no queue pair when it is allocated again",
	    sets_alloc(255 - 1) && post_remote(qpn, i, CX_OP_WRITE, 8) && counted(set, 0));
}

static void datagram_wqe(const u32 *qpn, u32 index, u8 rate_sl)
{
	u8 wqe[2 * CX_WQE_BB] = { 0 }, *s = driver_control(wqe, qpn[0], index, CX_OP_SEND, 16 + 48 + 16);
	u32 i;

	wire_store(s, 4, 0x11);
	wire_store(s + 8, 4, 1u << 31 | qpn[1]);
	s[12] = rate_sl;
	wire_store(s + 14, 2, d.lid);
	driver_data(s + 48, 8, d.lkey, driver_addr(AT_DATA));
	for (i = 0; i < 2; i++)
		memcpy(driver_wqe(&d, 0, index + i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
}

static void post_datagram(const u32 *qpn, u32 index)
{
	datagram_wqe(qpn, index, 0);
	driver_posted(&d, 0, qpn[0], index + 2);
	while (driver_poll(&d))
		;
}

/*
 * A set counts what a receiver drops for lack of a receive as out_of_buffer, whether its service has RNR NAKs or not.
 */
static void counted_datagrams(void)
{
	u32 qpn[2] = { 0 }, set, i;

	datagram_pair(false, qpn);
	row(70, "a set of counters", !driver_command_on(&d, 0x771, 0));
	set = (u32)cx_get(d.out, alloc_q_counter_out, counter_set_id);
	row(71, "of the receiver", !count_in(qpn[1], set));
	for (i = 0; i < 6; i++)
		post_datagram(qpn, 2 * i);
	row(72, "4 of 6 datagrams find a receive",
	    !set_query(set, false) && cx_get(d.out, query_q_counter_out, out_of_buffer) == 2);
}

/* The static rate of a datagram at which the adapter sends it. */
static u32 rate_of(const u32 *qpn, u32 index, u8 code)
{
	struct cx_qp *qp = cx_qp_get(d.dev, qpn[0]);
	struct hca_send_wr wr = { 0 };

	datagram_wqe(qpn, index, (u8)(code << 4 | 3));
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, index + 2);
	return cx_qp_wq_ops.next_send(qp, &wr) == 1 && wr.av.sl == 3 ? wr.av.static_rate : ~0u;
}

/* The kernel's queue pairs have no user index, and codes of IBTA from old drivers. */
static void datagram_rates(void)
{
	u32 qpn[2], i;

	datagram_pair(false, qpn);
	row(74, "the rate of a kernel's datagram is ignored",
	    rate_of(qpn, 0, 7) == WIRE_RATE_PORT && rate_of(qpn, 2, 15) == WIRE_RATE_PORT);
	d.user_index = 1;
	datagram_pair(false, qpn);
	d.user_index = 0;
	row(75, "a program's has the rate of its address vector",
	    rate_of(qpn, 0, 0) == WIRE_RATE_PORT && rate_of(qpn, 2, 7) == WIRE_RATE_2_5 &&
		    rate_of(qpn, 4, 12) == WIRE_RATE_40);
	for (i = 0; i < 16; i++)
		row(76, "whatever its code", wire_rate_mbps((u8)rate_of(qpn, 6 + 2 * i, (u8)i)) || !i);
}

static u8 seen[256];

/* In place of the receiver of datagrams, which QP1's are not for. */
static int mad_seen(void *ctx, struct wire_packet *p)
{
	memcpy(seen, p->data, min(p->len, (u32)sizeof(seen)));
	return 1;
}

/* Posts a MAD of 256 bytes whose first @n are in the request. Returns whether it is sent. */
static bool mad_sent(u32 qpn, u32 index, u32 n)
{
	u8 wqe[6 * CX_WQE_BB] = { 0 }, mad[256], *s = wqe + 64;
	u32 i, bytes = (n + 4 + 15) / 16 * 16;
	const u8 *e;

	for (i = 0; i < sizeof(mad); i++)
		mad[i] = (u8)(i + index);
	memset(seen, 0, sizeof(seen));
	memcpy(d.c.mem + AT_DATA, mad + n, sizeof(mad) - n);
	if (n) {
		wire_store(s, 4, 1u << 31 | n);
		memcpy(s + 4, mad, n);
		s += bytes;
	}
	if (n < sizeof(mad))
		s = driver_data(s, (u32)sizeof(mad) - n, d.lkey, driver_addr(AT_DATA));
	driver_control(wqe, qpn, index, CX_OP_SEND, (u32)(s - wqe));
	wire_store(wqe + 16, 4, 0x80010000);
	wire_store(wqe + 24, 4, 1u << 31 | 1);
	wire_store(wqe + 30, 2, d.lid);
	for (i = 0; i < 6; i++)
		memcpy(driver_wqe(&d, 0, index + i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
	driver_posted(&d, 0, qpn, index + ((u32)(s - wqe) + CX_WQE_BB - 1) / CX_WQE_BB);
	e = driver_poll(&d);
	return e && e[63] >> 4 == 0 && !memcmp(seen, mad, sizeof(mad));
}

/* A MAD may be inline, as any datagram. */
static void inline_mads(void)
{
	int (*receive)(void *ctx, struct wire_packet *p) = d.port.data.receive;
	u32 qpn = 0;

	d.offload = false;
	row(60, "QP1", !driver_start(&d) && !driver_qp(&d, CX_QP_GSI, 0, 0, &qpn) && !driver_connect(&d, qpn, 0));
	d.port.data.receive = mad_seen;
	row(61, "a MAD in memory", mad_sent(qpn, 0, 0));
	row(62, "inline", mad_sent(qpn, 2, 256));
	row(63, "its header inline", mad_sent(qpn, 8, 24));
	d.port.data.receive = receive;
}

PARTS(lists_in_flight, no_send_queue, large_send, checksums, refused_offloads, connected_offload, counted_requests,
      counted_datagrams, datagram_rates, inline_mads)
