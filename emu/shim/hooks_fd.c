// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls on descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/shim/shim.h"

ssize_t write(int fd, const void *buf, size_t len)
{
	struct shim_file *f = shim_file_get(fd);
	ssize_t n = f ? shim_write(f, buf, len) : REAL(write)(fd, buf, len);

	shim_file_put(f);
	return n;
}

ssize_t read(int fd, void *buf, size_t len)
{
	struct shim_file *f = shim_file_get(fd);
	ssize_t n = f ? shim_read(f, buf, len) : REAL(read)(fd, buf, len);

	shim_file_put(f);
	if (!n && len && shim_channel(fd)) { /* the device is gone */
		errno = EIO;
		return -1;
	}
	return n;
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	struct shim_file *f = len <= room ? shim_file_get(fd) : NULL;
	ssize_t n = f ? shim_read(f, buf, len) : REAL(__read_chk)(fd, buf, len, room);

	shim_file_put(f);
	return n;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct shim_file *f = shim_file_get(fd);
	va_list ap;
	void *arg;
	int result;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	result = f ? shim_ioctl(f, request, arg) : REAL(ioctl)(fd, request, arg);
	shim_file_put(f);
	return result;
}

/* A program that closes all there is does not mean what it has not opened. */
int close(int fd)
{
	if (shim_private(fd)) {
		errno = EBADF;
		return -1;
	}
	shim_file_forget(fd);
	return REAL(close)(fd);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
	int keep;

	if (!(flags & CLOSE_RANGE_CLOEXEC))
		shim_file_forget_range(first, last);
	while (first <= last && (keep = shim_private_next(first, last)) >= 0) {
		if ((unsigned int)keep > first && REAL(close_range)(first, (unsigned int)keep - 1, flags))
			return -1;
		first = (unsigned int)keep + 1;
	}
	return first <= last ? REAL(close_range)(first, last, flags) : 0;
}

void closefrom(int first)
{
	unsigned int from = first < 0 ? 0 : (unsigned int)first;

	if (!close_range(from, ~0u, 0))
		return;
	for (; from < (unsigned int)sysconf(_SC_OPEN_MAX); from++)
		close((int)from);
}

int dup(int fd)
{
	int to = REAL(dup)(fd);

	shim_file_dup(fd, to);
	return to;
}

int dup2(int fd, int want)
{
	int to;

	if (fd != want)
		shim_file_forget(want);
	to = REAL(dup2)(fd, want);
	if (fd != want)
		shim_file_dup(fd, to);
	return to;
}

int dup3(int fd, int want, int flags)
{
	int to;

	shim_file_forget(want);
	to = REAL(dup3)(fd, want, flags);
	shim_file_dup(fd, to);
	return to;
}

#define FCNTL(name)                                           \
	int name(int fd, int cmd, ...)                        \
	{                                                     \
		va_list ap;                                   \
		void *arg;                                    \
		int result;                                   \
                                                              \
		va_start(ap, cmd);                            \
		arg = va_arg(ap, void *);                     \
		va_end(ap);                                   \
		result = REAL(name)(fd, cmd, arg);            \
		if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) \
			shim_file_dup(fd, result);            \
		return result;                                \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

/* rdma-core asks netlink first and reads sysfs only when that is not there. */
int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && shim_active()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}
