// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of the embedded subnet manager as a process, and of its SA's answers. Those of its packets are faults of the
 * links of its host.
 */
#include "emu/manager_fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lib/log.h"
#include "emu/lib/spec.h"
#include "emu/sm_mad.h"

enum field {
	F_PICK,
	F_FOR = F_PICK + PICK_FIELDS,
	F_TIME,
	F_PRIORITY,
	F_ALONE,
};

struct action {
	const char *name;
	bool host; /* its place is a host, not the manager */
	u64 allowed, required;
	int (*start)(struct manager_fault *ft, char *err, size_t err_len);
	void (*stop)(struct manager_fault *ft);
	enum sm_mad_fate fate; /* of answers that are chosen */
};

struct manager_fault {
	struct daemon *d;
	struct list link;
	const struct action *action;
	u64 given, seed, lasts, time;
	struct pick pick;
	u8 priority;
	bool alone, applied;
	struct loop_timer timer;
	struct host *host;
	struct sm_mad *manager; /* one more, on that host */
};

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, manager_fault, member, ##__VA_ARGS__)
static const struct spec_field fields[] = {
	PICK_SPEC(F_PICK, manager_fault, pick, seed), [F_FOR] = KEY("for", SPEC_TIME, lasts),
	[F_TIME] = KEY("time", SPEC_TIME, time),      [F_PRIORITY] = KEY("priority", SPEC_U8, priority, .max = 15),
	[F_ALONE] = KEY("alone", SPEC_FLAG, alone),
};

/* The manager itself */

/* One that is dead cannot be stopped, nor the other way round. */
static int only_one(const struct manager_fault *ft, char *err, size_t err_len)
{
	const struct manager_fault *other;

	list_for_each (other, &ft->d->manager_faults, link)
		if (other != ft && other->applied && other->action->stop && !other->action->host)
			return spec_refuse(err, err_len, "%s: it contradicts %s, which is armed", ft->action->name,
					   other->action->name);
	return 0;
}

static int kill_start(struct manager_fault *ft, char *err, size_t err_len)
{
	if (only_one(ft, err, err_len))
		return -EINVAL;
	sm_mad_destroy(ft->d->manager);
	ft->d->manager = NULL;
	return 0;
}

/* It knows nothing of what was before, as a process that is started again. */
static void kill_stop(struct manager_fault *ft)
{
	char why[512];

	if (daemon_manager_create(ft->d, why, sizeof(why)))
		log_at(LOG_ERROR, "fault", "the subnet manager does not come back: %s", why);
	else if (sm_mad_start(ft->d->manager))
		log_at(LOG_ERROR, "fault", "the subnet manager cannot start");
}

static int pause_start(struct manager_fault *ft, char *err, size_t err_len)
{
	if (only_one(ft, err, err_len))
		return -EINVAL;
	sm_mad_pause(ft->d->manager, true);
	return 0;
}

static void pause_stop(struct manager_fault *ft)
{
	sm_mad_pause(ft->d->manager, false);
}

static int second_start(struct manager_fault *ft, char *err, size_t err_len)
{
	struct sm_config cfg = {
		.name = "sm2",
		.routing = ft->d->opt.routing,
		.lmc = ft->d->opt.lmc,
		.qos = ft->d->opt.qos,
		.seed = ft->d->opt.seed + 1,
		.priority = ft->priority,
		.subnet_prefix = ft->d->opt.subnet_prefix,
		.partitions = ft->d->partitions,
		.partitions_file = ft->d->opt.partitions,
		.alone = ft->alone,
	};

	if (fabric_node_binding(ft->host->node))
		return spec_refuse(err, err_len, "%s: it is not on the fabric", ft->host->uv.name);
	ft->manager = sm_mad_create(ft->d->loop, ft->host->uv.mad[0], &cfg, err, err_len);
	if (!ft->manager)
		return -EINVAL;
	if (!sm_mad_start(ft->manager))
		return 0;
	sm_mad_destroy(ft->manager);
	ft->manager = NULL;
	return spec_refuse(err, err_len, "%s: it has a subnet manager", ft->host->uv.name);
}

static void second_stop(struct manager_fault *ft)
{
	sm_mad_destroy(ft->manager);
	ft->manager = NULL;
}

/* What its SA answers */

static enum sm_mad_fate on_answer(void *arg, u64 *delay)
{
	struct daemon *d = arg;
	struct manager_fault *ft;

	list_for_each (ft, &d->manager_faults, link)
		if (ft->applied && ft->action->fate && pick_next(&ft->pick)) {
			*delay = ft->time;
			return ft->action->fate;
		}
	return SM_MAD_GOES;
}

void daemon_manager_watch(struct daemon *d)
{
	sm_mad_watch(d->manager, on_answer, d);
}

