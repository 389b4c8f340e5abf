// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Translation of the fabric's IP addresses in socket calls. The machine does not have these addresses: each maps to a
 * loopback address (for IPv6, to an IPv4-mapped one), which bind(), connect() and the like use instead; getsockname()
 * and the like translate it back. So programs that use TCP or UDP reach each other by the addresses that rdma_cm
 * resolves. Each address belongs to a network interface of its host (netdev.c).
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/shim/shim.h"

#define NAME_MAX_LEN 64

struct pair {
	char host[NAME_MAX_LEN + 1];
	struct in6_addr fabric;
	uint32_t loopback; /* network order */
	unsigned int len;
	char netdev[IF_NAMESIZE];
};

static struct pair *pairs;
static size_t npairs;

/* The program may have changed it, or removed it from its environment, since the addresses were read. */
static const char *own_host(void)
{
	return getenv("MUSLIN_HOST") ?: "";
}

static bool v4_mapped(const struct pair *p)
{
	return IN6_IS_ADDR_V4MAPPED(&p->fabric);
}

struct in6_addr shim_addr_v4_mapped(const void *v4)
{
	struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	memcpy(a.s6_addr + 12, v4, 4);
	return a;
}

static void addr_add(struct pair p, const char *fabric, const char *loopback)
{
	struct in_addr v4;
	struct pair *grown;

	if (inet_pton(AF_INET, fabric, &v4) == 1)
		p.fabric = shim_addr_v4_mapped(&v4);
	else if (inet_pton(AF_INET6, fabric, &p.fabric) != 1)
		return;
	if (inet_pton(AF_INET, loopback, &p.loopback) != 1)
		return;
	grown = realloc(pairs, (npairs + 1) * sizeof(*pairs));
	if (!grown)
		return;
	pairs = grown;
	pairs[npairs++] = p;
}

/* Reads the file of addresses. A line: host, address, loopback address, prefix length, interface. */
static void addr_read(void)
{
	char path[SHIM_PATH_MAX], line[256], fabric[INET6_ADDRSTRLEN + 1], loop[INET_ADDRSTRLEN + 1];
	struct pair p;
	FILE *f;

	if (!shim_active())
		return;
	snprintf(path, sizeof(path), "%s/addresses", getenv("MUSLIN_TREE"));
	f = REAL(fopen)(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%64s %46s %16s %u %15s", p.host, fabric, loop, &p.len, p.netdev) == 5)
			addr_add(p, fabric, loop);
	fclose(f);
}

static void addr_load(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;

	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (!done)
		addr_read();
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

struct in6_addr shim_addr_v6(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	return shim_addr_v4_mapped(&((const struct sockaddr_in *)(const void *)sa)->sin_addr);
}

bool shim_addr_is_ip(const struct sockaddr *sa, socklen_t len)
{
	return sa && ((sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) ||
		      (sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)));
}

static void set_loopback(struct sockaddr *sa, uint32_t loopback)
{
	if (sa->sa_family == AF_INET) {
		((struct sockaddr_in *)(void *)sa)->sin_addr.s_addr = loopback;
	} else {
		struct sockaddr_in6 *in6 = (void *)sa;

		in6->sin6_addr = shim_addr_v4_mapped(&loopback);
		in6->sin6_scope_id = 0;
	}
}

static const struct pair *pair_of_v6(const struct in6_addr *a)
{
	size_t i;

	addr_load();
	for (i = 0; i < npairs; i++)
		if (!memcmp(&pairs[i].fabric, a, sizeof(*a)))
			return &pairs[i];
	return NULL;
}

static const struct pair *pair_of(const struct sockaddr *sa, socklen_t len)
{
	struct in6_addr a;

	if (!shim_addr_is_ip(sa, len) || len > sizeof(struct sockaddr_storage))
		return NULL;
	a = shim_addr_v6(sa);
	return pair_of_v6(&a);
}

bool shim_addr_out(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len)
{
	const struct pair *p = pair_of(sa, len);

	if (!p)
		return false;
	memcpy(to, sa, len);
	set_loopback((struct sockaddr *)to, p->loopback);
	return true;
}

bool shim_addr_other(const struct sockaddr *sa, socklen_t len)
{
	const struct pair *p = pair_of(sa, len);

	return p && strcmp(p->host, own_host());
}

bool shim_addr_of_name(const char *name, int family, struct in6_addr *addr)
{
	bool v4;
	size_t i;

	addr_load();
	for (i = 0; i < npairs; i++) {
		v4 = IN6_IS_ADDR_V4MAPPED(&pairs[i].fabric);
		if (strcmp(pairs[i].host, name) || (family == AF_INET6 && v4) || (family == AF_INET && !v4))
			continue;
		*addr = pairs[i].fabric;
		return true;
	}
	return false;
}

const char *shim_addr_name(const struct in6_addr *addr)
{
	const struct pair *p = pair_of_v6(addr);

	return p ? p->host : NULL;
}

bool shim_addr_of_netdev(const char *netdev, size_t n, struct in6_addr *addr, unsigned int *len)
{
	size_t i;

	addr_load();
	for (i = 0; i < npairs; i++) {
		if (strcmp(pairs[i].host, own_host()) || strcmp(pairs[i].netdev, netdev) || n--)
			continue;
		*addr = pairs[i].fabric;
		*len = pairs[i].len;
		return true;
	}
	return false;
}

bool shim_addr_own(struct sockaddr_storage *to, sa_family_t family, bool v4)
{
	const char *host = own_host();
	size_t i;

	addr_load();
	for (i = 0; i < npairs; i++) {
		if (v4_mapped(&pairs[i]) != v4 || strcmp(pairs[i].host, host))
			continue;
		memset(to, 0, sizeof(*to));
		to->ss_family = family;
		set_loopback((struct sockaddr *)to, pairs[i].loopback);
		return true;
	}
	return false;
}

/* Finds the pair of a loopback address: of the addresses that have the same one, the first of the family. */
static const struct pair *pair_of_loopback(uint32_t loopback, bool v4)
{
	const struct pair *found = NULL;
	size_t i;

	addr_load();
	for (i = 0; i < npairs; i++) {
		if (pairs[i].loopback != loopback)
			continue;
		if (v4_mapped(&pairs[i]) == v4)
			return &pairs[i];
		found = found ? found : &pairs[i];
	}
	return found;
}

static const struct pair *v4_pair_beside(const struct pair *p)
{
	size_t i;

	for (i = 0; i < npairs; i++)
		if (v4_mapped(&pairs[i]) && !strcmp(pairs[i].host, p->host) && !strcmp(pairs[i].netdev, p->netdev))
			return &pairs[i];
	return NULL;
}

void shim_addr_in(struct sockaddr *sa, socklen_t len)
{
	const struct pair *p;
	struct in6_addr a;
	uint32_t loopback;

	if (!shim_addr_is_ip(sa, len))
		return;
	a = shim_addr_v6(sa);
	if (!IN6_IS_ADDR_V4MAPPED(&a) || a.s6_addr[12] != 127)
		return;
	memcpy(&loopback, a.s6_addr + 12, 4);
	p = pair_of_loopback(loopback, sa->sa_family == AF_INET);
	if (p && sa->sa_family == AF_INET && !v4_mapped(p)) /* an IPv4 socket, an IPv6 address */
		p = v4_pair_beside(p);
	if (p && sa->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)sa)->sin6_addr = p->fabric;
	else if (p)
		memcpy(&((struct sockaddr_in *)(void *)sa)->sin_addr, p->fabric.s6_addr + 12, 4);
}
