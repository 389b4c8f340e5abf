// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin top: live rates of links. muslin metrics: counters for Prometheus. muslin timeline: recorded events. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/lib/types.h"

#define HTTP_TIMEOUT 5 /* seconds for one request */

struct rate {
	char name[80];
	const char *state;
	double out, in, packets; /* Gb/s, Gb/s, packets per second */
};

static long long top_counter(const json_t *port, const char *name)
{
	return cli_number(json_object_get(port, "counters"), name);
}

/* Whether the port has a cable, or is on sockets. */
static bool top_has_link(const json_t *node, const json_t *port)
{
	return *cli_text(port, "peer") || *cli_text(node, "binding");
}

/* A sample: rows of name, state, words out and in, packets out and in. */
static json_t *top_sample(void)
{
	return cli_request_all(json_pack("{s:s}", "command", "rates"));
}

/* 0 for a port that is new, or whose counters were reset, as those of a daemon that was started again. */
static double row_diff(const json_t *before, const json_t *after, size_t column)
{
	json_int_t then = json_integer_value(json_array_get(before, column)),
		   now = json_integer_value(json_array_get(after, column));

	return before && now > then ? (double)(now - then) : 0;
}

static int top_busier(const void *a, const void *b)
{
	const struct rate *x = a, *y = b;

	return x->packets < y->packets ? 1 : x->packets > y->packets ? -1 : strcmp(x->name, y->name);
}

/* The rates between two samples, in descending order; NULL: none. */
static struct rate *top_rates(const json_t *before, const json_t *after, double dt)
{
	size_t n = json_array_size(after), i;
	struct rate *r = calloc(n ? n : 1, sizeof(*r));
	json_t *by_name = json_object(), *row;

	if (!r || !by_name)
		cli_fail(CLI_ERROR, "out of memory");
	json_array_foreach(before, i, row) json_object_set(by_name, json_string_value(json_array_get(row, 0)), row);
	json_array_foreach(after, i, row)
	{
		const json_t *old = json_object_get(by_name, json_string_value(json_array_get(row, 0)));

		snprintf(r[i].name, sizeof(r[i].name), "%s", json_string_value(json_array_get(row, 0)));
		r[i].state = json_string_value(json_array_get(row, 1));
		r[i].out = row_diff(old, row, 2) * 32 / dt / 1e9;
		r[i].in = row_diff(old, row, 3) * 32 / dt / 1e9;
		r[i].packets = (row_diff(old, row, 4) + row_diff(old, row, 5)) / dt;
	}
	json_decref(by_name);
	qsort(r, n, sizeof(*r), top_busier);
	return r;
}

/* Prints a line, truncated to the terminal's width (0: no limit); with a port's state @at this column (0: none). */
static void top_line(int columns, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void top_line(int columns, size_t at, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (columns > 0 && columns < (int)sizeof(text))
		text[columns] = 0;
	cli_line(text, at);
}

/* @rows: lines for ports, 0: all. */
static void print_rates(const json_t *before, const json_t *after, double dt, size_t rows, int columns)
{
	struct rate *r = top_rates(before, after, dt);
	size_t n = json_array_size(after), i;
	int width = 28;

	for (i = 0; i < n && (!rows || i < rows); i++)
		width = max(width, (int)strlen(r[i].name));
	if (columns) /* the rates are visible even if the name is long */
		width = min(width, max(columns - 48, 8));
	top_line(columns, 0, "%-*s %-7s %9s %9s %11s", width, "port", "state", "out Gb/s", "in Gb/s", "packets/s");
	for (i = 0; i < n && (!rows || i < rows); i++)
		top_line(columns, (size_t)width + 1, "%-*.*s %-7s %9.3f %9.3f %11.0f", width, width, r[i].name,
			 r[i].state, r[i].out, r[i].in, r[i].packets);
	if (rows && n > rows)
		top_line(columns, 0, "... and %zu %s more", n - rows, plural(n - rows, "port", "ports"));
	free(r);
}

static double top_number(const char *option, const char *text, double max)
{
	char *end;
	double v = strtod(text ? text : "", &end);

	if (!text)
		cli_fail(CLI_USAGE, "%s: missing number", option);
	if (end == text || *end || !(v > 0 && v <= max))
		cli_fail(CLI_USAGE, "%s %s: not a number above 0, up to %.10g", option, text, max);
	return v;
}

static struct termios top_cooked;

static void top_restore(void)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &top_cooked);
}

static void top_signal(int sig)
{
	top_restore();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Reads keys immediately, without echo, until exit. False: not a terminal. */
static bool top_keys(void)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &top_cooked))
		return false;
	raw = top_cooked;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	atexit(top_restore);
	signal(SIGINT, top_signal);
	signal(SIGTERM, top_signal);
	return !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* Waits for @seconds. True: q was typed. */
