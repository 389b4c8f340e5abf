// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RoCE port (IBTA A17): creation, attributes, and wire_port operations. No subnet manager: attributes follow the
 * network interfaces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/wire/smp.h"
#include "rxe/roce/roce_internal.h"

#define CAP_CM (1u << 16) /* IsCommunicationManagementSupported */

const char *roce_counter_name(enum roce_counter c)
{
	static const char *const names[] = { ROCE_COUNTERS(COUNTER_NAME) };

	return c < ROCE_CTR_NUM ? names[c] : "?";
}

u64 roce_port_counter(const struct roce_port *rp, enum roce_counter c)
{
	return c < ROCE_CTR_NUM ? rp->counter[c] : 0;
}

struct wire_port *roce_port_wire(struct roce_port *rp)
{
	return &rp->wire;
}

const char *roce_port_device(const struct roce_port *rp, u32 gid)
{
	return rp->link->device(rp, gid);
}

void roce_port_set_tap(struct roce_port *rp, void (*tap)(void *ctx, const u8 *frame, u32 len, bool out), void *ctx)
{
	rp->tap = tap;
	rp->tap_ctx = ctx;
}

void roce_port_set_loss(struct roce_port *rp, double probability)
{
	rp->loss = probability <= 0 ? 0 : (u64)(min(probability, 1.0) * 4294967296.0);
}

void roce_port_set_marking(struct roce_port *rp, double probability)
{
	rp->marking = probability <= 0 ? 0 : (u64)(min(probability, 1.0) * 4294967296.0);
}

void roce_port_set_dcqcn(struct roce_port *rp, bool on)
{
	rp->wire.attr.dcqcn = on;
}

int roce_port_set_version(struct roce_port *rp, u8 version)
{
	if (rp->managed)
		return -EPERM;
	if (version == 1 && !rp->ether)
		return -EPROTONOSUPPORT;
	rp->wire.attr.roce_version = version;
	return 0;
}

static void set_cap(struct wire_port *w, u32 set, u32 clear)
{
	w->attr.cap_mask = (w->attr.cap_mask & ~clear) | set;
}

/* Counted only: there is no subnet manager for a trap. */
static void violation(struct wire_port *w, const struct wire_port_violation *v)
{
	u16 *count = v->qkey ? &w->attr.qkey_violations : &w->attr.pkey_violations;

	if (*count != 0xffff)
		++*count;
}

/* Valid only on a station whose addresses a guest manages. */
static int set_gid(struct wire_port *w, u8 index, const struct wire_gid *gid, const struct wire_l2 *l2)
{
	struct roce_port *rp = container_of(w, struct roce_port, wire);

	if (!rp->managed || index >= WIRE_PORT_GIDS)
		return -EINVAL;
	w->attr.gid[index] = *gid;
	w->attr.gid_l2[index] = *l2;
	return 0;
}

static int group(struct wire_port *w, const struct wire_gid *mgid, bool member)
{
	struct roce_port *rp = container_of(w, struct roce_port, wire);

	return rp->link->group ? rp->link->group(rp, mgid, member) : 0;
}

static const struct wire_port_ops ops = {
	.set_gid = set_gid,
	.send = roce_send,
	.flush_zcopy = roce_flush_zcopy,
	.set_cap = set_cap,
	.violation = violation,
	.group = group,
};

static void resume(struct wire_port *w) {} /* nothing to do: packets that the user refused were dropped */

static void on_task(struct loop_task *t, struct now now)
{
	roce_send_run(container_of(t, struct roce_port, task));
}

/* Sets the attributes that the kernel reports for a port whose link is a network interface. */
static void set_attr(struct roce_port *rp)
{
	struct wire_port_attr *a = &rp->wire.attr;

	a->link_layer = WIRE_LINK_ETHERNET;
	a->state = PORT_STATE_ACTIVE;
	a->phys_state = PHYS_STATE_LINK_UP;
	a->mtu_cap = WIRE_MTU_4096;
	a->max_vl = 1;
	a->width_active = a->width_supported = a->width_enabled = LINK_WIDTH_4X;
	a->speed_active = a->speed_supported = a->speed_enabled = LINK_SPEED_SDR;
	a->cap_mask = CAP_CM;
	a->pkey[0] = WIRE_PKEY_DEFAULT_FULL;
	a->pkeys = 1;
	a->gids = WIRE_PORT_GIDS;
}

void roce_link_changed(struct roce_port *rp, bool up)
{
	struct wire_port_attr *a = &rp->wire.attr;

	a->state = up ? PORT_STATE_ACTIVE : PORT_STATE_DOWN;
	a->phys_state = up ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
	wire_port_event(&rp->wire, up ? WIRE_PORT_ACTIVE : WIRE_PORT_ERR);
}

void roce_link_update(struct roce_port *rp)
{
	bool down = rp->unplugged || rp->pulled;

	if (rp->down == down)
		return;
	rp->down = down;
	fault_lose_held(&rp->hooks[0]);
	fault_lose_held(&rp->hooks[1]);
	roce_link_changed(rp, !down);
}

void roce_port_set_up(struct roce_port *rp, bool up)
{
	rp->unplugged = !up;
	roce_link_update(rp);
}

void roce_port_set_mtu(struct roce_port *rp, u32 bytes)
{
	u8 code = wire_mtu_code(bytes - min(bytes, (u32)WIRE_ROCE_OVERHEAD));

	rp->wire.attr.mtu_active = max(code, (u8)WIRE_MTU_256);
}

struct roce_port *roce_port_create(const struct roce_config *cfg)
{
	struct roce_port *rp = calloc(1, sizeof(*rp));
	int err;

	if (!rp)
		return NULL;
	rp->loop = cfg->loop;
	rp->rng.state = cfg->seed ^ cfg->port_guid;
	rp->wire.ops = &ops;
	rp->wire.resume = resume;
	rp->wire.node_guid = cfg->node_guid;
	rp->wire.port_guid = cfg->port_guid;
	rp->wire.num = cfg->num ? cfg->num : 1;
	snprintf(rp->wire.name, sizeof(rp->wire.name), "%s", cfg->name);
	list_init(&rp->tx);
	fault_set_init(&rp->faults, &roce_fault_target, rp->loop, rp, 0);
	list_init(&rp->neighbours);
	loop_task_init(&rp->task, on_task);
	set_attr(rp);
	rp->link = cfg->ether ? &roce_ether_link : &roce_socket_link;
	rp->wire.attr.roce_version = cfg->v1 ? 1 : 2;
	err = rp->link->open(rp, cfg);
	if (!err)
		return rp;
	roce_port_destroy(rp);
	errno = -err;
	return NULL;
}

void roce_port_destroy(struct roce_port *rp)
{
	u32 i;

	if (!rp)
		return;
	rp->link->close(rp);
	loop_task_cancel(&rp->task);
	while (!list_empty(&rp->tx)) {
		struct wire_packet *p = list_first(&rp->tx, struct wire_packet, link);

		list_del(&p->link);
		wire_packet_free(p);
	}
	for (i = 0; i < ROCE_RECVS; i++)
		wire_buf_put(rp->rx[i]);
	free(rp);
}
