// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded into a TCP program: its sockets are of AF_SMC, as with smc_run. */
#include <dlfcn.h>
#include <sys/socket.h>

#define TYPE 0xf /* without SOCK_NONBLOCK and SOCK_CLOEXEC */

enum {
	SMC_IPV4,
	SMC_IPV6
};

int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");

	if ((type & TYPE) == SOCK_STREAM && domain == AF_INET)
		return next(AF_SMC, type, SMC_IPV4);
	if ((type & TYPE) == SOCK_STREAM && domain == AF_INET6)
		return next(AF_SMC, type, SMC_IPV6);
	return next(domain, type, protocol);
}
