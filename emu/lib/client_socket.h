/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A Unix socket that serves one client at a time, such as QEMU for a device. Other clients are
 * rejected until it disconnects. */
#ifndef MUSLIN_LIB_CLIENT_SOCKET_H
#define MUSLIN_LIB_CLIENT_SOCKET_H

#include <sys/types.h>

#include "emu/lib/accept.h"
#include "emu/lib/loop.h"
#include "emu/lib/shared_map.h"
#include "emu/lib/socket_path.h"

struct client_socket;

struct client_socket_ops {
	const char *protocol; /* for messages */
	/* Bytes were received, or the client has closed. Less than 0: close the connection;
	 * -EBADMSG: because of the received bytes. */
	int (*readable)(struct client_socket *c);
	/* The connection ends. Its descriptor, process and memory owner are still those of the client. */
	void (*closed)(struct client_socket *c);
};

struct client_socket {
	struct loop *loop;
	const struct client_socket_ops *ops;
	char path[108];
	struct socket_path bound;
	struct loop_fd listener, conn; /* conn.fd is -1 without a client */
	struct accept_listener accept;
	pid_t pid;                  /* of the client */
	struct shared_owner memory; /* of the client */
	u64 refused, lost_memory;
};

/* Listens at @path, replacing an existing socket. 0 or -errno. @ops must outlive it. */
int client_socket_init(struct client_socket *c, struct loop *loop, const char *path,
		       const struct client_socket_ops *ops);
/* Closes the connection, and removes the path. */
void client_socket_fini(struct client_socket *c);
/*
 * The client gets the end of the stream, also with messages unread, unless these have descriptors. No effect without a
 * client.
 */
void client_socket_disconnect(struct client_socket *c);
static inline bool client_socket_connected(const struct client_socket *c)
{
	return c->conn.fd >= 0;
}

#endif