static bool top_wait(double seconds, bool keys)
{
	double end = cli_seconds() + seconds, left;
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	while ((left = end - cli_seconds()) > 0) {
		if (!keys) {
			cli_sleep(left);
			continue;
		}
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			return true;
	}
	return false;
}

int cli_top(int argc, char **argv)
{
	double interval = 1, count = 0, then, now;
	bool tty = isatty(STDOUT_FILENO), keys;
	struct winsize size = { .ws_row = 0 };
	json_t *before, *after;
	int i;

	for (i = 1; i < argc; i += 2) {
		if (!strcmp(argv[i], "--interval"))
			interval = top_number(argv[i], argv[i + 1], 3600);
		else if (!strcmp(argv[i], "-n"))
			count = top_number(argv[i], argv[i + 1], 1e9);
		else
			cli_fail(CLI_USAGE, "usage: muslin top [--name FABRIC] [-n COUNT] [--interval SECONDS]");
	}
	keys = tty && top_keys();
	before = top_sample();
	then = cli_seconds();
	while (!fflush(stdout) && !top_wait(interval, keys)) {
		after = top_sample();
		now = cli_seconds();
		if (tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
			size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
		if (tty)
			printf("\033[H\033[2J");
		/* Three lines are used by the header, the count of omitted ports, and the cursor. */
		print_rates(before, after, now - then, tty ? (size_t)max(size.ws_row - 3, 1) : 0,
			    tty ? size.ws_col : 0);
		json_decref(before);
		before = after;
		then = now;
		if (count > 0 && --count <= 0)
			break;
	}
	json_decref(before);
	return fflush(stdout) ? CLI_ERROR : CLI_OK;
}

/* Metrics */

struct metrics {
	FILE *out;
	const json_t *nodes;
};

static void metrics_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_label(FILE *out, const char *label, const char *value)
{
	fprintf(out, ",%s=\"", label);
	for (; *value; value++)
		fprintf(out, strchr("\\\"", *value) ? "\\%c" : "%c", *value);
	fprintf(out, "\"");
}

/* Prints the metric and its port labels. */
static void metrics_port(FILE *out, const char *metric, const json_t *node, const json_t *port)
{
	fprintf(out, "%s{fabric=\"%s\"", metric, cli_run.name);
	metrics_label(out, "node", cli_text(node, "name"));
	fprintf(out, ",port=\"%lld\"", cli_number(port, "num"));
}

#define METRICS_EACH(m, i, node, k, port)       \
	json_array_foreach((m)->nodes, i, node) \
		json_array_foreach(json_object_get(node, "ports"), k, port) if (top_has_link(node, port))

static void metrics_ports(const struct metrics *m)
{
	json_t *node, *port;
	size_t i, k;

	metrics_family(m->out, "muslin_port_up", "gauge", "1 while the port is Active.");
	METRICS_EACH(m, i, node, k, port)
	{
		metrics_port(m->out, "muslin_port_up", node, port);
		fprintf(m->out, "} %d\n", !strcmp(cli_text(port, "state"), "Active"));
	}
	metrics_family(m->out, "muslin_port_info", "gauge", "Node and peer of the port; always 1.");
	METRICS_EACH(m, i, node, k, port)
	{
		metrics_port(m->out, "muslin_port_info", node, port);
		fprintf(m->out, ",guid=\"%s\",link_layer=\"%s\",lid=\"%lld\",width=\"%lld\",speed=\"%s\"",
			cli_text(port, "guid")[0] ? cli_text(port, "guid") : cli_text(node, "guid"),
			cli_text(node, "link_layer"), cli_number(port, "lid"), cli_number(port, "width"),
			cli_text(port, "speed"));
		metrics_label(m->out, "peer", cli_text(port, "peer"));
		fprintf(m->out, ",peer_port=\"%lld\"} 1\n", cli_number(port, "peer_port"));
	}
	metrics_family(m->out, "muslin_port_rate_gbps", "gauge", "Rate of the link in Gb/s, if it has one.");
	METRICS_EACH(m, i, node, k, port)
	{
		if (!json_object_get(port, "rate"))
			continue;
		metrics_port(m->out, "muslin_port_rate_gbps", node, port);
		fprintf(m->out, "} %g\n", json_number_value(json_object_get(port, "rate")));
	}
}

/* A metric family for each counter of any port: InfiniBand ports have the same ones, others their own. */
static void metrics_counters(const struct metrics *m)
{
	json_t *names = json_object(), *node, *port, *value;
	bool fabric = false, ethernet;
	char family[80];
	const char *name;
	size_t i, k;
	void *tmp;

	json_array_foreach(m->nodes, i, node)
	{
		ethernet = !strcmp(cli_text(node, "link_layer"), "Ethernet");
		if (!ethernet && fabric)
			continue;
		fabric = fabric || !ethernet;
		json_object_update(names,
				   json_object_get(json_array_get(json_object_get(node, "ports"), 0), "counters"));
	}
	json_object_foreach_safe(names, tmp, name, value)
	{
		snprintf(family, sizeof(family), "muslin_%s_total", name);
		metrics_family(m->out, family, "counter", "Counter of the port, named as in sysfs.");
		METRICS_EACH(m, i, node, k, port)
		{
			if (!json_object_get(json_object_get(port, "counters"), name))
				continue;
			metrics_port(m->out, family, node, port);
			fprintf(m->out, "} %lld\n", top_counter(port, name));
		}
	}
	json_decref(names);
}

/*
 * The text format of Prometheus, for all nodes or for @only. -ENOENT: there is no such node; -ENOTCONN: the fabric is
 * not up; both with a message in @err.
 */
static int top_metrics(FILE *out, const char *only, char *err, size_t err_len)
{
	json_t *req = json_pack("{s:s, s:b}", "command", "show", "counters", 1), *shown, *sm, *status;
	struct metrics m = { .out = out };
	char down[1024];

	if (only)
		json_object_set_new(req, "node", json_string(only));
	shown = only ? cli_request_any(req, err, err_len) : cli_try_all(req, err, err_len);
	/* Of several daemons, the one of the node may not be that of the subnet manager. */
	status = cli_try_all(json_pack("{s:s}", "command", "status"), down, sizeof(down));
	if (!status || !shown) {
		if (!status)
			snprintf(err, err_len, "%s", down);
		json_decref(shown);
		json_decref(status);
		return status && only ? -ENOENT : -ENOTCONN;
	}
	sm = json_object_get(status, "sm");
	m.nodes = json_object_get(shown, "nodes");
	metrics_family(out, "muslin_sm_up", "gauge", "1 while there is a master subnet manager.");
	fprintf(out, "muslin_sm_up{fabric=\"%s\",host=\"%s\"} %d\n", cli_run.name, cli_text(sm, "host"),
		json_is_object(sm));
	metrics_ports(&m);
	metrics_counters(&m);
	json_decref(status);
	json_decref(shown);
	return 0;
}

/*
 * One line on the fabric. 0: each port with a link is Active, and the subnet, if there is one, has a manager; -EAGAIN: not
 * yet; -ENOTCONN: the fabric is not up, with a message in @err.
 */
static int top_health(FILE *out, char *err, size_t err_len)
{
	json_t *status = cli_try_all(json_pack("{s:s}", "command", "status"), err, err_len),
	       *sm = json_object_get(status, "sm");
	long long linked = cli_number(status, "linked"), active = cli_number(status, "linked_active");
	bool subnet = cli_number(status, "ports") || json_is_object(sm);
	bool healthy = active == linked && (!subnet || json_is_object(sm));

	if (!status)
		return -ENOTCONN;
	fprintf(out, "%lld of %lld linked ports are Active", active, linked);
	if (*cli_text(sm, "host"))
		fprintf(out, "; the subnet manager is on %s\n", cli_text(sm, "host"));
	else if (json_is_object(sm))
		fprintf(out, "; the subnet manager is in another daemon\n");
	else
		fprintf(out, "%s\n", subnet ? "; no subnet manager" : "");
	json_decref(status);
	return healthy ? 0 : -EAGAIN;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Decodes %XX and + of a query (RFC 3986 2.1 and HTML forms) in place. */
static void query_decode(char *text)
{
	char *to = text;

	for (; *text; text++) {
		int high = *text == '%' ? hex_digit(text[1]) : -1, low = high < 0 ? -1 : hex_digit(text[2]);

		if (low >= 0 && (high || low)) {
			*to++ = (char)(high << 4 | low);
			text += 2;
		} else {
			*to++ = *text == '+' ? ' ' : *text;
		}
	}
	*to = 0;
}

/* The value of @key in the query of @target, the target of a request, which it changes; NULL: there is none. */
static char *query_value(char *target, const char *key)
{
	char *query = strchr(target, '?'), *word, *at = NULL;
	size_t len = strlen(key);

	for (word = query ? strtok_r(query + 1, "&", &at) : NULL; word; word = strtok_r(NULL, "&", &at)) {
		if (strncmp(word, key, len) || word[len] != '=')
			continue;
		query_decode(word + len + 1);
		return word + len + 1;
	}
	return NULL;
}

/* A fabric that is not up fails the scrape, so that Prometheus's own metric `up` of the job is 0. */
static void top_answer(int conn)
{
	struct timeval timeout = { .tv_sec = HTTP_TIMEOUT };
	char request[2048], target[1024] = "", err[1024] = "not found", *body = NULL;
	int status = -ENOENT;
	size_t len, sent = 0;
	ssize_t n;
	FILE *out;

	setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(conn, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	n = recv(conn, request, sizeof(request) - 1, 0);
	request[n > 0 ? n : 0] = 0;
	out = open_memstream(&body, &len);
	if (!out)
		return;
	if (sscanf(request, "GET %1023[^ \r\n]", target) != 1)
		target[0] = 0;
	if (!strncmp(target, "/metrics", 8))
		status = top_metrics(out, query_value(target, "node"), err, sizeof(err));
	else if (!strncmp(target, "/health", 7))
		status = top_health(out, err, sizeof(err));
	if (status && status != -EAGAIN)
		fprintf(out, "%s\n", err);
	fclose(out);
	dprintf(conn, "HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n\r\n",
		!status             ? "200 OK"
		: status == -ENOENT ? "404 Not Found"
				    : "503 Service Unavailable",
		len);
	while (sent < len && (n = send(conn, body + sent, len - sent, MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	free(body);
}

/* Listens at "127.0.0.1:9100", or at a port of the loopback address. */
static int listen_at(const char *where)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *colon = strrchr(where, ':');
	char host[64] = "127.0.0.1";
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	a.sin_port = htons((uint16_t)top_number("--listen", colon ? colon + 1 : where, 65535));
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
		cli_fail(CLI_USAGE, "--listen %s: not an IPv4 ADDRESS:PORT", where);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 8))
		cli_fail(CLI_ERROR, "--listen %s: %s", where, strerror(errno));
	return s;
}

int cli_metrics(int argc, char **argv)
{
	char err[1024];
	int server, conn;

	if (argc > 3 || (argc == 3) != (argc > 1 && !strcmp(argv[1], "--listen")) || (argc == 2 && argv[1][0] == '-'))
		cli_fail(CLI_USAGE, "usage: muslin metrics [--name FABRIC] [NODE | --listen [ADDRESS:]PORT]");
	if (argc < 3) {
		if (top_metrics(stdout, argv[1], err, sizeof(err)))
			cli_fail(CLI_ERROR, "%s", err);
		return fflush(stdout) ? CLI_ERROR : CLI_OK;
	}
	server = listen_at(argv[2]);
	signal(SIGPIPE, SIG_IGN); /* a client may reset its connection before the response */
	for (;;) {
		conn = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0)
			continue;
		top_answer(conn);
		close(conn);
	}
}

static int event_earlier(const void *a, const void *b)
{
	double x = json_number_value(json_array_get(*(json_t *const *)a, 0)),
	       y = json_number_value(json_array_get(*(json_t *const *)b, 0));

	return x < y ? -1 : x > y;
}

/* Sorts the events of several daemons by time. */
static void timeline_sort(json_t *events)
{
	size_t n = json_array_size(events), i;
	json_t **e = calloc(n + 1, sizeof(json_t *));

	for (i = 0; e && i < n; i++)
		e[i] = json_incref(json_array_get(events, i));
	if (e)
		qsort(e, n, sizeof(json_t *), event_earlier);
	for (i = 0; e && i < n; i++)
		json_array_set_new(events, i, e[i]);
	free(e);
}

/* When the first of the daemons began to record. */
static double timeline_begin(void)
{
	json_t *t = cli_request_all(json_pack("{s:s, s:b}", "command", "timeline", "began", true)),
	       *began = json_object_get(t, "began"), *when;
	double first = json_number_value(json_array_get(began, 0));
	size_t i;

	if (!json_array_size(began))
		cli_fail(CLI_ERROR, "no timeline is recorded; start one with `muslin timeline --start`");
	json_array_foreach(began, i, when)
	{
		if (json_number_value(when) < first)
			first = json_number_value(when);
	}
	json_decref(t);
	return first;
}

int cli_timeline(int argc, char **argv)
{
	bool start = argc == 2 && !strcmp(argv[1], "--start");
	json_t *t;

	if (argc > 1 && !start)
		cli_fail(CLI_USAGE, "usage: muslin timeline [--name FABRIC] [--start]");
	if (start) {
		json_decref(cli_request_all(json_pack("{s:s, s:b}", "command", "timeline", "start", true)));
		return CLI_OK;
	}
	t = cli_request_all(json_pack("{s:s, s:f}", "command", "timeline", "since", timeline_begin()));
	timeline_sort(json_object_get(t, "events"));
	json_dumpf(t, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(t);
	return fflush(stdout) ? CLI_ERROR : CLI_OK;
}
