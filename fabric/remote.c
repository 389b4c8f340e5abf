// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ends of trunks: ports of other daemons, as peers of local ports.
 *
 * A port of another daemon has a local stand-in, so that links, arbitration, credits and faults are the same as on any
 * link. A packet that arrives at the stand-in is passed to the carrier (fabric/trunk); the stand-in transmits a packet
 * of the carrier. Its input buffer is that of the other daemon: rx_blocks counts the packets that have not been passed
 * on yet, and the blocks that the other daemon has not freed (beyond), less the difference by which that buffer is
 * deeper than those of local ports. A link trains when both daemons know the values of both ends.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "fabric/fabric_internal.h"

void fabric_remote_send(struct fabric_port *at, struct wire_packet *p)
{
	struct fabric_remote *r = at->remote;

	if (r->ops && r->info.phys_state == PHYS_STATE_LINK_UP) {
		r->ops->send(r->ctx, p);
		return;
	}
	fabric_count_discard(r->local, FABRIC_CTR_XMIT_INACTIVE);
	fabric_flight_drop(at, p);
}

u32 fabric_remote_count(const struct fabric *f)
{
	return f->nremotes;
}

struct fabric_remote *fabric_remote(const struct fabric *f, u32 index)
{
	return index < f->nremotes ? &f->remotes[index] : NULL;
}

struct fabric_port *fabric_remote_local(const struct fabric_remote *r)
{
	return r->local;
}

const struct fabric_node *fabric_remote_node(const struct fabric_remote *r)
{
	return &r->node;
}

void fabric_remote_attach(struct fabric_remote *r, const struct fabric_remote_ops *ops, void *ctx)
{
	r->ops = ops;
	r->ctx = ctx;
}

void fabric_remote_name(struct fabric_remote *r, u8 type, u64 guid, u8 port, const char *name)
{
	size_t i;

	r->node.type = type;
	r->node.guid = r->node.sysguid = r->port.guid = guid;
	r->port.num = port;
	r->node.nports = port;
	for (i = 0; i < sizeof(r->node.name) - 1 && name[i]; i++)
		r->node.name[i] = isprint((u8)name[i]) && name[i] != '"' ? name[i] : '?';
	r->node.name[i] = 0;
}

static struct fabric_remote_link remote_local_link(const struct fabric_port *p)
{
	struct fabric_remote_link link;

	memset(&link, 0, sizeof(link)); /* memcmp() compares it with its padding */
	link.trains = fabric_link_trains(p);
	link.unplugged = p->unplugged;
	link.pulled = p->pulled;
	link.width_enabled = p->info->width_enabled;
	link.speed_enabled = p->info->speed_enabled;
	link.speed_ext_enabled = p->info->speed_ext_enabled;
	link.fdr10_enabled = p->info->fdr10_enabled;
	link.lanes_limit = p->lanes_limit;
	link.speed_limit = p->speed_limit;
	return link;
}

struct fabric_remote_link fabric_remote_link(struct fabric_remote *r)
{
	r->sent = remote_local_link(r->local);
	return r->sent;
}

static void remote_set_link(struct fabric_remote *r, const struct fabric_remote_link *peer)
{
	r->port.pulled = peer->pulled;
	r->port.lanes_limit = peer->lanes_limit;
	r->port.speed_limit = peer->speed_limit;
	r->info.width_enabled = peer->width_enabled;
	r->info.speed_enabled = peer->speed_enabled;
	r->info.speed_ext_enabled = peer->speed_ext_enabled;
	r->info.fdr10_enabled = peer->fdr10_enabled;
}

bool fabric_remote_up(struct fabric_remote *r, const struct fabric_remote_link *peer)
{
	struct fabric_remote_link now = remote_local_link(r->local);

	if (memcmp(&now, &r->sent, sizeof(now)))
		return false;
	if (!now.trains)
		return true;
	remote_set_link(r, peer);
	fabric_link_train(r->local, &r->port);
	return true;
}

void fabric_remote_down(struct fabric_remote *r, const struct fabric_remote_link *peer)
{
	if (peer)
		remote_set_link(r, peer);
	else
		r->port.pulled = 0;
	if (r->info.phys_state == PHYS_STATE_LINK_UP || r->local->info->phys_state == PHYS_STATE_LINK_UP)
		fabric_link_disconnect(r->local);
	fabric_remote_ready(r->node.f);
}

void fabric_remote_ready(struct fabric *f)
{
	while (!list_empty(&f->direct)) {
		struct fabric_ca *ca = list_first(&f->direct, struct fabric_ca, direct);

		list_del(&ca->direct);
		fabric_flight_kick(ca->port);
	}
}

bool fabric_remote_is_up(const struct fabric_remote *r)
{
	return r->info.phys_state == PHYS_STATE_LINK_UP;
}

void fabric_remote_cable(struct fabric_remote *r, bool unplugged)
{
	r->local->unplugged = r->port.unplugged = unplugged;
	if (unplugged)
		fabric_link_disconnect(r->local);
	else
		fabric_remote_wake(r);
}

