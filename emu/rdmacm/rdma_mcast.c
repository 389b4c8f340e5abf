// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast groups of RDMA identifiers. A group has the parameters of the link's broadcast group; its MGID derives
 * from the address as in IPoIB, but with another signature in the UDP port space, so that they are different groups.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/port/port.h"
#include "emu/rdmacm/rdma_internal.h"
#include "emu/wire/sa.h"

#define WAIT_NS           50000000ull
#define WAITS             60
#define ENOTSUPP          524  /* of the kernel, which returns it to programs */
#define HOP_LIMIT         64   /* of groups of RoCEv2 */
#define SIGNATURE_RDMA_CM 0x01 /* in the signature's last byte of the MGID, where IPoIB has 0x1b */

/* Index of the source GID. */
static u8 own_index(const struct rdma_id *id)
{
	struct ip_addr ip = rdma_sockaddr_is_ip(&id->src) ? rdma_sockaddr_ip(&id->src) : (struct ip_addr){ { 0 } };
	struct wire_gid gid = wire_gid_from_bytes(ip.raw);

	return wire_port_gid_index(id->port->wire, &gid, 0);
}

static void mcast_report(struct rdma_mcast *m, int status, const struct sa_mcmember *rec)
{
	struct rdma_id *id = m->id;
	struct rdma_event ev = { .type = status ? RDMA_EVENT_MULTICAST_ERROR : RDMA_EVENT_MULTICAST_JOIN,
				 .status = status,
				 .mcast = m };

	if (!status) {
		ev.conn.qpn = WIRE_QP_MULTICAST;
		ev.conn.qkey = rec->qkey;
		ev.av = (struct hca_av){
			.dlid = rec->mlid,
			.sl = rec->sl,
			.static_rate = rec->rate,
			.port = id->port->num,
			.grh = true,
			.sgid_index = own_index(id),
			.hop_limit = rec->hop_limit,
			.traffic_class = rec->traffic_class,
			.flow_label = rec->flow_label,
			.dgid = rec->mgid,
		};
	}
	(void)id->fn(id->ctx, id, &ev);
}

static void on_joined(void *ctx, int status, u16 sa_status, const struct sa_mcmember *rec)
{
	mcast_report(ctx, status, rec);
}

static struct wire_gid mgid_of(const struct rdma_id *id, const union rdma_sockaddr *addr)
{
	struct ip_addr ip;
	struct wire_gid gid;

	if (addr->sa.sa_family == AF_IB)
		return wire_gid_from_bytes(addr->ib.sib_addr.sib_raw);
	if (rdma_sockaddr_is_any(addr))
		return (struct wire_gid){ { 0 } };
	ip = rdma_sockaddr_ip(addr);
	/* an IPv6 address in the range of RFC 4391's SA-assigned groups is an MGID already */
	if (!ip_addr_is_v4(&ip) && ip.raw[0] == 0xff && ip.raw[1] == 0x10 && ip.raw[2] == 0xa0 && ip.raw[3] == 0x1b)
		return wire_gid_from_bytes(ip.raw);
	gid = ipif_mgid(id->port->ip, &ip);
	if (id->ps == RDMA_SPACE_UDP)
		gid.raw[3] = SIGNATURE_RDMA_CM;
	return gid;
}

static int mcast_join(struct rdma_mcast *m, const struct sa_mcmember *broadcast)
{
	struct rdma_id *id = m->id;
	struct sa_mcmember want = *broadcast;
	u64 comp = SA_COMP(MCMEMBER_COMP_PKEY) | SA_COMP(MCMEMBER_COMP_QKEY) | SA_COMP(MCMEMBER_COMP_SL) |
		   SA_COMP(MCMEMBER_COMP_FLOW_LABEL) | SA_COMP(MCMEMBER_COMP_TCLASS);

	want.mgid = mgid_of(id, &m->addr);
	want.port_gid = id->port->wire->attr.gid[0];
	want.pkey = ipif_pkey(id->port->ip);
	want.join_state = m->join_state;
	if (id->ps == RDMA_SPACE_UDP)
		want.qkey = RDMA_UDP_QKEY;
	if (id->qkey)
		want.qkey = id->qkey;
	if (id->ps == RDMA_SPACE_IPOIB) {
		comp |= SA_COMP(MCMEMBER_COMP_RATE_SELECTOR) | SA_COMP(MCMEMBER_COMP_RATE) |
			SA_COMP(MCMEMBER_COMP_MTU_SELECTOR) | SA_COMP(MCMEMBER_COMP_MTU) |
			SA_COMP(MCMEMBER_COMP_HOP_LIMIT);
		want.mtu_sel = want.rate_sel = SA_SELECT_EXACTLY;
	}
	m->mcast = sa_mcast_join(id->port->sa, &want, comp, on_joined, m);
	return m->mcast ? 0 : -ENOMEM;
}

