// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin fault: arm, list and clear faults. muslin console: the commands of ibsim's console. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/ctl/ctl.h"
#include "emu/lib/spec.h"

#define LINE_MAX_LEN 4096

static void fault_usage(void)
{
	cli_fail(CLI_USAGE, "usage: muslin fault [--name FABRIC] add PLACE FAULT [KEY=VALUE...] | list [--json] | "
			    "clear [ID|PLACE|all]");
}

/* Joins the words to a line. */
static char *fault_join(int argc, char **argv)
{
	static char line[LINE_MAX_LEN];
	size_t at = 0;
	int i;

	for (i = 0; i < argc && at < sizeof(line); i++) {
		const char *quote = spec_quote(argv[i]);

		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s%s%s", i ? " " : "", quote, argv[i], quote);
	}
	if (at >= sizeof(line))
		cli_fail(CLI_USAGE, "%.40s...: too long", line);
	return line;
}

static void print_fault(const json_t *f)
{
	printf("%4lld  %8lld  %8lld  %s%s\n", cli_number(f, "id"), cli_number(f, "matches"), cli_number(f, "hits"),
	       cli_text(f, "fault"), cli_number(f, "hits") ? "" : "  (never fired)");
}

/* Numbers of a fault that was added in several daemons: in all, or with an error in none. */
struct added {
	long long id[CLI_SHARDS_MAX];
	unsigned int n;
	char err[1024];
};

/* Adds the fault in one more daemon. False: it refuses. */
static bool fault_add_at(struct added *a, int sock, json_t *req)
{
	json_t *f = ctl_call(sock, req, -1, a->err, sizeof(a->err));

	close(sock);
	if (f)
		a->id[a->n++] = cli_number(f, "id");
	json_decref(f);
	return f;
}

static unsigned int fault_shard(long long id)
{
	return (unsigned int)(id - 1) % cli_shards(); /* each daemon uses every n-th number */
}

/* Clears it again in the daemons that did not refuse and are still up, and exits with the error of the one that did. */
static void fault_refused(const struct added *a)
{
	char err[1024];
	unsigned int i;
	json_t *undo;
	int sock;

	for (i = 0; i < a->n; i++) {
		sock = cli_try_shard(fault_shard(a->id[i]));
		if (sock < 0)
			continue;
		undo = json_pack("{s:s, s:s, s:I}", "command", "fault", "op", "clear", "id", (json_int_t)a->id[i]);
		json_decref(ctl_call(sock, undo, -1, err, sizeof(err)));
		json_decref(undo);
		close(sock);
	}
	cli_fail(CLI_ERROR, "%s", a->err);
}

/* Adds the fault in each daemon that is up. */
static void fault_add_all(json_t *req)
{
	struct added a = { .n = 0 };
	unsigned int i;
	json_t *f;

	for (i = 0; (f = cli_request_next(&i, req, a.n, a.err, sizeof(a.err))); i++) {
		a.id[a.n++] = cli_number(f, "id");
		json_decref(f);
	}
	if (*a.err)
		fault_refused(&a);
	for (i = 0; i < a.n; i++)
		printf("%lld\n", a.id[i]);
}

/*
 * The lines, each with the number of its daemon, of a fault that exchanges cables of several daemons; empty: it is of
 * one daemon.
 */
static json_t *fault_parts(int sock, const char *line)
{
	json_t *req = json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "parts", "fault", line), *parts;

	parts = cli_request(sock, req);
	close(sock);
	return parts;
}

/* Adds a fault in each of its daemons, and writes the number of the one that has its place. */
static void fault_add_parts(const json_t *parts)
{
	struct rundir own = cli_place, r;
	struct added a = { .n = 0 };
	json_t *part, *req;
	unsigned int shard;
	size_t i;

	json_array_foreach(parts, i, part) /* fails if one of them is not up */
		close(cli_connect_shard((unsigned int)cli_number(part, "shard")));
	json_array_foreach(parts, i, part)
	{
		shard = (unsigned int)cli_number(part, "shard");
		req = json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "add", "fault", cli_text(part, "fault"));
		if (!fault_add_at(&a, cli_connect_shard(shard), req))
			fault_refused(&a);
		json_decref(req);
		cli_shard_rundir(shard, &r);
		if (!strcmp(r.name, own.name))
			printf("%lld\n", a.id[a.n - 1]);
	}
}

