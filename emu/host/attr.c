// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP attributes and address vectors of ib_user_verbs.h: tables of fields for the translator in emu/verbs. */
#include "emu/host/attr.h"

#include "emu/verbs/attr.h"

/* Address fields at prefix @a ("member." or nothing) and global route at @g of @type, for the
 * address vector @av of @canon. */
#define ADDRESS(type, a, g, canon, av)                                                                        \
	VERBS_FIELD(type, a dlid, canon, av dlid), VERBS_FIELD(type, a sl, canon, av sl),                     \
		VERBS_FIELD(type, a src_path_bits, canon, av src_path_bits),                                  \
		VERBS_FIELD(type, a static_rate, canon, av static_rate),                                      \
		VERBS_FIELD(type, a port_num, canon, av port), VERBS_FIELD(type, a is_global, canon, av grh), \
		VERBS_FIELD(type, g sgid_index, canon, av sgid_index),                                        \
		VERBS_FIELD(type, g hop_limit, canon, av hop_limit),                                          \
		VERBS_FIELD(type, g traffic_class, canon, av traffic_class),                                  \
		VERBS_FIELD(type, g flow_label, canon, av flow_label), VERBS_FIELD(type, g dgid, canon, av dgid)

/* The fields common to all structures with QP attributes. */
#define ATTRIBUTES(type)                                                                                          \
	VERBS_ATTR(type, qp_state, state), VERBS_ATTR(type, cur_qp_state, cur_state),                             \
		VERBS_ATTR(type, path_mtu, path_mtu), VERBS_ATTR(type, path_mig_state, path_mig_state),           \
		VERBS_ATTR(type, qkey, qkey), VERBS_ATTR(type, rq_psn, rq_psn), VERBS_ATTR(type, sq_psn, sq_psn), \
		VERBS_ATTR(type, dest_qp_num, dest_qpn), VERBS_ATTR(type, qp_access_flags, access),               \
		VERBS_ATTR(type, pkey_index, pkey_index), VERBS_ATTR(type, alt_pkey_index, alt_pkey_index),       \
		VERBS_ATTR(type, max_rd_atomic, max_rd_atomic),                                                   \
		VERBS_ATTR(type, max_dest_rd_atomic, max_dest_rd_atomic),                                         \
		VERBS_ATTR(type, min_rnr_timer, min_rnr_timer), VERBS_ATTR(type, port_num, port),                 \
		VERBS_ATTR(type, timeout, timeout), VERBS_ATTR(type, retry_cnt, retry_cnt),                       \
		VERBS_ATTR(type, rnr_retry, rnr_retry), VERBS_ATTR(type, alt_port_num, alt_port),                 \
		VERBS_ATTR(type, alt_timeout, alt_timeout)

#define MODIFY struct ib_uverbs_modify_qp
static const struct verbs_field modify_fields[] = {
	ATTRIBUTES(MODIFY),
	VERBS_ATTR(MODIFY, en_sqd_async_notify, en_sqd_async_notify),
	ADDRESS(MODIFY, dest., dest., struct hca_qp_attr, av.),
	ADDRESS(MODIFY, alt_dest., alt_dest., struct hca_qp_attr, alt_av.),
};

#define QUERY struct ib_uverbs_query_qp_resp
static const struct verbs_field query_fields[] = {
	ATTRIBUTES(QUERY),
	VERBS_ATTR(QUERY, sq_draining, sq_draining),
	ADDRESS(QUERY, dest., dest., struct hca_qp_attr, av.),
	ADDRESS(QUERY, alt_dest., alt_dest., struct hca_qp_attr, alt_av.),
};

#define CM struct ib_uverbs_qp_attr
static const struct verbs_field cm_fields[] = {
	ATTRIBUTES(CM),
	ADDRESS(CM, ah_attr., ah_attr.grh., struct hca_qp_attr, av.),
};

static const struct verbs_field ah_fields[] = { ADDRESS(struct ib_uverbs_ah_attr, , grh., struct hca_av, ) };

void uv_attr_in(struct hca_qp_attr *a, const struct ib_uverbs_modify_qp *cmd)
{
	*a = (struct hca_qp_attr){ 0 };
	verbs_fields_in(modify_fields, ARRAY_SIZE(modify_fields), a, cmd);
}

void uv_attr_out(struct ib_uverbs_query_qp_resp *resp, const struct hca_qp_attr *a)
{
	verbs_fields_out(query_fields, ARRAY_SIZE(query_fields), resp, a);
}

void uv_attr_out_cm(struct ib_uverbs_qp_attr *resp, const struct hca_qp_attr *a)
{
	verbs_fields_out(cm_fields, ARRAY_SIZE(cm_fields), resp, a);
}

void uv_av_in(struct hca_av *av, const struct ib_uverbs_ah_attr *a)
{
	*av = (struct hca_av){ 0 };
	verbs_fields_in(ah_fields, ARRAY_SIZE(ah_fields), av, a);
}

void uv_av_out(struct ib_uverbs_ah_attr *a, const struct hca_av *av)
{
	verbs_fields_out(ah_fields, ARRAY_SIZE(ah_fields), a, av);
}
