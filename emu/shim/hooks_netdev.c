// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls on network interfaces: programs see those of the host, and lo. */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu/shim/shim.h"

#define LOOPBACK "lo"

/* An entry of the list of getifaddrs(). The list is one block of memory, which freeifaddrs() of glibc frees. */
struct entry {
	struct ifaddrs ifa;
	struct sockaddr_storage addr, mask, broadcast;
	struct rtnl_link_stats stats;
	char name[IF_NAMESIZE];
};

/* List under construction; if @entry is NULL, only counts the entries. */
struct list {
	struct entry *entry;
	size_t n;
};

static void set_in6(struct sockaddr_storage *to, const struct in6_addr *a)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	if (IN6_IS_ADDR_V4MAPPED(a)) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, a->s6_addr + 12, 4);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = *a;
	}
}

/* Computes the netmask of an address and the broadcast address of its network. */
static void netmask(const struct in6_addr *a, unsigned int len, struct in6_addr *mask, struct in6_addr *broadcast)
{
	unsigned int skip = IN6_IS_ADDR_V4MAPPED(a) ? 96 : 0, i;

	*mask = *broadcast = *a;
	for (i = skip; i < 128; i++) {
		unsigned char bit = (unsigned char)(0x80 >> i % 8);

		mask->s6_addr[i / 8] = (unsigned char)((mask->s6_addr[i / 8] & ~bit) | (i < skip + len ? bit : 0));
		if (i >= skip + len)
			broadcast->s6_addr[i / 8] |= bit;
	}
}

static void set_link(struct sockaddr_storage *to, const struct shim_netdev *d, const unsigned char *addr)
{
	struct sockaddr_ll *ll = (void *)to;

	ll->sll_family = AF_PACKET;
	ll->sll_ifindex = (int)d->index;
	ll->sll_hatype = (unsigned short)d->type;
	ll->sll_halen = (unsigned char)d->len;
	memcpy((char *)to + offsetof(struct sockaddr_ll, sll_addr), addr, d->len);
}

static struct entry *list_add(struct list *l, const char *name, unsigned int flags)
{
	struct entry *e = l->entry ? &l->entry[l->n] : NULL;

	l->n++;
	if (!e)
		return NULL;
	if (l->n > 1)
		e[-1].ifa.ifa_next = &e->ifa;
	strcpy(e->name, name);
	e->ifa.ifa_name = e->name;
	e->ifa.ifa_flags = flags;
	e->ifa.ifa_addr = (struct sockaddr *)&e->addr;
	return e;
}

static void list_add_loopback(struct list *l, const struct ifaddrs *machine, int family)
{
	static const socklen_t size[] = { [AF_INET] = sizeof(struct sockaddr_in),
					  [AF_INET6] = sizeof(struct sockaddr_in6),
					  [AF_PACKET] = sizeof(struct sockaddr_ll) };
	struct entry *e;

	for (; machine; machine = machine->ifa_next) {
		if (strcmp(machine->ifa_name, LOOPBACK) || !machine->ifa_addr || machine->ifa_addr->sa_family != family)
			continue;
		e = list_add(l, LOOPBACK, machine->ifa_flags);
		if (!e)
			continue;
		memcpy(&e->addr, machine->ifa_addr, size[family]);
		if (machine->ifa_netmask) {
			memcpy(&e->mask, machine->ifa_netmask, size[family]);
			e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
		}
		if (family == AF_PACKET)
			e->ifa.ifa_data = &e->stats;
	}
}

static void list_add_link(struct list *l, const struct shim_netdev *d)
{
	struct entry *e = list_add(l, d->name, d->flags);

	if (!e)
		return;
	set_link(&e->addr, d, d->addr);
	set_link(&e->broadcast, d, d->broadcast);
	e->ifa.ifa_broadaddr = (struct sockaddr *)&e->broadcast;
	e->ifa.ifa_data = &e->stats;
}

static void list_add_addresses(struct list *l, const struct shim_netdev *d, int family)
{
	struct in6_addr a, mask, broadcast;
	unsigned int len;
	struct entry *e;
	size_t i;

	for (i = 0; shim_addr_of_netdev(d->name, i, &a, &len); i++) {
		if (IN6_IS_ADDR_V4MAPPED(&a) != (family == AF_INET))
			continue;
		e = list_add(l, d->name, d->flags);
		if (!e)
			continue;
		netmask(&a, len, &mask, &broadcast);
		set_in6(&e->addr, &a);
		set_in6(&e->mask, &mask);
		e->mask.ss_family = (sa_family_t)family;
		e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
		if (family == AF_INET6)
			continue;
		set_in6(&e->broadcast, &broadcast);
		e->ifa.ifa_broadaddr = (struct sockaddr *)&e->broadcast;
	}
}

