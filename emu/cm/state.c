// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connection state machine. IBTA 12.9. A received message selects its ID, then a row of the table below by attribute
 * and state; a message without a row is counted and discarded: it is late, a duplicate that needs no response, or not
 * from the peer.
 *
 * id->mad is the last message sent: it is retransmitted while the timer runs, and resent for a duplicate of the peer's
 * message.
 */
#include <errno.h>

#include "emu/cm/cm_internal.h"

#define S(name) (1u << CM_ST_##name)

/* Result of a handler; type CM_EVENTS: no event. */
static const struct cm_event nothing = { .type = CM_EVENTS };

struct message {
	struct cm_port *port;
	const u8 *mad;
	const struct mad_addr *from;
	u16 attr;
};

/* Only for a duplicate: most programs respond before the peer retransmits. */
static void answer_mra(struct cm_id *id, enum wire_cm_message message)
{
	u8 mad[MAD_SIZE];

	cm_mad_init(mad, CM_ATTR_MRA, id->tid);
	cm_mad_ids(mad, id);
	wire_set(mad, CM_MRA_MESSAGE, message);
	wire_set(mad, CM_MRA_SERVICE_TIMEOUT, CM_SERVICE_ORDER);
	(void)cm_send(id, mad);
}

/* A REJ with additional information of @info_len bytes: the value that would have been accepted. 12.6.7.2. */
static void answer_rej_info(const struct message *m, u32 local_id, u8 message, u16 reason, const void *info,
			    u8 info_len)
{
	u8 mad[MAD_SIZE];

	cm_count(m->port->cm, REJECTED);
	cm_mad_init(mad, CM_ATTR_REJ, wire_get(m->mad, MAD_TID));
	cm_mad_rej(mad, local_id, wire_get(m->mad, CM_LOCAL_COMM_ID), message, reason, m->port->cm->ca_guid);
	if (info_len) {
		wire_set(mad, CM_REJ_INFO_LEN, info_len);
		memcpy(wire_bytes(mad, CM_REJ_INFO), info, info_len);
	}
	cm_reply_once(m->port, m->from, mad);
}

/* Sends REJ for a message without a known ID. */
static void answer_rej(const struct message *m, u32 local_id, u8 message, u16 reason)
{
	answer_rej_info(m, local_id, message, reason, NULL, 0);
}

static void answer_drep(const struct message *m)
{
	u8 mad[MAD_SIZE];

	cm_mad_init(mad, CM_ATTR_DREP, wire_get(m->mad, MAD_TID));
	wire_set(mad, CM_LOCAL_COMM_ID, wire_get(m->mad, CM_REMOTE_COMM_ID));
	wire_set(mad, CM_REMOTE_COMM_ID, wire_get(m->mad, CM_LOCAL_COMM_ID));
	cm_reply_once(m->port, m->from, mad);
}

/* ---- REQ ---- */

static void req_adopt(struct cm_id *id, const struct message *m, const struct cm_req *req)
{
	id->port = m->port;
	id->passive = true;
	id->tid = wire_get(m->mad, MAD_TID);
	id->remote_id = wire_get(m->mad, CM_LOCAL_COMM_ID);
	id->remote_ca_guid = req->remote_ca_guid;
	id->service_id = req->service_id;
	id->peer = *m->from;
	id->response_timeout = req->response_timeout;
	id->max_retries = req->max_retries;
	id->qp = (struct cm_qp){
		.path = req->path,
		.port = m->port->num,
		.local_ack_timeout = wire_get(m->mad, CM_REQ_PRIMARY_ACK_TIMEOUT),
		.retry_count = req->retry_count,
		.rnr_retry = req->rnr_retry_count,
		.remote_qpn = req->qpn,
		.sq_psn = req->psn,
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
		.transport = req->transport,
	};
	cm_peer_known(id);
	cm_id_enter(id, CM_ST_REQ_RCVD);
}

static void req_new(const struct message *m, struct cm_req *req)
{
	struct cm *cm = m->port->cm;
	struct cm_id *id = cm_id_new(cm);
	int err = -ENOMEM;

	if (id) {
		req_adopt(id, m, req);
		req->port = m->port->num;
		err = cm_offer(
			id, req->service_id,
			&(struct cm_event){
				.type = CM_EVENT_REQ, .req = req, .data = req->data, .data_len = req->data_len });
	}
	if (!err)
		return;
	answer_rej(m, 0, CM_MESSAGE_REQ,
		   err == -ENOENT   ? CM_REJ_INVALID_SERVICE_ID
		   : err == -ENOMEM ? CM_REJ_NO_RESOURCES
				    : CM_REJ_CONSUMER);
	if (id)
		cm_id_free(id);
}

