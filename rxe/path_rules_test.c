// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules of received packets' addresses and of automatic path migration (IBTA volume 1, 9.6.1, 17.2.8), one row each. */
#include "rxe/rules_fixture.h"

#define SUBNET 0x00112233445566ull

/* Is a SEND of @a received, or dropped as a packet of another path? */
static bool arrives(void)
{
	recv_at(b.wq, 0, 200, 7);
	post(HCA_WR_SEND, 0, 64, 1);
	step(1);
	return is_next(&b, 7, 0) && !hca_counter(b.hca, 1, HCA_CNT_WRONG_QP);
}

static bool is_dropped(void)
{
	recv_at(b.wq, 0, 200, 7);
	post(HCA_WR_SEND, 0, 64, 1);
	step(1);
	return is_quiet(&b) && hca_counter(b.hca, 1, HCA_CNT_WRONG_QP) == 1 && qp_of(&b)->state == HCA_QPS_RTS &&
	       !acks(&b, 31, PSN);
}

static void use_grh(void)
{
	qp_of(&a)->attr.av.grh = qp_of(&b)->attr.av.grh = true;
}

static bool grh(void)
{
	use_grh();
	return arrives();
}

static bool grh_missing(void)
{
	qp_of(&b)->attr.av.grh = true;
	return is_dropped();
}

static bool grh_unexpected(void)
{
	qp_of(&a)->attr.av.grh = true;
	return is_dropped();
}

static bool grh_of_another_source(void)
{
	use_grh();
	qp_of(&b)->attr.av.dgid = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 77);
	return is_dropped();
}

static bool grh_to_another_destination(void)
{
	use_grh();
	qp_of(&a)->attr.av.dgid = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 77);
	return is_dropped();
}

static bool grh_of_another_subnet(void)
{
	use_grh();
	qp_of(&a)->attr.av.dgid = wire_gid_make(SUBNET, 2);
	return is_dropped();
}

static bool grh_with_the_default_prefix(void)
{
	use_grh();
	b.port.attr.gid[0] = wire_gid_make(SUBNET, 2);
	qp_of(&b)->attr.av.dgid = wire_gid_make(SUBNET, 1);
	return arrives();
}

/* RoCE: the GID with the default prefix is another entry of the GID table. */
static bool gid_with_the_default_prefix(void)
{
	b.port.attr.gid[0] = wire_gid_make(SUBNET, 2);
	return is_dropped();
}

/* Multicast: a datagram to @qpn, @dlid and @gid; b has joined the group. */

#define MLID 0xc001

static const struct wire_gid mgid = { { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 9 } };

enum fate {
	LOST,
	ARRIVED,
	DISCARDED /* and counted */
};

static enum fate datagram(u32 qpn, u16 dlid, bool grh, const struct wire_gid *gid)
{
	struct hca_send_wr wr = request_at(HCA_WR_SEND, 0, 64, 1);
	u64 bad = hca_counter(b.hca, 1, HCA_CNT_BAD_PACKET);
	bool arrived;

	wr.remote_qpn = qpn;
	wr.av.dlid = dlid;
	wr.av.grh = grh;
	wr.av.dgid = *gid;
	hca_mcast_attach(b.ctx, b.qpn, &mgid, 0);
	recv_at(b.wq, 0, 200, 7);
	hca_soft_post_send(a.wq, &wr);
	run();
	arrived = is_next(&b, 7, 0);
	hca_mcast_detach(b.ctx, b.qpn, &mgid, 0);
	return arrived ? ARRIVED : hca_counter(b.hca, 1, HCA_CNT_BAD_PACKET) == bad + 1 ? DISCARDED : LOST;
}

static bool multicast(void)
{
	return datagram(RXE_QPN_MULTICAST, MLID, true, &mgid) == ARRIVED;
}

static bool multicast_to_a_qpn(void)
{
	return datagram(b.qpn, MLID, true, &mgid) == DISCARDED;
}

static bool multicast_to_a_unicast_lid(void)
{
	return datagram(RXE_QPN_MULTICAST, 2, true, &mgid) == DISCARDED;
}

static bool multicast_without_grh(void)
{
	return datagram(RXE_QPN_MULTICAST, MLID, false, &mgid) == DISCARDED;
}

