// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Formats of CM messages. IBTA 12.6. */
#include "emu/cm/cm_internal.h"

#define PACKET_LIFE_MASK 0x3f

void cm_mad_init(u8 *mad, u16 attr, u64 tid)
{
	memset(mad, 0, MAD_SIZE);
	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_CLASS, MAD_CLASS_CM);
	wire_set(mad, MAD_CLASS_VERSION, MAD_CLASS_VERSION_CM);
	wire_set(mad, MAD_METHOD, MAD_METHOD_SEND);
	wire_set(mad, MAD_TID, tid);
	wire_set(mad, MAD_ATTR_ID, attr);
}

void cm_mad_ids(u8 *mad, const struct cm_id *id)
{
	wire_set(mad, CM_LOCAL_COMM_ID, id->local_id);
	wire_set(mad, CM_REMOTE_COMM_ID, id->remote_id);
}

void cm_mad_private(u8 *mad, struct wire_field f, const u8 *data, u8 len)
{
	if (len)
		memcpy(wire_bytes(mad, f), data, len);
}

/* Local ACK timeout: the round trip and the CA's own delay. 12.7.34. */
u8 cm_ack_timeout(u8 ca_ack_delay, u8 packet_life)
{
	u8 there_and_back = (packet_life & PACKET_LIFE_MASK) + 1, sum;

	if (there_and_back >= ca_ack_delay)
		sum = there_and_back + (ca_ack_delay >= there_and_back - 1);
	else
		sum = ca_ack_delay + (there_and_back >= ca_ack_delay - 1);
	return min(sum, (u8)31);
}

struct mad_addr cm_path_addr(const struct cm_port *p, const struct sa_path *path)
{
	const struct wire_port *wire = mad_port_wire(p->mp);
	const struct wire_port_attr *attr = &wire->attr;

	return (struct mad_addr){
		.qpn = MAD_QPN_GSI,
		.qkey = MAD_QKEY_WELL_KNOWN,
		.lid = path->dlid,
		.sl = path->sl,
		.path_bits = path->slid & ((1u << attr->lmc) - 1),
		.grh = sa_path_has_grh(path, wire),
		.pkey_index = wire_port_pkey_index(wire, path->pkey),
		.gid_index = wire_port_gid_index(wire, &path->sgid, path->roce),
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.flow_label = path->flow_label,
		.gid = path->dgid,
	};
}

const struct cm_port *cm_path_port(const struct cm *cm, const struct sa_path *path)
{
	u8 i, k;

	for (i = 0; i < cm->nports; i++)
		for (k = 0; k < WIRE_PORT_GIDS; k++)
			if (wire_gid_equal(&mad_port_wire(cm->port[i].mp)->attr.gid[k], &path->sgid))
				return &cm->port[i];
	return NULL;
}

bool cm_path_lid_is_own(const struct cm_port *p, const struct sa_path *path)
{
	const struct wire_port_attr *attr = &mad_port_wire(p->mp)->attr;

	return path->slid && (path->slid ^ attr->lid) >> attr->lmc == 0;
}

u8 cm_roce_version(const struct cm_port *p, const struct mad_addr *from)
{
	return mad_port_wire(p->mp)->attr.gid_l2[from->gid_index % WIRE_PORT_GIDS].version;
}

/* ---- paths ---- */

#define PATH_FIELDS(M)                                                                                            \
	{                                                                                                         \
		.local_lid = M##_LOCAL_LID, .remote_lid = M##_REMOTE_LID, .local_gid = M##_LOCAL_GID,             \
		.remote_gid = M##_REMOTE_GID, .flow_label = M##_FLOW_LABEL, .rate = M##_PACKET_RATE,              \
		.tclass = M##_TCLASS, .hop_limit = M##_HOP_LIMIT, .sl = M##_SL, .subnet_local = M##_SUBNET_LOCAL, \
		.ack_timeout = M##_ACK_TIMEOUT                                                                    \
	}
const struct cm_path_fields cm_req_path = PATH_FIELDS(CM_REQ_PRIMARY), cm_lap_path = PATH_FIELDS(CM_LAP_ALT);

