// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * muslin-sim: a fabric, its subnet manager and traffic with a virtual clock, which jumps to the next event. The same
 * arguments give the same run, packet by packet; the digest shows it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/lib/clock.h"
#include "emu/lib/log.h"
#include "emu/lib/option.h"
#include "emu/lib/version.h"
#include "emu/sim/sim.h"
#include "emu/wire/smp.h"
#include "sm/partition.h"

#define BRING_UP_LEAST 10.0 /* seconds */

struct sim_options {
	double sweep;
	u64 seed;
	const char *routing, *html, *lfts, *partitions;
	u8 hoq, lmc;
	bool qos, summary, nominal, keep_lids;
};

void sim_fail(const char *what, const char *why)
{
	fprintf(stderr, "muslin-sim: %s%s%s\n", what, *why ? ": " : "", why);
	exit(1);
}

void *sim_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		sim_fail("out of memory", "");
	return p;
}

static void usage(void)
{
	puts("usage: muslin-sim [OPTION...] [TOPOLOGY...]\n"
	     "  --seconds N                  duration of the traffic (60)\n"
	     "  --pattern PATTERN            random, shift:N, all-to-all, permutation, incast[:HOST,...],\n"
	     "                               hotspot:P%[:HOST,...] or file:PATH\n"
	     "  --traffic N | --load SHARE   packets per second of each host (10), or a share of its link's rate\n"
	     "  --size BYTES, --sl N,...     payload of a packet (64); service levels, in turn (0)\n"
	     "  --fault [SECONDS:]LINE       a fault, at the start or SECONDS after the subnet is up; repeatable\n"
	     "  --sweep SECONDS, --routing minhop|updn|auto, --lfts FILE, --lmc N, --partitions FILE,\n"
	     "  --hoq CODE, --qos, --keep-lids   of the subnet manager\n"
	     "  --rates enforced|nominal     whether links take time (enforced)\n"
	     "  --seed N                     seed of all random numbers (1)\n"
	     "  --summary, --html FILE       plain text instead of JSON; a page with plots, too");
	exit(0);
}

static void option_refuse(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "muslin-sim: --%s %s: %s\n", option, value, wanted);
	exit(OPTION_USAGE);
}

static double option_real(const char *option, double least, double most)
{
	char wanted[60], *end;
	double v = strtod(optarg, &end);

	snprintf(wanted, sizeof(wanted), "expected a number from %g to %g", least, most);
	if (end == optarg || *end || !(v >= least && v <= most))
		option_refuse(option, optarg, wanted);
	return v;
}

static double option_whole(const char *option, double least, double most)
{
	double v = option_real(option, least, most);

	if (v != (double)(u64)v)
		option_refuse(option, optarg, "expected a whole number");
	return v;
}

static void on_fault(struct loop_timer *t, struct now now)
{
	struct sim_fault *f = container_of(t, struct sim_fault, timer);
	char err[300];

	f->fault = fault_add(fabric_faults(f->sim->fabric), f->text, err, sizeof(err));
	if (!f->fault)
		sim_fail(f->text, err);
}

/* Parses "SECONDS:LINE", or a line to be armed at the start. Errors are reported before the run. */
static void take_fault(struct sim *s, const char *arg)
{
	struct sim_fault *f = &s->fault[s->nfaults];
	char *end, why[60];
	double at = strtod(arg, &end);
	bool timed = end != arg && *end == ':';

	if (s->nfaults == SIM_FAULTS) {
		snprintf(why, sizeof(why), "more than %d faults", SIM_FAULTS);
		sim_fail(arg, why);
	}
	if (timed && !(at >= 0 && at <= 1e9))
		sim_fail(arg, "no such time: SECONDS are from 0 to 1e9");
	f->sim = s;
	f->timer.fn = on_fault;
	f->at = timed ? at : 0;
	f->text = timed ? end + 1 : arg;
	s->nfaults++;
}

