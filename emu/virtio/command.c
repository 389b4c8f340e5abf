// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The guest driver's commands: a table by number. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/log.h"
#include "emu/virtio/command.h"
#include "emu/wire/smp.h"

static int command_hello(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_hello *cmd = in;
	struct muslin_hello_answer *a = out;
	const struct hca_caps *caps = hca_caps(d->cfg.hca);
	int err;

	if (cmd->magic != MUSLIN_CONFIG_MAGIC || cmd->version != MUSLIN_ABI_VERSION)
		return -EPROTO;
	err = vd_hello(d, cmd->shared);
	if (err)
		return err;
	a->version = MUSLIN_ABI_VERSION;
	a->ports = d->cfg.nports;
	a->node_guid = hca_node_guid(d->cfg.hca);
	a->sys_image_guid = hca_sys_image_guid(d->cfg.hca);
	a->max_mr_size = caps->max_mr_size;
	a->max_qp = min(caps->max_qp, MUSLIN_HANDLES - 1u);
	a->max_qp_wr = caps->max_qp_wr;
	a->max_sge = min(caps->max_sge, (u32)MUSLIN_SGES);
	a->max_cq = min(caps->max_cq, MUSLIN_HANDLES - 1u);
	a->max_cqe = caps->max_cqe;
	a->max_mr = caps->max_mr;
	a->max_pd = caps->max_pd;
	a->max_srq = min(caps->max_srq, MUSLIN_HANDLES - 1u);
	a->max_srq_wr = caps->max_srq_wr;
	a->max_srq_sge = min(caps->max_srq_sge, (u32)MUSLIN_SGES);
	a->max_mw = caps->max_mw;
	a->max_ah = caps->max_ah;
	a->max_mcast_grp = caps->max_mcast_grp;
	a->max_mcast_qp_attach = caps->max_mcast_qp_attach;
	a->max_inline = min(caps->max_inline, (u32)MUSLIN_INLINE);
	a->max_rd_atom = caps->max_qp_rd_atom;
	a->local_ca_ack_delay = caps->local_ca_ack_delay;
	a->features = MUSLIN_FEATURE_UD_CSUM | MUSLIN_FEATURE_UD_LSO;
	a->epoch = d->epoch;
	snprintf(a->name, sizeof(a->name), "%s", d->cfg.name);
	return 0;
}

/* The kernel's ib_port_speed: the older codes, then FDR10, FDR, EDR, HDR, NDR; XDR (256) does not fit in the byte. */
static u8 speed_of(const struct wire_port_attr *a)
{
	u32 ext;

	if (a->speed_ext_active & LINK_SPEED_EXT_XDR)
		return 128;
	for (ext = 8; ext; ext >>= 1) {
		if (a->speed_ext_active & ext)
			return (u8)(ext << 4);
	}
	if (a->fdr10_active)
		return 8;
	return a->speed_active ? a->speed_active : 1;
}

static int query_port(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_object *cmd = in;
	struct muslin_port_answer *a = out;
	const struct wire_port *w = cmd->number <= 0xff ? hca_port(d->cfg.hca, (u8)cmd->number) : NULL;
	const struct wire_port_attr *p;
	u32 i;

	if (!w || cmd->number > d->cfg.nports)
		return -EINVAL;
	p = &w->attr;
	a->guid = w->port_guid;
	a->lid = p->lid;
	a->sm_lid = p->sm_lid;
	a->lmc = p->lmc;
	a->sm_sl = p->sm_sl;
	a->state = p->state;
	a->phys_state = p->phys_state;
	a->mtu_cap = p->mtu_cap;
	a->mtu_active = p->mtu_active;
	a->max_vl = p->max_vl;
	a->width_active = p->width_active;
	a->speed = speed_of(p);
	a->subnet_timeout = p->subnet_timeout;
	a->init_type_reply = p->init_type_reply;
	a->gids = p->gids;
	a->cap_mask = p->cap_mask;
	a->pkeys = p->pkeys;
	a->pkey_violations = p->pkey_violations;
	a->qkey_violations = p->qkey_violations;
	static_assert(MUSLIN_GIDS == WIRE_PORT_GIDS && MUSLIN_PKEYS == WIRE_PORT_PKEYS, "tables of a port");
	for (i = 0; i < MUSLIN_GIDS; i++)
		memcpy(a->gid[i], p->gid[i].raw, sizeof(a->gid[i]));
	for (i = 0; i < MUSLIN_PKEYS; i++)
		a->pkey[i] = p->pkey[i];
	a->ethernet = wire_port_is_ethernet(w);
	memcpy(a->mac, p->mac, sizeof(a->mac));
	return 0;
}

