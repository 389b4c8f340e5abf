// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The traffic of muslin-sim: packets between hosts according to a pattern. Packets are created at their times even if
 * the port is busy, and queued at the host; latency counts from creation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/packet/header.h"
#include "emu/sim/sim.h"
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "emu/wire/smp.h"

#define QPN        17
#define ORDER_MOST (1u << 22) /* flows whose order is checked */

/* At the start of the payload. */
struct mark {
	u32 from;
	u64 made, sent;
} __attribute__((packed));
static_assert(sizeof(struct mark) == SIM_PAYLOAD_LEAST, "a packet has room for it");

/* ---- order ---- */

static u32 order_slot(const struct sim *s, u64 key)
{
	u64 h = key * 0x9e3779b97f4a7c15ull;
	u32 i = (u32)(h >> 32) & (s->order_cap - 1);

	while (s->order_key[i] && s->order_key[i] != key)
		i = (i + 1) & (s->order_cap - 1);
	return i;
}

static void order_grow(struct sim *s)
{
	u32 cap = s->order_cap, *psn = s->order_psn, i, at;
	u64 *key = s->order_key;

	s->order_cap = cap ? 2 * cap : 4096;
	s->order_key = sim_alloc(s->order_cap, sizeof(*s->order_key));
	s->order_psn = sim_alloc(s->order_cap, sizeof(*s->order_psn));
	for (i = 0; i < cap; i++) {
		if (!key[i])
			continue;
		at = order_slot(s, key[i]);
		s->order_key[at] = key[i];
		s->order_psn[at] = psn[i];
	}
	free(key);
	free(psn);
}

/* Counts a packet that arrives after a later one of its source, destination and SL. */
static void order_check(struct sim *s, u32 from, u32 to, u8 sl, u32 psn)
{
	u64 key = (u64)from << 36 | (u64)to << 4 | sl | 1ull << 63;
	u32 i;

	if (2 * s->order_n >= s->order_cap && s->order_n < ORDER_MOST)
		order_grow(s);
	i = order_slot(s, key);
	if (!s->order_key[i]) {
		if (s->order_n >= ORDER_MOST)
			return;
		s->order_key[i] = key;
		s->order_n++;
	} else {
		s->st.late += wire_psn_diff(psn, s->order_psn[i]) <= 0;
	}
	s->order_psn[i] = psn;
}

/* ---- packets ---- */

/* Identifies a run by its arrivals: time, receiver, sender, packet. */
static void digest(struct sim *s, u64 v)
{
	s->st.digest = (s->st.digest ^ v) * 0x100000001b3ull;
}

int sim_traffic_receive(void *ctx, struct wire_packet *p)
{
	struct sim_host *h = ctx;
	struct sim *s = h->sim;
	struct mark m = { .from = SIM_ANY };
	u32 psn = wire_bth_psn(wire_packet_bth(p));

	if (p->len >= sizeof(m))
		memcpy(&m, p->data, sizeof(m));
	digest(s, loop_now(s->loop).ns);
	digest(s, (u64)m.from << 32 | psn);
	if (m.from < s->nhosts && m.made <= m.sent && m.sent <= loop_now(s->loop).ns && m.made >= s->up) {
		sim_stats_packet(s, p->vl, wire_packet_link_len(p) + 2, m.made, m.sent);
		s->host[m.from].delivered += p->len;
		order_check(s, m.from, (u32)(h - s->host), wire_lrh_sl(wire_packet_lrh(p)), psn);
	} else {
		s->st.arrived++; /* corrupted by a fault */
	}
	wire_packet_free(p);
	return 0;
}

static struct wire_packet *packet(struct sim_host *h, const struct sim_waiting *w)
{
	struct mark m = { (u32)(h - h->sim->host), w->made, loop_now(h->sim->loop).ns };
	u16 slid = h->port->attr.lid, dlid = h->sim->host[w->to].port->attr.lid;
	u16 pkey = h->port->attr.pkey[0] ? h->port->attr.pkey[0] : WIRE_PKEY_DEFAULT_FULL;
	struct wire_packet *p = slid && dlid ? wire_packet_alloc() : NULL;

	if (!p)
		return NULL;
	p->buf = wire_buf_alloc(w->size);
	if (!p->buf) {
		wire_packet_free(p);
		return NULL;
	}
	memcpy(p->buf->data, &m, sizeof(m));
	p->data = p->buf->data;
	p->len = w->size;
	p->bth_off = sizeof(struct wire_lrh);
	p->hdr_len = (u16)(p->bth_off + sizeof(struct wire_bth));
	wire_lrh_fill(wire_packet_lrh(p), 0, w->sl, WIRE_LNH_BTH, dlid, slid, wire_packet_link_len(p) / 4);
	wire_bth_fill(wire_packet_bth(p), WIRE_UC_SEND_ONLY, false, (4 - w->size % 4) % 4, pkey, QPN, false, h->psn);
	return p;
}

