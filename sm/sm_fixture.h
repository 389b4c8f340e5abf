/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fixture of tests: a subnet of a few nodes that answer SMPs, with faults to test invalid and missing responses. Two
 * leafs (switches 0, 1) and two spines (2, 3); CAs h0 and h1 at the first leaf, h2 and h3 at the second.
 */
#ifndef MUSLIN_SM_FIXTURE_H
#define MUSLIN_SM_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sm/sa/sa.h"
#include "sm/sm_internal.h"

#define FAKE_NODES   8
#define FAKE_PORTS   4
#define FAKE_CA(i)   (4 + (i))
#define FAKE_GUID(i) (0x1000u + (i)*0x10u)
#define FAKE_MAD_MAX 65536

struct fake_node {
	u8 type, nports;
	struct {
		int node; /* -1: no cable */
		u8 port;
	} peer[FAKE_PORTS + 1];
	u8 info[FAKE_PORTS + 1][PORTINFO_SIZE];
	u8 swinfo[SWITCHINFO_SIZE];
	u8 lft[256];
	u16 mft[64];
	u16 pkey[FAKE_PORTS + 1][PKEYTABLE_PER_BLOCK];
	u8 vlarb[VLARB_HIGH_HI + 1][VLARB_SIZE]; /* of a CA's port */
	u32 sets;
};

struct fake_smp {
	struct list link;
	u8 mad[MAD_SIZE];
	void *cookie;
	bool lost;
};

struct fake {
	struct loop *loop;
	struct sm *sm;
	struct fake_node node[FAKE_NODES];
	struct list queue;
	struct loop_task work;
	bool is_sm;
	bool (*lose)(struct fake *f, int node, const u8 *mad);
	void (*alter)(struct fake *f, int node, u8 *mad); /* a response before the manager receives it */
	/* unsolicited MADs of the manager: responses, reports */
	u8 sent[FAKE_MAD_MAX];
	u32 sent_len, sent_retries, nsent;
	u32 reports, events[SM_EVENT_STAGE + 1];
	u8 rival[SMINFO_SIZE]; /* SMInfo of the manager on the third CA, after fake_rival() */
	u32 handovers;
};

/* ---- the subnet ---- */

static inline void fake_cable(struct fake *f, int a, u8 ap, int b, u8 bp)
{
	f->node[a].peer[ap].node = b;
	f->node[a].peer[ap].port = bp;
	f->node[b].peer[bp].node = a;
	f->node[b].peer[bp].port = ap;
	wire_set(f->node[a].info[ap], PORTINFO_STATE, PORT_STATE_INIT);
	wire_set(f->node[b].info[bp], PORTINFO_STATE, PORT_STATE_INIT);
}

static inline void fake_uncable(struct fake *f, int a, u8 ap)
{
	int b = f->node[a].peer[ap].node;
	u8 bp = f->node[a].peer[ap].port;

	f->node[a].peer[ap].node = f->node[b].peer[bp].node = -1;
	wire_set(f->node[a].info[ap], PORTINFO_STATE, PORT_STATE_DOWN);
	wire_set(f->node[b].info[bp], PORTINFO_STATE, PORT_STATE_DOWN);
	wire_set(f->node[a].swinfo, SWITCHINFO_PORT_STATE_CHANGE, 1);
	wire_set(f->node[b].swinfo, SWITCHINFO_PORT_STATE_CHANGE, 1);
}

static inline void fake_node_init(struct fake_node *n, int i)
{
	u32 p;

	n->type = i < 4 ? NODE_TYPE_SWITCH : NODE_TYPE_CA;
	n->nports = i < 4 ? FAKE_PORTS : 1;
	wire_set(n->swinfo, SWITCHINFO_LFT_CAP, 0xc000);
	wire_set(n->swinfo, SWITCHINFO_MFT_CAP, 32);
	wire_set(n->swinfo, SWITCHINFO_PART_ENFORCE_CAP, 32);
	memset(n->lft, 255, sizeof(n->lft));
	for (p = 0; p <= FAKE_PORTS; p++) {
		n->peer[p].node = -1;
		n->pkey[p][0] = WIRE_PKEY_DEFAULT_FULL;
		wire_set(n->info[p], PORTINFO_STATE, p || i >= 4 ? PORT_STATE_DOWN : PORT_STATE_ACTIVE);
		wire_set(n->info[p], PORTINFO_MTU_CAP, WIRE_MTU_4096);
		wire_set(n->info[p], PORTINFO_VL_CAP, 4);
		wire_set(n->info[p], PORTINFO_GUID_CAP, 8);
		wire_set(n->info[p], PORTINFO_VL_ARB_LOW_CAP, 64);
		wire_set(n->info[p], PORTINFO_VL_ARB_HIGH_CAP, 32);
		wire_set(n->info[p], PORTINFO_WIDTH_ACTIVE, LINK_WIDTH_4X);
		wire_set(n->info[p], PORTINFO_SPEED_ACTIVE, LINK_SPEED_QDR);
		wire_set(n->info[p], PORTINFO_CAP_MASK, PORT_CAP_CLIENT_REREGISTER);
	}
}

