// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* muslin show: the fabric as a table, as JSON, or as a topology. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emu/cli/cli.h"
#include "emu/lib/types.h"

#define STATE_AT   8 /* column of a port's state */
#define PEER_WIDTH 15
#define SHOW_USAGE "usage: muslin show [--name FABRIC] [--json] [--counters] [NODE] | --topology | --svg"

struct show {
	bool json, counters, topology, svg;
	const char *node;
};

static void show_parse(struct show *s, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			s->json = true;
		else if (!strcmp(argv[i], "--counters"))
			s->counters = true;
		else if (!strcmp(argv[i], "--topology"))
			s->topology = true;
		else if (!strcmp(argv[i], "--svg"))
			s->svg = true;
		else if (argv[i][0] != '-' && !s->node)
			s->node = argv[i];
		else
			cli_fail(CLI_USAGE, SHOW_USAGE);
	}
	/* The topology and the drawing are of the whole fabric. */
	if (s->topology + s->svg + (s->json || s->counters || s->node) > 1)
		cli_fail(CLI_USAGE, SHOW_USAGE);
}

static void print_counters(const json_t *owner)
{
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(owner, "counters"), key, v)
	{
		if (json_integer_value(v))
			printf("           %-36s %lld\n", key, (long long)json_integer_value(v));
	}
}

/* SGR parameter of ECMA-48 for a state: green, red, or yellow for one between. */
static int state_colour(const char *state, size_t len)
{
	static const struct {
		const char *state;
		int colour;
	} of[] = { { "Active", 32 }, { "up", 32 }, { "Down", 31 }, { "down", 31 } };
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (strlen(of[i].state) == len && !memcmp(of[i].state, state, len))
			return of[i].colour;
	return 33;
}

void cli_line(const char *text, size_t at)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	bool plain = (no && *no) || !term || !strcmp(term, "dumb") || !isatty(STDOUT_FILENO);
	size_t len = at && at < strlen(text) ? strcspn(text + at, " ") : 0;

	if (plain || !len)
		puts(text);
	else
		printf("%.*s\033[%dm%.*s\033[0m%s\n", (int)at, text, state_colour(text + at, len), (int)len, text + at,
		       text + at + len);
}

/* @guid: of a port that a partition can have as a member; else empty. */
static void print_port(const json_t *p, const char *guid)
{
	char link[32] = "", peer[96] = "-", line[256];

	if (json_object_get(p, "rate") && !json_object_get(p, "speed"))
		snprintf(link, sizeof(link), "%g", json_number_value(json_object_get(p, "rate")));
	else if (json_object_get(p, "rate"))
		snprintf(link, sizeof(link), "%lldx%s %g", cli_number(p, "width"), cli_text(p, "speed"),
			 json_number_value(json_object_get(p, "rate")));
	if (*cli_text(p, "peer"))
		snprintf(peer, sizeof(peer), "%s:%lld", cli_text(p, "peer"), cli_number(p, "peer_port"));
	snprintf(line, sizeof(line), "  %4lld  %-11s %-12s %-13s %-*s%s%s%s", cli_number(p, "num"),
		 cli_text(p, "state"), cli_text(p, "phys_state"), link, *guid ? PEER_WIDTH : 0, peer, *guid ? " " : "",
		 guid, json_is_true(json_object_get(p, "unplugged")) ? " (unplugged)" : "");
	cli_line(line, STATE_AT);
	print_counters(p);
}

static void print_node(const json_t *n)
{
	const json_t *guest = json_object_get(n, "guest");
	bool subnet = !strcmp(cli_text(n, "type"), "ca") && !*cli_text(n, "binding");
	char id[24];
	json_t *p, *ip;
	size_t i;

	printf("%s %s  guid %s  ", cli_text(n, "type"), cli_text(n, "name"), cli_text(n, "guid"));
	printf("%s", cli_node_id(n, id, sizeof(id)));
	json_array_foreach(json_object_get(n, "ips"), i, ip) printf("  %s", json_string_value(ip));
	printf("\n");
	json_array_foreach(json_object_get(n, "ports"), i, p)
	{
		/* Port 0 of a switch has no further information. */
		if ((*cli_text(p, "peer") || *cli_text(n, "binding")) && cli_number(p, "num"))
			print_port(p, subnet ? cli_text(p, "guid") : "");
	}
	if (json_object_get(guest, "driver"))
		printf("        guest's device, %s driver\n",
		       json_is_true(json_object_get(guest, "driver")) ? "in use by its" : "without a");
	print_counters(guest);
	json_array_foreach(json_object_get(guest, "connectx"), i, p)
	{
		if (json_is_true(json_object_get(p, "driver")) || json_object_size(json_object_get(p, "counters")))
			printf("        guest's ConnectX, %s driver\n",
			       json_is_true(json_object_get(p, "driver")) ? "in use by its" : "without a");
		print_counters(p);
	}
	if (json_object_get(guest, "card"))
		printf("        guest's network card\n");
	print_counters(json_object_get(guest, "card"));
}