#define SA_KEYS (PICK_KEYS(F_PICK) | BIT_ULL(F_FOR))
static const struct action actions[] = {
	{ .name = "kill", .start = kill_start, .stop = kill_stop, .allowed = BIT_ULL(F_FOR) },
	{ .name = "pause", .start = pause_start, .stop = pause_stop, .allowed = BIT_ULL(F_FOR) },
	{ .name = "silent", .fate = SM_MAD_LOST, .allowed = SA_KEYS },
	{ .name = "busy", .fate = SM_MAD_BUSY, .allowed = SA_KEYS },
	{ .name = "slow", .fate = SM_MAD_LATE, .allowed = SA_KEYS, .required = BIT_ULL(F_TIME) },
};

/* Of a host, which becomes a manager, too. */
static const struct action host_actions[] = {
	{ .name = "manager",
	  .host = true,
	  .start = second_start,
	  .stop = second_stop,
	  .allowed = BIT_ULL(F_FOR) | BIT_ULL(F_PRIORITY) | BIT_ULL(F_ALONE) },
};

/* Life */

bool manager_fault_concerns(struct daemon *d, const char *place, const char *action)
{
	if (!strcmp(place, MANAGER_FAULT_PLACE) && !fabric_node_find(d->fabric, place))
		return true;
	return SPEC_ROW(host_actions, action);
}

static int unknown_action(const char *name, char *err, size_t err_len)
{
	char all[128];

	SPEC_NAMES(all, 0, sizeof(all), actions);
	return spec_refuse(err, err_len, "%.40s: there is no such fault; of the subnet manager there are %s", name,
			   all);
}

static int take_place(struct manager_fault *ft, const char *place, char *err, size_t err_len)
{
	if (!ft->action->host)
		return ft->d->manager ? 0
				      : spec_refuse(err, err_len, "%s: there is no embedded subnet manager%s", place,
						    list_empty(&ft->d->manager_faults) ? "" : " now");
	ft->host = daemon_host_get(ft->d, place);
	if (ft->host)
		return 0;
	return spec_refuse(err, err_len, "%.64s: %s", place,
			   fabric_node_find(ft->d->fabric, place) ? "this fault needs a host as its place"
								  : "there is no such node");
}

static int read_words(struct manager_fault *ft, const struct spec_words *w, char *err, size_t err_len)
{
	bool manager = w->n && !strcmp(w->word[0], MANAGER_FAULT_PLACE);
	int rc;

	if (w->n < 2)
		return spec_refuse(err, err_len, "%.40s: a fault is a place, an action, and keys",
				   w->n ? w->word[0] : "");
	ft->action = manager ? SPEC_ROW(actions, w->word[1]) : SPEC_ROW(host_actions, w->word[1]);
	if (!ft->action)
		return unknown_action(w->word[1], err, err_len);
	rc = spec_words(fields, ARRAY_SIZE(fields), ft, &ft->given, w, 2, err, err_len);
	if (rc)
		return rc;
	rc = spec_keys(fields, ARRAY_SIZE(fields), ft->action->name, ft->given, ft->action->allowed,
		       ft->action->required, err, err_len);
	return rc ?: take_place(ft, w->word[0], err, err_len);
}

static void end(struct manager_fault *ft)
{
	if (ft->applied && ft->action->stop)
		ft->action->stop(ft);
	ft->applied = false;
}

static void on_timer(struct loop_timer *t, struct now now)
{
	struct manager_fault *ft = container_of(t, struct manager_fault, timer);

	end(ft);
	daemon_fault_ended(ft->d, ft);
}

static void destroy(struct manager_fault *ft)
{
	loop_timer_cancel(&ft->timer);
	list_del(&ft->link);
	free(ft);
}

struct manager_fault *manager_fault_add(struct daemon *d, const char *text, u64 seed, char *err, size_t err_len)
{
	struct manager_fault *ft = calloc(1, sizeof(*ft));
	struct spec_words words = { .n = 0 };
	struct rng rng;

	if (!ft) {
		spec_refuse(err, err_len, "out of memory");
		return NULL;
	}
	ft->d = d;
	ft->timer.fn = on_timer;
	list_init(&ft->link);
	if (spec_split(&words, text, err, err_len) || read_words(ft, &words, err, err_len) ||
	    pick_start(&ft->pick, ft->given, F_PICK, ft->seed, seed, &rng, err, err_len) ||
	    (ft->action->start && ft->action->start(ft, err, err_len))) {
		destroy(ft);
		return NULL;
	}
	ft->applied = true;
	list_add(&d->manager_faults, &ft->link);
	if (ft->action->start)
		pick_next(&ft->pick);
	if (ft->lasts)
		loop_timer_set(d->loop, &ft->timer, loop_now(d->loop).ns + ft->lasts);
	return ft;
}

void manager_fault_remove(struct manager_fault *ft)
{
	end(ft);
	destroy(ft);
}

const struct pick *manager_fault_pick(const struct manager_fault *ft)
{
	return &ft->pick;
}

bool manager_fault_applied(const struct manager_fault *ft)
{
	return ft->applied;
}
