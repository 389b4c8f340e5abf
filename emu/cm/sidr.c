// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Service ID resolution: SIDR_REQ and SIDR_REP. IBTA 12.11. */
#include <errno.h>

#include "emu/cm/cm_internal.h"

int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_req *req)
{
	int err;

	if (id->state != CM_ST_IDLE || req->data_len > CM_SIDR_REQ_PRIVATE_DATA_LEN)
		return -EINVAL;
	err = cm_id_begin(id, req->port, &req->path, req->service_id, req->response_timeout, req->max_retries);
	if (err)
		return err;
	id->qp.path = req->path;
	cm_mad_init(id->mad, CM_ATTR_SIDR_REQ, id->tid);
	wire_set(id->mad, CM_SIDR_REQ_REQUEST_ID, id->local_id);
	wire_set(id->mad, CM_SIDR_REQ_PKEY, req->pkey);
	wire_set(id->mad, CM_SIDR_REQ_SERVICE_ID, req->service_id);
	cm_mad_private(id->mad, CM_SIDR_REQ_PRIVATE_DATA, req->data, req->data_len);
	cm_id_enter(id, CM_ST_SIDR_REQ_SENT);
	return cm_send_wait(id, cm_response_ns(id));
}

static void put_rep(u8 *mad, u64 tid, u32 request_id, u64 service_id, const struct cm_sidr_rep *rep)
{
	cm_mad_init(mad, CM_ATTR_SIDR_REP, tid);
	wire_set(mad, CM_SIDR_REP_REQUEST_ID, request_id);
	wire_set(mad, CM_SIDR_REP_STATUS, rep->status);
	wire_set(mad, CM_SIDR_REP_QPN, rep->qpn);
	wire_set(mad, CM_SIDR_REP_SERVICE_ID, service_id);
	wire_set(mad, CM_SIDR_REP_QKEY, rep->qkey);
	cm_mad_private(mad, CM_SIDR_REP_PRIVATE_DATA, rep->data, rep->data_len);
}

int cm_send_sidr_rep(struct cm_id *id, const struct cm_sidr_rep *rep)
{
	u8 mad[MAD_SIZE];

	if (id->state != CM_ST_SIDR_REQ_RCVD || rep->data_len > CM_SIDR_REP_PRIVATE_DATA_LEN)
		return -EINVAL;
	put_rep(mad, id->tid, id->remote_id, id->service_id, rep);
	(void)cm_send(id, mad);
	cm_id_enter(id, CM_ST_IDLE);
	return 0;
}

/* ---- received ---- */

/* The return path, from the addresses of the request. */
static struct sa_path path_back(const struct cm_port *p, const struct mad_addr *from, u16 pkey)
{
	const struct wire_port_attr *attr = &mad_port_wire(p->mp)->attr;

	return (struct sa_path){
		.dgid = from->gid, /* zero without a GRH */
		.sgid = attr->gid[from->grh ? from->gid_index % WIRE_PORT_GIDS : 0],
		.dlid = from->lid,
		.slid = attr->lid | from->path_bits,
		.reversible = true,
		.sl = from->sl,
		.mtu = attr->mtu_active,
		.pkey = pkey,
		.hop_limit = from->grh ? from->hop_limit : 0,
		.roce = cm_roce_version(p, from),
	};
}

static void receive_req(struct cm_port *p, const u8 *mad, const struct mad_addr *from)
{
	u32 request_id = wire_get(mad, CM_SIDR_REQ_REQUEST_ID);
	struct cm_sidr_req req = {
		.service_id = wire_get(mad, CM_SIDR_REQ_SERVICE_ID),
		.port = p->num,
		.pkey = wire_get(mad, CM_SIDR_REQ_PKEY),
		.data = wire_cbytes(mad, CM_SIDR_REQ_PRIVATE_DATA),
		.data_len = CM_SIDR_REQ_PRIVATE_DATA_LEN,
	};
	struct cm_sidr_rep rep = { 0 };
	u8 answer[MAD_SIZE];
	struct cm_id *id;
	int err = -ENOMEM;

	if (cm_peer_find_sidr(p->cm, request_id, from)) {
		cm_count(p->cm, DUPLICATES);
		return;
	}
	req.path = path_back(p, from, req.pkey);
	id = cm_id_new(p->cm);
	if (id) {
		id->port = p;
		id->passive = true;
		id->tid = wire_get(mad, MAD_TID);
		id->remote_id = request_id;
		id->service_id = req.service_id;
		id->peer = *from;
		cm_peer_add_sidr(id);
		cm_id_enter(id, CM_ST_SIDR_REQ_RCVD);
		err = cm_offer(id, req.service_id,
			       &(struct cm_event){ .type = CM_EVENT_SIDR_REQ,
						   .sidr_req = &req,
						   .data = req.data,
						   .data_len = req.data_len });
	}
	if (!err)
		return;
	rep.status = err == -ENOENT ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECT;
	put_rep(answer, wire_get(mad, MAD_TID), request_id, req.service_id, &rep);
	cm_reply_once(p, from, answer);
	if (id)
		cm_id_free(id);
}

static void receive_rep(struct cm_port *p, const u8 *mad)
{
	struct cm_id *id = cm_id_find(p->cm, wire_get(mad, CM_SIDR_REP_REQUEST_ID));
	struct cm_sidr_rep rep = {
		.status = wire_get(mad, CM_SIDR_REP_STATUS),
		.qpn = wire_get(mad, CM_SIDR_REP_QPN),
		.qkey = wire_get(mad, CM_SIDR_REP_QKEY),
		.data = wire_cbytes(mad, CM_SIDR_REP_PRIVATE_DATA),
		.data_len = CM_SIDR_REP_PRIVATE_DATA_LEN,
	};

	if (!id || id->state != CM_ST_SIDR_REQ_SENT) {
		cm_count(p->cm, UNEXPECTED);
		return;
	}
	cm_answered(id);
	cm_id_enter(id, CM_ST_IDLE);
	cm_id_notify(id,
		     &(struct cm_event){
			     .type = CM_EVENT_SIDR_REP, .sidr_rep = &rep, .data = rep.data, .data_len = rep.data_len });
}

void cm_sidr_receive(struct cm_port *p, const u8 *mad, const struct mad_addr *from)
{
	if (wire_get(mad, MAD_ATTR_ID) == CM_ATTR_SIDR_REQ)
		receive_req(p, mad, from);
	else
		receive_rep(p, mad);
}
