// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requester: congestion window and retransmission time-out on Ethernet, where the link has no credits and loses
 * packets. The window halves with each loss and grows by 1/16 of itself per round trip; an early retransmission
 * time-out is computed from the smoothed round-trip time. A retry is counted only when the local ACK timeout of the
 * queue pair has expired, which may take up to four times the attribute (IBTA 9.7.6.1.3): a busy machine delays ACKs by
 * many round trips.
 */
#include "rxe/rxe_internal.h"

#define CWND_INITIAL       128u
#define CWND_MIN           16u
#define CWND_MIN_SELECTIVE 64u /* with selective retransmission a loss costs one packet */
#define TIMEOUT_MIN        (2 * NSEC_PER_MSEC)
#define TIMEOUT_SRTTS      8 /* some round trips are long because programs share the processors */
#define TIMEOUT_LATE       (50 * NSEC_PER_USEC)
#define BACKOFF_MAX        6
#define COUNTED_TIMEOUTS   3 /* of the attribute; the next early time-out is less than one later */

void rxe_cwnd_reset(struct rxe_qp *rq)
{
	rq->req.cwnd = (struct rxe_cwnd){ .on = rxe_is_ethernet(rq), .size = CWND_INITIAL };
}

u32 rxe_cwnd_size(const struct rxe_qp *rq)
{
	return rq->req.cwnd.on ? rq->req.cwnd.size : RXE_CWND_MAX;
}

bool rxe_cwnd_ackreq(const struct rxe_qp *rq)
{
	u32 out = (u32)wire_psn_diff(rq->req.psn, rq->req.una) + 1;

	if (!rq->req.cwnd.on)
		return !((rq->req.pkt_next + 1) % RXE_ACK_EVERY);
	return out >= rq->req.cwnd.size || !((rq->req.pkt_next + 1) % max(rq->req.cwnd.size / 4, 1u));
}

void rxe_cwnd_sent(struct rxe_qp *rq, u32 psn)
{
	struct rxe_cwnd *cwnd = &rq->req.cwnd;

	if (!cwnd->on || cwnd->sampling)
		return;
	cwnd->sampling = true;
	cwnd->sample_psn = psn;
	cwnd->sample_ns = loop_now(rq->rxe->loop).ns;
}

void rxe_cwnd_acked(struct rxe_qp *rq, u32 una, u32 n)
{
	struct rxe_cwnd *cwnd = &rq->req.cwnd;
	u64 now = loop_now(rq->rxe->loop).ns;

	cwnd->backoff = 0;
	cwnd->loss_handled = cwnd->late = false;
	cwnd->timer_began = now;
	if (!cwnd->on)
		return;
	cwnd->acked += n;
	if (cwnd->acked >= cwnd->size) {
		cwnd->acked = 0;
		cwnd->size = min(cwnd->size + max(cwnd->size / 16, 1u), (u32)RXE_CWND_MAX);
	}
	if (!cwnd->sampling || wire_psn_diff(una, cwnd->sample_psn) <= 0)
		return;
	cwnd->sampling = false;
	cwnd->srtt = cwnd->srtt ? (7 * cwnd->srtt + (now - cwnd->sample_ns)) / 8 : now - cwnd->sample_ns;
}

void rxe_cwnd_lost(struct rxe_qp *rq)
{
	struct rxe_cwnd *cwnd = &rq->req.cwnd;

	cwnd->sampling = false; /* Karn: a retransmitted packet gives no sample */
	cwnd->acked = 0;
	cwnd->size = max(cwnd->size / 2, rq->req.peer_selective == RXE_SELECTIVE_YES ? CWND_MIN_SELECTIVE : CWND_MIN);
}

/*
 * The next flight begins when the time-out expires, which rxe_req_timer() records. Without a local ACK timeout it
 * begins with a PSN that does not increase: the retransmitted request was lost, too.
 */
bool rxe_cwnd_loss_known(struct rxe_qp *rq, u32 psn)
{
	struct rxe_cwnd *cwnd = &rq->req.cwnd;
	bool known = cwnd->loss_handled && (rq->qp->attr.timeout || wire_psn_diff(psn, cwnd->loss_psn) > 0);

	cwnd->loss_handled = true;
	cwnd->loss_psn = psn;
	return known;
}

/*
 * The local ACK timeout. On Ethernet it has a minimum, as that of the kernel's rxe, which is a jiffy: programs set 65
 * us for adapters in hardware. A busy machine does not read an ACK from its socket in that time, and retransmissions
 * would come faster than it processes them.
 */
static u64 cwnd_ack_timeout(const struct rxe_qp *rq)
{
	u64 ns = wire_timeout_ns(rq->qp->attr.timeout);

	return rq->req.cwnd.on && rq->qp->attr.timeout ? max(ns, TIMEOUT_MIN) : ns;
}

u64 rxe_cwnd_timeout(const struct rxe_qp *rq)
{
	u64 full = cwnd_ack_timeout(rq), early;

	if (!rq->req.cwnd.on || !rq->req.cwnd.srtt)
		return full;
	early = max(rq->req.cwnd.srtt * TIMEOUT_SRTTS, TIMEOUT_MIN) << min(rq->req.cwnd.backoff, (u8)BACKOFF_MAX);
	return min(early, full);
}

void rxe_cwnd_timer_begin(struct rxe_qp *rq)
{
	rq->req.cwnd.timer_began = loop_now(rq->rxe->loop).ns;
}

bool rxe_cwnd_timeout_counts(const struct rxe_qp *rq)
{
	const struct rxe_cwnd *cwnd = &rq->req.cwnd;

	return !cwnd->on || loop_now(rq->rxe->loop).ns - cwnd->timer_began >= COUNTED_TIMEOUTS * cwnd_ack_timeout(rq);
}

/*
 * A timer runs late when this process did not run: the ACK may wait in the socket, or the request, if the peer is of
 * this process. The early time-out begins once more, but not twice, since each may be late on a busy machine.
 */
bool rxe_cwnd_timeout_late(struct rxe_qp *rq, u64 late_ns)
{
	struct rxe_cwnd *cwnd = &rq->req.cwnd;

	cwnd->late = !cwnd->late && late_ns > TIMEOUT_LATE && !rxe_cwnd_timeout_counts(rq);
	return cwnd->late;
}

bool rxe_cwnd_timeout_early(struct rxe_qp *rq)
{
	if (rxe_cwnd_timeout_counts(rq))
		return false;
	rq->req.cwnd.backoff++;
	return true;
}
