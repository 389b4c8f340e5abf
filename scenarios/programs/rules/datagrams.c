// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Unreliable datagrams: keys, lengths, the GRH, addresses, multicast groups, and P_Keys of all services. */
#include "rules.h"

#include <errno.h>
#include <string.h>

#define GRH     40
#define UD_MTU  2048 /* of the ports */
#define UD_SEND .op = IBV_WR_SEND

/* One more datagram after those of the rule is received: the queue pairs still work, and no other arrived before it. */
static void next_works(struct scene *s)
{
	struct end *b = &s->end[RESP];
	unsigned n;

	wait_delivered(s);
	n = b->got_recv;
	post_recvs(s, RESP, 1, (struct recv){ .id = 77 });
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 33, .id = 66 });
	EXPECT(s, wait_recv(s, RESP, n + 1) && b->rwc[n].byte_len == GRH + 33 && !b->rwc[n].status);
	EXPECT(s, wait_send(s, REQ, 2));
	b->got_recv = n;
	s->end[REQ].got_send = 0;
}

static void dropped(struct scene *s)
{
	post_ok(s, REQ, s->rule->send);
	EXPECT(s, wait_send(s, REQ, 1) && !s->end[REQ].swc[0].status);
	next_works(s);
}

static void arrived(struct scene *s)
{
	const struct rule *r = s->rule;
	struct end *a = &s->end[REQ], *b = &s->end[RESP];
	const struct ibv_wc *wc = &b->rwc[0];
	unsigned len = r->send.len;

	if (!b->got_recv)
		return;
	EXPECT(s, wc->byte_len == GRH + len);
	EXPECT(s, !memcmp(region(b) + INBOX + GRH, region(a) + r->send.off, len));
	EXPECT(s, wc->src_qp == a->qpn && wc->qp_num == b->qpn);
	EXPECT(s, wc->slid == a->attr.lid && !wc->sl && !wc->dlid_path_bits);
	EXPECT(s, !(wc->wc_flags & IBV_WC_GRH) == !r->knob[REQ].grh);
	EXPECT(s, !(wc->wc_flags & IBV_WC_WITH_IMM) == (r->send.op != IBV_WR_SEND_WITH_IMM));
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		EXPECT(s, wc->imm_data == htobe32(0x01020304));
	if (r->knob[REQ].grh) {
		const struct ibv_grh *grh = (const void *)(region(b) + INBOX);

		EXPECT(s, !memcmp(&grh->sgid, &a->gid, 16) && !memcmp(&grh->dgid, &b->gid, 16));
		EXPECT(s, (be32toh(grh->version_tclass_flow) >> 28) == 6 && grh->next_hdr == 0x1b);
		/* BTH, DETH, payload with its pad, ICRC */
		EXPECT(s, be16toh(grh->paylen) ==
				  12 + 8 + 4 * (r->send.op == IBV_WR_SEND_WITH_IMM) + (len + 3) / 4 * 4 + 4);
	}
}

static void lengths(void)
{
	static const struct {
		const char *name;
		unsigned len;
	} lens[] = { { "no bytes", 0 }, { "one byte", 1 }, { "three bytes", 3 }, { "the MTU", UD_MTU } };
	unsigned l, imm, grh;

	for (l = 0; l < ARRAY_LEN(lens); l++)
		for (imm = 0; imm < 2; imm++)
			for (grh = 0; grh < 2; grh++) {
				struct rule r = { .clause = grh ? "11.4.2.1, 8.3: the first 40 bytes are the GRH"
								: "11.4.2.1: the payload begins after 40 bytes",
						  .type = IBV_QPT_UD,
						  .knob[REQ].grh = grh,
						  .send = { .op = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
							    .len = lens[l].len },
						  .recvs = 1,
						  .req = { OK },
						  .resp = { OK },
						  .check = arrived };

				rule_add(r, "a datagram of %s%s%s is received", lens[l].name,
					 imm ? " with immediate" : "", grh ? " with a GRH" : "");
			}
}

static void controlled_qkey(struct scene *s)
{
	struct ibv_qp_attr a = { .qkey = 0x80001234 };
	struct ibv_qp_attr b = { .qkey = (uint32_t)s->rule->arg };

	EXPECT(s, !ibv_modify_qp(s->end[RESP].qp, &b, IBV_QP_QKEY));
	EXPECT(s, !ibv_modify_qp(s->end[REQ].qp, &a, IBV_QP_QKEY));
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8, .qkey = (uint32_t)s->rule->arg2 });
}

