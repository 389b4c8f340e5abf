// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * muslin trace: the daemon writes pcapng to a pipe; this process copies the blocks, counts packets, and stops the
 * capture at its limit, so that a slow disk or terminal never blocks the daemon. With a size limit it starts a new
 * file when one is full, each beginning with the section and the interfaces, and keeps the newest files.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/ctl/ctl.h"

#define BLOCK_PACKET 6 /* Enhanced Packet Block */
#define BLOCK_MAX    (1u << 16)
#define PIPE_SIZE    (1 << 20)
#define BUFFER_SIZE  (1u << 20)
#define HEAD_MAX     (1u << 18)

struct trace {
	const char *place, *file;
	char *filter;                         /* words of muslin-fault(5); NULL: all packets */
	unsigned long long snap;              /* bytes per packet; 0: all */
	unsigned long long file_bytes, files; /* file ring: size (0: one file), and number of files kept (0: all) */
	unsigned long long number, written;   /* the current file: number and bytes */
	unsigned char head[HEAD_MAX];         /* section and interface blocks */
	size_t head_len;
	unsigned long long count; /* 0: no limit */
	double duration;          /* 0: no limit */
	int sock, in, out;
	unsigned long long packets;
	bool stop_requested; /* to exit */
	size_t len;
	unsigned char buf[BUFFER_SIZE];
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	interrupted = 1;
}

static const char usage[] =
	"usage: muslin trace [--name FABRIC] [-w FILE [-C MEGABYTES [-W FILES]]] [-c COUNT] [--duration SECONDS] "
	"[-s BYTES] NODE[:PORT] [KEY=VALUE...]";

static double trace_positive(const char *option, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (*end || !(v > 0))
		cli_fail(CLI_USAGE, "%s %s: not a number above 0; %s", option, text, usage);
	return v;
}

static void trace_add_filter(struct trace *t, const char *word)
{
	char *more;

	if (asprintf(&more, "%s%s%s", t->filter ? t->filter : "", t->filter ? " " : "", word) < 0)
		cli_fail(CLI_ERROR, "out of memory");
	free(t->filter);
	t->filter = more;
}

/* Appends a filter word; a shell word may contain blanks: "pcap=len > 100". */
static void trace_add_word(struct trace *t, const char *word)
{
	char *quoted;

	if (!strpbrk(word, " \t")) {
		trace_add_filter(t, word);
		return;
	}
	if (asprintf(&quoted, "%.*s=\"%s\"", (int)strcspn(word, "="), word, word + strcspn(word, "=") + 1) < 0)
		cli_fail(CLI_ERROR, "out of memory");
	trace_add_filter(t, quoted);
	free(quoted);
}

static unsigned long long trace_whole(const char *option, const char *text)
{
	double v = trace_positive(option, text);

	if (v > 1e15 || v != (double)(unsigned long long)v)
		cli_fail(CLI_USAGE, "%s %s: not a whole number; %s", option, text, usage);
	return (unsigned long long)v;
}

static void trace_parse(struct trace *t, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (argv[i][0] != '-' && !t->place) {
			t->place = argv[i];
			continue;
		}
		if (argv[i][0] != '-' && strchr(argv[i], '=')) {
			trace_add_word(t, argv[i]);
			continue;
		}
		if (i + 1 == argc)
			cli_fail(CLI_USAGE, "%s", usage);
		if (!strcmp(argv[i], "-w"))
			t->file = argv[i + 1];
		else if (!strcmp(argv[i], "-c"))
			t->count = trace_whole(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--duration"))
			t->duration = trace_positive(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "-s"))
			t->snap = trace_whole(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "-C"))
			t->file_bytes = trace_whole(argv[i], argv[i + 1]) * 1000000;
		else if (!strcmp(argv[i], "-W"))
			t->files = trace_whole(argv[i], argv[i + 1]);
		else
			cli_fail(CLI_USAGE, "%s", usage);
		i++; /* the option's value */
	}
	if (!t->place || (t->files && !t->file_bytes) || (t->file_bytes && !t->file))
		cli_fail(CLI_USAGE, "%s", usage);
	if (!t->file && isatty(STDOUT_FILENO))
		cli_fail(CLI_USAGE, "a capture is binary: use -w FILE, or a pipe as in `muslin trace %s | tshark -i -`",
			 t->place);
}