static void req_again(struct cm_id *id, const struct message *m)
{
	cm_count(id->cm, DUPLICATES);
	switch (id->state) {
	case CM_ST_REQ_RCVD:
		cm_id_enter(id, CM_ST_MRA_REQ_SENT);
		/* fallthrough */
	case CM_ST_MRA_REQ_SENT:
		answer_mra(id, CM_MESSAGE_REQ);
		break;
	case CM_ST_REP_SENT:
		(void)cm_send(id, id->mad);
		break;
	case CM_ST_TIMEWAIT:
		answer_rej(m, 0, CM_MESSAGE_REQ, CM_REJ_STALE_CONN);
		break;
	default:
		break;
	}
}

/* Stale connection: the peer reuses a QP that is connected here. 12.9.8.3.1. */
static void req_stale(struct cm_id *old, const struct message *m)
{
	cm_count(old->cm, STALE);
	answer_rej(m, 0, CM_MESSAGE_REQ, CM_REJ_STALE_CONN);
	if (old->state == CM_ST_ESTABLISHED)
		(void)cm_send_dreq(old, NULL, 0);
}

/*
 * Checks that the primary path ends at a port of this CA; the REJ has the address of the port that received the REQ.
 * LIDs are checked within a subnet only. 12.6.7.2, table 109.
 */
static bool req_path_check(const struct message *m, const struct cm_req *req)
{
	const struct wire_port *wire = mad_port_wire(m->port->mp);
	const struct cm_port *p = cm_path_port(m->port->cm, &req->path);
	__be16 lid = cpu_to_be16(wire->attr.lid);

	if (!p) {
		answer_rej_info(m, 0, CM_MESSAGE_REQ, CM_REJ_INVALID_GID, wire->attr.gid[0].raw,
				sizeof(wire->attr.gid[0].raw));
		return false;
	}
	if (!wire_port_is_ethernet(wire) && wire_get(m->mad, CM_REQ_PRIMARY_SUBNET_LOCAL) &&
	    !cm_path_lid_is_own(p, &req->path)) {
		answer_rej_info(m, 0, CM_MESSAGE_REQ, CM_REJ_INVALID_LID, &lid, sizeof(lid));
		return false;
	}
	return true;
}

static void receive_req(const struct message *m)
{
	struct cm *cm = m->port->cm;
	struct cm_req req;
	struct cm_id *old;

	cm_req_parse(m->mad, &req);
	req.path.roce = cm_roce_version(m->port, m->from);
	old = cm_peer_find(cm, req.remote_ca_guid, wire_get(m->mad, CM_LOCAL_COMM_ID), req.qpn);
	if (old && old->remote_id == wire_get(m->mad, CM_LOCAL_COMM_ID))
		req_again(old, m);
	else if (old)
		req_stale(old, m);
	else if (req.transport != CM_RC && req.transport != CM_UC)
		answer_rej(m, 0, CM_MESSAGE_REQ, CM_REJ_INVALID_TRANSPORT);
	else if (!wire_mtu_bytes(req.path.mtu))
		answer_rej(m, 0, CM_MESSAGE_REQ, CM_REJ_INVALID_MTU);
	else if (req_path_check(m, &req))
		req_new(m, &req);
}

/* ---- rows ---- */

static struct cm_event on_rep(struct cm_id *id, const struct message *m)
{
	static struct cm_rep rep;

	cm_rep_parse(m->mad, &rep);
	cm_answered(id);
	id->remote_id = wire_get(m->mad, CM_LOCAL_COMM_ID);
	id->remote_ca_guid = wire_get(m->mad, CM_REP_LOCAL_CA_GUID);
	id->qp.remote_qpn = rep.qpn;
	cm_peer_known(id);
	id->qp.sq_psn = rep.psn;
	id->qp.rnr_retry = rep.rnr_retry_count;
	id->qp.responder_resources = rep.initiator_depth;
	id->qp.initiator_depth = rep.responder_resources;
	id->qp.local_ack_timeout = cm_ack_timeout(wire_get(m->mad, CM_REP_TARGET_ACK_DELAY), id->qp.path.packet_life);
	cm_id_enter(id, CM_ST_REP_RCVD);
	return (struct cm_event){ .type = CM_EVENT_REP, .rep = &rep, .data = rep.data, .data_len = rep.data_len };
}

static struct cm_event on_rep_again(struct cm_id *id, const struct message *m)
{
	cm_count(id->cm, DUPLICATES);
	cm_id_enter(id, CM_ST_MRA_REP_SENT);
	answer_mra(id, CM_MESSAGE_REP);
	return nothing;
}

