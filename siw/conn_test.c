// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connection establishment and private data in both directions: an initiator and a responder on a socket pair. */
#include <errno.h>
#include <netinet/in.h>

#include "emu/hca/late_fixture.h"
#include "emu/lib/row.h"
#include "siw/conn.h"
#include "siw/fixture.h"

#define TOO_LONG (MPA_PRIVATE_MAX + 1)

/* The last event of one side. */
struct seen_event {
	struct hca_iw_conn *conn;
	int type, status;
	u16 len;
	u8 data[MPA_PRIVATE_MAX];
};

static struct seen_event request, reply;
static u32 established; /* ESTABLISHED events before a CLOSED one */
static struct hca_iw_listener listener;
static struct hca_iw_conn *initiator;
static u8 sent[TOO_LONG];

static int on_iw_event(void *ctx, struct hca_iw_conn *c, const struct hca_iw_event *ev)
{
	struct seen_event *t = ctx;

	if (ev->type == HCA_IW_ESTABLISHED) {
		established += t->type != HCA_IW_CLOSED;
		return 0;
	}
	*t = (struct seen_event){ .conn = c, .type = (int)ev->type, .status = ev->status, .len = ev->data_len };
	if (ev->data_len)
		memcpy(t->data, ev->data, ev->data_len);
	return 0;
}

static bool event_is(const struct seen_event *t, int type, int status, u16 len)
{
	return t->type == type && t->status == status && t->len == len && !memcmp(t->data, sent, len);
}

static struct hca_iw_param param(const struct side *s, u16 len)
{
	return (struct hca_iw_param){
		.owner = hca_qp_owner(s->hca, s->qpn), .qpn = s->qpn, .ird = 2, .ord = 2, .data = sent, .data_len = len
	};
}

/* Connects an initiator of MPA revision @revision, with @len bytes of private data in its request. */
static void connect_pair(u8 revision, u16 len)
{
	struct hca_iw_param p;
	int fds[2];

	options.revision = revision;
	side_open(&a, 1);
	options.revision = 2;
	side_open(&b, 2);
	request = reply = (struct seen_event){ .type = -1 };
	listener = (struct hca_iw_listener){ .siw = hca_transport_data(b.hca), .fn = on_iw_event, .ctx = &request };
	list_init(&listener.half);
	pair(fds);
	p = param(&a, len);
	siw_conn_passive_open(&listener, fds[1]);
	initiator = siw_conn_active_open(hca_transport_data(a.hca), fds[0], &p, on_iw_event, &reply);
	loop_run_idle(loop, 0);
}

static const u16 lengths[2][4] = { { 0, 1, 255, MPA_PRIVATE_MAX }, { 0, 1, 255, MPA_PRIVATE_MAX - MPA_V2_LEN } };

static void test_lengths(u8 revision)
{
	u32 i;

	for (i = 0; i < 4; i++) {
		u16 len = lengths[revision - 1][i];
		struct hca_iw_param p;
		int base = 100 * revision + 10 * (int)i;

		connect_pair(revision, len);
		row(base, "REQUEST event with private data", event_is(&request, HCA_IW_REQUEST, 0, len));
		p = param(&b, len);
		row(base + 1, "accept", siw_conn_ops.accept(request.conn, &p) == 0);
		loop_run_idle(loop, 0);
		row(base + 2, "REPLY event with private data", event_is(&reply, HCA_IW_REPLY, 0, len));
		close_both();

		connect_pair(revision, len);
		row(base + 3, "reject", siw_conn_ops.reject(request.conn, sent, len) == 0);
		loop_run_idle(loop, 0);
		row(base + 4, "REPLY event of a reject with private data",
		    event_is(&reply, HCA_IW_REPLY, -ECONNREFUSED, len));
		close_both();
	}
}

/* Private data that does not fit: the call fails, and the connection is unchanged. */
static void test_too_long(u8 revision)
{
	const struct hca_iw_addr to = { .ip = ip_addr_v4(INADDR_LOOPBACK), .port = 1 };
	struct hca_iw_addr from = { .ip = ip_addr_v4(INADDR_LOOPBACK) };
	u16 len = lengths[revision - 1][3];
	int base = 100 * revision + 50;
	struct hca_iw_conn *none;
	struct hca_iw_param p;

	connect_pair(revision, 0);
	p = param(&b, len + 1);
	row(base, "accept with too much private data", siw_conn_ops.accept(request.conn, &p) == -EINVAL);
	row(base + 1, "reject with too much private data", siw_conn_ops.reject(request.conn, sent, len + 1) == -EINVAL);
	p = param(&b, len);
	row(base + 2, "accept with the most private data after that", siw_conn_ops.accept(request.conn, &p) == 0);
	loop_run_idle(loop, 0);
	row(base + 3, "REPLY event with that data", event_is(&reply, HCA_IW_REPLY, 0, len));
	row(base + 4, "no reject was sent", siw_counter(b.hca, SIW_CTR_REJECT) == 0);
	close_both();

	connect_pair(revision, 0);
	p = param(&a, len + 1);
	row(base + 5, "connect with too much private data",
	    siw_conn_ops.connect(a.hca, &from, &to, &p, on_iw_event, &reply, &none) == -EINVAL);
	close_both();
}

