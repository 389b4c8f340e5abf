// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * IP addressing in the private data of REQ and SIDR_REQ (annex A11): formatting, and matching of requests to listeners
 * by address and port.
 */
#include <errno.h>

#include "emu/rdmacm/rdma_internal.h"

u8 rdma_id_data_offset(const struct rdma_id *id)
{
	return id->dst.sa.sa_family == AF_IB ? 0 : RDMA_IP_OFFSET;
}

static void put_addr(u8 *p, struct wire_field f4, struct wire_field f16, const union rdma_sockaddr *a)
{
	struct ip_addr ip = rdma_sockaddr_ip(a);

	if (ip_addr_is_v4(&ip))
		wire_set(p, f4, ip_addr_get_v4(&ip));
	else
		wire_copy_in(p, f16, ip.raw);
}

void rdma_id_put_header(const struct rdma_id *id, u8 *p)
{
	memset(p, 0, RDMA_IP_OFFSET);
	wire_set(p, CM_IP_MAJOR, CM_IP_MAJOR_0);
	wire_set(p, CM_IP_VERSION, id->dst.sa.sa_family == AF_INET ? 4 : 6);
	wire_set(p, CM_IP_SRC_PORT, rdma_sockaddr_port(&id->src));
	put_addr(p, CM_IP_SRC_ADDR4, CM_IP_SRC_ADDR, &id->src);
	put_addr(p, CM_IP_DST_ADDR4, CM_IP_DST_ADDR, &id->dst);
}

static struct ip_addr get_addr(const u8 *p, struct wire_field f4, struct wire_field f16)
{
	struct ip_addr a = { { 0 } };

	if (wire_get(p, CM_IP_VERSION) == 4)
		return ip_addr_v4((u32)wire_get(p, f4));
	wire_copy_out(p, f16, a.raw);
	return a;
}

/* Whether the request of an IP user is for @listener. */
static bool for_address(const struct rdma_id *listener, const u8 *p)
{
	u8 version = wire_get(p, CM_IP_VERSION);
	struct ip_addr dst = get_addr(p, CM_IP_DST_ADDR4, CM_IP_DST_ADDR);
	struct ip_addr own = rdma_sockaddr_ip(&listener->src);

	if (wire_get(p, CM_IP_MAJOR) != CM_IP_MAJOR_0 || (version != 4 && version != 6))
		return false;
	if (listener->port)
		return ip_addr_equal(&dst, &own);
	if (listener->src.sa.sa_family == AF_INET)
		return version == 4;
	return version == 6 || !listener->v6only;
}

static void put_ib(union rdma_sockaddr *a, const struct wire_gid *gid, u64 sid, u16 pkey)
{
	memset(a, 0, sizeof(*a));
	a->ib.sib_family = AF_IB;
	a->ib.sib_pkey = (__force __typeof__(a->ib.sib_pkey))cpu_to_be16(pkey);
	memcpy(a->ib.sib_addr.sib_raw, gid->raw, sizeof(gid->raw));
	a->ib.sib_sid = (__force __typeof__(a->ib.sib_sid))cpu_to_be64(sid);
	a->ib.sib_sid_mask = (__force __typeof__(a->ib.sib_sid_mask))cpu_to_be64(~0ull);
}

static struct rdma_id *new_id(struct rdma_id *listener, const struct sa_path *path, u8 port, u64 sid, const u8 *data)
{
	struct rdma_id *id = rdma_id_create(listener->host, listener->ps, listener->type, listener->fn, NULL);

	if (!id)
		return NULL;
	id->port = &listener->host->port[port - 1];
	id->path = *path;
	id->has_path = true;
	id->dgid = path->dgid;
	id->state = RDMA_CONNECT;
	if (listener->src.sa.sa_family == AF_IB) {
		put_ib(&id->src, &path->sgid, sid, path->pkey);
		put_ib(&id->dst, &path->dgid, 0, path->pkey);
	} else {
		struct ip_addr src = get_addr(data, CM_IP_DST_ADDR4, CM_IP_DST_ADDR);
		struct ip_addr dst = get_addr(data, CM_IP_SRC_ADDR4, CM_IP_SRC_ADDR);

		rdma_sockaddr_set_ip(&id->src, &src, rdma_sockaddr_port(&listener->src));
		rdma_sockaddr_set_ip(&id->dst, &dst, (u16)wire_get(data, CM_IP_SRC_PORT));
	}
	return id;
}

static struct rdma_conn conn_of(const struct cm_event *ev, u8 offset)
{
	struct rdma_conn c = { .data = ev->data + offset, .data_len = ev->data_len - offset };

	if (!ev->req)
		return c;
	c.qpn = ev->req->qpn;
	/* the peer's initiator depth is the local limit of responder resources, and vice versa */
	c.responder_resources = ev->req->initiator_depth;
	c.initiator_depth = ev->req->responder_resources;
	c.retry_count = ev->req->retry_count;
	c.rnr_retry_count = ev->req->rnr_retry_count;
	c.flow_control = ev->req->flow_control;
	c.srq = ev->req->srq;
	return c;
}

int rdma_id_requested(void *ctx, struct cm_id *cm, const struct cm_event *ev)
{
	struct rdma_id *listener = ctx, *id;
	bool ib = listener->src.sa.sa_family == AF_IB, ud = ev->type == CM_EVENT_SIDR_REQ;
	const struct sa_path *path = ud ? &ev->sidr_req->path : &ev->req->path;
	u8 port = ud ? ev->sidr_req->port : ev->req->port;
	u64 sid = ud ? ev->sidr_req->service_id : ev->req->service_id;
	struct rdma_event out = { .type = RDMA_EVENT_CONNECT_REQUEST };
	int err;

	if ((listener->type == HCA_QPT_UD) != ud || (listener->port && listener->port->num != port) ||
	    (!ib && !for_address(listener, ev->data)))
		return -ENOENT;
	id = new_id(listener, path, port, sid, ev->data);
	if (!id)
		return -ENOMEM;
	id->cm = cm;
	cm_id_own(cm, rdma_id_connected, id);
	out.request = id;
	out.conn = conn_of(ev, ib ? 0 : RDMA_IP_OFFSET);
	if (ud)
		out.av = rdma_path_av(id->port, path);
	err = listener->fn(listener->ctx, listener, &out);
	if (err) {
		id->cm = NULL; /* the CM sends REJ and frees the ID */
		cm_id_own(cm, NULL, NULL);
		rdma_id_destroy(id);
	}
	return err == -ENOENT ? -EINVAL : err;
}
