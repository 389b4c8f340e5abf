// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast membership of a port (MCMemberRecord, IBTA 15.2.5.17). A group is joined at the SA once per join state,
 * however many members share it; a group has at most one outstanding request, and its task starts the next one.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/mad/sa_internal.h"

#define REJOIN_MS 1000 /* between retries while the SA does not respond */

enum member_state {
	MEMBER_WANTS,
	MEMBER_WANTS_AGAIN,
	MEMBER_IN,
	MEMBER_REFUSED
};

struct sa_group {
	struct list link; /* sa_client.groups */
	struct sa_client *client;
	struct wire_gid mgid; /* zero until the SA has chosen one */
	struct list members;
	struct sa_mcmember rec;   /* of the SA's last response */
	u8 joined;                /* join state bits held at the SA */
	struct sa_query *query;   /* outstanding */
	struct sa_mcast *joining; /* for this member; NULL if it left meanwhile, or for a Delete */
	u8 requested;             /* bits in the outstanding request */
	struct loop_task work;
	struct loop_timer again;
};

struct sa_mcast {
	struct list link; /* sa_group.members */
	struct sa_group *group;
	enum member_state state;
	struct sa_mcmember want;
	u64 comp;
	sa_mcast_fn *cb;
	void *ctx;
};

/* The numeric fields of a record: position in the MAD and in the struct. */
static const struct mc_field {
	struct wire_field wire;
	u8 offset, size;
} mc_fields[] = {
#define F(name, member)                                                                               \
	{                                                                                             \
		name, offsetof(struct sa_mcmember, member), sizeof(((struct sa_mcmember *)0)->member) \
	}
	F(MCMEMBER_QKEY, qkey),
	F(MCMEMBER_MLID, mlid),
	F(MCMEMBER_MTU_SELECTOR, mtu_sel),
	F(MCMEMBER_MTU, mtu),
	F(MCMEMBER_TCLASS, traffic_class),
	F(MCMEMBER_PKEY, pkey),
	F(MCMEMBER_RATE_SELECTOR, rate_sel),
	F(MCMEMBER_RATE, rate),
	F(MCMEMBER_LIFE_SELECTOR, life_sel),
	F(MCMEMBER_LIFE, packet_life),
	F(MCMEMBER_SL, sl),
	F(MCMEMBER_FLOW_LABEL, flow_label),
	F(MCMEMBER_HOP_LIMIT, hop_limit),
	F(MCMEMBER_SCOPE, scope),
	F(MCMEMBER_JOIN_STATE, join_state),
#undef F
};

static void mcmember_put(const struct sa_mcmember *m, u8 *attr)
{
	const struct mc_field *f;

	wire_copy_in(attr, MCMEMBER_MGID, m->mgid.raw);
	wire_copy_in(attr, MCMEMBER_PORT_GID, m->port_gid.raw);
	for (f = mc_fields; f < mc_fields + ARRAY_SIZE(mc_fields); f++)
		wire_set(attr, f->wire, wire_member_load((const u8 *)m + f->offset, f->size));
}

static void mcmember_get(const u8 *attr, struct sa_mcmember *m)
{
	const struct mc_field *f;

	memset(m, 0, sizeof(*m));
	m->mgid = wire_gid_from_bytes(wire_cbytes(attr, MCMEMBER_MGID));
	m->port_gid = wire_gid_from_bytes(wire_cbytes(attr, MCMEMBER_PORT_GID));
	for (f = mc_fields; f < mc_fields + ARRAY_SIZE(mc_fields); f++)
		wire_member_store((u8 *)m + f->offset, f->size, (u32)wire_get(attr, f->wire));
}

/* ---- join and leave of a group ---- */

static void group_free(struct sa_group *g)
{
	loop_task_cancel(&g->work);
	loop_timer_cancel(&g->again);
	if (g->query)
		sa_query_cancel(g->query);
	list_del(&g->link);
	free(g);
}

static u8 sa_mcast_needed(const struct sa_group *g)
{
	const struct sa_mcast *m;
	u8 bits = 0;

	list_for_each (m, &g->members, link)
		if (m->state != MEMBER_REFUSED)
			bits |= m->want.join_state;
	return bits;
}

static struct sa_mcast *next_wanting(const struct sa_group *g)
{
	struct sa_mcast *m;