static int set_gid(struct vdev *d, u32 port, u32 index, const struct wire_gid *gid, const struct wire_l2 *l2)
{
	struct wire_port *w = port <= d->cfg.nports ? hca_port(d->cfg.hca, (u8)port) : NULL;

	if (!w || index >= MUSLIN_GIDS)
		return -EINVAL;
	return w->ops->set_gid ? w->ops->set_gid(w, (u8)index, gid, l2) : -EOPNOTSUPP;
}

static int gid_add(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_gid *cmd = in;
	struct wire_gid gid = wire_gid_from_bytes(cmd->gid);
	struct wire_l2 l2 = { .vlan = cmd->vlan, .version = cmd->version };

	if (wire_gid_is_zero(&gid) || cmd->version < 1 || cmd->version > 2 || cmd->vlan >= WIRE_VLAN_ID ||
	    cmd->mac[0] & 1)
		return -EINVAL;
	memcpy(l2.mac, cmd->mac, sizeof(l2.mac));
	return set_gid(d, cmd->port, cmd->index, &gid, &l2);
}

static int gid_del(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_object *cmd = in;
	static const struct wire_gid none;
	static const struct wire_l2 no_l2;

	return set_gid(d, cmd->number, cmd->arg, &none, &no_l2);
}

static int set_cap(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_set_cap *cmd = in;
	struct wire_port *w = cmd->port <= d->cfg.nports ? hca_port(d->cfg.hca, (u8)cmd->port) : NULL;
	u32 *mine;

	if (!w || (cmd->set | cmd->clear) & ~WIRE_PORT_CAPS_SOFTWARE)
		return -EINVAL;
	mine = &d->caps_set[cmd->port - 1];
	*mine = (*mine & ~cmd->clear) | (cmd->set & ~w->attr.cap_mask);
	w->ops->set_cap(w, cmd->set, cmd->clear);
	return 0;
}

static int local_mad(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_mad *cmd = in;
	struct muslin_mad_answer *a = out;

	if (!cmd->port || cmd->port > d->cfg.nports)
		return -EINVAL;
	memcpy(a->mad, cmd->mad, sizeof(a->mad));
	a->replied = d->cfg.local_mad ? (u32)d->cfg.local_mad(d->cfg.arg, (u8)cmd->port, a->mad, false) : 0;
	return 0;
}

static int pd_alloc(struct vdev *d, const void *in, u32 len, void *out)
{
	return hca_pd_alloc(d->verbs.ctx, &((struct muslin_number *)out)->number);
}

static int ah_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_ah_create *cmd = in;
	struct hca_av av;

	vd_av_in(&av, &cmd->av);
	return hca_ah_create(d->verbs.ctx, cmd->pdn, &av, &((struct muslin_number *)out)->number);
}

/* The addresses are in pages that the command lists. */
static int collect_pages(struct vdev *d, const struct muslin_mr_reg *cmd, u64 *pages)
{
	u32 i, left = cmd->npages;

	for (i = 0; left; i++) {
		u32 n = min(left, (u32)MUSLIN_LIST_ADDRS);
		const void *list = vhost_memory(d->vhost, cmd->list[i], n * sizeof(u64));

		if (!list)
			return -EFAULT;
		memcpy(pages + (u64)i * MUSLIN_LIST_ADDRS, list, n * sizeof(u64));
		left -= n;
	}
	return 0;
}

static int mr_reg(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_mr_reg *cmd = in;
	struct hca_mr_init init = { .pdn = cmd->pdn,
				    .access = cmd->access,
				    .iova = cmd->iova,
				    .len = cmd->length,
				    .npages = cmd->npages,
				    .page_shift = cmd->page_shift };
	struct muslin_number *a = out;
	u32 lists = cmd->npages / MUSLIN_LIST_ADDRS + !!(cmd->npages % MUSLIN_LIST_ADDRS);
	u64 *pages;
	int err;

	if (!lists || lists > MUSLIN_LISTS_MAX || len != sizeof(*cmd) + lists * sizeof(u64))
		return -EINVAL;
	if (!vd_pages_left(d, cmd->npages))
		return -ENOMEM;
	pages = malloc(cmd->npages * sizeof(*pages));
	if (!pages)
		return -ENOMEM;
	d->bytes += cmd->npages * sizeof(*pages);
	err = collect_pages(d, cmd, pages);
	init.pages = pages;
	if (!err)
		err = hca_mr_reg_pages(d->verbs.ctx, &init, &a->number, &a->arg);
	free(pages);
	return err;
}

