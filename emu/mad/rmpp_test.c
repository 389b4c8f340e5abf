// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of rmpp.c: messages in both directions complete, with loss, out of order, aborted and malformed. */
#include "emu/mad/fixture.h"

#define CLASS     MAD_CLASS_SUBN_ADM
#define HDR       56
#define GET_TABLE 0x12
#define GET_MULTI 0x14

static u32 table_len; /* data bytes of the server's response */

static u8 pattern(u32 i)
{
	return i * 7 + (i >> 8);
}

static u8 *message(u8 method, u32 len, u64 tid)
{
	u8 *m = calloc(1, HDR + len > MAD_SIZE ? HDR + len : MAD_SIZE);
	u32 i;

	mad_fill(m, CLASS, 2, method, 0x11, tid);
	wire_set(m, RMPP_FLAGS, RMPP_FLAG_ACTIVE); /* version and type are zero, as in OpenSM */
	for (i = 0; i < len; i++)
		m[HDR + i] = pattern(i);
	return m;
}

static bool whole(const struct seen *s, u32 len)
{
	u32 i;

	if (s->len != HDR + len || !s->data)
		return false;
	for (i = 0; i < len; i++)
		if (s->data[HDR + i] != pattern(i))
			return false;
	return true;
}

static void answer_table(struct seen *s)
{
	u8 *m = message(wire_mad_get_method(s->mad) | 0x80, table_len, 0);

	memcpy(m + 8, s->mad + 8, 8);
	mad_send(s->agent, m, HDR + table_len, &s->from, 0, 3, NULL);
	free(m);
}

struct pair {
	struct seen client, server;
};

static void pair_open(struct cable *c, struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->server.then = answer_table;
	seen_register(c->ma, &p->client, CLASS, 2, 1);
	seen_register(c->mb, &p->server, CLASS, 2, 1);
}

static bool pair_close(struct pair *p, bool ok)
{
	free(p->client.data);
	free(p->server.data);
	return ok;
}

static void request(struct pair *p)
{
	u8 mad[MAD_SIZE];

	mad_fill(mad, CLASS, 2, GET_TABLE, 0x11, 5);
	mad_send(p->client.agent, mad, MAD_SIZE, &TO_LID(2), 10000, 0, p);
}

/* Whether a table of @len bytes is received completely within @ms. */
static bool table_comes(struct cable *c, u32 len, u32 ms)
{
	struct pair p;

	pair_open(c, &p);
	table_len = len;
	request(&p);
	cable_run(c, ms);
	return pair_close(&p, p.client.recvs == 1 && p.client.cookie == &p && whole(&p.client, len) &&
				      p.server.sents == 1 && p.server.status == 0);
}

static bool sizes(struct cable *c)
{
	static const u32 lens[] = { 0, 1, 199, 200, 201, 400, 12800, 13000, 13001, 100000 };
	struct pair p;
	u32 i;

	pair_open(c, &p);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		table_len = lens[i];
		request(&p);
		cable_run(c, 1);
		CHECK(p.client.recvs == i + 1 && whole(&p.client, lens[i]));
		CHECK(p.server.sents == i + 1 && p.server.status == 0);
		cable_run(c, 20000);
	}
	return pair_close(&p, true);
}

static bool every_third(struct end *e, const struct wire_packet *p)
{
	return e->sent % 3 == 0;
}

static bool loss_of_segments(struct cable *c)
{
	c->b.drop = every_third;
	/* A window with a lost segment is retransmitted after the ACK timeout, at most three times. */
	c->b.drop_arg = 3;
	return table_comes(c, 1000, 9000);
}

static bool drop_nth(struct end *e, const struct wire_packet *p)
{
	return e->sent == e->drop_arg;
}

