// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * QP attributes and address paths in a QP context: a table of fields, and functions for fields with another encoding.
 */
#include "emu/connectx/connectx_internal.h"

struct field {
	struct wire_field theirs;
	u16 ours, size;
};

#define MEMBER(type, m) (u16) offsetof(type, m), (u16)sizeof(((type *)0)->m)
#define QPC(name, attr)                                                                    \
	{                                                                                  \
		{ CX_AT_qpc_##name, CX_BITS_qpc_##name }, MEMBER(struct hca_qp_attr, attr) \
	}
#define ADS(name, type, m)                                                \
	{                                                                 \
		{ CX_AT_ads_##name, CX_BITS_ads_##name }, MEMBER(type, m) \
	}
#define PM_ARMED    0
#define PM_REARM    1
#define PM_MIGRATED 3

static const struct field qpc_fields[] = {
	QPC(mtu, path_mtu),
	QPC(remote_qpn, dest_qpn),
	QPC(next_send_psn, sq_psn),
	QPC(next_rcv_psn, rq_psn),
	QPC(retry_count, retry_cnt),
	QPC(rnr_retry, rnr_retry),
	QPC(min_rnr_nak, min_rnr_timer),
	QPC(q_key, qkey),
};

static const struct field ads_fields[] = {
	ADS(rlid, struct hca_av, dlid),
	ADS(sl, struct hca_av, sl),
	ADS(mlid, struct hca_av, src_path_bits),
	ADS(grh, struct hca_av, grh),
	ADS(src_addr_index, struct hca_av, sgid_index),
	ADS(hop_limit, struct hca_av, hop_limit),
	ADS(tclass, struct hca_av, traffic_class),
	ADS(flow_label, struct hca_av, flow_label),
};

/* Static rates by the adapter's code, of which stat_rate_support has the bits; other rates the driver rounds. */
static const u8 rates[16] = {
	[0] = WIRE_RATE_PORT, [1] = WIRE_RATE_56,  [2] = WIRE_RATE_25,  [3] = WIRE_RATE_100,
	[4] = WIRE_RATE_200,  [5] = WIRE_RATE_50,  [6] = WIRE_RATE_400, [7] = WIRE_RATE_2_5,
	[8] = WIRE_RATE_10,   [9] = WIRE_RATE_30,  [10] = WIRE_RATE_5,  [11] = WIRE_RATE_20,
	[12] = WIRE_RATE_40,  [13] = WIRE_RATE_60, [14] = WIRE_RATE_80, [15] = WIRE_RATE_120,
};
static_assert(CX_STATIC_RATES == 0xfffe, "all codes but 0");

u8 cx_static_rate(u32 code)
{
	return rates[code];
}

static u32 rate_code(u8 rate)
{
	u32 i = ARRAY_SIZE(rates) - 1;

	while (i && rates[i] != rate)
		i--;
	return i;
}

static void fields_in(const struct field *f, u32 n, void *to, const u8 *from)
{
	for (; n; n--, f++)
		wire_member_store((u8 *)to + f->ours, f->size, (u32)wire_get(from, f->theirs));
}

static void fields_out(const struct field *f, u32 n, u8 *to, const void *from)
{
	for (; n; n--, f++)
		wire_set(to, f->theirs, wire_member_load((const u8 *)from + f->ours, f->size));
}

/* Translates port 1 of the function to its port of the HCA; other numbers are invalid (0xff), 0 means none. */
static u8 port_in(const struct connectx *d, const u8 *ads)
{
	u32 port = (u32)cx_get(ads, ads, vhca_port_num);

	return port == 1 ? d->cfg.port : port ? 0xff : 0;
}

static void av_in(const struct connectx *d, struct hca_av *av, const u8 *ads)
{
	fields_in(ads_fields, ARRAY_SIZE(ads_fields), av, ads);
	av->port = port_in(d, ads);
	av->static_rate = cx_static_rate((u32)cx_get(ads, ads, stat_rate));
	memcpy(av->dgid.raw, cx_cptr(ads, ads, rgid_rip), sizeof(av->dgid.raw));
}

static void av_out(u8 *ads, const struct hca_av *av)
{
	fields_out(ads_fields, ARRAY_SIZE(ads_fields), ads, av);
	cx_set(ads, ads, vhca_port_num, !!av->port);
	cx_set(ads, ads, stat_rate, rate_code(av->static_rate));
	memcpy(cx_ptr(ads, ads, rgid_rip), av->dgid.raw, sizeof(av->dgid.raw));
}

void cx_attr_in(const struct connectx *d, struct hca_qp_attr *a, const u8 *qpc)
{
	const u8 *path = cx_cptr(qpc, qpc, primary_address_path), *alt = cx_cptr(qpc, qpc, secondary_address_path);
	u32 pm = (u32)cx_get(qpc, qpc, pm_state);

	*a = (struct hca_qp_attr){ 0 };
	fields_in(qpc_fields, ARRAY_SIZE(qpc_fields), a, qpc);
	av_in(d, &a->av, path);
	av_in(d, &a->alt_av, alt);
	a->port = port_in(d, path);
	a->pkey_index = (u16)cx_get(path, ads, pkey_index);
	a->timeout = (u8)cx_get(path, ads, ack_timeout);
	a->alt_port = port_in(d, alt);
	a->alt_pkey_index = (u16)cx_get(alt, ads, pkey_index);
	a->alt_timeout = (u8)cx_get(alt, ads, ack_timeout);
	a->max_rd_atomic = (u8)BIT(cx_get(qpc, qpc, log_sra_max));
	a->max_dest_rd_atomic = (u8)BIT(cx_get(qpc, qpc, log_rra_max));
	a->access = (cx_get(qpc, qpc, rre) ? HCA_ACCESS_REMOTE_READ : 0) |
		    (cx_get(qpc, qpc, rwe) ? HCA_ACCESS_REMOTE_WRITE : 0) |
		    (cx_get(qpc, qpc, rae) ? HCA_ACCESS_REMOTE_ATOMIC : 0);
	a->path_mig_state = pm == PM_ARMED ? HCA_MIG_ARMED : pm == PM_REARM ? HCA_MIG_REARM : HCA_MIG_MIGRATED;
}

static u8 state_out(u8 state, bool draining)
{
	static const u8 codes[] = {
		[HCA_QPS_RESET] = 0, [HCA_QPS_INIT] = 1, [HCA_QPS_RTR] = 2, [HCA_QPS_RTS] = 3,
		[HCA_QPS_SQD] = 5,   [HCA_QPS_SQE] = 4,  [HCA_QPS_ERR] = 6,
	};

	return state == HCA_QPS_SQD && draining ? 7 : codes[state % ARRAY_SIZE(codes)];
}

static u32 log_of(u8 n)
{
	return n > 1 ? 32u - (u32)__builtin_clz(n - 1u) : 0;
}

void cx_attr_out(const struct connectx *d, u8 *qpc, const struct hca_qp_attr *a)
{
	static const u8 pm[] = {
		[HCA_MIG_MIGRATED] = PM_MIGRATED, [HCA_MIG_REARM] = PM_REARM, [HCA_MIG_ARMED] = PM_ARMED
	};
	u8 *path = cx_ptr(qpc, qpc, primary_address_path), *alt = cx_ptr(qpc, qpc, secondary_address_path);

	fields_out(qpc_fields, ARRAY_SIZE(qpc_fields), qpc, a);
	av_out(path, &a->av);
	av_out(alt, &a->alt_av);
	cx_set(path, ads, vhca_port_num, a->port == d->cfg.port);
	cx_set(path, ads, pkey_index, a->pkey_index);
	cx_set(path, ads, ack_timeout, a->timeout);
	cx_set(alt, ads, pkey_index, a->alt_pkey_index);
	cx_set(alt, ads, ack_timeout, a->alt_timeout);
	cx_set(qpc, qpc, log_sra_max, log_of(a->max_rd_atomic));
	cx_set(qpc, qpc, log_rra_max, log_of(a->max_dest_rd_atomic));
	cx_set(qpc, qpc, rre, !!(a->access & HCA_ACCESS_REMOTE_READ));
	cx_set(qpc, qpc, rwe, !!(a->access & HCA_ACCESS_REMOTE_WRITE));
	cx_set(qpc, qpc, rae, !!(a->access & HCA_ACCESS_REMOTE_ATOMIC));
	cx_set(qpc, qpc, pm_state, pm[a->path_mig_state % ARRAY_SIZE(pm)]);
	cx_set(qpc, qpc, state, state_out(a->state, a->sq_draining));
}
