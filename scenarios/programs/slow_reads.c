// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded after the library: each receive from a socket begins a millisecond later, as on a busy machine. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void receive_delay(int flags)
{
	if (!(flags & MSG_PEEK))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	receive_delay(flags);
	return syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	receive_delay(flags);
	return syscall(SYS_recvmsg, fd, msg, flags);
}
