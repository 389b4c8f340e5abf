// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls on file descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/shim/shim.h"

ssize_t write(int fd, const void *buf, size_t len)
{
	struct shim_file *f = shim_file_get_entry(fd);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (f && !shim_is_doorbell(f, buf, len)) /* a system call less for each request that is posted */
		f = shim_file_verify(f, fd);
	if (f && f->kind == UV_NETLINK)
		n = shim_netlink_send(fd, &msg);
	else
		n = f ? shim_write(f, fd, buf, len) : REAL(write)(fd, buf, len);
	shim_file_put(f);
	if (!f && n < 0 && errno == EPIPE && shim_channel(fd))
		errno = EINVAL; /* it is a socket here */
	return n;
}

/*
 * As the kernel: an event that does not fit stays. It is awaited first. The end of the daemon is an error of the socket
 * before the events that are left, and the end of the stream after them: the device was removed.
 */
static ssize_t channel_read(int fd, void *buf, size_t len)
{
	bool exceeds = shim_event_exceeds(fd, len);
	ssize_t n;

	do
		n = exceeds ? recv(fd, &(char){ 0 }, 1, MSG_PEEK) : REAL(read)(fd, buf, len);
	while (n < 0 && errno == ECONNRESET && shim_channel(fd));
	if (!n && shim_channel(fd))
		return shim_result(-EIO);
	return exceeds && n > 0 ? shim_result(-EINVAL) : n;
}

ssize_t read(int fd, void *buf, size_t len)
{
	struct shim_file *f = shim_file_get(fd);
	enum uv_kind kind = f ? f->kind : UV_KINDS;
	size_t hdr = f ? f->umad_hdr : 0;

	shim_file_put(f); /* a thread that is cancelled while it waits does not return */
	switch (kind) {
	case UV_UMAD:
		return shim_umad_read(fd, buf, len, hdr);
	case UV_UVERBS:
	case UV_RDMA_CM:
	case UV_ISSM:
		return shim_result(-EINVAL); /* they have no read operation */
	case UV_NETLINK:
		return REAL(read)(fd, buf, len);
	default:
		return channel_read(fd, buf, len);
	}
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	return len <= room ? read(fd, buf, len) : REAL(__read_chk)(fd, buf, len, room);
}

static bool is_of_any_file(unsigned long request)
{
	return request == FIONBIO || request == FIOASYNC || request == FIOCLEX || request == FIONCLEX;
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
	if (f && (f->kind == UV_NETLINK || is_of_any_file(request))) {
		shim_file_put(f);
		f = NULL;
	}
	if (!f && shim_netdev_ioctl(request, arg, &result)) {
		errno = result ? -result : errno;
		return result ? -1 : 0;
	}
	result = f ? shim_ioctl(f, request, arg) : REAL(ioctl)(fd, request, arg);
	shim_file_put(f);
	return result;
}

/* Protects the private descriptors of the shim from closefrom() and close_range(). */
int close(int fd)
{
	struct shim_file *f;

	if (shim_private(fd)) {
		errno = EBADF;
		return -1;
	}
	f = shim_file_get(fd);
	if (f)
		shim_await_reader(f);
	shim_file_put(f);
	shim_file_forget(fd);
	return REAL(close)(fd);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int from = first;
	int keep;

	while (from <= last && (keep = shim_private_next(from, last)) >= 0) {
		if ((unsigned int)keep > from && REAL(syscall)(SYS_close_range, from, (unsigned int)keep - 1, flags))
			return -1;
		from = (unsigned int)keep + 1;
	}
	if (from <= last && REAL(syscall)(SYS_close_range, from, last, flags))
		return -1;
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		shim_file_forget_range(first, last);
	return 0;
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

/* The application may request the number of a private descriptor, which it does not know: moves that. */
static bool dup_begin(int fd, int want)
{
	int err = fd != want && shim_private(want) ? shim_private_move(want) : 0;

	if (err)
		errno = -err;
	return !err;
}

/* After a successful call the previous file of @to is closed. */
static int dup_end(int fd, int to)
{
	if (to >= 0 && to != fd) {
		shim_file_forget(to);
		shim_file_dup(fd, to);
	}
	return to;
}

int dup2(int fd, int want)
{
	return dup_begin(fd, want) ? dup_end(fd, REAL(dup2)(fd, want)) : -1;
}

int dup3(int fd, int want, int flags)
{
	return dup_begin(fd, want) ? dup_end(fd, REAL(dup3)(fd, want, flags)) : -1;
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

bool shim_fd_syscall(long number, const long *a, long *result)
{
	switch (number) {
	case SYS_close:
		*result = close((int)a[0]);
		return true;
	case SYS_close_range:
		*result = close_range((unsigned int)a[0], (unsigned int)a[1], (int)a[2]);
		return true;
	case SYS_dup:
		*result = dup((int)a[0]);
		return true;
#ifdef SYS_dup2
	case SYS_dup2:
		*result = dup2((int)a[0], (int)a[1]);
		return true;
#endif
	case SYS_dup3:
		*result = dup3((int)a[0], (int)a[1], (int)a[2]);
		return true;
	case SYS_fcntl:
		*result = fcntl((int)a[0], (int)a[1], a[2]);
		return true;
	default:
		return false;
	}
}