/* id->mad is still the RTU if this side has sent one and nothing after it. */
static struct cm_event on_rep_late(struct cm_id *id, const struct message *m)
{
	cm_count(id->cm, DUPLICATES);
	if (!id->passive && wire_get(id->mad, MAD_ATTR_ID) == CM_ATTR_RTU)
		(void)cm_send(id, id->mad);
	return nothing;
}

static struct cm_event on_rtu(struct cm_id *id, const struct message *m)
{
	cm_answered(id);
	cm_id_enter(id, CM_ST_ESTABLISHED);
	return (struct cm_event){ .type = CM_EVENT_RTU,
				  .data = wire_cbytes(m->mad, CM_RTU_PRIVATE_DATA),
				  .data_len = CM_RTU_PRIVATE_DATA_LEN };
}

static struct cm_event state_rejected(const struct message *m)
{
	return (struct cm_event){ .type = CM_EVENT_REJ,
				  .reason = wire_get(m->mad, CM_REJ_REASON),
				  .data = wire_cbytes(m->mad, CM_REJ_PRIVATE_DATA),
				  .data_len = CM_REJ_PRIVATE_DATA_LEN };
}

static struct cm_event on_rej(struct cm_id *id, const struct message *m)
{
	cm_answered(id);
	if (wire_get(m->mad, CM_REJ_REASON) == CM_REJ_STALE_CONN) {
		cm_id_timewait(id);
	} else {
		cm_peer_forget(id); /* the peer may use its QP for another connection */
		cm_id_enter(id, CM_ST_IDLE);
	}
	return state_rejected(m);
}

static struct cm_event on_rej_connected(struct cm_id *id, const struct message *m)
{
	cm_id_timewait(id);
	return state_rejected(m);
}

static struct cm_event on_mra(struct cm_id *id, const struct message *m)
{
	bool rep = id->state == CM_ST_REP_SENT;

	if (wire_get(m->mad, CM_MRA_MESSAGE) != (rep ? CM_MESSAGE_REP : CM_MESSAGE_REQ)) {
		cm_count(id->cm, UNEXPECTED);
		return nothing;
	}
	if (!rep)
		id->remote_id = wire_get(m->mad, CM_LOCAL_COMM_ID);
	cm_id_enter(id, rep ? CM_ST_MRA_REP_RCVD : CM_ST_MRA_REQ_RCVD);
	cm_wait_longer(id, wire_timeout_ns(wire_get(m->mad, CM_MRA_SERVICE_TIMEOUT)) + cm_response_ns(id));
	return nothing;
}

static struct cm_event on_dreq(struct cm_id *id, const struct message *m)
{
	if (wire_get(m->mad, CM_DREQ_REMOTE_QPN) != id->local_qpn) {
		cm_count(id->cm, UNEXPECTED);
		return nothing;
	}
	cm_answered(id);
	id->tid = wire_get(m->mad, MAD_TID);
	cm_id_enter(id, CM_ST_DREQ_RCVD);
	if (!id->fn)
		(void)cm_send_drep(id, NULL, 0);
	return (struct cm_event){ .type = CM_EVENT_DREQ,
				  .data = wire_cbytes(m->mad, CM_DREQ_PRIVATE_DATA),
				  .data_len = CM_DREQ_PRIVATE_DATA_LEN };
}

static struct cm_event on_dreq_again(struct cm_id *id, const struct message *m)
{
	cm_count(id->cm, DUPLICATES);
	answer_drep(m);
	return nothing;
}

static struct cm_event on_drep(struct cm_id *id, const struct message *m)
{
	cm_id_timewait(id);
	return (struct cm_event){ .type = CM_EVENT_DREP,
				  .data = wire_cbytes(m->mad, CM_DREP_PRIVATE_DATA),
				  .data_len = CM_DREP_PRIVATE_DATA_LEN };
}

static struct cm_event on_lap(struct cm_id *id, const struct message *m)
{
	return cm_on_lap(id, m->mad);
}

static struct cm_event on_apr(struct cm_id *id, const struct message *m)
{
	return cm_on_apr(id, m->mad);
}

/* MRA for the LAP. */
static struct cm_event on_mra_lap(struct cm_id *id, const struct message *m)
{
	if (id->lap != CM_LAP_SENT || wire_get(m->mad, CM_MRA_MESSAGE) != CM_MESSAGE_OTHER)
		cm_count(id->cm, UNEXPECTED);
	else
		cm_wait_longer(id, wire_timeout_ns(wire_get(m->mad, CM_MRA_SERVICE_TIMEOUT)) + cm_response_ns(id));
	return nothing;
}

