// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rdma_cm IDs: create, destroy, bind and port spaces. */
#include <errno.h>
#include <stdlib.h>

#include "emu/rdmacm/rdma_internal.h"

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u /* as in net.ipv4.ip_local_port_range */

int rdma_id_notify(struct rdma_id *id, enum rdma_event_type type, int status)
{
	return id->fn(id->ctx, id, &(struct rdma_event){ .type = type, .status = status });
}

/* Changes the state with the event, so that the next call sees it. */
static void id_resolved(struct loop_task *t, struct now now)
{
	struct rdma_id *id = container_of(t, struct rdma_id, later);

	if (id->state == RDMA_ADDR_QUERY) {
		rdma_addr_resolved(id, 0);
		return;
	}
	id->state = RDMA_ROUTE_RESOLVED;
	(void)rdma_id_notify(id, RDMA_EVENT_ROUTE_RESOLVED, 0);
}

/* As the kernel's addr_handler(): the ID has a device from now on, or none as before. */
void rdma_addr_resolved(struct rdma_id *id, int status)
{
	if (!status && !id->port && id->host->unplugged)
		status = -ENODEV;
	if (!status) {
		id->src = id->found.src;
		id->port = id->found.port;
	}
	id->state = status ? RDMA_BOUND : RDMA_ADDR_RESOLVED;
	(void)rdma_id_notify(id, status ? RDMA_EVENT_ADDR_ERROR : RDMA_EVENT_ADDR_RESOLVED, status);
}

void rdma_id_resolved_later(struct rdma_id *id, enum rdma_state querying)
{
	id->state = querying;
	loop_task_queue(id->host->loop, &id->later);
}

struct rdma_id *rdma_id_create(struct rdma_host *h, enum rdma_space ps, enum hca_qp_type type, rdma_event_fn *fn,
			       void *ctx)
{
	struct rdma_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->host = h;
	id->ps = ps;
	id->type = type;
	id->fn = fn;
	id->ctx = ctx;
	id->psn = cm_psn(h->cm);
	list_init(&id->mcasts);
	list_init(&id->port_link);
	loop_task_init(&id->later, id_resolved);
	list_add(&h->ids, &id->link);
	return id;
}

void rdma_id_destroy(struct rdma_id *id)
{
	loop_task_cancel(&id->later);
	if (id->resolving)
		ipif_query_cancel(id->resolving);
	if (id->routing)
		sa_query_cancel(id->routing);
	while (!list_empty(&id->mcasts))
		rdma_mcast_leave(list_first(&id->mcasts, struct rdma_mcast, link));
	if (id->listener)
		cm_unlisten(id->listener);
	if (id->cm)
		cm_id_destroy(id->cm);
	rdma_iw_destroy(id);
	list_del(&id->port_link);
	list_del(&id->link);
	free(id);
}

void rdma_id_set_ctx(struct rdma_id *id, void *ctx)
{
	id->ctx = ctx;
}

/* ---- accessors ---- */

enum hca_qp_type rdma_id_qp_type(const struct rdma_id *id)
{
	return id->type;
}

enum rdma_space rdma_id_space(const struct rdma_id *id)
{
	return id->ps;
}

u8 rdma_id_state(const struct rdma_id *id)
{
	static const u8 states[] = {
		[RDMA_IDLE] = 0,          [RDMA_BOUND] = 7,       [RDMA_ADDR_QUERY] = 1,
		[RDMA_ADDR_RESOLVED] = 2, [RDMA_ROUTE_QUERY] = 3, [RDMA_ROUTE_RESOLVED] = 4,
		[RDMA_CONNECT] = 5,       [RDMA_DISCONNECT] = 6,  [RDMA_LISTEN] = 8,
	};

	return states[id->state];
}

u32 rdma_id_qpn(const struct rdma_id *id)
{
	return id->qpn;
}

const union rdma_sockaddr *rdma_id_src(const struct rdma_id *id)
{
	return &id->src;
}

const union rdma_sockaddr *rdma_id_dst(const struct rdma_id *id)
{
	return &id->dst;
}

u8 rdma_id_port(const struct rdma_id *id)
{
	return id->port ? id->port->num : 0;
}

