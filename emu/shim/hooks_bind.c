// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bind() of the fabric's addresses and of wildcards. The IPv6 addresses of hosts are IPv4-mapped loopback addresses
 * here (addr.c), which a socket on :: with IPV6_V6ONLY does not receive from: bind() binds it to this host's address
 * instead, and clears IPV6_V6ONLY. It would then conflict with an IPv4 wildcard on the same port: these two share the
 * port by SO_REUSEPORT. Two wildcards of the same family conflict as usual, even those of two hosts if they are IPv4;
 * and an IPv4 wildcard of another process conflicts with an IPv6-only one.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/shim/shim.h"

/* glibc declares these with a union of pointers for the address. */
#define ADDR(a) ((a).__sockaddr__)

#define LISTENING       0xa /* in /proc/net/tcp6 */
#define UNUSED_LOOPBACK 0x7ffffffe
#define FIND_MAX        3

/*
 * The kernel treats AF_UNSPEC as the IPv4 wildcard. Open MPI binds so before it connects: the socket gets this host's
 * address.
 */
static bool bind_unspecified(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len)
{
	const struct sockaddr_in *in = (const void *)sa;

	if (!sa || len < sizeof(*in) || sa->sa_family != AF_UNSPEC || in->sin_addr.s_addr != INADDR_ANY ||
	    !shim_addr_own(to, AF_INET, true))
		return false;
	((struct sockaddr_in *)to)->sin_port = in->sin_port;
	return true;
}

static int option_get(int fd, int level, int name)
{
	int value = 0, saved = errno;
	socklen_t len = sizeof(value);

	if (REAL(getsockopt)(fd, level, name, &value, &len))
		value = -1;
	errno = saved;
	return value;
}

static void option_set(int fd, int level, int name, int value)
{
	int saved = errno;

	REAL(setsockopt)(fd, level, name, &value, sizeof(value));
	errno = saved;
}

static bool is_any_v4(const struct sockaddr *sa, socklen_t len)
{
	return sa && len >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET &&
	       ((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr == INADDR_ANY;
}

static bool is_any_v6(const struct sockaddr *sa, socklen_t len)
{
	return sa && len >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

/* Sets SO_REUSEPORT on the IPv4 wildcards of this process on that port. */
static void share_port(int type, in_port_t port)
{
	DIR *dir = opendir("/proc/self/fd");
	struct sockaddr_storage st;
	const struct dirent *e;
	int saved = errno, fd;
	socklen_t len;

	while (dir && (e = readdir(dir))) {
		fd = atoi(e->d_name);
		len = sizeof(st);
		if (*e->d_name == '.' || REAL(getsockname)(fd, (struct sockaddr *)&st, &len) ||
		    !is_any_v4((struct sockaddr *)&st, len) || ((struct sockaddr_in *)&st)->sin_port != port ||
		    option_get(fd, SOL_SOCKET, SO_TYPE) != type)
			continue;
		option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	}
	if (dir)
		closedir(dir);
	errno = saved;
}

/*
 * Which of the @n addresses are received on, a bit for each, at most FIND_MAX: /proc/net/tcp6 has all listeners of the
 * machine, udp6 all sockets.
 */
static unsigned int proc_find(int type, const struct sockaddr_in6 *a, unsigned int n)
{
	FILE *f = REAL(fopen)(type == SOCK_DGRAM ? "/proc/net/udp6" : "/proc/net/tcp6", "re");
	char text[FIND_MAX][38], at[38], line[256];
	unsigned int state, found = 0, i;
	int saved = errno;
	uint32_t w[4];

	for (i = 0; i < n; i++) {
		memcpy(w, &a[i].sin6_addr, sizeof(w));
		snprintf(text[i], sizeof(text[i]), "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3],
			 ntohs(a[i].sin6_port));
	}
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*s %37s %*s %x", at, &state) != 2 || (type != SOCK_DGRAM && state != LISTENING))
			continue;
		for (i = 0; i < n; i++)
			found |= !strcmp(at, text[i]) ? 1u << i : 0;
	}
	if (f)
		fclose(f);
	errno = saved;
	return found;
}

/* Binds an IPv6-only wildcard. @own: this host's address. */
static int bind_v6only(int fd, const struct sockaddr *sa, struct sockaddr_in6 *own)
{
	int shared = option_get(fd, SOL_SOCKET, SO_REUSEPORT), type = option_get(fd, SOL_SOCKET, SO_TYPE), err;

	own->sin6_port = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_port;
	option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	err = REAL(bind)(fd, (struct sockaddr *)own, sizeof(*own));
	if (err && errno == EADDRINUSE && !proc_find(type, own, 1)) {
		share_port(type, own->sin6_port);
		option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
		err = REAL(bind)(fd, (struct sockaddr *)own, sizeof(*own));
	}
	option_set(fd, SOL_SOCKET, SO_REUSEPORT, err ? shared : 1);
	if (err)
		option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return err;
}

/* Can an unused address be bound to the port? Any wildcard on the port prevents that, but no host's address does. */
static bool port_has_no_wildcard(int fd, in_port_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(UNUSED_LOOPBACK) };
	int probe = REAL(socket)(AF_INET, option_get(fd, SOL_SOCKET, SO_TYPE) | SOCK_CLOEXEC, 0), saved = errno;
	bool free;

	if (probe < 0)
		return false;
	free = !REAL(bind)(probe, (struct sockaddr *)&in, sizeof(in));
	REAL(close)(probe);
	errno = saved;
	return free;
}

static int bind_any_v4(int fd, const struct sockaddr *sa, socklen_t len)
{
	int shared = option_get(fd, SOL_SOCKET, SO_REUSEPORT), err = REAL(bind)(fd, sa, len);

	if (!err || errno != EADDRINUSE ||
	    !port_has_no_wildcard(fd, ((const struct sockaddr_in *)(const void *)sa)->sin_port))
		return err;
	option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	err = REAL(bind)(fd, sa, len);
	if (err)
		option_set(fd, SOL_SOCKET, SO_REUSEPORT, shared);
	return err;
}

int bind(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	const struct sockaddr *sa = ADDR(addr);
	struct sockaddr_storage to;

	if (shim_netlink(fd))
		return shim_netlink_bind(fd, sa, len);
	if (shim_addr_other(sa, len)) { /* MPICH detects by this error that it is another host */
		errno = EADDRNOTAVAIL;
		return -1;
	}
	if (is_any_v6(sa, len) && option_get(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 1 && shim_addr_own(&to, AF_INET6, false))
		return bind_v6only(fd, sa, (struct sockaddr_in6 *)&to);
	if (is_any_v4(sa, len) && shim_addr_own(&to, AF_INET, true))
		return bind_any_v4(fd, sa, len);
	if (shim_addr_out(&to, sa, len) || bind_unspecified(&to, sa, len))
		sa = (struct sockaddr *)&to;
	return REAL(bind)(fd, sa, len);
}

bool shim_bind_localhost(struct sockaddr_storage *to, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in6 *own = (struct sockaddr_in6 *)to, a[FIND_MAX]; /* ::1, ::, and this host's */

	if (!sa || sa->sa_family != AF_INET6 || len < sizeof(a[0]))
		return false;
	memcpy(&a[0], sa, sizeof(a[0]));
	if (!IN6_IS_ADDR_LOOPBACK(&a[0].sin6_addr) || !shim_addr_own(to, AF_INET6, false))
		return false;
	own->sin6_port = a[0].sin6_port;
	a[1] = a[0];
	a[1].sin6_addr = in6addr_any;
	a[2] = *own;
	return proc_find(SOCK_STREAM, a, FIND_MAX) == 1u << 2;
}
