// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Links: physical state, negotiated width and speed, and the logical states that follow. IBTA 5.6.4, 7.2.7. */
#include <errno.h>

#include "fabric/internal.h"

static bool trains(const struct fabric_port *p)
{
	return !p->unplugged && !p->pulled && p->phys != PHYS_STATE_DISABLED && p->phys != PHYS_STATE_SLEEP;
}

static u8 width_bit(u8 lanes)
{
	static const u8 bit[13] = { [1] = LINK_WIDTH_1X,
				    [2] = LINK_WIDTH_2X,
				    [4] = LINK_WIDTH_4X,
				    [8] = LINK_WIDTH_8X,
				    [12] = LINK_WIDTH_12X };

	return bit[lanes];
}

static u8 limited(u8 most, u8 a, u8 b)
{
	return min(most, min(a ? a : most, b ? b : most));
}

/* The widest and fastest that both ends have enabled; SDR on one lane always works. */
static void negotiate(struct fabric_port *a, struct fabric_port *b)
{
	static const u8 lanes[] = { 12, 8, 4, 2, 1 };
	static const struct {
		u8 speed, bit, ext;
	} speeds[] = { { WIRE_SPEED_NDR, 0, LINK_SPEED_EXT_NDR }, { WIRE_SPEED_HDR, 0, LINK_SPEED_EXT_HDR },
		       { WIRE_SPEED_EDR, 0, LINK_SPEED_EXT_EDR }, { WIRE_SPEED_FDR, 0, LINK_SPEED_EXT_FDR },
		       { WIRE_SPEED_QDR, LINK_SPEED_QDR, 0 },     { WIRE_SPEED_DDR, LINK_SPEED_DDR, 0 } };
	u8 most_lanes = limited(12, a->lanes_limit, b->lanes_limit);
	u8 most_speed = limited(WIRE_SPEED_NDR, a->speed_limit, b->speed_limit);
	u8 ext = a->speed_ext_enabled & b->speed_ext_enabled, base = a->speed_enabled & b->speed_enabled;
	u32 i;

	if (a->speed_ext_enabled == LINK_SPEED_EXT_DISABLE || b->speed_ext_enabled == LINK_SPEED_EXT_DISABLE)
		ext = 0;
	a->lanes = 1;
	a->speed = WIRE_SPEED_SDR;
	for (i = 0; i < ARRAY_SIZE(lanes); i++)
		if (lanes[i] <= most_lanes && (a->width_enabled & b->width_enabled & width_bit(lanes[i]))) {
			a->lanes = lanes[i];
			break;
		}
	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].speed <= most_speed && ((ext & speeds[i].ext) || (base & speeds[i].bit))) {
			a->speed = speeds[i].speed;
			break;
		}
	b->lanes = a->lanes;
	b->speed = a->speed;
}

void fabric_link_state(struct fabric_port *p, u8 state)
{
	u8 old = p->state;

	p->state = state;
	if (state != old)
		fabric_tell(p->node->f, FABRIC_EVENT_PORT, p, NULL, NULL);
	if (!p->ca)
		return;
	fabric_ca_sync(p);
	if (state == PORT_STATE_ACTIVE && old != PORT_STATE_ACTIVE)
		fabric_ca_event(p, WIRE_PORT_ACTIVE);
	else if (old == PORT_STATE_ACTIVE && state != PORT_STATE_ACTIVE)
		fabric_ca_event(p, WIRE_PORT_ERR);
}

static void notify(struct fabric_port *p)
{
	if (!p->node->sw)
		return;
	p->node->sw->state_change = 1;
	fabric_trap_link_state(p->node);
}

void fabric_link_update(struct fabric_port *p)
{
	struct fabric_port *q = p->peer;

	if (!q || !trains(p) || !trains(q) || (p->phys == PHYS_STATE_LINK_UP && q->phys == PHYS_STATE_LINK_UP))
		return;
	negotiate(p, q);
	p->phys = q->phys = PHYS_STATE_LINK_UP;
	fabric_link_state(p, PORT_STATE_INIT);
	fabric_link_state(q, PORT_STATE_INIT);
	notify(p);
	notify(q);
}

static void lose_end(struct fabric_port *p)
{
	if (p->phys == PHYS_STATE_LINK_UP) {
		fabric_count(p, FABRIC_CTR_LINK_DOWNED);
		p->phys = p->down_default == PHYS_STATE_SLEEP ? PHYS_STATE_SLEEP : PHYS_STATE_POLLING;
	}
	p->lanes = p->speed = 0;
	fabric_arb_flush(p, FABRIC_CTR_XMIT_INACTIVE);
	if (p->state == PORT_STATE_DOWN)
		return;
	fabric_link_state(p, PORT_STATE_DOWN);
	fabric_arb_kick(p); /* who waits for credits learns that packets are dropped now */
}

void fabric_link_lose(struct fabric_port *p)
{
	bool was_up = p->state != PORT_STATE_DOWN || (p->peer && p->peer->state != PORT_STATE_DOWN);

	lose_end(p);
	if (p->peer)
		lose_end(p->peer);
	if (was_up) {
		notify(p);
		if (p->peer)
			notify(p->peer);
	}
}

int fabric_link_unplug(struct fabric_port *p)
{
	if (!p->peer)
		return -ENOLINK;
	p->unplugged = p->peer->unplugged = true;
	fabric_link_lose(p);
	return 0;
}

int fabric_link_plug(struct fabric_port *p)
{
	if (!p->peer)
		return -ENOLINK;
	p->unplugged = p->peer->unplugged = false;
	if (p->phys == PHYS_STATE_SLEEP)
		p->phys = PHYS_STATE_POLLING;
	if (p->peer->phys == PHYS_STATE_SLEEP)
		p->peer->phys = PHYS_STATE_POLLING;
	fabric_link_update(p);
	return 0;
}
