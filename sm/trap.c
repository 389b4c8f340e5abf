// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Notices: those that arrive as traps, and those of subnet administration itself. IBTA 13.4.9, 14.2.5.1, 14.3.10. */
#include "sm/internal.h"
#include "sm/sa.h"

static void repress(struct sm *sm, const u8 *mad, const struct mad_addr *from)
{
	u8 resp[MAD_SIZE];

	memcpy(resp, mad, MAD_SIZE);
	wire_set(resp, MAD_METHOD, MAD_METHOD_TRAP_REPRESS);
	wire_set(resp, MAD_STATUS, 0);
	sm_smp_send_plain(sm, resp, from);
}

static void on_link_state(struct sm *sm, const u8 *notice)
{
	sm_sweep_request(sm);
}

static void on_local_change(struct sm *sm, const u8 *notice)
{
	struct sm_port *p = sm_port_by_lid(sm, wire_get(notice, NOTICE_144_LID));

	if (p)
		p->node->desc_stale = true;
	sm_sweep_request(sm);
}

/* What the subnet manager does about generic traps; others are only reported. */
static const struct {
	u16 trap;
	void (*fn)(struct sm *sm, const u8 *notice);
} actions[] = {
	{ TRAP_LINK_STATE_CHANGE, on_link_state },
	{ TRAP_LOCAL_CHANGES, on_local_change },
	{ TRAP_SYS_IMAGE_GUID, on_local_change },
};

void sm_trap_receive(struct sm *sm, const u8 *mad, const struct mad_addr *from)
{
	struct sm_port *p = sm_port_by_lid(sm, from->lid);
	u8 notice[NOTICE_SIZE] = { 0 };
	u16 trap;
	u32 i;

	if (!sm_is_master(sm))
		return;
	memcpy(notice, mad + SMP_DATA, NOTICE_SMP_SIZE);
	trap = wire_get(notice, NOTICE_IS_GENERIC) ? wire_get(notice, NOTICE_TRAP_NUMBER) : 0;
	sm->st.traps++;
	sm_log(sm, LOG_INFO, "trap %u (%s) from %s", trap, wire_trap_name(trap),
	       p ? sm_node_name(p->node) : "nobody known");
	repress(sm, mad, from);
	for (i = 0; i < ARRAY_SIZE(actions); i++)
		if (actions[i].trap == trap)
			actions[i].fn(sm, notice);
	if (p) {
		struct wire_gid gid = wire_gid_make(sm->cfg.subnet_prefix, p->guid);

		wire_copy_in(notice, NOTICE_ISSUER_GID, gid.raw);
	}
	sm_inform_report(sm, notice, NULL);
}

void sm_trap_gid(struct sm *sm, u16 trap, const struct wire_gid *gid, const struct sm_port *subject)
{
	struct wire_gid own = wire_gid_make(sm->cfg.subnet_prefix, sm->ops->port_guid(sm->transport));
	u8 notice[NOTICE_SIZE] = { 0 };

	wire_set(notice, NOTICE_IS_GENERIC, 1);
	wire_set(notice, NOTICE_TYPE, NOTICE_TYPE_SUBN_MGT);
	wire_set(notice, NOTICE_PRODUCER_TYPE, NOTICE_PRODUCER_CLASS_MGR);
	wire_set(notice, NOTICE_TRAP_NUMBER, trap);
	wire_set(notice, NOTICE_ISSUER_LID, sm->self ? sm->self->lid : 0);
	wire_copy_in(notice, NOTICE_64_GID, gid->raw);
	wire_copy_in(notice, NOTICE_ISSUER_GID, own.raw);
	sm_inform_report(sm, notice, subject);
}
