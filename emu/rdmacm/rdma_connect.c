// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections and datagram services by RDMA identifiers. */
#include <errno.h>

#include "emu/rdmacm/rdma_internal.h"

#define RETRY_MAX 7 /* a 3-bit field */

/* ---- events of the communication manager ---- */

static struct rdma_conn conn_of_rep(const struct cm_rep *rep)
{
	return (struct rdma_conn){
		.qpn = rep->qpn,
		.responder_resources = rep->initiator_depth,
		.initiator_depth = rep->responder_resources,
		.rnr_retry_count = rep->rnr_retry_count,
		.flow_control = rep->flow_control,
		.srq = rep->srq,
		.data = rep->data,
		.data_len = rep->data_len,
	};
}

/* Once it has a Q_Key, an ID has no other; 0: that of its port space. 0, -EINVAL. */
static int set_qkey(struct rdma_id *id, u32 qkey)
{
	if (id->qkey && qkey && id->qkey != qkey)
		return -EINVAL;
	id->qkey = qkey ? qkey : rdma_id_space_qkey(id);
	return 0;
}

static void on_sidr_rep(struct rdma_id *id, const struct cm_event *ev)
{
	struct rdma_event out = { .type = RDMA_EVENT_ESTABLISHED };

	out.conn = (struct rdma_conn){
		.qpn = ev->sidr_rep->qpn, .qkey = ev->sidr_rep->qkey, .data = ev->data, .data_len = ev->data_len
	};
	if (ev->sidr_rep->status) {
		out.type = RDMA_EVENT_UNREACHABLE;
		out.status = ev->sidr_rep->status;
	} else if (!ev->sidr_rep->qkey || set_qkey(id, ev->sidr_rep->qkey)) {
		out.type = RDMA_EVENT_ADDR_ERROR;
		out.status = -EINVAL;
	}
	out.av = rdma_path_av(id->port, &id->path);
	(void)id->fn(id->ctx, id, &out);
}

/* Reported once per connection, whichever side disconnects. */
void rdma_id_disconnected(struct rdma_id *id, int status)
{
	if (id->state != RDMA_CONNECT)
		return;
	id->state = RDMA_DISCONNECT;
	(void)rdma_id_notify(id, RDMA_EVENT_DISCONNECTED, status);
}

/* ---- alternate paths, transparent to the user ---- */

static int load_alternate(struct rdma_id *id, const struct cm_alternate *alt)
{
	struct rdma_port *p = &id->host->port[alt->port - 1];
	struct hca_av av = rdma_path_av(p, &alt->path);

	return hca_qp_load_alternate(id->host->hca, id->owner, id->qpn, &av,
				     wire_port_pkey_index(p->wire, rdma_id_pkey(id)), alt->ack_timeout);
}

/* Proposes a path between the next LIDs of both ends. */
static void offer_alternate(struct rdma_id *id)
{
	u16 mask = (u16)((1u << id->port->wire->attr.lmc) - 1);
	struct cm_alternate alt = { .path = id->path, .port = id->port->num };

	if (!id->host->apm || id->type != HCA_QPT_RC || !mask)
		return;
	alt.path.slid = (u16)((alt.path.slid & ~mask) | ((alt.path.slid + 1) & mask));
	alt.path.dlid = (u16)((alt.path.dlid & ~mask) | ((alt.path.dlid + 1) & mask));
	(void)cm_send_lap(id->cm, &alt);
}