static void list_fill(struct list *l, const struct ifaddrs *machine, const struct shim_netdev *dev, size_t n)
{
	static const int families[] = { AF_PACKET, AF_INET, AF_INET6 };
	size_t f, i;

	for (f = 0; f < 3; f++) {
		list_add_loopback(l, machine, families[f]);
		for (i = 0; i < n; i++) {
			if (families[f] == AF_PACKET)
				list_add_link(l, &dev[i]);
			else
				list_add_addresses(l, &dev[i], families[f]);
		}
	}
}

int getifaddrs(struct ifaddrs **ifap)
{
	struct shim_netdev dev[SHIM_NETDEVS];
	struct ifaddrs *machine = NULL;
	struct list l = { 0 };
	size_t n;

	if (REAL(getifaddrs)(&machine) || !shim_has_netdevs()) {
		*ifap = machine;
		return machine ? 0 : -1;
	}
	n = shim_netdev_list(dev);
	list_fill(&l, machine, dev, n);
	l = (struct list){ .entry = calloc(l.n ? l.n : 1, sizeof(*l.entry)) };
	if (l.entry)
		list_fill(&l, machine, dev, n);
	REAL(freeifaddrs)(machine);
	*ifap = l.n ? &l.entry->ifa : NULL;
	return l.entry ? 0 : -1;
}

unsigned int if_nametoindex(const char *name)
{
	struct shim_netdev d;

	if (!shim_has_netdevs() || !strcmp(name, LOOPBACK))
		return REAL(if_nametoindex)(name);
	if (shim_netdev_find(name, 0, &d))
		return d.index;
	errno = ENODEV;
	return 0;
}

char *if_indextoname(unsigned int index, char name[IF_NAMESIZE])
{
	struct shim_netdev d;

	if (!shim_has_netdevs() || index == REAL(if_nametoindex)(LOOPBACK))
		return REAL(if_indextoname)(index, name);
	if (shim_netdev_find(NULL, index, &d))
		return strcpy(name, d.name);
	errno = ENXIO;
	return NULL;
}

/* The caller frees the list by glibc's if_freenameindex(), which frees each name, and the array. */
struct if_nameindex *if_nameindex(void)
{
	struct shim_netdev dev[SHIM_NETDEVS];
	struct if_nameindex *list;
	size_t n, i;

	if (!shim_has_netdevs())
		return REAL(if_nameindex)();
	n = shim_netdev_list(dev);
	list = calloc(n + 2, sizeof(*list));
	if (!list)
		return NULL;
	list[0].if_index = REAL(if_nametoindex)(LOOPBACK);
	list[0].if_name = strdup(LOOPBACK);
	for (i = 0; i < n; i++)
		list[i + 1] = (struct if_nameindex){ dev[i].index, strdup(dev[i].name) };
	return list;
}

/* /proc/net/if_inet6: Open MPI and others read the IPv6 addresses from it */

#define PERMANENT  0x80 /* the kernel's IFA_F_PERMANENT and IPV6_ADDR_* */
#define SCOPE_HOST 0x10
#define SCOPE_LINK 0x20

#define INET6_MAX 65536 /* bytes of the file */

static void inet6_line(int fd, const struct in6_addr *a, const char *name, unsigned int index, unsigned int len)
{
	unsigned int scope = IN6_IS_ADDR_LOOPBACK(a) ? SCOPE_HOST : IN6_IS_ADDR_LINKLOCAL(a) ? SCOPE_LINK : 0, i;

	for (i = 0; i < sizeof(a->s6_addr); i++)
		dprintf(fd, "%02x", a->s6_addr[i]);
	dprintf(fd, " %02x %02x %02x %02x %8s\n", index, len, scope, PERMANENT, name);
}

/* Returns a private descriptor of the file, or one below 0. */
static int inet6_make(void)
{
	struct shim_netdev dev[SHIM_NETDEVS];
	size_t n = shim_netdev_list(dev), i, j;
	int fd = shim_memfd_permitted(INET6_MAX) ? memfd_create("muslin-if_inet6", MFD_CLOEXEC) : -1;
	struct in6_addr a;
	unsigned int len;

	fd = fd < 0 ? fd : shim_private_add(fd);
	if (fd < 0)
		return fd;
	inet6_line(fd, &in6addr_loopback, LOOPBACK, REAL(if_nametoindex)(LOOPBACK), 128);
	for (i = 0; i < n; i++)
		for (j = 0; shim_addr_of_netdev(dev[i].name, j, &a, &len); j++)
			if (!IN6_IS_ADDR_V4MAPPED(&a))
				inet6_line(fd, &a, dev[i].name, dev[i].index, len);
	return fd;
}