static void other_pd_ah(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_ah *ah = ah_to(s, REQ, a->other_pd);

	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8, .ah = ah });
	EXPECT(s, wait_send(s, REQ, 1));
	EXPECT(s, a->swc[0].status == IBV_WC_LOC_QP_OP_ERR || a->swc[0].status == IBV_WC_LOC_PROT_ERR);
	a->got_send = 0;
	EXPECT(s, !ibv_destroy_ah(ah));
}

static void to_connected(struct scene *s)
{
	struct ibv_qp *rc = qp_make(s, RESP, (enum ibv_qp_type)s->rule->arg, &s->rule->knob[RESP]);

	qp_connect(s, RESP, rc, s->end[REQ].qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8, .qpn = rc->qp_num });
	EXPECT(s, wait_send(s, REQ, 1));
	wait_delivered(s);
	ibv_destroy_qp(rc);
}

/* A connected requester whose peer is a datagram queue pair. */
static void from_connected(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_qp *ud = a->qp, *qp = qp_make(s, REQ, (enum ibv_qp_type)s->rule->arg, &s->rule->knob[REQ]);

	qp_connect(s, REQ, qp, s->end[RESP].qpn, IBV_QPS_RTS, &s->rule->knob[REQ]);
	a->qp = qp;
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8 });
	EXPECT(s, wait_send(s, REQ, 1));
	a->qp = ud;
	ibv_destroy_qp(qp);
}

static void many_order(struct scene *s)
{
	unsigned i;

	for (i = 0; i < 8; i++)
		post_ok(s, REQ, (struct req){ UD_SEND, .len = i, .id = i });
	EXPECT(s, wait_recv(s, RESP, 8));
	for (i = 0; i < s->end[RESP].got_recv; i++)
		EXPECT(s, s->end[RESP].rwc[i].byte_len == GRH + i && s->end[RESP].rwc[i].wr_id == i);
}

static void many_senders(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_qp *first = a->qp, *second = qp_make(s, REQ, IBV_QPT_UD, &s->rule->knob[REQ]);

	qp_connect(s, REQ, second, 0, IBV_QPS_RTS, &s->rule->knob[REQ]);
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8 });
	a->qp = second;
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8 });
	a->qp = first;
	EXPECT(s, wait_recv(s, RESP, 2));
	/* in either order: they are of two queues */
	EXPECT(s, s->end[RESP].rwc[0].src_qp + s->end[RESP].rwc[1].src_qp == first->qp_num + second->qp_num);
	EXPECT(s, s->end[RESP].rwc[0].src_qp == first->qp_num || s->end[RESP].rwc[0].src_qp == second->qp_num);
	EXPECT(s, wait_send(s, REQ, 2));
	ibv_destroy_qp(second);
}

static void to_itself(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_ah_attr attr = { .dlid = a->attr.lid, .port_num = a->port };
	struct ibv_ah *ah = ibv_create_ah(a->pd, &attr);

	post_recvs(s, REQ, 1, (struct recv){ .id = 4 });
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8, .ah = ah, .qpn = a->qpn });
	EXPECT(s, wait_recv(s, REQ, 1) && a->rwc[0].src_qp == a->qpn && a->rwc[0].byte_len == GRH + 8);
	ibv_destroy_ah(ah);
}

static void ah_of_completion(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_ah *ah;

	post_recvs(s, REQ, 1, (struct recv){ 0 });
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8 });
	EXPECT(s, wait_recv(s, RESP, 1));
	ah = ibv_create_ah_from_wc(b->pd, &b->rwc[0], (struct ibv_grh *)(region(b) + INBOX), b->port);
	EXPECT(s, ah);
	if (!ah)
		return;
	post_ok(s, RESP, (struct req){ UD_SEND, .len = 21, .ah = ah, .qpn = b->rwc[0].src_qp });
	EXPECT(s, wait_recv(s, REQ, 1) && s->end[REQ].rwc[0].byte_len == GRH + 21);
	ibv_destroy_ah(ah);
}

/* Multicast by the queue pairs of one port, which needs no subnet manager. */

static const union ibv_gid group = { .raw = { 0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x77, 1 } };
#define MLID 0xc123

