// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Paths of listening Unix sockets. The inode tells this socket from another one at its path: an open socket keeps its
 * inode, so that no other file gets that number.
 */
#include "emu/lib/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TRIES 1000
#define LOCK_WAIT  1000 /* us after each */

int socket_path_bind(struct socket_path *p, int sock, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct stat st;

	p->path[0] = 0;
	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, strlen(path));
	if (bind(sock, (struct sockaddr *)&sa, sizeof(sa)) || lstat(path, &st))
		return -errno;
	memcpy(p->path, sa.sun_path, sizeof(p->path));
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	return 0;
}

void socket_path_unlink(struct socket_path *p)
{
	struct stat st;

	if (p->path[0] && !lstat(p->path, &st) && st.st_dev == p->dev && st.st_ino == p->ino)
		unlink(p->path);
	p->path[0] = 0;
}

/*
 * A file beside the path, locked while a process binds and listens there. The last one that has locked it removes it: a
 * lock of a removed file excludes nobody. The descriptor, or -errno: -EBUSY.
 */
static int path_lock(const char *file, bool wait)
{
	struct stat own, now;
	int fd, i;

	for (i = 0; i < LOCK_TRIES; i++) {
		fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &own) && !lstat(file, &now) &&
		    own.st_dev == now.st_dev && own.st_ino == now.st_ino)
			return fd;
		close(fd);
		if (!wait)
			break;
		usleep(LOCK_WAIT);
	}
	return -EBUSY;
}

/* Removes the socket of a dead process, which refuses connections. */
static void path_remove_stale(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return;
	memcpy(sa.sun_path, path, strnlen(path, sizeof(sa.sun_path) - 1));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) && errno == ECONNREFUSED && !lstat(path, &st) &&
	    S_ISSOCK(st.st_mode))
		unlink(path);
	close(fd);
}

int socket_path_listen(struct socket_path *p, int sock, const char *path, int backlog, bool wait)
{
	char file[sizeof(p->path) + 8];
	int lock, err;

	p->path[0] = 0;
	if (strlen(path) >= sizeof(p->path))
		return -ENAMETOOLONG;
	snprintf(file, sizeof(file), "%s.lock", path);
	lock = path_lock(file, wait);
	if (lock < 0)
		return lock;
	path_remove_stale(path);
	err = socket_path_bind(p, sock, path);
	if (!err && listen(sock, backlog)) {
		err = -errno;
		socket_path_unlink(p);
	}
	unlink(file);
	close(lock);
	return err;
}