static void mcast_wait(struct rdma_mcast *m)
{
	struct loop *loop = m->id->host->loop;

	loop_timer_set(loop, &m->later, loop_now(loop).ns + WAIT_NS);
}

/* As the kernel's cma_iboe_join_multicast(): RoCEv2 has groups of IPv4 only. */
static int check_ethernet(const struct rdma_id *id, const union rdma_sockaddr *addr)
{
	if (rdma_sockaddr_is_any(addr)) /* no SA chooses the group */
		return -EINVAL;
	return id->port->wire->attr.roce_version == 1 || addr->sa.sa_family == AF_INET ? 0 : -ENOTSUPP;
}

/* On Ethernet there is no join: the MGID and the MAC address derive from the group's address. IBTA A17.9.1, A16.5. */
static void join_ethernet(struct rdma_mcast *m)
{
	const struct rdma_id *id = m->id;
	bool v1 = id->port->wire->attr.roce_version == 1;
	struct sa_mcmember rec = { .qkey = id->ps == RDMA_SPACE_UDP ? RDMA_UDP_QKEY : 0,
				   .hop_limit = v1 ? 1 : HOP_LIMIT };
	struct ip_addr ip = rdma_sockaddr_ip(&m->addr);

	if (id->qkey)
		rec.qkey = id->qkey;
	rec.mgid = wire_gid_from_bytes(ip.raw);
	if (ip_addr_is_v4(&ip) && v1) {
		rec.mgid.raw[0] = 0xff;
		rec.mgid.raw[1] = 0x0e;
	}
	mcast_report(m, 0, &rec);
}

/* Retries while the link comes up; fails the join if the link has no broadcast group. */
static void on_later(struct loop_timer *t, struct now now)
{
	struct rdma_mcast *m = container_of(t, struct rdma_mcast, later);
	const struct sa_mcmember *broadcast = ipif_broadcast(m->id->port->ip);

	if (wire_port_is_ethernet(m->id->port->wire)) {
		join_ethernet(m);
		return;
	}
	if (broadcast && mcast_join(m, broadcast))
		mcast_report(m, -ENOMEM, NULL);
	else if (!broadcast && ++m->waits < WAITS)
		mcast_wait(m);
	else if (!broadcast)
		mcast_report(m, -EADDRNOTAVAIL, NULL);
}

struct rdma_mcast *rdma_mcast_join(struct rdma_id *id, const union rdma_sockaddr *addr, bool send_only, void *ctx,
				   int *err)
{
	const struct sa_mcmember *broadcast;
	struct rdma_mcast *m;

	*err = -EINVAL;
	if (id->type != HCA_QPT_UD || !id->port || (id->state != RDMA_BOUND && id->state != RDMA_ADDR_RESOLVED) ||
	    !rdma_sockaddr_len(addr))
		return NULL;
	*err = -ENOSYS;
	if (id->host->iw)
		return NULL;
	*err = wire_port_is_ethernet(id->port->wire) ? check_ethernet(id, addr) : 0;
	if (*err)
		return NULL;
	*err = -ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->id = id;
	m->ctx = ctx;
	m->addr = *addr;
	m->join_state = send_only ? JOIN_SEND_ONLY_FULL : JOIN_FULL;
	m->later.fn = on_later;
	list_add(&id->mcasts, &m->link);
	broadcast = ipif_broadcast(id->port->ip);
	*err = broadcast ? mcast_join(m, broadcast) : 0;
	if (wire_port_is_ethernet(id->port->wire))
		loop_timer_set(id->host->loop, &m->later, loop_now(id->host->loop).ns);
	else if (!broadcast)
		mcast_wait(m);
	if (!*err)
		return m;
	rdma_mcast_leave(m);
	return NULL;
}

void rdma_mcast_leave(struct rdma_mcast *m)
{
	loop_timer_cancel(&m->later);
	if (m->mcast)
		sa_mcast_leave(m->mcast);
	list_del(&m->link);
	free(m);
}

void *rdma_mcast_ctx(const struct rdma_mcast *m)
{
	return m->ctx;
}
