// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A Unix socket with one client at a time. */
#include "emu/lib/client_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"

/*
 * Takes what the client has sent, up to a message with descriptors. A close() with unread messages gives the client
 * ECONNRESET instead of the end of the stream; QEMU 11.1's vfio-user client aborts at it (it sets its error twice).
 */
static void discard_unread(int sock)
{
	char buf[16384];
	struct iovec iov = { buf, sizeof(buf) };

	shutdown(sock, SHUT_RDWR); /* the client cannot queue any more */
	while (passed_recv_none(sock, &iov) > 0)
		;
}

void client_socket_disconnect(struct client_socket *c)
{
	if (c->conn.fd < 0)
		return;
	c->ops->closed(c);
	loop_fd_del(&c->conn);
	discard_unread(c->conn.fd);
	passed_close_socket(c->conn.fd, c->pid);
	c->conn.fd = c->memory.sock = -1;
	c->lost_memory += c->memory.lost;
	c->memory.lost = false;
}

static void client_end(struct client_socket *c, int err)
{
	if (err == -EBADMSG)
		log_at(LOG_INFO, c->path, "the guest was disconnected: invalid %s message", c->ops->protocol);
	else
		log_at(LOG_INFO, c->path, "the guest has disconnected%s",
		       c->memory.lost ? ", after its memory was truncated" : "");
	client_socket_disconnect(c);
}

static void on_client(struct loop_fd *w, u32 events, struct now now)
{
	struct client_socket *c = container_of(w, struct client_socket, conn);
	int err = c->ops->readable(c);

	if (err < 0)
		client_end(c, err);
}

/* The client has closed its socket; its unread messages have no effect any more. */
static bool client_hung_up(const struct client_socket *c)
{
	struct pollfd p = { .fd = c->conn.fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct client_socket *c = container_of(w, struct client_socket, listener);
	int fd = accept_next(&c->accept, SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (client_socket_connected(c) && client_hung_up(c))
		client_end(c, -EPIPE);
	if (client_socket_connected(c)) {
		c->refused++;
		log_at(LOG_WARN, c->path, "a connection of a second guest is refused");
		passed_close_socket(fd, passed_owner(fd));
		return;
	}
	c->conn.fd = c->memory.sock = fd;
	c->pid = c->memory.pid = passed_owner(fd);
	if (loop_fd_add(c->loop, &c->conn, EPOLLIN)) {
		passed_close_socket(fd, c->pid);
		c->conn.fd = c->memory.sock = -1;
	}
}

static int client_listen(struct client_socket *c)
{
	int err;

	c->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener.fd < 0)
		return -errno;
	unlink(c->path);
	err = socket_path_bind(&c->bound, c->listener.fd, c->path);
	if (err)
		return err;
	if (listen(c->listener.fd, 4))
		return -errno;
	accept_init(&c->accept, c->listener.fd);
	return loop_fd_add(c->loop, &c->listener, EPOLLIN);
}

int client_socket_init(struct client_socket *c, struct loop *loop, const char *path,
		       const struct client_socket_ops *ops)
{
	int err;

	*c = (struct client_socket){ .loop = loop,
				     .ops = ops,
				     .listener = { .fd = -1, .fn = on_listen },
				     .conn = { .fd = -1, .fn = on_client },
				     .accept = { .fd = -1, .spare = -1 },
				     .memory = { .sock = -1 } };
	if ((size_t)snprintf(c->path, sizeof(c->path), "%s", path) >= sizeof(c->path))
		return -ENAMETOOLONG;
	err = client_listen(c);
	if (!err)
		return 0;
	socket_path_unlink(&c->bound);
	if (c->listener.fd >= 0)
		close(c->listener.fd);
	accept_fini(&c->accept);
	return err;
}

void client_socket_fini(struct client_socket *c)
{
	client_socket_disconnect(c);
	loop_fd_del(&c->listener);
	accept_fini(&c->accept);
	socket_path_unlink(&c->bound);
	close(c->listener.fd);
}