static void check_faults(struct sim *s)
{
	char err[300];
	u32 i;

	for (i = 0; i < s->nfaults; i++) {
		struct sim_fault *f = &s->fault[i];

		if (!(f->at > 0)) {
			on_fault(&f->timer, loop_now(s->loop));
			continue;
		}
		if (f->at >= s->seconds) {
			snprintf(err, sizeof(err), "%g s is after the end: --seconds is %g", f->at, s->seconds);
			sim_fail(f->text, err);
		}
		/* Forwarding tables are empty yet: checks only the syntax. */
		f->fault = fault_add(fabric_faults(s->fabric), f->text, err, sizeof(err));
		if (f->fault)
			fault_remove(f->fault);
		else if (!strstr(err, "has no such entry"))
			sim_fail(f->text, err);
		f->fault = NULL;
	}
}

enum option_id {
	OPT_SECONDS = 256,
	OPT_SEED,
	OPT_TRAFFIC,
	OPT_LOAD,
	OPT_SIZE,
	OPT_SL,
	OPT_PATTERN,
	OPT_TO,
	OPT_SWEEP,
	OPT_ROUTING,
	OPT_HOQ,
	OPT_QOS,
	OPT_LFTS,
	OPT_LMC,
	OPT_PARTITIONS,
	OPT_KEEP_LIDS,
	OPT_RATES,
	OPT_FAULT,
	OPT_SUMMARY,
	OPT_HTML,
	OPT_HELP,
	OPT_VERSION
};

static const struct option options[] = {
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "traffic", required_argument, NULL, OPT_TRAFFIC },
	{ "load", required_argument, NULL, OPT_LOAD },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "sl", required_argument, NULL, OPT_SL },
	{ "pattern", required_argument, NULL, OPT_PATTERN },
	{ "to", required_argument, NULL, OPT_TO },
	{ "sweep", required_argument, NULL, OPT_SWEEP },
	{ "routing", required_argument, NULL, OPT_ROUTING },
	{ "hoq", required_argument, NULL, OPT_HOQ },
	{ "qos", no_argument, NULL, OPT_QOS },
	{ "lfts", required_argument, NULL, OPT_LFTS },
	{ "lmc", required_argument, NULL, OPT_LMC },
	{ "partitions", required_argument, NULL, OPT_PARTITIONS },
	{ "keep-lids", no_argument, NULL, OPT_KEEP_LIDS },
	{ "rates", required_argument, NULL, OPT_RATES },
	{ "fault", required_argument, NULL, OPT_FAULT },
	{ "summary", no_argument, NULL, OPT_SUMMARY },
	{ "html", required_argument, NULL, OPT_HTML },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void take_traffic_option(struct sim_traffic *t, int id)
{
	static char shift[32];

	switch (id) {
	case OPT_TRAFFIC:
		t->rate = option_real("traffic", 0, 1e9);
		t->rate_given = true;
		break;
	case OPT_LOAD:
		t->load = option_real("load", 1e-9, 1);
		break;
	case OPT_SIZE:
		t->size = (u32)option_whole("size", SIM_PAYLOAD_LEAST, SIM_PAYLOAD_MOST);
		break;
	case OPT_SL:
		if (sim_traffic_sls(t, optarg))
			option_refuse("sl", optarg, "expected numbers from 0 to 15, separated by commas");
		break;
	case OPT_TO:
		snprintf(shift, sizeof(shift), "shift:%u", (u32)option_whole("to", 1, 1e5));
		sim_traffic_parse(t, shift);
		break;
	default:
		if (sim_traffic_parse(t, optarg))
			option_refuse("pattern", optarg,
				      "expected random, shift:N, all-to-all, permutation, incast[:HOST,...], "
				      "hotspot:P%[:HOST,...] or file:PATH");
	}
}

static void take_option(struct sim *s, struct sim_options *o, int id)
{
	switch (id) {
	case OPT_SECONDS:
		s->seconds = option_real("seconds", 1e-9, 1e7);
		break;
	case OPT_SEED:
		o->seed = (u64)option_whole("seed", 0, 9e15);
		break;
	case OPT_SWEEP:
		o->sweep = option_real("sweep", 0.001, 1e6);
		break;
	case OPT_ROUTING:
		o->routing = optarg;
		break;
	case OPT_HOQ:
		o->hoq = (u8)option_whole("hoq", 0, 20);
		break;
	case OPT_QOS:
		o->qos = true;
		break;
	case OPT_LFTS:
		o->lfts = optarg;
		break;
	case OPT_LMC:
		o->lmc = (u8)option_whole("lmc", 0, 7);
		break;
	case OPT_PARTITIONS:
		o->partitions = optarg;
		break;
	case OPT_KEEP_LIDS:
		o->keep_lids = true;
		break;
	case OPT_RATES:
		o->nominal = !strcmp(optarg, "nominal");
		if (!o->nominal && strcmp(optarg, "enforced") != 0)
			option_refuse("rates", optarg, "expected enforced or nominal");
		break;
	case OPT_FAULT:
		take_fault(s, optarg);
		break;
	case OPT_SUMMARY:
		o->summary = true;
		break;
	case OPT_HTML:
		o->html = optarg;
		break;
	case OPT_VERSION:
		exit(puts("muslin-sim " MUSLIN_VERSION) == EOF);
	case OPT_HELP:
		usage();
		break;
	case '?': /* getopt_long() has said why */
		exit(OPTION_USAGE);
	default:
		take_traffic_option(&s->traffic, id);
	}
}

