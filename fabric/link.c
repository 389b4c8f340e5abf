// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Link training (IBTA 5.6.4, 7.2.7): physical states, negotiated width and speed, and the resulting logical states. */
#include <errno.h>

#include "fabric/fabric_internal.h"

bool fabric_link_trains(const struct fabric_port *p)
{
	return !p->unplugged && !p->pulled && p->info->phys_state != PHYS_STATE_DISABLED &&
	       p->info->phys_state != PHYS_STATE_SLEEP;
}

u8 fabric_link_width(u8 lanes)
{
	static const u8 bit[13] = { [1] = LINK_WIDTH_1X,
				    [2] = LINK_WIDTH_2X,
				    [4] = LINK_WIDTH_4X,
				    [8] = LINK_WIDTH_8X,
				    [12] = LINK_WIDTH_12X };

	return bit[lanes];
}

/* Bits of the speeds in LinkSpeed, LinkSpeedExt and LinkSpeedExt2, and MLNXExtendedPortInfo; the fastest first. */
static const struct link_speed {
	u8 speed, base, ext, fdr10;
} speeds[] = {
	{ WIRE_SPEED_XDR, 0, LINK_SPEED_EXT_XDR, 0 }, { WIRE_SPEED_NDR, 0, LINK_SPEED_EXT_NDR, 0 },
	{ WIRE_SPEED_HDR, 0, LINK_SPEED_EXT_HDR, 0 }, { WIRE_SPEED_EDR, 0, LINK_SPEED_EXT_EDR, 0 },
	{ WIRE_SPEED_FDR, 0, LINK_SPEED_EXT_FDR, 0 }, { WIRE_SPEED_FDR10, 0, 0, MLNXEXTPORT_FDR10 },
	{ WIRE_SPEED_QDR, LINK_SPEED_QDR, 0, 0 },     { WIRE_SPEED_DDR, LINK_SPEED_DDR, 0, 0 },
	{ WIRE_SPEED_SDR, LINK_SPEED_SDR, 0, 0 },
};

void fabric_link_set_supported(struct fabric_port *p, u8 speed)
{
	struct wire_portinfo *info = p->info;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (speeds[i].speed > speed)
			continue;
		info->speed_supported |= speeds[i].base;
		info->speed_ext_supported |= speeds[i].ext;
		info->fdr10_supported |= fabric_is_mlnx(p->node) ? speeds[i].fdr10 : 0;
	}
}

void fabric_link_enable_all(struct wire_portinfo *info)
{
	info->width_enabled = info->width_supported;
	info->speed_enabled = info->speed_supported;
	info->speed_ext_enabled = info->speed_ext_supported ? info->speed_ext_supported : LINK_SPEED_EXT_DISABLE;
	info->fdr10_enabled = info->fdr10_supported;
}

/* With an active extended speed, LinkSpeedActive is QDR. */
void fabric_link_set_active(struct wire_portinfo *info, u8 lanes, u8 speed)
{
	u32 i;

	info->width_active = fabric_link_width(lanes);
	info->speed_active = LINK_SPEED_QDR;
	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (speeds[i].speed != speed)
			continue;
		info->speed_active = speeds[i].base ? speeds[i].base : LINK_SPEED_QDR;
		info->speed_ext_active = speeds[i].ext;
		info->fdr10_active = speeds[i].fdr10;
	}
}

static u8 link_limited(u8 most, u8 a, u8 b)
{
	return min(most, min(a ? a : most, b ? b : most));
}

/* Bits of the extended speeds that both ends enable. */
static u8 link_ext_enabled(const struct wire_portinfo *a, const struct wire_portinfo *b)
{
	if (a->speed_ext_enabled == LINK_SPEED_EXT_DISABLE || b->speed_ext_enabled == LINK_SPEED_EXT_DISABLE)
		return 0;
	return a->speed_ext_enabled & b->speed_ext_enabled;
}

/* Negotiates the greatest width and speed enabled at both ends, at least 1xSDR. */
static void link_negotiate(struct fabric_port *a, struct fabric_port *b)
{
	static const u8 lanes[] = { 12, 8, 4, 2, 1 };
	u8 most_lanes = link_limited(12, a->lanes_limit, b->lanes_limit);
	u8 most_speed = link_limited(WIRE_SPEED_XDR, a->speed_limit, b->speed_limit);
	const struct wire_portinfo *ai = a->info, *bi = b->info;
	u8 ext = link_ext_enabled(ai, bi), base = ai->speed_enabled & bi->speed_enabled;
	u8 fdr10 = ai->fdr10_enabled & bi->fdr10_enabled, active_lanes = 1, active_speed = WIRE_SPEED_SDR;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lanes); i++)
		if (lanes[i] <= most_lanes && (ai->width_enabled & bi->width_enabled & fabric_link_width(lanes[i]))) {
			active_lanes = lanes[i];
			break;
		}
	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].speed <= most_speed &&
		    ((ext & speeds[i].ext) || (base & speeds[i].base) || (fdr10 & speeds[i].fdr10))) {
			active_speed = speeds[i].speed;
			break;
		}
	fabric_link_set_active(a->info, active_lanes, active_speed);
	fabric_link_set_active(b->info, active_lanes, active_speed);
}