/* With `muslin up --join` each part is a command of its own, to its daemon. */
static void fault_name_parts(const json_t *parts, const char *line)
{
	json_t *part;
	size_t i;

	json_array_foreach(parts, i, part) if (strcmp(cli_text(part, "fault"), line) != 0)
		fprintf(stderr, "muslin: shard %s needs its part: muslin fault add %s\n", cli_text(part, "name"),
			cli_text(part, "fault"));
}

/* Clears the parts of a cleared fault in the other daemons. */
static void fault_clear_parts(const json_t *f)
{
	unsigned int own = fault_shard(cli_number(f, "id")), shard;
	json_t *parts, *part, *req;
	char err[1024];
	size_t i;
	int sock;

	if (cli_shards() == 1 || !strstr(cli_text(f, "fault"), " swap "))
		return;
	parts = fault_parts(cli_connect_shard(own), cli_text(f, "fault"));
	json_array_foreach(parts, i, part)
	{
		shard = (unsigned int)cli_number(part, "shard");
		sock = shard == own ? -1 : cli_try_shard(shard);
		if (sock < 0)
			continue;
		req = json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "clear", "fault", cli_text(part, "fault"));
		json_decref(ctl_call(sock, req, -1, err, sizeof(err)));
		close(sock);
		json_decref(req);
	}
	json_decref(parts);
}

static int fault_add(int argc, char **argv)
{
	const char *line = fault_join(argc, argv);
	json_t *req = json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "add", "fault", line), *f;
	json_t *parts = NULL;

	if (!req)
		cli_fail(CLI_USAGE, "the fault is not valid UTF-8");
	if (!strcmp(argv[0], "all")) {
		fault_add_all(req);
		json_decref(req);
		return CLI_OK;
	}
	if (!strcmp(argv[1], "swap")) {
		parts = fault_parts(cli_connect_place(argv[0]), line);
		if (cli_shards() > 1 && json_array_size(parts)) {
			fault_add_parts(parts);
			json_decref(parts);
			json_decref(req);
			return CLI_OK;
		}
	}
	f = cli_request(cli_connect_place(argv[0]), req);
	printf("%lld\n", cli_number(f, "id"));
	fault_name_parts(parts, line);
	json_decref(parts);
	json_decref(f);
	return CLI_OK;
}

static int fault_list(int argc, char **argv)
{
	json_t *all, *f;
	size_t i;

	if (argc > 1 || (argc && strcmp(argv[0], "--json")))
		fault_usage();
	all = cli_request_all(json_pack("{s:s, s:s}", "command", "fault", "op", "list"));
	if (argc) {
		json_dumpf(all, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		printf("  id   matches      hits  fault\n");
		json_array_foreach(all, i, f) print_fault(f);
	}
	json_decref(all);
	return CLI_OK;
}

static int fault_clear(int argc, char **argv)
{
	json_t *req = json_pack("{s:s, s:s}", "command", "fault", "op", "clear"), *gone, *f;
	char *end = NULL;
	long id = argc ? strtol(argv[0], &end, 10) : 0;
	size_t i;

	if (argc > 1)
		fault_usage();
	if (argc && *end)
		id = 0;
	if (id > 0)
		json_object_set_new(req, "id", json_integer(id));
	else if (argc)
		json_object_set_new(req, "place", json_string(argv[0]));
	if (id > 0)
		gone = cli_request(cli_connect_shard(fault_shard(id)), req);
	else if (argc && strcmp(argv[0], "all") != 0)
		gone = cli_request(cli_connect_place(argv[0]), req);
	else
		gone = cli_request_all(req);
	json_array_foreach(gone, i, f)
	{
		print_fault(f);
		if (id > 0 || (argc && strcmp(argv[0], "all") != 0))
			fault_clear_parts(f);
	}
	json_decref(gone);
	return CLI_OK;
}

int cli_fault(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "add"))
		return fault_add(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "list"))
		return fault_list(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "clear"))
		return fault_clear(argc - 2, argv + 2);
	fault_usage();
	return CLI_USAGE;
}

/* ibsim's console: Unlink "node"[port], Link ..., ReLink ..., Clear "node"[port], Error "node"[port] rate */

static bool fault_call(int sock, json_t *req)
{
	char err[1024];
	json_t *result = ctl_call(sock, req, -1, err, sizeof(err));

	json_decref(req);
	if (!result)
		printf("muslin: %s\n", err);
	json_decref(result);
	return result;
}

/*
 * Parses a place from the line: "\"leaf1\"[3]" (quotes may contain blanks), "leaf1[3]" or "leaf1:3". @place is in
 * muslin's form; false: no place.
 */
