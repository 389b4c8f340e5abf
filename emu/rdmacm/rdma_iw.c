// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_cm IDs on iWARP adapters (iw_cm): connections over TCP, without CM and SA. Events and status values are those
 * of the kernel's rdma_cm for iw_cm.
 */
#include <errno.h>

#include "emu/rdmacm/rdma_internal.h"

static struct hca_iw_addr addr_of(const union rdma_sockaddr *a)
{
	return (struct hca_iw_addr){ .ip = rdma_sockaddr_ip(a),
				     .port = rdma_sockaddr_port(a),
				     .scope = a->sa.sa_family == AF_INET6 ? a->in6.sin6_scope_id : 0 };
}

static void addr_set(union rdma_sockaddr *a, const struct hca_iw_addr *from)
{
	rdma_sockaddr_set_ip(a, &from->ip, from->port);
	if (a->sa.sa_family == AF_INET6)
		a->in6.sin6_scope_id = from->scope;
}

static struct rdma_conn conn_of(const struct hca_iw_event *ev)
{
	u16 len = min(ev->data_len, (u16)255);

	return (struct rdma_conn){
		.responder_resources = ev->ird, .initiator_depth = ev->ord, .data = ev->data, .data_len = (u8)len
	};
}

static struct hca_iw_param param_of(const struct rdma_conn *c)
{
	return (struct hca_iw_param){ .owner = c->owner,
				      .qpn = c->qpn,
				      .ird = c->responder_resources,
				      .ord = c->initiator_depth,
				      .data = c->data,
				      .data_len = c->data_len };
}

/* ---- events of connections ---- */

static enum rdma_event_type type_of_reply(int status)
{
	switch (status) {
	case 0:
		return RDMA_EVENT_ESTABLISHED;
	case -ECONNREFUSED:
	case -ECONNRESET:
		return RDMA_EVENT_REJECTED;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return RDMA_EVENT_UNREACHABLE;
	default:
		return RDMA_EVENT_CONNECT_ERROR;
	}
}

static int iw_on_event(void *ctx, struct hca_iw_conn *conn, const struct hca_iw_event *ev)
{
	struct rdma_id *id = ctx;
	struct rdma_event out = { .type = RDMA_EVENT_ESTABLISHED, .status = ev->status, .conn = conn_of(ev) };

	if (ev->type == HCA_IW_CLOSED) {
		rdma_id_disconnected(id, 0);
		return 0;
	}
	if (ev->type == HCA_IW_REPLY) {
		out.type = type_of_reply(ev->status);
		addr_set(&id->src, &ev->local);
	}
	return id->fn(id->ctx, id, &out);
}

static int on_request(void *ctx, struct hca_iw_conn *conn, const struct hca_iw_event *ev)
{
	struct rdma_id *listener = ctx, *id;
	struct rdma_event out = { .type = RDMA_EVENT_CONNECT_REQUEST, .conn = conn_of(ev) };
	int err;

	id = rdma_id_create(listener->host, listener->ps, listener->type, listener->fn, NULL);
	if (!id)
		return -ENOMEM;
	id->port = rdma_host_active(listener->host);
	id->state = RDMA_CONNECT;
	addr_set(&id->src, &ev->local);
	addr_set(&id->dst, &ev->remote);
	id->iw = conn;
	out.request = id;
	id->host->iw->own(conn, iw_on_event, id);
	err = listener->fn(listener->ctx, listener, &out);
	if (!err)
		return 0;
	id->iw = NULL; /* the caller rejects the connection and frees it */
	id->host->iw->own(conn, NULL, NULL);
	rdma_id_destroy(id);
	return err;
}

/* ---- requests of the user ---- */

/* Replaces the any and loopback addresses by the host's own of that family. False if it has none. */
static bool own_addr(const struct rdma_id *id, struct ip_addr *a)
{
	const struct ipif *ip = (id->port ? id->port : rdma_host_active(id->host))->ip;
	const struct ip_addr *own = ipif_source(ip, a);

	if (ipif_has(ip, a) || (!ip_addr_is_any(a) && !ip_addr_is_loopback(a)))
		return true;
	if (own)
		*a = *own;
	return own;
}