u16 rdma_id_pkey(const struct rdma_id *id)
{
	if (id->has_path)
		return id->path.pkey;
	return id->port ? ipif_pkey(id->port->ip) : 0;
}

void rdma_id_gids(const struct rdma_id *id, struct wire_gid *sgid, struct wire_gid *dgid)
{
	*sgid = *dgid = (struct wire_gid){ { 0 } };
	if (!id->port)
		return;
	*sgid = id->has_path ? id->path.sgid : id->port->wire->attr.gid[0];
	*dgid = id->has_path ? id->path.dgid : id->dgid;
}

const struct sa_path *rdma_id_path(const struct rdma_id *id)
{
	return id->has_path ? &id->path : NULL;
}

u64 rdma_id_service(const struct rdma_id *id, const union rdma_sockaddr *a)
{
	if (a->sa.sa_family == AF_IB)
		return be64_to_cpu((__force __be64)a->ib.sib_sid);
	return wire_cm_service_id(id->ps, rdma_sockaddr_port(a));
}

struct hca_av rdma_path_av(const struct rdma_port *p, const struct sa_path *path)
{
	return (struct hca_av){
		.dlid = path->dlid,
		.sl = path->sl,
		.src_path_bits = path->slid & ((1u << p->wire->attr.lmc) - 1),
		.static_rate = path->rate,
		.port = p->num,
		.grh = sa_path_has_grh(path, p->wire),
		.sgid_index = wire_port_gid_index(p->wire, &path->sgid, path->roce),
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.flow_label = path->flow_label,
		.dgid = path->dgid,
	};
}

u32 rdma_id_space_qkey(const struct rdma_id *id)
{
	const struct sa_mcmember *broadcast = id->port ? ipif_broadcast(id->port->ip) : NULL;

	if (id->qkey)
		return id->qkey;
	return id->ps == RDMA_SPACE_IPOIB && broadcast ? broadcast->qkey : RDMA_UDP_QKEY;
}

int rdma_id_set_reuse(struct rdma_id *id, bool on)
{
	if (id->state != RDMA_IDLE && (!on || id->state == RDMA_LISTEN))
		return -EINVAL;
	id->reuse = on;
	return 0;
}

int rdma_id_set_v6only(struct rdma_id *id, bool on)
{
	if (id->state != RDMA_IDLE && id->state != RDMA_BOUND)
		return -EINVAL;
	id->v6only = on;
	return 0;
}

void rdma_id_set_tos(struct rdma_id *id, u8 tos)
{
	id->tos = tos;
}

int rdma_id_set_ack_timeout(struct rdma_id *id, u8 code)
{
	if (id->type != HCA_QPT_RC)
		return -EINVAL;
	id->ack_timeout = code & 31;
	id->ack_timeout_set = true;
	return 0;
}

/* ---- port spaces ---- */

/* The port space: of an AF_IB address, by its service ID; otherwise that of the id. 0: a
 * service ID outside the port spaces. */
static enum rdma_space space_of(const struct rdma_id *id, const union rdma_sockaddr *a)
{
	static const enum rdma_space spaces[] = { RDMA_SPACE_TCP, RDMA_SPACE_UDP, RDMA_SPACE_IB };
	u64 sid, mask;
	size_t i;

	if (a->sa.sa_family != AF_IB)
		return id->ps;
	mask = be64_to_cpu((__force __be64)a->ib.sib_sid_mask);
	sid = be64_to_cpu((__force __be64)a->ib.sib_sid) & mask;
	for (i = 0; i < ARRAY_SIZE(spaces); i++)
		if ((sid & CM_SERVICE_ID_PROTO_MASK) == (u64)spaces[i] << 16)
			return spaces[i];
	return 0;
}

static struct list *owners_of_port(struct rdma_id *id)
{
	return &id->host->owners[rdma_sockaddr_port(&id->src) % RDMA_OWNERS];
}

static bool is_other_of_port(const struct rdma_id *id, const struct rdma_id *other)
{
	return other != id && space_of(other, &other->src) == space_of(id, &id->src) &&
	       rdma_sockaddr_port(&other->src) == rdma_sockaddr_port(&id->src);
}

/*
 * Whether another id has the port number: as the kernel's cma_check_port(), -EADDRNOTAVAIL if one of both has any
 * address, -EADDRINUSE if they have the same. @reuse: ids may share it that all have REUSEADDR.
 */
