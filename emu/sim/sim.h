/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to muslin-sim, grouped by the file that implements each part. */
#ifndef MUSLIN_SIM_H
#define MUSLIN_SIM_H

#include <jansson.h>
#include <stdio.h>

#include "emu/lib/rng.h"
#include "emu/mad/mad.h"
#include "emu/sim/times.h"
#include "emu/smhost/sm_mad.h"
#include "fabric/fault.h"

#define SIM_FAULTS        64
#define SIM_SLS           16
#define SIM_SLICES        100  /* of the time with traffic */
#define SIM_FAILURES      1000 /* listed failures */
#define SIM_FAILURE_PORTS 256  /* listed ports of a failure */
#define SIM_QUEUE         256  /* packets queued per host for its port */

struct sim;
struct sim_host;

struct sim_slice {
	u64 sent, arrived, bytes, latency, slowest; /* sum and maximum of the latencies, ns */
};

/* A failure or a repair: from the first change of a port to the end of the sweep that brings the subnet up again. */
struct sim_failure {
	double at, reconverged; /* seconds; reconverged < 0: not before the end of the run */
	bool up;                /* a repair */
	u32 ports;              /* changes of ports; those listed are the first SIM_FAILURE_PORTS */
	u64 discarded;          /* packets discarded meanwhile */
	const struct fabric_port **port;
	char what[80];
};

/* A stage of the sweep that brings the subnet up: up to the next one. */
struct sim_stage {
	enum sm_stage stage;
	u64 at, smps; /* loop clock, ns; sent before it */
	double cpu;   /* processor time of the process before it, seconds */
};
#define SIM_STAGES 32 /* of several sweeps, if the first has errors */

struct sim_stats {
	struct sim_stage stage[SIM_STAGES + 1];
	u32 nstages;
	u64 *packets; /* sent by the ports of each node when the traffic starts */
	u64 sent, refused, arrived, late, digest, last_arrival, bytes;
	struct sim_times latency, network; /* since creation, and since transmission of the packet */
	struct sim_times by_vl[SIM_SLS];
	u64 vl_bytes[SIM_SLS];
	struct sim_slice slice[SIM_SLICES];
	u64 *words;   /* XmitData of each port at the start of the traffic, in the order of the fabric */
	u64 discards; /* of all ports, at the start of the present failure */
	struct sim_failure *failure;
	u32 nfailures, unlisted;
	bool failing;
};
/* Callbacks for link states and for states of the subnet manager. */
void sim_stats_link(void *ctx, const struct fabric_event *ev);
void sim_stats_sm(void *ctx, enum sm_event event);
u64 sim_stats_packets(const struct fabric_node *n); /* sent by all of its ports */
void sim_stats_start(struct sim *s);                /* at the start of the traffic */
void sim_stats_fini(struct sim *s);
void sim_stats_packet(struct sim *s, u8 vl, u32 bytes, u64 made, u64 sent);
struct sim_slice *sim_stats_slice(struct sim *s);
u64 sim_stats_total(const struct sim *s, enum fabric_counter c);
/* Utilisation of one direction of a link since the start of the traffic: 0 to 1. */
double sim_stats_utilisation(const struct sim *s, const struct fabric_port *p, u64 words_before);

/* traffic.c */
enum sim_pattern {
	SIM_RANDOM,
	SIM_SHIFT,
	SIM_ALL_TO_ALL,
	SIM_PERMUTATION,
	SIM_INCAST,
	SIM_HOTSPOT,
	SIM_FILE
};

/* Packets of a host: to one host, or to those of the pattern. */
struct sim_flow {
	struct loop_timer timer;
	struct sim_host *host;
	u32 to; /* SIM_ANY: according to the pattern */
	u32 size, turn;
	u8 sl;
	bool has_sl;
	u64 interval, until; /* ns; until 0: the end of the run */
	double start;
};
#define SIM_ANY (~0u)

/* A packet queued for the host's port. */
struct sim_waiting {
	u64 made;
	u32 to, size;
	u8 sl;
};

/* A port of a CA. */
struct sim_host {
	struct sim *sim;
	struct wire_port *port;
	struct mad_port *mad;
	const struct fabric_node *node;
	u32 psn;
	struct sim_waiting *queue; /* ring of SIM_QUEUE */
	u32 head, waiting;
	u64 delivered; /* bytes of its packets that were delivered */
};

#define SIM_PAYLOAD_LEAST 20 /* what its sender writes into it */
#define SIM_PAYLOAD_MOST  4096

struct sim_traffic {
	enum sim_pattern pattern;
	const char *name, *argument; /* as given on the command line */
	double rate, load, percent;  /* packets per second, or share of the link's rate; share of the hot spot */
	bool rate_given;
	u32 size, shift, nsls;
	u8 sl[SIM_SLS];
	u32 *target, ntargets; /* hosts of incast and hot spot; of a permutation one per host */
	struct sim_flow *flow;
	u32 nflows;
};
int sim_traffic_parse(struct sim_traffic *t, const char *pattern); /* "incast:h1,h2"; 0 or -EINVAL */
int sim_traffic_sls(struct sim_traffic *t, const char *list);
/* Creates the flows; exits with a message if hosts or lines of a file are invalid. */
void sim_traffic_create(struct sim *s);
void sim_traffic_start(struct sim *s);
void sim_traffic_fini(struct sim *s);
int sim_traffic_receive(void *ctx, struct wire_packet *p);
void sim_traffic_ready(void *ctx);

/* report.c: the result as JSON, from which the other reports are made */
json_t *sim_report_json(const struct sim *s, double seconds, double real, double cpu); /* all in seconds */
void sim_report_text(FILE *out, const json_t *r);
/* html.c */
int sim_report_html(const char *path, const json_t *r); /* 0, or -errno */

struct sim_fault {
	struct sim *sim;
	struct loop_timer timer;
	const char *text;
	double at; /* seconds after the subnet is up; 0: at the start */
	struct fault *fault;
};

struct sim {
	struct loop *loop;
	struct fabric *fabric;
	struct sm_mad *manager;
	struct sim_host *host;
	u32 nhosts, nfaults;
	struct sim_fault fault[SIM_FAULTS];
	struct sim_traffic traffic;
	struct sim_stats st;
	struct rng rng;
	u64 begin, up, end; /* ns of the loop's clock; up 0: not yet up */
	double seconds;
	bool timed;
	u64 *order_key; /* hash table: source, destination, SL; and the PSN received last */
	u32 *order_psn, order_cap, order_n;
};

void sim_fail(const char *what, const char *why) __attribute__((noreturn));
void *sim_alloc(size_t n, size_t size); /* zeroed; exits if out of memory */

#endif
