// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Neighbour cache of a RoCE port on Ethernet: addresses are resolved by ARP (RFC 826) or neighbour discovery (RFC 4861)
 * while packets are queued, and expire. There are no routes: every address is on-link.
 */
#include <stdlib.h>

#include "rxe/roce/roce_internal.h"

#define SOLICIT_NS     (100 * NSEC_PER_MSEC) /* doubled each time: queue pairs time out in less than a second */
#define SOLICIT_MAX    5
#define REACHABLE_NS   (60 * NSEC_PER_SEC)
#define NEIGHBOURS_MAX 4096
#define PENDING_MAX    512 /* packets queued for one neighbour; the transport retransmits others */
#define HTYPE_ETHER    1

static const struct wire_hw ethernet = { .type = HTYPE_ETHER, .len = ETHER_ALEN };

struct roce_neigh {
	struct list link;
	struct roce_port *port;
	struct wire_gid gid, src; /* src: source address of solicitations */
	u16 vlan;
	bool reachable;
	u8 mac[ETHER_ALEN];
	u32 solicits, npending;
	struct list pending;
	struct loop_timer timer; /* retransmits the solicitation, or expires the entry */
};

static struct ip_addr ip_of(const struct wire_gid *gid)
{
	struct ip_addr a;

	memcpy(a.raw, gid->raw, sizeof(a.raw));
	return a;
}

static void neigh_free(struct roce_neigh *n)
{
	while (!list_empty(&n->pending)) {
		struct wire_packet *p = list_first(&n->pending, struct wire_packet, link);

		list_del(&p->link);
		roce_count(n->port, ROCE_CTR_NEIGHBOUR);
		wire_packet_free(p);
	}
	loop_timer_cancel(&n->timer);
	list_del(&n->link);
	n->port->nneighbours--;
	free(n);
}

void roce_neigh_flush(struct roce_port *rp)
{
	while (!list_empty(&rp->neighbours))
		neigh_free(list_first(&rp->neighbours, struct roce_neigh, link));
}

void roce_port_neighbours(const struct roce_port *rp,
			  void (*fn)(void *arg, const struct ip_addr *a, u16 vlan, const u8 *hw, u32 len), void *arg)
{
	const struct roce_neigh *n;
	struct ip_addr a;

	list_for_each (n, &rp->neighbours, link) {
		a = ip_of(&n->gid);
		if (n->reachable)
			fn(arg, &a, n->vlan, n->mac, ETHER_ALEN);
	}
}

/* Solicitation */

