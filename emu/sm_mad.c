// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The subnet manager on the management layer of one simulated CA port: the only file that sees both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/sm_mad.h"
#include "emu/wire/mad.h"
#include "emu/wire/sa.h"

enum agent {
	AGENT_LID,
	AGENT_DIRECTED,
	AGENT_SA,
	AGENTS
};

struct sm_mad {
	struct mad_port *mp;
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

static struct mad_addr to_mad(const struct sm_addr *a)
{
	return (struct mad_addr){
		.qpn = a->qpn,
		.qkey = a->qkey,
		.lid = a->lid,
		.pkey_index = a->pkey_index,
		.sl = a->sl,
		.path_bits = a->path_bits,
		.grh = a->grh,
		.hop_limit = a->hop_limit,
		.traffic_class = a->traffic_class,
		.gid_index = a->gid_index,
		.flow_label = a->flow_label,
		.gid = a->gid,
	};
}

static struct sm_addr to_sm(const struct mad_addr *a)
{
	return (struct sm_addr){
		.qpn = a->qpn,
		.qkey = a->qkey,
		.lid = a->lid,
		.pkey_index = a->pkey_index,
		.sl = a->sl,
		.path_bits = a->path_bits,
		.grh = a->grh,
		.hop_limit = a->hop_limit,
		.traffic_class = a->traffic_class,
		.gid_index = a->gid_index,
		.flow_label = a->flow_label,
		.gid = a->gid,
	};
}

/* ---- what the manager asks ---- */

static enum agent agent_of(u8 mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_LID        ? AGENT_LID
	       : mgmt_class == MAD_CLASS_SUBN_DIRECTED ? AGENT_DIRECTED
						       : AGENT_SA;
}

static int send(void *transport, const u8 *mad, u32 len, const struct sm_addr *to, u32 timeout_ms, u32 retries,
		void *cookie)
{
	struct sm_mad *m = transport;
	struct mad_addr addr = to_mad(to);

	return mad_send(m->agent[agent_of(mad[1])], mad, len, &addr, timeout_ms, retries, cookie);
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

static const struct sm_transport_ops ops = { .send = send, .set_is_sm = set_is_sm, .port_guid = port_guid };

/* ---- what arrives ---- */

static void receive(void *ctx, const u8 *data, u32 len, const struct mad_addr *addr, void *cookie)
{
	struct sm_mad *m = ctx;
	struct sm_addr from = to_sm(addr);

	sm_receive(m->sm, data, len, &from, cookie);
}

static void sent(void *ctx, const u8 *data, u32 len, int status, void *cookie)
{
	struct sm_mad *m = ctx;

	if (status)
		sm_sent(m->sm, status, cookie);
}

/* ---- life ---- */

struct sm_mad *sm_mad_create(struct loop *loop, struct mad_port *mp, const struct sm_config *config, char *err,
			     size_t err_len)
{
	struct sm_mad *m = calloc(1, sizeof(*m));

	if (!m) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	m->mp = mp;
	m->sm = sm_create(loop, &ops, m, config, err, err_len);
	if (m->sm)
		return m;
	free(m);
	return NULL;
}

static void unregister(struct sm_mad *m)
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
			.recv = receive,
			.sent = sent,
		};

		err = mad_agent_register(m->mp, &reg, &m->agent[i]);
		if (err) {
			unregister(m);
			return err;
		}
	}
	sm_start(m->sm);
	return 0;
}

void sm_mad_destroy(struct sm_mad *m)
{
	if (!m)
		return;
	sm_destroy(m->sm);
	unregister(m);
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
