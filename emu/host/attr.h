/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* QP attributes and address vectors: structures of ib_user_verbs.h from and to canonical ones. */
#ifndef MUSLIN_HOST_ATTR_H
#define MUSLIN_HOST_ATTR_H

#include <rdma/ib_user_verbs.h>

#include "emu/hca/hca.h"

void uv_attr_in(struct hca_qp_attr *a, const struct ib_uverbs_modify_qp *cmd);
void uv_attr_out(struct ib_uverbs_query_qp_resp *resp, const struct hca_qp_attr *a);
void uv_attr_out_cm(struct ib_uverbs_qp_attr *resp, const struct hca_qp_attr *a); /* for rdma_cm */
void uv_av_in(struct hca_av *av, const struct ib_uverbs_ah_attr *a);
void uv_av_out(struct ib_uverbs_ah_attr *a, const struct hca_av *av);

#endif
