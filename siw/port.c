// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* wire_port of an iWARP adapter: attributes only, all traffic is carried by TCP. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/wire/smp.h"
#include "siw/siw.h"

#define CAPS (1u << 16 | 1u << 19) /* communication management, device management: as the kernel's siw */

static int drop(struct wire_port *w, struct wire_packet *p)
{
	wire_packet_free(p);
	return 0;
}

static void set_cap(struct wire_port *w, u32 set, u32 clear)
{
	w->attr.cap_mask = (w->attr.cap_mask & ~clear) | set;
}

static void violation(struct wire_port *w, const struct wire_port_violation *v) {}

static void resume(struct wire_port *w) {}

static const struct wire_port_ops ops = { .send = drop, .set_cap = set_cap, .violation = violation };

/* GID with the station address of which @guid is made, in the first bytes. */
static struct wire_gid gid_of(u64 guid)
{
	u64 mac = (guid ^ 0x0200000000000000ull) >> 40 << 24 | (guid & 0xffffff);

	return wire_gid_make(mac << 16, 0);
}

struct wire_port *siw_port_create(const char *name, u64 guid, u32 mtu)
{
	u8 code = max(wire_mtu_code(mtu), (u8)WIRE_MTU_256);
	struct wire_port *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->ops = &ops;
	w->resume = resume;
	w->node_guid = w->port_guid = guid;
	w->num = 1;
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->attr = (struct wire_port_attr){
		.link_layer = WIRE_LINK_ETHERNET,
		.state = PORT_STATE_ACTIVE,
		.phys_state = PHYS_STATE_LINK_UP,
		.mtu_cap = code,
		.mtu_active = code,
		.max_vl = 1,
		.width_active = LINK_WIDTH_4X,
		.width_supported = LINK_WIDTH_4X,
		.width_enabled = LINK_WIDTH_4X,
		.speed_active = LINK_SPEED_SDR,
		.speed_supported = LINK_SPEED_SDR,
		.speed_enabled = LINK_SPEED_SDR,
		.cap_mask = CAPS,
		.pkeys = 1,
		.pkey = { WIRE_PKEY_DEFAULT_FULL },
		.gids = 1,
		.gid = { gid_of(guid) },
	};
	return w;
}

void siw_port_destroy(struct wire_port *w)
{
	free(w);
}