/* The nth file of a ring: the number precedes the suffix, h1.pcapng becomes h1.3.pcapng. */
static char *ring_file(const struct trace *t, unsigned long long n)
{
	const char *base = strrchr(t->file, '/'), *dot = strrchr(base ? base + 1 : t->file, '.');
	char *path;

	if (!dot || dot == (base ? base + 1 : t->file))
		dot = t->file + strlen(t->file);
	if (asprintf(&path, "%.*s.%llu%s", (int)(dot - t->file), t->file, n, dot) < 0)
		cli_fail(CLI_ERROR, "out of memory");
	return path;
}

static void trace_open(struct trace *t)
{
	char *path = t->file_bytes ? ring_file(t, t->number) : strdup(t->file), *old;

	t->out = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
	if (t->out < 0)
		cli_fail(CLI_ERROR, "%s: %s", path ?: t->file, strerror(errno));
	free(path);
	t->written = 0;
	if (!t->files || t->number < t->files)
		return;
	old = ring_file(t, t->number - t->files);
	(void)unlink(old);
	free(old);
}

/* The file is created after the capture has started, so that scripts may wait for it before they start traffic. */
static void trace_start(struct trace *t)
{
	int pipefd[2];
	char err[1024];
	json_t *req = json_pack("{s:s, s:s, s:I}", "command", "trace", "place", t->place, "snap", (json_int_t)t->snap);
	json_t *ports;

	if (t->filter)
		json_object_set_new(req, "filter", json_string(t->filter));
	t->sock = cli_connect_place(t->place);
	if (pipe2(pipefd, O_CLOEXEC))
		cli_fail(CLI_ERROR, "pipe: %s", strerror(errno));
	fcntl(pipefd[0], F_SETPIPE_SZ, PIPE_SIZE);
	ports = ctl_call(t->sock, req, pipefd[1], err, sizeof(err));
	if (!ports)
		cli_fail(CLI_ERROR, "%s", err);
	json_decref(ports);
	json_decref(req);
	close(pipefd[1]);
	t->in = pipefd[0];
	t->out = STDOUT_FILENO;
	if (t->file)
		trace_open(t);
}

