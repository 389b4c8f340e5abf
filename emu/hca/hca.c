// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* HCA (IBTA 10.2.1): ports, transport, and contexts with their objects. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

/* QPNs are allocated cyclically from a seeded start in a range of this size, so that reuse is late. */
#define QPN_RANGE (1u << 17)

static int port_receive(void *ctx, struct wire_packet *p)
{
	struct hca_port_slot *ps = ctx;

	if (likely(ps->hca->transport))
		return ps->hca->transport->receive(ps->hca, ps->wire->num, p);
	wire_packet_free(p);
	return 0;
}

static u32 port_zcopy(void *ctx, const struct wire_packet *head, u32 n, u8 **at)
{
	struct hca_port_slot *ps = ctx;
	const struct hca_transport *t = ps->hca->transport;

	return t && t->zcopy ? t->zcopy(ps->hca, ps->wire->num, head, n, at) : 0;
}

static void port_ready(void *ctx)
{
	struct hca_port_slot *ps = ctx;

	if (ps->hca->transport)
		ps->hca->transport->port_ready(ps->hca, ps->wire->num);
}

static void flush_run(struct loop_task *t, struct now now)
{
	hca_flush(container_of(t, struct hca, flush_task));
}

static void init_numbers(struct hca *hca)
{
	u32 qpn = 0x40 + (u32)(rng_next(&hca->rng) % (0xffffff - 2 * QPN_RANGE));

	table_init(&hca->qps, qpn, qpn + QPN_RANGE - 1);
	table_init(&hca->pds, 1, hca_caps_default.max_pd);
	table_init(&hca->cqs, 1, hca_caps_default.max_cq);
	table_init(&hca->srqs, 1, hca_caps_default.max_srq);
	table_init(&hca->xrcds, 1, hca_caps_default.max_xrcd);
	hca_key_space_init(&hca->keys, &hca->rng);
}

struct hca *hca_create(struct loop *loop, const struct hca_config *cfg)
{
	struct hca *hca;
	u8 i;

	if (!cfg->nports || !(hca = calloc(1, sizeof(*hca)))) {
		errno = cfg->nports ? ENOMEM : EINVAL;
		return NULL;
	}
	hca->port = calloc(cfg->nports, sizeof(*hca->port));
	if (!hca->port) {
		free(hca);
		errno = ENOMEM;
		return NULL;
	}
	hca->loop = loop;
	snprintf(hca->name, sizeof(hca->name), "%s", cfg->name ? cfg->name : "");
	hca->node_guid = cfg->node_guid;
	hca->sys_image_guid = cfg->sys_image_guid;
	hca->nports = cfg->nports;
	hca->rng.state = cfg->seed ^ cfg->node_guid;
	list_init(&hca->ctxs);
	list_init(&hca->dirty);
	list_init(&hca->overflowed);
	fault_set_init(&hca->faults, &hca_fault_target, loop, hca, 0);
	list_init(&hca->failing);
	hca->caps = hca_caps_default;
	loop_task_init(&hca->fault_task, hca_fault_run);
	loop_task_init(&hca->flush_task, flush_run);
	loop_task_init(&hca->overflow_task, hca_cq_overflow_run);
	init_numbers(hca);
	for (i = 0; i < cfg->nports; i++) {
		hca->port[i].hca = hca;
		hca->port[i].wire = cfg->ports[i];
		cfg->ports[i]->data = (struct wire_port_user){
			.ctx = &hca->port[i],
			.receive = port_receive,
			.zcopy = port_zcopy,
			.ready = port_ready,
			.event = hca_port_event,
		};
	}
	return hca;
}

void hca_destroy(struct hca *hca)
{
	u8 i;

	if (!hca)
		return;
	while (!list_empty(&hca->ctxs))
		hca_ctx_destroy(list_first(&hca->ctxs, struct hca_ctx, link));
	if (hca->transport)
		hca->transport->stop(hca);
	for (i = 0; i < hca->nports; i++)
		memset(&hca->port[i].wire->data, 0, sizeof(hca->port[i].wire->data));
	loop_task_cancel(&hca->flush_task);
	loop_task_cancel(&hca->overflow_task);
	loop_task_cancel(&hca->fault_task);
	fault_set_fini(&hca->faults);
	hca_mcast_fini(hca);
	hca_key_space_fini(&hca->keys);
	table_fini(&hca->qps);
	table_fini(&hca->pds);
	table_fini(&hca->cqs);
	table_fini(&hca->srqs);
	table_fini(&hca->xrcds);
	free(hca->port);
	free(hca);
}

struct wire_port *hca_port(struct hca *hca, u8 num)
{
	return hca_port_valid(hca, num) ? hca->port[num - 1].wire : NULL;
}

