// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of sa_query.c and sa_mcast.c with an SA that has one group and one path. */
#include "emu/mad/fixture.h"
#include "emu/mad/sa_query.h"
#include "emu/wire/sa.h"

/* The SA is at the far end, LID 2. */
struct sa {
	struct seen seen;
	u8 joined; /* join state bits of the one member */
	u32 gets, sets, deletes;
	u16 status; /* to be returned */
	u64 comp;
	u8 record[MAD_SIZE - SA_DATA]; /* of the last request */
	bool mute;
};

static void sa_answer(struct seen *s)
{
	struct sa *sa = container_of(s, struct sa, seen);
	u8 *mad = s->mad, *a = mad + SA_DATA, method = wire_mad_get_method(mad);

	sa->gets += method == MAD_METHOD_GET;
	sa->sets += method == MAD_METHOD_SET;
	sa->deletes += method == SA_METHOD_DELETE;
	sa->comp = wire_get(mad, SA_COMP_MASK);
	memcpy(sa->record, a, sizeof(sa->record));
	if (sa->mute)
		return;
	wire_set(mad, MAD_METHOD, method == SA_METHOD_DELETE ? SA_METHOD_DELETE_RESP : MAD_METHOD_GET_RESP);
	wire_set(mad, MAD_STATUS, sa->status);
	if (wire_get(mad, MAD_ATTR_ID) == SA_ATTR_PATH_RECORD) {
		wire_set(a, PATHREC_DLID, 77);
		wire_set(a, PATHREC_SLID, 1);
		wire_set(a, PATHREC_MTU, WIRE_MTU_2048);
		wire_set(a, PATHREC_MTU_SELECTOR, 2);
		wire_set(a, PATHREC_RATE, WIRE_RATE_100);
		wire_set(a, PATHREC_PKEY, 0xffff);
		wire_set(a, PATHREC_SL, 3);
		wire_set(a, PATHREC_LIFE, 18);
		wire_set(a, PATHREC_HOP_LIMIT, 64);
	} else if (!sa->status) {
		u8 state = wire_get(a, MCMEMBER_JOIN_STATE);

		sa->joined = method == MAD_METHOD_SET ? sa->joined | state : sa->joined & ~state;
		wire_set(a, MCMEMBER_JOIN_STATE, sa->joined);
		wire_set(a, MCMEMBER_MLID, 0xc005);
		wire_set(a, MCMEMBER_QKEY, 0x0b1b);
		if (!a[0])
			wire_copy_in(a, MCMEMBER_MGID, ((u8[16]){ 0xff, 0x12, 0xa0, 0x1b, [15] = 9 }));
	}
	mad_send(s->agent, mad, MAD_SIZE, &s->from, 0, 0, NULL);
}

struct world {
	struct sa sa;
	struct sa_client *client;
};

static void world_open(struct cable *c, struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->sa.seen.then = sa_answer;
	seen_register(c->mb, &w->sa.seen, MAD_CLASS_SUBN_ADM, 2, 1);
	c->a.port.attr.sm_lid = 2;
	w->client = sa_client_create(c->loop, c->ma);
}

static bool world_close(struct cable *c, struct world *w, bool ok)
{
	sa_client_destroy(w->client);
	cable_run(c, 1);
	free(w->sa.seen.data);
	return ok;
}

struct got {
	u32 calls;
	int status;
	u16 sa_status;
	struct sa_path path;
	struct sa_mcmember rec;
	struct sa_mcast *leave; /* left in the callback */
};

static void got_path(void *ctx, int status, u16 sa_status, const struct sa_path *path)
{
	struct got *g = ctx;

	g->calls++;
	g->status = status;
	g->sa_status = sa_status;
	if (path)
		g->path = *path;
}

static void got_mcast(void *ctx, int status, u16 sa_status, const struct sa_mcmember *rec)
{
	struct got *g = ctx;

	g->calls++;
	g->status = status;
	g->sa_status = sa_status;
	if (rec)
		g->rec = *rec;
	if (g->leave)
		sa_mcast_leave(g->leave);
}

#define GID_A wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 0x1001)
#define GID_B wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 0x1077)

static struct sa_query *query(struct world *w, struct got *g, u32 ms)
{
	struct wire_gid a = GID_A, b = GID_B;

