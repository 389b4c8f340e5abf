// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Paths of listening Unix sockets. The inode tells this socket from another one at its path: an open socket keeps its
 * inode, so that no other file gets that number.
 */
#include "emu/lib/socket_path.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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
