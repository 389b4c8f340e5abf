// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* IP addresses of the host's sockets and network interfaces. */
#include "emu/port/netdev.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

socklen_t ip_sockaddr_set(struct sockaddr *to, const struct ip_addr *ip, u16 port, u32 scope)
{
	union ip_sockaddr a;
	socklen_t len;

	memset(&a, 0, sizeof(a));
	if (ip_addr_is_v4(ip)) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
		a.in.sin_addr.s_addr = htonl(ip_addr_get_v4(ip));
		len = sizeof(a.in);
	} else {
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = htons(port);
		memcpy(&a.in6.sin6_addr, ip->raw, sizeof(ip->raw));
		if (IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&a.in6.sin6_addr))
			a.in6.sin6_scope_id = scope;
		len = sizeof(a.in6);
	}
	memcpy(to, &a, len);
	return len;
}

bool ip_sockaddr_get(const struct sockaddr *from, struct ip_addr *ip, u16 *port)
{
	union ip_sockaddr a;

	if (from->sa_family == AF_INET) {
		memcpy(&a.in, from, sizeof(a.in));
		*ip = ip_addr_v4(ntohl(a.in.sin_addr.s_addr));
		*port = ntohs(a.in.sin_port);
		return true;
	}
	if (from->sa_family != AF_INET6)
		return false;
	memcpy(&a.in6, from, sizeof(a.in6));
	memcpy(ip->raw, &a.in6.sin6_addr, sizeof(ip->raw));
	*port = ntohs(a.in6.sin6_port);
	return true;
}

static bool has_addr(const struct ifaddrs *i, const struct ip_addr *ip)
{
	struct ip_addr own;
	u16 port;

	if (!i->ifa_addr || !ip_sockaddr_get(i->ifa_addr, &own, &port))
		return false;
	if (ip_addr_equal(&own, ip))
		return true;
	return i->ifa_flags & IFF_LOOPBACK && ip_addr_is_v4(ip) && ip_addr_is_loopback(ip);
}

void netdev_find(const struct ip_addr *ip, char name[IF_NAMESIZE])
{
	struct ifaddrs *all, *i;

	snprintf(name, IF_NAMESIZE, "lo");
	if (getifaddrs(&all))
		return;
	for (i = all; i && !has_addr(i, ip); i = i->ifa_next)
		;
	if (i)
		snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(all);
}

u32 netdev_mtu(const char *name)
{
	struct ifreq req = { .ifr_mtu = 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFMTU, &req))
		req.ifr_mtu = 1500;
	if (fd >= 0)
		close(fd);
	return (u32)req.ifr_mtu;
}

int netdev_addrs(const char *name, struct ip_addr *addr, u32 max)
{
	struct ifaddrs *all, *i;
	u32 n = 0, local;
	u16 port;

	if (!if_nametoindex(name))
		return -ENODEV;
	if (getifaddrs(&all))
		return -errno;
	for (local = 0; local < 2 && !n; local++)
		for (i = all; i && n < max; i = i->ifa_next)
			if (!strcmp(i->ifa_name, name) && i->ifa_addr &&
			    ip_sockaddr_get(i->ifa_addr, &addr[n], &port) && ip_addr_is_link_local(&addr[n]) == local)
				n++;
	freeifaddrs(all);
	return (int)n;
}
