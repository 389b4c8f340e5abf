// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RoCEv2 congestion management (IBTA A17.9.3), if enabled at the port: packets of connected queue pairs are sent with
 * ECN ECT. The receiver of a packet marked CE sends a congestion notification packet (CNP), and the receiver of a CNP
 * reduces its rate by DCQCN.
 */
#include <stdlib.h>

#include "emu/packet/roce.h"
#include "rxe/rxe_internal.h"

#define CNP_INTERVAL_NS 50000ull /* between notifications of one connection */
#define CNP_PAYLOAD     16       /* reserved, zero */
#define ROUND_NS        ((u64)NSEC_PER_MSEC)
#define FIRST_PART      64        /* of the link's rate */
#define CNP_TCLASS      (48 << 2) /* DSCP of control packets, and Not-ECT */

static const struct wire_port *port_of(const struct rxe_qp *rq)
{
	return hca_port(rq->qp->hca, rq->qp->attr.port);
}

static void set_tclass(struct wire_packet *p, u8 tclass)
{
	wire_grh_set_ver_tc_flow(wire_packet_grh(p), tclass, wire_grh_flow(wire_packet_grh(p)));
}

void rxe_cc_set_ect(const struct rxe_qp *rq, struct wire_packet *p)
{
	if (p->grh_off && port_of(rq)->attr.dcqcn)
		set_tclass(p, (wire_grh_tclass(wire_packet_grh(p)) & ~WIRE_ECN_MASK) | WIRE_ECN_ECT);
}

static void send_cnp(struct rxe_qp *rq)
{
	struct hca_qp *qp = rq->qp;
	struct wire_buf *buf = wire_buf_alloc(CNP_PAYLOAD);
	struct wire_packet *p;

	if (!buf)
		return;
	memset(buf->data, 0, CNP_PAYLOAD);
	p = rxe_frame(qp, WIRE_CNP, 0, CNP_PAYLOAD);
	if (p) {
		rxe_payload(p, buf, 0, CNP_PAYLOAD);
		wire_bth_set_becn(wire_packet_bth(p));
		set_tclass(p, CNP_TCLASS);
		hca_qp_count(qp, HCA_CNT_CNP_SENT);
		rxe_send(rq->rxe, qp->attr.port, p);
	}
	wire_buf_put(buf);
}

void rxe_cc_received(struct rxe_qp *rq, struct wire_packet *p)
{
	u64 now = loop_now(rq->rxe->loop).ns;

	if (!p->grh_off || (wire_grh_tclass(wire_packet_grh(p)) & WIRE_ECN_MASK) != WIRE_ECN_CE ||
	    !port_of(rq)->attr.dcqcn)
		return;
	hca_qp_count(rq->qp, HCA_CNT_ECN_MARKED);
	if (now < rq->rate.cnp_after)
		return;
	rq->rate.cnp_after = now + CNP_INTERVAL_NS;
	send_cnp(rq);
}

/*
 * Without ACKs (UC, READ responses) there is no RTT sample: a default, long for a link of 1 Gb/s and short for one of
 * 100 Mb/s.
 */
static u64 round_trip_ns(const struct rxe_qp *rq)
{
	return rq->req.cwnd.srtt ? rq->req.cwnd.srtt : ROUND_NS;
}

/*
 * kb/s at which the queue pair sent before the first CNP: bytes in flight per round trip. At least a part of the link's
 * rate, since the queue pair may have had little to send.
 */
static u64 first_rate(const struct rxe_qp *rq, u64 line)
{
	u64 bytes = (u64)wire_psn_diff(rq->req.max_psn, rq->req.una) * wire_mtu_bytes(rq->qp->attr.path_mtu);

	if (!rq->req.cwnd.on || !rq->req.cwnd.srtt)
		return line;
	return max(bytes * 8 * NSEC_PER_MSEC / rq->req.cwnd.srtt, line / FIRST_PART);
}

static bool dcqcn_start(struct rxe_qp *rq)
{
	u64 kbps = port_of(rq)->attr.kbps, speed = rxe_pace_link(rq) * 1000ull, line = kbps ? min(kbps, speed) : speed;

	rq->rate.dcqcn = malloc(sizeof(*rq->rate.dcqcn));
	if (!rq->rate.dcqcn) /* the next CNP tries again */
		return false;
	dcqcn_init(rq->rate.dcqcn, line, first_rate(rq, line), loop_now(rq->rxe->loop));
	return true;
}

void rxe_cc_notified(struct rxe_qp *rq)
{
	bool handled = port_of(rq)->attr.dcqcn && (rq->rate.dcqcn || dcqcn_start(rq));

	hca_qp_count(rq->qp, handled ? HCA_CNT_CNP_HANDLED : HCA_CNT_CNP_IGNORED);
	if (!handled)
		return;
	dcqcn_notified(rq->rate.dcqcn, round_trip_ns(rq), loop_now(rq->rxe->loop));
}

u64 rxe_cc_rate(struct rxe_qp *rq, u32 bytes)
{
	if (!rq->rate.dcqcn)
		return 0;
	dcqcn_sent(rq->rate.dcqcn, bytes, round_trip_ns(rq), loop_now(rq->rxe->loop));
	return dcqcn_limits(rq->rate.dcqcn) ? rq->rate.dcqcn->rate : 0;
}

void rxe_cc_reset(struct rxe_qp *rq)
{
	free(rq->rate.dcqcn);
	rq->rate.dcqcn = NULL;
	rq->rate.cnp_after = 0;
}
