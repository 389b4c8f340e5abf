// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * IPoIB endpoint (RFC 4391): UD queue pair and multicast groups. The queue pair is created after the join of the
 * broadcast group, whose record has the Q_Key of the link; without an SM the join is retried.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/ipoib/ipif_internal.h"
#include "emu/lib/log.h"
#include "emu/wire/neigh.h"
#include "emu/wire/smp.h"

#define RETRY_MIN_NS 250000000ull
#define RETRY_MAX_NS 8000000000ull
#define REJOIN_NS    30000000ull
#define RECOVER_NS   250000000ull
#define REATTACH_NS  500000000ull
#define REATTACHES   20
#define BUFS         (IPIF_RECVS + IPIF_SENDS)

/* ---- addresses ---- */

/* On Ethernet the addresses are the port's GIDs. */
static bool is_gid(const struct ipif *ip, const struct ip_addr *a)
{
	struct wire_gid gid = wire_gid_from_bytes(a->raw);

	return wire_gid_equal(&ip->port->attr.gid[wire_port_gid_index(ip->port, &gid, 0)], &gid);
}

bool ipif_has(const struct ipif *ip, const struct ip_addr *a)
{
	if (wire_port_is_ethernet(ip->port))
		return !ip_addr_is_any(a) &&
		       (is_gid(ip, a) || ip_addr_equal(a, &ip->cfg.v4) || ip_addr_equal(a, &ip->cfg.v6));
	return !ip_addr_is_any(a) &&
	       (ip_addr_equal(a, &ip->cfg.v4) || ip_addr_equal(a, &ip->cfg.v6) || ip_addr_equal(a, &ip->link_local));
}

bool ipif_reaches(const struct ipif *ip, const struct ip_addr *a)
{
	if (wire_port_is_ethernet(ip->port)) /* the host's routing table decides */
		return ipif_source(ip, a);
	if (ip_addr_is_v4(a))
		return ip_addr_same_network(&ip->cfg.v4, a, ip->cfg.v4_len);
	return ip_addr_is_link_local(a) ||
	       (!ip_addr_is_any(&ip->cfg.v6) && ip_addr_same_network(&ip->cfg.v6, a, ip->cfg.v6_len));
}

/* The port's address on the network of @to (Ethernet). NULL: none, or unknown prefix lengths. */
static const struct ip_addr *ethernet_source(const struct ipif *ip, const struct ip_addr *to)
{
	const struct wire_port_attr *a = &ip->port->attr;
	u8 i;

	for (i = 0; i < WIRE_PORT_GIDS; i++) {
		const struct ip_addr *own = (const struct ip_addr *)&a->gid[i];

		if (a->gid_net[i] && !ip_addr_is_any(own) && ip_addr_same_network(own, to, a->gid_net[i]))
			return own;
	}
	return NULL;
}

const struct ip_addr *ipif_source(const struct ipif *ip, const struct ip_addr *to)
{
	const struct ip_addr *a = ip_addr_is_v4(to) ? &ip->cfg.v4 : &ip->cfg.v6;

	if (wire_port_is_ethernet(ip->port) && ethernet_source(ip, to))
		return ethernet_source(ip, to);
	if (!ip_addr_is_v4(to) && ip_addr_is_link_local(to) && !wire_port_is_ethernet(ip->port))
		return &ip->link_local;
	return ip_addr_is_any(a) ? NULL : a;
}

u16 ipif_pkey(const struct ipif *ip)
{
	return ip->pkey;
}

u64 ipif_malformed(const struct ipif *ip)
{
	return ip->malformed;
}

const struct sa_mcmember *ipif_broadcast(const struct ipif *ip)
{
	return ip->group[0].joined ? sa_mcast_record(ip->group[0].mcast) : NULL;
}

struct wire_gid ipif_mgid(const struct ipif *ip, const struct ip_addr *group)
{
	bool v4 = ip_addr_is_v4(group);
	struct wire_gid gid = { { 0xff, 0x12, v4 ? 0x40 : 0x60, 0x1b } };

	wire_store(gid.raw + 4, 2, ip->pkey);
	if (v4)
		wire_store(gid.raw + 12, 4, ip_addr_get_v4(group) == ~0u ? ~0u : ip_addr_get_v4(group) & 0x0fffffff);
	else
		memcpy(gid.raw + 6, group->raw + 6, 10);
	return gid;
}