static struct ibv_ah *group_ah(struct scene *s)
{
	struct ibv_ah_attr a = {
		.dlid = MLID, .port_num = s->end[REQ].port, .is_global = 1, .grh = { .dgid = group, .hop_limit = 1 }
	};
	struct ibv_ah *ah = ibv_create_ah(s->end[REQ].pd, &a);

	if (!ah)
		wrong(s, "ibv_create_ah: %s", strerror(errno));
	return ah;
}

/*
 * @arg: number of other attached QPs of the port; @arg2: 1: the sender is attached, too; 2: another Q_Key in the
 * datagram.
 */
static void multicast(struct scene *s)
{
	const struct knobs *k = &s->rule->knob[REQ];
	struct end *a = &s->end[REQ];
	struct ibv_qp *own = a->qp, *others[2];
	unsigned n = (unsigned)s->rule->arg, i;
	struct ibv_ah *ah = group_ah(s);

	for (i = 0; i < 2; i++) {
		others[i] = qp_make(s, REQ, IBV_QPT_UD, k);
		qp_connect(s, REQ, others[i], 0, IBV_QPS_RTS, k);
		a->qp = others[i];
		post_recvs(s, REQ, 1, (struct recv){ .id = i });
		if (i < n)
			EXPECT(s, !ibv_attach_mcast(others[i], &group, MLID));
	}
	a->qp = own;
	post_recvs(s, REQ, 1, (struct recv){ .id = 2 });
	if (s->rule->arg2 == 1)
		EXPECT(s, !ibv_attach_mcast(own, &group, MLID));
	post_ok(s, REQ,
		(struct req){ UD_SEND, .len = 50, .ah = ah, .qpn = 0xffffff,
			      .qkey = s->rule->arg2 == 2 ? 0x4321 : QKEY });
	EXPECT(s, wait_send(s, REQ, 1));
	if (s->rule->arg2 == 2)
		n = 0;
	wait_recv(s, REQ, n);
	wait_delivered(s);
	EXPECT(s, a->got_recv == n);
	for (i = 0; i < a->got_recv && i < n; i++)
		EXPECT(s, a->rwc[i].wc_flags & IBV_WC_GRH && a->rwc[i].src_qp == own->qp_num &&
				  a->rwc[i].byte_len == GRH + 50 && a->rwc[i].wr_id < 2);
	for (i = 0; i < 2; i++) {
		if (i < (unsigned)s->rule->arg)
			EXPECT(s, !ibv_detach_mcast(others[i], &group, MLID));
		EXPECT(s, !ibv_destroy_qp(others[i]));
	}
	if (s->rule->arg2 == 1)
		EXPECT(s, !ibv_detach_mcast(own, &group, MLID));
	ibv_destroy_ah(ah);
}

static void detached(struct scene *s)
{
	const struct knobs *k = &s->rule->knob[REQ];
	struct end *a = &s->end[REQ];
	struct ibv_qp *own = a->qp, *other = qp_make(s, REQ, IBV_QPT_UD, k);
	struct ibv_ah *ah = group_ah(s);

	qp_connect(s, REQ, other, 0, IBV_QPS_RTS, k);
	a->qp = other;
	post_recvs(s, REQ, 1, (struct recv){ 0 });
	a->qp = own;
	EXPECT(s, !ibv_attach_mcast(other, &group, MLID) && !ibv_detach_mcast(other, &group, MLID));
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 50, .ah = ah, .qpn = 0xffffff });
	EXPECT(s, wait_send(s, REQ, 1));
	wait_delivered(s);
	EXPECT(s, !a->got_recv);
	ibv_destroy_qp(other);
	ibv_destroy_ah(ah);
}

static void attach_unicast(struct scene *s)
{
	EXPECT(s, ibv_attach_mcast(s->end[REQ].qp, &s->end[REQ].gid, MLID) == EINVAL);
}

static void attach_without_mlid(struct scene *s)
{
	EXPECT(s, ibv_attach_mcast(s->end[REQ].qp, &group, 0) == EINVAL);
	EXPECT(s, ibv_attach_mcast(s->end[REQ].qp, &group, 5) == EINVAL);
	EXPECT(s, ibv_attach_mcast(s->end[REQ].qp, &group, 0xffff) == EINVAL);
}

static void attach_connected(struct scene *s)
{
	EXPECT(s, ibv_attach_mcast(s->end[REQ].qp, &group, MLID) == EINVAL);
}

