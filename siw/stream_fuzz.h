/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixture of the stream's fuzz targets: an adapter with one queue pair, a receive and a READ outstanding. */
#ifndef MUSLIN_SIW_STREAM_FUZZ_H
#define MUSLIN_SIW_STREAM_FUZZ_H

#include "emu/hca/bring.h"
#include "emu/hca/soft_queue.h"
#include "siw/siw.h"

#define FUZZ_IOVA 0x1000

struct fuzz_side {
	struct loop *loop;
	struct wire_port port;
	struct hca *hca;
	struct hca_ctx *ctx;
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u32 pdn, qpn, lkey, rkey;
	u8 mem[4096];
};

static void fuzz_event(void *fe, const struct hca_event *ev) {}

static void fuzz_post(struct fuzz_side *s)
{
	struct hca_recv_wr recv = { .num_sge = 1 };
	struct hca_send_wr read = { .opcode = HCA_WR_RDMA_READ, .num_sge = 1 };

	recv.sge[0] = read.sge[0] = (struct hca_sge){ FUZZ_IOVA, 1024, s->lkey };
	hca_soft_post_recv(s->wq, &recv);
	hca_soft_post_send(s->wq, &read);
}

static void fuzz_open(struct fuzz_side *s)
{
	struct wire_port *ports[1] = { &s->port };
	struct hca_config cfg = { .name = "f", .node_guid = 1, .nports = 1, .ports = ports, .seed = 1 };
	struct hca_qp_init init = {
		.type = HCA_QPT_RC, .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct hca_qp_attr attr = { .port = 1, .access = 0xf, .path_mtu = WIRE_MTU_1024, .av = { .port = 1 } };
	u64 mem = (u64)(uintptr_t)s->mem;

	memset(s, 0, sizeof(*s));
	s->loop = loop_create();
	s->port.num = 1;
	s->port.attr = (struct wire_port_attr){
		.state = 4, .mtu_cap = 5, .mtu_active = 5, .gids = 1, .pkeys = 1, .pkey = { 0xffff }
	};
	s->hca = hca_create(s->loop, &cfg);
	hca_set_transport(s->hca, &siw_transport);
	s->ctx = hca_ctx_create(s->hca, &hca_local_dma, NULL, fuzz_event, s);
	hca_pd_alloc(s->ctx, &s->pdn);
	hca_mr_reg(s->ctx, s->pdn, mem, FUZZ_IOVA, sizeof(s->mem), 0xf, &s->lkey, &s->rkey);
	hca_soft_cq_create(s->ctx, 64, NULL, NULL, &s->cq);
	init.pdn = s->pdn;
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(s->cq);
	hca_soft_qp_create(s->ctx, &init, &s->wq);
	s->qpn = hca_soft_wq_number(s->wq);
	bring_to(hca_qp_lookup(s->hca, s->qpn), attr, HCA_QPS_RTS);
	fuzz_post(s);
}

static void fuzz_idle(struct fuzz_side *s)
{
	loop_run_idle(s->loop, 0);
}

static void fuzz_close(struct fuzz_side *s)
{
	hca_soft_wq_destroy(s->wq);
	hca_soft_cq_destroy(s->cq);
	hca_ctx_destroy(s->ctx);
	hca_destroy(s->hca);
	loop_destroy(s->loop);
}

#endif
