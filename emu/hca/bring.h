/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: moves a queue pair to RTR or RTS with the attributes that each transition of
 * its type requires (IBTA 11.2.5). */
#ifndef MUSLIN_HCA_BRING_H
#define MUSLIN_HCA_BRING_H

#include "emu/hca/engine.h"

/* The required attributes beside the state, for a transition to INIT, RTR or RTS. */
static inline u32 bring_mask(enum hca_qp_type type, enum hca_qp_state to)
{
	static const struct {
		u32 rc, uc, datagram;
	} masks[] = {
		[HCA_QPS_INIT] = { .rc = HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS,
				   .uc = HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS,
				   .datagram = HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY },
		[HCA_QPS_RTR] = { .rc = HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN |
					HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER,
				  .uc = HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN },
		[HCA_QPS_RTS] = { .rc = HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY | HCA_QP_SQ_PSN |
					HCA_QP_MAX_QP_RD_ATOMIC,
				  .uc = HCA_QP_SQ_PSN,
				  .datagram = HCA_QP_SQ_PSN },
	};

	if (type == HCA_QPT_RC || type >= HCA_QPT_XRC_INI)
		return masks[to].rc;
	if (type == HCA_QPT_UC)
		return masks[to].uc;
	return masks[to].datagram & (type == HCA_QPT_UD ? ~0u : ~(u32)HCA_QP_PORT);
}

/* Moves the QP from its present state step by step to @to (at most RTS). Returns 0 or the
 * error of the step that failed. */
static inline int bring_to(struct hca_qp *qp, struct hca_qp_attr attr, enum hca_qp_state to)
{
	int err = 0;

	for (attr.state = (u8)(qp->state + 1); attr.state <= to && !err; attr.state++)
		err = hca_qp_modify(qp->ctx, qp->qpn, &attr, HCA_QP_STATE | bring_mask(qp->type, attr.state));
	return err;
}

#endif
