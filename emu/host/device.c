// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* uverbs commands QUERY_DEVICE, QUERY_PORT and similar, and copying of command arguments. */
#include <errno.h>
#include <fcntl.h>

#include "emu/hca/iw.h"
#include "emu/host/command.h"

#define PAGE_SIZES  0xfffff000ull
#define MAX_MESSAGE (1u << 31)

int uv_call_in(const struct uv_call *c, void *dst, size_t size)
{
	if (c->in_len < size)
		return -EINVAL;
	memcpy(dst, c->in, size);
	return 0;
}

void uv_call_in_some(const struct uv_call *c, void *dst, size_t size)
{
	size_t have = min(c->in_core, min(c->in_len, size));

	memset(dst, 0, size);
	memcpy(dst, c->in, have);
}

void uv_call_out(struct uv_call *c, const void *src, size_t size)
{
	memcpy(c->out, src, min(size, c->out_core));
}

void uv_call_out_driver(struct uv_call *c, size_t core, const void *src, size_t size)
{
	memcpy(c->out + (c->ex ? c->out_core : core), src, size);
}

int uv_get_context(struct uv_call *c)
{
	struct ib_uverbs_get_context_resp resp = { .num_comp_vectors = UV_VECTORS };
	int err;

	if (c->u->async.theirs >= 0)
		return -EINVAL;
	err = uv_events_open(&c->u->async, uv_server_loop(c->u->file->server), c->u->file->opener->pid);
	if (err)
		return err;
	c->out_fd = fcntl(c->u->async.theirs, F_DUPFD_CLOEXEC, 0);
	if (c->out_fd < 0) {
		err = -errno;
		uv_events_close(&c->u->async);
		return err;
	}
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

/*
 * Bad P_Key and Q_Key counters, path migration, port active event, SYS_IMAGE_GUID, RC RNR NAK, memory windows of types
 * 1 and 2B, memory management extensions (SEND with Invalidate, local invalidate); SRQ resize, except on iWARP.
 */
u32 uv_device_caps(const struct uv_host *h)
{
	return 1 << 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 17 | 1 << 21 | 1 << 24 |
	       (hca_iw(h->hca) ? 0 : 1 << 13);
}

static struct ib_uverbs_query_device_resp device_of(const struct uverbs *u)
{
	const struct uv_host *h = u->file->host;
	const struct hca_caps *caps = hca_caps(h->hca);
	bool iwarp = hca_iw(h->hca), soft = uv_host_is_soft(h);

	return (struct ib_uverbs_query_device_resp){
		.fw_ver = soft ? 0 : 1ull << 32, /* librxe prints it as 1.0.0 */
		.node_guid = cpu_to_be64(hca_node_guid(h->hca)),
		.sys_image_guid = cpu_to_be64(hca_sys_image_guid(h->hca)),
		.max_mr_size = caps->max_mr_size,
		.page_size_cap = PAGE_SIZES,
		/* as siw and rdma_rxe: a hardware vendor's ID would select that vendor's provider */
		.vendor_id = iwarp ? 0x626d74 : 0xffffff,
		.vendor_part_id = iwarp,
		.max_qp = caps->max_qp < UV_HANDLES ? caps->max_qp : UV_HANDLES,
		.max_qp_wr = caps->max_qp_wr,
		.device_cap_flags = uv_device_caps(h),
		.max_sge = caps->max_sge,
		.max_sge_rd = iwarp ? 1 : caps->max_sge, /* RFC 5040, 4.4: one sink */
		.max_cq = caps->max_cq < UV_HANDLES ? caps->max_cq : UV_HANDLES,
		.max_cqe = caps->max_cqe,
		.max_mr = caps->max_mr,
		.max_pd = caps->max_pd,
		.max_qp_rd_atom = caps->max_qp_rd_atom,
		.max_res_rd_atom = caps->max_qp_rd_atom * 1024,
		.max_qp_init_rd_atom = caps->max_qp_init_rd_atom,
		.atomic_cap = !iwarp, /* IB_ATOMIC_HCA */
		.max_mw = caps->max_mw,
		.max_mcast_grp = caps->max_mcast_grp,
		.max_mcast_qp_attach = caps->max_mcast_qp_attach,
		.max_total_mcast_qp_attach = caps->max_mcast_grp * caps->max_mcast_qp_attach,
		.max_ah = caps->max_ah,
		.max_srq = caps->max_srq < UV_HANDLES ? caps->max_srq : UV_HANDLES,
		.max_srq_wr = caps->max_srq_wr,
		.max_srq_sge = caps->max_srq_sge,
		.max_pkeys = h->port[0]->attr.pkeys,
		.local_ca_ack_delay = caps->local_ca_ack_delay,
		.phys_port_cnt = h->nports,
	};
}

int uv_query_device(struct uv_call *c)
{
	struct ib_uverbs_query_device_resp resp = device_of(c->u);

	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

/* IBV_ODP_SUPPORT_* */
enum {
	ODP_SUPPORT = 1 << 0,
	ODP_IMPLICIT = 1 << 1, /* regions of the whole address space */

	ODP_SEND = 1 << 0,
	ODP_RECV = 1 << 1,
	ODP_WRITE = 1 << 2,
	ODP_READ = 1 << 3,
	ODP_ATOMIC = 1 << 4,
	ODP_SRQ_RECV = 1 << 5,
};

bool uv_has_odp(const struct uv_host *h)
{
	return !hca_iw(h->hca); /* siw has none */
}

static struct ib_uverbs_odp_caps odp_caps(const struct uv_host *h)
{
	if (!uv_has_odp(h))
		return (struct ib_uverbs_odp_caps){ 0 };
	return (struct ib_uverbs_odp_caps){
		.general_caps = ODP_SUPPORT | ODP_IMPLICIT,
		.per_transport_caps = {
			.rc_odp_caps = ODP_SEND | ODP_RECV | ODP_WRITE | ODP_READ | ODP_ATOMIC | ODP_SRQ_RECV,
			.uc_odp_caps = ODP_SEND | ODP_RECV | ODP_WRITE,
			.ud_odp_caps = ODP_SEND | ODP_RECV | ODP_SRQ_RECV,
		},
	};
}

int uv_ex_query_device(struct uv_call *c)
{
	struct ib_uverbs_ex_query_device_resp resp = { .base = device_of(c->u),
						       .odp_caps = odp_caps(c->u->file->host) };

	resp.response_length = (u32)min(sizeof(resp), c->out_core);
	resp.device_cap_flags_ex = resp.base.device_cap_flags;
	if (c->out_core < offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps))
		return -ENOSPC;
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

/* The kernel's ib_port_speed: the older codes, then FDR10, FDR, EDR, HDR, NDR; XDR (256)
 * does not fit in the write ABI's byte. */
static u8 speed_of(const struct wire_port_attr *a)
{
	static const struct {
		u8 ext, speed;
	} map[] = { { 32, 128 }, { 8, 128 }, { 4, 64 }, { 2, 32 }, { 1, 16 } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (a->speed_ext_active & map[i].ext)
			return map[i].speed;
	}
	if (a->fdr10_active)
		return 8;
	return a->speed_active ? a->speed_active : 1;
}

int uv_query_port(struct uv_call *c)
{
	struct ib_uverbs_query_port cmd;
	struct ib_uverbs_query_port_resp resp = { 0 };
	const struct wire_port_attr *a;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	if (!hca_port(c->u->file->host->hca, cmd.port_num))
		return -EINVAL;
	a = &hca_port(c->u->file->host->hca, cmd.port_num)->attr;
	resp.port_cap_flags = a->cap_mask;
	resp.max_msg_sz = MAX_MESSAGE;
	resp.bad_pkey_cntr = a->pkey_violations;
	resp.qkey_viol_cntr = a->qkey_violations;
	resp.gid_tbl_len = a->gids;
	resp.pkey_tbl_len = a->pkeys;
	resp.lid = a->lid;
	resp.sm_lid = a->sm_lid;
	resp.state = a->state;
	resp.max_mtu = a->mtu_cap;
	resp.active_mtu = a->mtu_active;
	resp.lmc = a->lmc;
	resp.max_vl_num = a->max_vl;
	resp.sm_sl = a->sm_sl;
	resp.subnet_timeout = a->subnet_timeout;
	resp.init_type_reply = a->init_type_reply;
	resp.active_width = a->width_active;
	resp.active_speed = speed_of(a);
	resp.phys_state = a->phys_state;
	resp.link_layer = a->link_layer == WIRE_LINK_ETHERNET ? 2 : 1;
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}