/* One key for all of the guest's memory. */
static int mr_dma(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_object *cmd = in;
	struct muslin_number *a = out;

	return hca_mr_reg(d->verbs.ctx, cmd->number, 0, 0, hca_caps(d->cfg.hca)->max_mr_size, cmd->arg, &a->number,
			  &a->arg);
}

static int mr_alloc(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_object *cmd = in;
	struct muslin_number *a = out;
	int err = -EINVAL;

	if (cmd->arg <= MUSLIN_REG_PAGES)
		err = vd_pages_left(d, cmd->arg) ? hca_mr_alloc(d->verbs.ctx, cmd->number, cmd->arg, &a->number)
						 : -ENOMEM;
	a->arg = a->number;
	return err;
}

static int mw_alloc(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_object *cmd = in;

	return hca_mw_alloc(d->verbs.ctx, cmd->number, (u8)cmd->arg, &((struct muslin_number *)out)->number);
}

static int mcast_attach(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_mcast *cmd = in;

	return verbs_qp_mcast(&d->verbs, cmd->handle, cmd->mgid, cmd->mlid, hca_mcast_attach);
}

static int mcast_detach(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_mcast *cmd = in;

	vd_catch_up(d);
	return verbs_qp_mcast(&d->verbs, cmd->handle, cmd->mgid, cmd->mlid, hca_mcast_detach);
}

#define OBJECT sizeof(struct muslin_object)
#define NUMBER sizeof(struct muslin_number)
#define ANSWER sizeof(struct muslin_answer)

static const struct {
	vd_command *fn;
	u32 in, out;
	bool longer;                                  /* the structure has a variable part */
	int (*free)(struct hca_ctx *ctx, u32 number); /* frees an object of the HCA; used instead of fn() */
} commands[MUSLIN_OPS] = {
	[MUSLIN_HELLO] = { command_hello, sizeof(struct muslin_hello), sizeof(struct muslin_hello_answer) },
	[MUSLIN_QUERY_PORT] = { query_port, OBJECT, sizeof(struct muslin_port_answer) },
	[MUSLIN_SET_CAP] = { set_cap, sizeof(struct muslin_set_cap), ANSWER },
	[MUSLIN_GID_ADD] = { gid_add, sizeof(struct muslin_gid), ANSWER },
	[MUSLIN_GID_DEL] = { gid_del, OBJECT, ANSWER },
	[MUSLIN_MAD] = { local_mad, sizeof(struct muslin_mad), sizeof(struct muslin_mad_answer) },
	[MUSLIN_PD_ALLOC] = { pd_alloc, OBJECT, NUMBER },
	[MUSLIN_PD_FREE] = { NULL, OBJECT, ANSWER, .free = hca_pd_free },
	[MUSLIN_CQ_CREATE] = { vd_cq_create, sizeof(struct muslin_cq_create), NUMBER },
	[MUSLIN_CQ_RESIZE] = { vd_cq_resize, sizeof(struct muslin_cq_create), ANSWER },
	[MUSLIN_CQ_DESTROY] = { vd_cq_destroy, OBJECT, ANSWER },
	[MUSLIN_QP_CREATE] = { vd_qp_create, sizeof(struct muslin_qp_create), NUMBER },
	[MUSLIN_QP_MODIFY] = { vd_qp_modify, sizeof(struct muslin_qp_modify), ANSWER },
	[MUSLIN_QP_QUERY] = { vd_qp_query, OBJECT, sizeof(struct muslin_qp_answer) },
	[MUSLIN_QP_DESTROY] = { vd_qp_destroy, OBJECT, ANSWER },
	[MUSLIN_SRQ_CREATE] = { vd_srq_create, sizeof(struct muslin_srq_create), NUMBER },
	[MUSLIN_SRQ_RESIZE] = { vd_srq_resize, sizeof(struct muslin_srq_create), ANSWER },
	[MUSLIN_SRQ_SET_LIMIT] = { vd_srq_set_limit, OBJECT, ANSWER },
	[MUSLIN_SRQ_QUERY] = { vd_srq_query, OBJECT, NUMBER },
	[MUSLIN_SRQ_DESTROY] = { vd_srq_destroy, OBJECT, ANSWER },
	[MUSLIN_AH_CREATE] = { ah_create, sizeof(struct muslin_ah_create), NUMBER },
	[MUSLIN_AH_DESTROY] = { NULL, OBJECT, ANSWER, .free = hca_ah_destroy },
	[MUSLIN_MR_REG] = { mr_reg, sizeof(struct muslin_mr_reg), NUMBER, true },
	[MUSLIN_MR_DMA] = { mr_dma, OBJECT, NUMBER },
	[MUSLIN_MR_ALLOC] = { mr_alloc, OBJECT, NUMBER },
	[MUSLIN_MR_FREE] = { NULL, OBJECT, ANSWER, .free = hca_mr_dereg },
	[MUSLIN_MW_ALLOC] = { mw_alloc, OBJECT, NUMBER },
	[MUSLIN_MW_FREE] = { NULL, OBJECT, ANSWER, .free = hca_mw_free },
	[MUSLIN_MCAST_ATTACH] = { mcast_attach, sizeof(struct muslin_mcast), ANSWER },
	[MUSLIN_MCAST_DETACH] = { mcast_detach, sizeof(struct muslin_mcast), ANSWER },
};

