/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For the tests of emu/hca: a device with two unconnected ports, one context, and numbered rows. */
#ifndef MUSLIN_HCA_FIXTURE_H
#define MUSLIN_HCA_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/hca/bring.h"
#include "emu/hca/hca_internal.h"
#include "emu/hca/soft_queue.h"
#include "emu/lib/row.h"

struct fixture {
	struct loop *loop;
	struct wire_port port[2];
	struct hca *hca;
	struct hca_ctx *ctx;
	u32 pdn;
	u32 events[HCA_EVENT_GID_CHANGE + 1]; /* how many of each type */
	struct hca_event last;
};

static inline void fixture_event(void *fe, const struct hca_event *ev)
{
	struct fixture *f = fe;

	f->events[ev->type]++;
	f->last = *ev;
}

static inline void fixture_init_dma(struct fixture *f, const struct hca_dma_ops *dma, void *dma_ctx)
{
	struct wire_port *ports[2] = { &f->port[0], &f->port[1] };
	struct hca_config cfg = { .name = "t", .node_guid = 0x1234, .nports = 2, .ports = ports, .seed = 7 };
	int i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < 2; i++) {
		f->port[i].num = (u8)(i + 1);
		f->port[i].attr = (struct wire_port_attr){
			.link_layer = WIRE_LINK_IB,
			.state = 4,
			.lid = (u16)(i + 1),
			.mtu_cap = 4,
			.mtu_active = 4,
			.gids = 2,
			.pkeys = 4,
			.pkey = { 0xffff },
		};
		f->port[i].attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, (u64)i + 1);
	}
	f->loop = loop_create_virtual();
	f->hca = hca_create(f->loop, &cfg);
	f->ctx = hca_ctx_create(f->hca, dma, dma_ctx, fixture_event, f);
	hca_pd_alloc(f->ctx, &f->pdn);
}

static inline void fixture_init(struct fixture *f)
{
	fixture_init_dma(f, &hca_local_dma, NULL);
}

static inline void fixture_fini(struct fixture *f)
{
	hca_destroy(f->hca);
	loop_destroy(f->loop);
}

/* NULL on errors. */
static inline struct hca_soft_wq *fixture_qp_of(struct fixture *f, enum hca_qp_type type, struct hca_soft_cq *send,
						struct hca_soft_cq *recv, u32 srqn)
{
	struct hca_qp_init init = {
		.type = type,
		.pdn = f->pdn,
		.send_cqn = hca_soft_cq_number(send),
		.recv_cqn = hca_soft_cq_number(recv),
		.srqn = srqn,
		.max_send_wr = 8,
		.max_recv_wr = 8,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline = 64,
		.port = 1,
	};
	struct hca_soft_wq *wq = NULL;

	return hca_soft_qp_create(f->ctx, &init, &wq) ? NULL : wq;
}

/* The same with one CQ. */
static inline struct hca_soft_wq *fixture_qp(struct fixture *f, enum hca_qp_type type, struct hca_soft_cq *cq, u32 srqn)
{
	return fixture_qp_of(f, type, cq, cq, srqn);
}

/* Values that are valid in every transition. */
static inline struct hca_qp_attr fixture_attr(void)
{
	struct hca_av av = { .dlid = 2, .port = 1 };

	return (struct hca_qp_attr){
		.path_mtu = 3,
		.path_mig_state = HCA_MIG_MIGRATED,
		.qkey = 0x11111111,
		.rq_psn = 5,
		.sq_psn = 6,
		.dest_qpn = 0x123456,
		.access = HCA_ACCESS_REMOTE_WRITE,
		.av = av,
		.alt_av = av,
		.alt_port = 1,
		.port = 1,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
}

/* Moves a QP to @to by the shortest sequence of states; 0 or the error. */
static inline int fixture_move(struct fixture *f, struct hca_soft_wq *wq, enum hca_qp_state to)
{
	struct hca_qp *qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
	struct hca_qp_attr a = fixture_attr();
	int err;

	a.state = HCA_QPS_RESET;
	err = hca_qp_modify(f->ctx, qp->qpn, &a, HCA_QP_STATE);
	if (!err && to != HCA_QPS_RESET)
		err = bring_to(qp, a, to == HCA_QPS_ERR ? HCA_QPS_INIT : to < HCA_QPS_RTS ? to : HCA_QPS_RTS);
	a.state = (u8)to;
	if (!err && (to == HCA_QPS_SQD || to == HCA_QPS_ERR))
		err = hca_qp_modify(f->ctx, qp->qpn, &a, HCA_QP_STATE);
	if (!err && to == HCA_QPS_SQE)
		hca_qp_fail(qp, HCA_QPS_SQE, -1);
	return err;
}

#endif