static void detach_stranger(struct scene *s)
{
	EXPECT(s, ibv_detach_mcast(s->end[REQ].qp, &group, MLID) == EINVAL);
}

static void destroy_attached(struct scene *s)
{
	EXPECT(s, !ibv_attach_mcast(s->end[REQ].qp, &group, MLID));
	EXPECT(s, ibv_destroy_qp(s->end[REQ].qp) == EBUSY);
	EXPECT(s, !ibv_detach_mcast(s->end[REQ].qp, &group, MLID));
}

/* P_Keys: the table of each port has a second entry. */

static bool set_pkey(struct scene *s, enum side at, unsigned index)
{
	struct ibv_qp *qp = s->end[at].qp;
	struct ibv_qp_attr a;
	int mask;

	qp_attr(s, at, &a, &s->rule->knob[at], s->end[!at].qpn);
	a.pkey_index = (uint16_t)index;
	mask = required(qp->qp_type, IBV_QPS_RESET, IBV_QPS_INIT);
	if (ibv_modify_qp(qp, &a, mask))
		return false;
	return !qp_modify(s, at, qp, IBV_QPS_RTR, &s->rule->knob[at], s->end[!at].qpn) &&
	       !qp_modify(s, at, qp, IBV_QPS_RTS, &s->rule->knob[at], s->end[!at].qpn);
}

static void pkeys(struct scene *s)
{
	struct end *b = &s->end[RESP];
	bool match = s->rule->arg == s->rule->arg2;

	EXPECT(s, set_pkey(s, REQ, (unsigned)s->rule->arg) && set_pkey(s, RESP, (unsigned)s->rule->arg2));
	if (s->rule->type == IBV_QPT_UD)
		s->end[REQ].ah = ah_to(s, REQ, s->end[REQ].pd);
	post_recvs(s, RESP, 1, (struct recv){ 0 });
	post_ok(s, REQ, (struct req){ UD_SEND, .len = 8 });
	if (match)
		EXPECT(s, wait_recv(s, RESP, 1));
	if (match && s->rule->type == IBV_QPT_UD)
		EXPECT(s, b->rwc[0].pkey_index == s->rule->arg2);
}

static void pkey_rules(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	unsigned t, i;

	for (t = 0; t < 3; t++)
		for (i = 0; i < 4; i++) {
			bool match = i >> 1 == (i & 1), rc = !t;
			struct rule r = {
				.clause = match ? "9.6.1.1.3, 10.9.3: the P_Key is that at the queue pair's index"
						: "9.6.1.1.3: another P_Key is dropped and counted as a violation",
				.type = types[t],
				.knob = { { .upto = AT(RESET), .timeout = 8, .retry = 1 }, { .upto = AT(RESET) } },
				.action = pkeys,
				.arg = i >> 1,
				.arg2 = i & 1,
				.req = { match || !rc ? OK : ST(RETRY_EXC_ERR) },
				.resp = { match ? OK : 0 },
				.state = { match || !rc ? AT(RTS) : AT(ERR), AT(RTS) },
				.counted = { { RESP, "rx_pkey_mismatch",
					       match ? 0
					       : rc  ? 2
						     : 1 } }
			};

			rule_add(r, "%s from P_Key index %u to %u is %s", type_name(types[t]), i >> 1, i & 1,
				 match ? "received" : "dropped");
		}
}