void cm_path_put(u8 *mad, const struct cm_path_fields *f, const struct sa_path *p, u8 ack_timeout)
{
	wire_set(mad, f->local_lid, p->slid);
	wire_set(mad, f->remote_lid, p->dlid);
	wire_copy_in(mad, f->local_gid, p->sgid.raw);
	wire_copy_in(mad, f->remote_gid, p->dgid.raw);
	wire_set(mad, f->flow_label, p->flow_label);
	wire_set(mad, f->rate, p->rate);
	wire_set(mad, f->tclass, p->traffic_class);
	wire_set(mad, f->hop_limit, p->hop_limit);
	wire_set(mad, f->sl, p->sl);
	wire_set(mad, f->subnet_local, p->hop_limit <= 1);
	wire_set(mad, f->ack_timeout, ack_timeout);
}

void cm_path_get(const u8 *mad, const struct cm_path_fields *f, struct sa_path *p)
{
	p->dlid = wire_get(mad, f->local_lid);
	p->slid = wire_get(mad, f->remote_lid);
	p->dgid = wire_gid_from_bytes(wire_cbytes(mad, f->local_gid));
	p->sgid = wire_gid_from_bytes(wire_cbytes(mad, f->remote_gid));
	p->flow_label = wire_get(mad, f->flow_label);
	p->rate = wire_get(mad, f->rate);
	p->traffic_class = wire_get(mad, f->tclass);
	p->hop_limit = wire_get(mad, f->hop_limit);
	p->sl = wire_get(mad, f->sl);
}

/* ---- REQ ---- */

void cm_mad_req(u8 *mad, const struct cm_id *id, const struct cm_req *req)
{
	cm_mad_init(mad, CM_ATTR_REQ, id->tid);
	wire_set(mad, CM_REQ_LOCAL_COMM_ID, id->local_id);
	wire_set(mad, CM_REQ_SERVICE_ID, req->service_id);
	wire_set(mad, CM_REQ_LOCAL_CA_GUID, id->cm->ca_guid);
	wire_set(mad, CM_REQ_LOCAL_QPN, req->qpn);
	wire_set(mad, CM_REQ_RESPONDER_RESOURCES, req->responder_resources);
	wire_set(mad, CM_REQ_INITIATOR_DEPTH, req->initiator_depth);
	wire_set(mad, CM_REQ_REMOTE_RESP_TIMEOUT, req->response_timeout);
	wire_set(mad, CM_REQ_TRANSPORT, req->transport);
	wire_set(mad, CM_REQ_FLOW_CONTROL, req->flow_control);
	wire_set(mad, CM_REQ_STARTING_PSN, req->psn);
	wire_set(mad, CM_REQ_LOCAL_RESP_TIMEOUT, req->response_timeout);
	wire_set(mad, CM_REQ_RETRY_COUNT, req->retry_count);
	wire_set(mad, CM_REQ_PKEY, req->pkey);
	wire_set(mad, CM_REQ_PATH_MTU, req->path.mtu);
	wire_set(mad, CM_REQ_RNR_RETRY_COUNT, req->rnr_retry_count);
	wire_set(mad, CM_REQ_MAX_CM_RETRIES, req->max_retries);
	wire_set(mad, CM_REQ_SRQ, req->srq);
	cm_path_put(mad, &cm_req_path, &req->path, id->qp.local_ack_timeout);
	cm_mad_private(mad, CM_REQ_PRIVATE_DATA, req->data, req->data_len);
}

