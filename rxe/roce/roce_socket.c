// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* UDP sockets of a RoCEv2 port (IBTA A17.3, A17.9.2), and the interfaces and MTUs of its addresses. */
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rxe/roce/roce_internal.h"

#define SOCKET_BUFFER (16 << 20)
#define SPORT_FIRST   0xc000u /* source ports of RoCEv2 lie in the dynamic range. A17.9.2 */
#define SPORT_COUNT   0x3ff0u
#define SPORT_TRIES   64

static void find_device(struct roce_endpoint *ep)
{
	struct ip_addr ip = ip_addr_of_gid(&ep->gid);

	netdev_find(&ip, ep->device);
	ep->mtu = netdev_mtu(ep->device);
	ep->scope = if_nametoindex(ep->device);
}

u64 roce_guid(const struct wire_gid *addr)
{
	u64 a = 0, b = 0;
	u32 i;

	for (i = 0; i < 8; i++) { /* hash both halves; an IPv4 address is used as it is */
		a = a << 8 | addr->raw[i];
		b = b << 8 | addr->raw[8 + i];
	}
	if (wire_gid_is_v4(addr))
		a = b & 0xffffffff;
	else
		a = ((a ^ b) * 0x9e3779b97f4a7c15ull) >> 24;
	a &= 0xffffffffffull;
	return (a >> 24) << 40 | 0xfffe000000ull | (a & 0xffffff);
}

void roce_socket_options(int fd, bool v4)
{
	int on = 1;

	if (v4) {
		setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
		return;
	}
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
}

static void set_options(int fd, bool v4)
{
	int on = 1, size = SOCKET_BUFFER, df = IP_PMTUDISC_DO, df6 = IPV6_PMTUDISC_DO, ttl = ROCE_TTL;

	/* Best effort: without these options there are more system calls and more loss. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	roce_socket_options(fd, v4);
	if (v4) {
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
		setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
		return;
	}
	setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &df6, sizeof(df6));
	setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &ttl, sizeof(ttl));
}

static int open_bound(const struct roce_endpoint *ep, u16 port)
{
	union ip_sockaddr a;
	socklen_t len = roce_sockaddr_set(&a, &ep->gid, port, ep->scope);
	int fd = socket(a.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	set_options(fd, wire_gid_is_v4(&ep->gid));
	if (!bind(fd, &a.sa, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Selects the interface with the address for sent multicast. */
static void set_multicast(int fd, const struct roce_endpoint *ep)
{
	struct in_addr v4 = { htonl(wire_gid_v4(&ep->gid)) };

	if (wire_gid_is_v4(&ep->gid))
		setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &v4, sizeof(v4));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &ep->scope, sizeof(ep->scope));
}

/* Binds a free source port of the dynamic range. */
static int open_flow(struct roce_flow *f)
{
	u32 first = (u32)rng_next(&f->ep->port->rng), i;
	int fd = -EADDRINUSE;

	for (i = 0; i < SPORT_TRIES && fd == -EADDRINUSE; i++) {
		f->sport = (u16)(SPORT_FIRST + (first + i) % SPORT_COUNT);
		fd = open_bound(f->ep, f->sport);
	}
	if (fd >= 0)
		set_multicast(fd, f->ep);
	return fd;
}

static void on_rx(struct loop_fd *w, u32 events, struct now now)
{
	roce_recv(container_of(w, struct roce_endpoint, rx));
}

static void on_tx(struct loop_fd *w, u32 events, struct now now)
{
	struct roce_flow *f = container_of(w, struct roce_flow, fd);

	loop_fd_del(
		w); /* EPOLLOUT is armed only while the socket is full: else each packet sent would cause an event */
	roce_send_run(f->ep->port);
}

static int endpoint_open(struct roce_endpoint *ep)
{
	u32 i;
	int fd;

	find_device(ep);
	fd = open_bound(ep, WIRE_ROCE_PORT);
	if (fd < 0)
		return fd;
	ep->rx = (struct loop_fd){ .fd = fd, .fn = on_rx };
	for (i = 0; i < ROCE_FLOWS; i++) {
		struct roce_flow *f = &ep->flow[i];

		f->ep = ep;
		fd = open_flow(f);
		if (fd < 0)
			return fd;
		f->fd = (struct loop_fd){ .fd = fd, .fn = on_tx };
	}
	return loop_fd_add(ep->port->loop, &ep->rx, EPOLLIN) ? -errno : 0;
}

static void endpoint_close(struct roce_endpoint *ep)
{
	u32 i;

	for (i = 0; i <= ROCE_FLOWS; i++) {
		struct loop_fd *w = i < ROCE_FLOWS ? &ep->flow[i].fd : &ep->rx;

		if (!w->fn)
			continue;
		loop_fd_del(w);
		close(w->fd);
	}
}

static int open_all(struct roce_port *rp, const struct roce_config *cfg)
{
	u32 mtu = ~0u;
	int err;

	while (rp->neps < min(cfg->naddr, (u32)ROCE_ADDRS)) {
		struct roce_endpoint *ep = &rp->ep[rp->neps++];

		ep->port = rp;
		ep->gid = rp->wire.attr.gid[rp->neps - 1] = cfg->addr[rp->neps - 1];
		err = endpoint_open(ep);
		if (err)
			return err;
		mtu = min(mtu, ep->mtu);
	}
	rp->wire.zcopy = true;
	roce_ack_open(rp);
	if (rp->neps)
		roce_groups_open(rp);
	roce_port_set_mtu(rp, mtu);
	return rp->neps ? 0 : -EADDRNOTAVAIL;
}

static void close_all(struct roce_port *rp)
{
	u32 i;

	roce_ack_close(rp);
	for (i = 0; i < rp->neps; i++)
		endpoint_close(&rp->ep[i]);
	roce_groups_close(rp);
}

static const char *device(const struct roce_port *rp, u32 gid)
{
	return rp->neps ? rp->ep[gid % rp->neps].device : "";
}

const struct roce_link roce_socket_link = {
	.open = open_all,
	.close = close_all,
	.route = roce_socket_route,
	.group = roce_group,
	.run = roce_socket_run,
	.device = device,
};