static void options_parse(struct sim *s, struct sim_options *o, int argc, char **argv)
{
	const char *unknown = option_unknown(argc, argv, options);
	int id;

	if (unknown) {
		fprintf(stderr, "muslin-sim: %s: no such option; `muslin-sim --help` lists them\n", unknown);
		exit(OPTION_USAGE);
	}
	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(s, o, id);
	if (s->traffic.rate_given && s->traffic.load > 0) {
		fputs("muslin-sim: --traffic and --load exclude each other: both say how much each host sends\n",
		      stderr);
		exit(OPTION_USAGE);
	}
}

static void make_hosts(struct sim *s)
{
	u32 n = fabric_node_count(s->fabric), ports = 0, i, k;
	struct fabric_port_info info;
	bool bound = false;

	for (i = 0; i < n; i++)
		ports += fabric_node_ports(fabric_node(s->fabric, i));
	s->host = sim_alloc(ports, sizeof(*s->host));
	for (i = 0; i < n; i++) {
		const struct fabric_node *node = fabric_node(s->fabric, i);

		bound |= fabric_node_binding(node) != NULL;
		for (k = 1; fabric_node_type(node) == NODE_TYPE_CA && k <= fabric_node_ports(node); k++) {
			struct sim_host *h = &s->host[s->nhosts];

			fabric_port_info(fabric_node_port(node, k), &info);
			if (!info.peer)
				continue;
			s->nhosts++;
			h->sim = s;
			h->node = node;
			h->port = fabric_ca_port(node, k);
			h->mad = mad_port_create(s->loop, h->port);
			h->port->data = (struct wire_port_user){ .ctx = h,
								 .receive = sim_traffic_receive,
								 .ready = sim_traffic_ready };
			if (!h->mad)
				sim_fail("out of memory", "");
		}
	}
	if (s->nhosts < 2)
		sim_fail("a simulation needs two hosts with InfiniBand links",
			 bound ? "those on Ethernet, RoCE and iWARP are not simulated" : "");
}

/* A file for the manager; NULL: not given. @place: where the topology names it, or NULL. The caller frees it. */
static char *manager_file(const char *path, const char *place)
{
	char err[512] = "out of memory", *text = path ? sm_file_read(path, place, err, sizeof(err)) : NULL;

	if (path && !text)
		sim_fail(err, "");
	return text;
}

/* Several topologies are one, in which the ends of trunks are cabled. */
static struct fabric_topology *topologies_load(const char *const *file, u32 n)
{
	struct fabric_topology **t = sim_alloc(n, sizeof(struct fabric_topology *)), *all;
	char err[512] = "out of memory";
	u32 i;

	for (i = 0; i < max(n, 1u); i++) {
		t[i] = n ? fabric_topology_open(file[i], err, sizeof(err)) : fabric_topology_default();
		if (!t[i])
			sim_fail(err, "");
		if (t[i]->warning)
			fprintf(stderr, "muslin-sim: warning: %s\n", t[i]->warning);
	}
	if (n && fabric_topology_merge(t, file, n, err, sizeof(err)))
		sim_fail(err, "");
	for (i = 1; i < n; i++)
		fabric_topology_destroy(t[i]);
	all = t[0];
	free(t);
	return all;
}