/* Sends queued packets while the port accepts them. */
void sim_traffic_ready(void *ctx)
{
	struct sim_host *h = ctx;

	while (h->waiting) {
		struct wire_packet *p = packet(h, &h->queue[h->head]);
		int err = p ? wire_port_send(h->port, p) : 0;

		if (err)
			wire_packet_free(p);
		if (err == -EAGAIN)
			return;
		h->psn = wire_psn_add(h->psn, p != NULL);
		h->head = (h->head + 1) % SIM_QUEUE;
		h->waiting--;
	}
}

/* ---- patterns ---- */

static u32 any_other(struct sim *s, u32 self)
{
	return (self + 1 + (u32)(rng_next(&s->rng) % (s->nhosts - 1))) % s->nhosts;
}

static u32 destination(struct sim *s, struct sim_flow *f, u32 self)
{
	const struct sim_traffic *t = &s->traffic;
	u32 to;

	if (f->to != SIM_ANY)
		return f->to;
	switch (t->pattern) {
	case SIM_SHIFT:
		return (self + t->shift) % s->nhosts;
	case SIM_ALL_TO_ALL: /* every host uses another destination each time */
		return (self + 1 + f->turn++ % (s->nhosts - 1)) % s->nhosts;
	case SIM_PERMUTATION:
		return t->target[self];
	case SIM_INCAST:
		return t->target[f->turn++ % t->ntargets];
	case SIM_HOTSPOT:
		to = t->target[f->turn++ % t->ntargets];
		if (to != self && (double)(rng_next(&s->rng) % 1000000) < t->percent * 10000)
			return to;
		return any_other(s, self);
	default:
		return any_other(s, self);
	}
}

/* Sends one packet; the time to the next one varies by half. */
static void on_flow(struct loop_timer *timer, struct now now)
{
	struct sim_flow *f = container_of(timer, struct sim_flow, timer);
	struct sim_host *h = f->host;
	struct sim *s = h->sim;
	struct sim_traffic *t = &s->traffic;
	u32 self = (u32)(h - s->host), to = destination(s, f, self);
	u8 sl = f->has_sl ? f->sl : t->sl[h->psn % t->nsls];

	if (f->until && now.ns >= f->until)
		return;
	if (to != self && h->port->attr.state == PORT_STATE_ACTIVE) {
		s->st.sent++;
		sim_stats_slice(s)->sent++;
		if (h->waiting == SIM_QUEUE) {
			s->st.refused++;
		} else {
			h->queue[(h->head + h->waiting++) % SIM_QUEUE] =
				(struct sim_waiting){ .made = now.ns, .to = to, .size = f->size, .sl = sl };
			if (h->waiting == 1)
				sim_traffic_ready(h);
		}
	}
	loop_timer_set(s->loop, timer, now.ns + f->interval / 2 + rng_next(&s->rng) % max(f->interval, 1ull));
}

/* ---- set-up ---- */

static const struct {
	const char *name;
	enum sim_pattern pattern;
	bool argument; /* an argument is required */
} patterns[] = {
	{ "random", SIM_RANDOM, false },
	{ "shift", SIM_SHIFT, true },
	{ "all-to-all", SIM_ALL_TO_ALL, false },
	{ "permutation", SIM_PERMUTATION, false },
	{ "incast", SIM_INCAST, false },
	{ "hotspot", SIM_HOTSPOT, true },
	{ "file", SIM_FILE, true },
};

int sim_traffic_parse(struct sim_traffic *t, const char *text)
{
	size_t len = strcspn(text, ":");
	const char *argument = text[len] ? text + len + 1 : NULL;
	char *end = NULL;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(patterns); i++)
		if (strlen(patterns[i].name) == len && !strncmp(patterns[i].name, text, len))
			break;
	if (i == ARRAY_SIZE(patterns) || (patterns[i].argument && (!argument || !*argument)))
		return -EINVAL;
	t->pattern = patterns[i].pattern;
	t->name = text;
	t->argument = argument;
	if (t->pattern == SIM_SHIFT) {
		t->shift = (u32)strtoul(argument, &end, 10);
		return *end || !t->shift ? -EINVAL : 0;
	}
	if (t->pattern == SIM_HOTSPOT) {
		t->percent = strtod(argument, &end);
		if (end == argument || *end++ != '%' || t->percent <= 0 || t->percent > 100 || (*end && *end != ':'))
			return -EINVAL;
		t->argument = *end ? end + 1 : NULL;
		return 0;
	}
	return argument && t->pattern != SIM_INCAST && t->pattern != SIM_FILE ? -EINVAL : 0;
}