/*
 * ---- the queue pair ----
 *
 * Each receive buffer is reposted after processing, whatever its status. Flushed ones are reposted when the queue
 * pair, which is in the error state, is restarted.
 */

static u8 *recv_buf(const struct ipif *ip, u32 n)
{
	return ip->buf + (size_t)n * (IPIF_BUF + IPIF_GRH + IPIF_HEADER);
}

static void post_recv(struct ipif *ip, u32 n)
{
	struct hca_recv_wr wr = { .token = n, .num_sge = 1 };

	wr.sge[0] = (struct hca_sge){ .addr = (uintptr_t)recv_buf(ip, n),
				      .length = IPIF_BUF + IPIF_GRH + IPIF_HEADER,
				      .lkey = ip->lkey };
	(void)hca_soft_post_recv(ip->wq, &wr); /* the queue has room for all buffers */
}

static void ipif_received(struct ipif *ip, const struct hca_cqe *c)
{
	const u8 *p = recv_buf(ip, (u32)c->token) + IPIF_GRH;
	bool ok = c->status == HCA_WC_SUCCESS, whole = ok && c->byte_len >= IPIF_GRH + IPIF_HEADER;

	ip->malformed += ok && !whole;
	if (whole && !ip->muted)
		ipif_packet(ip, (u16)wire_load(p, 2), p + IPIF_HEADER, c->byte_len - IPIF_GRH - IPIF_HEADER, c);
	post_recv(ip, (u32)c->token);
}

static void recover_later(struct ipif *ip)
{
	struct loop *loop = ip->cfg.loop;

	if (!loop_timer_armed(&ip->recover))
		loop_timer_set(loop, &ip->recover, loop_now(loop).ns + RECOVER_NS);
}

static void on_cq(void *arg)
{
	struct ipif *ip = arg;
	struct hca_cqe c;

	while (ip->wq && hca_soft_cq_poll(ip->cq, &c, 1) == 1) {
		if (c.status != HCA_WC_SUCCESS)
			recover_later(ip);
		if (c.opcode & HCA_WC_RECV && c.status != HCA_WC_WR_FLUSH_ERR)
			ipif_received(ip, &c);
	}
}

static void ipif_on_event(void *fe, const struct hca_event *ev)
{
	struct ipif *ip = fe;

	if (ev->type == HCA_EVENT_CQ_ERR)
		ip->cq_failed = true;
	if (ev->type == HCA_EVENT_CQ_ERR || ev->type == HCA_EVENT_QP_FATAL)
		recover_later(ip);
}

static int qp_start(struct ipif *ip)
{
	struct hca_qp_attr a = { .state = HCA_QPS_INIT,
				 .pkey_index = wire_port_pkey_index(ip->port, ip->pkey),
				 .port = ip->port->num,
				 .qkey = ip->qkey };
	int err = hca_qp_modify(ip->ctx, ip->qpn, &a, HCA_QP_STATE | HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY);
	u32 i;

	a.state = HCA_QPS_RTR;
	err = err ? err : hca_qp_modify(ip->ctx, ip->qpn, &a, HCA_QP_STATE);
	a.state = HCA_QPS_RTS;
	err = err ? err : hca_qp_modify(ip->ctx, ip->qpn, &a, HCA_QP_STATE | HCA_QP_SQ_PSN);
	for (i = 0; i < IPIF_RECVS && !err; i++)
		post_recv(ip, i);
	return err;
}

static int qp_create(struct ipif *ip)
{
	size_t len = (size_t)BUFS * (IPIF_BUF + IPIF_GRH + IPIF_HEADER);
	struct hca_qp_init init = { .type = HCA_QPT_UD,
				    .max_send_wr = IPIF_SENDS,
				    .max_recv_wr = IPIF_RECVS,
				    .max_send_sge = 1,
				    .max_recv_sge = 1 };
	u32 rkey;
	int err;

	ip->buf = calloc(1, len);
	ip->ctx = ip->buf ? hca_ctx_create(ip->cfg.hca, &hca_local_dma, NULL, ipif_on_event, ip) : NULL;
	if (!ip->ctx)
		return -ENOMEM;
	hca_ctx_set_internal(ip->ctx);
	err = hca_pd_alloc(ip->ctx, &ip->pdn);
	err = err ? err
		  : hca_mr_reg(ip->ctx, ip->pdn, (uintptr_t)ip->buf, (uintptr_t)ip->buf, len, HCA_ACCESS_LOCAL_WRITE,
			       &ip->lkey, &rkey);
	err = err ? err : hca_soft_cq_create(ip->ctx, 2 * BUFS, on_cq, ip, &ip->cq);
	if (err)
		return err;
	init.pdn = ip->pdn;
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(ip->cq);
	err = hca_soft_qp_create(ip->ctx, &init, &ip->wq);
	if (err)
		return err;
	ip->qpn = hca_soft_wq_number(ip->wq);
	return qp_start(ip);
}

