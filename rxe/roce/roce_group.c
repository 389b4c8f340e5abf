// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast on the UDP sockets of a RoCEv2 port (IBTA A17.5): one socket per group, bound to the group's address. The
 * sockets are created at start, before the seccomp filter forbids that, and stay bound to their group: a port can join
 * ROCE_GROUPS groups in its lifetime.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rxe/roce/roce_internal.h"

static void on_rx(struct loop_fd *w, u32 events, struct now now)
{
	roce_recv(container_of(w, struct roce_endpoint, rx));
}

static bool is_group(const struct wire_gid *gid)
{
	struct ip_addr ip = ip_addr_of_gid(gid);

	return ip_addr_is_multicast(&ip);
}

static void set_options(int fd, bool v4)
{
	int on = 1;

	/* other daemons of the machine may be members, too */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	roce_socket_options(fd, v4);
}

/* Half of the sockets for each address family, if the port has both. */
void roce_groups_open(struct roce_port *rp)
{
	u32 i;

	for (i = 0; i < ROCE_GROUPS; i++) {
		const struct roce_endpoint *ep = &rp->ep[i % rp->neps];
		struct roce_endpoint *g = &rp->group[i];
		bool v4 = wire_gid_is_v4(&ep->gid);

		g->port = rp;
		g->own = ep;
		g->rx = (struct loop_fd){
			.fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .fn = on_rx
		};
		if (g->rx.fd >= 0)
			set_options(g->rx.fd, v4);
	}
}

void roce_groups_close(struct roce_port *rp)
{
	u32 i;

	for (i = 0; i < ROCE_GROUPS; i++) {
		loop_fd_del(&rp->group[i].rx);
		if (rp->group[i].rx.fn && rp->group[i].rx.fd >= 0)
			close(rp->group[i].rx.fd);
	}
}

/*
 * Whether members on other adapters are reachable. A GID that is no IP group has members on this adapter only, and so
 * has a group of an address family that the port has no address of: attaching to it succeeds, as to any MGID in the
 * kernel's rxe.
 */
static bool is_on_network(const struct roce_port *rp, const struct wire_gid *mgid)
{
	u32 i;

	for (i = 0; i < rp->neps; i++)
		if (wire_gid_is_v4(&rp->ep[i].gid) == wire_gid_is_v4(mgid))
			return is_group(mgid);
	return false;
}

/* The socket bound to @mgid, or an unbound one. */
static struct roce_endpoint *group_find(struct roce_port *rp, const struct wire_gid *mgid)
{
	struct roce_endpoint *spare = NULL;
	u32 i;

	for (i = 0; i < ROCE_GROUPS; i++) {
		struct roce_endpoint *g = &rp->group[i];

		if (wire_gid_equal(&g->gid, mgid))
			return g;
		if (wire_gid_is_zero(&g->gid) && g->rx.fd >= 0 && wire_gid_is_v4(&g->own->gid) == wire_gid_is_v4(mgid))
			spare = g;
	}
	return spare;
}

static int membership(const struct roce_endpoint *g, bool member)
{
	int err;

	if (wire_gid_is_v4(&g->gid)) {
		struct ip_mreq req = { .imr_multiaddr.s_addr = htonl(wire_gid_v4(&g->gid)),
				       .imr_interface.s_addr = htonl(wire_gid_v4(&g->own->gid)) };

		err = setsockopt(g->rx.fd, IPPROTO_IP, member ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &req,
				 sizeof(req));
	} else {
		struct ipv6_mreq req = { .ipv6mr_interface = g->own->scope };

		memcpy(&req.ipv6mr_multiaddr, g->gid.raw, 16);
		err = setsockopt(g->rx.fd, IPPROTO_IPV6, member ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &req,
				 sizeof(req));
	}
	return err ? -errno : 0;
}

int roce_group(struct roce_port *rp, const struct wire_gid *mgid, bool member)
{
	struct roce_endpoint *g;
	union ip_sockaddr a;
	socklen_t len;
	int err;

	if (!is_on_network(rp, mgid))
		return 0;
	g = group_find(rp, mgid);
	if (!g)
		return -ENOMEM; /* of ib_core's drivers for a group above their limit */
	if (!member) {
		loop_fd_del(&g->rx);
		return membership(g, false);
	}
	if (wire_gid_is_zero(&g->gid)) {
		len = roce_sockaddr_set(&a, mgid, WIRE_ROCE_PORT, g->own->scope);
		if (bind(g->rx.fd, &a.sa, len))
			return -errno;
		g->gid = *mgid;
	}
	err = membership(g, true);
	if (err)
		return err;
	return loop_fd_add(rp->loop, &g->rx, EPOLLIN) ? -errno : 0;
}
