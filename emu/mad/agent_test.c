// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of agent.c, request.c and port.c: registration, dispatch, timeouts, keys, addresses. */
#include "emu/mad/fixture.h"
#include "emu/wire/smp.h"

/* ---- registration ---- */

static const struct reg_row {
	const char *name;
	struct mad_agent_reg reg;
	bool no_recv;
	int result;
} reg_rows[] = {
	{ "send only", { .qpn = 1 }, true, 0 },
	{ "send only, QP0", { .qpn = 0 }, true, 0 },
	{ "no such QP", { .qpn = 2 }, false, -EINVAL },
	{ "SA", { .qpn = 1, .mgmt_class = 3, .class_version = 2, .methods = { 6 } }, false, 0 },
	{ "SA without receive handler", { .qpn = 1, .mgmt_class = 3, .class_version = 2 }, true, -EINVAL },
	{ "SA with RMPP", { .qpn = 1, .mgmt_class = 3, .class_version = 2, .rmpp_version = 1 }, false, 0 },
	{ "RMPP version 2", { .qpn = 1, .mgmt_class = 3, .class_version = 2, .rmpp_version = 2 }, false, -EINVAL },
	{ "RMPP in a class without",
	  { .qpn = 1, .mgmt_class = 4, .class_version = 1, .rmpp_version = 1 },
	  false,
	  -EINVAL },
	{ "SA on QP0", { .qpn = 0, .mgmt_class = 3, .class_version = 2 }, false, -EINVAL },
	{ "SMP by LID", { .qpn = 0, .mgmt_class = 1, .class_version = 1 }, false, 0 },
	{ "SMP by route", { .qpn = 0, .mgmt_class = 0x81, .class_version = 1 }, false, 0 },
	{ "SMP on QP1", { .qpn = 1, .mgmt_class = 1, .class_version = 1 }, false, -EINVAL },
	{ "class 80", { .qpn = 1, .mgmt_class = 80, .class_version = 1 }, false, -EINVAL },
	{ "class 0x82", { .qpn = 1, .mgmt_class = 0x82, .class_version = 1 }, false, -EINVAL },
	{ "version 0x83", { .qpn = 1, .mgmt_class = 4, .class_version = 0x83 }, false, -EINVAL },
	{ "vendor without OUI", { .qpn = 1, .mgmt_class = 0x32, .class_version = 1 }, false, -EINVAL },
	{ "vendor", { .qpn = 1, .mgmt_class = 0x32, .class_version = 1, .oui = { 0, 0x14, 5 } }, false, 0 },
};

static bool registrations(struct cable *c)
{
	struct mad_agent_reg reg;
	struct mad_agent *agent;
	struct seen s = { 0 };
	bool ok = true;
	u32 i;
	int r;

	for (i = 0; i < ARRAY_SIZE(reg_rows); i++) {
		reg = reg_rows[i].reg;
		reg.ctx = &s;
		reg.recv = reg_rows[i].no_recv ? NULL : seen_recv;
		r = mad_agent_register(c->ma, &reg, &agent);
		if (r != reg_rows[i].result) {
			printf("registration %u (%s): %d\n", i + 1, reg_rows[i].name, r);
			ok = false;
		}
		if (r == 0)
			mad_agent_unregister(agent);
	}
	return ok;
}

static bool one_agent_per_method(struct cable *c)
{
	struct mad_agent_reg reg = {
		.qpn = 1, .mgmt_class = 3, .class_version = 2, .methods = { 6 }, .recv = seen_recv
	};
	struct mad_agent *a, *b, *d;

	CHECK(mad_agent_register(c->ma, &reg, &a) == 0);
	CHECK(mad_agent_register(c->ma, &reg, &b) == -EBUSY);
	reg.methods[0] = 8;
	CHECK(mad_agent_register(c->ma, &reg, &b) == 0);
	reg.class_version = 1;
	CHECK(mad_agent_register(c->ma, &reg, &d) == 0);
	CHECK(mad_agent_tid_high(a) != mad_agent_tid_high(b) && mad_agent_tid_high(b) != mad_agent_tid_high(d));
	mad_agent_unregister(a);
	reg.class_version = 2;
	reg.methods[0] = 6;
	CHECK(mad_agent_register(c->ma, &reg, &a) == 0);
	return true;
}

/* ---- requests ---- */

