// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections of the shim: each is one opened device file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/uverbs/server.h"

struct uv_server {
	struct loop *loop;
	struct loop_fd listener;
	const struct uv_file_ops *ops[UV_KINDS];
	struct uv_host *(*find)(void *arg, const char *name);
	void *arg;
	char path[108], tree[256];
	struct list conns;
};

struct conn {
	struct list link;
	struct loop_fd fd;
	struct uv_server *server;
	bool opened;
	struct uv_file file;
};

static u8 inbuf[UV_MESSAGE_MAX];
static u8 outbuf[UV_MESSAGE_MAX];

static void conn_close(struct conn *c)
{
	if (c->opened && c->file.ops && c->file.ops->close)
		c->file.ops->close(&c->file);
	loop_fd_del(&c->fd);
	close(c->fd.fd);
	list_del(&c->link);
	free(c);
}

static void answer(struct conn *c, ssize_t result, size_t len, const int *fds, u32 nfds)
{
	struct uv_answer a = { .result = (s32)result, .fds = nfds };
	struct iovec iov[2] = { { &a, sizeof(a) }, { outbuf, len } };
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (nfds) {
		struct cmsghdr *cm;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	/* One answer per request: the buffer has room, or the peer is gone and EPOLLHUP follows. */
	if (sendmsg(c->fd.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_at(LOG_DEBUG, c->file.host ? c->file.host->name : "", "an answer was not taken: %s",
		       strerror(errno));
}

static void on_open(struct conn *c, const struct uv_open *o, size_t len)
{
	struct uv_server *s = c->server;
	char host[sizeof(o->host)];
	int fds[2] = { -1, -1 }, err;
	u32 n = 0;

	if (c->opened || len != sizeof(*o) || o->kind >= UV_KINDS) {
		answer(c, -EINVAL, 0, NULL, 0);
		return;
	}
	memcpy(host, o->host, sizeof(host));
	host[sizeof(host) - 1] = 0;
	c->file.host = s->find(s->arg, host);
	c->file.ops = s->ops[o->kind];
	if (!c->file.host || (!c->file.ops && o->kind != UV_SYSFS)) {
		answer(c, -ENXIO, 0, NULL, 0);
		return;
	}
	if (c->file.ops) {
		err = c->file.ops->open(&c->file, o->unit, &fds[0], &fds[1]);
		if (err) {
			answer(c, err, 0, NULL, 0);
			return;
		}
	}
	c->opened = true;
	n = (fds[0] >= 0) + (fds[1] >= 0);
	answer(c, 0, 0, fds, n);
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

static void on_write(struct conn *c, const u8 *data, size_t len, int fd)
{
	size_t out_len = sizeof(outbuf) - sizeof(struct uv_answer);
	ssize_t result;
	int out_fd = -1;

	if (!c->opened || !c->file.ops || !c->file.ops->command) {
		answer(c, -EINVAL, 0, NULL, 0);
		return;
	}
	result = c->file.ops->command(&c->file, data, len, fd, outbuf, &out_len, &out_fd);
	answer(c, result, result < 0 ? 0 : out_len, &out_fd, out_fd >= 0);
	if (out_fd >= 0)
		close(out_fd);
}

static void on_ioctl(struct conn *c, u32 request, const u8 *data, size_t len)
{
	int result = -ENOTTY;

	if (c->opened && c->file.ops && c->file.ops->ioctl) {
		memcpy(outbuf, data, len);
		result = c->file.ops->ioctl(&c->file, request, outbuf, len);
	}
	answer(c, result, result < 0 ? 0 : len, NULL, 0);
}

static void dispatch(struct conn *c, const u8 *msg, size_t len, int fd)
{
	struct uv_request req;

	if (len < sizeof(req)) {
		answer(c, -EINVAL, 0, NULL, 0);
		return;
	}
	memcpy(&req, msg, sizeof(req));
	msg += sizeof(req);
	len -= sizeof(req);
	switch (req.op) {
	case UV_OPEN:
		on_open(c, (const struct uv_open *)msg, len);
		break;
	case UV_WRITE:
		on_write(c, msg, len, fd);
		break;
	case UV_IOCTL:
		on_ioctl(c, req.arg, msg, min(len, sizeof(outbuf) - sizeof(struct uv_answer)));
		break;
	case UV_REFRESH:
		answer(c, c->opened ? uv_sysfs_refresh(c->file.host, c->server->tree) : -EINVAL, 0, NULL, 0);
		break;
	default:
		answer(c, -EINVAL, 0, NULL, 0);
	}
}

static void on_conn(struct loop_fd *w, u32 events, struct now now)
{
	struct conn *c = container_of(w, struct conn, fd);
	char control[CMSG_SPACE(4 * sizeof(int))];
	struct iovec iov = { inbuf, sizeof(inbuf) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *cm;
	int fds[4], nfds = 0, i;
	ssize_t n = recvmsg(w->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_close(c);
		return;
	}
	for (cm = CMSG_FIRSTHDR(&msg); cm; cm = CMSG_NXTHDR(&msg, cm)) {
		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		nfds = (int)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		nfds = min(nfds, 4);
		memcpy(fds, CMSG_DATA(cm), (size_t)nfds * sizeof(int));
	}
	dispatch(c, inbuf, (size_t)n, nfds ? fds[0] : -1);
	for (i = 0; i < nfds; i++)
		close(fds[i]);
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct uv_server *s = container_of(w, struct uv_server, listener);
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct conn *c;
	int size = 4 << 20, fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		close(fd);
		free(c);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->server = s;
	c->file.server = s;
	c->file.pid = cred.pid;
	c->fd = (struct loop_fd){ .fd = fd, .fn = on_conn };
	list_add(&s->conns, &c->link);
	if (loop_fd_add(s->loop, &c->fd, EPOLLIN))
		conn_close(c);
}

struct uv_server *uv_server_create(struct loop *loop, const char *path, const char *tree,
				   struct uv_host *(*find)(void *arg, const char *name), void *arg)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct uv_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	list_init(&s->conns);
	s->loop = loop;
	s->find = find;
	s->arg = arg;
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->tree, sizeof(s->tree), "%s", tree);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	s->ops[UV_UVERBS] = &uverbs_file_ops;
	s->ops[UV_UMAD] = &umad_file_ops;
	s->ops[UV_ISSM] = &issm_file_ops;
	s->ops[UV_RDMA_CM] = &ucma_file_ops;
	s->listener = (struct loop_fd){ .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
					.fn = on_listen };
	unlink(path);
	if (s->listener.fd < 0 || bind(s->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) ||
	    listen(s->listener.fd, 128) || loop_fd_add(loop, &s->listener, EPOLLIN)) {
		err = errno;
		close(s->listener.fd);
		free(s);
		errno = err;
		return NULL;
	}
	return s;
}

void uv_server_destroy(struct uv_server *s)
{
	while (!list_empty(&s->conns))
		conn_close(list_first(&s->conns, struct conn, link));
	loop_fd_del(&s->listener);
	close(s->listener.fd);
	unlink(s->path);
	free(s);
}

void uv_server_register(struct uv_server *s, enum uv_kind kind, const struct uv_file_ops *ops)
{
	s->ops[kind] = ops;
}

struct loop *uv_server_loop(const struct uv_server *s)
{
	return s->loop;
}

const char *uv_server_tree(const struct uv_server *s)
{
	return s->tree;
}
