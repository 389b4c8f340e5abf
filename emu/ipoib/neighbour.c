// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Neighbour cache of an IPoIB endpoint: ARP (RFC 4391) and IPv6 neighbour discovery. */
#include <errno.h>
#include <stdlib.h>

#include "emu/ipoib/ipif_internal.h"
#include "emu/wire/neigh.h"

#define RETRANS_NS     1000000000ull
#define REACHABLE_NS   60000000000ull
#define NEIGHBOURS_MAX 16384

struct neighbour {
	struct list link;
	struct ipif *ip;
	struct ip_addr addr;
	bool known;
	struct ipif_hw hw;
	struct list queries;
	struct loop_timer timer; /* retransmits a solicitation, or expires the entry */
	struct sa_mcast *group;  /* the solicited-node group, joined send-only during resolution */
};

struct ipif_query {
	struct list link;
	struct neighbour *n;
	ipif_fn *fn;
	void *ctx;
	struct loop_timer timeout;
	struct loop_task answer;
};

static void neighbour_free(struct neighbour *n)
{
	struct ipif_query *q, *tmp;

	list_for_each_safe (q, tmp, &n->queries, link)
		ipif_query_cancel(q);
	loop_timer_cancel(&n->timer);
	if (n->group)
		sa_mcast_leave(n->group);
	list_del(&n->link);
	n->ip->nneighbours--;
	free(n);
}

void ipif_neighbours_destroy(struct ipif *ip)
{
	struct neighbour *n, *tmp;

	list_for_each_safe (n, tmp, &ip->neighbours, link)
		neighbour_free(n);
}

static struct neighbour *neighbour_find(const struct ipif *ip, const struct ip_addr *a)
{
	struct neighbour *n;

	list_for_each (n, &ip->neighbours, link)
		if (ip_addr_equal(&n->addr, a))
			return n;
	return NULL;
}

void ipif_neighbours(const struct ipif *ip,
		     void (*fn)(void *arg, const struct ip_addr *a, u16 vlan, const u8 *hw, u32 len), void *arg)
{
	const struct neighbour *n;
	u8 hw[IPIF_HW_SIZE];

	list_for_each (n, &ip->neighbours, link)
		if (n->known && !ipif_has(ip, &n->addr))
			fn(arg, &n->addr, 0, ipif_hw_put(&n->hw, hw), sizeof(hw));
}

static void solicit(void *ctx, int status, u16 sa_status, const struct sa_mcmember *rec)
{
	struct neighbour *n = ctx;

	if (status == 0)
		ipif_solicit(n->ip, &n->addr, rec);
}

/* Solicitations for an IPv6 neighbour are sent to its solicited-node group, which exists only while it has members. */
static void join_solicited(struct neighbour *n)
{
	struct ip_addr node = wire_nd_group(&n->addr);
	struct sa_mcmember want = {
		.mgid = ipif_mgid(n->ip, &node),
		.port_gid = n->ip->port->attr.gid[0],
		.pkey = n->ip->pkey,
		.join_state = 4,
	};

	if (n->group)
		sa_mcast_leave(n->group);
	n->group = sa_mcast_join(n->ip->cfg.sa, &want, SA_COMP(MCMEMBER_COMP_PKEY), solicit, n);
}

static void neighbour_solicit(struct neighbour *n)
{
	struct loop *loop = n->ip->cfg.loop;
	/* retries often until the endpoint is up */
	u64 ns = n->ip->wq ? RETRANS_NS : RETRANS_NS / 10;

	if (n->ip->wq && ip_addr_is_v4(&n->addr))
		ipif_request_arp(n->ip, &n->addr);
	else if (n->ip->wq)
		join_solicited(n);
	loop_timer_set(loop, &n->timer, loop_now(loop).ns + ns);
}

static void neighbour_on_timer(struct loop_timer *t, struct now now)
{
	struct neighbour *n = container_of(t, struct neighbour, timer);

	if (list_empty(&n->queries))
		neighbour_free(n);
	else
		neighbour_solicit(n);
}

static struct neighbour *neighbour_create(struct ipif *ip, const struct ip_addr *a)
{
	struct neighbour *n = ip->nneighbours < NEIGHBOURS_MAX ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return NULL;
	n->ip = ip;
	n->addr = *a;
	n->timer.fn = neighbour_on_timer;
	list_init(&n->queries);
	list_add(&ip->neighbours, &n->link);
	ip->nneighbours++;
	return n;
}

void ipif_learn(struct ipif *ip, const struct ip_addr *a, const struct ipif_hw *hw)
{
	struct neighbour *n = neighbour_find(ip, a);
	struct ipif_query *q;

	if (!n)
		return;
	n->hw = *hw;
	n->known = true;
	if (n->group)
		sa_mcast_leave(n->group);
	n->group = NULL;
	loop_timer_set(ip->cfg.loop, &n->timer, loop_now(ip->cfg.loop).ns + REACHABLE_NS);
	list_for_each (q, &n->queries, link)
		loop_task_queue(ip->cfg.loop, &q->answer);
}

/* ---- queries ---- */

static void query_end(struct ipif_query *q, int status, const struct wire_gid *gid)
{
	ipif_fn *fn = q->fn;
	void *ctx = q->ctx;
	struct wire_gid copy = gid ? *gid : (struct wire_gid){ { 0 } };

	ipif_query_cancel(q);
	fn(ctx, status, &copy);
}

static void on_timeout(struct loop_timer *t, struct now now)
{
	query_end(container_of(t, struct ipif_query, timeout), -ETIMEDOUT, NULL);
}

static void on_answer(struct loop_task *t, struct now now)
{
	struct ipif_query *q = container_of(t, struct ipif_query, answer);

	query_end(q, 0, &q->n->hw.gid);
}

void ipif_query_cancel(struct ipif_query *q)
{
	loop_timer_cancel(&q->timeout);
	loop_task_cancel(&q->answer);
	list_del(&q->link);
	free(q);
}

struct ipif_query *ipif_resolve(struct ipif *ip, const struct ip_addr *to, u32 timeout_ms, ipif_fn *fn, void *ctx)
{
	struct ipif_query *q = calloc(1, sizeof(*q));
	struct neighbour *n = neighbour_find(ip, to);

	if (q && !n)
		n = neighbour_create(ip, to);
	if (!q || !n) {
		free(q);
		return NULL;
	}
	*q = (struct ipif_query){ .n = n, .fn = fn, .ctx = ctx, .timeout.fn = on_timeout };
	loop_task_init(&q->answer, on_answer);
	list_add(&n->queries, &q->link);
	loop_timer_set(ip->cfg.loop, &q->timeout, loop_now(ip->cfg.loop).ns + timeout_ms * 1000000ull);
	if (ipif_has(ip, to)) {
		n->hw.gid = ip->port->attr.gid[0];
		n->known = true;
	}
	if (n->known) {
		loop_task_queue(ip->cfg.loop, &q->answer);
		if (!loop_timer_armed(&n->timer))
			loop_timer_set(ip->cfg.loop, &n->timer, loop_now(ip->cfg.loop).ns + REACHABLE_NS);
	} else if (!loop_timer_armed(&n->timer)) {
		neighbour_solicit(n);
	}
	return q;
}