static union {
	struct muslin_cmd cmd;
	struct muslin_object object;
	struct muslin_mr_reg reg;
	u8 bytes[sizeof(struct muslin_mr_reg) + MUSLIN_LISTS_MAX * sizeof(u64)];
} request;

static union {
	struct muslin_answer a;
	struct muslin_hello_answer hello;
	struct muslin_port_answer port;
	struct muslin_mad_answer mad;
	struct muslin_qp_answer qp;
} answer;

/* 0 or -errno; *len: bytes of the response. */
static int command_run(struct vdev *d, u32 in, u32 *len)
{
	u32 op = request.cmd.op;

	*len = sizeof(answer.a);
	if (in < sizeof(request.cmd) || op >= MUSLIN_OPS || !commands[op].in)
		return -EOPNOTSUPP;
	if (in < commands[op].in || (in > commands[op].in && !commands[op].longer))
		return -EINVAL;
	if (!d->verbs.ctx && op != MUSLIN_HELLO)
		return -ENODEV;
	*len = commands[op].out;
	return commands[op].free ? commands[op].free(d->verbs.ctx, request.object.number)
				 : commands[op].fn(d, &request, in, &answer);
}

static void command_serve(struct vdev *d, const struct vhost_chain *c)
{
	u32 in = c->out_len > sizeof(request) ? 0 : vhost_chain_read(c, 0, &request, sizeof(request)), len;
	int err;

	memset(&answer, 0, sizeof(answer));
	loop_timer_cancel(&d->hello_timer);
	err = command_run(d, in, &len);
	vd_count(d, VDEV_CTR_COMMANDS);
	if (err) {
		vd_count(d, VDEV_CTR_BAD_COMMANDS);
		log_at(LOG_DEBUG, d->cfg.name, "the guest's command %u: %s", request.cmd.op, strerror(-err));
		memset(&answer, 0, sizeof(answer));
	}
	answer.a.status = err;
	vhost_push(d->vhost, MUSLIN_VQ_COMMAND, c->head, vhost_chain_write(c, 0, &answer, min(len, c->in_len)));
}

static bool serving;

bool vd_commands_serving(void)
{
	return serving;
}

/*
 * Budget per turn: a driver that refills the queue meanwhile must not starve others, nor one with long lists and rings.
 * A command may run tasks, which continue the turns of this and other guests: they wait for the end of the command,
 * whose request they would overwrite.
 */
void vd_commands(struct vdev *d)
{
	u32 budget = VDEV_COMMANDS_TURN;
	struct vhost_chain c;

	if (serving) {
		vd_resume_later(d);
		return;
	}
	serving = true;
	while (budget && vhost_pop(d->vhost, MUSLIN_VQ_COMMAND, &c) > 0) {
		d->bytes = 0;
		command_serve(d, &c);
		budget -= (u32)min((u64)budget, 1 + d->bytes / VDEV_TURN_BYTES);
	}
	serving = false;
	vhost_signal(d->vhost, MUSLIN_VQ_COMMAND);
	if (!budget)
		vd_resume_later(d);
}
