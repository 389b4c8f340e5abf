// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Timeline: events of the fabric and traffic of hosts, recorded from the first request on. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce.h"

#define EVENTS_MAX  4096
#define HOSTS_MAX   64
#define SAMPLES_MAX 3000
#define SAMPLE_TIME (200 * NSEC_PER_MSEC)

struct event {
	u64 ns;
	const char *kind; /* "port", "sm" or "fault" */
	char what[116];
};

/* A host whose port is not InfiniBand. */
struct timeline_host {
	struct timeline *t;
	struct wire_port *port;
};

struct timeline {
	struct daemon *d;
	struct loop_timer timer;
	const struct fabric_node *host[HOSTS_MAX]; /* hosts whose traffic is sampled */
	u32 nhosts;
	struct timeline_host *other;
	u32 nother;
	u64 start;
	u32 nevents, nsamples;
	u64 lost;
	struct event event[EVENTS_MAX];
	u64 sample[SAMPLES_MAX][HOSTS_MAX]; /* bytes in both directions since the start of the fabric */
};

static struct event *timeline_add(struct timeline *t, const char *kind)
{
	struct event *e;

	if (t->nevents == EVENTS_MAX) {
		t->lost++;
		return NULL;
	}
	e = &t->event[t->nevents++];
	e->ns = loop_now(t->d->loop).ns;
	e->kind = kind;
	return e;
}

static void timeline_watched(void *arg, const struct fabric_event *ev)
{
	struct timeline *t = arg;
	struct event *e = timeline_add(t, ev->type == FABRIC_EVENT_SM ? "sm" : "port");
	struct fabric_port_info info;

	if (!e)
		return;
	fabric_port_info(ev->port, &info);
	snprintf(e->what, sizeof(e->what), "%s:%u %s", fabric_node_name(fabric_port_node(ev->port)), info.num,
		 ev->type == FABRIC_EVENT_SM ? ev->text : wire_port_state_name(info.state));
}

static void timeline_port_note(struct timeline *t, const char *name, u32 num, bool up)
{
	struct event *e = timeline_add(t, "port");

	if (e)
		snprintf(e->what, sizeof(e->what), "%s:%u %s", name, num,
			 wire_port_state_name(up ? PORT_STATE_ACTIVE : PORT_STATE_DOWN));
}

static void timeline_ether_watched(void *arg, const struct eth_end *end)
{
	timeline_port_note(arg, eth_end_name(end), eth_end_num(end), eth_end_up(end));
}

static void timeline_port_watched(void *arg, enum wire_port_event event)
{
	struct timeline_host *h = arg;

	if (event == WIRE_PORT_ACTIVE || event == WIRE_PORT_ERR)
		timeline_port_note(h->t, h->port->name, h->port->num, event == WIRE_PORT_ACTIVE);
}

/* Watches ports on sockets; those of stations are ends of Ethernet. */
static void timeline_watch_other(struct timeline *t)
{
	struct daemon *d = t->d;
	u32 i;

	t->other = calloc(fabric_node_count(d->fabric) + 1, sizeof(*t->other));
	for (i = 0; t->other && i < fabric_node_count(d->fabric); i++) {
		const struct host *h = fabric_node_binding(fabric_node(d->fabric, i)) ? d->hosts[i] : NULL;
		struct timeline_host *o = &t->other[t->nother];

		if (!h || h->station)
			continue;
		*o = (struct timeline_host){ .t = t, .port = h->siw ? h->siw : roce_port_wire(h->roce) };
		o->port->watch = (struct wire_port_user){ .ctx = o, .event = timeline_port_watched };
		t->nother++;
	}
	if (d->ether)
		eth_watch(daemon_ether_net(d), timeline_ether_watched, t);
}

void daemon_timeline_note(struct daemon *d, const char *kind, const char *text)
{
	struct event *e = d->timeline ? timeline_add(d->timeline, kind) : NULL;

	if (e)
		snprintf(e->what, sizeof(e->what), "%s", text);
}

