// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections to the daemon's socket, by its path. After chroot() that names nothing: a child that uses an inherited
 * device file, or a thread that needs one more connection, connects by the socket's directory, which chroot() keeps
 * open. A thread with a working directory of its own (CLONE_FS) does it, since /proc/self/fd may not be there either,
 * and the working directory of the program must not change.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/shim/shim.h"

static int folder = -1; /* of the socket, private; -1: there was no chroot() */

struct connecting {
	int sock, folder, err;
	struct sockaddr_un to;
	uint32_t done;
};

/* The last component of the socket's path. */
static const char *socket_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void *connect_thread(void *arg)
{
	struct connecting *c = arg;

	c->err = unshare(CLONE_FS) || fchdir(c->folder) ||
				 REAL(connect)(c->sock, (struct sockaddr *)&c->to, sizeof(c->to))
			 ? -errno
			 : 0;
	__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
	shim_futex_wake(&c->done, 1);
	return NULL;
}

static int connect_by_folder(int sock, const char *path)
{
	struct connecting c = { .sock = sock,
				.folder = __atomic_load_n(&folder, __ATOMIC_ACQUIRE),
				.to = { .sun_family = AF_UNIX } };
	int err;

	if (c.folder < 0 || !shim_private(c.folder))
		return -ENOENT;
	snprintf(c.to.sun_path, sizeof(c.to.sun_path), "%s", socket_name(path));
	err = shim_thread_start(connect_thread, &c);
	if (err)
		return err;
	while (!__atomic_load_n(&c.done, __ATOMIC_ACQUIRE))
		shim_futex_wait(&c.done, 0, NULL);
	return c.err;
}

int shim_reach(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const char *path = getenv("MUSLIN_SOCKET");
	int fd = REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (REAL(connect)(fd, (struct sockaddr *)&sa, sizeof(sa)))
		err = -errno;
	if (err == -ENOENT || err == -ENOTDIR || err == -EACCES)
		err = connect_by_folder(fd, path);
	if (!err)
		return shim_private_add(fd);
	REAL(close)(fd);
	return err;
}

static void folder_keep(void)
{
	const char *path = getenv("MUSLIN_SOCKET");
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	size_t len = (size_t)(socket_name(path) - path);
	int fd, none = -1, saved = errno;

	if (!len || len >= sizeof(dir))
		return;
	memcpy(dir, path, len);
	dir[len] = '\0';
	fd = REAL(open)(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		fd = shim_private_add(fd);
	if (fd >= 0 && !__atomic_compare_exchange_n(&folder, &none, fd, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		shim_private_close(fd);
	errno = saved;
}

int chroot(const char *path)
{
	if (shim_active() && shim_table_used() && __atomic_load_n(&folder, __ATOMIC_ACQUIRE) < 0)
		folder_keep();
	return REAL(chroot)(path);
}
