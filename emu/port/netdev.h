/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The host's network, for ports on it: IP addresses as sockaddr, and the interfaces that have them. */
#ifndef MUSLIN_PORT_NETDEV_H
#define MUSLIN_PORT_NETDEV_H

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "emu/wire/ip.h"

union ip_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* @to has room for either family. @scope: interface index for link-local addresses.
 * Returns the length of the sockaddr. */
socklen_t ip_sockaddr_set(struct sockaddr *to, const struct ip_addr *ip, u16 port, u32 scope);
/* The address and the port, host order; false: another family, nothing is written. */
bool ip_sockaddr_get(const struct sockaddr *from, struct ip_addr *ip, u16 *port);

/* The interface with the address; the loopback interface for all of 127/8, and for an address that no interface has. */
void netdev_find(const struct ip_addr *ip, char name[IF_NAMESIZE]);
u32 netdev_mtu(const char *name); /* 1500 if there is no such interface */
/* Up to @max addresses of the interface, link-local ones only if it has no others. Returns how many, or -errno. */
int netdev_addrs(const char *name, struct ip_addr *addr, u32 max);

#endif
