// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The result of a simulation as JSON and as plain text. */
#include <stdlib.h>
#include <string.h>

#include "emu/sim/sim.h"
#include "emu/wire/smp.h"

#define LINKS_MOST 100 /* listed links, the busiest ones */
#define CURVE      200 /* points of the sorted utilisations */
#define CDF        100 /* points of the distribution of the latencies */

static json_t *times_json(const struct sim_times *t)
{
	static const struct {
		const char *name;
		double percent;
	} of[] = { { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "p99.9", 99.9 } };
	json_t *o = json_object();
	u32 i;

	json_object_set_new(o, "packets", json_integer((json_int_t)t->n));
	json_object_set_new(o, "mean", json_real(t->n ? (double)t->sum / (double)t->n / 1e9 : 0));
	for (i = 0; i < ARRAY_SIZE(of); i++)
		json_object_set_new(o, of[i].name, json_real((double)sim_times_percentile(t, of[i].percent) / 1e9));
	json_object_set_new(o, "max", json_real((double)t->max / 1e9));
	return o;
}

/* [latency in seconds, share of the packets] */
static json_t *cdf_json(const struct sim_times *t)
{
	json_t *a = json_array();
	u32 i;

	for (i = 1; t->n && i <= CDF; i++) {
		double percent = i < CDF ? 100.0 * i / CDF : 100;

		json_array_append_new(
			a, json_pack("[f, f]", (double)sim_times_percentile(t, percent) / 1e9, percent / 100));
	}
	return a;
}

static u64 vl_wait(const struct sim *s, u8 vl)
{
	u64 sum = 0;
	u32 i, k;

	for (i = 0; i < fabric_node_count(s->fabric); i++)
		for (k = 1; k <= fabric_node_ports(fabric_node(s->fabric, i)); k++)
			sum += fabric_port_vl_counter(fabric_node_port(fabric_node(s->fabric, i), k), vl,
						      FABRIC_VL_WAIT);
	return sum;
}

static json_t *vls_json(const struct sim *s)
{
	json_t *a = json_array();
	u8 vl;

	for (vl = 0; vl < SIM_SLS; vl++) {
		json_t *o;

		if (!s->st.by_vl[vl].n)
			continue;
		o = times_json(&s->st.by_vl[vl]);
		json_object_set_new(o, "vl", json_integer(vl));
		json_object_set_new(o, "bytes", json_integer((json_int_t)s->st.vl_bytes[vl]));
		json_object_set_new(o, "xmit_wait", json_integer((json_int_t)vl_wait(s, vl)));
		json_array_append_new(a, o);
	}
	return a;
}

struct link {
	const struct fabric_port *port;
	double used;
};

static int busier(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return x->used < y->used ? 1 : x->used > y->used ? -1 : x->port < y->port ? -1 : x->port > y->port;
}

/* Both directions of each link that exists at the end. */
static struct link *links_of(const struct sim *s, u32 *count)
{
	struct fabric_port_info info;
	struct link *l;
	u32 i, k, n = 0, at = 0;

	for (i = 0; i < fabric_node_count(s->fabric); i++)
		n += fabric_node_ports(fabric_node(s->fabric, i));
	l = sim_alloc(n, sizeof(*l));
	for (i = 0, n = 0; i < fabric_node_count(s->fabric); i++)
		for (k = 1; k <= fabric_node_ports(fabric_node(s->fabric, i)); k++, at++) {
			const struct fabric_port *p = fabric_node_port(fabric_node(s->fabric, i), k);

			fabric_port_info(p, &info);
			if (info.peer && s->st.words)
				l[n++] = (struct link){ p, sim_stats_utilisation(s, p, s->st.words[at]) };
		}
	qsort(l, n, sizeof(*l), busier);
	*count = n;
	return l;
}