/* Without a lock, as the addresses of addr.c: threads that make the file at the same time keep the first one. */
bool shim_netdev_inet6(char *buf)
{
	static int made = -1;
	int fd = __atomic_load_n(&made, __ATOMIC_ACQUIRE), first = -1, cancel, saved = errno;

	if (fd < 0) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		fd = inet6_make();
		if (fd >= 0 &&
		    !__atomic_compare_exchange_n(&made, &first, fd, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			shim_private_close(fd);
			fd = first;
		}
		pthread_setcancelstate(cancel, NULL);
	}
	errno = saved;
	return fd >= 0 && shim_private(fd) && snprintf(buf, SHIM_PATH_MAX, "/proc/self/fd/%d", fd) > 0;
}

/* ioctl() requests on sockets, netdevice(7) */

/* SIOCGIFCONF: the IPv4 addresses of lo and of the host's interfaces. */
static int ioctl_conf(struct ifconf *conf)
{
	struct shim_netdev dev[SHIM_NETDEVS];
	size_t n = shim_netdev_list(dev), i, j, used = 0, room = conf->ifc_buf ? (size_t)conf->ifc_len : SIZE_MAX;
	struct ifreq r = { .ifr_name = LOOPBACK };
	struct in6_addr a, loopback = { .s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	struct sockaddr_storage ss;
	unsigned int len;

	for (i = 0; i <= n; i++) {
		for (j = 0; i ? shim_addr_of_netdev(dev[i - 1].name, j, &a, &len) : !j; j++) {
			if (i && !IN6_IS_ADDR_V4MAPPED(&a))
				continue;
			memset(&ss, 0, sizeof(ss));
			set_in6(&ss, i ? &a : &loopback);
			memcpy(&r.ifr_addr, &ss, sizeof(r.ifr_addr));
			if (i)
				strcpy(r.ifr_name, dev[i - 1].name);
			if (used + sizeof(r) > room)
				break;
			if (conf->ifc_buf)
				memcpy(conf->ifc_buf + used, &r, sizeof(r));
			used += sizeof(r);
		}
	}
	conf->ifc_len = (int)used;
	return 0;
}

static int ioctl_address(unsigned long request, struct ifreq *r, const struct shim_netdev *d)
{
	struct in6_addr a, mask, broadcast;
	struct sockaddr_storage ss = { 0 };
	unsigned int len;
	size_t i;

	for (i = 0; shim_addr_of_netdev(d->name, i, &a, &len); i++) {
		if (!IN6_IS_ADDR_V4MAPPED(&a))
			continue;
		netmask(&a, len, &mask, &broadcast);
		set_in6(&ss, request == SIOCGIFADDR ? &a : request == SIOCGIFNETMASK ? &mask : &broadcast);
		memcpy(&r->ifr_addr, &ss, sizeof(r->ifr_addr));
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static int ioctl_of(unsigned long request, struct ifreq *r, const struct shim_netdev *d)
{
	switch (request) {
	case SIOCGIFADDR:
	case SIOCGIFNETMASK:
	case SIOCGIFBRDADDR:
		return ioctl_address(request, r, d);
	case SIOCGIFFLAGS:
		r->ifr_flags = (short)d->flags;
		return 0;
	case SIOCGIFINDEX:
		r->ifr_ifindex = (int)d->index;
		return 0;
	case SIOCGIFMTU:
		r->ifr_mtu = (int)d->mtu;
		return 0;
	case SIOCGIFHWADDR: /* truncated to the size of the member, as in the kernel */
		memset(&r->ifr_hwaddr, 0, sizeof(r->ifr_hwaddr));
		r->ifr_hwaddr.sa_family = (sa_family_t)d->type;
		memcpy(r->ifr_hwaddr.sa_data, d->addr,
		       d->len < sizeof(r->ifr_hwaddr.sa_data) ? d->len : sizeof(r->ifr_hwaddr.sa_data));
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

bool shim_netdev_ioctl(unsigned long request, void *arg, int *result)
{
	struct shim_netdev d;
	struct ifreq *r = arg;

	switch (request) {
	case SIOCGIFCONF:
	case SIOCGIFNAME:
	case SIOCGIFADDR:
	case SIOCGIFNETMASK:
	case SIOCGIFBRDADDR:
	case SIOCGIFFLAGS:
	case SIOCGIFINDEX:
	case SIOCGIFMTU:
	case SIOCGIFHWADDR:
	case SIOCETHTOOL:
		break;
	default:
		return false;
	}
	if (!arg || !shim_has_netdevs())
		return false;
	if (request == SIOCGIFCONF) {
		*result = ioctl_conf(arg);
		return true;
	}
	if (request == SIOCGIFNAME) {
		*result = if_indextoname((unsigned int)r->ifr_ifindex, r->ifr_name) ? 0 : -ENODEV;
		return true;
	}
	if (!strncmp(r->ifr_name, LOOPBACK, IF_NAMESIZE))
		return false;
	r->ifr_name[IF_NAMESIZE - 1] = 0;
	*result = shim_netdev_find(r->ifr_name, 0, &d) ? ioctl_of(request, r, &d) : -ENODEV;
	return true;
}
