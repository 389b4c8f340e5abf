// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Congestion control of RoCEv2 (A17.9.3), where the port has it as an option: packets of connections say that they may be
 * marked; for those that come marked a notification (CNP) goes back, and who gets one slows down by DCQCN.
 */
#include <stdlib.h>

#include "emu/wire/hdr.h"
#include "emu/wire/roce.h"
#include "rxe/internal.h"

#define CNP_INTERVAL_NS 50000ull /* between notifications of one connection */
#define CNP_PAYLOAD     16       /* reserved, zero */
#define ROUND_NS        ((u64)NSEC_PER_MSEC)
#define FIRST_PART      64        /* of the link's rate */
#define CNP_TCLASS      (48 << 2) /* DSCP of control packets; itself it cannot be marked */

static const struct wire_port *port_of(const struct rxe_qp *rq)
{
	return hca_port(rq->qp->hca, rq->qp->attr.port);
}

static struct wire_grh *grh_of(struct wire_packet *p)
{
	return (struct wire_grh *)(p->hdr + p->grh_off);
}

static void set_tclass(struct wire_packet *p, u8 tclass)
{
	wire_grh_set_ver_tc_flow(grh_of(p), tclass, wire_grh_flow(grh_of(p)));
}

void rxe_cc_mark(const struct rxe_qp *rq, struct wire_packet *p)
{
	if (p->grh_off && port_of(rq)->attr.dcqcn)
		set_tclass(p, (wire_grh_tclass(grh_of(p)) & ~WIRE_ECN_MASK) | WIRE_ECN_ECT);
}

static void send_cnp(struct rxe_qp *rq)
{
	struct hca_qp *qp = rq->qp;
	struct wire_buf *buf = wire_buf_alloc(CNP_PAYLOAD);
	struct wire_packet *p;

	if (!buf)
		return;
	memset(buf->data, 0, CNP_PAYLOAD);
	p = rxe_frame(qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), WIRE_CNP, qp->attr.dest_qpn, 0, CNP_PAYLOAD,
		      false, false);
	if (p) {
		rxe_payload(p, buf, 0, CNP_PAYLOAD);
		wire_bth_set_becn((struct wire_bth *)(p->hdr + p->bth_off));
		set_tclass(p, CNP_TCLASS);
		hca_count(qp->hca, qp->attr.port, HCA_CNT_CNP_SENT);
		rxe_send(rq->rxe, qp->attr.port, p);
	}
	wire_buf_put(buf);
}

void rxe_cc_received(struct rxe_qp *rq, struct wire_packet *p)
{
	u64 now = loop_now(rq->rxe->loop).ns;

	if (!p->grh_off || (wire_grh_tclass(grh_of(p)) & WIRE_ECN_MASK) != WIRE_ECN_CE || !port_of(rq)->attr.dcqcn)
		return;
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_ECN_MARKED);
	if (now < rq->cnp_after)
		return;
	rq->cnp_after = now + CNP_INTERVAL_NS;
	send_cnp(rq);
}

/* Nothing answers what responders send, nor UC: then it is a time that is long for a link of 1 Gb/s, and short for one of 100 Mb/s. */
static u64 round_trip(const struct rxe_qp *rq)
{
	return rq->win.srtt ? rq->win.srtt : ROUND_NS;
}

/*
 * kb/s at which the queue pair has sent until the first notification: what is on its way, over a round trip. It may have had little to
 * send, and is to have a share of the link.
 */
static u64 first_rate(const struct rxe_qp *rq, u64 line)
{
	u64 bytes = (u64)wire_psn_diff(rq->max_psn, rq->una) * wire_mtu_bytes(rq->qp->attr.path_mtu);

	if (!rq->win.on || !rq->win.srtt)
		return line;
	return max(bytes * 8 * NSEC_PER_MSEC / rq->win.srtt, line / FIRST_PART);
}

static bool begin(struct rxe_qp *rq)
{
	u64 kbps = port_of(rq)->attr.kbps, speed = rxe_pace_link(rq) * 1000ull, line = kbps ? min(kbps, speed) : speed;

	rq->dcqcn = malloc(sizeof(*rq->dcqcn));
	if (!rq->dcqcn) /* the next one comes soon */
		return false;
	dcqcn_init(rq->dcqcn, line, first_rate(rq, line), loop_now(rq->rxe->loop));
	return true;
}

void rxe_cc_notified(struct rxe_qp *rq)
{
	bool heeds = port_of(rq)->attr.dcqcn && (rq->dcqcn || begin(rq));

	hca_count(rq->qp->hca, rq->qp->attr.port, heeds ? HCA_CNT_CNP_HANDLED : HCA_CNT_CNP_IGNORED);
	if (!heeds)
		return;
	dcqcn_notified(rq->dcqcn, round_trip(rq), loop_now(rq->rxe->loop));
}

u64 rxe_cc_rate(struct rxe_qp *rq, u32 bytes)
{
	if (!rq->dcqcn)
		return 0;
	dcqcn_sent(rq->dcqcn, bytes, round_trip(rq), loop_now(rq->rxe->loop));
	return dcqcn_holds(rq->dcqcn) ? rq->dcqcn->rate : 0;
}

void rxe_cc_reset(struct rxe_qp *rq)
{
	free(rq->dcqcn);
	rq->dcqcn = NULL;
	rq->cnp_after = 0;
}
