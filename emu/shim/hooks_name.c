// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Resolver calls: translate between names and addresses of the fabric's hosts. gethostname() and uname() return the
 * name of the program's host, and gethostid() its identifier: by these MPI detects processes on the same machine.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "emu/shim/shim.h"

static bool is_v4(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (node && shim_addr_of_name(node, hints ? hints->ai_family : AF_UNSPEC, &a))
		node = inet_ntop(is_v4(&a) ? AF_INET : AF_INET6, a.s6_addr + (is_v4(&a) ? 12 : 0), text, sizeof(text));
	return REAL(getaddrinfo)(node, service, hints, res);
}

int getnameinfo(const struct sockaddr *sa, socklen_t len, char *host, socklen_t host_len, char *serv,
		socklen_t serv_len, int flags)
{
	const char *name = NULL;
	struct in6_addr a;

	if (host && host_len && !(flags & NI_NUMERICHOST) && shim_addr_is_ip(sa, len)) {
		a = shim_addr_v6(sa);
		name = shim_addr_name(&a);
	}
	if (!name)
		return REAL(getnameinfo)(sa, len, host, host_len, serv, serv_len, flags);
	if (strlen(name) >= host_len)
		return EAI_OVERFLOW;
	strcpy(host, name);
	return serv && serv_len ? REAL(getnameinfo)(sa, len, NULL, 0, serv, serv_len, flags) : 0;
}

/* Storage of a struct hostent with one address. */
struct host_room {
	char *aliases[1], *addrs[2];
	struct in6_addr addr;
	char name[];
};

static int host_fill(struct hostent *h, void *buf, size_t size, const char *name, const struct in6_addr *a)
{
	size_t skip = -(uintptr_t)buf % _Alignof(struct host_room);
	struct host_room *r = (void *)((char *)buf + skip);

	if (size < skip + sizeof(*r) + strlen(name) + 1)
		return ERANGE;
	strcpy(r->name, name);
	r->aliases[0] = NULL;
	r->addrs[0] = (char *)&r->addr;
	r->addrs[1] = NULL;
	h->h_name = r->name;
	h->h_aliases = r->aliases;
	h->h_addr_list = r->addrs;
	h->h_addrtype = is_v4(a) ? AF_INET : AF_INET6;
	h->h_length = is_v4(a) ? 4 : 16;
	memcpy(&r->addr, a->s6_addr + (is_v4(a) ? 12 : 0), (size_t)h->h_length);
	return 0;
}

static int host_result(int err, struct hostent *h, struct hostent **result, int *herr)
{
	*result = err ? NULL : h;
	*herr = err ? NETDB_INTERNAL : NETDB_SUCCESS;
	return err;
}

static struct hostent *host_static(const char *name, const struct in6_addr *a)
{
	static struct hostent h;
	static char buf[512];

	return host_fill(&h, buf, sizeof(buf), name, a) ? NULL : &h;
}

struct hostent *gethostbyname(const char *name)
{
	struct in6_addr a;

	return shim_addr_of_name(name, AF_INET, &a) ? host_static(name, &a) : REAL(gethostbyname)(name);
}

struct hostent *gethostbyname2(const char *name, int family)
{
	struct in6_addr a;

	return shim_addr_of_name(name, family, &a) ? host_static(name, &a) : REAL(gethostbyname2)(name, family);
}

int gethostbyname_r(const char *restrict name, struct hostent *restrict h, char *restrict buf, size_t size,
		    struct hostent **restrict result, int *restrict herr)
{
	struct in6_addr a;

	if (shim_addr_of_name(name, AF_INET, &a))
		return host_result(host_fill(h, buf, size, name, &a), h, result, herr);
	return REAL(gethostbyname_r)(name, h, buf, size, result, herr);
}

int gethostbyname2_r(const char *restrict name, int family, struct hostent *restrict h, char *restrict buf, size_t size,
		     struct hostent **restrict result, int *restrict herr)
{
	struct in6_addr a;

	if (shim_addr_of_name(name, family, &a))
		return host_result(host_fill(h, buf, size, name, &a), h, result, herr);
	return REAL(gethostbyname2_r)(name, family, h, buf, size, result, herr);
}

/* Finds the name of a host by address; the arguments are those of gethostbyaddr(). */
static const char *name_of(const void *addr, socklen_t len, int family, struct in6_addr *a)
{
	if (family == AF_INET6 && len == sizeof(*a)) {
		memcpy(a, addr, sizeof(*a));
	} else if (family == AF_INET && len == sizeof(struct in_addr)) {
		*a = shim_addr_v4_mapped(addr);
	} else {
		return NULL;
	}
	return shim_addr_name(a);
}

struct hostent *gethostbyaddr(const void *addr, socklen_t len, int family)
{
	struct in6_addr a;
	const char *name = name_of(addr, len, family, &a);

	return name ? host_static(name, &a) : REAL(gethostbyaddr)(addr, len, family);
}

int gethostbyaddr_r(const void *restrict addr, socklen_t len, int family, struct hostent *restrict h,
		    char *restrict buf, size_t size, struct hostent **restrict result, int *restrict herr)
{
	struct in6_addr a;
	const char *name = name_of(addr, len, family, &a);

	if (name)
		return host_result(host_fill(h, buf, size, name, &a), h, result, herr);
	return REAL(gethostbyaddr_r)(addr, len, family, h, buf, size, result, herr);
}

/* Name of this host. NULL: a host without network interfaces of its own uses the machine's name. */
static const char *own_name(void)
{
	return shim_has_netdevs() ? getenv("MUSLIN_HOST") : NULL;
}

int gethostname(char *name, size_t len)
{
	const char *own = own_name();

	if (!own)
		return REAL(gethostname)(name, len);
	strncpy(name, own, len);
	if (strlen(own) < len)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* gethostname() in programs that are compiled with _FORTIFY_SOURCE. */
int __gethostname_chk(char *name, size_t len, size_t size);
int __gethostname_chk(char *name, size_t len, size_t size)
{
	return own_name() && len <= size ? gethostname(name, len) : REAL(__gethostname_chk)(name, len, size);
}

int uname(struct utsname *buf)
{
	const char *own = own_name();
	int err = REAL(uname)(buf);

	if (!err && own)
		snprintf(buf->nodename, sizeof(buf->nodename), "%s", own);
	return err;
}

/*
 * Derived from the address of the host, as glibc does it: GASNet, among others, finds processes of one machine by it.
 */
long gethostid(void)
{
	const char *own = own_name();
	struct in6_addr a;
	uint32_t ip;

	if (!own || !shim_addr_of_name(own, AF_INET, &a))
		return REAL(gethostid)();
	memcpy(&ip, a.s6_addr + 12, sizeof(ip));
	return (int32_t)(ip << 16 | ip >> 16);
}