	list_for_each (m, &g->members, link)
		if (m->state == MEMBER_WANTS || m->state == MEMBER_WANTS_AGAIN)
			return m;
	return NULL;
}

static struct sa_query *leave_request(struct sa_group *g, u8 bits)
{
	u64 comp = SA_COMP(MCMEMBER_COMP_MGID) | SA_COMP(MCMEMBER_COMP_PORT_GID) | SA_COMP(MCMEMBER_COMP_JOIN_STATE);
	struct sa_query *q = sa_query_create(g->client, SA_METHOD_DELETE, SA_ATTR_MCMEMBER_RECORD, comp);
	struct sa_mcmember rec = g->rec;

	if (!q)
		return NULL;
	rec.join_state = bits;
	mcmember_put(&rec, q->mad + SA_DATA);
	return q;
}

static void sa_mcast_left(struct sa_query *q, int status, u16 sa_status, const u8 *mad)
{
	struct sa_group *g = q->ctx;

	/* Considered deleted in any case: an SA that does not respond ages the member out. */
	g->query = NULL;
	g->joined &= ~g->requested;
	loop_task_queue(g->client->loop, &g->work);
}

static void group_leave(struct sa_group *g, u8 bits)
{
	struct sa_query *q = leave_request(g, bits);

	g->requested = bits;
	if (!q) {
		g->joined &= ~bits;
		loop_task_queue(g->client->loop, &g->work);
		return;
	}
	q->done = sa_mcast_left;
	q->ctx = g;
	g->query = q;
	sa_query_send(q, 0);
}

/*
 * Must be the last access to the group in an event: the callback may leave, or destroy the client. A member that joined
 * before is called again only if it is a member no more.
 */
static void member_answer(struct sa_mcast *m, int status, u16 sa_status)
{
	bool tell = m->state == MEMBER_WANTS || status;

	m->state = status ? MEMBER_REFUSED : MEMBER_IN;
	if (tell)
		m->cb(m->ctx, status, sa_status, status ? NULL : &m->group->rec);
}

static void sa_mcast_joined(struct sa_query *q, int status, u16 sa_status, const u8 *mad)
{
	struct sa_group *g = q->ctx;
	struct sa_mcast *m = g->joining;

	g->query = NULL;
	g->joining = NULL;
	if (status == 0) {
		mcmember_get(mad + SA_DATA, &g->rec);
		g->mgid = g->rec.mgid;
		g->joined |= g->requested;
	}
	if (m && m->state == MEMBER_WANTS_AGAIN && !mad) {
		/* No response, or currently no SM. */
		loop_timer_set(g->client->loop, &g->again, loop_now(g->client->loop).ns + REJOIN_MS * NSEC_PER_MSEC);
		return;
	}
	loop_task_queue(g->client->loop, &g->work);
	if (m)
		member_answer(m, status, sa_status);
}

static bool group_join(struct sa_group *g, struct sa_mcast *m)
{
	u64 comp = m->comp | SA_COMP(MCMEMBER_COMP_MGID) | SA_COMP(MCMEMBER_COMP_PORT_GID) |
		   SA_COMP(MCMEMBER_COMP_JOIN_STATE);
	struct sa_mcmember rec = m->want;
	struct sa_query *q;

	rec.mgid = g->mgid; /* zero: the SA chooses one (o15-0.2.5) */
	q = sa_query_create(g->client, MAD_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, comp);
	if (!q)
		return false;
	mcmember_put(&rec, q->mad + SA_DATA);
	q->done = sa_mcast_joined;
	q->ctx = g;
	g->query = q;
	g->joining = m;
	g->requested = m->want.join_state;
	sa_query_send(q, 0);
	return true;
}

/* Whether the joined group matches the request of another member. As in the kernel, only exact values are compared. */
static bool group_suits(const struct sa_group *g, const struct sa_mcast *m)
{
	const struct sa_mcmember *have = &g->rec, *want = &m->want;

	return (!(m->comp & SA_COMP(MCMEMBER_COMP_QKEY)) || have->qkey == want->qkey) &&
	       (!(m->comp & SA_COMP(MCMEMBER_COMP_MLID)) || have->mlid == want->mlid) &&
	       (!(m->comp & SA_COMP(MCMEMBER_COMP_PKEY)) || have->pkey == want->pkey) &&
	       (!(m->comp & SA_COMP(MCMEMBER_COMP_TCLASS)) || have->traffic_class == want->traffic_class) &&
	       (!(m->comp & SA_COMP(MCMEMBER_COMP_SL)) || have->sl == want->sl) &&
	       (!(m->comp & SA_COMP(MCMEMBER_COMP_FLOW_LABEL)) || have->flow_label == want->flow_label) &&
	       (!(m->comp & SA_COMP(MCMEMBER_COMP_HOP_LIMIT)) || have->hop_limit == want->hop_limit);
}