static void print_ethernet(const json_t *e)
{
	char line[256];
	json_t *sw, *p;
	size_t i, k;

	json_array_foreach(json_object_get(e, "switches"), i, sw)
	{
		printf("ethernet %s\n", cli_text(sw, "name"));
		json_array_foreach(json_object_get(sw, "ports"), k, p)
		{
			snprintf(line, sizeof(line), "  %4lld  %-11s %s:%lld", cli_number(p, "num"),
				 cli_text(p, "state"), cli_text(p, "peer"), cli_number(p, "peer_port"));
			cli_line(line, STATE_AT);
			print_counters(p);
		}
	}
}

static void print_manager(const json_t *m)
{
	long long sweeps = cli_number(m, "heavy_sweeps"), groups = cli_number(m, "groups");

	if (!json_is_object(m))
		return;
	printf("embedded manager on %s: %s%s, routing %s, %lld %s, the last of %lld SMPs in %.3f s, %lld %s\n",
	       cli_text(m, "host"), cli_text(m, "state"), json_is_true(json_object_get(m, "up")) ? ", subnet up" : "",
	       cli_text(m, "routing"), sweeps, plural(sweeps, "sweep", "sweeps"), cli_number(m, "sweep_smps"),
	       json_real_value(json_object_get(m, "sweep_seconds")), groups, plural(groups, "group", "groups"));
}

static void print_table(const json_t *shown)
{
	json_t *sm = json_object_get(shown, "sm"), *n;
	size_t i;

	if (*cli_text(sm, "host"))
		printf("fabric %s, subnet manager on %s:%lld, lid %lld\n", cli_text(shown, "name"),
		       cli_text(sm, "host"), cli_number(sm, "port"), cli_number(sm, "lid"));
	else if (json_is_string(json_object_get(shown, "manager_shard")))
		printf("fabric %s, subnet manager in shard %s\n", cli_text(shown, "name"),
		       cli_text(shown, "manager_shard"));
	else if (json_is_object(sm))
		printf("fabric %s, subnet manager in another daemon, lid %lld\n", cli_text(shown, "name"),
		       cli_number(sm, "lid"));
	else
		printf("fabric %s, no subnet manager\n", cli_text(shown, "name"));
	print_manager(json_object_get(shown, "manager"));
	printf("  port  state       physical     link, Gb/s    %-*s port guid\n", PEER_WIDTH, "peer");
	json_array_foreach(json_object_get(shown, "nodes"), i, n)
	{
		if (strcmp(cli_text(n, "type"), "switch") || strcmp(cli_text(n, "link_layer"), "Ethernet"))
			print_node(n);
	}
	print_ethernet(json_object_get(shown, "ethernet"));
}

/* Joins the texts of all daemons that are up. */
static json_t *show_topology(json_t *req)
{
	json_t *sum = json_string(""), *more, *both;
	char err[1024];
	bool any = false;
	unsigned int i;

	for (i = 0; (more = cli_request_next(&i, req, any, err, sizeof(err))); i++) {
		both = json_sprintf("%s%s", json_string_value(sum), json_string_value(more));
		json_decref(sum);
		json_decref(more);
		sum = both;
		any = true;
	}
	if (*err)
		cli_fail(CLI_ERROR, "%s", err);
	json_decref(req);
	return sum;
}

/* The subnet manager may be in another daemon than the node that is shown. */
static json_t *show_node(const char *node, json_t *req)
{
	json_t *shown = cli_request(cli_connect_place(node), req), *status;
	static const char *const of_all[] = { "sm", "manager" };
	size_t i;

	if (cli_shards() == 1)
		return shown;
	status = cli_request_all(json_pack("{s:s}", "command", "status"));
	for (i = 0; i < sizeof(of_all) / sizeof(of_all[0]); i++)
		json_object_set(shown, of_all[i], json_object_get(status, of_all[i]));
	json_decref(status);
	return shown;
}

int cli_show(int argc, char **argv)
{
	struct show s = { .json = false };
	json_t *req, *shown;

	show_parse(&s, argc, argv);
	req = json_pack("{s:s, s:b}", "command", "show", "topology", s.topology);
	if (s.counters)
		json_object_set_new(req, "counters", json_true());
	else if (s.json)
		json_object_set_new(req, "counters", json_string("few"));
	if (s.node)
		json_object_set_new(req, "node", json_string(s.node));
	shown = s.topology ? show_topology(req) : s.node ? show_node(s.node, req) : cli_request_all(req);
	if (!s.topology && cli_shards() > 1) /* its daemons have names of their own */
		json_object_set_new(shown, "name", json_string(cli_run.name));
	if (s.topology)
		fputs(json_string_value(shown), stdout);
	else if (s.svg)
		cli_svg(shown);
	else if (s.json)
		json_dumpf(shown, stdout, JSON_INDENT(1));
	else
		print_table(shown);
	if (s.json)
		putchar('\n');
	json_decref(shown);
	return CLI_OK;
}
