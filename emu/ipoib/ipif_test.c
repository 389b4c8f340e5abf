// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of the IPoIB endpoint: it answers ARP after any number of packets while muted, and after errors of its QP. The
 * client is a QP of the test on the same adapter, which delivers its multicast packets to the group's other members.
 */
#include "emu/hca/bring.h"
#include "emu/hca/engine.h"
#include "emu/hca/hca_fault.h"
#include "emu/ipoib/ipif_internal.h"
#include "emu/lib/row.h"
#include "emu/mad/fixture.h"
#include "emu/wire/neigh.h"
#include "rxe/rxe.h"

#define QKEY 0x0b1bu
#define MLID 0xc005
#define OWN  0x0a000001u

struct world {
	struct cable c;
	struct seen sa; /* at the far end: accepts every join */
	struct sa_client *client;
	struct hca *hca;
	struct ipif_config cfg;
	struct ipif *ip;
	struct hca_ctx *ctx; /* of the client */
	struct hca_soft_wq *wq;
	struct hca_soft_cq *cq;
	u8 packet[64];
	u32 pdn, lkey;
};

static void sa_answer(struct seen *s)
{
	u8 *a = s->mad + SA_DATA;

	s->mad[3] = MAD_METHOD_GET_RESP;
	wire_set(a, MCMEMBER_MLID, MLID);
	wire_set(a, MCMEMBER_QKEY, QKEY);
	wire_set(a, MCMEMBER_MTU, WIRE_MTU_2048);
	mad_send(s->agent, s->mad, MAD_SIZE, &s->from, 0, 0, NULL);
}

