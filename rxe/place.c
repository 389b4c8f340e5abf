// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Payloads that are received straight to where they belong. Before a train of packets is received its first header tells which
 * message it should go on with; if that is what comes next on the queue pair, its payloads are put where the next bytes of the
 * message go. What is then found to be something else (a gap, another queue pair, a wrong ICRC) is taken out again and comes
 * as any packet. So memory is written that no valid packet has named, and this is why nobody can tell:
 *
 * - Only a message that is under way is gone on with: its key was checked, by a packet with a right ICRC, and is checked
 *   again. Nothing outside of what that message may write is touched.
 * - What the message has not yet written is undefined until it is complete (10.7.3): it may have been retried, too.
 * - The message's last packet is never placed so, since programs wait for the last byte to change. That byte, and with it a
 *   completion, comes after everything before it has been checked.
 * - Earlier messages to the same memory are written before.
 */
#include "rxe/internal.h"

u32 rxe_place(struct hca *hca, u8 port, const struct wire_packet *head, u32 n, u8 **at)
{
	const struct wire_bth *bth = (const struct wire_bth *)(head->hdr + head->bth_off);
	struct hca_qp *qp = hca_qp_lookup(hca, wire_bth_qpn(bth));
	struct rxe_qp *rq;

	if (!qp || qp->type != HCA_QPT_RC || qp->state < HCA_QPS_RTR || qp->state > HCA_QPS_SQE)
		return 0;
	rq = qp->transport;
	if (!rxe_path_is(rq, head, port) || head->len != wire_mtu_bytes(qp->attr.path_mtu))
		return 0;
	if (bth->opcode == WIRE_RC_WRITE_MIDDLE)
		n = rxe_resp_place(rq, wire_bth_psn(bth), n, head->len, at);
	else if (bth->opcode == WIRE_RC_READ_RESP_MIDDLE)
		n = rxe_req_place(rq, wire_bth_psn(bth), n, head->len, at);
	else
		return 0;
	if (n)
		hca_batch_run(rq->rxe->wr);
	return n;
}