	return sa_path_get_service(w->client, &a, &b, 0xffff, 0, -1, ms, got_path, g);
}

static bool path(struct cable *c)
{
	struct got g = { 0 };
	struct world w;

	world_open(c, &w);
	CHECK(query(&w, &g, 0) && g.calls == 0);
	cable_run(c, 1);
	CHECK(g.calls == 1 && g.status == 0 && g.path.dlid == 77 && g.path.mtu == WIRE_MTU_2048 && g.path.sl == 3);
	CHECK(g.path.rate == WIRE_RATE_100 && g.path.packet_life == 18 && g.path.pkey == 0xffff);
	CHECK(wire_get(w.sa.record, PATHREC_NUM_PATH) == 1 && wire_get(w.sa.record, PATHREC_REVERSIBLE) == 1);
	CHECK(w.sa.comp == 0x380c);
	return world_close(c, &w, true);
}

static bool path_refused(struct cable *c)
{
	struct got g = { 0 };
	struct world w;

	world_open(c, &w);
	w.sa.status = SA_STATUS_NO_RECORDS;
	query(&w, &g, 0);
	cable_run(c, 1);
	CHECK(g.calls == 1 && g.status == -ENOENT && g.sa_status == 0x300);
	w.sa.status = SA_STATUS_REQ_INVALID;
	query(&w, &g, 0);
	cable_run(c, 1);
	CHECK(g.calls == 2 && g.status == -EINVAL && g.sa_status == 0x200);
	return world_close(c, &w, true);
}

static bool path_without_answer(struct cable *c)
{
	struct got g = { 0 };
	struct world w;

	world_open(c, &w);
	w.sa.mute = true;
	query(&w, &g, 300);
	cable_run(c, 299);
	CHECK(g.calls == 0 && w.sa.gets == 3);
	cable_run(c, 2);
	CHECK(g.calls == 1 && g.status == MAD_TIMED_OUT);
	c->a.port.attr.sm_lid = 0;
	query(&w, &g, 300);
	CHECK(g.calls == 1);
	cable_run(c, 1);
	CHECK(g.calls == 2 && g.status == -ENETUNREACH);
	return world_close(c, &w, true);
}

static bool cancelled(struct cable *c)
{
	struct got g = { 0 };
	struct world w;

	world_open(c, &w);
	sa_query_cancel(query(&w, &g, 0));
	query(&w, &g, 0); /* outstanding when the client is destroyed */
	c->a.port.attr.sm_lid = 0;
	sa_query_cancel(query(&w, &g, 0));
	sa_client_destroy(w.client);
	w.client = NULL;
	cable_run(c, 10000);
	return world_close(c, &w, g.calls == 0);
}

/* ---- groups ---- */

static struct sa_mcast *join(struct world *w, struct got *g, u8 state)
{
	struct sa_mcmember want = { .mgid = wire_gid_make(0xff12401bffff0000, 5),
				    .port_gid = GID_A,
				    .join_state = state };

	return sa_mcast_join(w->client, &want, 0, got_mcast, g);
}

static bool one_join_for_all(struct cable *c)
{
	struct got g[3] = { 0 };
	struct sa_mcast *m[3];
	struct world w;

	world_open(c, &w);
	m[0] = join(&w, &g[0], JOIN_FULL);
	m[1] = join(&w, &g[1], JOIN_FULL);
	cable_run(c, 1);
	m[2] = join(&w, &g[2], JOIN_FULL);
	cable_run(c, 1);
	CHECK(g[0].calls == 1 && g[1].calls == 1 && g[2].calls == 1 && w.sa.sets == 1);
	CHECK(g[2].status == 0 && g[2].rec.mlid == 0xc005 && g[2].rec.qkey == 0xb1b);
	CHECK(sa_mcast_record(m[1])->mlid == 0xc005);
	sa_mcast_leave(m[0]);
	sa_mcast_leave(m[2]);
	cable_run(c, 1);
	CHECK(w.sa.deletes == 0 && w.sa.joined == JOIN_FULL);
	sa_mcast_leave(m[1]);
	cable_run(c, 1);
	CHECK(w.sa.deletes == 1 && w.sa.joined == 0);
	return world_close(c, &w, true);
}

