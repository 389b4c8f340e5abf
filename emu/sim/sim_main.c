// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * muslin-sim: a fabric, its subnet manager and traffic under a virtual clock. No time passes but in the simulation: the
 * clock jumps to what comes next. The same arguments give the same run, packet by packet; the digest proves it.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/clock.h"
#include "emu/lib/log.h"
#include "emu/lib/rng.h"
#include "emu/lib/version.h"
#include "emu/mad/mad.h"
#include "emu/packet/header.h"
#include "emu/smhost/sm_mad.h"
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "emu/wire/smp.h"
#include "fabric/fault.h"

#define USAGE      2
#define FAULTS_MAX 64
#define QPN        17

struct sim;

struct sim_host {
	struct sim *sim;
	struct wire_port *port;
	struct mad_port *mad;
	struct loop_timer timer;
	u32 psn;
	u32 *last; /* PSN + 1 that came last from each host */
};

struct sim_fault {
	struct sim *sim;
	struct loop_timer timer;
	const char *text;
	struct fault *fault;
};

struct sim {
	struct loop *loop;
	struct fabric *fabric;
	struct sm_mad *manager;
	struct sim_host *host;
	struct sim_fault fault[FAULTS_MAX];
	struct rng rng;
	u32 nhosts, nfaults;
	u64 interval; /* ns between two packets of a host; 0: no traffic */
	u64 sent, refused, arrived, late, digest, last_arrival;
	u32 size, stride; /* stride: each host sends to the one so many places behind it; 0: to any */
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "muslin-sim: %s%s%s\n", what, *why ? ": " : "", why);
	exit(1);
}

/* Arrivals are what a run is known by: when, where, from whom, and which. */
static void digest(struct sim *s, u64 v)
{
	s->digest = (s->digest ^ v) * 0x100000001b3ull;
}

static int receive(void *ctx, struct wire_packet *p)
{
	struct sim_host *h = ctx;
	struct sim *s = h->sim;
	u32 from, psn = wire_bth_psn(wire_packet_bth(p));

	memcpy(&from, p->data, sizeof(from));
	s->arrived++;
	s->last_arrival = loop_now(s->loop).ns;
	digest(s, loop_now(s->loop).ns);
	digest(s, (u64)from << 32 | psn);
	if (from < s->nhosts) {
		s->late += wire_psn_diff(psn + 1, h->last[from]) <= 0 && h->last[from];
		h->last[from] = psn + 1;
	}
	wire_packet_free(p);
	return 0;
}

static struct wire_packet *packet(struct sim *s, u32 from, u16 slid, u16 dlid, u32 psn)
{
	struct wire_packet *p = wire_packet_alloc();

	if (!p)
		return NULL;
	p->buf = wire_buf_alloc(s->size);
	if (!p->buf) {
		wire_packet_free(p);
		return NULL;
	}
	memcpy(p->buf->data, &from, sizeof(from));
	p->data = p->buf->data;
	p->len = s->size;
	p->has_lrh = 1;
	p->bth_off = sizeof(struct wire_lrh);
	p->hdr_len = (u16)(p->bth_off + sizeof(struct wire_bth));
	wire_lrh_fill(wire_packet_lrh(p), 0, 0, WIRE_LNH_BTH, dlid, slid, wire_packet_link_len(p) / 4);
	wire_bth_fill(wire_packet_bth(p), WIRE_UC_SEND_ONLY, false, 0, WIRE_PKEY_DEFAULT_FULL, QPN, false, psn);
	return p;
}

/* One packet, and the next one after a time that varies by half. */
static void on_traffic(struct loop_timer *t, struct now now)
{
	struct sim_host *h = container_of(t, struct sim_host, timer);
	struct sim *s = h->sim;
	u32 self = (u32)(h - s->host);
	u32 by = s->stride ? s->stride : 1 + (u32)(rng_next(&s->rng) % (s->nhosts - 1));
	u32 to = (self + by) % s->nhosts;
	u16 slid = h->port->attr.lid, dlid = s->host[to].port->attr.lid;
	struct wire_packet *p = slid && dlid ? packet(s, self, slid, dlid, h->psn) : NULL;

	if (p) {
		s->sent++;
		h->psn = wire_psn_add(h->psn, 1);
		if (wire_port_send(h->port, p)) {
			s->refused++;
			wire_packet_free(p);
		}
	}
	loop_timer_set(s->loop, t, now.ns + s->interval / 2 + rng_next(&s->rng) % s->interval);
}