static json_t *links_json(const struct sim *s)
{
	json_t *o = json_object(), *list = json_array(), *curve = json_array();
	char name[2 * FABRIC_NAME_MAX];
	u32 n, i, last = 0;
	struct link *l = links_of(s, &n);
	double sum = 0;

	for (i = 0; i < n; i++) {
		struct fabric_port_info info;

		sum += l[i].used;
		if (i >= LINKS_MOST || l[i].used <= 0)
			continue;
		fabric_port_info(l[i].port, &info);
		snprintf(name, sizeof(name), "%s:%u", fabric_node_name(fabric_port_node(l[i].port)), info.num);
		json_array_append_new(list, json_pack("{s:s, s:s, s:f}", "port", name, "to",
						      fabric_node_name(info.peer), "utilisation", l[i].used));
	}
	for (i = 0; n && i < CURVE; i++) {
		u32 at = (u32)((u64)i * n / CURVE);

		if (i && at == last)
			continue;
		last = at;
		json_array_append_new(curve, json_real(l[at].used));
	}
	json_object_set_new(o, "directions", json_integer(n));
	json_object_set_new(o, "mean", json_real(n ? sum / n : 0));
	json_object_set_new(o, "max", json_real(n ? l[0].used : 0));
	json_object_set_new(o, "busiest", list);
	json_object_set_new(o, "sorted", curve);
	free(l);
	return o;
}

static json_t *port_names_json(const struct sim_failure *f)
{
	char name[FABRIC_NAME_MAX + 16];
	struct fabric_port_info info;
	json_t *a = json_array();
	u32 i;

	for (i = 0; i < min(f->ports, (u32)SIM_FAILURE_PORTS); i++) {
		fabric_port_info(f->port[i], &info);
		snprintf(name, sizeof(name), "%s:%u", fabric_node_name(fabric_port_node(f->port[i])), info.num);
		json_array_append_new(a, json_string(name));
	}
	return a;
}

static json_t *failures_json(const struct sim *s)
{
	json_t *a = json_array();
	u32 i;

	for (i = 0; i < s->st.nfailures; i++) {
		const struct sim_failure *f = &s->st.failure[i];

		json_array_append_new(a, json_pack("{s:f, s:s, s:s, s:i, s:o, s:o, s:I}", "at", f->at, "first", f->what,
						   "kind", f->up ? "repair" : "failure", "ports", (int)f->ports,
						   "names", port_names_json(f), "reconvergence_seconds",
						   f->reconverged < 0 ? json_null() : json_real(f->reconverged),
						   "discarded", (json_int_t)f->discarded));
	}
	return a;
}

static json_t *slices_json(const struct sim *s)
{
	double span = (double)(s->end - s->up) / 1e9 / SIM_SLICES;
	json_t *a = json_array();
	u32 i;

	for (i = 0; s->up && i < SIM_SLICES; i++) {
		const struct sim_slice *c = &s->st.slice[i];

		json_array_append_new(a, json_pack("{s:f, s:I, s:I, s:f, s:f, s:f}", "at", span * i, "sent",
						   (json_int_t)c->sent, "arrived", (json_int_t)c->arrived, "gbps",
						   (double)c->bytes * 8 / span / 1e9, "latency_mean",
						   c->arrived ? (double)c->latency / (double)c->arrived / 1e9 : 0,
						   "latency_max", (double)c->slowest / 1e9));
	}
	return a;
}