static bool multicast_to_a_unicast_gid(void)
{
	return datagram(RXE_QPN_MULTICAST, MLID, true, &b.port.attr.gid[0]) == DISCARDED;
}

static bool unicast_to_a_multicast_lid(void)
{
	return datagram(b.qpn, MLID, false, &mgid) == DISCARDED;
}

static bool unicast_to_a_multicast_gid(void)
{
	return datagram(b.qpn, 2, true, &mgid) == DISCARDED;
}

static bool unicast(void)
{
	return datagram(b.qpn, 2, false, &mgid) == ARRIVED;
}

static bool connected_to_a_multicast_lid(void)
{
	qp_of(&a)->attr.av.dlid = MLID;
	recv_at(b.wq, 0, 200, 7);
	post(HCA_WR_SEND, 0, 64, 1);
	step(1);
	return is_quiet(&b) && hca_counter(b.hca, 1, HCA_CNT_BAD_PACKET) == 1;
}

/* Members on the sender's own port get their copies by loopback. */
static bool loopback_of_a_unicast_lid(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_SEND, 0, 64, 1);
	struct hca_soft_wq *sender = a.wq;
	u32 first = a.qpn;
	bool quiet;

	qp_make(&a, HCA_QPT_UD);
	if (move(&a, &b, 5, PSN) || hca_mcast_attach(a.ctx, a.qpn, &mgid, 0))
		return false;
	hca_soft_post_recv(
		a.wq, &(struct hca_recv_wr){ .token = 8, .num_sge = 1, .sge = { { address(&a, 4096), 200, a.lkey } } });
	wr.remote_qpn = RXE_QPN_MULTICAST;
	wr.av = (struct hca_av){ .dlid = 2, .port = 1, .grh = true, .dgid = mgid };
	hca_soft_post_send(sender, &wr);
	run();
	quiet = is_next(&a, 1, 0) && is_quiet(&a);
	hca_mcast_detach(a.ctx, a.qpn, &mgid, 0);
	hca_soft_wq_destroy(a.wq);
	a.wq = sender;
	a.qpn = first;
	return quiet;
}

/* Automatic path migration */

/* The alternate path of both sides is that between their second ports. */
static bool arm_second(struct side *s, const struct side *to)
{
	struct hca_qp_attr at = { .path_mig_state = HCA_MIG_REARM,
				  .alt_av = { .dlid = to->second.attr.lid, .port = 2 },
				  .alt_port = 2,
				  .alt_timeout = 8 };

	return !hca_qp_modify(s->ctx, s->qpn, &at, HCA_QP_PATH_MIG_STATE | HCA_QP_ALT_PATH);
}

static int without_credits(struct wire_port *port, struct wire_packet *p)
{
	return -EAGAIN;
}

static const struct wire_port_ops blocked = { .send = without_credits, .violation = wire_violation };

static bool arm_both(void)
{
	u32 i;

	if (!arm_second(&a, &b) || !arm_second(&b, &a))
		return false;
	for (i = 0; i < 2; i++) {
		post(HCA_WR_RDMA_WRITE, 0, 64, 9);
		run();
		if (!is_next(&a, 9, 0))
			return false;
	}
	return qp_of(&a)->attr.path_mig_state == HCA_MIG_ARMED && qp_of(&b)->attr.path_mig_state == HCA_MIG_ARMED;
}

static bool migrated(const struct side *s)
{
	return qp_of(s)->attr.port == 2 && qp_of(s)->attr.path_mig_state == HCA_MIG_MIGRATED &&
	       s->events[HCA_EVENT_PATH_MIG] == 1;
}

static bool migrates_from_a_blocked_port(void)
{
	if (!arm_both())
		return false;
	a.port.ops = &blocked;
	post(HCA_WR_RDMA_WRITE, 0, 4096, 1);
	run();
	return is_next(&a, 1, 0) && migrated(&a) && migrated(&b);
}