void fabric_remote_wake(struct fabric_remote *r)
{
	fabric_link_wake(r->local);
	fabric_link_update(r->local);
}

void fabric_remote_malformed(struct fabric_remote *r, bool ebp)
{
	if (!fabric_remote_is_up(r))
		return;
	fabric_count(r->local, ebp ? FABRIC_CTR_RCV_REMOTE_PHYS_ERRORS : FABRIC_CTR_RCV_ERRORS);
	fabric_count(r->local, FABRIC_CTR_RCV_MALFORMED);
}

void fabric_remote_overrun(struct fabric_remote *r)
{
	fabric_count(r->local, FABRIC_CTR_OVERRUN_ERRORS);
}

void fabric_remote_drop(struct fabric_remote *r, struct wire_packet *p)
{
	if (p->vl == WIRE_VL_MGMT)
		fabric_count(r->local, FABRIC_CTR_VL15_DROPPED);
	else
		fabric_count_discard(r->local, FABRIC_CTR_XMIT_INACTIVE);
	fabric_flight_drop(&r->port, p);
}

u32 fabric_remote_free(const struct fabric_remote *r, u8 vl)
{
	return FABRIC_REMOTE_BLOCKS - min(r->local->rx_blocks[vl], (u32)FABRIC_REMOTE_BLOCKS);
}

/*
 * The other daemon's buffer is deeper than that of a local port: blocks in use there count only above this difference.
 */
static u32 remote_charge(u32 in_use)
{
	return in_use - min(in_use, (u32)(FABRIC_REMOTE_BLOCKS - FABRIC_VL_BLOCKS));
}

/* The blocks in use at the other end are now @in_use; @blocks are no longer queued to be sent. */
static void remote_recharge(struct fabric_remote *r, u8 vl, u32 in_use, u32 blocks)
{
	u32 *rx = &r->port.rx_blocks[vl], before = remote_charge(r->beyond[vl]) + blocks, after = remote_charge(in_use);

	*rx -= min(before, *rx);
	*rx += after;
	r->beyond[vl] = in_use;
	if (after < before)
		fabric_flight_kick(r->local);
}

void fabric_remote_sent(struct fabric_remote *r, u8 vl, u32 blocks)
{
	if (vl != WIRE_VL_MGMT)
		remote_recharge(r, vl, r->beyond[vl] + blocks, blocks);
}

void fabric_remote_credits(struct fabric_remote *r, u8 vl, u32 in_use)
{
	remote_recharge(r, vl, in_use, 0);
}

static void remote_init(struct fabric *f, struct fabric_remote *r, struct fabric_port *local)
{
	r->local = local;
	r->node.f = f;
	r->node.only = &r->port;
	list_init(&r->node.traps);
	r->port.node = &r->node;
	r->port.peer = r->local;
	r->port.remote = r;
	r->port.info = &r->info;
	r->port.down_default = PHYS_STATE_POLLING;
	list_init(&r->port.kick);
	list_init(&r->port.wait);
	list_init(&r->port.down);
	list_init(&r->extra);
	r->info.state = PORT_STATE_DOWN;
	r->info.phys_state = PHYS_STATE_POLLING;
}

int fabric_remote_init(struct fabric *f, const struct fabric_topology *t)
{
	u32 i;

	f->remotes = calloc(t->ntrunks ? t->ntrunks : 1, sizeof(*f->remotes));
	if (!f->remotes)
		return -ENOMEM;
	for (i = 0; i < t->ntrunks; i++, f->nremotes++) {
		const struct fabric_topology_trunk *tt = &t->trunks[i];
		struct fabric_remote *r = &f->remotes[i];

		remote_init(f, r, &f->nodes[tt->node].ports[tt->port]);
		r->local->peer = &r->port;
		fabric_remote_name(r, tt->peer_type ? tt->peer_type : (u8)NODE_TYPE_SWITCH, tt->peer_guid,
				   tt->peer_port, tt->peer_name[0] ? tt->peer_name : "trunk");
	}
	return 0;
}

void fabric_remote_fini(struct fabric *f)
{
	while (!list_empty(&f->extra)) {
		struct fabric_remote *r = list_first(&f->extra, struct fabric_remote, extra);

		list_del(&r->extra);
		free(r);
	}
	free(f->remotes);
}

struct fabric_remote *fabric_remote_take(struct fabric_port *local, const struct fabric_end *peer)
{
	struct fabric *f = local->node->f;
	struct fabric_remote *r, *found = NULL;

	list_for_each (r, &f->extra, extra)
		if (!r->taken)
			found = r;
	if (!found) {
		found = calloc(1, sizeof(*found));
		if (!found)
			return NULL;
		remote_init(f, found, local);
		list_add(&f->extra, &found->extra);
	}
	found->taken = true;
	found->local = found->port.peer = local;
	found->port.unplugged = false;
	found->port.lanes_limit = found->port.speed_limit = 0;
	fabric_remote_name(found, peer->node->type, peer->node->guid, peer->num, peer->node->name);
	return found;
}

void fabric_remote_give_back(struct fabric_remote *r)
{
	r->taken = false;
}
