// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Traps to the subnet manager (IBTA 13.4.9, 14.2.5.1; port state change: 14.3.6), resent until TrapRepress. */
#include <stdlib.h>

#include "fabric/fabric_internal.h"

#define TRAPS_MAX     16 /* of a node, not yet repressed */
#define TRAP_FIRST_NS (500 * NSEC_PER_MSEC)
#define TRAP_LAST_NS  (30 * NSEC_PER_SEC)

struct fabric_trap {
	struct list link; /* in node.traps */
	struct loop_timer timer;
	struct fabric_port *self;
	u64 tid, wait;
	u8 notice[NOTICE_SMP_SIZE];
};

static void trap_transmit(struct fabric_trap *t)
{
	struct fabric_port *p = t->self;
	struct wire_packet *pkt;
	u8 *mad;

	if (!wire_lid_is_unicast(p->info->sm_lid) || !p->info->lid)
		return;
	pkt = fabric_mad_packet(p->info->lid, p->info->sm_lid, p->info->sm_sl, MAD_QPN_SMI);
	if (!pkt)
		return;
	mad = pkt->buf->data;
	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_CLASS, MAD_CLASS_SUBN_LID);
	wire_set(mad, MAD_CLASS_VERSION, MAD_CLASS_VERSION_SUBN);
	wire_set(mad, MAD_METHOD, MAD_METHOD_TRAP);
	wire_set(mad, MAD_TID, t->tid);
	wire_set(mad, MAD_ATTR_ID, SMP_ATTR_NOTICE);
	memcpy(mad + SMP_DATA, t->notice, NOTICE_SMP_SIZE);
	wire_set(mad + SMP_DATA, NOTICE_ISSUER_LID, p->info->lid);
	fabric_mad_send(p, pkt);
}

static void trap_on_timer(struct loop_timer *timer, struct now now)
{
	struct fabric_trap *t = container_of(timer, struct fabric_trap, timer);

	trap_transmit(t);
	t->wait = min(t->wait * 2, TRAP_LAST_NS);
	loop_timer_set(t->self->node->f->loop, timer, now.ns + t->wait);
}

static void trap_free(struct fabric_trap *t)
{
	loop_timer_cancel(&t->timer);
	list_del(&t->link);
	free(t);
}

void fabric_trap_fini(struct fabric_node *n)
{
	while (!list_empty(&n->traps))
		trap_free(list_first(&n->traps, struct fabric_trap, link));
}

/* Finds a pending trap that is the same, whose data the new one replaces. */
static struct fabric_trap *trap_find(struct fabric_port *self, const u8 *notice)
{
	u16 number = wire_get(notice, NOTICE_TRAP_NUMBER);
	struct fabric_trap *t;

	list_for_each (t, &self->node->traps, link) {
		if (t->self != self || wire_get(t->notice, NOTICE_TRAP_NUMBER) != number)
			continue;
		if (number == TRAP_LINK_STATE_CHANGE || number == TRAP_LOCAL_CHANGES ||
		    !memcmp(t->notice + 10, notice + 10, NOTICE_SMP_SIZE - 10))
			return t;
	}
	return NULL;
}

static void raise_trap(struct fabric_port *self, const u8 *notice)
{
	struct fabric *f = self->node->f;
	struct fabric_trap *t, *other;
	u32 n = 0;

	if (f->closing || !wire_lid_is_unicast(self->info->sm_lid) || !self->info->lid)
		return;
	t = trap_find(self, notice);
	if (!t) {
		list_for_each (other, &self->node->traps, link)
			n++;
		t = n < TRAPS_MAX ? calloc(1, sizeof(*t)) : NULL;
		if (!t)
			return;
		t->self = self;
		t->timer.fn = trap_on_timer;
		list_add(&self->node->traps, &t->link);
	}
	memcpy(t->notice, notice, NOTICE_SMP_SIZE);
	t->tid = ++f->next_tid;
	t->wait = TRAP_FIRST_NS;
	trap_transmit(t);
	loop_timer_set(f->loop, &t->timer, loop_now(f->loop).ns + t->wait);
}

static struct fabric_trap *trap_by_tid(struct fabric_node *n, u64 tid)
{
	struct fabric_trap *t;

	list_for_each (t, &n->traps, link)
		if (t->tid == tid)
			return t;
	return NULL;
}

struct fabric_port *fabric_trap_sender(struct fabric_node *n, u64 tid)
{
	struct fabric_trap *t = trap_by_tid(n, tid);

	return t ? t->self : NULL;
}

void fabric_trap_end(struct fabric_node *n, u64 tid)
{
	trap_free(trap_by_tid(n, tid));
}

static void notice_init(const struct fabric_port *self, u8 *d, u8 type, u16 number)
{
	memset(d, 0, NOTICE_SIZE);
	wire_set(d, NOTICE_IS_GENERIC, 1);
	wire_set(d, NOTICE_TYPE, type);
	wire_set(d, NOTICE_PRODUCER_TYPE, self->node->sw ? NOTICE_PRODUCER_SWITCH : NOTICE_PRODUCER_CA);
	wire_set(d, NOTICE_TRAP_NUMBER, number);
	wire_set(d, NOTICE_ISSUER_LID, self->info->lid);
}