static void make_hosts(struct sim *s)
{
	u32 n = fabric_node_count(s->fabric), i;

	s->host = calloc(n, sizeof(*s->host));
	for (i = 0; s->host && i < n; i++) {
		struct sim_host *h = &s->host[s->nhosts];

		if (fabric_node_type(fabric_node(s->fabric, i)) != NODE_TYPE_CA)
			continue;
		s->nhosts++;
		h->sim = s;
		h->port = fabric_ca_port(fabric_node(s->fabric, i), 1);
		h->mad = mad_port_create(s->loop, h->port);
		h->timer.fn = on_traffic;
		h->port->data = (struct wire_port_user){ .ctx = h, .receive = receive };
		if (!h->mad)
			fail("out of memory", "");
	}
	if (s->nhosts < 2)
		fail("a simulation needs two hosts", "");
	for (i = 0; i < s->nhosts; i++) {
		s->host[i].last = calloc(s->nhosts, sizeof(u32));
		if (!s->host[i].last)
			fail("out of memory", "");
		if (s->interval)
			loop_timer_set(s->loop, &s->host[i].timer, loop_now(s->loop).ns + s->interval);
	}
}

static void on_fault(struct loop_timer *t, struct now now)
{
	struct sim_fault *f = container_of(t, struct sim_fault, timer);
	char err[300];

	f->fault = fault_add(fabric_faults(f->sim->fabric), f->text, err, sizeof(err));
	if (!f->fault)
		fail(f->text, err);
}

/* "SECONDS:LINE", or a line that is armed at the start. What is wrong with it is said before anything runs. */
static void take_fault(struct sim *s, const char *arg)
{
	struct sim_fault *f = &s->fault[s->nfaults];
	char *end;
	double at = strtod(arg, &end);
	bool timed = end != arg && *end == ':';

	if (s->nfaults == FAULTS_MAX || (timed && (at < 0 || at > 1e9)))
		fail(arg, "too many faults, or no such time");
	f->sim = s;
	f->timer.fn = on_fault;
	f->timer.when = timed ? (u64)(at * 1e9) : 0;
	f->text = timed ? end + 1 : arg;
	s->nfaults++;
}

static void check_faults(struct sim *s)
{
	char err[300];
	u32 i;

	for (i = 0; i < s->nfaults; i++) {
		struct sim_fault *f = &s->fault[i];
		u64 when = f->timer.when;

		if (!when) {
			on_fault(&f->timer, loop_now(s->loop));
			continue;
		}
		/* The tables that it may speak of are not filled yet: only the words are judged now. */
		f->fault = fault_add(fabric_faults(s->fabric), f->text, err, sizeof(err));
		if (f->fault)
			fault_remove(f->fault);
		else if (!strstr(err, "has no such entry"))
			fail(f->text, err);
		f->fault = NULL;
		loop_timer_set(s->loop, &f->timer, when);
	}
}

static json_t *faults_json(const struct sim *s)
{
	json_t *a = json_array();
	u32 i;

	for (i = 0; i < s->nfaults; i++) {
		const struct fault *ft = s->fault[i].fault;

		if (!ft)
			continue;
		json_array_append_new(a, json_pack("{s:s, s:I, s:I}", "fault", s->fault[i].text, "matches",
						   (json_int_t)ft->pick.seen, "hits", (json_int_t)ft->pick.hits));
	}
	return a;
}

static u32 active_ports(const struct sim *s)
{
	u32 i, n = 0;

	for (i = 0; i < s->nhosts; i++)
		n += s->host[i].port->attr.state == PORT_STATE_ACTIVE;
	return n;
}

static u64 total(const struct sim *s, enum fabric_counter c)
{
	u64 sum = 0;
	u32 i, k;

	for (i = 0; i < fabric_node_count(s->fabric); i++)
		for (k = 1; k <= fabric_node_ports(fabric_node(s->fabric, i)); k++)
			sum += fabric_port_counter(fabric_node_port(fabric_node(s->fabric, i), k), c);
	return sum;
}

/* What ports have thrown away because it could not go on. */
static json_t *discards_json(const struct sim *s)
{
	static const enum fabric_counter why[] = { FABRIC_CTR_XMIT_INACTIVE, FABRIC_CTR_XMIT_HOQ,
						   FABRIC_CTR_XMIT_LIFETIME, FABRIC_CTR_RCV_DLID_MAPPING };
	json_t *o = json_object();
	u32 i;

	for (i = 0; i < ARRAY_SIZE(why); i++)
		json_object_set_new(o, fabric_counter_name(why[i]), json_integer((json_int_t)total(s, why[i])));
	return o;
}

static void print(const struct sim *s, double simulated, double real)
{
	struct sm_status st;
	char text[20];
	json_t *o;

	sm_status(sm_mad_manager(s->manager), &st);
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)s->digest);
	o = json_pack("{s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:o, s:s, s:s, s:o}",
		      "seconds", simulated, "real_seconds", real, "times_real_time", simulated / real, "hosts",
		      (int)s->nhosts, "active_hosts", (int)active_ports(s), "heavy_sweeps", (int)st.heavy_sweeps,
		      "light_sweeps", (int)st.light_sweeps, "smps", (json_int_t)st.smps, "traps", (json_int_t)st.traps,
		      "sent", (json_int_t)s->sent, "refused", (json_int_t)s->refused, "arrived", (json_int_t)s->arrived,
		      "last_arrival", (double)s->last_arrival / (double)NSEC_PER_SEC, "xmit_wait",
		      (json_int_t)total(s, FABRIC_CTR_XMIT_WAIT), "out_of_order", (json_int_t)s->late, "discarded",
		      discards_json(s), "routing", st.routing, "digest", text, "faults", faults_json(s));
	json_dumpf(o, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(o);
}