/*
 * A queue pair of another context is not connected, nor one that received the number of the caller's during connection
 * establishment.
 */
static void test_owner(void)
{
	const struct hca_iw_addr to = { .ip = ip_addr_v4(INADDR_LOOPBACK), .port = 1 };
	struct hca_iw_addr from = { .ip = ip_addr_v4(INADDR_LOOPBACK) };
	struct hca_iw_conn *none;
	struct hca_iw_param p;

	connect_pair(2, 0);
	p = param(&a, 0);
	p.owner++;
	row(290, "connect with a queue pair of another context",
	    siw_conn_ops.connect(a.hca, &from, &to, &p, on_iw_event, &reply, &none) == -EINVAL);
	p = param(&b, 0);
	p.owner = 0;
	row(291, "accept with a queue pair of another context", siw_conn_ops.accept(request.conn, &p) == -EINVAL);
	p = param(&b, 0);
	initiator->owner++; /* as if another context had now a queue pair with that number */
	row(292, "accept with an own queue pair", siw_conn_ops.accept(request.conn, &p) == 0);
	loop_run_idle(loop, 0);
	row(293, "REPLY event where the QPN belongs to another context meanwhile",
	    event_is(&reply, HCA_IW_REPLY, -EINVAL, 0));
	close_both();
}

/* The initiator closes before the program accepts or rejects: that call fails, without an event. */
static void test_withdrawn(void)
{
	struct hca_iw_param p;

	connect_pair(2, 0);
	p = param(&b, 0);
	siw_conn_ops.destroy(initiator);
	loop_run_idle(loop, 0);
	row(300, "REQUEST event of a peer that has closed", event_is(&request, HCA_IW_REQUEST, 0, 0));
	row(301, "accept after the peer has closed", siw_conn_ops.accept(request.conn, &p) == -ECONNRESET);
	row(302, "reject after the peer has closed", siw_conn_ops.reject(request.conn, NULL, 0) == -ECONNRESET);
	siw_conn_ops.destroy(request.conn);
	close_both();
}

/* The responder's stream starts and ends in one turn of the loop: the program gets both events, in this order. */
static void test_short_life(void)
{
	struct hca_iw_param p;

	connect_pair(2, 0);
	p = param(&b, 0);
	established = 0;
	row(310, "accept", siw_conn_ops.accept(request.conn, &p) == 0);
	request.conn->sq->started(request.conn->sq->closed_ctx);
	siw_qp_close(request.conn->sq, -ECONNRESET, -1);
	row(311, "ESTABLISHED, then CLOSED", established == 1 && event_is(&request, HCA_IW_CLOSED, -ECONNRESET, 0));
	loop_run_idle(loop, 0);
	row(312, "ESTABLISHED once", established == 1);
	close_both();
}

/*
 * Without an RTR message the responder is established at once, but sends no FPDU before it has received one (RFC 5044,
 * 7.1.2): an initiator that finds more than the reply in its socket, as the kernel's siw, ends the connection.
 */
static void test_responder_first(u8 revision)
{
	struct hca_iw_param p;
	struct hca_send_wr nop = { .token = 9, .opcode = HCA_WR_NOP };
	struct hca_cqe c;

	options.rtr_write = options.rtr_read = false;
	connect_pair(revision, 0);
	options.rtr_write = options.rtr_read = true;
	p = param(&b, 0);
	established = 0;
	row(350 + 10 * revision, "accept", siw_conn_ops.accept(request.conn, &p) == 0);
	post_recv(&a, 0, 64);
	post_recv(&b, 0, 64);
	hca_soft_post_send(b.wq, &nop);
	post(&b, HCA_WR_SEND, 0, 64, 16, 0, 0);
	loop_run_idle(loop, loop_now(loop).ns + NSEC_PER_SEC);
	row(351 + 10 * revision, "ESTABLISHED at once", established == 1 && event_is(&reply, HCA_IW_REPLY, 0, 0));
	row(352 + 10 * revision, "a local operation of the responder", next(&b, &c) == 0 && c.token == 9);
	row(353 + 10 * revision, "no SEND before the initiator's first FPDU",
	    next(&b, &c) == -1 && next(&a, &c) == -1 && !siw_counter(b.hca, SIW_CTR_FPDU_SENT));
	post(&a, HCA_WR_SEND, 0, 0, 64, 0, 0);
	row(354 + 10 * revision, "the initiator's SEND", next(&b, &c) == 0 && c.opcode == HCA_WC_RECV);
	row(355 + 10 * revision, "then the responder's", next(&b, &c) == 0 && c.opcode == HCA_WC_SEND);
	row(356 + 10 * revision, "ESTABLISHED once", established == 1);
	siw_conn_ops.destroy(initiator);
	close_both();
}

