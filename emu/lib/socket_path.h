/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The path of a listening Unix socket, which another process may replace by its own one. */
#ifndef MUSLIN_LIB_SOCKET_PATH_H
#define MUSLIN_LIB_SOCKET_PATH_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_path {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* empty: not bound */
	dev_t dev;
	ino_t ino;
};

/* Binds @sock. 0 or -errno: -ENAMETOOLONG. */
int socket_path_bind(struct socket_path *p, int sock, const char *path);
/*
 * Binds the stream socket @sock and listens, at a path that any process may use: replaces the socket of a dead one.
 * Those that do so at the same time exclude each other: a socket that is bound and does not listen yet looks dead.
 * Waits for each other for a second at most, or not at all without @wait. 0 or -errno: -EADDRINUSE if another one
 * listens, -EBUSY if one is about to.
 */
int socket_path_listen(struct socket_path *p, int sock, const char *path, int backlog, bool wait);
/*
 * Removes the path if it is still that of the socket; no effect if not bound. Call it before close() of the socket: a
 * closed one refuses connections, and looks like that of a dead process, whose path others replace.
 */
void socket_path_unlink(struct socket_path *p);

#endif
