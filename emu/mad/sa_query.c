// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The SA client: single requests, and path queries (PathRecord, IBTA 15.2.5.16). */
#include <errno.h>
#include <stdlib.h>

#include "emu/mad/sa_internal.h"

/* ---- requests ---- */

static struct mad_addr sa_addr(const struct sa_client *c)
{
	const struct wire_port *port = mad_port_wire(c->mp);

	return (struct mad_addr){
		.qpn = MAD_QPN_GSI,
		.qkey = MAD_QKEY_WELL_KNOWN,
		.lid = port->attr.sm_lid,
		.sl = port->attr.sm_sl,
		.pkey_index = wire_port_pkey_index(port, WIRE_PKEY_DEFAULT_FULL),
	};
}

static void query_free(struct sa_query *q)
{
	loop_task_cancel(&q->refused);
	list_del(&q->link);
	free(q);
}

static void query_end(struct sa_query *q, int status, u16 sa_status, const u8 *mad)
{
	loop_task_cancel(&q->refused);
	list_del(&q->link);
	q->done(q, status, sa_status, mad); /* may destroy the client */
	free(q);
}

static void sa_query_refused(struct loop_task *t, struct now now)
{
	struct sa_query *q = container_of(t, struct sa_query, refused);

	query_end(q, q->err, 0, NULL);
}

struct sa_query *sa_query_create(struct sa_client *c, u8 method, u16 attr, u64 comp)
{
	struct sa_query *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->client = c;
	loop_task_init(&q->refused, sa_query_refused);
	list_add(&c->queries, &q->link);
	wire_set(q->mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(q->mad, MAD_CLASS, MAD_CLASS_SUBN_ADM);
	wire_set(q->mad, MAD_CLASS_VERSION, MAD_CLASS_VERSION_SA);
	wire_set(q->mad, MAD_METHOD, method);
	wire_set(q->mad, MAD_TID, ++c->next_tid);
	wire_set(q->mad, MAD_ATTR_ID, attr);
	wire_set(q->mad, SA_COMP_MASK, comp);
	return q;
}

void sa_query_send(struct sa_query *q, u32 timeout_ms)
{
	struct sa_client *c = q->client;
	struct mad_addr to = sa_addr(c);
	u32 ms = timeout_ms ? max(timeout_ms / (SA_QUERY_RETRIES + 1), 1u) : SA_QUERY_MS;

	q->err = -ENETUNREACH;
	if (to.lid)
		q->err = mad_send(c->agent, q->mad, MAD_SIZE, &to, ms, SA_QUERY_RETRIES, q);
	if (q->err)
		loop_task_queue(c->loop, &q->refused);
}

void sa_query_post(struct sa_query *q)
{
	struct mad_addr to = sa_addr(q->client);

	if (to.lid)
		(void)mad_send(q->client->agent, q->mad, MAD_SIZE, &to, 0, 0, NULL);
	query_free(q);
}

void sa_query_cancel(struct sa_query *q)
{
	mad_cancel(q->client->agent, q);
	query_free(q);
}

static void agent_recv(void *ctx, const u8 *data, u32 len, const struct mad_addr *addr, void *cookie)
{
	u16 sa_status = wire_get(data, MAD_STATUS);
	int status = sa_status == SA_STATUS_OK ? 0 : sa_status == SA_STATUS_NO_RECORDS ? -ENOENT : -EINVAL;

	if (cookie)
		query_end(cookie, status, sa_status, data);
}

static void agent_sent(void *ctx, const u8 *data, u32 len, int status, void *cookie)
{
	if (cookie)
		query_end(cookie, status, 0, NULL);
}

/* ---- client ---- */

struct sa_client *sa_client_create(struct loop *loop, struct mad_port *mp)
{
	struct sa_client *c = calloc(1, sizeof(*c));
	struct mad_agent_reg reg = { .qpn = MAD_QPN_GSI, .ctx = c, .recv = agent_recv, .sent = agent_sent };

