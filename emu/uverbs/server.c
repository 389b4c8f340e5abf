// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections of the shim: each is one opened device file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/rights.h"
#include "emu/uverbs/server.h"

struct uv_server {
	struct loop *loop;
	struct loop_fd listener;
	const struct uv_file_ops *ops[UV_KINDS];
	struct uv_host *(*find)(void *arg, const char *name);
	void *arg;
	char path[108], tree[256];
	struct list conns, files;
	int spare; /* given up for a moment when there are no descriptors left, to turn a caller away */
};

/* An opened file; a connection for each process that uses it. */
struct file {
	struct list link;
	u64 cookie;
	u32 refs;
	struct loop_fd death; /* of the process that opened it: a pidfd, -1 where there is no such thing */
	struct uv_file f;
};

struct conn {
	struct list link;
	struct loop_fd fd;
	struct uv_server *server;
	struct file *file; /* NULL: not yet opened */
	pid_t pid;
};

static u8 inbuf[UV_MESSAGE_MAX];
static u8 outbuf[UV_MESSAGE_MAX];

static void on_death(struct loop_fd *w, u32 events, struct now now)
{
	struct file *f = container_of(w, struct file, death);

	f->f.process.gone = true;
	loop_fd_del(w);
}

static struct file *file_new(struct uv_server *s, pid_t pid)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->refs = 1;
	f->f.server = s;
	f->f.process = (struct uv_process){ .pid = pid, .copy = -1 };
	f->death = (struct loop_fd){ .fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1, .fn = on_death };
	if (f->death.fd >= 0 && loop_fd_add(s->loop, &f->death, EPOLLIN))
		log_at(LOG_DEBUG, "", "the end of process %d will not be seen at once", (int)pid);
	if (getrandom(&f->cookie, sizeof(f->cookie), 0) != (ssize_t)sizeof(f->cookie) || !f->cookie)
		f->cookie = (u64)(uintptr_t)f;
	list_add(&s->files, &f->link);
	return f;
}

static void file_put(struct file *f, bool opened)
{
	if (--f->refs)
		return;
	if (opened && f->f.ops && f->f.ops->close)
		f->f.ops->close(&f->f);
	uv_process_close(&f->f.process);
	loop_fd_del(&f->death);
	if (f->death.fd >= 0)
		close(f->death.fd);
	list_del(&f->link);
	free(f);
}

static void conn_free(struct conn *c)
{
	loop_fd_del(&c->fd);
	if (c->file)
		file_put(c->file, true);
	list_del(&c->link);
	free(c);
}

static void conn_close(struct conn *c)
{
	int fd = c->fd.fd;

	conn_free(c);
	close(fd);
}

