// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Address and route resolution: ARP or neighbour discovery over IPoIB, and PathRecord queries. */
#include <errno.h>

#include "emu/rdmacm/rdma_internal.h"

#define HOP_LIMIT   64
#define PACKET_LIFE 16 /* code: 268 ms, as the kernel assumes on Ethernet */

/* ---- addresses ---- */

/* The destination's GID is known without a query. */
static int resolved_at_once(struct rdma_id *id, const struct wire_gid *dgid)
{
	id->dgid = *dgid;
	rdma_id_resolved_later(id, RDMA_ADDR_QUERY);
	return 0;
}

static void on_neighbour(void *ctx, int status, const struct wire_gid *gid)
{
	struct rdma_id *id = ctx;

	id->resolving = NULL;
	if (!status)
		id->dgid = *gid;
	rdma_addr_resolved(id, status);
}

/* The port's GID for the address @a. */
static const struct wire_gid *own_gid(const struct rdma_port *p, const union rdma_sockaddr *a)
{
	struct ip_addr ip = rdma_sockaddr_ip(a);
	struct wire_gid gid = wire_gid_from_bytes(ip.raw);

	return &p->wire->attr.gid[wire_port_is_ethernet(p->wire) ? wire_port_gid_index(p->wire, &gid, 0) : 0];
}

/* 127.0.0.1 is the own host; on Ethernet other addresses of 127/8 may be peers. */
static bool means_own(struct rdma_id *id, const struct ip_addr *to)
{
	const struct rdma_port *p = id->port ? id->port : rdma_host_active(id->host);

	if (ip_addr_is_any(to))
		return true;
	if (!ip_addr_is_loopback(to))
		return false;
	return !wire_port_is_ethernet(p->wire) || !ip_addr_is_v4(to) || ip_addr_get_v4(to) == INADDR_LOOPBACK;
}

/* The port through which the network of @to is reached. */
static struct rdma_port *resolve_route(struct rdma_id *id, const struct ip_addr *to)
{
	struct rdma_host *h = id->host;
	u8 i;

	if (id->port)
		return id->port;
	if (ip_addr_is_multicast(to))
		return rdma_host_active(h);
	for (i = 0; i < h->nports; i++)
		if (ipif_reaches(h->port[i].ip, to))
			return &h->port[i];
	return NULL;
}

/* As the kernel's cma_resolve_loopback(): any address and 127.0.0.1 bind a device at once. */
static int resolve_own(struct rdma_id *id, const struct ip_addr *to)
{
	u16 port = rdma_sockaddr_port(&id->src);
	struct ip_addr loopback = *to;

	if (ip_addr_is_any(to))
		loopback = id->dst.sa.sa_family == AF_INET ? ip_addr_v4(INADDR_LOOPBACK)
							   : (struct ip_addr){ .raw = { [15] = 1 } };
	if (!id->port)
		id->port = rdma_host_active(id->host);
	if (rdma_sockaddr_is_any(&id->src))
		rdma_sockaddr_set_ip(&id->src, &loopback, port);
	id->found.src = id->src;
	id->found.port = id->port;
	return resolved_at_once(id, own_gid(id->port, &id->dst));
}

/* The ID gets its source address and its device when the address is resolved. */
static int resolve_ip(struct rdma_id *id, u32 timeout_ms)
{
	struct ip_addr to = rdma_sockaddr_ip(&id->dst);
	struct rdma_port *own = rdma_host_port_of(id->host, &to), *p;
	const struct ip_addr *source;

	if (!own && means_own(id, &to))
		return resolve_own(id, &to);
	p = own && !id->port ? own : resolve_route(id, &to);
	source = p ? ipif_source(p->ip, &to) : NULL;
	if (!p || (!source && !own) || (!own && !ip_addr_is_multicast(&to) && !ipif_reaches(p->ip, &to)))
		return -ENETUNREACH;
	if (rdma_sockaddr_is_any(&id->src))
		rdma_sockaddr_set_ip(&id->found.src, source ? source : &to, rdma_sockaddr_port(&id->src));
	id->found.port = p;
	if (own) /* the own host: no query */
		return resolved_at_once(id, own_gid(own, &id->dst));
	if (ip_addr_is_multicast(&to)) {
		struct wire_gid group = ipif_mgid(p->ip, &to);

		return resolved_at_once(id, &group);
	}
	if (wire_port_is_ethernet(p->wire)) { /* the host's kernel resolves neighbours */
		struct wire_gid gid = wire_gid_from_bytes(to.raw);

		return resolved_at_once(id, &gid);
	}
	id->resolving = ipif_resolve(p->ip, &to, timeout_ms, on_neighbour, id);
	if (!id->resolving)
		return -ENOMEM;
	id->state = RDMA_ADDR_QUERY;
	return 0;
}

