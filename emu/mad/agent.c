// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MAD agents: registration and dispatch of MADs, by the rules of the kernel's ib_mad. */
#include <errno.h>
#include <stdlib.h>

#include "emu/mad/mad_internal.h"

#define CLASS_MAX   80 /* management classes from this number on do not exist, except the directed-route one */
#define VERSION_MAX 0x83
#define AGENTS_MAX  4096 /* per port */

/* ---- registration ---- */

static bool reg_is_valid(const struct mad_agent_reg *reg)
{
	bool oui = reg->oui[0] || reg->oui[1] || reg->oui[2];

	if (reg->qpn > MAD_QPN_GSI || reg->rmpp_version > RMPP_VERSION_1)
		return false;
	if (!reg->mgmt_class)
		return true; /* send-only */
	if (!reg->recv || reg->class_version >= VERSION_MAX)
		return false;
	if (reg->mgmt_class >= CLASS_MAX && reg->mgmt_class != MAD_CLASS_SUBN_DIRECTED)
		return false;
	if (wire_mad_is_vendor2_class(reg->mgmt_class) && !oui)
		return false;
	if (reg->rmpp_version && !rmpp_class(reg->mgmt_class))
		return false;
	return wire_mad_is_smp_class(reg->mgmt_class) == (reg->qpn == MAD_QPN_SMI);
}

static bool same_class(const struct mad_agent_reg *a, const struct mad_agent_reg *b)
{
	return a->qpn == b->qpn && a->mgmt_class == b->mgmt_class && a->class_version == b->class_version &&
	       (!wire_mad_is_vendor2_class(a->mgmt_class) || memcmp(a->oui, b->oui, 3) == 0);
}

static bool methods_are_free(const struct mad_port *mp, const struct mad_agent_reg *reg)
{
	const struct mad_agent *a;

	list_for_each (a, &mp->agents, link)
		if (a->reg.mgmt_class && same_class(&a->reg, reg) &&
		    ((a->reg.methods[0] & reg->methods[0]) | (a->reg.methods[1] & reg->methods[1])))
			return false;
	return true;
}

static struct mad_agent *by_tid_high(const struct mad_port *mp, u32 tid_high)
{
	struct mad_agent *a;

	list_for_each (a, &mp->agents, link)
		if (a->tid_high == tid_high)
			return a;
	return NULL;
}

int mad_agent_register(struct mad_port *mp, const struct mad_agent_reg *reg, struct mad_agent **agent)
{
	struct mad_agent *a;
	u32 n = 0;

	if (!reg_is_valid(reg))
		return -EINVAL;
	if (reg->mgmt_class && !methods_are_free(mp, reg))
		return -EBUSY;
	list_for_each (a, &mp->agents, link)
		n++;
	a = n < AGENTS_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return -ENOMEM;
	a->mp = mp;
	a->reg = *reg;
	if (reg->user_rmpp)
		a->reg.rmpp_version = 0;
	list_init(&a->reqs);
	list_init(&a->rmpp_recvs);
	do
		a->tid_high = ++mp->last_tid_high;
	while (!a->tid_high || by_tid_high(mp, a->tid_high));
	list_add(&mp->agents, &a->link);
	*agent = a;
	return 0;
}

void mad_agent_unregister(struct mad_agent *a)
{
	if (!a)
		return;
	while (!list_empty(&a->reqs))
		mad_req_free(list_first(&a->reqs, struct mad_req, link));
	rmpp_agent_fini(a);
	list_del(&a->link);
	free(a);
}

u32 mad_agent_tid_high(const struct mad_agent *agent)
{
	return agent->tid_high;
}

/* ---- dispatch ---- */