/* As in the kernel, events have the private data of a REP, REJ and SIDR_REP, not those of an RTU, DREQ and DREP. */
void rdma_id_connected(void *ctx, struct cm_id *cm, const struct cm_event *ev)
{
	struct rdma_id *id = ctx;
	struct rdma_event out = { 0 };

	/* As the kernel's rdma_cm, reports what happens to a connection until its end. */
	if (id->state != (ev->type == CM_EVENT_TIMEWAIT_EXIT ? RDMA_DISCONNECT : RDMA_CONNECT))
		return;
	switch (ev->type) {
	case CM_EVENT_REQ_ERROR:
	case CM_EVENT_REP_ERROR:
	case CM_EVENT_SIDR_ERROR:
		out.type = RDMA_EVENT_UNREACHABLE;
		out.status = -ETIMEDOUT;
		break;
	case CM_EVENT_REP:
		out.type = RDMA_EVENT_CONNECT_RESPONSE;
		out.conn = conn_of_rep(ev->rep);
		break;
	case CM_EVENT_RTU:
		out.type = RDMA_EVENT_ESTABLISHED;
		break;
	case CM_EVENT_REJ:
		out.type = RDMA_EVENT_REJECTED;
		out.status = ev->reason;
		out.conn = (struct rdma_conn){ .data = ev->data, .data_len = ev->data_len };
		break;
	case CM_EVENT_TIMEWAIT_EXIT:
		out.type = RDMA_EVENT_TIMEWAIT_EXIT;
		break;
	case CM_EVENT_SIDR_REP:
		on_sidr_rep(id, ev);
		return;
	case CM_EVENT_LAP:
		(void)cm_send_apr(cm, load_alternate(id, ev->alternate) ? CM_APR_UNSUPPORTED : CM_APR_OK);
		return;
	case CM_EVENT_APR:
		if (ev->reason == CM_APR_OK)
			(void)load_alternate(id, ev->alternate);
		return;
	case CM_EVENT_LAP_ERROR:
		return;
	default:
		rdma_id_disconnected(id, ev->type == CM_EVENT_DREQ_ERROR ? -ETIMEDOUT : 0);
		return;
	}
	(void)id->fn(id->ctx, id, &out);
}

/* ---- requests of the user ---- */

static u8 connect_retries(u8 n)
{
	return min(n, (u8)RETRY_MAX);
}

static int send_req(struct rdma_id *id, const struct rdma_conn *c, const u8 *data, u8 len)
{
	struct cm_req req = {
		.service_id = rdma_id_service(id, &id->dst),
		.path = id->path,
		.port = id->port->num,
		.pkey = id->path.pkey,
		.transport = id->type == HCA_QPT_UC ? CM_UC : CM_RC,
		.qpn = c->qpn,
		.psn = id->psn,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.retry_count = connect_retries(c->retry_count),
		.rnr_retry_count = connect_retries(c->rnr_retry_count),
		.response_timeout = RDMA_RESPONSE_TIMEOUT,
		.max_retries = RDMA_CM_RETRIES,
		.flow_control = c->flow_control,
		.srq = c->srq,
		.data = data,
		.data_len = len,
	};

	if (id->ack_timeout_set)
		req.path.packet_life = id->ack_timeout ? id->ack_timeout - 1 : 0;
	return cm_send_req(id->cm, &req);
}

static int send_sidr_req(struct rdma_id *id, const u8 *data, u8 len)
{
	struct cm_sidr_req req = {
		.service_id = rdma_id_service(id, &id->dst),
		.path = id->path,
		.port = id->port->num,
		.pkey = id->path.pkey,
		.response_timeout = RDMA_RESPONSE_TIMEOUT,
		.max_retries = RDMA_CM_RETRIES,
		.data = data,
		.data_len = len,
	};

	return cm_send_sidr_req(id->cm, &req);
}

int rdma_id_connect(struct rdma_id *id, const struct rdma_conn *conn)
{
	u32 offset = rdma_id_data_offset(id);
	u8 data[256];
	bool ud = id->type == HCA_QPT_UD;
	u32 room = ud ? CM_SIDR_REQ_PRIVATE_DATA_LEN : CM_REQ_PRIVATE_DATA_LEN;
	int err;

	if (id->state != RDMA_ROUTE_RESOLVED || !id->port)
		return -EINVAL;
	if (id->host->iw)
		return rdma_iw_connect(id, conn);
	if (offset + conn->data_len > room)
		return -EINVAL;
	if (offset)
		rdma_id_put_header(id, data);
	memcpy(data + offset, conn->data, conn->data_len);
	id->cm = cm_id_create(id->host->cm, rdma_id_connected, id);
	if (!id->cm)
		return -ENOMEM;
	id->qpn = conn->qpn;
	id->owner = conn->owner;
	err = ud ? send_sidr_req(id, data, offset + conn->data_len) : send_req(id, conn, data, offset + conn->data_len);
	if (err) {
		cm_id_destroy(id->cm);
		id->cm = NULL;
		return err;
	}
	id->state = RDMA_CONNECT;
	return 0;
}

