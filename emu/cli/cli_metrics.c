// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin metrics: counters for Prometheus, printed or served by HTTP. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/cli/cli.h"

#define HTTP_TIMEOUT 5 /* seconds for one request */

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

/* Whether the port has a cable, or is on sockets. */
static bool metrics_has_link(const json_t *node, const json_t *port)
{
	return *cli_text(port, "peer") || *cli_text(node, "binding");
}

#define METRICS_EACH(m, i, node, k, port)       \
	json_array_foreach((m)->nodes, i, node) \
		json_array_foreach(json_object_get(node, "ports"), k, port) if (metrics_has_link(node, port))

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
			fprintf(m->out, "} %lld\n", cli_number(json_object_get(port, "counters"), name));
		}
	}
	json_decref(names);
}

/* Whether the fabric has an InfiniBand subnet, which needs a manager. */
static bool has_subnet(const json_t *status)
{
	return cli_number(status, "ports") || json_is_object(json_object_get(status, "sm"));
}

static void metrics_sm(FILE *out, const json_t *status)
{
	const json_t *sm = json_object_get(status, "sm");

	if (!has_subnet(status))
		return;
	metrics_family(out, "muslin_sm_up", "gauge", "1 while there is a master subnet manager.");
	fprintf(out, "muslin_sm_up{fabric=\"%s\",host=\"%s\"} %d\n", cli_run.name, cli_text(sm, "host"),
		json_is_object(sm));
}

/*
 * The text format of Prometheus, for all nodes or for @only. -ENOENT: there is no such node; -ENOTCONN: the fabric is
 * not up; both with a message in @err.
 */
static int metrics_print(FILE *out, const char *only, char *err, size_t err_len)
{
	json_t *req = json_pack("{s:s, s:b}", "command", "show", "counters", 1), *shown, *status;
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
	m.nodes = json_object_get(shown, "nodes");
	metrics_sm(out, status);
	metrics_ports(&m);
	metrics_counters(&m);
	json_decref(status);
	json_decref(shown);
	return 0;
}

/*
 * One line on the fabric. 0: each port with a link is Active, and the subnet, if there is one, has a manager; -EAGAIN:
 * not yet; -ENOTCONN: the fabric is not up, with a message in @err.
 */
static int metrics_health(FILE *out, char *err, size_t err_len)
{
	json_t *status = cli_try_all(json_pack("{s:s}", "command", "status"), err, err_len),
	       *sm = json_object_get(status, "sm");
	long long linked = cli_number(status, "linked"), active = cli_number(status, "linked_active");
	bool subnet = has_subnet(status);
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
static void http_answer(int conn)
{
	struct timeval timeout = { .tv_sec = HTTP_TIMEOUT };
	char request[2048], method[8] = "", target[1024] = "", err[1024] = "not found", *body = NULL;
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
	sscanf(request, "%7[A-Z] %1023[^ \r\n]", method, target);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		status = -EOPNOTSUPP;
	else if (!strncmp(target, "/metrics", 8))
		status = metrics_print(out, query_value(target, "node"), err, sizeof(err));
	else if (!strncmp(target, "/health", 7))
		status = metrics_health(out, err, sizeof(err));
	if (status && status != -EAGAIN)
		fprintf(out, "%s\n", status == -EOPNOTSUPP ? "the methods are GET and HEAD" : err);
	fclose(out);
	dprintf(conn, "HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n\r\n",
		!status                 ? "200 OK"
		: status == -ENOENT     ? "404 Not Found"
		: status == -EOPNOTSUPP ? "405 Method Not Allowed\r\nAllow: GET, HEAD"
					: "503 Service Unavailable",
		len);
	if (!strcmp(method, "HEAD"))
		len = 0;
	while (sent < len && (n = send(conn, body + sent, len - sent, MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	free(body);
}

/* Listens at "127.0.0.1:9100", or at a port of the loopback address. */
static int http_listen(const char *where)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *colon = strrchr(where, ':');
	char host[64] = "127.0.0.1";
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	a.sin_port = htons((uint16_t)cli_positive("--listen", colon ? colon + 1 : where, 65535));
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
		if (metrics_print(stdout, argv[1], err, sizeof(err)))
			cli_fail(CLI_ERROR, "%s", err);
		return CLI_OK;
	}
	server = http_listen(argv[2]);
	signal(SIGPIPE, SIG_IGN); /* a client may reset its connection before the response */
	for (;;) {
		conn = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0)
			continue;
		http_answer(conn);
		close(conn);
	}
}
