// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Asynchronous events (IBTA 11.6.3): affiliated events to the owner of the object, port events to every context. */
#include "emu/hca/hca_internal.h"

static const enum hca_event_type port_events[] = {
	[WIRE_PORT_ACTIVE] = HCA_EVENT_PORT_ACTIVE,    [WIRE_PORT_ERR] = HCA_EVENT_PORT_ERR,
	[WIRE_PORT_LID_CHANGE] = HCA_EVENT_LID_CHANGE, [WIRE_PORT_PKEY_CHANGE] = HCA_EVENT_PKEY_CHANGE,
	[WIRE_PORT_SM_CHANGE] = HCA_EVENT_SM_CHANGE,   [WIRE_PORT_CLIENT_REREGISTER] = HCA_EVENT_CLIENT_REREGISTER,
	[WIRE_PORT_GID_CHANGE] = HCA_EVENT_GID_CHANGE,
};

void hca_ctx_event(struct hca_ctx *ctx, enum hca_event_type type, u32 number, void *fe)
{
	struct hca_event ev = { .type = type, .number = number, .fe = fe };

	if (!ctx->dying && ctx->event)
		ctx->event(ctx->fe, &ev);
}

void hca_port_event(void *port_slot, enum wire_port_event event)
{
	struct hca_port_slot *ps = port_slot;
	struct hca_ctx *ctx, *tmp;

	if ((u32)event >= ARRAY_SIZE(port_events))
		return;
	list_for_each_safe (ctx, tmp, &ps->hca->ctxs, link)
		hca_ctx_event(ctx, port_events[event], ps->wire->num, NULL);
}

void hca_qp_event(struct hca_qp *qp, enum hca_event_type type)
{
	hca_ctx_event(qp->ctx, type, qp->qpn, qp->fe);
}
