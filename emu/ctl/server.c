// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Server side of the control socket: clients, requests, responses. */
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/ctl/ctl.h"
#include "emu/lib/accept.h"
#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/lib/socket_path.h"

#define BIG_ANSWER (8u << 20) /* bytes, from which on free memory is returned to the system */

struct ctl_server {
	struct loop *loop;
	struct loop_fd listener;
	struct accept_listener accept;
	const struct ctl_command *commands;
	void *arg;
	struct socket_path bound;
	struct list clients;
	u32 count;
};

struct ctl_client {
	struct list link;
	struct loop_fd fd;
	struct ctl_server *server;
	pid_t pid;              /* of the client */
	int passed;             /* a descriptor whose request is not yet complete; -1: none */
	struct loop_timer more; /* handles lines beyond the turn's budget */
	char *in, *out;
	size_t in_at, in_len; /* bytes handled, and all bytes */
	size_t out_len, out_done;
	bool eof;
	char error[1024];
	void (*on_close)(void *arg);
	void *close_arg;
};

static void client_close(struct ctl_client *c)
{
	if (c->on_close)
		c->on_close(c->close_arg);
	loop_timer_cancel(&c->more);
	loop_fd_del(&c->fd);
	passed_close(c->passed, c->pid);
	passed_close_socket(c->fd.fd, c->pid);
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
	return ctl_error(c, "unknown command \"%.60s\": the daemon is of another version than its client", name);
}

/* Handles the line of @len bytes. False if out of memory. */
static bool answer_line(struct ctl_client *c, const char *line, size_t len)
{
	json_error_t je;
	json_t *req = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je), *result, *answer;

	c->error[0] = 0;
	if (req)
		result = run_command(c, req);
	else
		result = ctl_error(c, "invalid JSON: %s (column %d)", je.text, je.column);
	json_decref(req);
	passed_close(c->passed, c->pid);
	c->passed = -1;
	/* The error may quote bytes of the request that are not UTF-8, which packing by format rejects. */
	if (result)
		answer = json_pack("{s:b, s:o}", "ok", 1, "result", result);
	else
		answer = json_pack("{s:b, s:o}", "ok", 0, "error",
				   json_string(c->error) ?: json_string("wrong request"));
	c->out = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	if (!c->out)
		return false;
	c->out_len = strlen(c->out) + 1;
	c->out[c->out_len - 1] = '\n'; /* replaces the NUL: the length is known */
	c->out_done = 0;
	return true;
}

/* Writes as much as the socket takes. False if the client has closed. */
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

/*
 * Continues in the next iteration of the loop. Not a task: commands of programs and guests run tasks, and a request may
 * remove the device or the guest whose command that is.
 */
static void run_later(struct ctl_client *c)
{
	struct loop *loop = c->server->loop;

	loop_timer_set(loop, &c->more, loop_now(loop).ns + 1);
}

/* Handles complete lines, one at a time, while the client reads the responses. False: close the connection. */
static bool run_lines(struct ctl_client *c)
{
	u32 budget = CTL_LINES_TURN;

	while (!c->out) {
		char *line = c->in + c->in_at, *nl = memchr(line, '\n', c->in_len - c->in_at);

		if (!nl)
			return !c->eof && c->in_len - c->in_at < CTL_LINE_MAX;
		if (!budget--) {
			run_later(c);
			return true;
		}
		if (!answer_line(c, line, (size_t)(nl - line)))
			return false;
		c->in_at = (size_t)(nl - c->in) + 1;
		if (!flush_out(c))
			return false;
	}
	return true;
}

/* False if the client has closed. */
static bool read_in(struct ctl_client *c)
{
	struct iovec iov;
	u32 npassed;
	ssize_t n;

	c->in_len -= c->in_at;
	memmove(c->in, c->in + c->in_at, c->in_len);
	c->in_at = 0;
	iov = (struct iovec){ c->in + c->in_len, CTL_LINE_MAX - c->in_len };
	n = passed_recv(c->fd.fd, &iov, &c->passed, c->passed < 0, &npassed);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->in_len += (size_t)n;
	c->eof = c->eof || !n;
	return !passed_refused(c->pid);
}

/* Does not read from a client while requests, or a response that it does not read, are pending. */
static void client_run(struct ctl_client *c, bool alive)
{
	if (alive)
		alive = run_lines(c);
	if (alive)
		alive = !loop_fd_mod(&c->fd, c->out ? EPOLLOUT : loop_timer_armed(&c->more) ? 0 : EPOLLIN);
	if (!alive)
		client_close(c);
}

static void on_client(struct loop_fd *w, u32 events, struct now now)
{
	struct ctl_client *c = container_of(w, struct ctl_client, fd);
	bool alive = !(events & (EPOLLERR | EPOLLHUP)) || (events & EPOLLIN);

	if (alive && (events & EPOLLOUT))
		alive = flush_out(c);
	if (alive && !c->out && (events & EPOLLIN))
		alive = read_in(c);
	client_run(c, alive);
}

static void on_more(struct loop_timer *t, struct now now)
{
	client_run(container_of(t, struct ctl_client, more), true);
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
	c->pid = passed_owner(fd);
	c->fd = (struct loop_fd){ .fd = fd, .fn = on_client };
	c->more.fn = on_more;
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
	passed_close_socket(fd, passed_owner(fd));
	return err;
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct ctl_server *s = container_of(w, struct ctl_server, listener);
	int fd = accept_next(&s->accept, SOCK_NONBLOCK);

	if (fd == -EMFILE || fd == -ENFILE || (fd >= 0 && ctl_server_attach(s, fd)))
		log_at(LOG_WARN, "control", "a connection was refused: the limit is %u", s->count);
}

static int start_listening(struct ctl_server *s, const char *path)
{
	int err;

	s->listener = (struct loop_fd){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
					.fn = on_listen };
	if (s->listener.fd < 0)
		return -1;
	unlink(path);
	err = -socket_path_bind(&s->bound, s->listener.fd, path);
	if (!err && !chmod(path, 0600) && !listen(s->listener.fd, CTL_CLIENTS_MAX) &&
	    !loop_fd_add(s->loop, &s->listener, EPOLLIN)) {
		accept_init(&s->accept, s->listener.fd);
		return 0;
	}
	err = err ? err : errno;
	socket_path_unlink(&s->bound);
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
		accept_fini(&s->accept);
		socket_path_unlink(&s->bound);
		close(s->listener.fd);
	}
	free(s);
}