void fabric_trap_link_state(struct fabric_node *sw)
{
	struct fabric_port *self = &sw->ports[0];
	u8 d[NOTICE_SIZE];

	notice_init(self, d, NOTICE_TYPE_URGENT, TRAP_LINK_STATE_CHANGE);
	wire_set(d, NOTICE_128_LID, self->info->lid);
	raise_trap(self, d);
}

void fabric_trap_port(struct fabric_port *p, u16 trap)
{
	struct fabric_port *self = fabric_self(p);
	u8 d[NOTICE_SIZE];

	notice_init(self, d, NOTICE_TYPE_URGENT, trap);
	wire_set(d, NOTICE_129_LID, self->info->lid);
	wire_set(d, NOTICE_129_PORT, p->num);
	raise_trap(self, d);
}

void fabric_trap_local_changes(struct fabric_port *self, u16 flags)
{
	u8 d[NOTICE_SIZE];

	notice_init(self, d, NOTICE_TYPE_INFO, TRAP_LOCAL_CHANGES);
	wire_set(d, NOTICE_144_LID, self->info->lid);
	wire_set(d, NOTICE_144_CAP_MASK, self->info->cap_mask);
	wire_set(d, NOTICE_144_OTHER_LOCAL_CHANGES, flags != 0);
	wire_set(d, NOTICE_144_CHANGE_FLAGS, flags);
	raise_trap(self, d);
}

void fabric_trap_mkey(struct fabric_port *self, const u8 *mad, u16 slid)
{
	bool directed = wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED;
	u8 hops = directed ? wire_get(mad, SMP_HOP_CNT) : 0;
	u8 d[NOTICE_SIZE];

	notice_init(self, d, NOTICE_TYPE_SECURITY, TRAP_BAD_MKEY);
	wire_set(d, NOTICE_256_LID, slid);
	wire_set(d, NOTICE_256_METHOD, wire_get(mad, MAD_METHOD));
	wire_set(d, NOTICE_256_ATTR_ID, wire_get(mad, MAD_ATTR_ID));
	wire_set(d, NOTICE_256_ATTR_MOD, wire_get(mad, MAD_ATTR_MOD));
	wire_set(d, NOTICE_256_MKEY, wire_get(mad, SMP_MKEY));
	if (directed) {
		wire_set(d, NOTICE_256_DR_SLID, wire_get(mad, SMP_DR_SLID));
		wire_set(d, NOTICE_256_DR_NOTICE, 1);
		wire_set(d, NOTICE_256_DR_TRUNCATED, hops > 30);
		wire_set(d, NOTICE_256_DR_HOPS, min(hops, (u8)30));
		memcpy(wire_bytes(d, NOTICE_256_DR_PATH), mad + SMP_RETURN_PATH + 1, min(hops, (u8)30));
	}
	raise_trap(self, d);
}

void fabric_trap_key(struct fabric_port *self, const struct wire_port_violation *v)
{
	u16 *count = v->qkey ? &self->info->qkey_violations : &self->info->pkey_violations;
	u8 d[NOTICE_SIZE];

	*count += *count != 0xffff;
	notice_init(self, d, NOTICE_TYPE_SECURITY, v->qkey ? TRAP_BAD_QKEY : TRAP_BAD_PKEY);
	wire_set(d, NOTICE_257_LID1, v->slid);
	wire_set(d, NOTICE_257_LID2, v->dlid);
	wire_set(d, NOTICE_257_KEY, v->key);
	wire_set(d, NOTICE_257_SL, v->sl);
	wire_set(d, NOTICE_257_QP1, v->sqp);
	wire_set(d, NOTICE_257_QP2, v->dqp);
	wire_copy_in(d, NOTICE_257_GID1, &v->sgid);
	wire_copy_in(d, NOTICE_257_GID2, &v->dgid);
	raise_trap(self, d);
}

void fabric_trap_switch_pkey(struct fabric_port *at, const struct wire_packet *p)
{
	struct fabric_port *self = fabric_self(at);
	u16 valid = NOTICE_259_VALID_LID1 | NOTICE_259_VALID_LID2 | NOTICE_259_VALID_PKEY | NOTICE_259_VALID_SL |
		    NOTICE_259_VALID_QP2;
	u8 d[NOTICE_SIZE];

	notice_init(self, d, NOTICE_TYPE_SECURITY, TRAP_BAD_PKEY_SWITCH);
	wire_set(d, NOTICE_259_LID1, wire_lrh_slid(wire_packet_lrh(p)));
	wire_set(d, NOTICE_259_LID2, wire_lrh_dlid(wire_packet_lrh(p)));
	wire_set(d, NOTICE_259_PKEY, wire_bth_pkey(wire_packet_bth(p)));
	wire_set(d, NOTICE_259_SL, wire_lrh_sl(wire_packet_lrh(p)));
	wire_set(d, NOTICE_259_QP2, wire_bth_qpn(wire_packet_bth(p)));
	if (p->grh_off) {
		const struct wire_grh *grh = wire_packet_grh(p);

		valid |= NOTICE_259_VALID_GID1 | NOTICE_259_VALID_GID2;
		wire_copy_in(d, NOTICE_259_GID1, &grh->sgid);
		memcpy(wire_bytes(d, NOTICE_259_GID2), &grh->dgid, 16);
	}
	wire_set(d, NOTICE_259_DATA_VALID, valid);
	wire_set(d, NOTICE_259_SW_LID, self->info->lid);
	wire_set(d, NOTICE_259_PORT, at->num);
	raise_trap(self, d);
}
