/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixture of tests: two HCAs back to back in virtual time. The wire drops chosen packets and records all of them. */
#ifndef MUSLIN_RXE_RXE_FIXTURE_H
#define MUSLIN_RXE_RXE_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/hca/bring.h"
#include "emu/hca/late_fixture.h"
#include "emu/hca/soft_queue.h"
#include "emu/lib/rng.h"
#include "emu/lib/row.h"
#include "rxe/rxe.h"
#include "rxe/rxe_internal.h"

#define SIZE (1u << 20)

/* One side. */
struct side {
	struct wire_port port, second; /* ports 1 and 2 */
	struct hca *hca;
	struct hca_ctx *ctx;
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u32 pdn, xrcdn, qpn, lkey, rkey, events[32];
	u8 *mem;
};

static struct loop *loop;
static struct side a, b;
static u64 sent;               /* packets on the wire, both ways */
static u64 drop_from, drop_to; /* drops the nth to the nth packet */
static bool drop_all;
static u8 drop_opcode;
static u64 drop_lids; /* drops packets to LIDs in this bitmap */
static u8 static_rate;
static u8 link_layer = WIRE_LINK_IB, ack_timeout = 8;

/* Random faults of the wire: packets of 1024 that are lost, duplicated, or reordered with the next one. */
static struct {
	struct rng rng;
	u32 lost, twice, late;
	u64 most;                 /* packets that pass at most; 0: no limit */
	struct wire_packet *held; /* a reordered one */
	const struct side *held_for;
} chance;

/* A packet that has passed the wire. */
struct passed {
	const struct side *from;
	u8 opcode, syndrome;
	u32 psn, len;
	bool lost;
};
static struct passed passed[4096];

/* Registered memory that cannot be read or written, as if it were unmapped. */
static u64 unmapped, unmapped_len;

static inline bool is_mapped(const struct hca_dma_seg *seg, u32 n)
{
	for (; n; n--, seg++)
		if (unmapped_len && seg->addr < unmapped + unmapped_len && unmapped < seg->addr + seg->len)
			return false;
	return true;
}

/* A side with late memory: moves start, and late_end() completes them. */
static struct side *late_side;
static bool only_writes_late;

static inline int dma_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	if (dma == late_side && !only_writes_late)
		return -EAGAIN;
	return is_mapped(seg, n) ? hca_local_dma.read(dma, seg, n) : -EFAULT;
}

static inline int dma_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	if (dma == late_side)
		return -EAGAIN;
	return is_mapped(seg, n) ? hca_local_dma.write(dma, seg, n) : -EFAULT;
}

static inline void *dma_direct(void *dma, u64 addr, u32 len, bool write)
{
	struct hca_dma_seg seg = { .addr = addr, .len = len };

	return dma != late_side && is_mapped(&seg, 1) ? hca_local_dma.direct(dma, addr, len, write) : NULL;
}

static const struct hca_dma_ops test_dma = {
	.read = dma_read, .write = dma_write, .direct = dma_direct, .start = late_start
};

static inline void late_end(void)
{
	late_side = NULL;
	only_writes_late = false;
	late_moves_end(&test_dma, late_moves);
}

static inline bool happens(u32 of_1024)
{
	return of_1024 && rng_next(&chance.rng) % 1024 < of_1024;
}

static inline int arrive(struct side *to, struct wire_packet *p)
{
	return to->port.data.receive(to->port.data.ctx, p);
}

/* Port 2: nothing is recorded or lost. */
static inline int second_send(struct wire_port *port, struct wire_packet *p)
{
	struct wire_port *to = port == &a.second ? &b.second : &a.second;

	return to->data.receive(to->data.ctx, p);
}