static void client_open(struct world *w)
{
	struct hca_qp_init init = {
		.type = HCA_QPT_UD, .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct hca_qp_attr attr = { .port = 1, .qkey = QKEY };
	u32 rkey;

	w->ctx = hca_ctx_create(w->hca, &hca_local_dma, NULL, NULL, NULL);
	hca_pd_alloc(w->ctx, &init.pdn);
	w->pdn = init.pdn;
	hca_mr_reg(w->ctx, init.pdn, (uintptr_t)w->packet, (uintptr_t)w->packet, sizeof(w->packet), 0, &w->lkey, &rkey);
	hca_soft_cq_create(w->ctx, 4096, NULL, NULL, &w->cq);
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(w->cq);
	hca_soft_qp_create(w->ctx, &init, &w->wq);
	bring_to(hca_qp_lookup(w->hca, hca_soft_wq_number(w->wq)), attr, HCA_QPS_RTS);
}

static void world_open(struct world *w)
{
	struct wire_port *ports[1] = { &w->c.a.port };
	struct hca_config hca = { .name = "h1", .node_guid = 0x1234, .nports = 1, .ports = ports, .seed = 7 };

	memset(w, 0, sizeof(*w));
	cable_open(&w->c);
	w->c.a.port.attr.sm_lid = 2;
	w->c.a.port.attr.mtu_active = WIRE_MTU_2048;
	w->sa.then = sa_answer;
	seen_register(w->c.mb, &w->sa, MAD_CLASS_SUBN_ADM, 2, 1);
	w->client = sa_client_create(w->c.loop, w->c.ma);
	w->hca = hca_create(w->c.loop, &hca);
	hca_set_transport(w->hca, &rxe_transport);
	w->cfg = (struct ipif_config){
		.loop = w->c.loop, .hca = w->hca, .mp = w->c.ma, .sa = w->client, .v4 = ip_addr_v4(OWN), .v4_len = 24
	};
	w->ip = ipif_create(&w->cfg);
	client_open(w);
	cable_run(&w->c, 1000);
}

static void world_close(struct world *w)
{
	hca_soft_wq_destroy(w->wq);
	hca_soft_cq_destroy(w->cq);
	hca_ctx_destroy(w->ctx);
	ipif_destroy(w->ip);
	sa_client_destroy(w->client);
	hca_destroy(w->hca);
	cable_run(&w->c, 1);
	free(w->sa.data);
	cable_close(&w->c);
}

/* Broadcasts an ARP request for the endpoint's address, without its last @cut bytes. */
static void request_part(struct world *w, u32 cut)
{
	static const struct wire_hw infiniband = { 32, IPIF_HW_SIZE };
	static const u8 hw[IPIF_HW_SIZE] = { 0, 0, 1, 0 };
	const struct sa_mcmember *group = ipif_broadcast(w->ip);
	struct wire_arp arp = {
		.op = WIRE_ARP_REQUEST, .src = ip_addr_v4(OWN + 1), .dst = ip_addr_v4(OWN), .src_hw = hw
	};
	struct hca_send_wr wr = { .opcode = HCA_WR_SEND,
				  .av = { .dlid = MLID, .port = 1, .grh = true },
				  .remote_qpn = WIRE_QP_MULTICAST,
				  .remote_qkey = QKEY,
				  .num_sge = 1 };

	if (!group)
		return;
	wr.av.dgid = group->mgid;
	memset(w->packet, 0, sizeof(w->packet));
	wire_store(w->packet, 2, 0x0806);
	wr.sge[0] = (struct hca_sge){ .addr = (uintptr_t)w->packet,
				      .length = IPIF_HEADER + wire_arp_put(w->packet + IPIF_HEADER, &infiniband, &arp) -
						cut,
				      .lkey = w->lkey };
	(void)hca_soft_post_send(w->wq, &wr);
	cable_run(&w->c, 1);
}

static void request(struct world *w)
{
	request_part(w, 0);
}

static bool answers(struct world *w)
{
	u64 before = w->ip->arp_answered;

	request(w);
	return w->ip->arp_answered == before + 1;
}

static void test_muted(struct world *w)
{
	int i;

	row(0, "answers", answers(w));
	ipif_mute(w->ip, true);
	for (i = 0; i < 5 * IPIF_RECVS; i++)
		request(w);
	row(0, "muted, does not", w->ip->arp_answered == 1);
	ipif_mute(w->ip, false);
	row(0, "responds again", answers(w));
	row(0, "and each receive is posted", hca_soft_wq_recvs(w->ip->wq) == IPIF_RECVS);
}

static void test_malformed(struct world *w)
{
	request_part(w, 8);
	row(0, "a truncated ARP request is counted", w->ip->arp_answered == 0 && ipif_malformed(w->ip) == 1);
	row(0, "the next one is answered", answers(w) && ipif_malformed(w->ip) == 1);
}

/* Faults of the adapter at the endpoint's QP. Each ends before the next request. */
static const struct {
	const char *name, *fault;
} faults[] = {
	{ "a receive completes with an error", "complete status=LOC_LEN_ERR queue=recv" },
	{ "a receive is flushed", "complete status=WR_FLUSH_ERR queue=recv" },
	{ "the queue pair enters the error state", "error" },
	{ "a completion is lost", "overrun" },
};

static void test_errors(struct world *w)
{
	struct fault *ft;
	char err[256], text[256];
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		snprintf(text, sizeof(text), "h1 %s qpn=%u", faults[i].fault, w->ip->qpn);
		ft = fault_add(hca_faults(w->hca), text, err, sizeof(err));
		row((int)i, faults[i].name, ft);
		for (n = 0; n < 2 * IPIF_RECVS; n++)
			request(w);
		cable_run(&w->c, 1000);
		row((int)i, "it happened", ft->pick.hits);
		fault_remove(ft);
		cable_run(&w->c, 1000);
		row((int)i, "responds again", answers(w));
		row((int)i, "each receive is posted", hca_soft_wq_recvs(w->ip->wq) == IPIF_RECVS);
	}
	row(0, "receives without a packet are not malformed", ipif_malformed(w->ip) == 0);
}

/* A send that the transport rejects moves a datagram QP to SQE. */
static void test_send_error(struct world *w)
{
	struct hca_qp *qp = hca_qp_lookup(w->hca, w->ip->qpn);

	qp->state = HCA_QPS_SQE;
	request(w);
	row(0, "in SQE its response is flushed", qp->state == HCA_QPS_SQE && !hca_soft_wq_sends(w->ip->wq));
	cable_run(&w->c, 1000);
	row(0, "back in RTS", qp->state == HCA_QPS_RTS && answers(w));
}