/* Of 127/8 only 127.0.0.1 is replaced in a destination: the others may be peers. */
static bool peer_addr(const struct rdma_id *id, struct ip_addr *a)
{
	if (ip_addr_is_loopback(a) && ip_addr_is_v4(a) && ip_addr_get_v4(a) != INADDR_LOOPBACK)
		return true;
	return own_addr(id, a);
}

int rdma_iw_listen(struct rdma_id *id)
{
	struct hca_iw_addr addr[2] = { addr_of(&id->src), addr_of(&id->src) };
	u32 n = 0;

	if (!rdma_sockaddr_is_ip(&id->src) || id->type != HCA_QPT_RC)
		return -EOPNOTSUPP;
	if (own_addr(id, &addr[0].ip))
		n++;
	addr[n].ip = ip_addr_v4(INADDR_ANY);
	if (id->src.sa.sa_family == AF_INET6 && rdma_sockaddr_is_any(&id->src) && !id->v6only &&
	    own_addr(id, &addr[n].ip)) /* both families */
		n++;
	if (!n && !rdma_sockaddr_is_any(&id->src)) /* a wildcard is that of no address, as for the kernel's TCP */
		return -EADDRNOTAVAIL;
	return id->host->iw->listen(id->host->hca, addr, n, on_request, id, &id->iw_listener);
}

int rdma_iw_connect(struct rdma_id *id, const struct rdma_conn *conn)
{
	struct hca_iw_addr src = addr_of(&id->src), dst = addr_of(&id->dst);
	struct hca_iw_param p = param_of(conn);
	int err;

	if (!rdma_sockaddr_is_ip(&id->dst) || id->type != HCA_QPT_RC)
		return -EOPNOTSUPP;
	if (!own_addr(id, &src.ip) || !peer_addr(id, &dst.ip))
		return -EADDRNOTAVAIL;
	if (!id->chosen_port)
		src.port = 0;
	err = id->host->iw->connect(id->host->hca, &src, &dst, &p, iw_on_event, id, &id->iw);
	if (err)
		return err;
	id->qpn = conn->qpn;
	id->state = RDMA_CONNECT;
	return 0;
}

int rdma_iw_accept(struct rdma_id *id, const struct rdma_conn *conn)
{
	struct hca_iw_param p;
	int err;

	if (id->state != RDMA_CONNECT || !id->iw)
		return -EINVAL;
	if (conn) {
		p = param_of(conn);
		id->qpn = conn->qpn;
	}
	err = conn ? id->host->iw->accept(id->iw, &p) : -EINVAL;
	if (err)
		(void)rdma_iw_reject(id, NULL, 0);
	return err;
}

int rdma_iw_reject(struct rdma_id *id, const u8 *data, u8 len)
{
	return id->iw ? id->host->iw->reject(id->iw, data, len) : -EINVAL;
}

int rdma_iw_disconnect(struct rdma_id *id)
{
	if (!id->iw)
		return -EINVAL;
	(void)id->host->iw->disconnect(id->iw); /* it may have ended already */
	return 0;
}

void rdma_iw_destroy(struct rdma_id *id)
{
	if (id->iw_listener)
		id->host->iw->unlisten(id->iw_listener);
	if (id->iw)
		id->host->iw->destroy(id->iw);
}

/* As the kernel's iw_cm_init_qp_attr(): the transport moves the QP to RTS, for which no attributes are set. */
int rdma_iw_qp_attr(const struct rdma_id *id, enum hca_qp_state state, struct hca_qp_attr *a, u32 *mask)
{
	a->port = id->port->num;
	*mask = HCA_QP_PORT;
	if (id->iw_listener)
		return -EINVAL;
	if (id->iw && state != HCA_QPS_INIT && state != HCA_QPS_RTR)
		return state == HCA_QPS_RTS ? 0 : -EINVAL;
	if (id->iw)
		a->access = HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ;
	*mask |= HCA_QP_STATE | HCA_QP_ACCESS_FLAGS;
	return 0;
}
