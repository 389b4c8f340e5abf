// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The start of connections, and private data both ways: an initiator and a responder whose sockets are a pair. */
#include <errno.h>
#include <netinet/in.h>

#include "emu/lib/row.h"
#include "siw/conn.h"
#include "siw/fixture.h"

#define TOO_LONG (MPA_PRIVATE_MAX + 1)

/* What one side was told last. */
struct told {
	struct hca_iw_conn *conn;
	int type, status;
	u16 len;
	u8 data[MPA_PRIVATE_MAX];
};

static struct told request, reply;
static struct hca_iw_listener listener;
static struct hca_iw_conn *asking;
static u8 sent[TOO_LONG];

static int on_told(void *ctx, struct hca_iw_conn *c, const struct hca_iw_event *ev)
{
	struct told *t = ctx;

	if (ev->type == HCA_IW_ESTABLISHED)
		return 0;
	*t = (struct told){ .conn = c, .type = (int)ev->type, .status = ev->status, .len = ev->data_len };
	if (ev->data_len)
		memcpy(t->data, ev->data, ev->data_len);
	return 0;
}

static bool holds(const struct told *t, int type, int status, u16 len)
{
	return t->type == type && t->status == status && t->len == len && !memcmp(t->data, sent, len);
}

static struct hca_iw_param param(const struct side *s, u16 len)
{
	return (struct hca_iw_param){ .qpn = s->qpn, .ird = 2, .ord = 2, .data = sent, .data_len = len };
}

/* Of revision @revision, with that many bytes in the request. */
static void ask(u8 revision, u16 len)
{
	struct hca_iw_param p;
	int fds[2];

	options.revision = revision;
	side_open(&a, 1);
	options.revision = 2;
	side_open(&b, 2);
	request = reply = (struct told){ .type = -1 };
	listener = (struct hca_iw_listener){ .siw = hca_transport_data(b.hca), .fn = on_told, .ctx = &request };
	list_init(&listener.half);
	pair(fds);
	p = param(&a, len);
	siw_conn_take(&listener, fds[1]);
	asking = siw_conn_ask(hca_transport_data(a.hca), fds[0], &p, on_told, &reply);
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

		ask(revision, len);
		row(base, "a request's data", holds(&request, HCA_IW_REQUEST, 0, len));
		p = param(&b, len);
		row(base + 1, "it is accepted", siw_conn_ops.accept(request.conn, &p) == 0);
		loop_run_idle(loop, 0);
		row(base + 2, "with data", holds(&reply, HCA_IW_REPLY, 0, len));
		close_both();

		ask(revision, len);
		row(base + 3, "another is rejected", siw_conn_ops.reject(request.conn, sent, len) == 0);
		loop_run_idle(loop, 0);
		row(base + 4, "with data, too", holds(&reply, HCA_IW_REPLY, -ECONNREFUSED, len));
		close_both();
	}
}

/* What does not fit is said to who asked for it, and nothing has happened. */
static void test_too_long(u8 revision)
{
	const struct hca_iw_addr to = { .ip = ip_addr_v4(INADDR_LOOPBACK), .port = 1 };
	struct hca_iw_addr from = { .ip = ip_addr_v4(INADDR_LOOPBACK) };
	u16 len = lengths[revision - 1][3];
	int base = 100 * revision + 50;
	struct hca_iw_conn *none;
	struct hca_iw_param p;

	ask(revision, 0);
	p = param(&b, len + 1);
	row(base, "an accept with too much", siw_conn_ops.accept(request.conn, &p) == -EINVAL);
	row(base + 1, "a reject with too much", siw_conn_ops.reject(request.conn, sent, len + 1) == -EINVAL);
	p = param(&b, len);
	row(base + 2, "and then as much as there may be", siw_conn_ops.accept(request.conn, &p) == 0);
	loop_run_idle(loop, 0);
	row(base + 3, "which comes", holds(&reply, HCA_IW_REPLY, 0, len));
	row(base + 4, "none was rejected", siw_counter(b.hca, SIW_CTR_REJECT) == 0);
	close_both();

	ask(revision, 0);
	p = param(&a, len + 1);
	row(base + 5, "a request with too much",
	    siw_conn_ops.connect(a.hca, &from, &to, &p, on_told, &reply, &none) == -EINVAL);
	close_both();
}

/* A request whose peer goes, or breaks MPA, before it is answered: who has it learns that by his answer, and by nothing else. */
static void test_withdrawn(void)
{
	struct hca_iw_param p;

	ask(2, 0);
	p = param(&b, 0);
	siw_conn_ops.destroy(asking);
	loop_run_idle(loop, 0);
	row(300, "a request whose peer has gone", holds(&request, HCA_IW_REQUEST, 0, 0));
	row(301, "cannot be accepted", siw_conn_ops.accept(request.conn, &p) == -ECONNRESET);
	row(302, "nor rejected", siw_conn_ops.reject(request.conn, NULL, 0) == -ECONNRESET);
	siw_conn_ops.destroy(request.conn);
	close_both();
}

int main(void)
{
	u8 revision;

	pattern(sent, sizeof(sent));
	loop = loop_create_virtual();
	for (revision = 1; revision <= 2; revision++) {
		test_lengths(revision);
		test_too_long(revision);
	}
	test_withdrawn();
	loop_destroy(loop);
	return rows_end();
}