static int accept_ud(struct rdma_id *id, const struct rdma_conn *conn)
{
	struct cm_sidr_rep rep = { .status = CM_SIDR_OK };
	int err = set_qkey(id, conn ? conn->qkey : 0);

	if (err)
		return err;
	if (conn) {
		id->qpn = conn->qpn;
		id->owner = conn->owner;
		rep.data = conn->data;
		rep.data_len = conn->data_len;
	}
	rep.qpn = id->qpn;
	rep.qkey = id->qkey;
	return cm_send_sidr_rep(id->cm, &rep);
}

static int accept_active(struct rdma_id *id)
{
	int err = cm_send_rtu(id->cm, NULL, 0);

	if (!err)
		offer_alternate(id);
	return err;
}

static int accept_passive(struct rdma_id *id, const struct rdma_conn *conn)
{
	const struct cm_rep rep = {
		.qpn = conn->qpn,
		.psn = id->psn,
		.responder_resources = conn->responder_resources,
		.initiator_depth = conn->initiator_depth,
		.rnr_retry_count = connect_retries(conn->rnr_retry_count),
		.flow_control = conn->flow_control,
		.srq = conn->srq,
		.data = conn->data,
		.data_len = conn->data_len,
	};
	int err = cm_send_rep(id->cm, &rep);

	if (err)
		return err;
	id->qpn = conn->qpn;
	id->owner = conn->owner;
	return 0;
}

/* As the kernel's rdma_accept(), rejects the peer if the message cannot be sent: otherwise it would wait for it. */
int rdma_id_accept(struct rdma_id *id, const struct rdma_conn *conn)
{
	int err;

	if (id->host->iw)
		return rdma_iw_accept(id, conn);
	if (id->state != RDMA_CONNECT || !id->cm)
		return -EINVAL;
	if (id->type == HCA_QPT_UD)
		err = accept_ud(id, conn);
	else
		err = conn ? accept_passive(id, conn) : accept_active(id);
	if (err)
		(void)rdma_id_reject(id, CM_REJ_CONSUMER, NULL, 0);
	return err;
}

int rdma_id_reject(struct rdma_id *id, u16 reason, const u8 *data, u8 len)
{
	if (id->host->iw)
		return rdma_iw_reject(id, data, len);
	if (!id->cm)
		return -EINVAL;
	if (id->type == HCA_QPT_UD)
		return cm_send_sidr_rep(
			id->cm, &(struct cm_sidr_rep){ .status = CM_SIDR_REJECT, .data = data, .data_len = len });
	return cm_send_rej(id->cm, reason, data, len);
}

/* As the kernel's, of an ID with a communication ID, which may be a listener's, it succeeds in any state. */
int rdma_id_disconnect(struct rdma_id *id)
{
	if (id->host->iw)
		return rdma_iw_disconnect(id);
	if (id->listener)
		return 0;
	if (!id->cm)
		return -EINVAL;
	if (id->type != HCA_QPT_UD && cm_send_dreq(id->cm, NULL, 0))
		(void)cm_send_drep(id->cm, NULL, 0);
	return 0;
}

int rdma_id_event(struct rdma_id *id, enum hca_event_type event)
{
	if (id->iw || id->iw_listener)
		return 0; /* iWARP has no such events */
	if (!id->cm)
		return -EINVAL;
	switch (event) {
	case HCA_EVENT_COMM_EST:
		return cm_established(id->cm);
	case HCA_EVENT_PATH_MIG:
		return cm_migrated(id->cm);
	default:
		return -EINVAL;
	}
}

/* ---- attributes of the queue pair ---- */

