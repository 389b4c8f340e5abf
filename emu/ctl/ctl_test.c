// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of requests of a control client, and their responses. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/ctl/ctl.h"
#include "emu/lib/passed.h"
#include "emu/lib/passed_fixture.h"
#include "emu/lib/row.h"

static u32 closed;

static json_t *cmd_echo(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	json_t *v = json_object_get(req, "value");

	return v ? json_incref(v) : ctl_error(c, "no value");
}

static json_t *cmd_fd(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	return json_boolean(*fd >= 0);
}

static json_t *cmd_big(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	size_t n = 4 << 20;
	char *text = malloc(n);
	json_t *s;

	memset(text, 'x', n);
	s = json_stringn(text, n);
	free(text);
	return s;
}

static void count_close(void *arg)
{
	closed++;
}

static json_t *cmd_watch(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	ctl_client_on_close(c, count_close, arg);
	return json_true();
}

static const struct ctl_command commands[] = {
	{ "echo", cmd_echo }, { "fd", cmd_fd }, { "big", cmd_big }, { "watch", cmd_watch }, { NULL, NULL },
};

struct fixture {
	struct loop *loop;
	struct ctl_server *server;
	int sock;
};

static void setup(struct fixture *f)
{
	int sv[2];

	f->loop = loop_create();
	f->server = ctl_server_create(f->loop, NULL, commands, f);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv) || ctl_server_attach(f->server, sv[1]))
		abort();
	f->sock = sv[0];
}

static void teardown(struct fixture *f)
{
	close(f->sock);
	ctl_server_destroy(f->server);
	loop_destroy(f->loop);
}

static const struct {
	const char *what, *in, *out; /* out NULL: the connection is closed without a response */
} rows[] = {
	{ "a command", "{\"command\":\"echo\",\"value\":7}\n", "{\"ok\":true,\"result\":7}\n" },
	{ "two in one write", "{\"command\":\"echo\",\"value\":1}\n{\"command\":\"echo\",\"value\":2}\n",
	  "{\"ok\":true,\"result\":1}\n{\"ok\":true,\"result\":2}\n" },
	{ "what the handler refuses", "{\"command\":\"echo\"}\n", "{\"ok\":false,\"error\":\"no value\"}\n" },
	{ "unknown command", "{\"command\":\"nope\"}\n",
	  "{\"ok\":false,\"error\":\"unknown command \\\"nope\\\": the daemon is of another version than its "
	  "client\"}\n" },
	{ "no command", "{}\n", "{\"ok\":false,\"error\":\"a request has a string \\\"command\\\"\"}\n" },
	{ "command is no string", "{\"command\":3}\n",
	  "{\"ok\":false,\"error\":\"a request has a string \\\"command\\\"\"}\n" },
	{ "an array", "[1]\n", "{\"ok\":false,\"error\":\"a request is a JSON object\"}\n" },
	{ "a bare number", "12\n", "{\"ok\":false,\"error\":\"a request is a JSON object\"}\n" },
	{ "an empty line", "\n", "{\"ok\":false," },
	{ "no JSON", "hello\n", "{\"ok\":false," },
	{ "a key twice", "{\"command\":\"echo\",\"command\":\"fd\"}\n", "{\"ok\":false," },
	{ "half a line", "{\"command\":\"echo\"", "" },
	{ "no UTF-8", "{\"command\":\"\xff\xfe\"}\n", "{\"ok\":false," },
	{ "an escaped NUL", "{\"command\":\"echo\\u0000\"}\n", "{\"ok\":false," },
	{ "after a bad line the next counts", "x\n{\"command\":\"fd\"}\n", "{\"ok\":false," },
};

static void run_rows(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		char buf[4096] = { 0 };
		struct fixture f;
		bool ok;

		setup(&f);
		ok = write(f.sock, rows[i].in, strlen(rows[i].in)) == (ssize_t)strlen(rows[i].in);
		loop_run_idle(f.loop, 0);
		ok = ok && (read(f.sock, buf, sizeof(buf) - 1) > 0) == (rows[i].out[0] != 0);
		ok = ok && !strncmp(buf, rows[i].out, strlen(rows[i].out));
		row((int)i, rows[i].what, ok);
		teardown(&f);
	}
}

static void test_long_line(void)
{
	char chunk[4096], c;
	struct fixture f;
	int i;

	setup(&f);
	memset(chunk, ' ', sizeof(chunk));
	for (i = 0; i < 2 * CTL_LINE_MAX / (int)sizeof(chunk); i++) {
		if (write(f.sock, chunk, sizeof(chunk)) < 0)
			break;
		loop_run_idle(f.loop, 0);
	}
	errno = 0;
	row(100, "an endless line ends the connection", read(f.sock, &c, 1) <= 0 && errno != EAGAIN);
	teardown(&f);
}

