// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The daemon's side of the control socket: clients, lines, answers. */
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/ctl/ctl.h"
#include "emu/lib/log.h"
#include "emu/lib/rights.h"

#define BIG_ANSWER (8u << 20) /* bytes; what making it took is given back */

struct ctl_server {
	struct loop *loop;
	struct loop_fd listener;
	const struct ctl_command *commands;
	void *arg;
	char path[108];
	struct list clients;
	u32 count;
};

struct ctl_client {
	struct list link;
	struct loop_fd fd;
	struct ctl_server *server;
	int passed; /* a descriptor that awaits its request; -1: none */
	char *in, *out;
	size_t in_len, out_len, out_done;
	bool eof;
	char error[512];
	void (*on_close)(void *arg);
	void *close_arg;
};

static void client_close(struct ctl_client *c)
{
	if (c->on_close)
		c->on_close(c->close_arg);
	loop_fd_del(&c->fd);
	close(c->fd.fd);
	if (c->passed >= 0)
		close(c->passed);
	list_del(&c->link);
	c->server->count--;
	free(c->in);
	free(c->out);
	free(c);
}

json_t *ctl_error(struct ctl_client *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->error, sizeof(c->error), fmt, ap);
	va_end(ap);
	return NULL;
}

void ctl_client_on_close(struct ctl_client *c, void (*fn)(void *arg), void *arg)
{
	c->on_close = fn;
	c->close_arg = fn ? arg : NULL;
}

void *ctl_client_close_arg(const struct ctl_client *c)
{
	return c->close_arg;
}

static json_t *run_command(struct ctl_client *c, const json_t *req)
{
	const char *name = json_string_value(json_object_get(req, "command"));
	const struct ctl_command *cmd;

	if (!json_is_object(req))
		return ctl_error(c, "a request is a JSON object");
	if (!name)
		return ctl_error(c, "a request has a string \"command\"");
	for (cmd = c->server->commands; cmd->name; cmd++) {
		if (!strcmp(cmd->name, name))
			return cmd->run(c->server->arg, c, req, &c->passed);
	}
	return ctl_error(c, "unknown command \"%.60s\"", name);
}

/* Answers the line of @len bytes. False without memory. */
static bool answer_line(struct ctl_client *c, const char *line, size_t len)
{
	json_error_t je;
	json_t *req = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je), *result, *answer;
	char *text;
	size_t n;

	c->error[0] = 0;
	if (req)
		result = run_command(c, req);
	else
		result = ctl_error(c, "no JSON: %s (column %d)", je.text, je.column);
	json_decref(req);
	if (c->passed >= 0)
		close(c->passed);
	c->passed = -1;
	/* The text of an error may quote bytes of the request that are no UTF-8, which "s%" style packing refuses. */
	if (result)
		answer = json_pack("{s:b, s:o}", "ok", 1, "result", result);
	else
		answer = json_pack("{s:b, s:o}", "ok", 0, "error",
				   json_string(c->error) ?: json_string("wrong request"));
	text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	if (!text)
		return false;
	n = strlen(text);
	c->out = malloc(n + 1);
	if (c->out) {
		memcpy(c->out, text, n);
		c->out[n] = '\n';
		c->out_len = n + 1;
		c->out_done = 0;
	}
	free(text);
	return c->out != NULL;
}

/* Writes what the client takes. False when it is gone. */
static bool flush_out(struct ctl_client *c)
{
	while (c->out) {
		ssize_t n = send(c->fd.fd, c->out + c->out_done, c->out_len - c->out_done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->out_done += (size_t)n;
		if (c->out_done == c->out_len) {
			free(c->out);
			c->out = NULL;
			if (c->out_len > BIG_ANSWER)
				malloc_trim(0);
		}
	}
	return true;
}

/* Answers the lines that are complete, one at a time, for as long as the client takes the answers. False: to be closed. */
static bool run_lines(struct ctl_client *c)
{
	while (!c->out) {
		char *nl = memchr(c->in, '\n', c->in_len);
		size_t n;

		if (!nl)
			return !c->eof && c->in_len < CTL_LINE_MAX;
		n = (size_t)(nl - c->in);
		if (!answer_line(c, c->in, n))
			return false;
		c->in_len -= n + 1;
		memmove(c->in, nl + 1, c->in_len);
		if (!flush_out(c))
			return false;
	}
	return true;
}

/* False when the client is gone. */
static bool read_in(struct ctl_client *c)
{
	RIGHTS_CONTROL(control, 8);
	struct iovec iov = { c->in + c->in_len, CTL_LINE_MAX - c->in_len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	if (!iov.iov_len)
		return true;
	n = recvmsg(c->fd.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	rights_get(&msg, &c->passed, c->passed < 0);
	c->in_len += (size_t)n;
	c->eof = c->eof || !n;
	return true;
}

static void on_client(struct loop_fd *w, u32 events, struct now now)
{
	struct ctl_client *c = container_of(w, struct ctl_client, fd);
	bool alive = !(events & (EPOLLERR | EPOLLHUP)) || (events & EPOLLIN);

	if (alive && (events & EPOLLOUT))
		alive = flush_out(c);
	if (alive && !c->out && (events & EPOLLIN))
		alive = read_in(c);
	if (alive)
		alive = run_lines(c);
	if (alive)
		alive = !loop_fd_mod(w, c->out ? EPOLLOUT : EPOLLIN);
	if (!alive)
		client_close(c);
}

int ctl_server_attach(struct ctl_server *s, int fd)
{
	struct ctl_client *c = s->count < CTL_CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	int err = s->count < CTL_CLIENTS_MAX ? -ENOMEM : -EMFILE;

	if (!c)
		goto err_close;
	c->in = malloc(CTL_LINE_MAX);
	if (!c->in)
		goto err_free;
	c->server = s;
	c->passed = -1;
	c->fd = (struct loop_fd){ .fd = fd, .fn = on_client };
	err = loop_fd_add(s->loop, &c->fd, EPOLLIN);
	if (err)
		goto err_in;
	list_add(&s->clients, &c->link);
	s->count++;
	return 0;

err_in:
	free(c->in);
err_free:
	free(c);
err_close:
	close(fd);
	return err;
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct ctl_server *s = container_of(w, struct ctl_server, listener);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && ctl_server_attach(s, fd))
		log_at(LOG_WARN, "control", "a connection was refused");
}

static int start_listening(struct ctl_server *s, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int err;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, strlen(path));
	memcpy(s->path, path, strlen(path));
	s->listener = (struct loop_fd){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
					.fn = on_listen };
	if (s->listener.fd < 0)
		return -1;
	unlink(path);
	if (!bind(s->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) && !chmod(path, 0600) &&
	    !listen(s->listener.fd, CTL_CLIENTS_MAX) && !loop_fd_add(s->loop, &s->listener, EPOLLIN))
		return 0;
	err = errno;
	close(s->listener.fd);
	errno = err;
	return -1;
}

struct ctl_server *ctl_server_create(struct loop *loop, const char *path, const struct ctl_command *commands, void *arg)
{
	struct ctl_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = loop;
	s->commands = commands;
	s->arg = arg;
	s->listener.fd = -1;
	list_init(&s->clients);
	if (path && start_listening(s, path)) {
		free(s);
		return NULL;
	}
	return s;
}

void ctl_server_destroy(struct ctl_server *s)
{
	while (!list_empty(&s->clients))
		client_close(list_first(&s->clients, struct ctl_client, link));
	if (s->listener.fd >= 0) {
		loop_fd_del(&s->listener);
		close(s->listener.fd);
		unlink(s->path);
	}
	free(s);
}
