/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two connected CA ports for tests: packets pass through a queue, in which a row may drop, delay or change them. */
#ifndef MUSLIN_MAD_FIXTURE_H
#define MUSLIN_MAD_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/mad/mad_internal.h"
#include "emu/wire/hdr.h"

struct end {
	struct wire_port port;
	struct end *peer;
	struct list queue; /* in flight to the peer */
	struct loop_task task;
	struct loop *loop;
	u32 sent;
	bool no_credits;
	struct wire_port_violation violation;
	u32 violations;
	bool (*drop)(struct end *e, const struct wire_packet *p); /* true: lost */
	u32 drop_arg;
	u32 swap_at; /* the nth packet is exchanged with the next one */
};

static inline const u8 *mad_of(const struct wire_packet *p)
{
	return p->data;
}

static int end_send(struct wire_port *port, struct wire_packet *p)
{
	struct end *e = container_of(port, struct end, port);

	if (e->no_credits)
		return -EAGAIN;
	e->sent++;
	if (e->drop && e->drop(e, p)) {
		wire_packet_free(p);
		return 0;
	}
	list_add(e->swap_at && e->sent == e->swap_at + 1 && !list_empty(&e->queue) ? e->queue.prev : &e->queue,
		 &p->link);
	loop_task_queue(e->loop, &e->task);
	return 0;
}

static void end_deliver(struct loop_task *t, struct now now)
{
	struct end *e = container_of(t, struct end, task);
	struct wire_packet *p;

	while (!list_empty(&e->queue)) {
		p = list_first(&e->queue, struct wire_packet, link);
		list_del(&p->link);
		if (e->peer->port.mad.receive)
			e->peer->port.mad.receive(e->peer->port.mad.ctx, p);
		else
			wire_packet_free(p);
	}
}

static void end_violation(struct wire_port *port, const struct wire_port_violation *v)
{
	struct end *e = container_of(port, struct end, port);

	e->violation = *v;
	e->violations++;
}

static void end_set_cap(struct wire_port *port, u32 set, u32 clear)
{
	port->attr.cap_mask = (port->attr.cap_mask | set) & ~clear;
}

static const struct wire_port_ops end_ops = { .send = end_send, .set_cap = end_set_cap, .violation = end_violation };

static void end_init(struct end *e, struct loop *loop, struct end *peer, u16 lid)
{
	memset(e, 0, sizeof(*e));
	e->port.ops = &end_ops;
	e->port.num = 1;
	e->port.attr.state = 4;
	e->port.attr.lid = lid;
	e->port.attr.sm_lid = 1;
	e->port.attr.pkey[0] = WIRE_PKEY_DEFAULT_FULL;
	e->port.attr.pkeys = WIRE_PORT_PKEYS;
	e->port.attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 0x1000 + lid);
	e->port.attr.gids = 1;
	e->peer = peer;
	e->loop = loop;
	list_init(&e->queue);
	loop_task_init(&e->task, end_deliver);
}

/* A cable with a MAD layer at both ends. */
struct cable {
	struct loop *loop;
	struct end a, b;
	struct mad_port *ma, *mb;
};

static inline void cable_open(struct cable *c)
{
	c->loop = loop_create_virtual();
	end_init(&c->a, c->loop, &c->b, 1);
	end_init(&c->b, c->loop, &c->a, 2);
	c->ma = mad_port_create(c->loop, &c->a.port);
	c->mb = mad_port_create(c->loop, &c->b.port);
}

static inline void cable_run(struct cable *c, u32 ms)
{
	loop_run_idle(c->loop, loop_now(c->loop).ns + ms * NSEC_PER_MSEC);
}

static inline void cable_close(struct cable *c)
{
	struct wire_packet *p, *tmp;

	mad_port_destroy(c->ma);
	mad_port_destroy(c->mb);
	list_for_each_safe (p, tmp, &c->a.queue, link)
		wire_packet_free(p);
	list_for_each_safe (p, tmp, &c->b.queue, link)
		wire_packet_free(p);
	loop_destroy(c->loop);
}

