// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests of the owner of an ID: allowed states, message to send, next state. IBTA 12.9.7. */
#include <errno.h>

#include "emu/cm/cm_internal.h"

#define S(name) (1u << CM_ST_##name)

static bool connect_in(const struct cm_id *id, u32 states)
{
	return states & 1u << id->state;
}

int cm_id_begin(struct cm_id *id, u8 port, const struct sa_path *path, u64 service_id, u8 response_timeout,
		u8 max_retries)
{
	struct cm_port *p = id->cm->port, *end = p + id->cm->nports;

	while (p < end && p->num != port)
		p++;
	if (p == end)
		return -ENODEV;
	id->port = p;
	id->tid = (u64)mad_agent_tid_high(p->agent) << 32 | id->local_id;
	id->peer = cm_path_addr(p, path);
	id->service_id = service_id;
	id->response_timeout = response_timeout;
	id->max_retries = max_retries;
	return 0;
}

int cm_send_req(struct cm_id *id, const struct cm_req *req)
{
	int err;

	if (!connect_in(id, S(IDLE)) || req->data_len > CM_REQ_PRIVATE_DATA_LEN || !wire_mtu_bytes(req->path.mtu))
		return -EINVAL;
	err = cm_id_begin(id, req->port, &req->path, req->service_id, req->response_timeout, req->max_retries);
	if (err)
		return err;
	id->local_qpn = req->qpn;
	id->qp = (struct cm_qp){
		.path = req->path,
		.port = req->port,
		.local_ack_timeout = cm_ack_timeout(id->cm->ack_delay, req->path.packet_life),
		.retry_count = req->retry_count,
		.rnr_retry = req->rnr_retry_count,
		.rq_psn = req->psn,
		.responder_resources = req->responder_resources,
		.initiator_depth = req->initiator_depth,
		.transport = req->transport,
	};
	cm_mad_req(id->mad, id, req);
	cm_id_enter(id, CM_ST_REQ_SENT);
	return cm_send_wait(id, cm_response_ns(id));
}

int cm_send_rep(struct cm_id *id, const struct cm_rep *rep)
{
	if (!connect_in(id, S(REQ_RCVD) | S(MRA_REQ_SENT)) || rep->data_len > CM_REP_PRIVATE_DATA_LEN)
		return -EINVAL;
	id->local_qpn = rep->qpn;
	id->qp.rq_psn = rep->psn;
	id->qp.responder_resources = rep->responder_resources;
	id->qp.initiator_depth = rep->initiator_depth;
	cm_mad_rep(id->mad, id, rep);
	cm_id_enter(id, CM_ST_REP_SENT);
	return cm_send_wait(id, cm_response_ns(id));
}

int cm_send_rtu(struct cm_id *id, const u8 *data, u8 len)
{
	if (!connect_in(id, S(REP_RCVD) | S(MRA_REP_SENT)) || len > CM_RTU_PRIVATE_DATA_LEN)
		return -EINVAL;
	cm_mad_init(id->mad, CM_ATTR_RTU, id->tid);
	cm_mad_ids(id->mad, id);
	cm_mad_private(id->mad, CM_RTU_PRIVATE_DATA, data, len);
	cm_id_enter(id, CM_ST_ESTABLISHED);
	(void)cm_send(id, id->mad);
	return 0;
}

int cm_send_rej(struct cm_id *id, u16 reason, const u8 *data, u8 len)
{
	u8 message = connect_in(id, S(REQ_RCVD) | S(MRA_REQ_SENT))   ? CM_MESSAGE_REQ
		     : connect_in(id, S(REP_RCVD) | S(MRA_REP_SENT)) ? CM_MESSAGE_REP
								     : CM_MESSAGE_OTHER;
	u8 mad[MAD_SIZE];

	if (!connect_in(id, S(REQ_SENT) | S(MRA_REQ_RCVD) | S(REQ_RCVD) | S(MRA_REQ_SENT) | S(REP_SENT) |
				    S(MRA_REP_RCVD) | S(REP_RCVD) | S(MRA_REP_SENT)) ||
	    len > CM_REJ_PRIVATE_DATA_LEN)
		return -EINVAL;
	cm_answered(id);
	cm_count(id->cm, REJECTED);
	cm_mad_init(mad, CM_ATTR_REJ, id->tid);
	cm_mad_rej(mad, id->local_id, id->remote_id, message, reason, id->cm->ca_guid);
	cm_mad_private(mad, CM_REJ_PRIVATE_DATA, data, len);
	(void)cm_send(id, mad);
	if (connect_in(id, S(REP_SENT) | S(MRA_REP_RCVD))) { /* the peer may have sent data already */
		cm_id_timewait(id);
	} else {
		cm_peer_forget(id);
		cm_id_enter(id, CM_ST_IDLE);
	}
	return 0;
}