static void test_slow_client(void)
{
	static const char req[] = "{\"command\":\"big\"}\n{\"command\":\"fd\"}\n";
	char buf[65536], tail[64] = { 0 };
	struct fixture f;
	size_t got = 0;
	ssize_t n;
	int i;

	setup(&f);
	if (write(f.sock, req, sizeof(req) - 1) < 0)
		abort();
	loop_run_idle(f.loop, 0); /* returns although the response does not fit in the socket */
	for (i = 0; i < 100000 && got < (4u << 20); i++) {
		n = read(f.sock, buf, sizeof(buf));
		if (n > 0) {
			got += (size_t)n;
			memcpy(tail, buf + n - min(n, (ssize_t)24), (size_t)min(n, (ssize_t)24));
		}
		loop_run_idle(f.loop, 0);
	}
	n = read(f.sock, buf, sizeof(buf));
	row(101, "a large response is sent in parts", got > (4u << 20));
	row(102, "the response to the next request follows", (n > 0 && buf[n - 1] == '\n') || strstr(tail, "false"));
	teardown(&f);
}

static void test_close(void)
{
	static const char req[] = "{\"command\":\"watch\"}\n";
	struct fixture f;

	setup(&f);
	if (write(f.sock, req, sizeof(req) - 1) < 0)
		abort();
	loop_run_idle(f.loop, 0);
	row(103, "no close before the close", closed == 0);
	shutdown(f.sock, SHUT_WR);
	loop_run_idle(f.loop, 0);
	row(104, "a disconnect is reported", closed == 1);
	teardown(&f);
	row(105, "and reported once", closed == 1);
}

static struct fixture *flooded;
static u32 seen_answers, seen_later;

static u32 answers_count(void)
{
	char buf[65536];
	ssize_t n = recv(flooded->sock, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT), i;
	u32 count = 0;

	for (i = 0; i < n; i++)
		count += buf[i] == '\n';
	return count;
}

/* As commands of programs do, it runs tasks. */
static void on_other(struct loop_fd *w, u32 events, struct now now)
{
	seen_answers = answers_count();
	loop_run_tasks(flooded->loop);
	seen_later = answers_count();
	loop_fd_del(w);
}

/* Thousands of requests in one buffer: others are served meanwhile, and all get responses. */
static void test_budget(void)
{
	char lines[8192], buf[65536];
	struct fixture f;
	struct loop_fd other = { .fd = eventfd(1, EFD_CLOEXEC), .fn = on_other };
	u32 got = 0;
	ssize_t n, i;
	int turns;

	setup(&f);
	flooded = &f;
	memset(lines, '\n', sizeof(lines));
	if (write(f.sock, lines, sizeof(lines)) != sizeof(lines))
		abort();
	loop_fd_add(f.loop, &other, EPOLLIN);
	loop_run_idle(f.loop, 0);
	row(108, "others are not starved", seen_answers && seen_answers <= 2 * CTL_LINES_TURN);
	row(112, "no request is handled in the middle of another's", seen_later == seen_answers);
	for (turns = 0; turns < 100000 && got < sizeof(lines); turns++) {
		n = recv(f.sock, buf, sizeof(buf), MSG_DONTWAIT);
		for (i = 0; i < n; i++)
			got += buf[i] == '\n';
		loop_run_idle(f.loop, 0);
	}
	row(109, "and all requests have responses", got == sizeof(lines));
	close(other.fd);
	teardown(&f);
}

static void test_deep(void)
{
	static const char wrong[] = "{\"ok\":false,";
	char *line = malloc(CTL_LINE_MAX), buf[4096] = { 0 };
	struct fixture f;

	setup(&f);
	memset(line, '[', CTL_LINE_MAX - 2);
	line[CTL_LINE_MAX - 2] = '\n';
	if (write(f.sock, line, CTL_LINE_MAX - 1) != CTL_LINE_MAX - 1)
		abort();
	loop_run_idle(f.loop, 0);
	row(110, "JSON that is too deep",
	    read(f.sock, buf, sizeof(buf) - 1) > 0 && !strncmp(buf, wrong, sizeof(wrong) - 1));
	teardown(&f);
	free(line);
}

static void test_too_many(void)
{
	int sv[CTL_CLIENTS_MAX][2], i, err = 0, last[2];
	struct fixture f;

	setup(&f);
	for (i = 0; i < CTL_CLIENTS_MAX - 1; i++)
		err |= socketpair(AF_UNIX, SOCK_STREAM, 0, sv[i]) || ctl_server_attach(f.server, sv[i][1]);
	row(106, "as many clients as promised", !err);
	err = socketpair(AF_UNIX, SOCK_STREAM, 0, last) ? 0 : ctl_server_attach(f.server, last[1]);
	row(107, "one more is refused", err == -EMFILE);
	close(last[0]);
	for (i = 0; i < CTL_CLIENTS_MAX - 1; i++)
		close(sv[i][0]);
	teardown(&f);
}

/* Too many descriptors passed by the client, which is this process, are waiting to be closed. */
static void test_refused(void)
{
	int peer[PASSED_THREADS_OWNER], i;
	struct fixture f;
	char answer[64];

	setup(&f);
	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		passed_close(slow_socket(&peer[i]), getpid());
	for (i = 0; i <= PASSED_OWNER_MOST; i++)
		passed_close(open("/dev/null", O_RDONLY | O_CLOEXEC), getpid());
	if (write(f.sock, "{}\n", 3) != 3)
		abort();
	loop_run_idle(f.loop, 0);
	row(111, "a client of too many slow descriptors is disconnected", read(f.sock, answer, sizeof(answer)) == 0);
	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		close(peer[i]);
	teardown(&f);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	run_rows();
	test_long_line();
	test_slow_client();
	test_close();
	test_budget();
	test_deep();
	test_too_many();
	test_refused();
	return rows_end();
}
