// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Default capabilities of an HCA (Query HCA, IBTA 11.2.1). */
#include "emu/hca/hca.h"

const struct hca_caps hca_caps_default = {
	.max_qp = 1 << 16,
	.max_qp_wr = 1 << 14,
	.max_sge = HCA_MAX_SGE,
	.max_cq = 1 << 16,
	.max_cqe = 1 << 18,
	.max_mr = 1 << 18,
	.max_pd = 1 << 15,
	.max_srq = 1 << 15,
	.max_srq_wr = 1 << 15,
	.max_srq_sge = HCA_MAX_SGE,
	.max_mw = 1 << 16,
	.max_ah = 1 << 16,
	.max_xrcd = 1 << 13,
	.max_mcast_grp = 8192,
	.max_mcast_qp_attach = 248,
	.max_qp_rd_atom = 128,
	.max_qp_init_rd_atom = 128,
	.local_ca_ack_delay = 15,
	.max_inline = HCA_MAX_INLINE,
	.max_mr_size = 1ull << 46,
};