static bool take_place(char **line, char *place, size_t size)
{
	const char *p = *line + strspn(*line, " \t\r\n");
	bool quoted = *p == '"';
	size_t at = 0;

	for (p += quoted; *p && at + 2 < size; p++) {
		if (quoted ? *p == '"' : strchr(" \t\r\n[", *p) != NULL)
			break;
		place[at++] = *p;
	}
	if (quoted && *p++ != '"')
		return false;
	if (*p == '[') {
		place[at++] = ':';
		for (p++; *p >= '0' && *p <= '9' && at + 1 < size; p++)
			place[at++] = *p;
		if (*p++ != ']' || place[at - 1] == ':')
			return false;
	}
	place[at] = 0;
	*line += p - *line;
	return at && (!*p || strchr(" \t\r\n", *p));
}

/* For every cable of the node, or one. */
static bool link_verb(int sock, const char *place, const char *state)
{
	json_t *shown, *p, *node;
	char err[1024], port[256];
	bool ok = true;
	size_t i;

	if (strchr(place, ':'))
		return fault_call(sock,
				  json_pack("{s:s, s:s, s:s}", "command", "link", "place", place, "state", state));
	node = json_pack("{s:s, s:s}", "command", "show", "node", place);
	shown = ctl_call(sock, node, -1, err, sizeof(err));
	json_decref(node);
	if (!shown) {
		printf("muslin: %s\n", err);
		return false;
	}
	node = json_array_get(json_object_get(shown, "nodes"), 0);
	json_array_foreach(json_object_get(node, "ports"), i, p)
	{
		if (!*cli_text(p, "peer"))
			continue;
		snprintf(port, sizeof(port), "%s:%lld", place, cli_number(p, "num"));
		ok = link_verb(sock, port, state) && ok;
	}
	json_decref(shown);
	return ok;
}

static bool error_verb(int sock, const char *place, const char *rate, const char *attr)
{
	const char *quote = spec_quote(place);
	char text[LINE_MAX_LEN];

	if (!rate || !*rate || strspn(rate, "0123456789") != strlen(rate)) {
		printf("muslin: Error: expected a rate from 0 to 100\n");
		return false;
	}
	fault_call(sock, json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "clear", "place", place));
	if (!strcmp(rate, "0"))
		return true;
	snprintf(text, sizeof(text), "%s%s%s drop prob=%s%% opcode=ud qpn=0-1%s%s", quote, place, quote, rate,
		 attr ? " attr=" : "", attr ? attr : "");
	return fault_call(sock, json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "add", "fault", text));
}

static bool console_knows(const char *word)
{
	static const char *const words[] = { "Link", "ReLink", "Unlink", "Clear", "Error" };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(word, words[i]))
			return true;
	return false;
}

static bool console_command(char *line)
{
	char *rest = line, *word = strtok_r(line, " \t\r\n", &rest), place[200];
	const char *arg, *attr;
	bool ok = false;
	int sock;

	if (!word || *word == '#' || *word == '!')
		return true;
	if (!console_knows(word)) {
		printf("muslin: %s: unknown command; there are Link, ReLink, Unlink, Clear, Error and Quit\n", word);
		return false;
	}
	if (!take_place(&rest, place, sizeof(place))) {
		printf("muslin: %s: of which \"node\"[port]?\n", word);
		return false;
	}
	arg = strtok_r(NULL, " \t\r\n", &rest);
	attr = strtok_r(NULL, " \t\r\n", &rest);
	sock = cli_connect_place(place);
	if (!strcasecmp(word, "Unlink"))
		ok = link_verb(sock, place, "down");
	else if (!strcasecmp(word, "Link") || !strcasecmp(word, "ReLink"))
		ok = link_verb(sock, place, "up");
	else if (!strcasecmp(word, "Clear"))
		ok = fault_call(sock,
				json_pack("{s:s, s:s, s:s}", "command", "fault", "op", "clear", "place", place)) &&
		     link_verb(sock, place, "up");
	else
		ok = error_verb(sock, place, arg, attr);
	close(sock);
	return ok;
}

int cli_console(int argc, char **argv)
{
	bool prompt = isatty(STDIN_FILENO), ok = true;
	char line[LINE_MAX_LEN];
	unsigned int shard = 0;

	if (argc > 1)
		cli_fail(CLI_USAGE, "usage: muslin console [--name FABRIC] <COMMANDS");
	close(cli_connect_next(&shard, false)); /* fails if no daemon is up */
	for (;;) {
		if (prompt)
			printf("%s> ", cli_run.name);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin) || !strncasecmp(line, "quit", 4))
			return ok ? CLI_OK : CLI_ERROR;
		ok = console_command(line) && ok;
	}
}