/* The end of a row: the last member leaves, and the SA has none then. */
static bool last_leaves(struct cable *c, struct world *w, struct sa_mcast *m)
{
	sa_mcast_leave(m);
	cable_run(c, 1);
	CHECK(w->sa.joined == 0);
	return world_close(c, w, true);
}

static bool join_states(struct cable *c)
{
	struct got g[2] = { 0 };
	struct sa_mcast *full, *send;
	struct world w;

	world_open(c, &w);
	full = join(&w, &g[0], JOIN_FULL);
	send = join(&w, &g[1], JOIN_SEND_ONLY_NON);
	cable_run(c, 1);
	CHECK(w.sa.sets == 2 && w.sa.joined == 5 && g[0].calls == 1 && g[1].calls == 1);
	sa_mcast_leave(full);
	cable_run(c, 1);
	CHECK(w.sa.joined == 4);
	return last_leaves(c, &w, send);
}

static bool join_refused(struct cable *c)
{
	struct got g = { 0 };
	struct sa_mcast *m;
	struct world w;

	world_open(c, &w);
	w.sa.status = SA_STATUS_INSUFFICIENT_COMPONENTS;
	m = join(&w, &g, JOIN_FULL);
	cable_run(c, 1);
	CHECK(g.calls == 1 && g.status == -EINVAL && g.sa_status == 0x600);
	sa_mcast_leave(m);
	w.sa.status = 0;
	g.leave = NULL;
	m = join(&w, &g, JOIN_FULL);
	cable_run(c, 1);
	CHECK(g.calls == 2 && g.status == 0 && w.sa.deletes == 0);
	sa_mcast_leave(m);
	return world_close(c, &w, true);
}

static bool leave_at_once(struct cable *c)
{
	struct got g = { 0 };
	struct world w;

	world_open(c, &w);
	sa_mcast_leave(join(&w, &g, JOIN_FULL));
	cable_run(c, 1);
	CHECK(g.calls == 0 && w.sa.sets == 0);
	g.leave = join(&w, &g, JOIN_FULL); /* from its callback */
	cable_run(c, 1);
	CHECK(g.calls == 1 && w.sa.joined == 0 && w.sa.deletes == 1);
	return world_close(c, &w, true);
}

static bool leave_while_joining(struct cable *c)
{
	struct got g = { 0 };
	struct sa_mcast *m;
	struct world w;

	world_open(c, &w);
	w.sa.mute = true;
	m = join(&w, &g, JOIN_FULL);
	cable_run(c, 100);
	CHECK(w.sa.sets == 1);
	sa_mcast_leave(m);
	w.sa.mute = false;
	cable_run(c, 3000);
	CHECK(g.calls == 0 && w.sa.sets == 2 && w.sa.joined == 0);
	return world_close(c, &w, true);
}

static bool suits(struct cable *c)
{
	struct sa_mcmember want = {
		.mgid = wire_gid_make(0xff12401bffff0000, 5), .port_gid = GID_A, .join_state = 1, .qkey = 0x9999
	};
	struct got g[2] = { 0 };
	struct sa_mcast *m[2];
	struct world w;

	world_open(c, &w);
	m[0] = join(&w, &g[0], JOIN_FULL);
	cable_run(c, 1);
	m[1] = sa_mcast_join(w.client, &want, SA_COMP(MCMEMBER_COMP_QKEY), got_mcast, &g[1]);
	cable_run(c, 1);
	CHECK(g[0].status == 0 && g[1].calls == 1 && g[1].status == -EINVAL);
	sa_mcast_leave(m[1]);
	sa_mcast_leave(m[0]);
	return world_close(c, &w, true);
}

static bool sa_picks_the_mgid(struct cable *c)
{
	struct sa_mcmember want = { .port_gid = GID_A, .join_state = 1 };
	struct got g = { 0 };
	struct sa_mcast *m;
	struct world w;

	world_open(c, &w);
	m = sa_mcast_join(w.client, &want, 0, got_mcast, &g);
	cable_run(c, 1);
	CHECK(g.calls == 1 && g.rec.mgid.raw[15] == 9 && w.sa.comp & SA_COMP(MCMEMBER_COMP_MGID));
	sa_mcast_leave(m);
	cable_run(c, 1);
	CHECK(w.sa.deletes == 1 && w.sa.record[15] == 9);
	return world_close(c, &w, true);
}

