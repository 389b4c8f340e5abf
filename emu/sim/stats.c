// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Statistics of muslin-sim: packets, time slices, and recovery time of the subnet after failures. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/sim/sim.h"
#include "emu/wire/smp.h"

/* ---- packets ---- */

struct sim_slice *sim_stats_slice(struct sim *s)
{
	u64 span = s->end - s->up, at = loop_now(s->loop).ns - s->up;

	return &s->st.slice[span && at < span ? at * SIM_SLICES / span : SIM_SLICES - 1];
}

void sim_stats_packet(struct sim *s, u8 vl, u32 bytes, u64 made, u64 sent)
{
	u64 now = loop_now(s->loop).ns;
	struct sim_slice *slice = sim_stats_slice(s);

	s->st.arrived++;
	s->st.bytes += bytes;
	s->st.last_arrival = now;
	sim_times_add(&s->st.latency, now - made);
	sim_times_add(&s->st.network, now - sent);
	sim_times_add(&s->st.by_vl[vl % SIM_SLS], now - made);
	s->st.vl_bytes[vl % SIM_SLS] += bytes;
	slice->arrived++;
	slice->bytes += bytes;
	slice->latency += now - made;
	slice->slowest = max(slice->slowest, now - made);
}

/* ---- ports ---- */

u64 sim_stats_total(const struct sim *s, enum fabric_counter c)
{
	u64 sum = 0;
	u32 i, k;

	for (i = 0; i < fabric_node_count(s->fabric); i++)
		for (k = 1; k <= fabric_node_ports(fabric_node(s->fabric, i)); k++)
			sum += fabric_port_counter(fabric_node_port(fabric_node(s->fabric, i), k), c);
	return sum;
}

u64 sim_stats_packets(const struct fabric_node *n)
{
	u64 sum = 0;
	u32 k;

	for (k = 1; k <= fabric_node_ports(n); k++)
		sum += fabric_port_counter(fabric_node_port(n, k), FABRIC_CTR_XMIT_PKTS);
	return sum;
}

void sim_stats_start(struct sim *s)
{
	u32 i, k, n = 0;

	for (i = 0; i < fabric_node_count(s->fabric); i++)
		n += fabric_node_ports(fabric_node(s->fabric, i));
	s->st.words = sim_alloc(n, sizeof(u64));
	s->st.packets = sim_alloc(fabric_node_count(s->fabric), sizeof(u64));
	for (i = 0; i < fabric_node_count(s->fabric); i++)
		s->st.packets[i] = sim_stats_packets(fabric_node(s->fabric, i));
	for (i = 0, n = 0; i < fabric_node_count(s->fabric); i++)
		for (k = 1; k <= fabric_node_ports(fabric_node(s->fabric, i)); k++)
			s->st.words[n++] = fabric_port_counter(fabric_node_port(fabric_node(s->fabric, i), k),
							       FABRIC_CTR_XMIT_DATA);
}

double sim_stats_utilisation(const struct sim *s, const struct fabric_port *p, u64 words_before)
{
	u64 words = fabric_port_counter(p, FABRIC_CTR_XMIT_DATA) - words_before;
	struct fabric_port_info info;
	double bits;

	fabric_port_info(p, &info);
	bits = (double)wire_link_data_kbps(info.speed, info.lanes) * 1000 * (double)(s->end - s->up) / 1e9;
	return bits > 0 ? (double)words * 32 / bits : 0;
}

/* ---- failures ---- */

static double seconds_since_up(const struct sim *s)
{
	return (double)(loop_now(s->loop).ns - s->up) / 1e9;
}

static void failure_begin(struct sim *s, const struct fabric_port *p, bool up)
{
	struct fabric_port_info info;
	struct sim_failure *f;

	if (s->st.nfailures == SIM_FAILURES) {
		s->st.unlisted++;
		return;
	}
	if (!s->st.failure)
		s->st.failure = sim_alloc(SIM_FAILURES, sizeof(*f));
	fabric_port_info(p, &info);
	f = &s->st.failure[s->st.nfailures++];
	*f = (struct sim_failure){ .at = seconds_since_up(s), .reconverged = -1, .up = up };
	snprintf(f->what, sizeof(f->what), "%.60s:%u %s", fabric_node_name(fabric_port_node(p)), info.num,
		 up ? "up" : "down");
	s->st.discards = sim_stats_total(s, FABRIC_CTR_XMIT_DISCARDS);
	s->st.failing = true;
}

/* The list doubles at each power of two. */
static void failure_add(struct sim_failure *f, const struct fabric_port *p)
{
	u32 n = f->ports++;

	if (n >= SIM_FAILURE_PORTS)
		return;
	if (!(n & (n - 1))) {
		const struct fabric_port **more = realloc(f->port, (n ? 2 * n : 1) * sizeof(*more));

		if (!more)
			sim_fail("out of memory", "");
		f->port = more;
	}
	f->port[n] = p;
}

/* Changes of ports until the subnet is up again are one failure. Ports that the manager sets to
 * Armed or Active are not counted. */
void sim_stats_link(void *ctx, const struct fabric_event *ev)
{
	struct sim *s = ctx;
	struct fabric_port_info info;

	if (ev->type != FABRIC_EVENT_PORT || !s->up)
		return;
	fabric_port_info(ev->port, &info);
	if (info.state != PORT_STATE_DOWN && info.state != PORT_STATE_INIT)
		return;
	if (!s->st.failing)
		failure_begin(s, ev->port, info.state == PORT_STATE_INIT);
	if (s->st.failing)
		failure_add(&s->st.failure[s->st.nfailures - 1], ev->port);
}

/* The end of the last stage is that of the subnet's bring-up. */
static void stats_stage(struct sim *s)
{
	struct sim_stage *stage = &s->st.stage[min(s->st.nstages, (u32)SIM_STAGES)];
	struct sm_status st;

	sm_status(sm_mad_manager(s->manager), &st);
	*stage = (struct sim_stage){
		.stage = st.stage, .at = loop_now(s->loop).ns, .smps = st.smps, .cpu = (double)clock() / CLOCKS_PER_SEC
	};
}

void sim_stats_sm(void *ctx, enum sm_event event)
{
	struct sim *s = ctx;
	struct sim_failure *f = s->st.nfailures ? &s->st.failure[s->st.nfailures - 1] : NULL;

	if (event == SM_EVENT_STAGE && !s->up) {
		stats_stage(s);
		s->st.nstages = min(s->st.nstages + 1, (u32)SIM_STAGES);
	}
	if (event != SM_EVENT_SUBNET_UP)
		return;
	if (!s->up) {
		stats_stage(s);
		s->up = loop_now(s->loop).ns;
		s->end = s->up + (u64)(s->seconds * 1e9);
		return;
	}
	if (!s->st.failing)
		return;
	s->st.failing = false;
	f->reconverged = seconds_since_up(s) - f->at;
	f->discarded = sim_stats_total(s, FABRIC_CTR_XMIT_DISCARDS) - s->st.discards;
}

void sim_stats_fini(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->st.nfailures; i++)
		free(s->st.failure[i].port);
	free(s->st.failure);
	free(s->st.words);
	free(s->st.packets);
}