static void qp_destroy(struct ipif *ip)
{
	u32 i;

	loop_timer_cancel(&ip->recover);
	ip->cq_failed = false;
	for (i = 0; i < IPIF_GROUPS; i++)
		ip->group[i].attached = false;
	if (ip->ctx)
		hca_ctx_destroy(ip->ctx);
	if (ip->wq) {
		hca_soft_wq_orphan(ip->wq);
		hca_soft_wq_destroy(ip->wq);
	}
	if (ip->cq) {
		hca_soft_cq_orphan(ip->cq);
		hca_soft_cq_destroy(ip->cq);
	}
	free(ip->buf);
	ip->ctx = NULL;
	ip->wq = NULL;
	ip->cq = NULL;
	ip->buf = NULL;
}

int ipif_send_to(struct ipif *ip, const struct hca_av *av, u32 qpn, u16 ethertype, const u8 *payload, u32 len)
{
	struct hca_send_wr wr = { .opcode = HCA_WR_SEND,
				  .av = *av,
				  .remote_qpn = qpn,
				  .remote_qkey = ip->qkey,
				  .pkey_index = wire_port_pkey_index(ip->port, ip->pkey),
				  .num_sge = 1 };
	u8 *p;

	if (!ip->wq || hca_soft_wq_sends(ip->wq) == IPIF_SENDS || len > IPIF_BUF)
		return -ENOMEM;
	p = recv_buf(ip, IPIF_RECVS + ip->send_next++ % IPIF_SENDS);
	wire_store(p, 2, ethertype);
	wire_store(p + 2, 2, 0);
	memcpy(p + IPIF_HEADER, payload, len);
	wr.sge[0] = (struct hca_sge){ .addr = (uintptr_t)p, .length = IPIF_HEADER + len, .lkey = ip->lkey };
	return hca_soft_post_send(ip->wq, &wr);
}

int ipif_send_group(struct ipif *ip, const struct sa_mcmember *group, u16 ethertype, const u8 *payload, u32 len)
{
	struct hca_av av = {
		.dlid = group->mlid,
		.sl = group->sl,
		.static_rate = group->rate,
		.port = ip->port->num,
		.grh = true,
		.hop_limit = group->hop_limit,
		.traffic_class = group->traffic_class,
		.flow_label = group->flow_label,
		.dgid = group->mgid,
	};

	return ipif_send_to(ip, &av, WIRE_QP_MULTICAST, ethertype, payload, len);
}

/* ---- groups ---- */

static void group_attach(struct ipif_group *g)
{
	struct ipif *ip = g->ip;
	u16 mlid = sa_mcast_record(g->mcast)->mlid;

	if (g->attached && g->mlid == mlid)
		return;
	if (g->attached)
		hca_mcast_detach(ip->ctx, ip->qpn, &g->mgid, g->mlid);
	g->attached = hca_mcast_attach(ip->ctx, ip->qpn, &g->mgid, mlid) == 0;
	g->mlid = mlid;
}

/* Recovers from SQE to RTS, and from ERR through RESET, which discards posted requests (IBTA 10.3.1). A CQ
 * error needs a new queue pair. */
static int qp_recover(struct ipif *ip)
{
	struct hca_qp_attr a;
	u32 i;
	int err;

	if (ip->cq_failed) {
		qp_destroy(ip);
		err = qp_create(ip);
		for (i = 0; i < IPIF_GROUPS && !err; i++)
			if (ip->group[i].joined)
				group_attach(&ip->group[i]);
		return err;
	}
	err = hca_qp_query(ip->ctx, ip->qpn, &a);
	if (err || (a.state != HCA_QPS_SQE && a.state != HCA_QPS_ERR))
		return err;
	on_cq(ip); /* flushed receives are posted by qp_start() */
	if (a.state == HCA_QPS_SQE) {
		a = (struct hca_qp_attr){ .state = HCA_QPS_RTS };
		return hca_qp_modify(ip->ctx, ip->qpn, &a, HCA_QP_STATE);
	}
	a = (struct hca_qp_attr){ .state = HCA_QPS_RESET };
	err = hca_qp_modify(ip->ctx, ip->qpn, &a, HCA_QP_STATE);
	return err ? err : qp_start(ip);
}