/* ---- SMPs ---- */

/* The node at the end of the path, and the port of entry; -1: a port without a cable. */
static inline int fake_walk(const struct fake *f, const u8 *mad, u8 *entry)
{
	u8 hops = wire_get(mad, SMP_HOP_CNT), h, out;
	int at = FAKE_CA(0);

	*entry = 1;
	for (h = 1; h <= hops; h++) {
		out = mad[SMP_INITIAL_PATH + h];
		if (out > FAKE_PORTS || f->node[at].peer[out].node < 0)
			return -1;
		*entry = f->node[at].peer[out].port;
		at = f->node[at].peer[out].node;
	}
	return at;
}

static inline void fake_node_info(const struct fake_node *n, int i, u8 entry, u8 *d)
{
	wire_set(d, NODEINFO_BASE_VERSION, 1);
	wire_set(d, NODEINFO_CLASS_VERSION, 1);
	wire_set(d, NODEINFO_NODE_TYPE, n->type);
	wire_set(d, NODEINFO_NUM_PORTS, n->nports);
	wire_set(d, NODEINFO_SYSTEM_GUID, FAKE_GUID(i));
	wire_set(d, NODEINFO_NODE_GUID, FAKE_GUID(i));
	wire_set(d, NODEINFO_PORT_GUID, FAKE_GUID(i) + (n->type == NODE_TYPE_CA));
	wire_set(d, NODEINFO_PARTITION_CAP, 32);
	wire_set(d, NODEINFO_LOCAL_PORT, entry);
}

/* Set(PortInfo) changes only what a real port would: the state by its rules, and no read-only fields. */
static inline void fake_set_port(struct fake_node *n, u8 port, const u8 *d)
{
	u8 was = wire_get(n->info[port], PORTINFO_STATE), want = wire_get(d, PORTINFO_STATE);

	memcpy(n->info[port], d, PORTINFO_SIZE);
	wire_set(n->info[port], PORTINFO_STATE, want == PORT_STATE_NOP ? was : want);
}

static inline void fake_blocks(struct fake_node *n, u16 attr, u32 mod, u8 *d, bool set)
{
	u32 i, block = mod & 0xffff;

	if (attr == SMP_ATTR_LFT && set && block < 4)
		memcpy(n->lft + block * LFT_PER_BLOCK, d, LFT_PER_BLOCK);
	for (i = 0; i < MFT_PER_BLOCK && attr == SMP_ATTR_MFT && set && (mod & MFT_BLOCK_MASK) < 2; i++)
		n->mft[(mod & MFT_BLOCK_MASK) * MFT_PER_BLOCK + i] = wire_get(d, MFT_PORT_MASK(i));
	if (attr == SMP_ATTR_VL_ARB && set && n->type == NODE_TYPE_CA && mod >> 16 <= VLARB_HIGH_HI)
		memcpy(n->vlarb[mod >> 16], d, VLARB_SIZE);
	for (i = 0; i < PKEYTABLE_PER_BLOCK && attr == SMP_ATTR_PKEY_TABLE && set && !block && mod >> 16 <= FAKE_PORTS;
	     i++)
		n->pkey[n->type == NODE_TYPE_CA ? 1 : mod >> 16][i] = wire_get(d, PKEYTABLE_PKEY(i));
}

/* A standby manager on the third CA, which accepts SubnSet(SMInfo). */
static inline void fake_rival(struct fake *f, u8 priority)
{
	struct fake_node *n = &f->node[FAKE_CA(2)];

	wire_set(n->info[1], PORTINFO_CAP_MASK, wire_get(n->info[1], PORTINFO_CAP_MASK) | PORT_CAP_SM);
	wire_set(f->rival, SMINFO_GUID, FAKE_GUID(FAKE_CA(2)) + 1);
	wire_set(f->rival, SMINFO_PRIORITY, priority);
	wire_set(f->rival, SMINFO_STATE, SM_STATE_STANDBY);
}

static inline u16 fake_attribute(struct fake *f, int at, u8 entry, u16 attr, u32 mod, bool set, u8 *d)
{
	struct fake_node *n = &f->node[at];
	u8 port = mod ? mod & 0xff : n->type == NODE_TYPE_CA ? entry : 0;

	n->sets += set;
	switch (attr) {
	case SMP_ATTR_NODE_INFO:
		fake_node_info(n, at, entry, d);
		return 0;
	case SMP_ATTR_NODE_DESC:
		snprintf((char *)d, NODEDESC_SIZE, at < 4 ? "s%d" : "h%d", at % 4);
		return 0;
	case SMP_ATTR_SWITCH_INFO:
		if (set && wire_get(d, SWITCHINFO_PORT_STATE_CHANGE))
			wire_set(d, SWITCHINFO_PORT_STATE_CHANGE, 0);
		if (set)
			memcpy(n->swinfo, d, SWITCHINFO_SIZE);
		memcpy(d, n->swinfo, SWITCHINFO_SIZE);
		return 0;
	case SMP_ATTR_SM_INFO:
		f->handovers += set && mod == SMINFO_MOD_HANDOVER;
		memcpy(d, f->rival, SMINFO_SIZE);
		return 0;
	case SMP_ATTR_PORT_INFO:
		if (port > n->nports)
			return MAD_STATUS_BAD_VALUE;
		if (set)
			fake_set_port(n, port, d);
		memcpy(d, n->info[port], PORTINFO_SIZE);
		return 0;
	default:
		fake_blocks(n, attr, mod, d, set);
		return 0;
	}
}