static int port_check(struct rdma_id *id, bool reuse)
{
	const struct rdma_id *other;

	list_for_each (other, owners_of_port(id), port_link) {
		if (!is_other_of_port(id, other) || (reuse && other->reuse))
			continue;
		if (id->src.sa.sa_family != other->src.sa.sa_family && (id->v6only || other->v6only))
			continue;
		if (!id->port || !other->port)
			return -EADDRNOTAVAIL;
		if (rdma_sockaddr_same(&id->src, &other->src))
			return -EADDRINUSE;
	}
	return 0;
}

static int take_ephemeral(struct rdma_id *id)
{
	u32 start = (u32)(rng_next(&id->host->rng) % EPHEMERAL_COUNT), i;

	for (i = 0; i < EPHEMERAL_COUNT; i++) {
		rdma_sockaddr_set_port(&id->src, (u16)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT));
		if (!port_check(id, false))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static int take_port(struct rdma_id *id)
{
	int err;

	if (!space_of(id, &id->src)) /* a service ID outside the port spaces is used unchanged */
		return 0;
	err = rdma_sockaddr_port(&id->src) ? port_check(id, id->reuse) : take_ephemeral(id);
	if (!err)
		list_add(owners_of_port(id), &id->port_link);
	return err;
}

/* As in the kernel's cma_any_addr(), a loopback address that is not the host's own is treated as
 * the any address: it binds no device. */
static int bind_device(struct rdma_id *id, const union rdma_sockaddr *a)
{
	struct ip_addr ip;

	if (rdma_sockaddr_is_any(a))
		return 0;
	if (rdma_sockaddr_is_ip(a)) {
		ip = rdma_sockaddr_ip(a);
		id->port = rdma_host_port_of(id->host, &ip);
		if (id->port)
			return 0;
	}
	if (rdma_sockaddr_is_loopback(a))
		return 0;
	if (a->sa.sa_family == AF_IB) {
		struct wire_gid gid = wire_gid_from_bytes(a->ib.sib_addr.sib_raw);

		id->port = rdma_host_port_by_gid(id->host, &gid);
		return id->port ? 0 : -ENODEV;
	}
	return -EADDRNOTAVAIL;
}

int rdma_id_bind(struct rdma_id *id, const union rdma_sockaddr *addr)
{
	int err;

	if (!rdma_sockaddr_len(addr))
		return -EAFNOSUPPORT;
	if (id->state != RDMA_IDLE)
		return -EINVAL;
	err = bind_device(id, addr);
	if (err)
		return err;
	id->src = *addr;
	id->chosen_port = rdma_sockaddr_port(addr);
	err = take_port(id);
	if (err) {
		id->port = NULL;
		id->src.sa.sa_family = AF_UNSPEC;
		return err;
	}
	id->state = RDMA_BOUND;
	return 0;
}

int rdma_id_listen(struct rdma_id *id)
{
	union rdma_sockaddr any = { .in.sin_family = AF_INET };
	u64 mask = ~0ull;
	int err = id->state == RDMA_IDLE ? rdma_id_bind(id, &any) : 0;

	if (err)
		return err;
	if (id->state != RDMA_BOUND)
		return -EINVAL;
	if (!list_empty(&id->port_link) && id->reuse) { /* a listener shares its port with none */
		err = port_check(id, false);
		if (err)
			return err;
		id->reuse = false;
	}
	if (id->src.sa.sa_family == AF_IB && list_empty(&id->port_link))
		mask = be64_to_cpu((__force __be64)id->src.ib.sib_sid_mask);
	if (list_empty(&id->port_link) &&
	    !((rdma_id_service(id, &id->src) ^ CM_SERVICE_ID_IP_PREFIX) & mask & CM_SERVICE_ID_IP_MASK))
		return -EADDRINUSE; /* a range that includes the port spaces would take other users' requests */
	if (id->host->iw)
		err = rdma_iw_listen(id);
	else
		err = cm_listen(id->host->cm, rdma_id_service(id, &id->src) & mask, mask, rdma_id_requested, id,
				&id->listener);
	if (!err)
		id->state = RDMA_LISTEN;
	return err;
}