static void on_recover(struct loop_timer *t, struct now now)
{
	struct ipif *ip = container_of(t, struct ipif, recover);
	int err = ip->wq || ip->cq_failed ? qp_recover(ip) : 0;

	loop_timer_cancel(&ip->recover); /* on_cq() may have set it again */
	if (!err)
		return;
	log_at(LOG_WARN, ip->port->name, "port %u: IPoIB does not recover from an error of its queue pair: %s",
	       ip->port->num, strerror(-err));
	qp_destroy(ip);
	ip->cq_failed = true;
	loop_timer_set(ip->cfg.loop, &ip->recover, now.ns + RETRY_MAX_NS);
}

static void group_join(struct ipif_group *g);

static void group_retry(struct loop_timer *t, struct now now)
{
	group_join(container_of(t, struct ipif_group, retry));
}

static void group_join_later(struct ipif_group *g)
{
	struct ipif *ip = g->ip;

	sa_mcast_leave(g->mcast);
	g->mcast = NULL;
	g->joined = false;
	g->retry_ns = min(max(g->retry_ns * 2, RETRY_MIN_NS), RETRY_MAX_NS);
	loop_timer_set(ip->cfg.loop, &g->retry, loop_now(ip->cfg.loop).ns + g->retry_ns);
}

static void group_joined(void *ctx, int status, u16 sa_status, const struct sa_mcmember *rec)
{
	struct ipif_group *g = ctx;
	struct ipif *ip = g->ip;
	u32 i;

	if (status) { /* also of a group that was joined, which the SA of another master refuses */
		group_join_later(g);
		return;
	}
	g->joined = true;
	if (!ip->wq) {
		ip->qkey = rec->qkey;
		status = qp_create(ip);
	}
	if (status) { /* the limit of a fault on the adapter's objects, say, is reached */
		log_at(LOG_WARN, ip->port->name, "port %u has no IP: %s", ip->port->num, strerror(-status));
		qp_destroy(ip);
		group_join_later(g);
		return;
	}
	g->retry_ns = 0;
	group_attach(g);
	for (i = 1; i < IPIF_GROUPS && g == &ip->group[0]; i++)
		group_join(&ip->group[i]);
}

/* Parameters of a new group: those of the broadcast group. RFC 4391, 5. */
#define GROUP_COMP                                                                                            \
	(SA_COMP(MCMEMBER_COMP_QKEY) | SA_COMP(MCMEMBER_COMP_MTU_SELECTOR) | SA_COMP(MCMEMBER_COMP_MTU) |     \
	 SA_COMP(MCMEMBER_COMP_TCLASS) | SA_COMP(MCMEMBER_COMP_RATE_SELECTOR) | SA_COMP(MCMEMBER_COMP_RATE) | \
	 SA_COMP(MCMEMBER_COMP_SL) | SA_COMP(MCMEMBER_COMP_FLOW_LABEL) | SA_COMP(MCMEMBER_COMP_HOP_LIMIT))

static void group_join(struct ipif_group *g)
{
	struct ipif *ip = g->ip;
	struct sa_mcmember want = { 0 };
	u64 comp = SA_COMP(MCMEMBER_COMP_PKEY);

	if (g->mcast || wire_gid_is_zero(&g->mgid))
		return;
	if (g != &ip->group[0]) {
		if (!ipif_broadcast(ip))
			return;
		want = *ipif_broadcast(ip);
		want.mtu_sel = want.rate_sel = SA_SELECT_EXACTLY;
		comp |= GROUP_COMP;
	}
	want.mgid = g->mgid;
	want.port_gid = ip->port->attr.gid[0];
	want.pkey = ip->pkey;
	want.join_state = 1;
	g->mcast = sa_mcast_join(ip->cfg.sa, &want, comp, group_joined, g);
	if (!g->mcast)
		loop_timer_set(ip->cfg.loop, &g->retry, loop_now(ip->cfg.loop).ns + RETRY_MAX_NS);
}