static void neigh_solicit_arp(struct roce_neigh *n)
{
	static const u8 broadcast[ETHER_ALEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct wire_arp a = {
		.op = WIRE_ARP_REQUEST, .src = ip_of(&n->src), .dst = ip_of(&n->gid), .src_hw = n->port->ether->mac
	};
	u8 p[WIRE_ARP_MAX];

	roce_ether_frame(n->port, broadcast, n->vlan, ETHERTYPE_ARP, p, wire_arp_put(p, &ethernet, &a));
}

static void neigh_solicit_nd(struct roce_neigh *n)
{
	struct ip_addr target = ip_of(&n->gid);
	struct wire_nd nd = { .type = WIRE_ND_SOLICIT,
			      .src = ip_of(&n->src),
			      .dst = wire_nd_group(&target),
			      .target = target,
			      .hw = n->port->ether->mac };
	u8 p[WIRE_ND_MAX], mac[ETHER_ALEN];

	ether_multicast_mac(mac, nd.dst.raw);
	roce_ether_frame(n->port, mac, n->vlan, WIRE_INET_IP6, p, wire_nd_put(p, &ethernet, &nd));
}

static void neigh_solicit(struct roce_neigh *n)
{
	struct loop *loop = n->port->loop;

	n->solicits++;
	if (wire_gid_is_v4(&n->gid))
		neigh_solicit_arp(n);
	else
		neigh_solicit_nd(n);
	loop_timer_set(loop, &n->timer, loop_now(loop).ns + (SOLICIT_NS << (n->solicits - 1)));
}

static void on_timer(struct loop_timer *t, struct now now)
{
	struct roce_neigh *n = container_of(t, struct roce_neigh, timer);

	if (n->reachable || n->solicits >= SOLICIT_MAX)
		neigh_free(n);
	else
		neigh_solicit(n);
}

/* Cache */

static struct roce_neigh *neigh_lookup(const struct roce_port *rp, const struct wire_gid *gid, u16 vlan)
{
	struct roce_neigh *n;

	list_for_each (n, &rp->neighbours, link)
		if (wire_gid_equal(&n->gid, gid) && n->vlan == vlan)
			return n;
	return NULL;
}

static struct roce_neigh *neigh_create(struct roce_port *rp, const struct wire_roce *r)
{
	struct roce_neigh *n = rp->nneighbours < NEIGHBOURS_MAX ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return NULL;
	n->port = rp;
	n->gid = r->dst;
	n->src = r->src;
	n->vlan = r->l2.vlan & WIRE_VLAN_ID;
	n->timer.fn = on_timer;
	list_init(&n->pending);
	list_add(&rp->neighbours, &n->link);
	rp->nneighbours++;
	neigh_solicit(n);
	return n;
}

enum roce_answer roce_neigh_find(struct roce_port *rp, const struct wire_roce *r, struct wire_packet *p,
				 u8 mac[ETHER_ALEN])
{
	struct roce_neigh *n = rp->managed ? NULL : neigh_lookup(rp, &r->dst, r->l2.vlan & WIRE_VLAN_ID);

	if (!n && !rp->managed)
		n = neigh_create(rp, r);
	if (!n || (!n->reachable && n->npending >= PENDING_MAX))
		return ROCE_UNREACHABLE;
	if (n->reachable) {
		memcpy(mac, n->mac, ETHER_ALEN);
		return ROCE_SEND;
	}
	list_add(&n->pending, &p->link);
	n->npending++;
	return ROCE_PENDING;
}

/* Updates an existing entry and sends its queued packets; creates none. */
static void neigh_update(struct roce_port *rp, const struct ip_addr *a, u16 vlan, const u8 *mac)
{
	struct wire_gid gid = wire_gid_from_bytes(a->raw);
	struct roce_neigh *n = neigh_lookup(rp, &gid, vlan);

	if (!n || ether_is_multicast(mac))
		return;
	memcpy(n->mac, mac, ETHER_ALEN);
	n->reachable = true;
	loop_timer_set(rp->loop, &n->timer, loop_now(rp->loop).ns + REACHABLE_NS);
	rp->ntx += n->npending;
	n->npending = 0;
	list_splice(&rp->tx, &n->pending);
	loop_task_queue(rp->loop, &rp->task);
}

/* Responses */

static bool is_own(const struct roce_port *rp, const struct ip_addr *a, u16 vlan)
{
	struct wire_gid gid = wire_gid_from_bytes(a->raw);

	return roce_ether_own(rp, &gid, vlan) >= 0;
}

static void on_arp(struct roce_port *rp, const struct ether_header *h, const u8 *p, u32 len)
{
	u16 vlan = h->tci & WIRE_VLAN_ID;
	struct wire_arp a, reply;
	u8 out[WIRE_ARP_MAX];

	if (!wire_arp_get(p, len, &ethernet, &a)) {
		roce_count(rp, ROCE_CTR_MALFORMED);
		return;
	}
	neigh_update(rp, &a.src, vlan, a.src_hw);
	if (a.op != WIRE_ARP_REQUEST || !is_own(rp, &a.dst, vlan))
		return;
	reply = (struct wire_arp){
		.op = WIRE_ARP_REPLY, .src = a.dst, .dst = a.src, .src_hw = rp->ether->mac, .dst_hw = a.src_hw
	};
	roce_ether_frame(rp, a.src_hw, vlan, ETHERTYPE_ARP, out, wire_arp_put(out, &ethernet, &reply));
}

static void on_nd(struct roce_port *rp, const struct ether_header *h, const struct wire_nd *nd)
{
	u16 vlan = h->tci & WIRE_VLAN_ID;
	u8 out[WIRE_ND_MAX];
	struct wire_nd reply = { .type = WIRE_ND_ADVERT,
				 .flags = WIRE_ND_SOLICITED | WIRE_ND_OVERRIDE,
				 .src = nd->target,
				 .dst = nd->src,
				 .target = nd->target,
				 .hw = rp->ether->mac };

	if (nd->type == WIRE_ND_ADVERT) {
		if (nd->hw)
			neigh_update(rp, &nd->target, vlan, nd->hw);
		return;
	}
	if (nd->hw)
		neigh_update(rp, &nd->src, vlan, nd->hw);
	if (!is_own(rp, &nd->target, vlan) ||
	    ip_addr_is_any(&nd->src)) /* duplicate address detection: probes get no response */
		return;
	roce_ether_frame(rp, nd->hw ? nd->hw : h->src, vlan, WIRE_INET_IP6, out, wire_nd_put(out, &ethernet, &reply));
}

static void echo(struct roce_port *rp, const struct ether_header *h, const u8 *p, u32 len)
{
	bool v4 = h->type == WIRE_INET_IP4;
	u16 vlan = h->tci & WIRE_VLAN_ID;
	struct ip_addr dst;
	u8 *out;
	int n;

	if (len < (v4 ? IP4_SIZE : IP6_SIZE))
		return;
	if (v4)
		dst = ip_addr_v4((u32)wire_load(p + IP4_DST, 4));
	else
		memcpy(dst.raw, p + IP6_DST, 16);
	out = is_own(rp, &dst, vlan) ? malloc(len) : NULL;
	if (!out)
		return;
	n = v4 ? wire_echo4(p, len, out, len) : wire_echo6(p, len, out, len);
	if (n > 0)
		roce_ether_frame(rp, h->src, vlan, h->type, out, (u32)n);
	if (n < 0)
		roce_count(rp, ROCE_CTR_MALFORMED);
	free(out);
}

void roce_neigh_frame(struct roce_port *rp, const struct ether_header *h, const u8 *payload, u32 len)
{
	struct wire_nd nd;
	int n = 0;

	if (h->type == ETHERTYPE_ARP) {
		on_arp(rp, h, payload, len);
		return;
	}
	if (h->type == WIRE_INET_IP6)
		n = wire_nd_get(payload, len, &ethernet, &nd);
	if (n > 0)
		on_nd(rp, h, &nd);
	else if (n < 0)
		roce_count(rp, ROCE_CTR_MALFORMED);
	else if (h->type == WIRE_INET_IP4 || h->type == WIRE_INET_IP6)
		echo(rp, h, payload, len);
}