static bool trace_put(int fd, const unsigned char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static bool trace_enough(const struct trace *t)
{
	return t->count && t->packets >= t->count;
}

static bool ring_put(struct trace *t, const unsigned char *data, size_t len)
{
	t->written += len;
	return trace_put(t->out, data, len);
}

/* Starts the next file, because the packet exceeds the size limit. */
static bool ring_next(struct trace *t)
{
	close(t->out);
	t->number++;
	trace_open(t);
	return ring_put(t, t->head, t->head_len);
}

/* Keeps the blocks with which each file of a ring begins. */
static void ring_remember(struct trace *t, const unsigned char *block, size_t len)
{
	if (t->head_len + len > sizeof(t->head))
		cli_fail(CLI_ERROR,
			 "-C: %s has too many ports for a capture of several files; name one port, or leave -C out",
			 t->place);
	memcpy(t->head + t->head_len, block, len);
	t->head_len += len;
}

/* Writes the complete blocks of the buffer, up to the packet limit. False if the output fails. */
static bool put_blocks(struct trace *t)
{
	size_t at = 0, from = 0;
	uint32_t head[2];
	bool ok = true;

	while (ok && t->len - at >= sizeof(head) && !trace_enough(t)) {
		memcpy(head, t->buf + at, sizeof(head));
		if (head[1] < 12 || head[1] > BLOCK_MAX)
			cli_fail(CLI_ERROR, "the capture stream of the daemon is invalid");
		if (t->len - at < head[1])
			break;
		if (t->file_bytes && head[0] != BLOCK_PACKET)
			ring_remember(t, t->buf + at, head[1]);
		else if (t->file_bytes && t->written + (at - from) + head[1] > t->file_bytes &&
			 t->written + (at - from) > t->head_len) {
			ok = ring_put(t, t->buf + from, at - from) && ring_next(t);
			from = at;
		}
		at += head[1];
		t->packets += head[0] == BLOCK_PACKET;
	}
	ok = ok && ring_put(t, t->buf + from, at - from);
	t->len -= at;
	memmove(t->buf, t->buf + at, t->len);
	return ok;
}

/* Reads available data. 1; 0 at EOF; negative if the output fails. */
static int trace_copy(struct trace *t)
{
	ssize_t n = read(t->in, t->buf + t->len, sizeof(t->buf) - t->len);

	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	if (!n)
		return 0;
	if (trace_enough(t))
		return 1; /* the rest is discarded */
	t->len += (size_t)n;
	return put_blocks(t) ? 1 : -errno;
}

/* Also by a signal that ppoll() has not delivered, which it does only if no descriptor is ready. */
static bool trace_interrupted(void)
{
	sigset_t pending;

	sigpending(&pending);
	return interrupted || sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
	       sigismember(&pending, SIGHUP);
}

static int trace_run(struct trace *t)
{
	static const char req[] = "{\"command\":\"untrace\"}\n";
	double end = t->duration ? cli_seconds() + t->duration : 0;
	sigset_t none;
	int r = 1;

	sigemptyset(&none);
	while (r > 0) {
		struct pollfd p[2] = { { .fd = t->in, .events = POLLIN }, { .fd = t->out } };
		double left = end ? end - cli_seconds() : 3600;
		struct timespec ts;

		if (!t->stop_requested && (trace_interrupted() || trace_enough(t) || left <= 0)) {
			/* The daemon captures no more, responds, and closes the pipe when it has written all; the
			 * response is read after the end of the pipe. */
			t->stop_requested = true;
			(void)send(t->sock, req, sizeof(req) - 1, MSG_NOSIGNAL);
		}
		if (t->stop_requested || left <= 0)
			left = 10;
		ts = (struct timespec){ .tv_sec = (time_t)left,
					.tv_nsec = (long)((left - (double)(time_t)left) * 1e9) };
		if (ppoll(p, 2, &ts, &none) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents & POLLERR)
			return -EPIPE;
		if (p[0].revents)
			r = trace_copy(t);
	}
	return r;
}

/* False: the daemon has not responded; it has ended. */
static bool trace_report(struct trace *t)
{
	char answer[512] = "", *last = NULL;
	const char *file = t->file;
	json_t *o;
	ssize_t n = t->stop_requested ? recv(t->sock, answer, sizeof(answer) - 1, 0) : 0;
	bool responded;
	long long dropped;

	o = n > 0 ? json_loads(answer, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	dropped = cli_number(json_object_get(o, "result"), "dropped");
	if (t->file_bytes)
		file = last = ring_file(t, t->number);
	fprintf(stderr, "%llu packets%s%s", t->packets, last ? ", the last in " : file ? " in " : "", file ?: "");
	free(last);
	if (dropped)
		fprintf(stderr, ", %lld dropped since the output was too slow", dropped);
	fputs("\n", stderr);
	responded = o;
	json_decref(o);
	return responded;
}

int cli_trace(int argc, char **argv)
{
	static struct trace t;
	struct sigaction sa = { .sa_handler = on_interrupt };
	sigset_t set;
	int err;

	trace_parse(&t, argc, argv);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL); /* delivered in ppoll() only */
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	trace_start(&t);
	err = trace_run(&t);
	if (err < 0 && err != -EPIPE)
		cli_fail(CLI_ERROR, "%s: %s", t.file ?: "standard output", strerror(-err));
	if (err < 0)
		return CLI_OK; /* the reader has closed the pipe */
	if (!trace_report(&t))
		cli_fail(CLI_ERROR, "the daemon has closed the connection (see `muslin log`)");
	return CLI_OK;
}