static inline void fake_work(struct loop_task *t, struct now now)
{
	struct fake *f = container_of(t, struct fake, work);
	static const struct mad_addr from = { .lid = 0xffff };
	struct fake_smp *s;
	bool set;
	u16 status;
	u8 entry;
	int at;

	while (!list_empty(&f->queue)) {
		s = list_first(&f->queue, struct fake_smp, link);
		list_del(&s->link);
		at = fake_walk(f, s->mad, &entry);
		if (at < 0 || (f->lose && f->lose(f, at, s->mad))) {
			sm_sent(f->sm, -ETIMEDOUT, s->cookie);
			free(s);
			continue;
		}
		set = wire_get(s->mad, MAD_METHOD) == MAD_METHOD_SET;
		status = fake_attribute(f, at, entry, wire_get(s->mad, MAD_ATTR_ID),
					(u32)wire_get(s->mad, MAD_ATTR_MOD), set, s->mad + SMP_DATA);
		wire_set(s->mad, MAD_METHOD, MAD_METHOD_GET_RESP);
		wire_set(s->mad, MAD_STATUS, status | 0x8000);
		if (f->alter)
			f->alter(f, at, s->mad);
		sm_receive(f->sm, s->mad, MAD_SIZE, &from, s->cookie);
		free(s);
	}
}

static inline int fake_send(void *arg, const u8 *mad, u32 len, const struct mad_addr *to, u32 timeout_ms, u32 retries,
			    void *cookie)
{
	struct fake *f = arg;
	struct fake_smp *s;

	if (!cookie || wire_mad_get_class(mad) == MAD_CLASS_SUBN_ADM) {
		memcpy(f->sent, mad, min(len, (u32)FAKE_MAD_MAX));
		f->sent_len = len;
		f->sent_retries = retries;
		f->nsent++;
		f->reports += wire_mad_get_method(mad) == MAD_METHOD_REPORT;
		return cookie ? -ENETDOWN : 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	memcpy(s->mad, mad, MAD_SIZE);
	s->cookie = cookie;
	list_add(&f->queue, &s->link);
	loop_task_queue(f->loop, &f->work);
	return 0;
}

static inline void fake_set_is_sm(void *arg, bool on)
{
	((struct fake *)arg)->is_sm = on;
}

static inline u64 fake_port_guid(void *arg)
{
	return FAKE_GUID(FAKE_CA(0)) + 1;
}

static inline void fake_event(void *arg, enum sm_event e)
{
	((struct fake *)arg)->events[e]++;
}

static const struct sm_transport_ops fake_ops = { .send = fake_send,
						  .set_is_sm = fake_set_is_sm,
						  .port_guid = fake_port_guid };

/* @cfg may be NULL. Starts the manager and runs it for a second. */
static inline void fake_open(struct fake *f, const struct sm_config *cfg)
{
	struct sm_config c = cfg ? *cfg : (struct sm_config){ 0 };
	char err[256];
	int i;

	memset(f, 0, sizeof(*f));
	log_level = LOG_ERROR;
	f->loop = loop_create_virtual();
	list_init(&f->queue);
	loop_task_init(&f->work, fake_work);
	for (i = 0; i < FAKE_NODES; i++)
		fake_node_init(&f->node[i], i);
	for (i = 0; i < 4; i++) {
		fake_cable(f, FAKE_CA(i), 1, i / 2, (u8)(i % 2 + 1));
		fake_cable(f, i / 2, (u8)(3 + i % 2), 2 + i % 2, (u8)(i / 2 + 1));
	}
	c.sa = &sm_sa;
	c.event = fake_event;
	c.ctx = f;
	f->sm = sm_create(f->loop, &fake_ops, f, &c, err, sizeof(err));
	if (!f->sm) {
		printf("FAIL %s\n", err);
		exit(1);
	}
	sm_start(f->sm);
	loop_run_idle(f->loop, loop_now(f->loop).ns + NSEC_PER_SEC);
}

static inline void fake_run(struct fake *f, u32 ms)
{
	loop_run_idle(f->loop, loop_now(f->loop).ns + ms * NSEC_PER_MSEC);
}

static inline void fake_close(struct fake *f)
{
	struct fake_smp *s, *tmp;

	sm_destroy(f->sm);
	loop_task_cancel(&f->work);
	list_for_each_safe (s, tmp, &f->queue, link)
		free(s);
	loop_destroy(f->loop);
}

static inline u16 fake_lid(const struct fake *f, int node)
{
	return (u16)wire_get(f->node[node].info[node < 4 ? 0 : 1], PORTINFO_LID);
}

#endif
