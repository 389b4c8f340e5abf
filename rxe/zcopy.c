// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Zero-copy receive (zcopy) of RDMA WRITE and READ response payloads. The link layer peeks at the first header of a
 * burst of datagrams; if its PSN continues the message that the queue pair is receiving, the kernel copies the payloads
 * directly to the next bytes of that message. A payload that belongs elsewhere (missing PSN, another queue pair, wrong
 * ICRC) is copied out again and its packet is received as any other. So memory may be written before a valid packet has
 * named it. No program can observe that:
 *
 * - Only a message in progress is continued: a packet with a correct ICRC has passed the key check, and the key is
 *   checked again. Nothing outside of the range of that message is written.
 * - The bytes that the message has not yet written are undefined until it completes (10.7.3): a retransmission may
 *   write them, too.
 * - The last packet of a message is never received by zero-copy, since programs poll its last byte. That byte, and with
 *   it a completion, is written after all packets before it have been checked.
 * - Writes of earlier messages are run first.
 */
#include "rxe/rxe_internal.h"

u32 rxe_zcopy_receive(struct hca *hca, u8 port, const struct wire_packet *head, u32 n, u8 **at)
{
	const struct wire_bth *bth = wire_packet_bth(head);
	struct hca_qp *qp = hca_qp_lookup(hca, wire_bth_qpn(bth));
	struct rxe_qp *rq;

	if (!qp || qp->type != HCA_QPT_RC || qp->state < HCA_QPS_RTR || qp->state > HCA_QPS_SQE)
		return 0;
	rq = qp->transport;
	if (!rxe_path_is(rq, head, port) || head->len != wire_mtu_bytes(qp->attr.path_mtu))
		return 0;
	if (bth->opcode == WIRE_RC_WRITE_MIDDLE)
		n = rxe_resp_zcopy(rq, wire_bth_psn(bth), n, head->len, at);
	else if (bth->opcode == WIRE_RC_READ_RESP_MIDDLE)
		n = rxe_req_zcopy(rq, wire_bth_psn(bth), n, head->len, at);
	else
		return 0;
	if (n)
		rxe_writes_run(rq->rxe);
	return n;
}