	if (!c)
		return NULL;
	c->loop = loop;
	c->mp = mp;
	list_init(&c->queries);
	list_init(&c->groups);
	if (mad_agent_register(mp, &reg, &c->agent) < 0) {
		free(c);
		return NULL;
	}
	return c;
}

void sa_client_destroy(struct sa_client *c)
{
	if (!c)
		return;
	sa_groups_destroy(c);
	while (!list_empty(&c->queries))
		query_free(list_first(&c->queries, struct sa_query, link));
	mad_agent_unregister(c->agent);
	free(c);
}

/* ---- paths ---- */

void sa_path_get_record(const u8 *a, struct sa_path *p)
{
	memset(p, 0, sizeof(*p));
	p->dgid = wire_gid_from_bytes(wire_cbytes(a, PATHREC_DGID));
	p->sgid = wire_gid_from_bytes(wire_cbytes(a, PATHREC_SGID));
	p->dlid = wire_get(a, PATHREC_DLID);
	p->slid = wire_get(a, PATHREC_SLID);
	p->reversible = wire_get(a, PATHREC_REVERSIBLE);
	p->flow_label = wire_get(a, PATHREC_FLOW_LABEL);
	p->hop_limit = wire_get(a, PATHREC_HOP_LIMIT);
	p->traffic_class = wire_get(a, PATHREC_TCLASS);
	p->pkey = wire_get(a, PATHREC_PKEY);
	p->sl = wire_get(a, PATHREC_SL);
	p->mtu = wire_get(a, PATHREC_MTU);
	p->rate = wire_get(a, PATHREC_RATE);
	p->packet_life = wire_get(a, PATHREC_LIFE);
}

void sa_path_put_record(const struct sa_path *p, u8 *a)
{
	memset(a, 0, PATHREC_SIZE);
	wire_copy_in(a, PATHREC_DGID, p->dgid.raw);
	wire_copy_in(a, PATHREC_SGID, p->sgid.raw);
	wire_set(a, PATHREC_DLID, p->dlid);
	wire_set(a, PATHREC_SLID, p->slid);
	wire_set(a, PATHREC_FLOW_LABEL, p->flow_label);
	wire_set(a, PATHREC_HOP_LIMIT, p->hop_limit);
	wire_set(a, PATHREC_TCLASS, p->traffic_class);
	wire_set(a, PATHREC_REVERSIBLE, p->reversible);
	wire_set(a, PATHREC_NUM_PATH, 1);
	wire_set(a, PATHREC_PKEY, p->pkey);
	wire_set(a, PATHREC_SL, p->sl);
	wire_sa_path_limits(a, p->mtu, p->rate, p->packet_life);
}

static void path_done(struct sa_query *q, int status, u16 sa_status, const u8 *mad)
{
	struct sa_path path;

	if (status == 0)
		sa_path_get_record(mad + SA_DATA, &path);
	q->path_cb(q->ctx, status, sa_status, status ? NULL : &path);
}

struct sa_query *sa_path_get_service(struct sa_client *c, const struct wire_gid *sgid, const struct wire_gid *dgid,
				     u16 pkey, u64 service_id, int traffic_class, u32 timeout_ms, sa_path_fn *cb,
				     void *ctx)
{
	u64 comp = SA_COMP(PATHREC_COMP_DGID) | SA_COMP(PATHREC_COMP_SGID) | SA_COMP(PATHREC_COMP_REVERSIBLE) |
		   SA_COMP(PATHREC_COMP_NUM_PATH);
	struct sa_query *q;
	u8 *a;

	comp |= pkey ? SA_COMP(PATHREC_COMP_PKEY) : 0;
	comp |= service_id ? SA_COMP(PATHREC_COMP_SERVICE_ID_MSB) | SA_COMP(PATHREC_COMP_SERVICE_ID_LSB) : 0;
	comp |= traffic_class >= 0 ? SA_COMP(PATHREC_COMP_TCLASS) : 0;
	q = sa_query_create(c, MAD_METHOD_GET, SA_ATTR_PATH_RECORD, comp);
	if (!q)
		return NULL;
	a = q->mad + SA_DATA;
	wire_copy_in(a, PATHREC_DGID, dgid->raw);
	wire_copy_in(a, PATHREC_SGID, sgid->raw);
	wire_set(a, PATHREC_REVERSIBLE, 1);
	wire_set(a, PATHREC_NUM_PATH, 1);
	wire_set(a, PATHREC_PKEY, pkey);
	wire_set(a, PATHREC_SERVICE_ID, service_id);
	wire_set(a, PATHREC_TCLASS, traffic_class >= 0 ? traffic_class : 0);
	q->done = path_done;
	q->path_cb = cb;
	q->ctx = ctx;
	sa_query_send(q, timeout_ms);
	return q;
}
