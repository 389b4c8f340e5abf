// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Alternate path loading: LAP and APR. IBTA 12.8, 12.9. The active side proposes a path, the passive side accepts or
 * rejects it; both load it into their queue pairs (17.2.8).
 */
#include <errno.h>

#include "emu/cm/cm_internal.h"

int cm_send_lap(struct cm_id *id, const struct cm_alternate *alt)
{
	if (id->state != CM_ST_ESTABLISHED || id->passive || id->lap == CM_LAP_SENT)
		return -EINVAL;
	id->alternate = *alt;
	id->alternate.ack_timeout = cm_ack_timeout(id->cm->ack_delay, alt->path.packet_life);
	id->tid = (u64)mad_agent_tid_high(id->port->agent) << 32 | id->local_id;
	cm_mad_init(id->mad, CM_ATTR_LAP, id->tid);
	cm_mad_ids(id->mad, id);
	wire_set(id->mad, CM_LAP_REMOTE_QPN, id->qp.remote_qpn);
	wire_set(id->mad, CM_LAP_REMOTE_RESP_TIMEOUT, id->response_timeout);
	cm_path_put(id->mad, &cm_lap_path, &alt->path, id->alternate.ack_timeout);
	id->lap = CM_LAP_SENT;
	return cm_send_wait(id, cm_response_ns(id));
}

/* Messages take the new path, too. */
int cm_migrated(struct cm_id *id)
{
	const struct cm_alternate *alt = &id->alternate;
	struct cm_port *p;

	if (id->state != CM_ST_ESTABLISHED || id->lap == CM_LAP_SENT || id->lap == CM_LAP_RCVD)
		return -EINVAL;
	for (p = id->cm->port; id->alternate_loaded && p < id->cm->port + id->cm->nports; p++) {
		if (p->num != alt->port)
			continue;
		id->port = p;
		id->peer = cm_path_addr(p, &alt->path);
	}
	return 0;
}

static void send_apr(struct cm_id *id, u64 tid)
{
	u8 mad[MAD_SIZE];

	cm_mad_init(mad, CM_ATTR_APR, tid);
	cm_mad_ids(mad, id);
	wire_set(mad, CM_APR_STATUS, id->apr_status);
	(void)cm_send(id, mad);
}

int cm_send_apr(struct cm_id *id, u8 status)
{
	if (id->state != CM_ST_ESTABLISHED || id->lap != CM_LAP_RCVD)
		return -EINVAL;
	id->lap = CM_LAP_ANSWERED;
	id->apr_status = status;
	id->alternate_loaded = status == CM_APR_OK;
	send_apr(id, id->lap_tid);
	return 0;
}

/* Checks that do not need the QP; returns the APR status. */
static u8 lap_check(struct cm_id *id, const u8 *mad)
{
	const struct cm_port *p;

	if (id->passive == false)
		return CM_APR_REJECT; /* only the active side sends LAP */
	if (wire_get(mad, CM_LAP_REMOTE_QPN) != id->local_qpn)
		return CM_APR_INVALID_QPN;
	id->alternate.path = id->qp.path; /* defaults of fields not in LAP */
	cm_path_get(mad, &cm_lap_path, &id->alternate.path);
	id->alternate.ack_timeout = wire_get(mad, CM_LAP_ALT_ACK_TIMEOUT);
	p = cm_path_port(id->cm, &id->alternate.path);
	if (!p)
		return CM_APR_INVALID_GID;
	if (!cm_path_lid_is_own(p, &id->alternate.path))
		return CM_APR_INVALID_LID;
	id->alternate.port = p->num;
	if (p->num == id->qp.port && id->alternate.path.slid == id->qp.path.slid &&
	    id->alternate.path.dlid == id->qp.path.dlid)
		return CM_APR_IS_CURRENT;
	return CM_APR_OK;
}

struct cm_event cm_on_lap(struct cm_id *id, const u8 *mad)
{
	u64 tid = wire_get(mad, MAD_TID);

	if (id->lap_tid == tid && id->lap != CM_LAP_IDLE) { /* the APR was lost, or is not sent yet */
		cm_count(id->cm, DUPLICATES);
		if (id->lap == CM_LAP_ANSWERED)
			send_apr(id, tid);
		return (struct cm_event){ .type = CM_EVENTS };
	}
	id->lap_tid = tid;
	id->apr_status = lap_check(id, mad);
	id->lap = CM_LAP_RCVD;
	if (id->apr_status == CM_APR_OK && id->fn)
		return (struct cm_event){ .type = CM_EVENT_LAP, .alternate = &id->alternate };
	(void)cm_send_apr(id, id->apr_status == CM_APR_OK ? CM_APR_UNSUPPORTED : id->apr_status);
	return (struct cm_event){ .type = CM_EVENTS };
}

struct cm_event cm_on_apr(struct cm_id *id, const u8 *mad)
{
	if (id->lap != CM_LAP_SENT || wire_get(mad, MAD_TID) != id->tid) {
		cm_count(id->cm, UNEXPECTED);
		return (struct cm_event){ .type = CM_EVENTS };
	}
	cm_answered(id);
	id->lap = CM_LAP_IDLE;
	id->alternate_loaded = wire_get(mad, CM_APR_STATUS) == CM_APR_OK;
	return (struct cm_event){ .type = CM_EVENT_APR,
				  .alternate = &id->alternate,
				  .reason = wire_get(mad, CM_APR_STATUS) };
}