static void start(struct sim *s, const struct sim_options *o, struct fabric_topology *t)
{
	struct sm_config cfg = {
		.seed = o->seed,
		.sweep_ms = (u32)(o->sweep * 1000),
		.routing = o->routing,
		.hoq_life = o->hoq,
		.qos = o->qos,
		.lfts_file = o->lfts,
		.event = sim_stats_sm,
		.ctx = s,
	};
	char err[512], *lfts = manager_file(o->lfts, NULL), *partitions;
	int kept = o->keep_lids ? fabric_topology_keep_lids(t) : 0;

	if (kept < 0)
		sim_fail("--keep-lids", "the topology gives no LIDs");
	cfg.lmc = o->lmc ? o->lmc : (u8)kept;
	s->timed = t->timed = !o->nominal;
	cfg.partitions_file = o->partitions ? o->partitions : t->partition_file; /* the command line has priority */
	partitions = manager_file(cfg.partitions_file, o->partitions ? NULL : t->partition_place);
	cfg.partitions = partitions;
	cfg.lfts = lfts;
	s->loop = loop_create_virtual();
	s->fabric = s->loop ? fabric_create(s->loop, t, o->seed) : NULL;
	if (!s->fabric)
		sim_fail("out of memory", "");
	s->rng.state = o->seed;
	s->begin = loop_now(s->loop).ns;
	make_hosts(s);
	sim_traffic_create(s);
	fabric_watch(s->fabric, sim_stats_link, s);
	check_faults(s);
	s->manager = sm_mad_create(s->loop, s->host[0].mad, &cfg, err, sizeof(err));
	if (!s->manager)
		sim_fail(err, "");
	if (sm_mad_start(s->manager))
		sim_fail("the subnet manager cannot start", "");
	free(lfts);
	free(partitions);
	fabric_topology_destroy(t);
}

/* The traffic starts when the subnet is up, which may take as long as the traffic, or longer. */
static void run(struct sim *s)
{
	u64 end = s->begin + (u64)(max(s->seconds, BRING_UP_LEAST) * 1e9), at = s->begin;
	u32 i;

	for (; !s->up && at < end; at = min(at + max(10 * NSEC_PER_USEC, (at - s->begin) / 100), end))
		loop_run_idle(s->loop, at);
	if (!s->up)
		return;
	s->up = loop_now(s->loop).ns;
	s->end = s->up + (u64)(s->seconds * 1e9);
	sim_stats_start(s);
	sim_traffic_start(s);
	for (i = 0; i < s->nfaults; i++)
		if (s->fault[i].at > 0)
			loop_timer_set(s->loop, &s->fault[i].timer, s->up + (u64)(s->fault[i].at * 1e9));
	loop_run_idle(s->loop, s->end);
}

static void finish(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->nfaults; i++) {
		loop_timer_cancel(&s->fault[i].timer);
		if (s->fault[i].fault)
			fault_remove(s->fault[i].fault);
	}
	sim_traffic_fini(s);
	sm_mad_destroy(s->manager);
	for (i = 0; i < s->nhosts; i++)
		mad_port_destroy(s->host[i].mad);
	fabric_watch(s->fabric, NULL, NULL);
	fabric_destroy(s->fabric);
	loop_destroy(s->loop);
	free(s->host);
	sim_stats_fini(s);
}

int main(int argc, char **argv)
{
	static struct sim s = { .seconds = 60, .traffic = { .name = "random", .rate = 10, .size = 64, .nsls = 1 } };
	struct sim_options o = { .sweep = 10, .seed = 1 };
	clock_t cpu;
	u64 began;
	json_t *r;
	int err;

	log_level = LOG_ERROR;
	options_parse(&s, &o, argc, argv);
	start(&s, &o, topologies_load((const char *const *)argv + optind, (u32)(argc - optind)));
	began = clock_read();
	cpu = clock();
	run(&s);
	r = sim_report_json(&s, (double)(loop_now(s.loop).ns - s.begin) / 1e9, (double)(clock_read() - began) / 1e9,
			    (double)(clock() - cpu) / CLOCKS_PER_SEC);
	if (o.summary)
		sim_report_text(stdout, r);
	else if (!json_dumpf(r, stdout, JSON_INDENT(1)))
		putchar('\n');
	err = o.html ? sim_report_html(o.html, r) : 0;
	if (err)
		sim_fail(o.html, strerror(-err));
	json_decref(r);
	finish(&s);
	return fflush(stdout) ? 1 : 0;
}