static void timeline_sample(struct loop_timer *timer, struct now now)
{
	struct timeline *t = container_of(timer, struct timeline, timer);
	u32 i;

	if (t->nsamples == SAMPLES_MAX)
		return;
	for (i = 0; i < t->nhosts; i++) {
		struct daemon_traffic passed = daemon_host_traffic(t->d, t->host[i]);

		t->sample[t->nsamples][i] = passed.sent + passed.received;
	}
	t->nsamples++;
	loop_timer_set(t->d->loop, timer, t->start + t->nsamples * SAMPLE_TIME); /* which may have passed */
}

static json_t *timeline_start(struct daemon *d, struct ctl_client *c)
{
	struct timeline *t;
	u32 i;

	if (d->timeline)
		return json_true();
	t = calloc(1, sizeof(*t));
	if (!t)
		return ctl_error(c, "out of memory");
	t->d = d;
	t->start = loop_now(d->loop).ns;
	t->timer.fn = timeline_sample;
	for (i = 0; i < fabric_node_count(d->fabric) && t->nhosts < HOSTS_MAX; i++)
		if (fabric_node_type(fabric_node(d->fabric, i)) == NODE_TYPE_CA)
			t->host[t->nhosts++] = fabric_node(d->fabric, i);
	d->timeline = t;
	fabric_watch(d->fabric, timeline_watched, t);
	timeline_watch_other(t);
	timeline_sample(&t->timer, loop_now(d->loop));
	return json_true();
}

static double timeline_seconds(u64 ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

/*
 * With the times from @since on, of the loop's clock, which all daemons of the machine have: the timeline of one that
 * was started later has no traffic before.
 */
static json_t *timeline_show(const struct timeline *t, double since)
{
	u64 from = (u64)(since * (double)NSEC_PER_SEC), missing;
	json_t *events = json_array(), *hosts = json_object(), *samples;
	u32 i, k;

	from = since > 0 && from < t->start ? from : t->start;
	missing = min((t->start - from) / SAMPLE_TIME, (u64)SAMPLES_MAX);
	for (i = 0; i < t->nevents; i++)
		json_array_append_new(events, json_pack("[f, s, s]", timeline_seconds(t->event[i].ns - from),
							t->event[i].kind, t->event[i].what));
	for (i = 0; i < t->nhosts; i++) {
		samples = json_array();
		for (k = 0; k < missing; k++)
			json_array_append_new(samples, json_integer((json_int_t)t->sample[0][i]));
		for (k = 0; k < t->nsamples; k++)
			json_array_append_new(samples, json_integer((json_int_t)t->sample[k][i]));
		json_object_set_new(hosts, fabric_node_name(t->host[i]), samples);
	}
	return json_pack("{s:f, s:o, s:I, s:f, s:o}", "now", timeline_seconds(loop_now(t->d->loop).ns - from), "events",
			 events, "lost", (json_int_t)t->lost, "interval", timeline_seconds(SAMPLE_TIME), "bytes",
			 hosts);
}

/* "start": records; "began": says since when; "since": what was recorded, with times from then on. */
json_t *daemon_timeline_command(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;

	if (json_is_true(json_object_get(req, "start")))
		return timeline_start(d, c);
	if (json_is_true(json_object_get(req, "began")))
		return d->timeline ? json_pack("{s:[f]}", "began", timeline_seconds(d->timeline->start))
				   : json_pack("{s:[]}", "began");
	return d->timeline ? timeline_show(d->timeline, json_number_value(json_object_get(req, "since")))
			   : json_object();
}

void daemon_timeline_destroy(struct daemon *d)
{
	u32 i;

	if (!d->timeline)
		return;
	fabric_watch(d->fabric, NULL, NULL);
	if (d->ether)
		eth_watch(daemon_ether_net(d), NULL, NULL);
	for (i = 0; i < d->timeline->nother; i++)
		d->timeline->other[i].port->watch = (struct wire_port_user){ 0 };
	free(d->timeline->other);
	loop_timer_cancel(&d->timeline->timer);
	free(d->timeline);
}