static inline int arrive_by_chance(struct side *to, struct wire_packet *p)
{
	struct wire_packet *late = chance.held_for == to ? chance.held : NULL;

	if (late)
		chance.held = NULL;
	else if (!chance.held && happens(chance.late)) {
		chance.held = p;
		chance.held_for = to;
		return 0;
	}
	if (happens(chance.twice))
		arrive(to, wire_packet_clone(p));
	arrive(to, p);
	return late ? arrive(to, late) : 0;
}

static inline int wire_send(struct wire_port *port, struct wire_packet *p)
{
	struct side *to = port == &a.port ? &b : &a;
	const struct wire_bth *bth = wire_packet_bth(p);
	const struct wire_opcode *op = wire_opcode(bth->opcode);
	struct passed *seen = &passed[sent % ARRAY_SIZE(passed)];
	u64 n = ++sent;

	*seen = (struct passed){
		.from = port == &a.port ? &a : &b, .opcode = bth->opcode, .psn = wire_bth_psn(bth), .len = p->len
	};
	if (op->flags & WIRE_OPF_ACK)
		seen->syndrome = wire_aeth_syndrome(wire_packet_aeth(p));
	if (drop_all || (drop_opcode && wire_packet_bth(p)->opcode == drop_opcode) ||
	    (n >= drop_from && n <= drop_to) || (chance.most && n > chance.most) || happens(chance.lost) ||
	    (drop_lids & 1ull << (wire_lrh_dlid(wire_packet_lrh(p)) % 64))) {
		seen->lost = true;
		wire_packet_free(p);
		return 0;
	}
	return arrive_by_chance(to, p);
}

static inline void wire_violation(struct wire_port *port, const struct wire_port_violation *v)
{
	*(v->qkey ? &port->attr.qkey_violations : &port->attr.pkey_violations) += 1;
}

static const struct wire_port_ops wire_ops = { .send = wire_send, .violation = wire_violation };
static const struct wire_port_ops second_ops = { .send = second_send, .violation = wire_violation };

static inline void on_event(void *fe, const struct hca_event *ev)
{
	((struct side *)fe)->events[ev->type]++;
}

static inline void side_init(struct side *s, u16 lid)
{
	struct wire_port *ports[2] = { &s->port, &s->second };
	struct hca_config cfg = { .name = "t", .node_guid = lid, .nports = 2, .ports = ports, .seed = lid };

	memset(s, 0, sizeof(*s));
	s->port.ops = &wire_ops;
	s->port.num = 1;
	s->port.attr = (struct wire_port_attr){
		.link_layer = link_layer,
		.state = 4,
		.lid = lid,
		.mtu_cap = 5,
		.mtu_active = 5,
		.width_active = 2,     /* 4x */
		.speed_ext_active = 4, /* HDR */
		.gids = 1,
		.pkeys = 2,
		.pkey = { 0xffff, 0x8001 },
	};
	s->port.attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, lid);
	s->second = (struct wire_port){ .ops = &second_ops, .num = 2, .attr = s->port.attr };
	s->hca = hca_create(loop, &cfg);
	hca_set_transport(s->hca, &rxe_transport);
	s->ctx = hca_ctx_create(s->hca, &test_dma, s, on_event, s);
	hca_pd_alloc(s->ctx, &s->pdn);
	s->mem = calloc(1, 2 * SIZE);
	hca_mr_reg(s->ctx, s->pdn, (u64)(uintptr_t)s->mem, (u64)(uintptr_t)s->mem, 2 * SIZE, 0xf, &s->lkey, &s->rkey);
	hca_soft_cq_create(s->ctx, 1024, NULL, NULL, &s->cq);
}

static inline void side_fini(struct side *s)
{
	hca_soft_wq_destroy(s->wq);
	hca_soft_cq_destroy(s->cq);
	hca_ctx_destroy(s->ctx);
	hca_destroy(s->hca);
	free(s->mem);
}