int sim_traffic_sls(struct sim_traffic *t, const char *list)
{
	char *end;

	for (t->nsls = 0; t->nsls < SIM_SLS; list = end + 1) {
		unsigned long sl = strtoul(list, &end, 10);

		if (end == list || sl > 15 || (*end && *end != ','))
			return -EINVAL;
		t->sl[t->nsls++] = (u8)sl;
		if (!*end)
			return 0;
	}
	return -EINVAL;
}

/* "h1" or "h1:2"; -1: none */
static s64 host_find(const struct sim *s, const char *name)
{
	const char *port;
	const struct fabric_node *n = fabric_place_find(s->fabric, name, &port);
	u32 num = port ? (u32)strtoul(port, NULL, 10) : 0, i;

	for (i = 0; n && i < s->nhosts; i++)
		if (s->host[i].node == n && (!num || s->host[i].port->num == num))
			return i;
	return -1;
}

/* Hosts by name, separated by commas; the first host if none is named. */
static void take_targets(struct sim *s)
{
	struct sim_traffic *t = &s->traffic;
	char *list = t->argument ? strdup(t->argument) : NULL, *save, *name;
	s64 h;

	t->target = sim_alloc(s->nhosts, sizeof(u32));
	t->ntargets = !list; /* no name: the first host */
	for (name = list ? strtok_r(list, ",", &save) : NULL; name; name = strtok_r(NULL, ",", &save)) {
		h = host_find(s, name);
		if (h < 0 || t->ntargets == s->nhosts)
			sim_fail(name, "there is no such host");
		t->target[t->ntargets++] = (u32)h;
	}
	free(list);
	if (!t->ntargets)
		sim_fail(t->name, "of which host?");
}

/* Sattolo's algorithm: one cycle of all hosts, so that none sends to itself. */
static void make_permutation(struct sim *s)
{
	u32 *target = sim_alloc(s->nhosts, sizeof(u32)), i, k, swap;

	for (i = 0; i < s->nhosts; i++)
		target[i] = i;
	for (i = s->nhosts - 1; i; i--) {
		k = (u32)(rng_next(&s->rng) % i);
		swap = target[i];
		target[i] = target[k];
		target[k] = swap;
	}
	s->traffic.target = target;
}

/* Interval in ns between packets of @size for a share of the port's rate. */
static u64 load_interval(const struct sim_host *h, double load, u32 size)
{
	const struct wire_portinfo *i = &h->port->attr.info;
	enum wire_speed speed =
		i->fdr10_active ? WIRE_SPEED_FDR10 : wire_speed_active(i->speed_active, i->speed_ext_active);
	u64 kbps = wire_link_data_kbps(speed, wire_width_lanes(i->width_active));
	u32 bytes = (u32)(sizeof(struct wire_lrh) + sizeof(struct wire_bth)) + ((size + 3) & ~3u) + 6;

	return max((u64)((double)bytes * 8e6 / (double)kbps / load), 1ull);
}

static void flow_set_rate(struct sim_flow *f, double rate, double load)
{
	if (load > 0)
		f->interval = load_interval(f->host, load, f->size);
	else
		f->interval = rate > 0 ? max((u64)(1e9 / rate), 1ull) : 0;
}

/* Parses a word of a flow line after source and destination: "rate=1000", "load=0.5", "size=256",
 * "sl=1", "start=0.1", "end=2". */
static bool flow_word(struct sim_flow *f, const char *word, double *rate, double *load)
{
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : 0;
	char *end;
	double v = eq ? strtod(eq + 1, &end) : -1;

	if (!eq || end == eq + 1 || *end || v < 0 || v > 1e9)
		return false;
	if (len == 4 && !strncmp(word, "rate", len) && *rate < 0) {
		*rate = v;
	} else if (len == 4 && !strncmp(word, "load", len) && *load < 0 && v > 0 && v <= 1) {
		*load = v;
	} else if (len == 4 && !strncmp(word, "size", len) && v >= SIM_PAYLOAD_LEAST && v <= SIM_PAYLOAD_MOST) {
		f->size = (u32)v;
	} else if (len == 2 && !strncmp(word, "sl", len) && v <= 15) {
		f->sl = (u8)v;
		f->has_sl = true;
	} else if (len == 5 && !strncmp(word, "start", len)) {
		f->start = v;
	} else if (len == 3 && !strncmp(word, "end", len)) {
		f->until = (u64)(v * 1e9);
	} else {
		return false;
	}
	return true;
}

