// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Server of host mode: connections of the shim, one per opened device file and process. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/host/server.h"
#include "emu/lib/accept.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/lib/rights.h"
#include "emu/lib/socket_path.h"

#define TRIM_NS NSEC_PER_SEC /* after the last program has exited */

struct uv_server {
	struct loop *loop;
	struct loop_fd listener;
	const struct uv_file_ops *ops[UV_KINDS];
	struct uv_host *(*find)(void *arg, const char *name);
	void *arg;
	struct socket_path bound;
	char tree[256];
	struct list conns, files;
	struct accept_listener accept;
	struct list deferred; /* connections with a deferred response */
	struct loop_timer trim;
};

/* An opened file; a connection for each process that uses it. */
struct file {
	struct list link;
	u64 cookie;
	u32 refs;
	struct list processes; /* that have opened it */
	struct uv_file f;
};

/* A deferred response, or a request to be executed again; blocks further requests of the connection. */
struct deferred_response {
	struct uv_deferral deferral;
	ssize_t result;
	int fd; /* to pass with it, or -1 */
	size_t len;
	u8 data[];
};

struct conn {
	struct list link;
	struct loop_fd fd;
	struct uv_server *server;
	struct file *file;          /* NULL: not yet opened */
	struct uv_process *process; /* the peer, once a file is open */
	pid_t pid;
	struct deferred_response *deferred; /* NULL: none */
	struct list deferred_link;
};

static u8 inbuf[UV_MESSAGE_MAX];
static u8 outbuf[UV_MESSAGE_MAX];

static struct file *file_new(struct uv_server *s, pid_t pid)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->refs = 1;
	f->f.server = s;
	list_init(&f->processes);
	f->f.process = f->f.opener = uv_process_create(s, &f->processes, pid);
	if (!f->f.opener) {
		free(f);
		return NULL;
	}
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
	uv_process_put(f->f.opener);
	while (!list_empty(&f->processes)) /* one whose exit is being handled outlives the file */
		list_del(f->processes.next);
	list_del(&f->link);
	free(f);
}

/* No program runs: returns free memory to the system. */
static void on_trim(struct loop_timer *t, struct now now)
{
	struct uv_server *s = container_of(t, struct uv_server, trim);

	(void)now;
	if (list_empty(&s->conns))
		malloc_trim(0);
}

static void conn_free(struct conn *c)
{
	struct uv_server *s = c->server;

	loop_fd_del(&c->fd);
	if (c->process)
		uv_process_put(c->process);
	if (c->file)
		file_put(c->file, true);
	if (c->deferred && c->deferred->fd >= 0)
		close(c->deferred->fd);
	free(c->deferred);
	list_del(&c->deferred_link);
	list_del(&c->link);
	free(c);
	if (list_empty(&s->conns))
		loop_timer_set(s->loop, &s->trim, loop_now(s->loop).ns + TRIM_NS);
}

static void conn_close(struct conn *c)
{
	pid_t pid = c->pid;
	int fd = c->fd.fd;

	conn_free(c);
	passed_close_socket(fd, pid);
}

