// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MADs for the port's own agents, which are in the daemon. */
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>

#include "emu/guest/muslin.h"

static bool for_agents(const struct ib_mad_hdr *h)
{
	if (h->mgmt_class != IB_MGMT_CLASS_SUBN_LID_ROUTED && h->mgmt_class != IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE &&
	    h->mgmt_class != IB_MGMT_CLASS_PERF_MGMT)
		return false;
	return h->method == IB_MGMT_METHOD_GET || h->method == IB_MGMT_METHOD_SET;
}

int mu_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		   const struct ib_mad *in, struct ib_mad *out, size_t *out_len, u16 *pkey_index)
{
	struct muslin_mad_answer answer;
	struct muslin_mad cmd = { .port = port };

	if (!for_agents(&in->mad_hdr))
		return IB_MAD_RESULT_SUCCESS;
	memcpy(cmd.mad, in, sizeof(cmd.mad));
	if (mu_command(to_mu_dev(ibdev), MUSLIN_MAD, &cmd, sizeof(cmd), &answer, sizeof(answer)))
		return IB_MAD_RESULT_FAILURE;
	if (!answer.replied)
		return IB_MAD_RESULT_SUCCESS;
	memcpy(out, answer.mad, sizeof(answer.mad));
	if (out->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		out->mad_hdr.status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