int cm_send_dreq(struct cm_id *id, const u8 *data, u8 len)
{
	if (!connect_in(id, S(ESTABLISHED)) || len > CM_DREQ_PRIVATE_DATA_LEN)
		return -EINVAL;
	id->lap = CM_LAP_IDLE;
	id->tid = (u64)mad_agent_tid_high(id->port->agent) << 32 | id->local_id;
	cm_mad_init(id->mad, CM_ATTR_DREQ, id->tid);
	cm_mad_ids(id->mad, id);
	wire_set(id->mad, CM_DREQ_REMOTE_QPN, id->qp.remote_qpn);
	cm_mad_private(id->mad, CM_DREQ_PRIVATE_DATA, data, len);
	cm_id_enter(id, CM_ST_DREQ_SENT);
	return cm_send_wait(id, cm_response_ns(id));
}

int cm_send_drep(struct cm_id *id, const u8 *data, u8 len)
{
	if (!connect_in(id, S(DREQ_RCVD)) || len > CM_DREP_PRIVATE_DATA_LEN)
		return -EINVAL;
	cm_mad_init(id->mad, CM_ATTR_DREP, id->tid);
	cm_mad_ids(id->mad, id);
	cm_mad_private(id->mad, CM_DREP_PRIVATE_DATA, data, len);
	(void)cm_send(id, id->mad);
	cm_id_timewait(id);
	return 0;
}

int cm_established(struct cm_id *id)
{
	if (connect_in(id, S(ESTABLISHED)))
		return -EISCONN;
	if (!connect_in(id, S(REP_SENT) | S(MRA_REP_RCVD)))
		return -EINVAL;
	cm_answered(id);
	cm_id_enter(id, CM_ST_ESTABLISHED);
	cm_id_notify(id, &(struct cm_event){ .type = CM_EVENT_RTU });
	return 0;
}

int cm_id_qp(const struct cm_id *id, bool remote, struct cm_qp *qp)
{
	u32 local = S(REQ_SENT) | S(MRA_REQ_RCVD);

	if (!connect_in(id, (remote ? 0 : local) | S(REQ_RCVD) | S(MRA_REQ_SENT) | S(REP_RCVD) | S(MRA_REP_SENT) |
				    S(REP_SENT) | S(MRA_REP_RCVD) | S(ESTABLISHED)))
		return -EINVAL;
	*qp = id->qp;
	return 0;
}

void cm_id_destroy(struct cm_id *id)
{
	cm_id_own(id, NULL, NULL);
	if (connect_in(id, S(REQ_SENT) | S(MRA_REQ_RCVD)))
		(void)cm_send_rej(id, CM_REJ_TIMEOUT, NULL, 0);
	else if (connect_in(id, S(ESTABLISHED)))
		(void)cm_send_dreq(id, NULL, 0);
	else if (connect_in(id, S(DREQ_RCVD)))
		(void)cm_send_drep(id, NULL, 0);
	else if (connect_in(id, S(SIDR_REQ_RCVD)))
		(void)cm_send_sidr_rep(id, &(struct cm_sidr_rep){ .status = CM_SIDR_REJECT });
	else
		(void)cm_send_rej(id, CM_REJ_CONSUMER, NULL, 0);
	if (!connect_in(id, S(DREQ_SENT) | S(TIMEWAIT)))
		cm_id_free(id);
}