static bool loss_of_the_last_ack(struct cable *c)
{
	struct pair p;

	/* request, ACK of segment 1, ACK of the last */
	c->a.drop = drop_nth;
	c->a.drop_arg = 3;
	pair_open(c, &p);
	table_len = 1000;
	request(&p);
	cable_run(c, 10);
	CHECK(p.client.recvs == 1 && whole(&p.client, 1000) && p.server.sents == 0);
	cable_run(c, 2000);
	CHECK(p.client.recvs == 1 && p.server.sents == 1 && p.server.status == 0);
	CHECK(mad_port_counter(c->ma, MAD_CTR_RMPP_DUPLICATES) > 0);
	return pair_close(&p, true);
}

static bool loss_of_the_first_segment(struct cable *c)
{
	c->b.drop = drop_nth;
	c->b.drop_arg = 1;
	return table_comes(c, 1000, 2500);
}

static bool out_of_order(struct cable *c)
{
	c->b.swap_at = 3;
	return table_comes(c, 1000, 1);
}

static bool last_before_others(struct cable *c)
{
	c->b.swap_at = 4;
	return table_comes(c, 1000, 1);
}

static bool after(struct end *e, const struct wire_packet *p)
{
	return e->sent > e->drop_arg;
}

static bool sender_gives_up(struct cable *c)
{
	struct pair p;

	c->a.drop = after; /* the request is delivered, no ACK is */
	c->a.drop_arg = 1;
	pair_open(c, &p);
	table_len = 1000;
	request(&p);
	cable_run(c, 7999);
	CHECK(p.server.sents == 0);
	cable_run(c, 2);
	CHECK(p.server.sents == 1 && p.server.status == MAD_TIMED_OUT);
	return pair_close(&p, true);
}

static bool receiver_gives_up(struct cable *c)
{
	struct pair p;

	c->b.drop = after; /* the first segment is delivered, no other */
	c->b.drop_arg = 1;
	pair_open(c, &p);
	table_len = 1000;
	request(&p);
	cable_run(c, 9000);
	CHECK(p.server.sents == 1 && p.client.recvs == 0);
	cable_run(c, 40000);
	CHECK(mad_port_counter(c->ma, MAD_CTR_RMPP_ABORTED) == 1);
	CHECK(p.client.agent->nrecvs == 0);
	return pair_close(&p, true);
}

static bool request_by_rmpp(struct cable *c)
{
	struct pair p;
	u8 *m = message(GET_MULTI, 900, 6);

	pair_open(c, &p);
	table_len = 3000;
	mad_send(p.client.agent, m, HDR + 900, &TO_LID(2), 1000, 2, &p);
	free(m);
	cable_run(c, 1);
	CHECK(p.server.recvs == 1 && whole(&p.client, 3000));
	CHECK(p.client.recvs == 1 && p.client.cookie == &p);
	CHECK(p.client.agent->nreqs == 0 && p.server.agent->nreqs == 0);
	return pair_close(&p, true);
}

static bool request_by_rmpp_unanswered(struct cable *c)
{
	struct pair p;
	u8 *m = message(GET_MULTI, 900, 6);

	pair_open(c, &p);
	p.server.then = NULL;
	mad_send(p.client.agent, m, HDR + 900, &TO_LID(2), 1000, 2, &p);
	free(m);
	cable_run(c, 999);
	CHECK(p.server.recvs == 1 && p.client.sents == 0);
	cable_run(c, 10);
	CHECK(p.client.sents == 1 && p.client.status == MAD_TIMED_OUT);
	return pair_close(&p, true);
}

static bool memory_is_freed_when_agents_go(struct cable *c)
{
	struct pair p;

	c->b.drop = after;
	c->b.drop_arg = 1;
	pair_open(c, &p);
	table_len = 100000;
	request(&p);
	cable_run(c, 100);
	mad_agent_unregister(p.client.agent);
	mad_agent_unregister(p.server.agent);
	cable_run(c, 100000);
	return pair_close(&p, p.server.sents == 0);
}

/* ---- malformed packets ---- */

/* The client sends the packet of a row, from an agent without RMPP; the server's response is in *s. */
struct bad_row {
	const char *name;
	u8 version, type, flags, status;
	u32 seg, d2;
	u8 answer, answer_status; /* RMPP type and status; 0: none */
};

