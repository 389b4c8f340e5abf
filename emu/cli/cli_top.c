// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin top: live rates of links. muslin metrics: counters for Prometheus. muslin timeline: recorded events. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/cli/cli.h"

#define LINKS_MAX    65536
#define HTTP_TIMEOUT 5 /* seconds for one request */

struct rate {
	char name[160];
	const char *state;
	double out, in, packets; /* Gb/s, Gb/s, packets per second */
};

static json_t *top_show(void)
{
	return cli_ask_all(json_pack("{s:s, s:b}", "command", "show", "counters", 1));
}

static long long top_counter(const json_t *port, const char *name)
{
	return cli_number(json_object_get(port, "counters"), name);
}

/* Counter differences of a port between two samples. */
static void rate_of(struct rate *r, const json_t *node, const json_t *before, const json_t *after, double dt)
{
	snprintf(r->name, sizeof(r->name), "%s:%lld", cli_text(node, "name"), cli_number(after, "num"));
	r->state = cli_text(after, "state");
	r->out = (double)(top_counter(after, "port_xmit_data") - top_counter(before, "port_xmit_data")) * 32 / dt / 1e9;
	r->in = (double)(top_counter(after, "port_rcv_data") - top_counter(before, "port_rcv_data")) * 32 / dt / 1e9;
	r->packets = (double)(top_counter(after, "port_xmit_packets") - top_counter(before, "port_xmit_packets") +
			      top_counter(after, "port_rcv_packets") - top_counter(before, "port_rcv_packets")) /
		     dt;
}

static int top_busier(const void *a, const void *b)
{
	const struct rate *x = a, *y = b;

	return x->packets < y->packets ? 1 : x->packets > y->packets ? -1 : strcmp(x->name, y->name);
}

static size_t top_rates(struct rate *r, const json_t *before, const json_t *after, double dt)
{
	json_t *nodes = json_object_get(after, "nodes"), *node, *port;
	size_t n = 0, i, k;

	json_array_foreach(nodes, i, node)
	{
		json_t *old = json_object_get(json_array_get(json_object_get(before, "nodes"), i), "ports");

		json_array_foreach(json_object_get(node, "ports"), k, port)
		{
			if (*cli_text(port, "peer") && n < LINKS_MAX)
				rate_of(&r[n++], node, json_array_get(old, k), port, dt);
		}
	}
	qsort(r, n, sizeof(*r), top_busier);
	return n;
}

static void print_rates(const json_t *before, const json_t *after, double dt, int rows)
{
	static struct rate r[LINKS_MAX];
	size_t n = top_rates(r, before, after, dt), i;

	printf("%-28s %-11s %10s %10s %12s\n", "port", "state", "out Gb/s", "in Gb/s", "packets/s");
	for (i = 0; i < n && i < (size_t)rows; i++)
		printf("%-28s %-11s %10.3f %10.3f %12.0f\n", r[i].name, r[i].state, r[i].out, r[i].in, r[i].packets);
}

static double top_number(const char *text, double max)
{
	char *end;
	double v = strtod(text ? text : "", &end);

	if (!text || end == text || *end || v <= 0 || v > max)
		cli_fail(CLI_USAGE, "%s: not a number up to %g", text ? text : "?", max);
	return v;
}

int cli_top(int argc, char **argv)
{
	double interval = 1, count = 0;
	bool tty = isatty(STDOUT_FILENO);
	json_t *before, *after;
	int i;

	for (i = 1; i < argc; i += 2) {
		if (!strcmp(argv[i], "--interval"))
			interval = top_number(argv[i + 1], 3600);
		else if (!strcmp(argv[i], "-n"))
			count = top_number(argv[i + 1], 1e9);
		else
			cli_fail(CLI_USAGE, "usage: muslin top [--name FABRIC] [-n COUNT] [--interval SECONDS]");
	}
	before = top_show();
	while (!fflush(stdout)) {
		cli_sleep(interval);
		after = top_show();
		if (tty)
			printf("\033[H\033[2J");
		print_rates(before, after, interval, tty ? 30 : LINKS_MAX);
		json_decref(before);
		before = after;
		if (count > 0 && --count <= 0)
			break;
	}
	json_decref(before);
	return fflush(stdout) ? CLI_ERROR : CLI_OK;
}