static bool request_and_response(struct cable *c)
{
	struct seen client = { 0 }, server = { .then = seen_answer };
	u8 mad[MAD_SIZE];

	CHECK(seen_register(c->ma, &client, 4, 1, 0) == 0);
	CHECK(seen_register(c->mb, &server, 4, 1, 0) == 0);
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	CHECK(mad_send(client.agent, mad, 64, &TO_LID(2), 100, 2, &client) == 0);
	cable_run(c, 1);
	CHECK(server.recvs == 1 && server.len == MAD_SIZE && server.cookie == NULL);
	CHECK(server.from.lid == 1 && server.from.qpn == 1 && server.from.pkey_index == 0 && !server.from.grh);
	CHECK(wire_get(server.mad, MAD_TID) == ((u64)mad_agent_tid_high(client.agent) << 32 | 7));
	CHECK(client.recvs == 1 && client.cookie == &client && client.mad[100] == 42);
	CHECK(server.sents == 1 && server.status == 0);
	cable_run(c, 1000);
	CHECK(client.recvs == 1 && client.sents == 0);
	free(client.data);
	free(server.data);
	return true;
}

static bool drop_first(struct end *e, const struct wire_packet *p)
{
	return e->sent <= e->drop_arg;
}

static bool retries_until_answered(struct cable *c)
{
	struct seen client = { 0 }, server = { .then = seen_answer };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	seen_register(c->mb, &server, 4, 1, 0);
	c->a.drop = drop_first;
	c->a.drop_arg = 2;
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 100, 2, &client) == 0);
	cable_run(c, 199);
	CHECK(client.recvs == 0 && c->a.sent == 2);
	cable_run(c, 10);
	CHECK(client.recvs == 1 && c->a.sent == 3);
	CHECK(mad_port_counter(c->ma, MAD_CTR_RESENT) == 2);
	free(client.data);
	free(server.data);
	return true;
}

static bool times_out_after_retries(struct cable *c)
{
	struct seen client = { 0 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	mad_fill(mad, 4, 1, MAD_METHOD_REPORT, 0x12, 7); /* no agent, and not a Get or Set: no response */
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 100, 3, &client) == 0);
	cable_run(c, 399);
	CHECK(client.sents == 0 && c->a.sent == 4);
	cable_run(c, 2);
	CHECK(client.sents == 1 && client.status == MAD_TIMED_OUT && client.cookie == &client &&
	      client.len == MAD_SIZE);
	CHECK(mad_port_counter(c->ma, MAD_CTR_TIMEOUTS) == 1);
	return true;
}

static bool cancelled_says_nothing(struct cable *c)
{
	struct seen client = { 0 }, server = { .then = seen_answer };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	seen_register(c->mb, &server, 4, 1, 0);
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 100, 3, &client);
	mad_cancel(client.agent, &client);
	cable_run(c, 1000);
	CHECK(client.sents == 0 && client.recvs == 0 && server.recvs == 1);
	CHECK(mad_port_counter(c->ma, MAD_CTR_UNMATCHED) == 1);
	free(server.data);
	return true;
}

static void unregister_self(struct seen *s)
{
	mad_agent_unregister(s->agent);
	s->agent = NULL;
}

static bool agent_ends_in_its_callback(struct cable *c)
{
	struct seen client = { .then = unregister_self }, server = { .then = seen_answer };
	u8 mad[MAD_SIZE];
	u32 i;

	seen_register(c->ma, &client, 4, 1, 0);
	seen_register(c->mb, &server, 4, 1, 0);
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	for (i = 0; i < 3; i++) {
		wire_set(mad, MAD_TID, i);
		mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 100, 3, &client);
	}
	cable_run(c, 1000);
	CHECK(client.recvs == 1 && client.sents == 0 && server.recvs == 3);
	CHECK(mad_port_counter(c->ma, MAD_CTR_NO_AGENT) == 2);
	free(client.data);
	free(server.data);
	return true;
}

/* ---- dispatch ---- */

static bool unserved_get_is_answered(struct cable *c)
{
	struct seen client = { 0 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 0x0a, 1, 0);
	mad_fill(mad, 0x0a, 1, 1, 0x12, 7);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 100, 3, &client);
	cable_run(c, 1);
	CHECK(client.recvs == 1 && wire_mad_get_method(client.mad) == 0x81 && wire_get(client.mad, MAD_STATUS) == 0x0c);
	wire_set(mad, MAD_METHOD, MAD_METHOD_TRAP);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, &client);
	cable_run(c, 1);
	CHECK(client.recvs == 1 && mad_port_counter(c->mb, MAD_CTR_UNSUPPORTED) == 1);
	CHECK(mad_port_counter(c->mb, MAD_CTR_NO_AGENT) == 2);
	free(client.data);
	return true;
}

static bool vendor_class_goes_by_oui(struct cable *c)
{
	struct seen client = { 0 }, ping = { 0 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 0x32, 1, 0);
	seen_register(c->mb, &ping, 0x32, 1, 0);
	mad_fill(mad, 0x32, 1, MAD_METHOD_SEND, 0, 7);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
	cable_run(c, 1);
	CHECK(ping.recvs == 0);
	wire_set(mad, MAD_VENDOR2_OUI, MAD_OUI_OPENIB);
	wire_set(mad, MAD_METHOD, 1);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
	cable_run(c, 1);
	CHECK(ping.recvs == 1);
	free(ping.data);
	return true;
}