static const struct bad_row bad_rows[] = {
	{ "version 2", 2, RMPP_TYPE_DATA, 3, 0, 1, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_VERSION },
	{ "type 0", 1, 0, 1, 0, 1, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_TYPE },
	{ "type 9", 1, 9, 1, 0, 1, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_TYPE },
	{ "DATA with status", 1, RMPP_TYPE_DATA, 3, 9, 1, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_STATUS },
	{ "segment 1 not first", 1, RMPP_TYPE_DATA, 1, 0, 1, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_SEG },
	{ "first but segment 2", 1, RMPP_TYPE_DATA, 3, 0, 2, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_SEG },
	{ "first but segment 0", 1, RMPP_TYPE_DATA, 3, 0, 0, 220, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_SEG },
	{ "unknown middle", 1, RMPP_TYPE_DATA, 1, 0, 9, 220, 0, 0 },
	{ "first and last", 1, RMPP_TYPE_DATA, 7, 0, 1, 220, RMPP_TYPE_ACK, 0 },
	{ "first", 1, RMPP_TYPE_DATA, 3, 0, 1, 5000, RMPP_TYPE_ACK, 0 },
	{ "ACK without a transfer", 1, RMPP_TYPE_ACK, 1, 0, 1, 65, 0, 0 },
	{ "ACK, window too small", 1, RMPP_TYPE_ACK, 1, 0, 5, 4, RMPP_TYPE_ABORT, RMPP_STATUS_W2S },
	{ "ACK with status", 1, RMPP_TYPE_ACK, 1, 3, 1, 65, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_STATUS },
	{ "STOP", 1, RMPP_TYPE_STOP, 1, RMPP_STATUS_RESX, 0, 0, 0, 0 },
	{ "STOP with another status", 1, RMPP_TYPE_STOP, 1, 120, 0, 0, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_STATUS },
	{ "ABORT", 1, RMPP_TYPE_ABORT, 1, RMPP_STATUS_TMR, 0, 0, 0, 0 },
	{ "ABORT with STOP's status", 1, RMPP_TYPE_ABORT, 1, 1, 0, 0, RMPP_TYPE_ABORT, RMPP_STATUS_BAD_STATUS },
};

static void fill_rmpp(u8 *mad, const struct bad_row *b)
{
	wire_set(mad, RMPP_VERSION, b->version);
	wire_set(mad, RMPP_TYPE, b->type);
	wire_set(mad, RMPP_FLAGS, b->flags);
	wire_set(mad, RMPP_STATUS, b->status);
	wire_set(mad, RMPP_DATA1, b->seg);
	wire_set(mad, RMPP_DATA2, b->d2);
}