/* A limit is that of clients: its objects and groups neither need room within it nor take any. */
static void test_limits(struct world *w)
{
	static const char caps[] = "h1 caps max_pd=1 max_mr=1 max_cq=1 max_qp=1 max_qp_wr=8 max_mcast_grp=1";
	const struct wire_gid group = wire_gid_make(0xff12401bffff0000ull, 7);
	struct hca_qp_init init = { .type = HCA_QPT_UD };
	struct fault *limit;
	struct hca_soft_wq *wq;
	struct hca_soft_cq *cq;
	u32 pdn, lkey, rkey, qpn = hca_soft_wq_number(w->wq);
	char err[256];

	init.pdn = w->pdn;
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(w->cq);
	limit = fault_add(hca_faults(w->hca), caps, err, sizeof(err));
	row(1, "the client has what it was promised",
	    limit && hca_pd_alloc(w->ctx, &pdn) == -ENOMEM &&
		    hca_soft_cq_create(w->ctx, 8, NULL, NULL, &cq) == -ENOMEM &&
		    hca_mr_reg(w->ctx, w->pdn, 0x1000, 0x1000, 64, 0, &lkey, &rkey) == -ENOMEM &&
		    hca_soft_qp_create(w->ctx, &init, &wq) == -ENOMEM);
	ipif_destroy(w->ip);
	w->ip = ipif_create(&w->cfg);
	cable_run(&w->c, 100);
	row(2, "an interface starts besides", w->ip->wq && ipif_broadcast(w->ip));
	row(3, "a group of the client's own", !hca_mcast_attach(w->ctx, qpn, &group, MLID));
	row(4, "and no more, not even the interface's",
	    hca_mcast_attach(w->ctx, qpn, &ipif_broadcast(w->ip)->mgid, MLID) == -ENOMEM);
	row(5, "the client leaves it", !hca_mcast_detach(w->ctx, qpn, &group, MLID) && !hca_soft_wq_destroy(w->wq));
	row(6, "and creates its queue pair again", !hca_soft_qp_create(w->ctx, &init, &w->wq));
	qpn = hca_soft_wq_number(w->wq);
	row(7, "which joins the interface's group",
	    !hca_mcast_attach(w->ctx, qpn, &ipif_broadcast(w->ip)->mgid, MLID) &&
		    hca_mcast_attach(w->ctx, qpn, &group, MLID) == -ENOMEM);
	row(8, "and leaves it", !hca_mcast_detach(w->ctx, qpn, &ipif_broadcast(w->ip)->mgid, MLID));
	fault_remove(limit);
}

/* If its objects cannot be created it tries again, and they are no match of faults. */
static void test_room(struct world *w)
{
	struct hca_ctx *greedy = hca_ctx_create(w->hca, &hca_local_dma, NULL, NULL, NULL);
	struct fault *fatal, *large;
	char err[256];
	u32 pdn;

	ipif_destroy(w->ip);
	while (!hca_pd_alloc(greedy, &pdn))
		;
	w->ip = ipif_create(&w->cfg);
	cable_run(&w->c, 100);
	row(0, "no room", !w->ip->wq && !ipif_broadcast(w->ip));
	hca_ctx_destroy(greedy);
	fatal = fault_add(hca_faults(w->hca), "h1 fatal", err, sizeof(err));
	large = fault_add(hca_faults(w->hca), "h1 caps max_mr_size=1", err, sizeof(err));
	cable_run(&w->c, 1000);
	row(0, "later there is", fatal && large && w->ip->wq);
	fault_remove(large);
	fault_remove(fatal);
}

int main(void)
{
	static void (*const tests[])(struct world * w) = { test_muted,      test_malformed, test_errors,
							   test_send_error, test_limits,    test_room };
	struct world w;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		world_open(&w);
		row(0, "joined", ipif_broadcast(w.ip) && w.ip->wq);
		tests[i](&w);
		world_close(&w);
	}
	return rows_end();
}
