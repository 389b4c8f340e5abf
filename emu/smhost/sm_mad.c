// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The subnet manager on the management layer of one simulated CA port: connects sm/ and emu/mad. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/smhost/sm_mad.h"
#include "emu/wire/mad.h"
#include "emu/wire/sa.h"
#include "sm/sa/sa.h"

#define KEPT_MAX 4096 /* unsolicited MADs queued for a paused manager */

enum agent {
	AGENT_LID,
	AGENT_DIRECTED,
	AGENT_SA,
	AGENTS
};

/* A delayed MAD, sent or received, or the timeout of a request. */
struct kept {
	struct list link;
	enum {
		KEPT_IN,
		KEPT_OUT,
		KEPT_SENT
	} kind;
	struct mad_addr addr;
	u32 len, timeout_ms, retries;
	int status;
	void *cookie;
	u64 when; /* ns; for late responses */
	u8 data[];
};

struct sm_mad {
	struct loop *loop;
	bool paused;
	struct list kept; /* while paused, in order */
	u32 nkept;
	struct list late; /* delayed responses of the SA, by ->when */
	struct loop_timer timer;
	sm_mad_answer_fn *watch;
	void *watch_arg;
	struct mad_port *mp;
	struct mad_watch port_watch;
	struct mad_agent *agent[AGENTS];
	struct sm *sm;
};

#define METHOD(m) (1ull << (m))

static const struct {
	u8 qpn, mgmt_class, version, rmpp;
	u64 methods;
} agents[AGENTS] = {
	[AGENT_LID] = { MAD_QPN_SMI, MAD_CLASS_SUBN_LID, MAD_CLASS_VERSION_SUBN, 0,
			METHOD(MAD_METHOD_GET) | METHOD(MAD_METHOD_SET) | METHOD(MAD_METHOD_TRAP) |
				METHOD(MAD_METHOD_REPORT) | METHOD(MAD_METHOD_TRAP_REPRESS) },
	[AGENT_DIRECTED] = { MAD_QPN_SMI, MAD_CLASS_SUBN_DIRECTED, MAD_CLASS_VERSION_SUBN, 0,
			     METHOD(MAD_METHOD_GET) | METHOD(MAD_METHOD_SET) },
	[AGENT_SA] = { MAD_QPN_GSI, MAD_CLASS_SUBN_ADM, MAD_CLASS_VERSION_SA, 1,
		       METHOD(MAD_METHOD_GET) | METHOD(MAD_METHOD_SET) | METHOD(SA_METHOD_GET_TABLE) |
			       METHOD(SA_METHOD_GET_TRACE_TABLE) | METHOD(SA_METHOD_GET_MULTI) |
			       METHOD(SA_METHOD_DELETE) },
};

/* ---- requests of the subnet manager ---- */

static enum agent agent_of(u8 mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_LID        ? AGENT_LID
	       : mgmt_class == MAD_CLASS_SUBN_DIRECTED ? AGENT_DIRECTED
						       : AGENT_SA;
}

static struct kept *sm_mad_keep(struct list *list, const u8 *data, u32 len, const struct mad_addr *addr, void *cookie)
{
	struct kept *k = calloc(1, sizeof(*k) + len);

	if (!k)
		return NULL;
	if (addr)
		k->addr = *addr;
	k->len = len;
	k->cookie = cookie;
	if (len)
		memcpy(k->data, data, len);
	list_add(list, &k->link);
	return k;
}

static void forget_all(struct list *list)
{
	while (!list_empty(list)) {
		struct kept *k = list_first(list, struct kept, link);

		list_del(&k->link);
		free(k);
	}
}

static int keep_out(struct sm_mad *m, const u8 *mad, u32 len, const struct mad_addr *addr, u32 timeout_ms, u32 retries,
		    void *cookie)
{
	struct kept *k = sm_mad_keep(&m->kept, mad, len, addr, cookie);

	if (!k)
		return -ENOMEM;
	k->kind = KEPT_OUT;
	k->timeout_ms = timeout_ms;
	k->retries = retries;
	return 0;
}