#define TO_LID(l) ((struct mad_addr){ .qpn = 1, .qkey = MAD_QKEY_WELL_KNOWN, .lid = (l) })

/* Fills in a MAD's header; the rest is zero. */
static inline void mad_fill(u8 *mad, u8 class, u8 version, u8 method, u16 attr, u32 tid)
{
	memset(mad, 0, MAD_SIZE);
	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_CLASS, class);
	wire_set(mad, MAD_CLASS_VERSION, version);
	wire_set(mad, MAD_METHOD, method);
	wire_set(mad, MAD_TID, tid);
	wire_set(mad, MAD_ATTR_ID, attr);
}

/* Calls of an agent's callbacks, as recorded by a test. */
struct seen {
	u32 recvs, sents;
	u32 len;
	int status;
	void *cookie;
	struct mad_addr from;
	u8 mad[MAD_SIZE];
	u8 *data; /* the last complete message */
	struct mad_agent *agent;
	void (*then)(struct seen *s); /* action of the test */
};

static inline void seen_recv(void *ctx, const u8 *data, u32 len, const struct mad_addr *from, void *cookie)
{
	struct seen *s = ctx;

	s->recvs++;
	s->len = len;
	s->cookie = cookie;
	s->from = *from;
	memcpy(s->mad, data, MAD_SIZE < len ? MAD_SIZE : len);
	free(s->data);
	s->data = malloc(len);
	memcpy(s->data, data, len);
	if (s->then)
		s->then(s);
}

static inline void seen_sent(void *ctx, const u8 *data, u32 len, int status, void *cookie)
{
	struct seen *s = ctx;

	s->sents++;
	s->len = len;
	s->status = status;
	s->cookie = cookie;
}

/* Registers for Get, Set, GetTable, GetMulti and similar methods of a class. */
static inline int seen_register(struct mad_port *mp, struct seen *s, u8 class, u8 version, u8 rmpp)
{
	struct mad_agent_reg reg = {
		.qpn = wire_mad_is_smp_class(class) ? 0 : 1,
		.mgmt_class = class,
		.class_version = version,
		.oui = { 0x00, 0x14, 0x05 },
		.rmpp_version = rmpp,
		.methods = { 0x3fee | 0x7c0000 },
		.ctx = s,
		.recv = seen_recv,
		.sent = seen_sent,
	};

	return mad_agent_register(mp, &reg, &s->agent);
}

/* An action: sends a response with the request's data, except one byte. */
static inline void seen_answer(struct seen *s)
{
	u8 resp[MAD_SIZE];

	memcpy(resp, s->mad, MAD_SIZE);
	resp[3] |= 0x80;
	resp[100] = 42;
	mad_send(s->agent, resp, MAD_SIZE, &s->from, 0, 0, NULL);
}

#define CHECK(cond)                                                                \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			return false;                                              \
		}                                                                  \
	} while (0)

struct row {
	const char *name;
	bool (*run)(struct cable *c);
};

/* Runs each row on a new cable; no packet may be left afterwards. Returns the exit status. */
static inline int rows_run(const struct row *rows, u32 n)
{
	u32 i, failed = 0;

	for (i = 0; i < n; i++) {
		struct cable c;
		bool ok;

		cable_open(&c);
		ok = rows[i].run(&c);
		cable_close(&c);
		if (wire_packet_live()) {
			fprintf(stderr, "%u packets or buffers left\n", wire_packet_live());
			ok = false;
		}
		if (!ok) {
			failed++;
			printf("row %u failed: %s\n", i + 1, rows[i].name);
			if (wire_packet_live())
				break;
		}
	}
	printf("%u passed, %u failed\n", n - failed, failed);
	return failed != 0;
}

#endif