struct sim_options {
	double seconds, traffic, sweep;
	u64 seed;
	const char *routing;
	u8 hoq;
};

static double number(const char *option, double max)
{
	char *end;
	double v = strtod(optarg, &end);

	if (end != optarg && !*end && v >= 0 && v <= max)
		return v;
	fprintf(stderr, "muslin-sim: --%s %s: a number from 0 to %g is wanted\n", option, optarg, max);
	exit(USAGE);
}

static void usage(FILE *out, int status)
{
	fputs("usage: muslin-sim [--seconds N] [--seed N] [--traffic PACKETS-A-SECOND-OF-EACH-HOST] [--size BYTES]\n"
	      "                  [--to N] [--sweep SECONDS] [--routing ENGINE] [--hoq CODE] [--fault "
	      "[SECONDS:]LINE]... [TOPOLOGY]\n",
	      out);
	exit(status);
}

static const struct option options[] = {
	{ "seconds", required_argument, NULL, 's' }, { "seed", required_argument, NULL, 'e' },
	{ "traffic", required_argument, NULL, 't' }, { "size", required_argument, NULL, 'z' },
	{ "sweep", required_argument, NULL, 'w' },   { "routing", required_argument, NULL, 'r' },
	{ "hoq", required_argument, NULL, 'q' },     { "to", required_argument, NULL, 'o' },
	{ "fault", required_argument, NULL, 'f' },   { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },       { NULL, 0, NULL, 0 },
};

static void parse(struct sim *s, struct sim_options *o, int argc, char **argv)
{
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == 's')
			o->seconds = number("seconds", 1e7);
		else if (id == 'e')
			o->seed = (u64)number("seed", 9e15);
		else if (id == 't')
			o->traffic = number("traffic", 1e6);
		else if (id == 'z')
			s->size = (u32)number("size", 2048);
		else if (id == 'w')
			o->sweep = number("sweep", 1e6);
		else if (id == 'r')
			o->routing = optarg;
		else if (id == 'q')
			o->hoq = (u8)number("hoq", 20);
		else if (id == 'o')
			s->stride = (u32)number("to", 1e5);
		else if (id == 'f')
			take_fault(s, optarg);
		else if (id == 'V')
			exit(puts("muslin-sim " MUSLIN_VERSION) == EOF);
		else
			usage(id == 'h' ? stdout : stderr, id == 'h' ? 0 : USAGE);
	}
	if (argc - optind > 1)
		usage(stderr, USAGE);
	if (s->size < sizeof(u32))
		s->size = sizeof(u32);
}

static void start(struct sim *s, const struct sim_options *o, const char *topology)
{
	struct sm_config cfg = {
		.seed = o->seed, .sweep_ms = (u32)(o->sweep * 1000), .routing = o->routing, .hoq_life = o->hoq
	};
	char err[512] = "out of memory";
	struct fabric_topology *t =
		topology ? fabric_topology_open(topology, err, sizeof(err)) : fabric_topology_default();

	if (!t)
		fail(err, "");
	s->loop = loop_create_virtual();
	s->fabric = s->loop ? fabric_create(s->loop, t, o->seed) : NULL;
	fabric_topology_destroy(t);
	if (!s->fabric)
		fail("out of memory", "");
	s->rng.state = o->seed;
	s->interval = o->traffic > 0 ? (u64)(1e9 / o->traffic) : 0;
	make_hosts(s);
	check_faults(s);
	s->manager = sm_mad_create(s->loop, s->host[0].mad, &cfg, err, sizeof(err));
	if (!s->manager || sm_mad_start(s->manager))
		fail("the subnet manager does not start", err);
}

static void finish(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->nfaults; i++) {
		loop_timer_cancel(&s->fault[i].timer);
		if (s->fault[i].fault)
			fault_remove(s->fault[i].fault);
	}
	sm_mad_destroy(s->manager);
	for (i = 0; i < s->nhosts; i++) {
		loop_timer_cancel(&s->host[i].timer);
		mad_port_destroy(s->host[i].mad);
		free(s->host[i].last);
	}
	fabric_destroy(s->fabric);
	loop_destroy(s->loop);
	free(s->host);
}

int main(int argc, char **argv)
{
	static struct sim s = { .size = 64 };
	struct sim_options o = { .seconds = 60, .traffic = 10, .sweep = 10, .seed = 1 };
	u64 began, end;

	log_level = LOG_ERROR;
	parse(&s, &o, argc, argv);
	start(&s, &o, optind < argc ? argv[optind] : NULL);
	began = clock_read();
	end = loop_now(s.loop).ns + (u64)(o.seconds * 1e9);
	loop_run_idle(s.loop, end);
	print(&s, o.seconds, (double)(clock_read() - began) / (double)NSEC_PER_SEC);
	finish(&s);
	return fflush(stdout) ? 1 : 0;
}