static int send_late(struct sm_mad *m, const u8 *mad, u32 len, const struct mad_addr *addr, u32 retries, u64 delay)
{
	struct kept *k = sm_mad_keep(&m->late, mad, len, addr, NULL);

	if (!k)
		return -ENOMEM;
	k->retries = retries;
	k->when = loop_now(m->loop).ns + delay;
	if (!loop_timer_armed(&m->timer))
		loop_timer_set(m->loop, &m->timer, k->when);
	return 0;
}

/* Responses keep their order. */
static void on_late(struct loop_timer *t, struct now now)
{
	struct sm_mad *m = container_of(t, struct sm_mad, timer);

	while (!list_empty(&m->late)) {
		struct kept *k = list_first(&m->late, struct kept, link);

		if (k->when > now.ns) {
			loop_timer_set(m->loop, t, k->when);
			return;
		}
		list_del(&k->link);
		(void)mad_send(m->agent[AGENT_SA], k->data, k->len, &k->addr, 0, k->retries, NULL);
		free(k);
	}
}

static int send_busy(struct sm_mad *m, const u8 *mad, const struct mad_addr *addr)
{
	u8 busy[MAD_SIZE] = { 0 };

	memcpy(busy, mad, SA_DATA);
	wire_set(busy, MAD_STATUS, MAD_STATUS_BUSY);
	return mad_send(m->agent[AGENT_SA], busy, MAD_SIZE, addr, 0, 0, NULL);
}

static int send_answer(struct sm_mad *m, const u8 *mad, u32 len, const struct mad_addr *addr, u32 retries)
{
	u64 delay = 0;

	switch (m->watch(m->watch_arg, mad, &delay)) {
	case SM_MAD_LOST:
		return 0;
	case SM_MAD_BUSY:
		return send_busy(m, mad, addr);
	case SM_MAD_LATE:
		return send_late(m, mad, len, addr, retries, delay);
	default:
		return mad_send(m->agent[AGENT_SA], mad, len, addr, 0, retries, NULL);
	}
}

static int sm_mad_send(void *transport, const u8 *mad, u32 len, const struct mad_addr *to, u32 timeout_ms, u32 retries,
		       void *cookie)
{
	enum agent agent = agent_of(wire_mad_get_class(mad));
	struct sm_mad *m = transport;

	if (m->paused)
		return keep_out(m, mad, len, to, timeout_ms, retries, cookie);
	if (m->watch && agent == AGENT_SA && wire_mad_is_response(wire_mad_get_method(mad)))
		return send_answer(m, mad, len, to, retries);
	return mad_send(m->agent[agent], mad, len, to, timeout_ms, retries, cookie);
}

static void set_is_sm(void *transport, bool on)
{
	struct sm_mad *m = transport;
	struct wire_port *w = mad_port_wire(m->mp);

	w->ops->set_cap(w, on ? WIRE_PORT_CAP_IS_SM : 0, on ? 0 : WIRE_PORT_CAP_IS_SM);
}

static u64 port_guid(void *transport)
{
	struct sm_mad *m = transport;

	return mad_port_wire(m->mp)->port_guid;
}

static const struct sm_transport_ops ops = { .send = sm_mad_send, .set_is_sm = set_is_sm, .port_guid = port_guid };

/* ---- received MADs ---- */

static void sm_mad_receive(void *ctx, const u8 *data, u32 len, const struct mad_addr *addr, void *cookie)
{
	struct sm_mad *m = ctx;

	if (!m->paused)
		sm_receive(m->sm, data, len, addr, cookie);
	else if (cookie || m->nkept++ < KEPT_MAX)
		sm_mad_keep(&m->kept, data, len, addr, cookie);
}

