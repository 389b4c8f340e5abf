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
