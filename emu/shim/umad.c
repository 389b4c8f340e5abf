// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read() of a umad file. Each of several readers gets whole records, even if the first record does not fit in its
 * buffer: so a record is examined and received under a lock, and under a record lock of the socket for other processes
 * that read it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/rights.h"
#include "emu/shim/shim.h"

#define UMAD_FIRST 256 /* data bytes that a read() with a short buffer returns with -ENOSPC */

static struct shim_lock umad_lock;

void shim_umad_lock(void)
{
	shim_lock(&umad_lock);
}

void shim_umad_unlock(void)
{
	shim_unlock(&umad_lock);
}

void shim_umad_child(void)
{
	umad_lock = (struct shim_lock){ 0 };
}

/* Such a lock belongs to the process, and ends with it. */
static void umad_process_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	while (REAL(fcntl)(fd, F_SETLKW, &lock) && errno == EINTR)
		;
}

/* Receives a record of at most @len bytes. Returns its size. *memfd: has the whole record, or is -1. */
static ssize_t umad_receive(int fd, void *buf, size_t len, int flags, int *memfd)
{
	RIGHTS_CONTROL(control, 1);
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	/* Not the hook, which takes the lock of the table. */
	ssize_t n = REAL(recvmsg)(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC | flags);

	*memfd = -1;
	if (n > 0 && !rights_get(&msg, memfd, 1) && msg.msg_flags & MSG_CTRUNC)
		return shim_result(-EMFILE);
	return n;
}

/* The whole size of a received record of @n bytes. */
static size_t umad_size(ssize_t n, int memfd)
{
	off_t size = memfd < 0 ? 0 : lseek(memfd, 0, SEEK_END);

	return size > n ? (size_t)size : (size_t)n;
}

/* As the kernel: a record that does not fit stays, and its first MAD is copied if it has several. @first: its end. */
static ssize_t umad_take(int fd, void *buf, size_t len, size_t first)
{
	char peek[512];
	int memfd, taken = -1;
	ssize_t n = umad_receive(fd, peek, sizeof(peek), MSG_PEEK, &memfd);
	size_t size = n > 0 ? umad_size(n, memfd) : 0;

	if (n > 0 && size <= len)
		n = umad_receive(fd, buf, len, 0, &taken);
	else if (n > 0 && size > first && len >= first)
		n = (memcpy(buf, peek, first), shim_result(-ENOSPC));
	else if (n > 0)
		n = shim_result(-EINVAL);
	if (n > 0 && taken >= 0)
		n = pread(taken, buf, len, 0);
	if (memfd >= 0)
		REAL(close)(memfd);
	if (taken >= 0)
		REAL(close)(taken);
	return n;
}

ssize_t shim_umad_read(int fd, void *buf, size_t len, size_t hdr)
{
	int cancel, err;
	ssize_t n;
	char byte;

	if (len < hdr)
		return shim_result(-EINVAL);
	do {
		n = recv(fd, &byte, 1, MSG_PEEK); /* waits, unless O_NONBLOCK is set */
		if (n <= 0)
			break;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		shim_umad_lock();
		umad_process_lock(fd, F_WRLCK);
		n = umad_take(fd, buf, len, hdr + UMAD_FIRST);
		err = errno;
		umad_process_lock(fd, F_UNLCK);
		shim_umad_unlock();
		errno = err;
		pthread_setcancelstate(cancel, NULL);
	} while (n < 0 && errno == EAGAIN); /* another reader has taken it */
	if (n)
		return n;
	usleep(100000); /* the fabric is down: delays programs that retry in a loop */
	return shim_result(-ENODEV);
}