/* As the kernel's cma_ib_init_qp_attr(): what is known without a communication ID, whatever the state of the QP. */
static int port_attr(struct rdma_id *id, struct hca_qp_attr *a, u32 *mask)
{
	const struct wire_port *wire = id->port->wire;
	u16 pkey = wire_port_is_ethernet(wire) ? WIRE_PKEY_DEFAULT_FULL : ipif_pkey(id->port->ip);

	if (wire_port_pkey_find(wire, pkey) < 0)
		return -ENOENT;
	a->port = id->port->num;
	a->pkey_index = wire_port_pkey_index(wire, pkey);
	*mask = HCA_QP_STATE | HCA_QP_PKEY_INDEX | HCA_QP_PORT;
	if (id->type != HCA_QPT_UD) {
		*mask |= HCA_QP_ACCESS_FLAGS;
		return 0;
	}
	if (!id->qkey && id->ps == RDMA_SPACE_IPOIB && !ipif_broadcast(id->port->ip))
		return -EADDRNOTAVAIL;
	(void)set_qkey(id, 0);
	a->qkey = id->qkey;
	*mask |= HCA_QP_QKEY;
	return 0;
}

static void init_attr(const struct rdma_id *id, const struct cm_qp *qp, struct hca_qp_attr *a, u32 *mask)
{
	a->port = qp->port;
	a->pkey_index = wire_port_pkey_index(id->port->wire, qp->path.pkey);
	a->access = HCA_ACCESS_REMOTE_WRITE;
	if (qp->responder_resources)
		a->access |= HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC;
	*mask = HCA_QP_STATE | HCA_QP_ACCESS_FLAGS | HCA_QP_PKEY_INDEX | HCA_QP_PORT;
}

static void rtr_attr(const struct rdma_id *id, const struct cm_qp *qp, struct hca_qp_attr *a, u32 *mask)
{
	a->av = rdma_path_av(id->port, &qp->path);
	a->path_mtu = qp->path.mtu;
	a->dest_qpn = qp->remote_qpn;
	*mask = HCA_QP_STATE | HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN;
	if (id->type != HCA_QPT_RC)
		return;
	a->max_dest_rd_atomic = qp->responder_resources;
	a->min_rnr_timer = 0;
	*mask |= HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER;
}

static void rts_attr(const struct rdma_id *id, const struct cm_qp *qp, struct hca_qp_attr *a, u32 *mask)
{
	a->sq_psn = qp->sq_psn;
	*mask = HCA_QP_STATE | HCA_QP_SQ_PSN;
	if (id->type != HCA_QPT_RC)
		return;
	a->timeout = id->ack_timeout_set ? id->ack_timeout : qp->local_ack_timeout;
	a->retry_cnt = qp->retry_count;
	a->rnr_retry = qp->rnr_retry;
	a->max_rd_atomic = qp->initiator_depth;
	*mask |= HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC;
}

/* As the kernel's ib_cm_init_qp_attr(), in the states of the connection that it has attributes for. */
static int connection_attr(const struct rdma_id *id, enum hca_qp_state state, struct hca_qp_attr *a, u32 *mask)
{
	struct cm_qp qp;

	if (!id->cm || cm_id_qp(id->cm, state != HCA_QPS_INIT, &qp)) /* a listener has no connection */
		return -EINVAL;
	switch (state) {
	case HCA_QPS_INIT:
		init_attr(id, &qp, a, mask);
		return 0;
	case HCA_QPS_RTR:
		rtr_attr(id, &qp, a, mask);
		return 0;
	case HCA_QPS_RTS:
		rts_attr(id, &qp, a, mask);
		return 0;
	default:
		return -EINVAL;
	}
}

int rdma_id_qp_attr(struct rdma_id *id, enum hca_qp_state state, struct hca_qp_attr *attr, u32 *mask)
{
	int err;

	if (!id->port)
		return -EINVAL;
	*attr = (struct hca_qp_attr){ .state = state };
	if (id->host->iw)
		return rdma_iw_qp_attr(id, state, attr, mask);
	if (id->type == HCA_QPT_UD || (!id->cm && !id->listener))
		err = port_attr(id, attr, mask);
	else
		err = connection_attr(id, state, attr, mask);
	if (state == HCA_QPS_RTR)
		attr->rq_psn = id->psn;
	return err;
}