static void flow_line(struct sim *s, char *line, u32 number)
{
	struct sim_traffic *t = &s->traffic;
	double rate = -1, load = -1; /* not given */
	char what[300], *save, *word = strtok_r(line, " \t\r\n", &save);
	struct sim_flow *f;
	s64 h[2];
	u32 i;

	if (!word || *word == '#')
		return;
	for (i = 0; i < 2; i++, word = strtok_r(NULL, " \t\r\n", &save)) {
		h[i] = word ? host_find(s, word) : -1;
		snprintf(what, sizeof(what), "%.150s:%u: %.60s", t->argument, number,
			 word ? word : "a host is missing");
		if (h[i] < 0)
			sim_fail(what, word ? "there is no such host" : "");
	}
	if (!(t->nflows & (t->nflows - 1))) {
		f = sim_alloc(t->nflows ? 2 * t->nflows : 1, sizeof(*f));
		if (t->nflows)
			memcpy(f, t->flow, t->nflows * sizeof(*f));
		free(t->flow);
		t->flow = f;
	}
	f = &t->flow[t->nflows++];
	*f = (struct sim_flow){ .host = &s->host[h[0]], .to = (u32)h[1], .size = t->size };
	for (; word; word = strtok_r(NULL, " \t\r\n", &save)) {
		snprintf(what, sizeof(what), "%.150s:%u: %.60s", t->argument, number, word);
		if (!flow_word(f, word, &rate, &load))
			sim_fail(what,
				 "expected rate=, load= up to 1, size= from 20 to 4096, sl= to 15, start= or end=");
	}
	if (rate >= 0 && load >= 0) {
		snprintf(what, sizeof(what), "%.150s:%u", t->argument, number);
		sim_fail(what, "rate= and load= exclude each other");
	}
	if (rate >= 0 || load >= 0)
		flow_set_rate(f, rate, load);
	else
		flow_set_rate(f, t->rate, t->load);
}

static void read_flows(struct sim *s)
{
	FILE *in = fopen(s->traffic.argument, "re");
	char line[512];
	u32 number = 0;

	if (!in)
		sim_fail(s->traffic.argument, strerror(errno));
	while (fgets(line, sizeof(line), in))
		flow_line(s, line, ++number);
	fclose(in);
	if (!s->traffic.nflows)
		sim_fail(s->traffic.argument, "no flows");
}

static bool is_target(const struct sim_traffic *t, u32 host)
{
	u32 i;

	for (i = 0; i < t->ntargets; i++)
		if (t->target[i] == host)
			return true;
	return false;
}

void sim_traffic_create(struct sim *s)
{
	struct sim_traffic *t = &s->traffic;
	u32 i;

	if (t->pattern == SIM_INCAST || t->pattern == SIM_HOTSPOT)
		take_targets(s);
	if (t->pattern == SIM_INCAST && t->ntargets == s->nhosts)
		sim_fail(t->name, "no host is left to send");
	if (t->pattern == SIM_PERMUTATION)
		make_permutation(s);
	if (t->pattern == SIM_SHIFT && t->shift % s->nhosts == 0)
		sim_fail(t->name, "each host would send to itself");
	for (i = 0; i < s->nhosts; i++)
		s->host[i].queue = sim_alloc(SIM_QUEUE, sizeof(*s->host[i].queue));
	if (t->pattern == SIM_FILE) {
		read_flows(s);
		return;
	}
	t->flow = sim_alloc(s->nhosts, sizeof(*t->flow));
	for (i = 0; i < s->nhosts; i++) {
		if (t->pattern == SIM_INCAST && is_target(t, i))
			continue;
		t->flow[t->nflows] = (struct sim_flow){ .host = &s->host[i], .to = SIM_ANY, .size = t->size };
		flow_set_rate(&t->flow[t->nflows++], t->rate, t->load);
	}
}

void sim_traffic_start(struct sim *s)
{
	struct sim_traffic *t = &s->traffic;
	u32 i;

	for (i = 0; i < t->nflows; i++) {
		struct sim_flow *f = &t->flow[i];

		if (!f->interval)
			continue;
		f->timer.fn = on_flow;
		f->until = f->until ? s->up + f->until : 0;
		loop_timer_set(s->loop, &f->timer, s->up + (u64)(f->start * 1e9) + rng_next(&s->rng) % f->interval);
	}
}

void sim_traffic_fini(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->traffic.nflows; i++)
		loop_timer_cancel(&s->traffic.flow[i].timer);
	for (i = 0; i < s->nhosts; i++)
		free(s->host[i].queue);
	free(s->traffic.flow);
	free(s->traffic.target);
	free(s->order_key);
	free(s->order_psn);
}