static inline struct hca_qp_attr attr_to(const struct side *to, u8 mtu, u32 psn)
{
	return (struct hca_qp_attr){
		.path_mtu = mtu,
		.qkey = 0x1234,
		.rq_psn = psn,
		.sq_psn = psn,
		.dest_qpn = to->qpn,
		.access = 0xf,
		.av = { .dlid = to->port.attr.lid,
			.port = 1,
			.static_rate = static_rate,
			.grh = link_layer == WIRE_LINK_ETHERNET,
			.dgid = to->port.attr.gid[0] },
		.port = 1,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = ack_timeout,
		.retry_cnt = 3,
		.rnr_retry = 3,
	};
}

static inline int move(struct side *s, const struct side *to, u8 mtu, u32 psn)
{
	return bring_to(hca_qp_lookup(s->hca, s->qpn), attr_to(to, mtu, psn), HCA_QPS_RTS);
}

static inline void qp_make(struct side *s, enum hca_qp_type type)
{
	struct hca_qp_init init = {
		.type = type,
		.pdn = s->pdn,
		.send_cqn = hca_soft_cq_number(s->cq),
		.recv_cqn = hca_soft_cq_number(s->cq),
		.max_send_wr = 256,
		.max_recv_wr = 256,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline = 64,
		.sq_sig_all = true,
		.rx_csum = type == HCA_QPT_UD,
		.xrcdn = type == HCA_QPT_XRC_TGT ? s->xrcdn : 0,
	};

	if (hca_soft_qp_create(s->ctx, &init, &s->wq))
		exit(1);
	s->qpn = hca_soft_wq_number(s->wq);
}

static inline void qp_remake(struct side *s)
{
	hca_soft_wq_destroy(s->wq);
	qp_make(s, HCA_QPT_RC);
}

static inline void start_of(enum hca_qp_type type, enum hca_qp_type peer, u8 mtu, u32 psn)
{
	u32 i;

	loop = loop_create_virtual();
	side_init(&a, 1);
	side_init(&b, 2);
	if (peer == HCA_QPT_XRC_TGT && hca_xrcd_alloc(b.ctx, &b.xrcdn))
		exit(1);
	qp_make(&a, type);
	qp_make(&b, peer);
	if (move(&a, &b, mtu, psn) || move(&b, &a, mtu, psn))
		exit(1);
	for (i = 0; i < 2 * SIZE; i++)
		a.mem[i] = (u8)(i * 7 + i / 251);
	sent = drop_from = drop_to = 0;
	drop_all = false;
	drop_opcode = 0;
	unmapped_len = 0;
}

static inline void start(enum hca_qp_type type, u8 mtu, u32 psn)
{
	start_of(type, type, mtu, psn);
}

static inline void stop(void)
{
	if (chance.held)
		wire_packet_free(chance.held);
	chance.held = NULL;
	side_fini(&a);
	side_fini(&b);
	loop_destroy(loop);
}

static inline void run(void)
{
	loop_run_idle(loop, loop_now(loop).ns + 10 * NSEC_PER_SEC);
}

static inline struct hca_send_wr request(u8 opcode, u32 len)
{
	struct hca_send_wr wr = {
		.token = 42,
		.opcode = opcode,
		.imm = 0xabcd1234,
		.remote_addr = (u64)(uintptr_t)b.mem,
		.rkey = b.rkey,
		.num_sge = 1,
		.sge = { { (u64)(uintptr_t)a.mem, len, a.lkey } },
		.remote_qpn = b.qpn,
		.remote_qkey = 0x1234,
		.av = { .dlid = 2, .port = 1 },
	};

	return wr;
}

static inline void post_recv(u32 len)
{
	struct hca_recv_wr wr = { .token = 7, .num_sge = 1, .sge = { { (u64)(uintptr_t)b.mem, len, b.lkey } } };

	hca_soft_post_recv(b.wq, &wr);
}

/* Polls the next completion of a side; status 255: none. */
static inline struct hca_cqe next(struct side *s)
{
	struct hca_cqe cqe = { .status = 255 };

	hca_soft_cq_poll(s->cq, &cqe, 1);
	return cqe;
}

#endif