void fabric_link_state(struct fabric_port *p, u8 state)
{
	u8 old = p->info->state;

	p->info->state = state;
	if (state != old && !p->remote)
		fabric_notify(p->node->f, FABRIC_EVENT_PORT, p, NULL);
	if (!p->ca)
		return;
	if (state == PORT_STATE_ACTIVE && old != PORT_STATE_ACTIVE)
		fabric_ca_event(p, WIRE_PORT_ACTIVE);
	else if (old == PORT_STATE_ACTIVE && state != PORT_STATE_ACTIVE)
		fabric_ca_event(p, WIRE_PORT_ERR);
	if (state == PORT_STATE_INIT && old != PORT_STATE_INIT)
		fabric_ca_event(p, WIRE_PORT_INIT);
}

static void link_trap(struct fabric_port *p)
{
	if (!p->node->sw)
		return;
	p->node->sw->state_change = 1;
	fabric_trap_link_state(p->node);
}

/* Notifies the other end of a trunk. */
static void link_notify(struct fabric_port *p, enum fabric_remote_change what)
{
	struct fabric_remote *r = p->peer ? p->peer->remote : NULL;

	if (r && r->ops)
		r->ops->change(r->ctx, what);
}

void fabric_link_train(struct fabric_port *p, struct fabric_port *q)
{
	link_negotiate(p, q);
	p->info->phys_state = q->info->phys_state = PHYS_STATE_LINK_UP;
	fabric_link_state(p, PORT_STATE_INIT);
	fabric_link_state(q, PORT_STATE_INIT);
	link_trap(p);
	link_trap(q);
}

void fabric_link_update(struct fabric_port *p)
{
	struct fabric_port *q = p->peer;

	if (q && q->remote) {
		link_notify(p, FABRIC_REMOTE_LINK); /* the link trains when both daemons permit it */
		return;
	}
	if (!q || !fabric_link_trains(p) || !fabric_link_trains(q) ||
	    (p->info->phys_state == PHYS_STATE_LINK_UP && q->info->phys_state == PHYS_STATE_LINK_UP))
		return;
	fabric_link_train(p, q);
}

static void link_end_down(struct fabric_port *p)
{
	if (p->info->phys_state == PHYS_STATE_LINK_UP) {
		fabric_count(p, FABRIC_CTR_LINK_DOWNED);
		p->info->phys_state = p->down_default == PHYS_STATE_SLEEP ? PHYS_STATE_SLEEP : PHYS_STATE_POLLING;
	}
	fabric_link_set_active(p->info, 4, WIRE_SPEED_SDR);
	fabric_arb_flush(p, FABRIC_CTR_XMIT_INACTIVE);
	fault_lose_held(&p->hooks);
	if (p->info->state == PORT_STATE_DOWN)
		return;
	fabric_link_state(p, PORT_STATE_DOWN);
	fabric_flight_kick(p); /* senders that wait for credits see the port down */
}

void fabric_link_disconnect(struct fabric_port *p)
{
	bool was_up = p->info->state != PORT_STATE_DOWN || (p->peer && p->peer->info->state != PORT_STATE_DOWN);

	link_end_down(p);
	if (p->peer)
		link_end_down(p->peer);
	if (was_up) {
		link_trap(p);
		if (p->peer)
			link_trap(p->peer);
	}
	link_notify(p, FABRIC_REMOTE_LINK);
}

void fabric_link_wake(struct fabric_port *p)
{
	if (p && p->remote && p->remote->ops)
		p->remote->ops->change(p->remote->ctx, FABRIC_REMOTE_WAKE);
	else if (p && p->info->phys_state == PHYS_STATE_SLEEP)
		p->info->phys_state = PHYS_STATE_POLLING;
}

int fabric_link_unplug(struct fabric_port *p)
{
	if (!p->peer)
		return -ENOLINK;
	p->unplugged = p->peer->unplugged = true;
	fabric_link_disconnect(p);
	link_notify(p, FABRIC_REMOTE_UNPLUG);
	return 0;
}

int fabric_link_plug(struct fabric_port *p)
{
	if (!p->peer)
		return -ENOLINK;
	p->unplugged = p->peer->unplugged = false;
	fabric_link_wake(p);
	fabric_link_wake(p->peer);
	fabric_link_update(p);
	link_notify(p, FABRIC_REMOTE_PLUG);
	return 0;
}