static bool rejoin(struct cable *c)
{
	struct got g = { 0 };
	struct sa_mcast *m;
	struct world w;

	world_open(c, &w);
	m = join(&w, &g, JOIN_FULL);
	cable_run(c, 1);
	w.sa.joined = 0; /* another SM has taken over, which responds only later */
	w.sa.mute = true;
	sa_client_rejoin(w.client);
	cable_run(c, 20000);
	CHECK(w.sa.joined == 0 && w.sa.sets > 3);
	w.sa.mute = false;
	cable_run(c, 8000);
	CHECK(w.sa.joined == JOIN_FULL && g.calls == 1);
	return last_leaves(c, &w, m);
}

/* The first join waits for a response that the previous SA no longer sends: the present one is asked at once. */
static bool rejoin_during_a_join(struct cable *c)
{
	struct got g = { 0 };
	struct sa_mcast *m;
	struct world w;

	world_open(c, &w);
	w.sa.mute = true;
	m = join(&w, &g, JOIN_FULL);
	cable_run(c, 1);
	CHECK(w.sa.sets == 1 && g.calls == 0);
	w.sa.mute = false;
	sa_client_rejoin(w.client);
	cable_run(c, 1);
	CHECK(w.sa.sets == 2 && g.calls == 1 && g.status == 0 && w.sa.joined == JOIN_FULL);
	return last_leaves(c, &w, m);
}

/* The SA of the next master refuses the members; one of them leaves in its callback. */
static bool rejoin_refused(struct cable *c)
{
	struct got g[2] = { 0 };
	struct sa_mcast *m[2];
	struct world w;

	world_open(c, &w);
	m[0] = join(&w, &g[0], JOIN_FULL);
	m[1] = join(&w, &g[1], JOIN_FULL);
	cable_run(c, 1);
	CHECK(g[0].calls == 1 && g[1].calls == 1 && w.sa.joined == JOIN_FULL);
	w.sa.joined = 0;
	w.sa.status = SA_STATUS_REQ_INVALID;
	g[0].leave = m[0];
	sa_client_rejoin(w.client);
	cable_run(c, 1);
	CHECK(g[0].calls == 2 && g[0].status == -EINVAL && g[0].sa_status == SA_STATUS_REQ_INVALID);
	CHECK(g[1].calls == 2 && g[1].status == -EINVAL && w.sa.joined == 0);
	w.sa.status = 0;
	sa_client_rejoin(w.client); /* not of those that were refused */
	cable_run(c, 1);
	CHECK(g[1].calls == 2 && w.sa.joined == 0);
	g[0].leave = NULL;
	m[0] = join(&w, &g[0], JOIN_FULL);
	cable_run(c, 1);
	CHECK(g[0].calls == 3 && g[0].status == 0 && w.sa.joined == JOIN_FULL);
	sa_mcast_leave(m[0]);
	return last_leaves(c, &w, m[1]);
}

static bool client_goes(struct cable *c)
{
	struct got g = { 0 };
	struct world w;

	world_open(c, &w);
	join(&w, &g, JOIN_FULL);
	cable_run(c, 1);
	CHECK(w.sa.joined == JOIN_FULL);
	sa_client_destroy(w.client);
	w.client = NULL;
	cable_run(c, 1);
	CHECK(w.sa.joined == 0);
	return world_close(c, &w, true);
}

static const struct row rows[] = {
	{ "path", path },
	{ "path refused", path_refused },
	{ "path without a response", path_without_answer },
	{ "cancelled", cancelled },
	{ "one join for all", one_join_for_all },
	{ "join states", join_states },
	{ "join refused", join_refused },
	{ "leave at once", leave_at_once },
	{ "leave while joining", leave_while_joining },
	{ "group suits", suits },
	{ "SA picks the MGID", sa_picks_the_mgid },
	{ "rejoin", rejoin },
	{ "rejoin during a join", rejoin_during_a_join },
	{ "rejoin refused", rejoin_refused },
	{ "client disconnects", client_goes },
};

int main(void)
{
	return rows_run(rows, ARRAY_SIZE(rows));
}