static void answer_with(struct conn *c, ssize_t result, void *data, size_t len, const int *fds, u32 nfds)
{
	struct uv_answer a = { .result = (s32)result, .fds = nfds };
	struct iovec iov[2] = { { &a, sizeof(a) }, { data, len } };
	RIGHTS_CONTROL(control, 2) = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	rights_put(&msg, control, fds, nfds);
	n = sendmsg(c->fd.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && nfds) { /* the descriptors cannot be passed (ETOOMANYREFS): the program gets the error */
		a = (struct uv_answer){ .result = -errno };
		msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 2 }; /* data: names a channel to close */
		n = sendmsg(c->fd.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	/* One response per request: either the buffer has space, or the peer has closed and EPOLLHUP follows. */
	if (n < 0)
		log_at(LOG_DEBUG, c->file && c->file->f.host ? c->file->f.host->name : "", "cannot send a response: %s",
		       strerror(errno));
}

static void server_answer(struct conn *c, ssize_t result, size_t len, const int *fds, u32 nfds)
{
	answer_with(c, result, outbuf, len, fds, nfds);
}

/* Defers the response or the request at @data until moves are done. False: out of memory, not deferred. */
static bool response_defer(struct conn *c, const struct uv_deferral *deferral, ssize_t result, const void *data,
			   size_t len, int fd)
{
	struct deferred_response *h = malloc(sizeof(*h) + len);

	if (!h)
		return false;
	*h = (struct deferred_response){ .deferral = *deferral, .result = result, .fd = fd, .len = len };
	memcpy(h->data, data, len);
	c->deferred = h;
	list_add(&c->server->deferred, &c->deferred_link);
	loop_fd_mod(&c->fd, 0);
	return true;
}

static void command_run(struct conn *c, const u8 *data, size_t len, int fd, u32 again);

static void response_send_deferred(struct conn *c)
{
	struct deferred_response *h = c->deferred;

	c->deferred = NULL;
	list_del(&c->deferred_link);
	loop_fd_mod(&c->fd, EPOLLIN);
	if (h->deferral.again && h->result >= 0)
		command_run(c, h->data, h->len, -1, h->deferral.again);
	else
		answer_with(c, h->result, h->data, h->result < 0 ? 0 : h->len, &h->fd, h->fd >= 0);
	if (h->fd >= 0)
		close(h->fd);
	free(h);
}

/* Sends the deferred responses of files of @host (NULL: of all) that are ready. */
static void responses_send_ready(struct uv_server *s, const struct uv_host *host)
{
	struct conn *c, *tmp;

	list_for_each_safe (c, tmp, &s->deferred, deferred_link) {
		if (host && c->file->f.host != host)
			continue;
		c->file->f.process = c->process;
		if (c->file->f.ops->ready(&c->file->f, &c->deferred->deferral, &c->deferred->result))
			response_send_deferred(c);
	}
}

void uv_server_exited(struct uv_server *s, const struct uv_process *p)
{
	struct conn *c, *tmp;

	list_for_each_safe (c, tmp, &s->conns, link) {
		struct pollfd end = { .fd = c->fd.fd };

		if (c->process == p && poll(&end, 1, 0) == 1 && end.revents & POLLHUP)
			conn_close(c);
	}
}

void uv_server_moved(struct uv_server *s)
{
	responses_send_ready(s, NULL);
}

u64 uv_server_rings(const struct uv_file *file)
{
	u64 sum = file->ring_bytes;
	struct file *f;

	list_for_each (f, &file->server->files, link)
		if (&f->f != file && f->f.opener->pid == file->opener->pid)
			sum += f->f.ring_bytes;
	return sum;
}

static int server_attach(struct conn *c, u64 cookie)
{
	struct file *f;

	list_for_each (f, &c->server->files, link) {
		if (f->cookie != cookie)
			continue;
		c->process = uv_process_create(c->server, &f->processes, c->pid);
		if (!c->process)
			return -ENOMEM;
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
	else if (f->f.host->removed && o->kind != UV_SYSFS && o->kind != UV_RDMA_CM && o->kind != UV_NETLINK)
		err = -ENODEV;
	else if (f->f.ops)
		err = f->f.ops->open(&f->f, o->unit, &fds[0], &fds[1]);
	if (err) {
		file_put(f, false);
		return err;
	}
	c->file = f;
	c->process = f->f.opener;
	uv_process_get(c->process);
	return 0;
}

static void on_open(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	int fds[2] = { -1, -1 }, err;
	struct uv_opened opened;
	struct uv_open o;

	if (c->file || len != sizeof(o)) {
		server_answer(c, -EINVAL, 0, NULL, 0);
		return;
	}
	memcpy(&o, data, sizeof(o));
	if (o.kind >= UV_KINDS)
		err = -EINVAL;
	else
		err = o.attach ? server_attach(c, o.attach) : open_new(c, &o, fds);
	if (err) {
		server_answer(c, err, 0, NULL, 0);
		return;
	}
	opened = (struct uv_opened){ .cookie = c->file->cookie };
	opened.copy = o.kind == UV_UVERBS && c->process->needs_copy && !c->process->mover && c->process->copy < 0;
	memcpy(outbuf, &opened, sizeof(opened));
	server_answer(c, 0, sizeof(opened), fds, (fds[0] >= 0) + (fds[1] >= 0));
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

static void command_run(struct conn *c, const u8 *data, size_t len, int fd, u32 again)
{
	size_t out_len = sizeof(outbuf) - sizeof(struct uv_answer);
	struct uv_file *f = &c->file->f;
	ssize_t result;
	int out_fd = -1;

	f->process = c->process;
	f->deferral = (struct uv_deferral){ 0 };
	f->again = again;
	result = f->ops->command(f, data, len, fd, outbuf, &out_len, &out_fd);
	if (f->deferral.until && result >= 0 &&
	    (f->deferral.again ? response_defer(c, &f->deferral, result, data, len, -1)
			       : response_defer(c, &f->deferral, result, outbuf, out_len, out_fd)))
		return;
	if (f->deferral.again && result >= 0) /* out of memory, not deferred */
		result = -ENOMEM;
	server_answer(c, result, result < 0 ? 0 : out_len, &out_fd, out_fd >= 0);
	if (out_fd >= 0)
		close(out_fd);
}

static void on_write(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	const struct uv_file_ops *ops = c->file->f.ops;

	c->file->f.flags = arg;
	if (ops && ops->command)
		command_run(c, data, len, fd, 0);
	else
		server_answer(c, -EINVAL, 0, NULL, 0);
}

static void on_ioctl(struct conn *c, u32 request, const u8 *data, size_t len, int fd)
{
	const struct uv_file_ops *ops = c->file->f.ops;
	int result = -ENOTTY;
	size_t back = 0;

	if (ops && ops->ioctl) {
		back = min(len, sizeof(outbuf) - sizeof(struct uv_answer));
		memcpy(outbuf, data, back);
		result = ops->ioctl(&c->file->f, request, outbuf, back);
	}
	server_answer(c, result, back, NULL, 0);
}

static void on_refresh(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	server_answer(c, uv_sysfs_refresh(c->file->f.host, c->server->tree), 0, NULL, 0);
}

static void on_closed(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	const struct uv_file_ops *ops = c->file->f.ops;
	u64 inode;

	if (len == sizeof(inode) && ops && ops->closed) {
		memcpy(&inode, data, sizeof(inode));
		ops->closed(&c->file->f, inode);
	}
	server_answer(c, 0, 0, NULL, 0);
}

/* The connection becomes the process's copy socket and leaves the loop. */
static void on_copy(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	struct uv_process *p = c->process;
	int memfd = -1, err = -EINVAL;

	if (c->file->refs > 1 && p->users > 1)
		err = uv_process_copy_by(p, c->fd.fd, &memfd);
	server_answer(c, err, 0, &memfd, !err);
	if (err)
		return;
	close(memfd);
	log_at(LOG_INFO, c->file->f.host->name, "process %d copies for the daemon, which may not access its memory",
	       (int)p->pid);
	conn_free(c); /* another connection holds the file; this one had only attached */
}

static void on_share(struct conn *c, u32 arg, const u8 *data, size_t len, int fd)
{
	struct uv_process *p = c->process;
	struct uv_share s;
	int err = -EINVAL;

	if (len == sizeof(s) && !p->exited) {
		memcpy(&s, data, sizeof(s));
		uv_mapping_remove(p, s.addr, s.len);
		err = fd < 0 ? 0 : uv_mapping_add(p, s.addr, s.len, fd, s.offset);
	}
	server_answer(c, err, 0, NULL, 0);
}

static void (*const requests[])(struct conn *c, u32 arg, const u8 *data, size_t len, int fd) = {
	[UV_OPEN] = on_open,     [UV_WRITE] = on_write, [UV_IOCTL] = on_ioctl, [UV_REFRESH] = on_refresh,
	[UV_CLOSED] = on_closed, [UV_COPY] = on_copy,   [UV_SHARE] = on_share,
};

static void on_conn(struct loop_fd *w, u32 events, struct now now)
{
	struct conn *c = container_of(w, struct conn, fd);
	const struct iovec iov = { inbuf, sizeof(inbuf) };
	struct uv_request req = { .op = ARRAY_SIZE(requests) };
	pid_t pid = c->pid;
	int passed = -1;
	u32 npassed;
	ssize_t n;

	if (c->deferred) { /* not watched for input before the response: the peer has closed */
		conn_close(c);
		return;
	}
	n = passed_recv(w->fd, &iov, &passed, 1, &npassed);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n >= (ssize_t)sizeof(req))
		memcpy(&req, inbuf, sizeof(req));
	if (n <= 0 || passed_refused(pid))
		conn_close(c);
	else if (req.op >= ARRAY_SIZE(requests) || (!c->file && req.op != UV_OPEN))
		server_answer(c, -EINVAL, 0, NULL, 0);
	else
		requests[req.op](c, req.arg, inbuf + sizeof(req), (size_t)n - sizeof(req), passed);
	passed_close(passed, pid);
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct uv_server *s = container_of(w, struct uv_server, listener);
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct conn *c;
	int size = 4 << 20, fd = accept_next(&s->accept, 0);

	if (fd < 0) {
		if (fd == -EMFILE || fd == -ENFILE)
			log_at(LOG_WARN, "", "out of file descriptors: a connection of a program was refused");
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		passed_close_socket(fd, 0);
		free(c);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->server = s;
	c->pid = cred.pid;
	list_init(&c->deferred_link);
	c->fd = (struct loop_fd){ .fd = fd, .fn = on_conn };
	list_add(&s->conns, &c->link);
	if (loop_fd_add(s->loop, &c->fd, EPOLLIN))
		conn_close(c);
}

struct uv_server *uv_server_create(struct loop *loop, const char *path, const char *tree,
				   struct uv_host *(*find)(void *arg, const char *name), void *arg)
{
	struct uv_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	list_init(&s->conns);
	list_init(&s->files);
	list_init(&s->deferred);
	s->loop = loop;
	s->trim.fn = on_trim;
	s->find = find;
	s->arg = arg;
	snprintf(s->tree, sizeof(s->tree), "%s", tree);
	s->ops[UV_UVERBS] = &uverbs_file_ops;
	s->ops[UV_UMAD] = &umad_file_ops;
	s->ops[UV_ISSM] = &issm_file_ops;
	s->ops[UV_RDMA_CM] = &ucma_file_ops;
	s->ops[UV_NETLINK] = &netlink_file_ops;
	s->listener = (struct loop_fd){ .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
					.fn = on_listen };
	unlink(path);
	err = s->listener.fd < 0 ? errno : -socket_path_bind(&s->bound, s->listener.fd, path);
	if (err || listen(s->listener.fd, 128) || loop_fd_add(loop, &s->listener, EPOLLIN)) {
		err = err ? err : errno;
		socket_path_unlink(&s->bound);
		close(s->listener.fd);
		free(s);
		errno = err;
		return NULL;
	}
	accept_init(&s->accept, s->listener.fd);
	return s;
}

void uv_server_destroy(struct uv_server *s)
{
	while (!list_empty(&s->conns))
		conn_close(list_first(&s->conns, struct conn, link));
	loop_timer_cancel(&s->trim);
	loop_fd_del(&s->listener);
	socket_path_unlink(&s->bound);
	close(s->listener.fd);
	accept_fini(&s->accept);
	free(s);
}

/* Replaces the sysfs tree by the one without the device, or back. */
int uv_server_unplug(struct uv_server *s, struct uv_host *host, bool removed)
{
	struct file *f;
	int err;

	if (removed)
		netlink_plugged(s, host, true);
	host->removed = removed;
	list_for_each (f, &s->files, link)
		if (removed && f->f.host == host && f->f.ops && f->f.ops->revoke)
			f->f.ops->revoke(&f->f);
	if (removed)
		responses_send_ready(s, host); /* they are errors: no command is executed here */
	err = uv_sysfs_exchange(host, s->tree);
	if (!removed)
		netlink_plugged(s, host, false);
	return err;
}

static bool process_uses(const struct uv_file *f, pid_t pid)
{
	const struct conn *c;

	list_for_each (c, &f->server->conns, link)
		if (c->file && &c->file->f == f && c->pid == pid)
			return true;
	return false;
}

bool uv_file_shares_process(const struct uv_file *f, u64 owner)
{
	const struct conn *c;

	if (!owner)
		return false;
	list_for_each (c, &f->server->conns, link)
		if (c->file && c->file->f.owner == owner && c->file->f.host == f->host &&
		    (c->pid == f->opener->pid || process_uses(f, c->pid)))
			return true;
	return false;
}

void uv_server_each_file(struct uv_server *s, const struct uv_host *host, const struct uv_file_ops *ops,
			 void (*fn)(void *arg, struct uv_file *f), void *arg)
{
	struct file *f;

	list_for_each (f, &s->files, link)
		if (f->f.host == host && f->f.ops == ops)
			fn(arg, &f->f);
}

struct loop *uv_server_loop(const struct uv_server *s)
{
	return s->loop;
}

const char *uv_server_tree(const struct uv_server *s)
{
	return s->tree;
}