static void answer(struct conn *c, ssize_t result, size_t len, const int *fds, u32 nfds)
{
	struct uv_answer a = { .result = (s32)result, .fds = nfds };
	struct iovec iov[2] = { { &a, sizeof(a) }, { outbuf, len } };
	RIGHTS_CONTROL(control, 2) = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	rights_put(&msg, control, fds, nfds);
	/* One answer per request: the buffer has room, or the peer is gone and EPOLLHUP follows. */
	if (sendmsg(c->fd.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_at(LOG_DEBUG, c->file && c->file->f.host ? c->file->f.host->name : "",
		       "an answer was not taken: %s", strerror(errno));
}

static void answer_opened(struct conn *c, const struct uv_open *o, int *fds)
{
	struct uv_opened opened = { .cookie = c->file->cookie };
	u32 i;

	opened.copy = o->kind == UV_UVERBS && !uv_process_probe(&c->file->f.process, o->probe, o->word);
	memcpy(outbuf, &opened, sizeof(opened));
	answer(c, 0, sizeof(opened), fds, (fds[0] >= 0) + (fds[1] >= 0));
	for (i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static int attach(struct conn *c, u64 cookie)
{
	struct file *f;

	list_for_each (f, &c->server->files, link) {
		if (f->cookie != cookie)
			continue;
		f->refs++;
		c->file = f;
		return 0;
	}
	return -ENOENT;
}

static int open_new(struct conn *c, const struct uv_open *o, int *fds)
{
	struct uv_server *s = c->server;
	char host[sizeof(o->host)];
	struct file *f;
	int err = 0;

	memcpy(host, o->host, sizeof(host));
	host[sizeof(host) - 1] = 0;
	f = file_new(s, c->pid);
	if (!f)
		return -ENOMEM;
	f->f.host = s->find(s->arg, host);
	f->f.ops = s->ops[o->kind];
	if (!f->f.host || (!f->f.ops && o->kind != UV_SYSFS))
		err = -ENXIO;
	else if (f->f.host->gone && o->kind != UV_SYSFS && o->kind != UV_RDMA_CM)
		err = -ENODEV;
	else if (f->f.ops)
		err = f->f.ops->open(&f->f, o->unit, &fds[0], &fds[1]);
	if (err)
		file_put(f, false);
	else
		c->file = f;
	return err;
}

static void on_open(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	int fds[2] = { -1, -1 }, err;
	struct uv_open o;

	if (c->file || len != sizeof(o)) {
		answer(c, -EINVAL, 0, NULL, 0);
		return;
	}
	memcpy(&o, data, sizeof(o));
	if (o.kind >= UV_KINDS)
		err = -EINVAL;
	else
		err = o.attach ? attach(c, o.attach) : open_new(c, &o, fds);
	if (err)
		answer(c, err, 0, NULL, 0);
	else
		answer_opened(c, &o, fds);
}

static void on_write(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	size_t out_len = sizeof(outbuf) - sizeof(struct uv_answer);
	const struct uv_file_ops *ops = c->file->f.ops;
	ssize_t result;
	int out_fd = -1;

	if (!ops || !ops->command) {
		answer(c, -EINVAL, 0, NULL, 0);
		return;
	}
	result = ops->command(&c->file->f, data, len, fd, outbuf, &out_len, &out_fd);
	answer(c, result, result < 0 ? 0 : out_len, &out_fd, out_fd >= 0);
	if (out_fd >= 0)
		close(out_fd);
}

static void on_ioctl(struct conn *c, u32 request, const u8 *data, size_t len, int fd)
{
	const struct uv_file_ops *ops = c->file->f.ops;
	int result = -ENOTTY;

	if (ops && ops->ioctl) {
		len = min(len, sizeof(outbuf) - sizeof(struct uv_answer));
		memcpy(outbuf, data, len);
		result = ops->ioctl(&c->file->f, request, outbuf, len);
	}
	answer(c, result, result < 0 ? 0 : len, NULL, 0);
}

static void on_refresh(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	answer(c, uv_sysfs_refresh(c->file->f.host, c->server->tree), 0, NULL, 0);
}

static void on_closed(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	const struct uv_file_ops *ops = c->file->f.ops;
	u64 inode;

	if (len == sizeof(inode) && ops && ops->closed) {
		memcpy(&inode, data, sizeof(inode));
		ops->closed(&c->file->f, inode);
	}
	answer(c, 0, 0, NULL, 0);
}

/* The connection becomes the process's copy socket and leaves the loop. */
static void on_copy(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	struct uv_process *p = &c->file->f.process;
	int memfd = -1, err = -EINVAL;

	if (c->file->refs > 1 && c->pid == p->pid && p->copy < 0)
		err = uv_process_copy_by(p, c->fd.fd, &memfd);
	answer(c, err, 0, &memfd, !err);
	if (err)
		return;
	close(memfd);
	log_at(LOG_INFO, c->file->f.host->name, "process %d copies for us: its memory cannot be reached", (int)p->pid);
	conn_free(c); /* another connection holds the file: this one only attached to it */
}

static void on_share(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	struct uv_process *p = &c->file->f.process;
	struct uv_share s;
	int err = -EINVAL;

	if (len == sizeof(s) && c->pid == p->pid) {
		memcpy(&s, data, sizeof(s));
		uv_window_drop(p, s.addr, s.len);
		err = fd < 0 ? 0 : uv_window_add(p, s.addr, s.len, fd, s.offset);
	}
	answer(c, err, 0, NULL, 0);
}

typedef void on_request(struct conn *c, u32 arg, const u8 *data, size_t len, int fd);
static on_request *const requests[] = {
	[UV_OPEN] = on_open,     [UV_WRITE] = on_write, [UV_IOCTL] = on_ioctl, [UV_REFRESH] = on_refresh,
	[UV_CLOSED] = on_closed, [UV_COPY] = on_copy,   [UV_SHARE] = on_share,
};

static void dispatch(struct conn *c, const u8 *msg, size_t len, int fd)
{
	struct uv_request req = { .op = ARRAY_SIZE(requests) };

	if (len >= sizeof(req))
		memcpy(&req, msg, sizeof(req));
	if (req.op >= ARRAY_SIZE(requests) || (!c->file && req.op != UV_OPEN))
		answer(c, -EINVAL, 0, NULL, 0);
	else
		requests[req.op](c, req.arg, msg + sizeof(req), len - sizeof(req), fd);
}

static void on_conn(struct loop_fd *w, u32 events, struct now now)
{
	struct conn *c = container_of(w, struct conn, fd);
	RIGHTS_CONTROL(control, 4);
	struct iovec iov = { inbuf, sizeof(inbuf) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	int fds[4];
	u32 nfds, i;
	ssize_t n = recvmsg(w->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_close(c);
		return;
	}
	nfds = rights_get(&msg, fds, ARRAY_SIZE(fds));
	dispatch(c, inbuf, (size_t)n, nfds ? fds[0] : -1);
	for (i = 0; i < nfds; i++)
		close(fds[i]);
}

static void turn_away(struct uv_server *s)
{
	int fd;

	close(s->spare);
	fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	log_at(LOG_WARN, "", "no descriptors left: a program was turned away");
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct uv_server *s = container_of(w, struct uv_server, listener);
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct conn *c;
	int size = 4 << 20, fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(s);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		close(fd);
		free(c);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->server = s;
	c->pid = cred.pid;
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
	list_init(&s->files);
	s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
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
	close(s->spare);
	unlink(s->path);
	free(s);
}

void uv_server_register(struct uv_server *s, enum uv_kind kind, const struct uv_file_ops *ops)
{
	s->ops[kind] = ops;
}

/* Its tree goes, too: who looks for a device finds none. */
int uv_server_unplug(struct uv_server *s, struct uv_host *host, bool gone)
{
	struct file *f;

	host->gone = gone;
	list_for_each (f, &s->files, link)
		if (gone && f->f.host == host && f->f.ops && f->f.ops->revoke)
			f->f.ops->revoke(&f->f);
	return uv_sysfs_exchange(host->name, s->tree);
}

struct loop *uv_server_loop(const struct uv_server *s)
{
	return s->loop;
}

const char *uv_server_tree(const struct uv_server *s)
{
	return s->tree;
}