static void group_work(struct loop_task *t, struct now now)
{
	struct sa_group *g = container_of(t, struct sa_group, work);
	u8 unwanted = g->joined & ~sa_mcast_needed(g);
	struct sa_mcast *m = next_wanting(g);

	if (g->query || loop_timer_armed(&g->again))
		return;
	if (unwanted) {
		group_leave(g, unwanted);
	} else if (m && (g->joined & m->want.join_state) == m->want.join_state) {
		loop_task_queue(g->client->loop, &g->work);
		member_answer(m, group_suits(g, m) ? 0 : -EINVAL, group_suits(g, m) ? 0 : SA_STATUS_REQ_INVALID);
	} else if (m && !group_join(g, m)) {
		loop_task_queue(g->client->loop, &g->work);
		member_answer(m, -ENOMEM, 0);
	} else if (list_empty(&g->members) && !g->joined) {
		group_free(g);
	}
}

static void try_again(struct loop_timer *t, struct now now)
{
	struct sa_group *g = container_of(t, struct sa_group, again);

	loop_task_queue(g->client->loop, &g->work);
}

/* ---- members ---- */

/* Every join with a zero MGID creates a new group. */
static struct sa_group *group_get(struct sa_client *c, const struct sa_mcmember *want)
{
	struct sa_group *g;

	list_for_each (g, &c->groups, link)
		if (!wire_gid_is_zero(&want->mgid) && wire_gid_equal(&g->mgid, &want->mgid))
			return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->client = c;
	g->mgid = want->mgid;
	g->rec = *want;
	list_init(&g->members);
	loop_task_init(&g->work, group_work);
	g->again.fn = try_again;
	list_add(&c->groups, &g->link);
	return g;
}

struct sa_mcast *sa_mcast_join(struct sa_client *c, const struct sa_mcmember *want, u64 comp, sa_mcast_fn *cb,
			       void *ctx)
{
	struct sa_mcast *m = calloc(1, sizeof(*m));
	struct sa_group *g = m ? group_get(c, want) : NULL;

	if (!g) {
		free(m);
		return NULL;
	}
	m->group = g;
	m->want = *want;
	m->comp = comp;
	m->cb = cb;
	m->ctx = ctx;
	list_add(&g->members, &m->link);
	loop_task_queue(c->loop, &g->work);
	return m;
}

void sa_mcast_leave(struct sa_mcast *m)
{
	struct sa_group *g = m->group;

	if (g->joining == m)
		g->joining = NULL;
	if (list_empty(&g->members) || (g->members.next == &m->link && g->members.prev == &m->link))
		loop_timer_cancel(&g->again); /* no members left */
	list_del(&m->link);
	free(m);
	loop_task_queue(g->client->loop, &g->work);
}

const struct sa_mcmember *sa_mcast_record(const struct sa_mcast *m)
{
	return &m->group->rec;
}

void sa_client_rejoin(struct sa_client *c)
{
	struct sa_group *g;
	struct sa_mcast *m;

	list_for_each (g, &c->groups, link) {
		g->joined = 0;
		if (g->joining) { /* a request to the previous SA, whose response does not count */
			sa_query_cancel(g->query);
			g->query = NULL;
			g->joining = NULL;
		}
		list_for_each (m, &g->members, link)
			if (m->state == MEMBER_IN)
				m->state = MEMBER_WANTS_AGAIN;
		loop_timer_cancel(&g->again);
		loop_task_queue(c->loop, &g->work);
	}
}

void sa_groups_destroy(struct sa_client *c)
{
	struct sa_group *g, *gtmp;
	struct sa_mcast *m, *mtmp;
	struct sa_query *q;

	list_for_each_safe (g, gtmp, &c->groups, link) {
		q = g->joined ? leave_request(g, g->joined) : NULL;
		if (q)
			sa_query_post(q);
		list_for_each_safe (m, mtmp, &g->members, link) {
			list_del(&m->link);
			free(m);
		}
		group_free(g);
	}
}