static bool late;

static int late_write(void *ctx, const struct hca_dma_seg *seg, u32 n)
{
	return late ? -EAGAIN : hca_local_dma.write(ctx, seg, n);
}

/* The connection is destroyed while received data are moved to late memory: the stream ends later. */
static void test_late_end(void)
{
	const struct hca_dma_ops late_dma = { .read = hca_local_dma.read, .write = late_write, .start = late_start };
	struct hca_iw_param p;
	struct siw_qp *sq;
	struct hca_cqe c;

	dma = &late_dma;
	connect_pair(2, 0);
	dma = &hca_local_dma;
	p = param(&b, 0);
	row(330, "accept", siw_conn_ops.accept(request.conn, &p) == 0);
	sq = request.conn->sq;
	loop_run_idle(loop, loop_now(loop).ns + NSEC_PER_SEC); /* RTR */
	post_recv(&b, 0, 64);
	late = true;
	post(&a, HCA_WR_SEND, 0, 0, 64, 0, 0);
	row(331, "data are late", next(&a, &c) == 0 && next(&b, &c) == -1 && late_count == 1);
	siw_conn_ops.destroy(request.conn);
	row(332, "the destroyed connection is not notified of the end of its stream",
	    !sq->closed && next(&b, &c) == -1);
	late = false;
	late_moves_end(&late_dma, NULL);
	row(333, "the receive completes", next(&b, &c) == 0 && c.byte_len == 64);
	row(334, "and the queue pair is in ERR", hca_qp_lookup(b.hca, b.qpn)->state == HCA_QPS_ERR);
	close_both();
}

/* Faults of MPA frames, and of the link while a connection is established. */
static void test_faults(void)
{
	static const struct {
		const char *text;
		bool initiator; /* the host of the fault */
		int status;     /* of the REPLY event */
	} rows[] = {
		{ "w reject nth=1", false, -ECONNREFUSED },
		{ "w garble nth=1", false, -ECONNRESET },
		{ "w garble nth=1", true, -EPROTO },
		{ "w kill", true, -ECONNRESET },
	};
	struct hca_iw_param p;
	struct fault *ft;
	int fds[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		options.revision = 1; /* with revision 2 the initiator would retry with 1 */
		side_open(&a, 1);
		side_open(&b, 2);
		options.revision = 2;
		request = reply = (struct seen_event){ .type = -1 };
		listener = (struct hca_iw_listener){ .siw = hca_transport_data(b.hca),
						     .fn = on_iw_event,
						     .ctx = &request };
		list_init(&listener.half);
		pair(fds);
		p = param(&a, 0);
		siw_conn_passive_open(&listener, fds[1]);
		siw_conn_active_open(hca_transport_data(a.hca), fds[0], &p, on_iw_event, &reply);
		if (strstr(rows[i].text, "kill"))
			loop_run_idle(loop, 0);
		ft = arm(rows[i].initiator ? &a : &b, rows[i].text);
		loop_run_idle(loop, 0);
		if (request.type == HCA_IW_REQUEST && rows[i].initiator) {
			p = param(&b, 0);
			(void)siw_conn_ops.accept(request.conn, &p);
			loop_run_idle(loop, 0);
		}
		row(320 + (int)i, rows[i].text,
		    event_is(&reply, HCA_IW_REPLY, rows[i].status, 0) && ft->pick.hits == 1);
		fault_remove(ft);
		close_both();
	}
}

int main(void)
{
	u8 revision;

	pattern(sent, sizeof(sent));
	loop = loop_create_virtual();
	for (revision = 1; revision <= 2; revision++) {
		test_lengths(revision);
		test_too_long(revision);
		test_responder_first(revision);
	}
	test_owner();
	test_withdrawn();
	test_short_life();
	test_late_end();
	test_faults();
	loop_destroy(loop);
	return rows_end();
}