static const struct row {
	u16 attr;
	u32 states;
	struct cm_event (*fn)(struct cm_id *id, const struct message *m);
} rows[] = {
	{ CM_ATTR_REP, S(REQ_SENT) | S(MRA_REQ_RCVD), on_rep },
	{ CM_ATTR_REP, S(REP_RCVD) | S(MRA_REP_SENT), on_rep_again },
	{ CM_ATTR_REP, S(ESTABLISHED), on_rep_late },
	{ CM_ATTR_RTU, S(REP_SENT) | S(MRA_REP_RCVD), on_rtu },
	{ CM_ATTR_REJ, S(REQ_SENT) | S(MRA_REQ_RCVD) | S(REQ_RCVD) | S(MRA_REQ_SENT) | S(REP_SENT) | S(MRA_REP_RCVD),
	  on_rej },
	{ CM_ATTR_REJ, S(REP_RCVD) | S(MRA_REP_SENT) | S(ESTABLISHED) | S(DREQ_SENT), on_rej_connected },
	{ CM_ATTR_MRA, S(REQ_SENT) | S(REP_SENT), on_mra },
	{ CM_ATTR_DREQ, S(REP_SENT) | S(MRA_REP_RCVD) | S(ESTABLISHED) | S(DREQ_SENT), on_dreq },
	{ CM_ATTR_DREQ, S(TIMEWAIT) | S(IDLE), on_dreq_again },
	{ CM_ATTR_DREP, S(DREQ_SENT) | S(DREQ_RCVD), on_drep },
	{ CM_ATTR_LAP, S(ESTABLISHED), on_lap },
	{ CM_ATTR_APR, S(ESTABLISHED), on_apr },
	{ CM_ATTR_MRA, S(ESTABLISHED), on_mra_lap },
};

/* ---- lookup of the ID ---- */

/* The sender of a REJ of the REQ may not have assigned a communication ID. 12.6.7. */
static struct cm_id *find_rejected(const struct message *m)
{
	struct cm *cm = m->port->cm;
	u32 remote = wire_get(m->mad, CM_REJ_LOCAL_COMM_ID);
	struct cm_id *id;

	if (wire_get(m->mad, CM_REJ_REASON) == CM_REJ_TIMEOUT && wire_get(m->mad, CM_REJ_INFO_LEN) >= 8)
		return cm_peer_find(cm, wire_get(m->mad, WIRE_FIELD(CM_REJ_INFO.bit, 64)), remote, ~0u);
	id = cm_id_find(cm, wire_get(m->mad, CM_REMOTE_COMM_ID));
	if (id && id->qp_known && id->remote_id != remote)
		return NULL;
	return id;
}

static struct cm_id *state_find(const struct message *m)
{
	struct cm_id *id;

	if (m->attr == CM_ATTR_REJ)
		return find_rejected(m);
	id = cm_id_find(m->port->cm, wire_get(m->mad, CM_REMOTE_COMM_ID));
	/* the first response has the peer's communication ID */
	if (id && id->qp_known && id->remote_id != wire_get(m->mad, CM_LOCAL_COMM_ID))
		return NULL;
	return id;
}

/* 12.9.8.3: rejects a message of a connection that does not exist here. */
static void state_unknown(const struct message *m)
{
	cm_count(m->port->cm, UNEXPECTED);
	if (m->attr == CM_ATTR_DREQ)
		answer_drep(m);
	else if (m->attr == CM_ATTR_REP)
		answer_rej(m, wire_get(m->mad, CM_REMOTE_COMM_ID), CM_MESSAGE_REP, CM_REJ_INVALID_COMM_ID);
}

static void receive_in_conversation(const struct message *m)
{
	struct cm_id *id = state_find(m);
	struct cm_event ev;
	size_t i;

	if (!id) {
		state_unknown(m);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].attr != m->attr || !(rows[i].states & 1u << id->state))
			continue;
		ev = rows[i].fn(id, m);
		if (ev.type != CM_EVENTS)
			cm_id_notify(id, &ev);
		return;
	}
	cm_count(id->cm, UNEXPECTED);
}

void cm_receive(struct cm_port *p, const u8 *mad, const struct mad_addr *from)
{
	struct message m = { .port = p, .mad = mad, .from = from, .attr = wire_get(mad, MAD_ATTR_ID) };

	switch (m.attr) {
	case CM_ATTR_REQ:
		receive_req(&m);
		break;
	case CM_ATTR_SIDR_REQ:
	case CM_ATTR_SIDR_REP:
		cm_sidr_receive(p, mad, from);
		break;
	default:
		receive_in_conversation(&m);
	}
}
