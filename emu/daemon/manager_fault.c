// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of the embedded subnet manager as a process, and of its SA's responses. Faults of its packets are those of
 * its host's links.
 */
#include "emu/daemon/manager_fault.h"

#include <errno.h>

#include "emu/lib/log.h"
#include "emu/smhost/sm_mad.h"

enum second_key {
	SECOND_PRIORITY = FAULT_OWN,
	SECOND_ALONE,
};

/* The subnet manager itself */

/* A killed manager cannot be paused, nor the other way round. */
static int only_one(struct fault *ft, char *err, size_t err_len)
{
	const struct fault *other;

	list_for_each (other, &ft->set->faults, link)
		if (other->applied && other->kind->undo)
			return spec_refuse(err, err_len, "%s: it contradicts %s, which is armed", ft->kind->name,
					   other->kind->name);
	return 0;
}

static void kill_apply(struct fault *ft)
{
	struct daemon *d = ft->set->owner;

	loop_timer_cancel(&d->manager_start);
	sm_mad_destroy(d->manager);
	d->manager = NULL;
}

/* Starts a subnet manager without state, like a new process. */
static void kill_undo(struct fault *ft)
{
	struct daemon *d = ft->set->owner;
	char why[512];

	if (daemon_manager_create(d, why, sizeof(why)))
		log_at(LOG_ERROR, "fault", "the subnet manager cannot restart: %s", why);
	else
		daemon_manager_start(d);
}

static void pause_apply(struct fault *ft)
{
	sm_mad_pause(((struct daemon *)ft->set->owner)->manager, true);
}

static void pause_undo(struct fault *ft)
{
	sm_mad_pause(((struct daemon *)ft->set->owner)->manager, false);
}

/* Responses of the SA */

static bool concerns_answer(const struct fault *ft, const void *mad)
{
	return !(ft->given & FAULT_MATCH_KEY(ATTR)) || wire_get(mad, MAD_ATTR_ID) == ft->match.attr;
}

static enum sm_mad_fate on_answer(void *arg, const u8 *mad, u64 *delay)
{
	struct daemon *d = arg;
	const struct fault *ft = fault_at(&d->manager_faults, FAULT_AT_ANY, concerns_answer, mad);

	if (!ft)
		return SM_MAD_GOES;
	*delay = ft->time;
	return (enum sm_mad_fate)ft->kind->at;
}

void daemon_manager_watch(struct daemon *d)
{
	sm_mad_watch(d->manager, on_answer, d);
}

static int manager_place(struct fault *ft, const char *place, char *err, size_t err_len)
{
	const struct daemon *d = ft->set->owner;

	return d->manager ? 0
			  : spec_refuse(err, err_len, "%s: there is no embedded subnet manager%s", place,
					fault_set_empty(ft->set) ? "" : " now");
}

#define SA_KEYS (FAULT_PICK_KEYS | FAULT_MATCH_KEY(ATTR) | BIT_ULL(FAULT_FOR))
static const struct fault_kind manager_kinds[] = {
	{ .name = "kill", .prepare = only_one, .apply = kill_apply, .undo = kill_undo, .allowed = BIT_ULL(FAULT_FOR) },
	{ .name = "pause",
	  .prepare = only_one,
	  .apply = pause_apply,
	  .undo = pause_undo,
	  .allowed = BIT_ULL(FAULT_FOR) },
	{ .name = "silent", .at = SM_MAD_LOST, .allowed = SA_KEYS },
	{ .name = "busy", .at = SM_MAD_BUSY, .allowed = SA_KEYS },
	{ .name = "slow", .at = SM_MAD_LATE, .allowed = SA_KEYS, .required = BIT_ULL(FAULT_TIME) },
	{ .name = NULL },
};
static const struct fault_kind *const kinds[] = { manager_kinds, NULL };
static const struct fault_target manager_target = {
	.of = "of the subnet manager ",
	.kinds = kinds,
	.size = sizeof(struct fault),
	.place = manager_place,
};

/* A second manager on a host */

struct second_manager {
	struct fault ft; /* must be the first member */
	u8 priority;
	bool alone;
	struct host *host;
	struct sm_mad *manager;
};

static struct second_manager *second_manager(struct fault *ft)
{
	return container_of(ft, struct second_manager, ft);
}

static int second_place(struct fault *ft, const char *place, char *err, size_t err_len)
{
	second_manager(ft)->host = daemon_fault_host(ft->set->owner, place, err, err_len);
	return second_manager(ft)->host ? 0 : -EINVAL;
}

static int second_start(struct fault *base, char *err, size_t err_len)
{
	struct second_manager *ft = second_manager(base);
	struct daemon *d = base->set->owner;
	struct sm_config cfg = daemon_manager_config(d);

	cfg.name = "sm2";
	cfg.seed++;
	cfg.priority = ft->priority;
	cfg.alone = ft->alone;
	if (fabric_node_binding(ft->host->node))
		return spec_refuse(err, err_len, "%s: its port is not an InfiniBand port", ft->host->uv.name);
	ft->manager = sm_mad_create(d->loop, ft->host->uv.mad[0], &cfg, err, err_len);
	if (!ft->manager)
		return -EINVAL;
	if (!sm_mad_start(ft->manager))
		return 0;
	sm_mad_destroy(ft->manager);
	ft->manager = NULL;
	return spec_refuse(err, err_len, "%s: it has a subnet manager", ft->host->uv.name);
}

static void second_undo(struct fault *base)
{
	sm_mad_destroy(second_manager(base)->manager);
}

static const struct spec_field second_keys[] = {
	[SECOND_PRIORITY - FAULT_OWN] = SPEC_FIELD("priority", SPEC_U8, second_manager, priority, .max = 15),
	[SECOND_ALONE - FAULT_OWN] = SPEC_FIELD("alone", SPEC_FLAG, second_manager, alone),
};
static const struct fault_kind second_kind[] = {
	{ .name = "manager",
	  .prepare = second_start,
	  .undo = second_undo,
	  .allowed = BIT_ULL(FAULT_FOR) | BIT_ULL(SECOND_PRIORITY) | BIT_ULL(SECOND_ALONE) },
	{ .name = NULL },
};
static const struct fault_kind *const second_kinds[] = { second_kind, NULL };
const struct fault_target second_manager_target = {
	.of = "of a second subnet manager ",
	.kinds = second_kinds,
	.keys = second_keys,
	.nkeys = ARRAY_SIZE(second_keys),
	.size = sizeof(struct second_manager),
	.place = second_place,
};

void manager_faults_init(struct daemon *d)
{
	fault_set_init(&d->manager_faults, &manager_target, d->loop, d, 0);
	fault_set_init(&d->second_managers, &second_manager_target, d->loop, d, 0);
}
