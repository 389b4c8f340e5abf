// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses of the three families of rdma_cm: AF_INET, AF_INET6, AF_IB. */
#include "emu/port/netdev.h"
#include "emu/rdmacm/rdma_internal.h"

u32 rdma_sockaddr_len(const union rdma_sockaddr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return sizeof(a->in);
	case AF_INET6:
		return sizeof(a->in6);
	case AF_IB:
		return sizeof(a->ib);
	default:
		return 0;
	}
}

bool rdma_sockaddr_is_ip(const union rdma_sockaddr *a)
{
	return a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6;
}

struct ip_addr rdma_sockaddr_ip(const union rdma_sockaddr *a)
{
	struct ip_addr ip = { { 0 } };
	u16 port;

	(void)ip_sockaddr_get(&a->sa, &ip, &port);
	return ip;
}

void rdma_sockaddr_set_ip(union rdma_sockaddr *a, const struct ip_addr *ip, u16 port)
{
	memset(a, 0, sizeof(*a));
	ip_sockaddr_set(&a->sa, ip, port, 0);
}

bool rdma_sockaddr_is_any(const union rdma_sockaddr *a)
{
	struct ip_addr ip;

	if (a->sa.sa_family == AF_IB)
		return ib_addr_any(&a->ib.sib_addr);
	if (!rdma_sockaddr_is_ip(a))
		return true;
	ip = rdma_sockaddr_ip(a);
	return ip_addr_is_any(&ip);
}

bool rdma_sockaddr_is_loopback(const union rdma_sockaddr *a)
{
	struct ip_addr ip;

	if (a->sa.sa_family == AF_IB)
		return ib_addr_loopback(&a->ib.sib_addr);
	if (!rdma_sockaddr_is_ip(a))
		return false;
	ip = rdma_sockaddr_ip(a);
	return ip_addr_is_loopback(&ip);
}

/* The port of an AF_IB address is the low 16 bits of its service ID. */
u16 rdma_sockaddr_port(const union rdma_sockaddr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return ntohs(a->in.sin_port);
	case AF_INET6:
		return ntohs(a->in6.sin6_port);
	case AF_IB:
		return (u16)(be64_to_cpu((__force __be64)a->ib.sib_sid) &
			     be64_to_cpu((__force __be64)a->ib.sib_sid_mask));
	default:
		return 0;
	}
}

void rdma_sockaddr_set_port(union rdma_sockaddr *a, u16 port)
{
	u64 sid;

	switch (a->sa.sa_family) {
	case AF_INET:
		a->in.sin_port = htons(port);
		break;
	case AF_INET6:
		a->in6.sin6_port = htons(port);
		break;
	case AF_IB:
		sid = (be64_to_cpu((__force __be64)a->ib.sib_sid) & ~0xffffull) | port;
		a->ib.sib_sid = (__force __typeof__(a->ib.sib_sid))cpu_to_be64(sid);
		a->ib.sib_sid_mask = (__force __typeof__(a->ib.sib_sid_mask))cpu_to_be64(~0ull);
		break;
	default:
		break;
	}
}

bool rdma_sockaddr_same(const union rdma_sockaddr *a, const union rdma_sockaddr *b)
{
	struct ip_addr x, y;

	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_IB)
		return ib_addr_cmp(&a->ib.sib_addr, &b->ib.sib_addr) == 0;
	x = rdma_sockaddr_ip(a);
	y = rdma_sockaddr_ip(b);
	return ip_addr_equal(&x, &y);
}