static void group_leave(struct ipif_group *g)
{
	loop_timer_cancel(&g->retry);
	if (g->mcast)
		sa_mcast_leave(g->mcast);
	g->mcast = NULL;
	g->joined = false;
}

/* ---- link up ---- */

/* P_Key of the default partition, else the port's first one. */
static u16 port_pkey(const struct wire_port *port)
{
	return port->attr.pkey[wire_port_pkey_index(port, WIRE_PKEY_DEFAULT_FULL)] | WIRE_PKEY_FULL;
}

/* Derives the MGIDs from the P_Key and the addresses. */
static void name_groups(struct ipif *ip)
{
	struct ip_addr broadcast = ip_addr_v4(~0u), node;

	ip->pkey = port_pkey(ip->port);
	ip->link_local = (struct ip_addr){ { 0xfe, 0x80 } };
	wire_store(ip->link_local.raw + 8, 8, wire_gid_guid(&ip->port->attr.gid[0]) ^ 0x0200000000000000ull);
	ip->group[0].mgid = ipif_mgid(ip, &broadcast);
	node = wire_nd_group(&ip->link_local);
	ip->group[1].mgid = ipif_mgid(ip, &node);
	if (ip_addr_is_any(&ip->cfg.v6))
		return;
	node = wire_nd_group(&ip->cfg.v6);
	ip->group[2].mgid = ipif_mgid(ip, &node);
}

/* A port may become Active before the ports on the path to the SA: early requests are
 * lost and retried after the timeout. */
static void ipif_start(struct ipif *ip)
{
	const struct wire_port_attr *attr = &ip->port->attr;
	struct loop *loop = ip->cfg.loop;

	if (attr->sm_lid && attr->lid && attr->state == PORT_STATE_ACTIVE && !ip->group[0].mcast) {
		name_groups(ip);
		ip->group[0].retry_ns = 0;
		loop_timer_set(loop, &ip->group[0].retry, loop_now(loop).ns + REJOIN_NS);
	}
}

/* After ClientReregister the groups may get other MLIDs, with a delay. */
static void ipif_reattach(struct loop_timer *t, struct now now)
{
	struct ipif *ip = container_of(t, struct ipif, reattach);
	u32 i;

	for (i = 0; i < IPIF_GROUPS; i++)
		if (ip->group[i].joined && ip->wq)
			group_attach(&ip->group[i]);
	if (++ip->reattaches < REATTACHES)
		loop_timer_set(ip->cfg.loop, &ip->reattach, now.ns + REATTACH_NS);
}

void ipif_mute(struct ipif *ip, bool muted)
{
	ip->muted = muted;
}

void ipif_event(struct ipif *ip, enum wire_port_event event)
{
	u32 i;

	if (event == WIRE_PORT_INIT)
		return;
	/*
	 * Also while the SA refuses the broadcast group: the queue pair and the other groups are those of the old
	 * P_Key.
	 */
	if (event == WIRE_PORT_PKEY_CHANGE && port_pkey(ip->port) != ip->pkey) {
		for (i = 0; i < IPIF_GROUPS; i++)
			group_leave(&ip->group[i]);
		qp_destroy(ip);
	}
	ip->reattaches = 0;
	ipif_reattach(&ip->reattach, loop_now(ip->cfg.loop));
	ipif_start(ip);
}

struct ipif *ipif_create(const struct ipif_config *cfg)
{
	struct ipif *ip = calloc(1, sizeof(*ip));
	u32 i;

	if (!ip)
		return NULL;
	ip->cfg = *cfg;
	ip->port = mad_port_wire(cfg->mp);
	list_init(&ip->neighbours);
	for (i = 0; i < IPIF_GROUPS; i++) {
		ip->group[i].ip = ip;
		ip->group[i].retry.fn = group_retry;
	}
	ip->reattach.fn = ipif_reattach;
	ip->recover.fn = on_recover;
	name_groups(ip);
	ipif_start(ip);
	return ip;
}

void ipif_destroy(struct ipif *ip)
{
	u32 i;

	if (!ip)
		return;
	loop_timer_cancel(&ip->reattach);
	ipif_neighbours_destroy(ip);
	for (i = 0; i < IPIF_GROUPS; i++)
		group_leave(&ip->group[i]);
	qp_destroy(ip);
	free(ip);
}
