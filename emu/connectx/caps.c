// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Queries of the adapter: capabilities, board, ISSI and port (HCA vport context). */
#include <stdio.h>

#include "emu/connectx/connectx_internal.h"

#define MELLANOX         0x2c9
#define LOG_UAR_PAGE_MAX 8 /* pages of 1 MiB */

enum {
	CAP_GENERAL = 0,
	CAP_ODP = 2,
	CAP_ATOMIC = 3,
};

/*
 * log2, rounded down. If a fault sets a limit to 0, the driver reads a limit of 1, and the command to create that one
 * object fails.
 */
static u32 log_of(u64 n)
{
	return n ? 63u - (u32)__builtin_clzll(n) : 0;
}

/*
 * BlueFlame (bf) is not offered: with it rdma-core copies each request of up to half of a register to the UAR, and each
 * 8 bytes of it cause an exit of the guest and a message of QEMU, where a doorbell causes one. QEMU's vfio-user client
 * supports neither write combining nor ioeventfds, and writes to a UAR that the guest maps would not notify the daemon.
 * Requests of a driver that uses BlueFlame nevertheless are executed: the first 8 bytes are the doorbell, and the
 * request is in the queue, too. docs/scale.md has figures.
 */
static void caps_general(const struct connectx *d, u8 *c)
{
	const struct hca_caps *caps = hca_caps(d->cfg.hca);
	const struct {
		struct wire_field field;
		u32 value;
	} set[] = {
		/* sizes and numbers */
		{ CX_FIELD(cmd_hca_cap, log_max_qp), log_of(caps->max_qp) },
		{ CX_FIELD(cmd_hca_cap, log_max_qp_sz), 15 }, /* in WQE basic blocks of 64 bytes */
		{ CX_FIELD(cmd_hca_cap, log_max_srq), log_of(caps->max_srq) },
		{ CX_FIELD(cmd_hca_cap, log_max_srq_sz), log_of(caps->max_srq_wr) },
		{ CX_FIELD(cmd_hca_cap, log_max_cq), log_of(caps->max_cq) },
		{ CX_FIELD(cmd_hca_cap, log_max_cq_sz), log_of(caps->max_cqe) + 1 }, /* as in cq_entries() */
		{ CX_FIELD(cmd_hca_cap, log_max_eq), log_of(CX_EQS - 1) },
		{ CX_FIELD(cmd_hca_cap, log_max_eq_sz), 22 },
		{ CX_FIELD(cmd_hca_cap, log_max_mkey), log_of(caps->max_mr) },
		{ CX_FIELD(cmd_hca_cap, log_max_mrw_sz), 40 },
		{ CX_FIELD(cmd_hca_cap, log_max_klm_list_size), log_of(CX_REG_ENTRIES) },
		{ CX_FIELD(cmd_hca_cap, max_indirection), 1 },
		{ CX_FIELD(cmd_hca_cap, log_max_ra_req_qp), log_of(caps->max_qp_rd_atom) },
		{ CX_FIELD(cmd_hca_cap, log_max_ra_res_qp), log_of(caps->max_qp_init_rd_atom) },
		{ CX_FIELD(cmd_hca_cap, log_max_pd), log_of(caps->max_pd) },
		{ CX_FIELD(cmd_hca_cap, log_max_xrcd), log_of(caps->max_xrcd) },
		{ CX_FIELD(cmd_hca_cap, log_max_mcg), log_of(caps->max_mcast_grp) },
		{ CX_FIELD(cmd_hca_cap, max_qp_mcg), caps->max_mcast_qp_attach },
		{ CX_FIELD(cmd_hca_cap, log_max_msg), 30 },
		{ CX_FIELD(cmd_hca_cap, max_wqe_sz_sq), CX_WQE_BB * CX_WQE_BBS },
		{ CX_FIELD(cmd_hca_cap, max_wqe_sz_rq), HCA_MAX_SGE * 16 },
		{ CX_FIELD(cmd_hca_cap, max_qp_cnt), 255 },
		{ CX_FIELD(cmd_hca_cap, log_pg_sz), 12 },
		{ CX_FIELD(cmd_hca_cap, uar_sz), 5 },
		{ CX_FIELD(cmd_hca_cap, log_bf_reg_size), 9 },
		{ CX_FIELD(cmd_hca_cap, num_of_uars_per_page), 1 },
		{ CX_FIELD(cmd_hca_cap, local_ca_ack_delay), caps->local_ca_ack_delay },
		{ CX_FIELD(cmd_hca_cap, device_frequency_mhz), CX_CLOCK_KHZ / 1000 },
		{ CX_FIELD(cmd_hca_cap, device_frequency_khz), CX_CLOCK_KHZ },
		{ CX_FIELD(cmd_hca_cap, num_ports), 1 },
		/* 16 GIDs (code 1 of 8 << code), 128 P_Keys (code 0 of 128 << code) */
		{ CX_FIELD(cmd_hca_cap, gid_table_size), 1 },
		{ CX_FIELD(cmd_hca_cap, pkey_table_size), 0 },
		/* transport services and features */
		{ CX_FIELD(cmd_hca_cap, rc), 1 },
		{ CX_FIELD(cmd_hca_cap, uc), 1 },
		{ CX_FIELD(cmd_hca_cap, ud), 1 },
		{ CX_FIELD(cmd_hca_cap, xrc), 1 },
		{ CX_FIELD(cmd_hca_cap, atomic), 1 },
		{ CX_FIELD(cmd_hca_cap, imaicl), 1 }, /* memory windows, and registrations with gaps (SG_GAPS) */
		{ CX_FIELD(cmd_hca_cap, apm), 1 },
		{ CX_FIELD(cmd_hca_cap, pkv), 1 },
		{ CX_FIELD(cmd_hca_cap, qkv), 1 },
		{ CX_FIELD(cmd_hca_cap, block_lb_mc), 1 },
		{ CX_FIELD(cmd_hca_cap, set_deth_sqpn), 1 },
		{ CX_FIELD(cmd_hca_cap, ipoib_basic_offloads), 1 },
		{ CX_FIELD(cmd_hca_cap, force_teardown), 1 },
		{ CX_FIELD(cmd_hca_cap, cq_oi), 1 },
		{ CX_FIELD(cmd_hca_cap, cq_resize), 1 },
		{ CX_FIELD(cmd_hca_cap, cq_moderation), 1 },
		{ CX_FIELD(cmd_hca_cap, out_of_seq_cnt), 1 },
		{ CX_FIELD(cmd_hca_cap, retransmission_q_counters), 1 },
		{ CX_FIELD(cmd_hca_cap, rts2rts_qp_counters_set_id), 1 },
		{ CX_FIELD(cmd_hca_cap, stat_rate_support), CX_STATIC_RATES },
		{ CX_FIELD(cmd_hca_cap, cqe_version), 1 },
		{ CX_FIELD(cmd_hca_cap, mcam_reg), 1 },
		{ CX_FIELD(cmd_hca_cap, umr_extended_translation_offset), 1 },
		{ CX_FIELD(cmd_hca_cap, pg), 1 },
		{ CX_FIELD(cmd_hca_cap, null_mkey), 1 },
		{ CX_FIELD(cmd_hca_cap, fixed_buffer_size), 1 },
		{ CX_FIELD(cmd_hca_cap, relaxed_ordering_write_umr), 1 },
		{ CX_FIELD(cmd_hca_cap, relaxed_ordering_read_umr), 1 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(set); i++)
		wire_set(c, set[i].field, set[i].value);
}

/* Compare and swap, fetch and add, of 8 bytes in host byte order. */
static void caps_atomic(u8 *c)
{
	cx_set(c, atomic_caps, atomic_req_8B_endianness_mode, 1);
	cx_set(c, atomic_caps, supported_atomic_req_8B_endianness_mode_1, 1);
	cx_set(c, atomic_caps, atomic_operations, 3);
	cx_set(c, atomic_caps, atomic_size_qp, BIT(3));
}

/* On-demand paging: by transport service, the operations that may have page faults. */
static void caps_odp(u8 *c)
{
	enum {
		SEND = BIT(31),
		RECEIVE = BIT(30),
		WRITE = BIT(29),
		READ = BIT(28),
		ATOMIC = BIT(27),
		SRQ_RECEIVE = BIT(26),
	};

	cx_set(c, odp_cap, rc_odp_caps, SEND | RECEIVE | WRITE | READ | ATOMIC | SRQ_RECEIVE);
	cx_set(c, odp_cap, ud_odp_caps, SEND | SRQ_RECEIVE);
	cx_set(c, odp_cap, xrc_odp_caps, SEND | RECEIVE | WRITE | READ | ATOMIC | SRQ_RECEIVE);
}

/* The modifier's lowest bit selects current or maximum values, which are the same. */
int cx_query_hca_cap(struct connectx *d, const struct cx_cmd *c)
{
	u8 *cap = cx_ptr(c->out, query_hca_cap_out, capability);

	switch (c->op_mod >> 1) {
	case CAP_GENERAL:
		caps_general(d, cap);
		return CX_OK;
	case CAP_ODP:
		caps_odp(cap);
		return CX_OK;
	case CAP_ATOMIC:
		caps_atomic(cap);
		return CX_OK;
	default:
		return CX_BAD_PARAM;
	}
}

/*
 * The driver's choice among its capabilities. Of those that are offered, only the size of a UAR depends on it: that of
 * the driver's pages, in units of log2 from 4,096 bytes on.
 */
int cx_set_hca_cap(struct connectx *d, const struct cx_cmd *c)
{
	u32 log = (u32)cx_get(cx_cptr(c->in, set_hca_cap_in, capability), cmd_hca_cap, log_uar_page_sz);

	if (c->op_mod >> 1 != CAP_GENERAL)
		return CX_OK;
	if (log > LOG_UAR_PAGE_MAX)
		return CX_BAD_PARAM;
	d->log_uar_page = (u8)log;
	return CX_OK;
}

int cx_query_adapter(struct connectx *d, const struct cx_cmd *c)
{
	u8 *a = cx_ptr(c->out, query_adapter_out, query_adapter_struct);

	cx_set(a, query_adapter_param_block, ieee_vendor_id, MELLANOX);
	snprintf((char *)cx_ptr(a, query_adapter_param_block, vsd_contd_psid), 16, "MUS0000000001");
	return CX_OK;
}

/* With interface step sequence 1 drivers create SRQs by CREATE_RMP and CREATE_XRC_SRQ, with 0 by CREATE_SRQ. */
int cx_query_issi(struct connectx *d, const struct cx_cmd *c)
{
	cx_set(c->out, query_issi_out, current_issi, d->issi);
	cx_set(c->out, query_issi_out, supported_issi_dw0, BIT(0) | BIT(1));
	return CX_OK;
}

int cx_set_issi(struct connectx *d, const struct cx_cmd *c)
{
	u64 issi = cx_get(c->in, set_issi_in, current_issi);

	if (issi > 1)
		return CX_BAD_PARAM;
	d->issi = (u8)issi;
	return CX_OK;
}

int cx_special_contexts(struct connectx *d, const struct cx_cmd *c)
{
	cx_set(c->out, query_special_contexts_out, null_mkey, CX_NULL_MKEY);
	return CX_OK;
}

int cx_query_vport(struct connectx *d, const struct cx_cmd *c)
{
	const struct wire_port *w = hca_port(d->cfg.hca, d->cfg.port);
	const struct wire_port_attr *a = &w->attr;
	u8 *v = cx_ptr(c->out, query_hca_vport_context_out, hca_vport_context);

	cx_set(v, hca_vport_context, has_smi, 1);
	cx_set(v, hca_vport_context, port_physical_state, a->phys_state);
	cx_set(v, hca_vport_context, port_state, a->state);
	cx_set(v, hca_vport_context, vport_state, a->state);
	cx_set(v, hca_vport_context, system_image_guid, hca_sys_image_guid(d->cfg.hca));
	cx_set(v, hca_vport_context, port_guid, w->port_guid);
	cx_set(v, hca_vport_context, node_guid, hca_node_guid(d->cfg.hca));
	cx_set(v, hca_vport_context, cap_mask1, a->cap_mask);
	cx_set(v, hca_vport_context, lid, a->lid);
	cx_set(v, hca_vport_context, lmc, a->lmc);
	cx_set(v, hca_vport_context, sm_lid, a->sm_lid);
	cx_set(v, hca_vport_context, sm_sl, a->sm_sl);
	cx_set(v, hca_vport_context, subnet_timeout, a->subnet_timeout);
	cx_set(v, hca_vport_context, init_type_reply, a->init_type_reply);
	cx_set(v, hca_vport_context, qkey_violation_counter, a->qkey_violations);
	cx_set(v, hca_vport_context, pkey_violation_counter, a->pkey_violations);
	return CX_OK;
}