const struct hca_caps *hca_caps(const struct hca *hca)
{
	return &hca->caps;
}

u64 hca_node_guid(const struct hca *hca)
{
	return hca->node_guid;
}

u64 hca_sys_image_guid(const struct hca *hca)
{
	return hca->sys_image_guid;
}

u8 hca_nports(const struct hca *hca)
{
	return hca->nports;
}

static const char *const object_names[] = { "contexts", "pd", "mr", "mw", "cq", "srq", "qp" };

const char *hca_object_name(u32 n)
{
	return n < ARRAY_SIZE(object_names) ? object_names[n] : NULL;
}

static u32 contexts_count(const struct hca *hca)
{
	const struct hca_ctx *ctx;
	u32 n = 0;

	list_for_each (ctx, &hca->ctxs, link)
		n++;
	return n;
}

u32 hca_object_count(const struct hca *hca, u32 n)
{
	const u32 counts[] = { contexts_count(hca), hca->pds.used,  hca->keys.mrs, hca->keys.mws,
			       hca->cqs.used,       hca->srqs.used, hca->qps.used };
	static_assert(ARRAY_SIZE(counts) == ARRAY_SIZE(object_names), "a name for each count");

	return n < ARRAY_SIZE(counts) ? counts[n] : 0;
}

int hca_set_transport(struct hca *hca, const struct hca_transport *t)
{
	int err;

	hca->transport = t;
	err = t->start(hca);
	if (err)
		hca->transport = NULL;
	else if (t->iw) /* without datagrams */
		hca->caps.max_ah = hca->caps.max_mcast_grp = hca->caps.max_mcast_qp_attach = 0;
	return err;
}

const struct hca_iw_ops *hca_iw(const struct hca *hca)
{
	return hca->transport ? hca->transport->iw : NULL;
}

void hca_set_transport_data(struct hca *hca, void *data)
{
	hca->transport_data = data;
}

void *hca_transport_data(const struct hca *hca)
{
	return hca->transport_data;
}

struct loop *hca_loop(const struct hca *hca)
{
	return hca->loop;
}

struct hca_ctx *hca_ctx_create(struct hca *hca, const struct hca_dma_ops *dma, void *dma_ctx,
			       void (*event)(void *fe, const struct hca_event *ev), void *fe)
{
	struct hca_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->hca = hca;
	ctx->serial = ++hca->ctx_serial;
	ctx->dma = dma;
	ctx->dma_ctx = dma_ctx;
	ctx->event = event;
	ctx->fe = fe;
	list_init(&ctx->pds);
	list_init(&ctx->keys);
	list_init(&ctx->moves);
	list_init(&ctx->faults);
	list_init(&ctx->flushing);
	loop_task_init(&ctx->flush_task, hca_ctx_flush_run);
	list_init(&ctx->in_error);
	table_init(&ctx->ahs, 1, hca_caps_default.max_ah);
	list_add(&hca->ctxs, &ctx->link);
	return ctx;
}

u64 hca_ctx_serial(const struct hca_ctx *ctx)
{
	return ctx->serial;
}

/* Objects are destroyed before those that they reference. */
void hca_ctx_destroy(struct hca_ctx *ctx)
{
	struct hca *hca = ctx->hca;
	struct hca_key *k, *tmp;
	struct hca_qp *qp;
	struct hca_xrcd *xrcd;
	struct hca_srq *srq;
	struct hca_cq *cq;
	struct hca_pd *pd;
	u32 i;

	ctx->dying = true;
	table_for_each (&hca->qps, i, qp)
		if (qp->ctx == ctx)
			hca_qp_free(qp);
	hca_batches_forget(ctx);
	hca_moves_forget(ctx);
	loop_task_cancel(&ctx->flush_task);
	table_for_each (&hca->srqs, i, srq)
		if (srq->ctx == ctx)
			hca_srq_destroy(ctx, srq->srqn);
	table_for_each (&hca->xrcds, i, xrcd)
		if (xrcd->ctx == ctx)
			hca_xrcd_free(ctx, xrcd->xrcdn);
	table_for_each (&hca->cqs, i, cq)
		if (cq->ctx == ctx)
			hca_cq_destroy(ctx, cq->cqn);
	hca_ah_fini(ctx);
	list_for_each_safe (k, tmp, &ctx->keys, link)
		if (k->kind != HCA_KEY_MR)
			hca_key_free(k);
	while (!list_empty(&ctx->keys))
		hca_key_free(list_first(&ctx->keys, struct hca_key, link));
	while (!list_empty(&ctx->pds)) {
		pd = list_first(&ctx->pds, struct hca_pd, link);
		hca_pd_free(ctx, pd->pdn);
	}
	list_del(&ctx->link);
	free(ctx);
}
