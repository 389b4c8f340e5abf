// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Network interfaces, by each call that lists them: prints a line for each address, and END if the calls agree. */
#include <arpa/inet.h>
#include <assert.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int sock;

static struct ifreq query(unsigned long request, const char *name)
{
	struct ifreq r = { 0 };

	strcpy(r.ifr_name, name);
	assert(!ioctl(sock, request, &r));
	return r;
}

static void check_link(const struct ifaddrs *i)
{
	const struct sockaddr_ll *ll = (void *)i->ifa_addr;
	struct ifreq r = query(SIOCGIFHWADDR, i->ifa_name);
	char name[IF_NAMESIZE];

	assert((int)if_nametoindex(i->ifa_name) == ll->sll_ifindex);
	assert(!strcmp(if_indextoname((unsigned)ll->sll_ifindex, name), i->ifa_name));
	assert(query(SIOCGIFINDEX, i->ifa_name).ifr_ifindex == ll->sll_ifindex);
	assert(r.ifr_hwaddr.sa_family == ll->sll_hatype && !memcmp(r.ifr_hwaddr.sa_data, ll->sll_addr, 6));
	printf("%s: mtu %d type %d length %d\n", i->ifa_name, query(SIOCGIFMTU, i->ifa_name).ifr_mtu, ll->sll_hatype,
	       ll->sll_halen);
}

static const char *text_of(const struct sockaddr *sa, char *text)
{
	const void *in = &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
	const void *in6 = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;

	return inet_ntop(sa->sa_family, sa->sa_family == AF_INET ? in : in6, text, INET6_ADDRSTRLEN);
}

static void check_address(const struct ifaddrs *i)
{
	char text[INET6_ADDRSTRLEN], mask[INET6_ADDRSTRLEN];
	socklen_t len = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int fd = socket(i->ifa_addr->sa_family, SOCK_STREAM, 0);
	struct ifreq r;

	printf("%s: %s/%s\n", i->ifa_name, text_of(i->ifa_addr, text), text_of(i->ifa_netmask, mask));
	assert((i->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING));
	assert(!bind(fd, i->ifa_addr, len));
	close(fd);
	if (i->ifa_addr->sa_family != AF_INET)
		return;
	r = query(SIOCGIFADDR, i->ifa_name);
	assert(!memcmp(&r.ifr_addr, i->ifa_addr, len));
	r = query(SIOCGIFNETMASK, i->ifa_name);
	assert(!memcmp(&r.ifr_netmask, i->ifa_netmask, len));
}

/* The IPv6 addresses of /proc/net/if_inet6, each with a valid interface index. */
static int count_inet6(void)
{
	char hex[33], name[IF_NAMESIZE];
	FILE *f = fopen("/proc/net/if_inet6", "r");
	unsigned int index;
	int n = 0;

	assert(f);
	while (fscanf(f, "%32s %x %*x %*x %*x %15s", hex, &index, name) == 3) {
		assert(strlen(hex) == 32 && if_nametoindex(name) == index);
		n += strcmp(name, "lo") != 0;
	}
	fclose(f);
	return n;
}

int main(void)
{
	struct if_nameindex *names = if_nameindex(), *n;
	struct ifaddrs *list, *i;
	struct ifreq r[64];
	struct ifconf conf = { .ifc_len = sizeof(r), .ifc_req = r };
	int v4 = 0, v6 = 0, links = 0;

	sock = socket(AF_INET, SOCK_DGRAM, 0);
	assert(!getifaddrs(&list));
	for (i = list; i; i = i->ifa_next) {
		v4 += i->ifa_addr->sa_family == AF_INET;
		v6 += i->ifa_addr->sa_family == AF_INET6 && strcmp(i->ifa_name, "lo");
		links += i->ifa_addr->sa_family == AF_PACKET;
		if (i->ifa_addr->sa_family == AF_PACKET)
			check_link(i);
		else
			check_address(i);
	}
	freeifaddrs(list);
	for (n = names; n->if_index; n++)
		links--;
	if_freenameindex(names);
	assert(count_inet6() == v6);
	assert(!links && !if_nametoindex("none0") && !if_indextoname(999, r[0].ifr_name));
	assert(!ioctl(sock, SIOCGIFCONF, &conf) && conf.ifc_len == v4 * (int)sizeof(r[0]));
	puts("END");
	return 0;
}