static bool agent_takes(const struct mad_agent *a, u8 qpn, const u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD) & 0x7f;

	return a->reg.qpn == qpn && a->reg.mgmt_class == wire_mad_get_class(mad) &&
	       a->reg.class_version == wire_get(mad, MAD_CLASS_VERSION) &&
	       (a->reg.methods[method / 64] & BIT_ULL(method % 64)) &&
	       (!wire_mad_is_vendor2_class(wire_mad_get_class(mad)) ||
		memcmp(a->reg.oui, wire_cbytes(mad, MAD_VENDOR2_OUI), 3) == 0);
}

/* Finds a response's agent by TID, that of any other MAD by class, version and method. */
static struct mad_agent *find_agent(struct mad_port *mp, u8 qpn, const u8 *mad)
{
	struct mad_agent *a;

	if (wire_mad_is_response(wire_mad_get_method(mad))) {
		a = by_tid_high(mp, wire_get(mad, MAD_TID) >> 32);
		return a && a->reg.qpn == qpn && a->reg.recv ? a : NULL;
	}
	list_for_each (a, &mp->agents, link)
		if (agent_takes(a, qpn, mad))
			return a;
	return NULL;
}

/* RMPP ACK, STOP or ABORT packets (13.6.2) are no requests: their sender would respond to the response, endlessly. */
bool mad_answer_unsupported(u8 *mad)
{
	u16 status = MAD_STATUS_BAD_METHOD_ATTR;

	if (wire_mad_get_method(mad) != MAD_METHOD_GET && wire_mad_get_method(mad) != MAD_METHOD_SET)
		return false;
	if (rmpp_active(mad) && wire_get(mad, RMPP_TYPE) != RMPP_TYPE_DATA)
		return false;
	wire_set(mad, MAD_METHOD, MAD_METHOD_GET_RESP);
	if (wire_mad_get_class(mad) == MAD_CLASS_SUBN_DIRECTED)
		status |= 0x8000; /* the D bit: the response returns along the route, 14.2.2.1 */
	wire_set(mad, MAD_STATUS, status);
	return true;
}

static void answer_unsupported(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *from)
{
	u8 resp[MAD_SIZE];

	memcpy(resp, mad, MAD_SIZE);
	if (!mad_answer_unsupported(resp))
		return;
	if (mad_port_xmit(mp, qpn, resp, from) == 0)
		mp->counter[MAD_CTR_UNSUPPORTED]++;
}

static void agent_deliver(struct mad_agent *a, const u8 *data, u32 len, const struct mad_addr *from)
{
	void *cookie = NULL;
	struct mad_req *r;

	if (wire_mad_is_response(wire_mad_get_method(data))) {
		r = mad_req_find(a, data, from);
		if (r) {
			cookie = r->cookie;
			mad_req_free(r);
		} else if (a->reg.rmpp_version || !rmpp_active(data)) {
			/* Only an agent that implements RMPP itself gets the remaining segments of a response. */
			a->mp->counter[MAD_CTR_UNMATCHED]++;
			return;
		}
	}
	a->reg.recv(a->reg.ctx, data, len, from, cookie); /* may unregister the agent */
}

void mad_agent_receive(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *from)
{
	struct mad_agent *a = find_agent(mp, qpn, mad);
	struct rmpp_msg msg;

	/* A raw user of the port takes all CM MADs: two CMs cannot share a port's requests. */
	if (mp->raw[qpn].recv && (!a || wire_get(mad, MAD_CLASS) == MAD_CLASS_CM)) {
		mp->raw[qpn].recv(mp->raw[qpn].ctx, mad, from);
		return;
	}
	if (!a) {
		mp->counter[MAD_CTR_NO_AGENT]++;
		answer_unsupported(mp, qpn, mad, from);
		return;
	}
	if (!a->reg.rmpp_version || !rmpp_active(mad)) {
		agent_deliver(a, mad, MAD_SIZE, from);
		return;
	}
	if (rmpp_receive(a, mad, from, &msg)) {
		agent_deliver(a, msg.data, msg.len, from);
		free(msg.data);
	}
}