static const struct rule rows[] = {
	{ "a datagram longer than the MTU is a local length error",
	  "9.8, unreliable datagram; 11.6.2: one packet a message", .send = { UD_SEND, .len = UD_MTU + 1 },
	  .req = { ST(LOC_LEN_ERR) }, .state = { AT(SQE) } },
	{ "a receive of 40 bytes takes a datagram of none", "11.4.2.1: 40 bytes for the GRH", .recvs = 1,
	  .recv.len = GRH, .send = { UD_SEND }, .req = { OK }, .resp = { OK } },
	{ "a receive of 40 bytes and the payload is enough", "11.4.2.1: 40 bytes for the GRH", .recvs = 1,
	  .recv.len = GRH + 100, .send = { UD_SEND, .len = 100 }, .req = { OK }, .resp = { OK }, .check = arrived },
	{ "a receive in parts takes GRH and payload across them", "11.4.1.2, 11.4.2.1: scatter", .recvs = 1,
	  .knob[REQ].grh = 1, .recv = { .len = GRH + 100, .nsge = 4 }, .send = { UD_SEND, .len = 100 }, .req = { OK },
	  .resp = { OK }, .check = arrived },
	{ "a receive of the payload alone is too short", "11.4.2.1, 11.6.2: local length error", .recvs = 1,
	  .recv.len = 100, .send = { UD_SEND, .len = 100 }, .req = { OK }, .resp = { ST(LOC_LEN_ERR) },
	  .state = { 0, ANY_STATE } },
	{ "a receive one byte short has a local length error", "11.6.2: local length error", .recvs = 1,
	  .recv.len = GRH + 99, .send = { UD_SEND, .len = 100 }, .req = { OK }, .resp = { ST(LOC_LEN_ERR) },
	  .state = { 0, ANY_STATE } },
	{ "a receive with a wrong key has a local protection error", "11.6.2: local protection error", .recvs = 1,
	  .recv.ref = REF_STALE, .send = { UD_SEND, .len = 100 }, .req = { OK }, .resp = { ST(LOC_PROT_ERR) },
	  .state = { 0, ANY_STATE } },
	{ "a receive without local write has a local protection error", "10.6.3.2, 11.6.2: local protection error",
	  .recvs = 1, .recv.ref = REF_NO_RIGHT, .send = { UD_SEND, .len = 100 }, .req = { OK },
	  .resp = { ST(LOC_PROT_ERR) }, .state = { 0, ANY_STATE } },
	{ "a receive of another PD has a local protection error", "10.2.3, 11.6.2: local protection error", .recvs = 1,
	  .recv.ref = REF_OTHER_PD, .send = { UD_SEND, .len = 100 }, .req = { OK }, .resp = { ST(LOC_PROT_ERR) },
	  .state = { 0, ANY_STATE } },
	{ "a receive beyond its region has a local protection error", "10.6.3, 11.6.2: local protection error",
	  .recvs = 1, .recv = { .ref = REF_BEYOND, .len = GRH + 100 }, .send = { UD_SEND, .len = 100 }, .req = { OK },
	  .resp = { ST(LOC_PROT_ERR) }, .state = { 0, ANY_STATE } },
	{ "a datagram without a receive is dropped, the next one arrives", "9.8, unreliable datagram: dropped silently",
	  .send = { UD_SEND, .len = 100 }, .action = dropped, .counted = { { RESP, "rx_ud_dropped", 1 } } },
	{ "a datagram with another Q_Key is dropped and counted, the next one arrives",
	  "9.6.1.4.1, 10.2.5: Q_Key check", .send = { UD_SEND, .len = 100, .qkey = 0x4321 }, .recvs = 1,
	  .action = dropped, .counted = { { RESP, "rx_qkey_mismatch", 1 } } },
	{ "a controlled Q_Key in the request selects the queue pair's own",
	  "10.2.5: the high bit selects the queue pair's Q_Key", .recvs = 1, .action = controlled_qkey,
	  .arg = 0x80001234, .arg2 = 0x80009999, .req = { OK }, .resp = { OK } },
	{ "a Q_Key without the high bit is sent as it is", "10.2.5: the request's Q_Key", .recvs = 1,
	  .action = controlled_qkey, .arg = 0x5555, .arg2 = 0x5555, .req = { OK }, .resp = { OK } },
	{ "a controlled Q_Key in the request is not sent as it is",
	  "10.2.5: the high bit selects the queue pair's Q_Key", .recvs = 1, .action = controlled_qkey,
	  .arg = 0x80009999, .arg2 = 0x80009999, .req = { OK }, .counted = { { RESP, "rx_qkey_mismatch", 1 } } },
	{ "an address handle of another PD is a local error",
	  "10.2.3, C10-10, 11.6.2: handle and queue pair share a PD", .recvs = 1, .action = other_pd_ah,
	  .state = { AT(SQE) } },
	{ "a datagram to a nonexistent queue pair is dropped", "9.6.1.1.1: invalid destination QP", .recvs = 1,
	  .send = { UD_SEND, .len = 8, .qpn = 0xabcdef }, .action = dropped,
	  .counted = { { RESP, "rx_wrong_qp", 1 } } },
	{ "a datagram to an RC queue pair is dropped", "9.6.1.1.2: opcode and service disagree", .recvs = 1,
	  .action = to_connected, .arg = IBV_QPT_RC, .req = { OK }, .counted = { { RESP, "rx_wrong_qp", 1 } } },
	{ "a datagram to a UC queue pair is dropped", "9.6.1.1.2: opcode and service disagree", .recvs = 1,
	  .action = to_connected, .arg = IBV_QPT_UC, .req = { OK }, .counted = { { RESP, "rx_wrong_qp", 1 } } },
	{ "an RC request to a UD queue pair is dropped", "9.6.1.1.2: opcode and service disagree", .recvs = 1,
	  .knob[REQ] = { .timeout = 8, .retry = 1 }, .action = from_connected, .arg = IBV_QPT_RC,
	  .req = { ST(RETRY_EXC_ERR) }, .counted = { { RESP, "rx_wrong_qp", 2 } } },
	{ "a UC request to a UD queue pair is dropped", "9.6.1.1.2: opcode and service disagree", .recvs = 1,
	  .action = from_connected, .arg = IBV_QPT_UC, .req = { OK }, .counted = { { RESP, "rx_wrong_qp", 1 } } },
	{ "datagrams of one sender arrive in order", "9.5, 10.8.3: in order of posting", .recvs = 8,
	  .action = many_order, .req = { OK, OK, OK, OK, OK, OK, OK, OK }, .resp = { OK, OK, OK, OK, OK, OK, OK, OK } },
	{ "the completion of a datagram has the sender's QPN", "11.4.2.1, 9.3.2: source QP", .recvs = 2,
	  .action = many_senders, .req = { OK, OK }, .resp = { OK, OK } },
	{ "a queue pair sends a datagram to itself", "10.2.4: loopback", .action = to_itself, .req = { OK } },
	{ "an address handle made of a completion leads back", "11.2.2.1, 11.4.2.1: the sender's address", .recvs = 1,
	  .action = ah_of_completion, .req = { OK }, .resp = { OK } },
	{ "an address handle made of a completion with a GRH leads back", "11.2.2.1, 11.4.2.1: the sender's address",
	  .recvs = 1, .knob[REQ].grh = 1, .action = ah_of_completion, .req = { OK }, .resp = { OK } },
	{ "inline data go as a datagram", "11.4.1.1: inline", .recvs = 1,
	  .send = { UD_SEND, .len = 60, .flags = IBV_SEND_INLINE, .local = REF_NO_KEY }, .req = { OK },
	  .resp = { OK } },
	{ "parts are gathered into a datagram", "11.4.1.1: gather list", .recvs = 1,
	  .send = { UD_SEND, .len = 1000, .nsge = 4 }, .req = { OK }, .resp = { OK }, .check = arrived },
	{ "a group without members: no receiver", "10.5: multicast", .action = multicast, .req = { OK } },
	{ "one is in the group", "10.5, 11.3.1: attached queue pairs receive", .action = multicast, .arg = 1,
	  .req = { OK } },
	{ "two are in the group: each has a copy", "10.5, 11.3.1: each attached queue pair has a copy",
	  .action = multicast, .arg = 2, .req = { OK } },
	{ "the sender is in the group: it has no copy", "10.5: not back to the sending queue pair", .action = multicast,
	  .arg = 1, .arg2 = 1, .req = { OK } },
	{ "a datagram to a group with another Q_Key is dropped", "9.6.1.4.1: Q_Key check", .action = multicast,
	  .arg = 2, .arg2 = 2, .req = { OK } },
	{ "who has left the group does not receive", "11.3.2: detach", .action = detached, .req = { OK } },
	{ "a GID that is no group's cannot be attached", "11.3.1: invalid multicast GID", .action = attach_unicast },
	{ "a group is attached by its MLID", "11.3.1: invalid multicast LID", .action = attach_without_mlid },
	{ "who is not in a group cannot leave it", "11.3.2: invalid multicast group", .action = detach_stranger },
	{ "a queue pair in a group cannot be destroyed", "11.2.5.4: attached to multicast groups",
	  .action = destroy_attached },
};

void datagrams_rules(void)
{
	unsigned i;

	lengths();
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct rule r = rows[i];

		r.type = IBV_QPT_UD;
		rule_add(r, "%s", r.name);
	}
	rule_add((struct rule){ .clause = "11.3.1: datagram queue pairs alone", .action = attach_connected },
		 "an RC queue pair cannot be attached to a group");
	rule_add((struct rule){ .clause = "11.3.1: datagram queue pairs alone",
				.type = IBV_QPT_UC,
				.action = attach_connected },
		 "a UC queue pair cannot be attached to a group");
	pkey_rules();
}
