// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Translation of the fabric's IP addresses in socket calls. The machine does not have these addresses: each maps to a
 * loopback address (for IPv6, to an IPv4-mapped one), which bind(), connect() and the like use instead; getsockname()
 * and the like translate it back. So programs that use TCP or UDP reach each other by the addresses that rdma_cm
 * resolves. Each address belongs to a network interface of its host (netdev.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define NAME_MAX_LEN 64

struct pair {
	char host[NAME_MAX_LEN + 1];
	struct in6_addr fabric;
	uint32_t loopback; /* network order */
	unsigned int len;
	char netdev[IF_NAMESIZE];
};

struct addresses {
	size_t n, size; /* size: bytes of memory */
	struct pair pair[];
};
static struct addresses none, *addresses; /* NULL: not read yet; never changed afterwards */

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

/* A line: host, address, loopback address, prefix length, interface. */
static bool pair_parse(struct pair *p, const char *line)
{
	char fabric[INET6_ADDRSTRLEN + 1], loop[INET_ADDRSTRLEN + 1];
	struct in_addr v4;

	if (sscanf(line, "%64s %46s %16s %u %15s", p->host, fabric, loop, &p->len, p->netdev) != 5 ||
	    inet_pton(AF_INET, loop, &p->loopback) != 1)
		return false;
	if (inet_pton(AF_INET, fabric, &v4) != 1)
		return inet_pton(AF_INET6, fabric, &p->fabric) == 1;
	p->fabric = shim_addr_v4_mapped(&v4);
	return true;
}

static void *memory_get(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Returns the lines of @text, which it changes. NULL: out of memory. */
static struct addresses *addresses_parse(char *text)
{
	struct addresses *a;
	size_t size = sizeof(*a);
	char *end;

	for (end = text; (end = strchr(end, '\n')); end++)
		size += sizeof(a->pair[0]);
	a = memory_get(size);
	if (a)
		a->size = size;
	for (; a && (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		a->n += pair_parse(&a->pair[a->n], text);
	}
	return a;
}

/* Reads the file of addresses. NULL: it cannot be read now. */
static struct addresses *addresses_read(void)
{
	char path[SHIM_PATH_MAX], *text = NULL;
	struct addresses *a = NULL;
	size_t size = 0, have = 0;
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/addresses", getenv("MUSLIN_TREE"));
	fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? &none : NULL;
	if (!shim_fstat(fd, &st)) {
		size = (size_t)st.st_size;
		text = memory_get(size + 1);
	}
	while (text && have < size && (n = REAL(read)(fd, text + have, size - have)) > 0)
		have += (size_t)n;
	REAL(close)(fd);
	if (text && have == size)
		a = addresses_parse(text);
	if (text)
		munmap(text, size + 1);
	return a;
}

/*
 * Handlers of signals may call connect() and the like, and so may a child of a program with threads, where no lock of
 * another thread is ever released: so the file is read without a lock, stdio and malloc(). Threads that read it at the
 * same time keep the first result.
 */
static const struct addresses *addresses_get(void)
{
	struct addresses *a = __atomic_load_n(&addresses, __ATOMIC_ACQUIRE), *first = NULL;
	int cancel, saved = errno;

	if (a)
		return a;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	a = shim_active() ? addresses_read() : &none;
	if (a && !__atomic_compare_exchange_n(&addresses, &first, a, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		if (a != &none)
			munmap(a, a->size);
		a = first;
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return a ? a : &none;
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
	const struct addresses *all = addresses_get();
	size_t i;

	for (i = 0; i < all->n; i++)
		if (!memcmp(&all->pair[i].fabric, a, sizeof(*a)))
			return &all->pair[i];
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
	const struct addresses *all = addresses_get();
	bool v4;
	size_t i;

	for (i = 0; i < all->n; i++) {
		v4 = IN6_IS_ADDR_V4MAPPED(&all->pair[i].fabric);
		if (strcmp(all->pair[i].host, name) || (family == AF_INET6 && v4) || (family == AF_INET && !v4))
			continue;
		*addr = all->pair[i].fabric;
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
	const struct addresses *all = addresses_get();
	size_t i;

	for (i = 0; i < all->n; i++) {
		if (strcmp(all->pair[i].host, own_host()) || strcmp(all->pair[i].netdev, netdev) || n--)
			continue;
		*addr = all->pair[i].fabric;
		*len = all->pair[i].len;
		return true;
	}
	return false;
}

bool shim_addr_own(struct sockaddr_storage *to, sa_family_t family, bool v4)
{
	const struct addresses *all = addresses_get();
	const char *host = own_host();
	size_t i;

	for (i = 0; i < all->n; i++) {
		if (v4_mapped(&all->pair[i]) != v4 || strcmp(all->pair[i].host, host))
			continue;
		memset(to, 0, sizeof(*to));
		to->ss_family = family;
		set_loopback((struct sockaddr *)to, all->pair[i].loopback);
		return true;
	}
	return false;
}

/* Finds the pair of a loopback address: of the addresses that have the same one, the first of the family. */
static const struct pair *pair_of_loopback(uint32_t loopback, bool v4)
{
	const struct addresses *all = addresses_get();
	const struct pair *found = NULL;
	size_t i;

	for (i = 0; i < all->n; i++) {
		if (all->pair[i].loopback != loopback)
			continue;
		if (v4_mapped(&all->pair[i]) == v4)
			return &all->pair[i];
		found = found ? found : &all->pair[i];
	}
	return found;
}

static const struct pair *v4_pair_beside(const struct pair *p)
{
	const struct addresses *all = addresses_get();
	size_t i;

	for (i = 0; i < all->n; i++)
		if (v4_mapped(&all->pair[i]) && !strcmp(all->pair[i].host, p->host) &&
		    !strcmp(all->pair[i].netdev, p->netdev))
			return &all->pair[i];
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