static bool trap_goes_to_its_agent(struct cable *c)
{
	struct seen client = { 0 }, sm = { 0 };
	struct mad_addr to = { .qpn = 0, .lid = 2 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 1, 1, 0);
	seen_register(c->mb, &sm, 1, 1, 0);
	mad_fill(mad, 1, 1, MAD_METHOD_TRAP, 2, 7);
	mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	cable_run(c, 1);
	CHECK(sm.recvs == 1 && sm.from.lid == 1 && sm.from.qpn == 0);
	free(sm.data);
	return true;
}

static bool cm_keeps_the_tid(struct cable *c)
{
	struct seen client = { 0 }, server = { 0 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, MAD_CLASS_CM, 2, 0);
	seen_register(c->mb, &server, MAD_CLASS_CM, 2, 0);
	mad_fill(mad, MAD_CLASS_CM, 2, MAD_METHOD_SEND, 0x10, 7);
	wire_set(mad, MAD_TID, 0x1122334455667788);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
	cable_run(c, 1);
	CHECK(server.recvs == 1 && wire_get(server.mad, MAD_TID) == 0x1122334455667788);
	wire_set(mad, MAD_METHOD, MAD_METHOD_GET);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
	cable_run(c, 1);
	CHECK(server.recvs == 1 && mad_port_counter(c->mb, MAD_CTR_MALFORMED) == 1);
	free(server.data);
	return true;
}

/* ---- packets ---- */

static u8 last_hdr[WIRE_HDR_MAX];
static u8 last_vl, last_bth;

static bool look(struct end *e, const struct wire_packet *p)
{
	memcpy(last_hdr, p->hdr, p->hdr_len);
	last_vl = p->vl;
	last_bth = p->bth_off;
	return false;
}

static bool directed_route_is_permissive(struct cable *c)
{
	struct seen client = { 0 };
	struct mad_addr to = { .qpn = 0, .lid = 0xffff, .sl = 3 };
	const struct wire_lrh *lrh = (const struct wire_lrh *)last_hdr;
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 0x81, 1, 0);
	c->a.drop = look;
	mad_fill(mad, 0x81, 1, 1, 0x11, 7);
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL) == 0);
	cable_run(c, 1);
	CHECK(wire_lrh_dlid(lrh) == 0xffff && wire_lrh_slid(lrh) == 0xffff);
	CHECK(wire_lrh_vl(lrh) == 15 && last_vl == 15 && wire_lrh_sl(lrh) == 0);
	CHECK(wire_lrh_lnh(lrh) == WIRE_LNH_BTH && wire_lrh_words(lrh) == (8 + 12 + 8 + 256 + 4) / 4);
	CHECK(wire_bth_qpn((struct wire_bth *)(last_hdr + last_bth)) == 0);
	return true;
}

static bool grh_both_ways(struct cable *c)
{
	struct seen client = { 0 }, server = { .then = seen_answer };
	struct mad_addr to = TO_LID(2);
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	seen_register(c->mb, &server, 4, 1, 0);
	to.grh = true;
	to.gid = c->b.port.attr.gid[0];
	to.hop_limit = 64;
	to.traffic_class = 5;
	to.flow_label = 0x12345;
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	mad_send(client.agent, mad, MAD_SIZE, &to, 100, 0, &client);
	cable_run(c, 1);
	CHECK(server.recvs == 1 && server.from.grh && server.from.flow_label == 0x12345);
	CHECK(server.from.traffic_class == 5 && wire_gid_equal(&server.from.gid, &c->a.port.attr.gid[0]));
	CHECK(client.recvs == 1 && client.cookie == &client);
	free(client.data);
	free(server.data);
	return true;
}

static bool bad_pkey_is_a_violation(struct cable *c)
{
	struct seen client = { 0 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	c->a.port.attr.pkey[1] = 0x8123;
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	struct mad_addr to = TO_LID(2);
	to.pkey_index = 1;
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL) == 0);
	cable_run(c, 1);
	CHECK(c->b.violations == 1 && !c->b.violation.qkey && c->b.violation.key == 0x8123);
	CHECK(c->b.violation.slid == 1 && c->b.violation.dlid == 2 && c->b.violation.sqp == 1);
	CHECK(mad_port_counter(c->mb, MAD_CTR_PKEY_BAD) == 1);
	to.pkey_index = 2;
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL) == -EINVAL);
	to.pkey_index = 9999;
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL) == -EINVAL);
	return true;
}