static void sm_mad_sent(void *ctx, const u8 *data, u32 len, int status, void *cookie)
{
	struct sm_mad *m = ctx;
	struct kept *k;

	if (!status)
		return;
	if (!m->paused) {
		sm_sent(m->sm, status, cookie);
		return;
	}
	k = sm_mad_keep(&m->kept, NULL, 0, NULL, cookie);
	if (!k)
		return;
	k->kind = KEPT_SENT;
	k->status = status;
}

static void sm_mad_resume(struct sm_mad *m, const struct kept *k)
{
	int err;

	if (k->kind == KEPT_IN) {
		sm_receive(m->sm, k->data, k->len, &k->addr, k->cookie);
	} else if (k->kind == KEPT_SENT) {
		sm_sent(m->sm, k->status, k->cookie);
	} else {
		err = mad_send(m->agent[agent_of(wire_mad_get_class(k->data))], k->data, k->len, &k->addr,
			       k->timeout_ms, k->retries, k->cookie);
		if (err)
			sm_sent(m->sm, err, k->cookie);
	}
}

void sm_mad_pause(struct sm_mad *m, bool paused)
{
	struct list all;

	m->paused = paused;
	if (paused)
		return;
	m->nkept = 0;
	list_init(&all);
	list_splice(&all, &m->kept);
	while (!list_empty(&all)) {
		struct kept *k = list_first(&all, struct kept, link);

		list_del(&k->link);
		sm_mad_resume(m, k);
		free(k);
	}
}

void sm_mad_watch(struct sm_mad *m, sm_mad_answer_fn *fn, void *arg)
{
	m->watch = fn;
	m->watch_arg = arg;
}

static void on_port_event(struct mad_watch *w, enum wire_port_event event)
{
	if (event == WIRE_PORT_INIT)
		sm_link_trained(container_of(w, struct sm_mad, port_watch)->sm);
}

/* ---- creation and destruction ---- */

struct sm_mad *sm_mad_create(struct loop *loop, struct mad_port *mp, const struct sm_config *config, char *err,
			     size_t err_len)
{
	struct sm_config cfg = *config;
	struct sm_mad *m = calloc(1, sizeof(*m));

	cfg.sa = &sm_sa;
	if (!m) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	m->loop = loop;
	m->mp = mp;
	m->timer.fn = on_late;
	m->port_watch.fn = on_port_event;
	list_init(&m->port_watch.link);
	list_init(&m->kept);
	list_init(&m->late);
	m->sm = sm_create(loop, &ops, m, &cfg, err, err_len);
	if (m->sm)
		return m;
	free(m);
	return NULL;
}

static void sm_mad_unregister(struct sm_mad *m)
{
	int i;

	for (i = 0; i < AGENTS; i++) {
		if (m->agent[i])
			mad_agent_unregister(m->agent[i]);
		m->agent[i] = NULL;
	}
}

int sm_mad_start(struct sm_mad *m)
{
	int i, err;

	for (i = 0; i < AGENTS; i++) {
		struct mad_agent_reg reg = {
			.qpn = agents[i].qpn,
			.mgmt_class = agents[i].mgmt_class,
			.class_version = agents[i].version,
			.rmpp_version = agents[i].rmpp,
			.methods = { agents[i].methods },
			.ctx = m,
			.recv = sm_mad_receive,
			.sent = sm_mad_sent,
		};

		err = mad_agent_register(m->mp, &reg, &m->agent[i]);
		if (err) {
			sm_mad_unregister(m);
			return err;
		}
	}
	mad_port_watch(m->mp, &m->port_watch);
	sm_start(m->sm);
	return 0;
}

void sm_mad_destroy(struct sm_mad *m)
{
	if (!m)
		return;
	loop_timer_cancel(&m->timer);
	mad_port_unwatch(&m->port_watch);
	m->paused = false;
	m->watch = NULL;
	sm_destroy(m->sm);
	sm_mad_unregister(m);
	forget_all(&m->kept);
	forget_all(&m->late);
	free(m);
}

struct sm *sm_mad_manager(const struct sm_mad *m)
{
	return m->sm;
}

struct mad_port *sm_mad_port(const struct sm_mad *m)
{
	return m->mp;
}