void cm_req_parse(const u8 *mad, struct cm_req *req)
{
	u8 ack = wire_get(mad, CM_REQ_PRIMARY_ACK_TIMEOUT);

	*req = (struct cm_req){
		.service_id = wire_get(mad, CM_REQ_SERVICE_ID),
		.remote_ca_guid = wire_get(mad, CM_REQ_LOCAL_CA_GUID),
		.transport = (enum cm_transport)wire_get(mad, CM_REQ_TRANSPORT),
		.pkey = wire_get(mad, CM_REQ_PKEY),
		.qpn = wire_get(mad, CM_REQ_LOCAL_QPN),
		.psn = wire_get(mad, CM_REQ_STARTING_PSN),
		.responder_resources = wire_get(mad, CM_REQ_RESPONDER_RESOURCES),
		.initiator_depth = wire_get(mad, CM_REQ_INITIATOR_DEPTH),
		.retry_count = wire_get(mad, CM_REQ_RETRY_COUNT),
		.rnr_retry_count = wire_get(mad, CM_REQ_RNR_RETRY_COUNT),
		.response_timeout = wire_get(mad, CM_REQ_LOCAL_RESP_TIMEOUT),
		.max_retries = wire_get(mad, CM_REQ_MAX_CM_RETRIES),
		.flow_control = wire_get(mad, CM_REQ_FLOW_CONTROL),
		.srq = wire_get(mad, CM_REQ_SRQ),
		.data = wire_cbytes(mad, CM_REQ_PRIVATE_DATA),
		.data_len = CM_REQ_PRIVATE_DATA_LEN,
		.path = { .reversible = true,
			  .pkey = wire_get(mad, CM_REQ_PKEY),
			  .mtu = wire_get(mad, CM_REQ_PATH_MTU),
			  .packet_life = ack ? ack - 1 : 0 },
	};
	cm_path_get(mad, &cm_req_path, &req->path);
}

/* ---- REP, REJ ---- */

void cm_mad_rep(u8 *mad, const struct cm_id *id, const struct cm_rep *rep)
{
	cm_mad_init(mad, CM_ATTR_REP, id->tid);
	cm_mad_ids(mad, id);
	wire_set(mad, CM_REP_LOCAL_QPN, rep->qpn);
	wire_set(mad, CM_REP_STARTING_PSN, rep->psn);
	wire_set(mad, CM_REP_RESPONDER_RESOURCES, rep->responder_resources);
	wire_set(mad, CM_REP_INITIATOR_DEPTH, rep->initiator_depth);
	wire_set(mad, CM_REP_TARGET_ACK_DELAY, id->cm->ack_delay);
	wire_set(mad, CM_REP_FAILOVER_ACCEPTED, CM_FAILOVER_UNSUPPORTED);
	wire_set(mad, CM_REP_FLOW_CONTROL, rep->flow_control);
	wire_set(mad, CM_REP_RNR_RETRY_COUNT, rep->rnr_retry_count);
	wire_set(mad, CM_REP_SRQ, rep->srq);
	wire_set(mad, CM_REP_LOCAL_CA_GUID, id->cm->ca_guid);
	cm_mad_private(mad, CM_REP_PRIVATE_DATA, rep->data, rep->data_len);
}

void cm_rep_parse(const u8 *mad, struct cm_rep *rep)
{
	*rep = (struct cm_rep){
		.qpn = wire_get(mad, CM_REP_LOCAL_QPN),
		.psn = wire_get(mad, CM_REP_STARTING_PSN),
		.responder_resources = wire_get(mad, CM_REP_RESPONDER_RESOURCES),
		.initiator_depth = wire_get(mad, CM_REP_INITIATOR_DEPTH),
		.rnr_retry_count = wire_get(mad, CM_REP_RNR_RETRY_COUNT),
		.flow_control = wire_get(mad, CM_REP_FLOW_CONTROL),
		.srq = wire_get(mad, CM_REP_SRQ),
		.data = wire_cbytes(mad, CM_REP_PRIVATE_DATA),
		.data_len = CM_REP_PRIVATE_DATA_LEN,
	};
}

/* A timeout REJ has the CA's GUID, because the receiver may not know the communication ID (12.6.7.2). */
void cm_mad_rej(u8 *mad, u32 local_id, u32 remote_id, u8 message, u16 reason, u64 ca_guid)
{
	wire_set(mad, CM_REJ_LOCAL_COMM_ID, local_id);
	wire_set(mad, CM_REJ_REMOTE_COMM_ID, remote_id);
	wire_set(mad, CM_REJ_MESSAGE, message);
	wire_set(mad, CM_REJ_REASON, reason);
	if (reason == CM_REJ_TIMEOUT) {
		wire_set(mad, CM_REJ_INFO_LEN, sizeof(ca_guid));
		wire_set(mad, WIRE_FIELD(CM_REJ_INFO.bit, 64), ca_guid);
	}
}