/* Jain's fairness index of the bytes delivered per sender: 1 if all are equal. */
static double fairness(const struct sim *s)
{
	double sum = 0, squares = 0;
	u32 i, n = 0;

	for (i = 0; i < s->nhosts; i++) {
		double d = (double)s->host[i].delivered;

		if (!s->host[i].psn)
			continue;
		n++;
		sum += d;
		squares += d * d;
	}
	return squares > 0 ? sum * sum / (squares * n) : 0;
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

/* Packets discarded by ports, by reason. */
static json_t *discards_json(const struct sim *s)
{
	static const enum fabric_counter why[] = { FABRIC_CTR_XMIT_INACTIVE, FABRIC_CTR_XMIT_HOQ,
						   FABRIC_CTR_XMIT_LIFETIME, FABRIC_CTR_RCV_DLID_MAPPING };
	json_t *o = json_object();
	u32 i;

	for (i = 0; i < ARRAY_SIZE(why); i++)
		json_object_set_new(o, fabric_counter_name(why[i]),
				    json_integer((json_int_t)sim_stats_total(s, why[i])));
	return o;
}

static u32 active_ports(const struct sim *s)
{
	u32 i, n = 0;

	for (i = 0; i < s->nhosts; i++)
		n += s->host[i].port->attr.state == PORT_STATE_ACTIVE;
	return n;
}

/* What each stage of the bring-up took. */
static json_t *stages_json(const struct sim *s)
{
	json_t *a = json_array();
	u32 i;

	for (i = 0; s->up && i < s->st.nstages; i++) {
		const struct sim_stage *from = &s->st.stage[i], *to = from + 1;

		json_array_append_new(a,
				      json_pack("{s:s, s:I, s:f, s:f}", "stage", sm_stage_name(from->stage), "smps",
						(json_int_t)(to->smps - from->smps), "seconds",
						(double)(to->at - from->at) / 1e9, "cpu_seconds", to->cpu - from->cpu));
	}
	return a;
}

/* The switch whose ports have sent most packets: until the subnet was up, or since then. */
static json_t *busiest_switch_json(const struct sim *s, bool bring_up)
{
	const char *name = NULL;
	u64 most = 0, n;
	u32 i;

	for (i = 0; s->st.packets && i < fabric_node_count(s->fabric); i++) {
		const struct fabric_node *node = fabric_node(s->fabric, i);

		n = bring_up ? s->st.packets[i] : sim_stats_packets(node) - s->st.packets[i];
		if (fabric_node_type(node) != NODE_TYPE_SWITCH || n <= most)
			continue;
		most = n;
		name = fabric_node_name(node);
	}
	return name ? json_pack("{s:s, s:I}", "name", name, "packets", (json_int_t)most) : json_null();
}

static void run_json(json_t *o, const struct sim *s, double seconds, double real, double cpu)
{
	u64 events = fabric_events(s->fabric);
	u32 i, switches = 0;

	for (i = 0; i < fabric_node_count(s->fabric); i++)
		switches += fabric_node_type(fabric_node(s->fabric, i)) == NODE_TYPE_SWITCH;
	json_object_set_new(o, "seconds", json_real(seconds));
	json_object_set_new(o, "real_seconds", json_real(real));
	json_object_set_new(o, "times_real_time", json_real(seconds / real));
	json_object_set_new(o, "rates", json_string(s->timed ? "enforced" : "nominal"));
	json_object_set_new(o, "events", json_integer((json_int_t)events));
	json_object_set_new(o, "cpu_seconds", json_real(cpu));
	json_object_set_new(o, "events_per_second", json_real(cpu > 0 ? (double)events / cpu : 0));
	json_object_set_new(o, "hosts", json_integer(s->nhosts));
	json_object_set_new(o, "switches", json_integer(switches));
	json_object_set_new(o, "active_hosts", json_integer(active_ports(s)));
	json_object_set_new(o, "bring_up_seconds", s->up ? json_real((double)(s->up - s->begin) / 1e9) : json_null());
}

json_t *sim_report_json(const struct sim *s, double seconds, double real, double cpu)
{
	double span = s->up ? (double)(s->end - s->up) / 1e9 : 0;
	json_t *o = json_object();
	struct sm_status st;
	char text[20];

	sm_status(sm_mad_manager(s->manager), &st);
	run_json(o, s, seconds, real, cpu);
	json_object_set_new(o, "bring_up_stages", stages_json(s));
	json_object_set_new(o, "bring_up_busiest_switch", busiest_switch_json(s, true));
	json_object_set_new(o, "busiest_switch", busiest_switch_json(s, false));
	json_object_set_new(o, "heavy_sweeps", json_integer(st.heavy_sweeps));
	json_object_set_new(o, "light_sweeps", json_integer(st.light_sweeps));
	json_object_set_new(o, "smps", json_integer((json_int_t)st.smps));
	json_object_set_new(o, "traps", json_integer((json_int_t)st.traps));
	json_object_set_new(o, "routing", json_string(st.routing));
	json_object_set_new(o, "pattern", json_string(s->traffic.name));
	json_object_set_new(o, "sent", json_integer((json_int_t)s->st.sent));
	json_object_set_new(o, "refused", json_integer((json_int_t)s->st.refused));
	json_object_set_new(o, "arrived", json_integer((json_int_t)s->st.arrived));
	json_object_set_new(o, "out_of_order", json_integer((json_int_t)s->st.late));
	json_object_set_new(o, "last_arrival", json_real((double)s->st.last_arrival / 1e9));
	json_object_set_new(o, "delivered_gbps", json_real(span > 0 ? (double)s->st.bytes * 8 / span / 1e9 : 0));
	json_object_set_new(o, "fairness", json_real(fairness(s)));
	json_object_set_new(o, "xmit_wait", json_integer((json_int_t)sim_stats_total(s, FABRIC_CTR_XMIT_WAIT)));
	json_object_set_new(o, "discarded", discards_json(s));
	json_object_set_new(o, "latency", times_json(&s->st.latency));
	json_object_set_new(o, "network_latency", times_json(&s->st.network));
	json_object_set_new(o, "latency_distribution", cdf_json(&s->st.latency));
	json_object_set_new(o, "vls", vls_json(s));
	json_object_set_new(o, "links", links_json(s));
	json_object_set_new(o, "reconvergence", failures_json(s));
	json_object_set_new(o, "reconvergence_unlisted", json_integer(s->st.unlisted));
	json_object_set_new(o, "slices", slices_json(s));
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)s->st.digest);
	json_object_set_new(o, "digest", json_string(text));
	json_object_set_new(o, "faults", faults_json(s));
	return o;
}