static bool malformed(struct cable *c)
{
	struct seen raw = { 0 }, server = { 0 };
	bool ok = true, good;
	u8 mad[MAD_SIZE];
	u32 i;

	seen_register(c->ma, &raw, CLASS, 2, 0);
	seen_register(c->mb, &server, CLASS, 2, 1);
	for (i = 0; i < ARRAY_SIZE(bad_rows); i++) {
		raw.recvs = 0;
		mad_fill(mad, CLASS, 2, GET_TABLE, 0x11, 100 + i);
		fill_rmpp(mad, &bad_rows[i]);
		mad_send(raw.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
		cable_run(c, 1);
		good = bad_rows[i].answer ? raw.recvs == 1 && wire_get(raw.mad, RMPP_TYPE) == bad_rows[i].answer &&
						    wire_get(raw.mad, RMPP_STATUS) == bad_rows[i].answer_status
					  : raw.recvs == 0;
		if (!good) {
			printf("malformed %u (%s): %u responses, type %u status %u\n", i + 1, bad_rows[i].name,
			       raw.recvs, (u32)wire_get(raw.mad, RMPP_TYPE), (u32)wire_get(raw.mad, RMPP_STATUS));
			ok = false;
		}
	}
	free(raw.data);
	free(server.data);
	return ok;
}

/* Responses to a sender: a raw agent at the far end receives the segments and sends the packet of a row. */
static const struct send_row {
	const char *name;
	struct bad_row say;
	int status; /* of the send; 1: in progress */
} send_rows[] = {
	{ "ABORT", { "", 1, RMPP_TYPE_ABORT, 1, RMPP_STATUS_UNSPEC, 0, 0, 0, 0 }, -ECONNABORTED },
	{ "STOP", { "", 1, RMPP_TYPE_STOP, 1, RMPP_STATUS_RESX, 0, 0, 0, 0 }, -ECONNABORTED },
	{ "ACK beyond the window", { "", 1, RMPP_TYPE_ACK, 1, 0, 2, 10, 0, 0 }, -ECONNABORTED },
	{ "ACK beyond the end", { "", 1, RMPP_TYPE_ACK, 1, 0, 50, 90, 0, 0 }, -ECONNABORTED },
	{ "window too small", { "", 1, RMPP_TYPE_ACK, 1, 0, 1, 0, 0, 0 }, -ECONNABORTED },
	{ "bad version", { "", 3, RMPP_TYPE_ACK, 1, 0, 1, 65, 0, 0 }, -ECONNABORTED },
	{ "good ACK", { "", 1, RMPP_TYPE_ACK, 1, 0, 1, 65, 0, 0 }, 1 },
	{ "ACK without progress", { "", 1, RMPP_TYPE_ACK, 1, 0, 0, 1, 0, 0 }, 1 },
};

static bool sender_hears(struct cable *c)
{
	struct seen raw = { 0 }, sender = { 0 };
	u8 mad[MAD_SIZE], *m;
	bool ok = true;
	int status;
	u32 i;

	seen_register(c->mb, &raw, CLASS, 2, 0);
	seen_register(c->ma, &sender, CLASS, 2, 1);
	for (i = 0; i < ARRAY_SIZE(send_rows); i++) {
		sender.sents = raw.recvs = 0;
		m = message(GET_MULTI, 1000, 200 + i);
		mad_send(sender.agent, m, HDR + 1000, &TO_LID(2), 1000, 0, NULL);
		free(m);
		cable_run(c, 1);
		CHECK(raw.recvs == 1 && wire_get(raw.mad, RMPP_SEGMENT) == 1);
		CHECK(wire_get(raw.mad, RMPP_PAYLOAD_LEN) == 1000 + 5 * 20);
		memcpy(mad, raw.mad, MAD_SIZE);
		wire_set(mad, MAD_METHOD, wire_mad_get_method(mad) ^ MAD_METHOD_RESP);
		fill_rmpp(mad, &send_rows[i].say);
		mad_send(raw.agent, mad, MAD_SIZE, &raw.from, 0, 0, NULL);
		cable_run(c, 1);
		status = sender.sents ? sender.status : 1;
		if (status != send_rows[i].status) {
			printf("send %u (%s): %d\n", i + 1, send_rows[i].name, status);
			ok = false;
		}
		cable_run(c, 5000);
		CHECK(sender.agent->nreqs == 0);
	}
	free(raw.data);
	return ok;
}

/* A receiver opens a window of 4e9 segments. */
static bool endless_window(struct cable *c)
{
	struct seen sender = { 0 }, raw = { 0 };
	u32 before, len = 200 * 4 * RMPP_TURN;
	u8 *m = message(GET_MULTI, len, 9), mad[MAD_SIZE];

	seen_register(c->ma, &sender, CLASS, 2, 1);
	seen_register(c->mb, &raw, CLASS, 2, 0);
	CHECK(mad_send(sender.agent, m, HDR + len, &TO_LID(2), 1000, 0, NULL) == 0);
	cable_run(c, 1);
	CHECK(raw.recvs == 1);
	memcpy(mad, raw.mad, MAD_SIZE);
	wire_set(mad, MAD_METHOD, wire_mad_get_method(mad) ^ MAD_METHOD_RESP);
	wire_set(mad, RMPP_TYPE, RMPP_TYPE_ACK);
	wire_set(mad, RMPP_SEGMENT, 1);
	wire_set(mad, RMPP_NEW_WINDOW, ~0u);
	before = c->a.sent;
	mad_agent_receive(c->ma, MAD_QPN_GSI, mad, &TO_LID(2));
	CHECK(c->ma->tx_len[1] == RMPP_TURN && c->a.sent == before);
	cable_run(c, 1);
	CHECK(c->a.sent - before == 4 * RMPP_TURN - 1 && !c->ma->counter[MAD_CTR_TX_DROPPED]);
	free(m);
	free(raw.data);
	return true;
}

/* One host starts messages without completing any; another host's message is still accepted. */
static bool messages_without_end(struct cable *c)
{
	struct seen taker = { 0 };
	struct mad_addr from = TO_LID(2), other = TO_LID(3);
	u8 mad[MAD_SIZE];
	u32 i;

	seen_register(c->ma, &taker, CLASS, 2, 1);
	for (i = 0; i < RMPP_RECVS_MAX; i++) {
		mad_fill(mad, CLASS, 2, GET_MULTI, 0x11, i);
		wire_set(mad, RMPP_VERSION, RMPP_VERSION_1);
		wire_set(mad, RMPP_TYPE, RMPP_TYPE_DATA);
		wire_set(mad, RMPP_FLAGS, RMPP_FLAG_ACTIVE | RMPP_FLAG_FIRST);
		wire_set(mad, RMPP_SEGMENT, 1);
		mad_agent_receive(c->ma, MAD_QPN_GSI, mad, &from);
	}
	CHECK(taker.agent->nrecvs == RMPP_SOURCE_MAX);
	CHECK(c->ma->counter[MAD_CTR_RMPP_REFUSED] == RMPP_RECVS_MAX - RMPP_SOURCE_MAX);
	mad_agent_receive(c->ma, MAD_QPN_GSI, mad, &other);
	CHECK(taker.agent->nrecvs == RMPP_SOURCE_MAX + 1);
	cable_run(c, RMPP_TOTAL_TIMEOUT_MS + 1000);
	CHECK(!taker.agent->nrecvs && !taker.agent->recv_bytes);
	return true;
}

/* Too many unacknowledged bytes. */
static bool too_much_to_send(struct cable *c)
{
	struct seen sender = { 0 };
	u32 len = 4u << 20, n = 0;
	u8 *m = message(GET_MULTI, len, 1);
	int err = 0;

	seen_register(c->ma, &sender, CLASS, 2, 1);
	while (!err && n <= MAD_BYTES_MAX / len) {
		err = mad_send(sender.agent, m, HDR + len, &TO_LID(2), 1000, 0, NULL);
		n += !err;
	}
	CHECK(err == -ENOMEM && n == MAD_BYTES_MAX / len - 1 && c->ma->counter[MAD_CTR_REFUSED] == 1);
	cable_run(c, 10000);
	CHECK(!sender.agent->nreqs && !sender.agent->req_bytes);
	free(m);
	return true;
}

static const struct row rows[] = {
	{ "sizes", sizes },
	{ "every third packet lost", loss_of_segments },
	{ "last ACK lost", loss_of_the_last_ack },
	{ "first segment lost", loss_of_the_first_segment },
	{ "out of order", out_of_order },
	{ "last before others", last_before_others },
	{ "sender aborts", sender_gives_up },
	{ "receiver aborts", receiver_gives_up },
	{ "request by RMPP", request_by_rmpp },
	{ "request by RMPP, unanswered", request_by_rmpp_unanswered },
	{ "agents go", memory_is_freed_when_agents_go },
	{ "malformed", malformed },
	{ "responses to a sender", sender_hears },
	{ "an endless window", endless_window },
	{ "messages without end", messages_without_end },
	{ "too much to send", too_much_to_send },
};

int main(void)
{
	return rows_run(rows, ARRAY_SIZE(rows));
}