static bool consumer_migrates_from_a_blocked_port(void)
{
	struct hca_qp_attr at = { .path_mig_state = HCA_MIG_MIGRATED };

	if (!arm_both())
		return false;
	a.port.ops = &blocked;
	qp_of(&a)->attr.timeout = qp_of(&a)->attr.alt_timeout = 0;
	post(HCA_WR_RDMA_WRITE, 0, 4096, 1);
	post(HCA_WR_RDMA_WRITE, 0, 4096, 2);
	step(1);
	hca_qp_modify(a.ctx, a.qpn, &at, HCA_QP_PATH_MIG_STATE);
	post(HCA_WR_RDMA_WRITE, 0, 4096, 3);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && is_next(&a, 3, 0) && migrated(&a) && migrated(&b);
}

/* The responses to a READ wait for credits of the port that the peer leaves. */
static bool responder_migrates_from_a_blocked_port(void)
{
	if (!arm_both())
		return false;
	b.port.ops = &blocked;
	post(HCA_WR_RDMA_READ, 0, 4 * 4096, 1);
	run();
	return is_next(&a, 1, 0) && migrated(&a) && migrated(&b);
}

static const struct rule rules[] = {
	{ "9.6.1.2 a GRH of the path", HCA_QPT_RC, grh },
	{ "9.6.1.2 its GIDs may have the default prefix (4.1.1)", HCA_QPT_RC, grh_with_the_default_prefix },
	{ "9.6.1.2 RC: a packet without the GRH of the path is dropped", HCA_QPT_RC, grh_missing },
	{ "9.6.1.2 UC: it is, too", HCA_QPT_UC, grh_missing },
	{ "9.6.1.2 RC: a packet with a GRH on a path without one is dropped", HCA_QPT_RC, grh_unexpected },
	{ "9.6.1.2 UC: it is, too", HCA_QPT_UC, grh_unexpected },
	{ "9.6.1.2 another SGID", HCA_QPT_RC, grh_of_another_source },
	{ "9.6.1.2 another DGID", HCA_QPT_RC, grh_to_another_destination },
	{ "9.6.1.2 another prefix of the DGID", HCA_QPT_RC, grh_of_another_subnet },
	{ "9.6.1.1 a datagram to a QP", HCA_QPT_UD, unicast },
	{ "10.5.2 a datagram to a group: QP 0xffffff, MLID, MGID", HCA_QPT_UD, multicast },
	{ "9.6.1.1 to a group, and another QP: dropped", HCA_QPT_UD, multicast_to_a_qpn },
	{ "9.6.1.1 QP 0xffffff and a unicast DLID: dropped", HCA_QPT_UD, multicast_to_a_unicast_lid },
	{ "10.5.2 and its loopback, too", HCA_QPT_UD, loopback_of_a_unicast_lid },
	{ "9.6.1.2 QP 0xffffff and no GRH: dropped", HCA_QPT_UD, multicast_without_grh },
	{ "9.6.1.2 QP 0xffffff and a unicast DGID: dropped", HCA_QPT_UD, multicast_to_a_unicast_gid },
	{ "9.6.1.1 a multicast DLID and a QP: dropped", HCA_QPT_UD, unicast_to_a_multicast_lid },
	{ "9.6.1.2 a multicast DGID and a QP: dropped", HCA_QPT_UD, unicast_to_a_multicast_gid },
	{ "17.2.8 from a port without credits to another port", HCA_QPT_RC, migrates_from_a_blocked_port },
	{ "17.2.8 also of the responder", HCA_QPT_RC, responder_migrates_from_a_blocked_port },
	{ "17.2.8 and by the consumer, without a timeout", HCA_QPT_RC, consumer_migrates_from_a_blocked_port },
	{ "9.6.1.1 RC: a multicast DLID", HCA_QPT_RC, connected_to_a_multicast_lid },
	{ "9.6.1.1 UC: a multicast DLID", HCA_QPT_UC, connected_to_a_multicast_lid },
};

static const struct rule ethernet_rules[] = {
	{ "A17.4.3 a packet to another GID of the port is dropped", HCA_QPT_RC, gid_with_the_default_prefix },
};

int main(void)
{
	run_rules(100, rules, ARRAY_SIZE(rules), WIRE_LINK_IB);
	run_rules(200, ethernet_rules, ARRAY_SIZE(ethernet_rules), WIRE_LINK_ETHERNET);
	row(900, "no packet or buffer is left", !wire_packet_live());
	return rows_end();
}