static bool limited_members_do_not_talk(struct cable *c)
{
	struct seen client = { 0 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	c->a.port.attr.pkey[0] = c->b.port.attr.pkey[0] = 0x7fff;
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
	cable_run(c, 1);
	CHECK(c->b.violations == 1 && mad_port_counter(c->mb, MAD_CTR_RECEIVED) == 0);
	return true;
}

static bool bad_qkey_is_a_violation(struct cable *c)
{
	struct seen client = { 0 };
	struct mad_addr to = { .qpn = 1, .qkey = 0x1234, .lid = 2 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 4, 1, 0);
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	cable_run(c, 1);
	CHECK(c->b.violations == 1 && c->b.violation.qkey && c->b.violation.key == 0x1234);
	return true;
}

static bool wrong_class_on_qp0(struct cable *c)
{
	struct seen client = { 0 };
	struct mad_addr to = { .qpn = 0, .lid = 2 };
	u8 mad[MAD_SIZE];

	seen_register(c->ma, &client, 1, 1, 0);
	mad_fill(mad, 4, 1, 1, 0x12, 7);
	mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	mad_fill(mad, 1, 1, 1, 0x20, 7);
	wire_set(mad, MAD_BASE_VERSION, 2);
	mad_send(client.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	cable_run(c, 1);
	CHECK(mad_port_counter(c->mb, MAD_CTR_MALFORMED) == 2);
	return true;
}

static bool waits_for_credits(struct cable *c)
{
	struct seen client = { 0 }, server = { 0 };
	u8 mad[MAD_SIZE];
	u32 i;

	seen_register(c->ma, &client, 4, 1, 0);
	seen_register(c->mb, &server, 4, 1, 0);
	c->a.no_credits = true;
	for (i = 0; i < 5; i++) {
		mad_fill(mad, 4, 1, 1, 0x12, i);
		mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL);
	}
	cable_run(c, 1);
	CHECK(server.recvs == 0);
	c->a.no_credits = false;
	c->a.port.mad.ready(c->a.port.mad.ctx);
	cable_run(c, 1);
	CHECK(server.recvs == 5 && (u32)wire_get(server.mad, MAD_TID) == 4);
	free(server.data);
	return true;
}

static bool send_queue_is_bounded(struct cable *c)
{
	struct seen client = { 0 };
	u8 mad[MAD_SIZE];
	u32 i;

	seen_register(c->ma, &client, 4, 1, 0);
	c->a.no_credits = true;
	mad_fill(mad, 4, 1, 1, 0x12, 1);
	for (i = 0; i < MAD_TX_MAX + 10; i++)
		CHECK(mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 0, 0, NULL) == 0);
	CHECK(mad_port_counter(c->ma, MAD_CTR_TX_DROPPED) == 10);
	return true;
}

static bool requests_are_bounded(struct cable *c)
{
	struct seen client = { 0 };
	u8 mad[MAD_SIZE];
	u32 i;

	seen_register(c->ma, &client, 4, 1, 0);
	mad_fill(mad, 4, 1, 1, 0x12, 1);
	for (i = 0; i < MAD_REQS_MAX; i++)
		CHECK(mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 1000, 0, NULL) == 0);
	CHECK(mad_send(client.agent, mad, MAD_SIZE, &TO_LID(2), 1000, 0, NULL) == -ENOMEM);
	CHECK(mad_send(client.agent, mad, 20, &TO_LID(2), 1000, 0, NULL) == -EINVAL);
	return true;
}

static const struct row rows[] = {
	{ "registration", registrations },
	{ "one agent per method", one_agent_per_method },
	{ "request and response", request_and_response },
	{ "retries until the response", retries_until_answered },
	{ "timeout after the retries", times_out_after_retries },
	{ "cancelled", cancelled_says_nothing },
	{ "agent ends in its callback", agent_ends_in_its_callback },
	{ "unserved Get", unserved_get_is_answered },
	{ "vendor class by OUI", vendor_class_goes_by_oui },
	{ "trap", trap_goes_to_its_agent },
	{ "CM keeps the TID", cm_keeps_the_tid },
	{ "directed route", directed_route_is_permissive },
	{ "GRH", grh_both_ways },
	{ "P_Key violation", bad_pkey_is_a_violation },
	{ "limited members", limited_members_do_not_talk },
	{ "Q_Key violation", bad_qkey_is_a_violation },
	{ "class on the wrong QP", wrong_class_on_qp0 },
	{ "credits", waits_for_credits },
	{ "bounded send queue", send_queue_is_bounded },
	{ "bounded requests", requests_are_bounded },
};

int main(void)
{
	return rows_run(rows, ARRAY_SIZE(rows));
}
