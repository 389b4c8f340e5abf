/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixture of fabric's tests, bench and fuzz targets: a fabric with recording users, and SMPs that bring it up. */
#ifndef MUSLIN_FABRIC_FIXTURE_H
#define MUSLIN_FABRIC_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/row.h"
#include "emu/wire/opcode.h"
#include "emu/wire/pma.h"
#include "fabric/fabric_internal.h"

struct test_host {
	struct wire_port *port;
	bool stalled;
	u64 packets, bytes, mads, ready, events;
	u32 last_psn, order_errors;
	u8 last_vl;
	struct wire_mad last;
	struct wire_mad trap; /* the last received */
	u64 traps;
};

static struct loop *test_loop;
static struct fabric *test_fabric;

static inline int test_receive(void *ctx, struct wire_packet *p)
{
	struct test_host *h = ctx;
	u32 psn = wire_bth_psn(wire_packet_bth(p));

	if (h->stalled)
		return -EAGAIN;
	h->packets++;
	h->bytes += p->len;
	h->order_errors += h->packets > 1 && wire_psn_diff(psn, h->last_psn) <= 0;
	h->last_psn = psn;
	h->last_vl = p->vl;
	wire_packet_free(p);
	return 0;
}

static inline int test_receive_mad(void *ctx, struct wire_packet *p)
{
	struct test_host *h = ctx;

	if (p->len == MAD_SIZE) {
		struct wire_mad *to = wire_get(p->data, MAD_METHOD) == MAD_METHOD_TRAP ? &h->trap : &h->last;

		memcpy(to->raw, p->data, MAD_SIZE);
		h->mads += to == &h->last;
		h->traps += to == &h->trap;
	}
	wire_packet_free(p);
	return 0;
}

static inline void test_ready(void *ctx)
{
	((struct test_host *)ctx)->ready++;
}

static inline void test_event(void *ctx, enum wire_port_event e)
{
	((struct test_host *)ctx)->events |= BIT_ULL(e);
}

static inline void test_attach(struct test_host *h, const char *name)
{
	struct fabric_node *n = fabric_node_find(test_fabric, name);

	memset(h, 0, sizeof(*h));
	h->port = fabric_ca_port(n, 1);
	h->port->data =
		(struct wire_port_user){ .ctx = h, .receive = test_receive, .ready = test_ready, .event = test_event };
	h->port->mad = (struct wire_port_user){ .ctx = h, .receive = test_receive_mad };
}

static inline void test_start(const char *text)
{
	char err[200];
	struct fabric_topology *t = fabric_topology_parse(text, strlen(text), "test", err, sizeof(err));

	if (!t) {
		printf("%s\n", err);
		exit(1);
	}
	test_loop = loop_create_virtual();
	test_fabric = fabric_create(test_loop, t, 1);
	fabric_topology_destroy(t);
}

static inline void test_stop(void)
{
	fabric_destroy(test_fabric);
	loop_destroy(test_loop);
}

static inline void test_run(u64 ns)
{
	loop_run_idle(test_loop, loop_now(test_loop).ns + ns);
}

static inline void test_send_mad(struct test_host *h, const u8 *mad, u16 dlid, u32 qpn)
{
	struct wire_packet *p = fabric_mad_packet(dlid == WIRE_LID_PERMISSIVE ? dlid : h->port->attr.lid, dlid, 0, qpn);

	memcpy(p->buf->data, mad, MAD_SIZE);
	if (wire_port_send(h->port, p))
		wire_packet_free(p);
	test_run(0);
}

static inline void test_smp_init(struct wire_mad *m, u8 class, u8 method, u16 attr, u32 mod)
{
	memset(m, 0, sizeof(*m));
	wire_set(m->raw, MAD_BASE_VERSION, 1);
	wire_set(m->raw, MAD_CLASS, class);
	wire_set(m->raw, MAD_CLASS_VERSION, 1);
	wire_set(m->raw, MAD_METHOD, method);
	wire_set(m->raw, MAD_TID, 0x1234);
	wire_set(m->raw, MAD_ATTR_ID, attr);
	wire_set(m->raw, MAD_ATTR_MOD, mod);
	wire_set(m->raw, SMP_DR_SLID, WIRE_LID_PERMISSIVE);
	wire_set(m->raw, SMP_DR_DLID, WIRE_LID_PERMISSIVE);
}

/*
 * Sends a directed-route SMP along @path ("\1\3": hops), with an M_Key; @data of 64 bytes or NULL. Returns the status,
 * or -1 without a response.
 */