/* ---- plain text ---- */

static double real_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static long long int_of(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static void text_times(FILE *out, const char *name, const json_t *t)
{
	static const char *const keys[] = { "p50", "p90", "p99", "p99.9", "max" };
	u32 i;

	fprintf(out, "%-18s", name);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		fprintf(out, "  %s %.3f us", keys[i], real_of(t, keys[i]) * 1e6);
	fprintf(out, "\n");
}

void sim_report_text(FILE *out, const json_t *r)
{
	const json_t *links = json_object_get(r, "links"), *v, *up = json_object_get(r, "bring_up_seconds");
	char name[32];
	size_t i;

	fprintf(out, "%lld %s of hosts (%lld Active), %lld %s, routing %s, rates %s\n", int_of(r, "hosts"),
		plural(int_of(r, "hosts"), "port", "ports"), int_of(r, "active_hosts"), int_of(r, "switches"),
		plural(int_of(r, "switches"), "switch", "switches"), json_string_value(json_object_get(r, "routing")),
		json_string_value(json_object_get(r, "rates")));
	if (json_is_number(up))
		fprintf(out, "subnet up after   %.6f s\n", json_number_value(up));
	else
		fprintf(out, "the subnet did not reach Active\n");
	fprintf(out, "simulated         %g s in %.2f s; %lld events, %.0f in a second of the processor\n",
		real_of(r, "seconds"), real_of(r, "real_seconds"), int_of(r, "events"),
		real_of(r, "events_per_second"));
	fprintf(out, "packets (%s)  sent %lld, refused by full hosts %lld, arrived %lld, out of order %lld\n",
		json_string_value(json_object_get(r, "pattern")), int_of(r, "sent"), int_of(r, "refused"),
		int_of(r, "arrived"), int_of(r, "out_of_order"));
	fprintf(out, "delivered         %.3f Gb/s, fairness %.3f\n", real_of(r, "delivered_gbps"),
		real_of(r, "fairness"));
	text_times(out, "latency", json_object_get(r, "latency"));
	text_times(out, "in the network", json_object_get(r, "network_latency"));
	json_array_foreach(json_object_get(r, "vls"), i, v)
	{
		snprintf(name, sizeof(name), "VL %lld", int_of(v, "vl"));
		text_times(out, name, v);
	}
	fprintf(out, "link utilisation  mean %.1f %%, max %.1f %%\n", real_of(links, "mean") * 100,
		real_of(links, "max") * 100);
	json_array_foreach(json_object_get(links, "busiest"), i, v)
	{
		if (i < 5)
			fprintf(out, "  %5.1f %%  %s to %s\n", real_of(v, "utilisation") * 100,
				json_string_value(json_object_get(v, "port")),
				json_string_value(json_object_get(v, "to")));
	}
	json_array_foreach(json_object_get(r, "reconvergence"), i, v)
	{
		const json_t *t = json_object_get(v, "reconvergence_seconds");

		fprintf(out, "%-7s at %.6f s   %s and %lld %s more: ", json_string_value(json_object_get(v, "kind")),
			real_of(v, "at"), json_string_value(json_object_get(v, "first")), int_of(v, "ports") - 1,
			plural(int_of(v, "ports"), "port", "ports"));
		if (json_is_number(t))
			fprintf(out, "%.6f s to the new routes, %lld %s discarded\n", json_number_value(t),
				int_of(v, "discarded"), plural(int_of(v, "discarded"), "packet", "packets"));
		else
			fprintf(out, "no new routes before the end\n");
	}
}
