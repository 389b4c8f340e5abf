// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sending of CM messages, with retransmission up to Max CM Retries. IBTA 12.9.8. */
#include "emu/cm/cm_internal.h"

int cm_send(struct cm_id *id, const u8 *mad)
{
	cm_count(id->cm, SENT);
	return mad_send(id->port->agent, mad, MAD_SIZE, &id->peer, 0, 0, NULL);
}

void cm_reply_once(struct cm_port *p, const struct mad_addr *to, const u8 *mad)
{
	cm_count(p->cm, SENT);
	(void)mad_send(p->agent, mad, MAD_SIZE, to, 0, 0, NULL);
}

/* The peer's response timeout plus the round trip. */
u64 cm_response_ns(const struct cm_id *id)
{
	return wire_timeout_ns(id->response_timeout) + 2 * wire_timeout_ns(min(id->qp.path.packet_life, (u8)20));
}

/* A port that is down sends nothing: the retries continue. */
int cm_send_wait(struct cm_id *id, u64 wait_ns)
{
	id->tries = 0;
	(void)cm_send(id, id->mad);
	cm_wait_longer(id, wait_ns);
	return 0;
}

void cm_answered(struct cm_id *id)
{
	loop_timer_cancel(&id->timer);
}

void cm_wait_longer(struct cm_id *id, u64 ns)
{
	loop_timer_set(id->cm->loop, &id->timer, loop_now(id->cm->loop).ns + ns);
}

static const struct {
	u16 attr;
	enum cm_event_type error;
} waits[] = {
	{ CM_ATTR_REQ, CM_EVENT_REQ_ERROR },       { CM_ATTR_REP, CM_EVENT_REP_ERROR },
	{ CM_ATTR_DREQ, CM_EVENT_DREQ_ERROR },     { CM_ATTR_LAP, CM_EVENT_LAP_ERROR },
	{ CM_ATTR_SIDR_REQ, CM_EVENT_SIDR_ERROR },
};

static void send_tries_exhausted(struct cm_id *id)
{
	u16 attr = wire_get(id->mad, MAD_ATTR_ID);
	size_t i = 0;

	cm_count(id->cm, TIMEOUTS);
	if (attr == CM_ATTR_REQ || attr == CM_ATTR_REP)
		(void)cm_send_rej(id, CM_REJ_TIMEOUT, NULL, 0);
	else if (attr == CM_ATTR_DREQ)
		cm_id_timewait(id);
	else if (attr == CM_ATTR_LAP)
		id->lap = CM_LAP_IDLE; /* the connection is unaffected */
	else
		cm_id_enter(id, CM_ST_IDLE);
	while (i + 1 < ARRAY_SIZE(waits) && waits[i].attr != attr)
		i++;
	if (id->fn)
		cm_id_notify(id, &(struct cm_event){ .type = waits[i].error });
	else if (id->state == CM_ST_IDLE)
		cm_id_free(id);
}

void cm_timed_out(struct cm_id *id)
{
	if (id->tries++ >= id->max_retries) {
		send_tries_exhausted(id);
		return;
	}
	cm_count(id->cm, RETRIES);
	(void)cm_send(id, id->mad);
	cm_wait_longer(id, cm_response_ns(id));
}
