// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP attributes and address vectors of the guest driver's ABI: tables of fields for the translator in emu/verbs. */
#include "emu/verbs/attr.h"

#include "emu/virtio/virtio_internal.h"

/* Address vector fields at prefix @a ("member." or nothing) of @type, for the address vector @av of @canon. */
#define ADDRESS(type, a, canon, av)                                                                                 \
	VERBS_FIELD(type, a dlid, canon, av dlid), VERBS_FIELD(type, a sl, canon, av sl),                           \
		VERBS_FIELD(type, a path_bits, canon, av src_path_bits),                                            \
		VERBS_FIELD(type, a static_rate, canon, av static_rate), VERBS_FIELD(type, a port, canon, av port), \
		VERBS_FIELD(type, a grh, canon, av grh), VERBS_FIELD(type, a sgid_index, canon, av sgid_index),     \
		VERBS_FIELD(type, a hop_limit, canon, av hop_limit),                                                \
		VERBS_FIELD(type, a traffic_class, canon, av traffic_class),                                        \
		VERBS_FIELD(type, a dmac, canon, av dmac), VERBS_FIELD(type, a flow_label, canon, av flow_label),   \
		VERBS_FIELD(type, a dgid, canon, av dgid)
#define ATTR(name) VERBS_ATTR(struct muslin_qp_attr, name, name)

static const struct verbs_field attr_fields[] = {
	ATTR(state),
	ATTR(cur_state),
	ATTR(path_mtu),
	ATTR(path_mig_state),
	ATTR(qkey),
	ATTR(rq_psn),
	ATTR(sq_psn),
	ATTR(dest_qpn),
	ATTR(access),
	ATTR(pkey_index),
	ATTR(alt_pkey_index),
	ATTR(en_sqd_async_notify),
	ATTR(sq_draining),
	ATTR(max_rd_atomic),
	ATTR(max_dest_rd_atomic),
	ATTR(min_rnr_timer),
	ATTR(port),
	ATTR(timeout),
	ATTR(retry_cnt),
	ATTR(rnr_retry),
	ATTR(alt_port),
	ATTR(alt_timeout),
	ADDRESS(struct muslin_qp_attr, av., struct hca_qp_attr, av.),
	ADDRESS(struct muslin_qp_attr, alt_av., struct hca_qp_attr, alt_av.),
};

static const struct verbs_field av_fields[] = { ADDRESS(struct muslin_av, , struct hca_av, ) };

void vd_attr_in(struct hca_qp_attr *a, const struct muslin_qp_attr *m)
{
	*a = (struct hca_qp_attr){ 0 };
	verbs_fields_in(attr_fields, ARRAY_SIZE(attr_fields), a, m);
}

void vd_attr_out(struct muslin_qp_attr *m, const struct hca_qp_attr *a)
{
	*m = (struct muslin_qp_attr){ 0 };
	verbs_fields_out(attr_fields, ARRAY_SIZE(attr_fields), m, a);
}

void vd_av_in(struct hca_av *av, const struct muslin_av *a)
{
	*av = (struct hca_av){ 0 };
	verbs_fields_in(av_fields, ARRAY_SIZE(av_fields), av, a);
}