/* The address of an AF_IB destination is its GID. */
static int resolve_ib(struct rdma_id *id)
{
	struct wire_gid dgid = wire_gid_from_bytes(id->dst.ib.sib_addr.sib_raw);

	if (!id->port)
		id->port = rdma_host_active(id->host);
	if (rdma_sockaddr_is_any(&id->dst) || rdma_sockaddr_is_loopback(&id->dst))
		dgid = id->port->wire->attr.gid[0];
	if (rdma_sockaddr_is_any(&id->src))
		memcpy(id->src.ib.sib_addr.sib_raw, id->port->wire->attr.gid[0].raw, sizeof(dgid.raw));
	id->src.ib.sib_pkey = (__force __typeof__(id->src.ib.sib_pkey))cpu_to_be16(ipif_pkey(id->port->ip));
	id->found.src = id->src;
	id->found.port = id->port;
	return resolved_at_once(id, &dgid);
}

static int bind_source(struct rdma_id *id, const union rdma_sockaddr *src, const union rdma_sockaddr *dst)
{
	union rdma_sockaddr any = { .sa.sa_family = dst->sa.sa_family };

	if (src && rdma_sockaddr_len(src))
		return rdma_id_bind(id, src);
	if (dst->sa.sa_family == AF_IB) {
		any.ib.sib_pkey = dst->ib.sib_pkey;
		any.ib.sib_sid = dst->ib.sib_sid;
		any.ib.sib_sid_mask = dst->ib.sib_sid_mask;
		rdma_sockaddr_set_port(&any, 0);
	}
	return rdma_id_bind(id, &any);
}

int rdma_id_resolve_addr(struct rdma_id *id, const union rdma_sockaddr *src, const union rdma_sockaddr *dst,
			 u32 timeout_ms)
{
	int err = 0;

	if (!rdma_sockaddr_len(dst))
		return -EAFNOSUPPORT;
	if (id->state == RDMA_IDLE)
		err = bind_source(id, src, dst);
	if (err)
		return err;
	if (id->state != RDMA_BOUND || id->src.sa.sa_family != dst->sa.sa_family)
		return -EINVAL;
	id->dst = *dst;
	if (id->host->unplugged)
		return rdma_sockaddr_is_ip(dst) && !rdma_sockaddr_is_any(dst) && !rdma_sockaddr_is_loopback(dst)
			       ? -ENETUNREACH
			       : -ENODEV;
	id->found.src = id->src;
	return dst->sa.sa_family == AF_IB ? resolve_ib(id) : resolve_ip(id, timeout_ms);
}

/* ---- routes ---- */

static void on_path(void *ctx, int status, u16 sa_status, const struct sa_path *path)
{
	struct rdma_id *id = ctx;

	id->routing = NULL;
	if (status) {
		id->state = RDMA_ADDR_RESOLVED;
		(void)rdma_id_notify(id, RDMA_EVENT_ROUTE_ERROR, status == -ENOENT ? -EINVAL : status);
		return;
	}
	id->path = *path;
	id->has_path = true;
	id->state = RDMA_ROUTE_RESOLVED;
	(void)rdma_id_notify(id, RDMA_EVENT_ROUTE_RESOLVED, 0);
}

/* Without a subnet manager the path derives from the port and the addresses. */
static int route_ethernet(struct rdma_id *id)
{
	const struct wire_port_attr *attr = &id->port->wire->attr;

	id->path = (struct sa_path){
		.sgid = *own_gid(id->port, &id->src),
		.dgid = id->dgid,
		.reversible = true,
		.hop_limit = HOP_LIMIT,
		.traffic_class = id->tos,
		.pkey = WIRE_PKEY_DEFAULT_FULL,
		.mtu = attr->mtu_active,
		.rate = WIRE_RATE_10,
		.packet_life = PACKET_LIFE,
		.roce = attr->roce_version,
	};
	id->has_path = true;
	rdma_id_resolved_later(id, RDMA_ROUTE_QUERY);
	return 0;
}

int rdma_id_resolve_route(struct rdma_id *id, u32 timeout_ms)
{
	if (!timeout_ms || id->state != RDMA_ADDR_RESOLVED || !id->port)
		return -EINVAL;
	if (wire_port_is_ethernet(id->port->wire))
		return route_ethernet(id);
	id->routing =
		sa_path_get_service(id->port->sa, &id->port->wire->attr.gid[0], &id->dgid, ipif_pkey(id->port->ip),
				    rdma_id_service(id, &id->dst), -1, timeout_ms, on_path, id);
	if (!id->routing)
		return -ENOMEM;
	id->state = RDMA_ROUTE_QUERY;
	return 0;
}

int rdma_id_set_path(struct rdma_id *id, const struct sa_path *path)
{
	if (id->state != RDMA_ADDR_RESOLVED)
		return -EINVAL;
	id->path = *path;
	id->has_path = true;
	id->state = RDMA_ROUTE_RESOLVED;
	return rdma_id_notify(id, RDMA_EVENT_ROUTE_RESOLVED, 0);
}