static inline int test_smp_key(struct test_host *h, const char *path, u8 method, u16 attr, u32 mod, u64 key,
			       const u8 *data)
{
	u8 hops = (u8)strlen(path);
	u64 before = h->mads;
	struct wire_mad m;

	test_smp_init(&m, MAD_CLASS_SUBN_DIRECTED, method, attr, mod);
	wire_set(m.raw, SMP_MKEY, key);
	wire_set(m.raw, SMP_HOP_CNT, hops);
	memcpy(m.raw + SMP_INITIAL_PATH + 1, path, hops);
	if (data)
		memcpy(m.raw + SMP_DATA, data, SMP_DATA_SIZE);
	test_send_mad(h, m.raw, WIRE_LID_PERMISSIVE, MAD_QPN_SMI);
	return h->mads == before ? -1 : (int)wire_get(h->last.raw, SMP_DR_STATUS);
}

static inline int test_smp(struct test_host *h, const char *path, u8 method, u16 attr, u32 mod, const u8 *data)
{
	return test_smp_key(h, path, method, attr, mod, 0, data);
}

static inline int test_get(struct test_host *h, const char *path, u16 attr, u32 mod)
{
	return test_smp(h, path, MAD_METHOD_GET, attr, mod, NULL);
}

/* Reads PortInfo, changes the LIDs and the state, and writes it back. */
static inline int test_port_set(struct test_host *h, const char *path, u32 num, u16 lid, u8 state)
{
	u8 d[SMP_DATA_SIZE];
	int rc = test_get(h, path, SMP_ATTR_PORT_INFO, num);

	if (rc)
		return rc;
	memcpy(d, h->last.raw + SMP_DATA, sizeof(d));
	if (lid) {
		wire_set(d, PORTINFO_LID, lid);
		wire_set(d, PORTINFO_SM_LID, 1);
	}
	wire_set(d, PORTINFO_STATE, state);
	wire_set(d, PORTINFO_PHYS_STATE, 0);
	return test_smp(h, path, MAD_METHOD_SET, SMP_ATTR_PORT_INFO, num, d);
}

/* One leaf with hosts h1..hN on ports 1..N: LID n for host n, 100 for the switch; all Active. */
static inline void test_bring_up(struct test_host *h1, u32 hosts)
{
	u8 d[SMP_DATA_SIZE];
	char path[3] = { 1, 0, 0 };
	u32 i, s;

	test_port_set(h1, "\1", 0, 100, 0);
	memset(d, 0, sizeof(d));
	wire_set(d, SWITCHINFO_LFT_TOP, 127);
	wire_set(d, SWITCHINFO_LIFE_TIME, 18);
	test_smp(h1, "\1", MAD_METHOD_SET, SMP_ATTR_SWITCH_INFO, 0, d);
	memset(d, LFT_PORT_NONE, sizeof(d));
	for (i = 1; i <= hosts; i++)
		d[i] = (u8)i;
	test_smp(h1, "\1", MAD_METHOD_SET, SMP_ATTR_LFT, 0, d);
	memset(d, LFT_PORT_NONE, sizeof(d));
	d[100 - 64] = 0;
	test_smp(h1, "\1", MAD_METHOD_SET, SMP_ATTR_LFT, 1, d);
	for (s = PORT_STATE_ARMED; s <= PORT_STATE_ACTIVE; s++)
		for (i = 1; i <= hosts; i++) {
			path[1] = (char)i;
			test_port_set(h1, i == 1 ? "" : path, i == 1 ? 1 : 0, (u16)i, (u8)s);
			test_port_set(h1, "\1", i, 0, (u8)s);
		}
}

/* h[1] to h[4] on one leaf. */
static inline void test_start_leaf(struct test_host h[5])
{
	char name[4] = "h1";
	u32 i;

	test_start("leafs 1 hosts 4 vls 4 mtu 2048\n");
	for (i = 1; i <= 4; i++) {
		name[1] = (char)('0' + i);
		test_attach(&h[i], name);
	}
	test_bring_up(&h[1], 4);
}

/* A data packet of @len bytes. */
static inline struct wire_packet *test_packet(u16 slid, u16 dlid, u8 sl, u32 len, u32 psn, u16 pkey)
{
	struct wire_packet *p = wire_packet_alloc();

	p->bth_off = sizeof(struct wire_lrh);
	p->hdr_len = p->bth_off + sizeof(struct wire_bth);
	if (len) {
		p->buf = wire_buf_alloc(len);
		p->data = p->buf->data;
		p->len = len;
	}
	wire_lrh_fill(wire_packet_lrh(p), 0, sl, WIRE_LNH_BTH, dlid, slid, wire_packet_link_len(p) / 4);
	wire_bth_fill(wire_packet_bth(p), WIRE_UC_SEND_ONLY, false, 0, pkey, 17, false, psn);
	return p;
}

static inline int test_send(struct test_host *h, u16 dlid, u8 sl, u32 len, u32 psn)
{
	struct wire_packet *p = test_packet(h->port->attr.lid, dlid, sl, len, psn, 0xffff);
	int rc = wire_port_send(h->port, p);

	if (rc)
		wire_packet_free(p);
	return rc;
}

static inline u64 test_counter(const char *node, u32 port, enum fabric_counter c)
{
	return fabric_port_counter(fabric_node_port(fabric_node_find(test_fabric, node), port), c);
}

#endif