/* The text format of Prometheus: one family for each counter, one line for each port with a cable. */
static void top_metrics(FILE *out)
{
	json_t *shown = top_show(), *node, *port, *value;
	json_t *nodes = json_object_get(shown, "nodes");
	json_t *first = json_array_get(json_object_get(json_array_get(nodes, 0), "ports"), 0);
	const char *name;
	size_t i, k;

	fprintf(out, "# TYPE muslin_port_up gauge\n");
	json_array_foreach(nodes, i, node) json_array_foreach(json_object_get(node, "ports"), k, port)
	{
		if (*cli_text(port, "peer"))
			fprintf(out, "muslin_port_up{fabric=\"%s\",node=\"%s\",port=\"%lld\"} %d\n", cli_run.name,
				cli_text(node, "name"), cli_number(port, "num"),
				!strcmp(cli_text(port, "state"), "Active"));
	}
	json_object_foreach(json_object_get(first, "counters"), name, value)
	{
		fprintf(out, "# TYPE muslin_%s_total counter\n", name);
		json_array_foreach(nodes, i, node) json_array_foreach(json_object_get(node, "ports"), k, port)
		{
			if (*cli_text(port, "peer"))
				fprintf(out, "muslin_%s_total{fabric=\"%s\",node=\"%s\",port=\"%lld\"} %lld\n", name,
					cli_run.name, cli_text(node, "name"), cli_number(port, "num"),
					top_counter(port, name));
		}
	}
	json_decref(shown);
}

static void top_answer(int conn)
{
	struct timeval timeout = { .tv_sec = HTTP_TIMEOUT };
	char request[2048], *body = NULL;
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
	if (!strncmp(request, "GET /metrics", 12))
		top_metrics(out);
	fclose(out);
	dprintf(conn, "HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n\r\n",
		len ? "200 OK" : "404 Not Found", len);
	while (sent < len && (n = send(conn, body + sent, len - sent, MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	free(body);
}

/* "127.0.0.1:9100", or a port of the loopback address. */
static int listen_at(const char *where)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *colon = strrchr(where, ':');
	char host[64] = "127.0.0.1";
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	a.sin_port = htons((uint16_t)top_number(colon ? colon + 1 : where, 65535));
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
		cli_fail(CLI_USAGE, "%s: not an IPv4 ADDRESS:PORT", where);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 8))
		cli_fail(CLI_ERROR, "%s: %s", where, strerror(errno));
	return s;
}

int cli_metrics(int argc, char **argv)
{
	int server, conn;

	if (argc != 1 && (argc != 3 || strcmp(argv[1], "--listen")))
		cli_fail(CLI_USAGE, "usage: muslin metrics [--name FABRIC] [--listen [ADDRESS:]PORT]");
	if (argc == 1) {
		top_metrics(stdout);
		return fflush(stdout) ? CLI_ERROR : CLI_OK;
	}
	server = listen_at(argv[2]);
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

/* Those of several daemons, in the order of time. */
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

int cli_timeline(int argc, char **argv)
{
	bool start = argc == 2 && !strcmp(argv[1], "--start");
	json_t *t;

	if (argc > 1 && !start)
		cli_fail(CLI_USAGE, "usage: muslin timeline [--name FABRIC] [--start]");
	t = cli_ask_all(json_pack("{s:s, s:b}", "command", "timeline", "start", start));
	if (!start) {
		timeline_sort(json_object_get(t, "events"));
		json_dumpf(t, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(t);
	return fflush(stdout) ? CLI_ERROR : CLI_OK;
}
