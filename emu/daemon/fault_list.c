// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Armed faults, by the numbers that commands use. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/daemon/manager_fault.h"
#include "emu/hca/hca_fault.h"
#include "emu/lib/log.h"
#include "emu/lib/spec.h"

#define FAULTS_MAX  10000
#define REFUSED_MAX 240 /* bytes of one refusal among several */

/* A line of `muslin fault add`: one fault of the engine, or several: at all links, or for an unplugged adapter. */
struct armed_fault {
	struct list link;
	u32 id, nfaults;
	struct fault **fault;
	struct host *unplugged;         /* the second fault is that of its links */
	u64 armed;                      /* loop clock, ns */
	const struct fabric_node *node; /* node and port of its place; NULL, 0: none */
	u32 port;
	char text[];
};

/* What the faults of a line have done. The links of an unplugged adapter do not count. */
struct fault_sum {
	u64 seen, hits, digest;
	u32 held;
	bool applied;
};

static u32 fault_list_counted(const struct armed_fault *ft)
{
	return ft->unplugged ? 1 : ft->nfaults;
}

static struct fault_sum fault_list_sum(const struct armed_fault *ft)
{
	struct fault_sum sum = { 0 };
	u32 i;

	for (i = 0; i < fault_list_counted(ft); i++) {
		const struct pick *pick = &ft->fault[i]->pick;

		sum.seen += pick->seen;
		sum.hits += pick->hits;
		sum.digest = sum.digest * 0x100000001b3 ^ pick->digest;
		sum.held += fault_held(ft->fault[i]);
		sum.applied |= ft->fault[i]->applied;
	}
	return sum;
}

static void fault_list_fired(json_t *fired, const struct pick *pick)
{
	u64 i;

	for (i = 0; i < min(pick->hits, (u64)PICK_LOG); i++)
		json_array_append_new(fired, json_integer((json_int_t)pick->log[i]));
}

static json_t *fault_json(const struct daemon *d, const struct armed_fault *ft)
{
	struct fault_sum sum = fault_list_sum(ft);
	json_t *o = json_object(), *fired = json_array();
	char digest[20];
	u32 i;

	for (i = 0; i < fault_list_counted(ft); i++)
		fault_list_fired(fired, &ft->fault[i]->pick);
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)sum.digest);
	json_object_set_new(o, "id", json_integer(ft->id));
	json_object_set_new(o, "fault", json_string(ft->text));
	json_object_set_new(o, "armed", json_real((double)(ft->armed - d->started) / (double)NSEC_PER_SEC));
	json_object_set_new(o, "matches", json_integer((json_int_t)sum.seen));
	json_object_set_new(o, "hits", json_integer((json_int_t)sum.hits));
	json_object_set_new(o, "fired", fired); /* numbers of its first matches */
	json_object_set_new(o, "digest", json_string(digest));
	json_object_set_new(o, "applied", json_boolean(sum.applied));
	json_object_set_new(o, "held", json_integer(sum.held));
	return o;
}

static void fault_list_note(struct daemon *d, u32 id, const char *what, const char *text)
{
	char line[120];

	snprintf(line, sizeof(line), "%u %s%s%.90s", id, what, *text ? " " : "", text);
	daemon_timeline_note(d, "fault", line);
}

/* The next number. Unique among all shards: each uses every opt.shards-th number. */
static u32 fault_list_next(const struct daemon *d)
{
	return d->fault_id + max(d->opt.shards, 1u);
}

static void fault_list_notify(void *ctx, const struct fault *fault, const char *what)
{
	struct daemon *d = ctx;
	const struct armed_fault *ft;
	u32 id = fault_list_next(d), i; /* while it is being armed */

	list_for_each (ft, &d->faults, link)
		for (i = 0; i < ft->nfaults; i++)
			if (ft->fault[i] == fault)
				id = ft->id;
	fault_list_note(d, id, what, "");
}

/* Prepares the set for the fault of a line. */
static void fault_list_ready(struct daemon *d, struct fault_set *set)
{
	/* that of no other fault, nor of one in another daemon */
	set->seed = d->opt.seed + d->fault_seed + fault_list_next(d);
	set->notify = fault_list_notify;
	set->notify_ctx = d;
}

/* The set for the fault of a line, by its first two words. NULL with a message in @err. */
static struct fault_set *fault_list_set(struct daemon *d, const char *place, const char *action, char *err,
					size_t err_len)
{
	struct fault_set *set = daemon_fault_set(d, place, action, err, err_len);

	if (set)
		fault_list_ready(d, set);
	return set;
}

/* Arms a fault of the line. 0, or negative with a message in @err. */
static int fault_list_push(struct armed_fault *ft, struct fault_set *set, const char *text, char *err, size_t err_len)
{
	struct fault **more = realloc(ft->fault, (ft->nfaults + 1) * sizeof(struct fault *));

	if (!more)
		return spec_refuse(err, err_len, "out of memory");
	ft->fault = more;
	ft->fault[ft->nfaults] = fault_add(set, text, err, err_len);
	if (!ft->fault[ft->nfaults])
		return -1;
	ft->nfaults++;
	return 0;
}

/* Unplugs the adapter: takes its cables down, and revokes it from all programs that use it. */
static int fault_list_unplug(struct daemon *d, struct armed_fault *ft, struct fault_set *set, const char *place,
			     const char *text, char *err, size_t err_len)
{
	struct host *h = daemon_host_get(d, place);
	const char *quote = spec_quote(h->uv.name);
	const struct armed_fault *other;
	char line[FABRIC_NAME_MAX + 8];
	struct fault_set *links;

	list_for_each (other, &d->faults, link)
		if (other->unplugged == h) {
			snprintf(err, err_len, "unplug: fault %u has unplugged it already", other->id);
			return -1;
		}
	if (fault_list_push(ft, set, text, err, err_len))
		return -1;
	ft->unplugged = h;
	links = fault_list_set(d, h->uv.name, "down", err, err_len);
	snprintf(line, sizeof(line), "%s%s%s down", quote, h->uv.name, quote);
	if (links) /* else there is no cable */
		fault_list_push(ft, links, line, err, err_len);
	rdma_host_unplug(h->rdma, true);
	uv_server_unplug(d->server, &h->uv, true);
	return 0;
}

/* Writes the refusals of all kinds of links, each text once. False: there is none. */
static bool fault_list_refuse_all(char refused[][REFUSED_MAX], char *err, size_t err_len)
{
	u32 i, k, at = 0;

	for (i = 0; i < DAEMON_LINK_KINDS; i++) {
		for (k = 0; k < i && strcmp(refused[k], refused[i]); k++)
			;
		if (!*refused[i] || k < i || at >= err_len)
			continue;
		at += (u32)(at ? snprintf(err + at, err_len - at, "; and at %s %s", daemon_link_kinds[i].links,
					  refused[i])
			       : snprintf(err + at, err_len - at, "%s", refused[i]));
	}
	return at;
}

/* Arms the fault at all links of one kind; if it refuses, with a message in @refused. */
static void fault_list_arm_kind(struct daemon *d, struct armed_fault *ft, const char *text, u32 kind,
				char refused[REFUSED_MAX])
{
	struct fault_set *set;
	u32 i;

	for (i = 0; i < fabric_node_count(d->fabric) + 1; i++) {
		set = daemon_fault_links(d, daemon_link_kinds[kind].target, i);
		if (!set)
			continue;
		fault_list_ready(d, set);
		set->seed += (u64)(kind + i * DAEMON_LINK_KINDS) << 32; /* each has random numbers of its own */
		fault_list_push(ft, set, text, refused, REFUSED_MAX);
	}
}

/*
 * Arms the fault at all links of each kind that has it and its keys: a packet of one kind may have no key of another.
 * 0, or negative with a message in @err.
 */
static int fault_list_arm_all(struct daemon *d, struct armed_fault *ft, const char *text, const char *action, char *err,
			      size_t err_len)
{
	char refused[DAEMON_LINK_KINDS][REFUSED_MAX] = { "" };
	u32 kind;

	if (!strcmp(action, "kill"))
		return spec_refuse(err, err_len, "kill: it needs a node as its place");
	for (kind = 0; kind < DAEMON_LINK_KINDS; kind++)
		if (fault_kind(daemon_link_kinds[kind].target, action))
			fault_list_arm_kind(d, ft, text, kind, refused[kind]);
	if (ft->nfaults)
		return 0;
	if (!fault_list_refuse_all(refused, err, err_len))
		daemon_fault_refuse(d, FAULT_PLACE_ALL, action, err, err_len);
	return -1;
}

/* Arms the fault of the line @text with the words @w. 0, or negative with a message in @err. */
static int fault_list_arm(struct daemon *d, struct armed_fault *ft, const char *text, const struct spec_words *w,
			  char *err, size_t err_len)
{
	const char *place = w->n ? w->word[0] : "", *action = w->n > 1 ? w->word[1] : "";
	struct fault_set *set;

	if (daemon_place_is_all(place) && *action)
		return fault_list_arm_all(d, ft, text, action, err, err_len);
	set = fault_list_set(d, place, action, err, err_len);
	if (!set)
		return -1;
	if (set->target == &hca_fault_target && !strcmp(action, HCA_FAULT_UNPLUG))
		return fault_list_unplug(d, ft, set, place, text, err, err_len);
	return fault_list_push(ft, set, text, err, err_len);
}

static json_t *cmd_add(struct daemon *d, struct ctl_client *c, const char *text)
{
	size_t len = strlen(text) + 1;
	struct armed_fault *ft;
	struct spec_words w;
	char err[4 * REFUSED_MAX];

	if (d->nfaults >= FAULTS_MAX)
		return ctl_error(c, "%d faults are armed: clear some", FAULTS_MAX);
	if (spec_split(&w, text, err, sizeof(err)))
		return ctl_error(c, "%s", err);
	ft = calloc(1, sizeof(*ft) + len);
	if (!ft)
		return ctl_error(c, "out of memory");
	if (fault_list_arm(d, ft, text, &w, err, sizeof(err))) {
		free(ft->fault);
		free(ft);
		return w.n && daemon_place_is_unknown(d, w.word[0]) ? daemon_place_refuse(d, c, w.word[0])
								    : ctl_error(c, "%s", err);
	}
	memcpy(ft->text, text, len);
	ft->node = daemon_place_node(d, w.word[0], &ft->port);
	ft->id = d->fault_id = fault_list_next(d);
	ft->armed = loop_now(d->loop).ns;
	list_add(&d->faults, &ft->link);
	d->nfaults++;
	log_at(LOG_INFO, "fault", "%u armed: %s", ft->id, text);
	fault_list_note(d, ft->id, "armed:", text);
	return fault_json(d, ft);
}

static void fault_list_remove(struct daemon *d, struct armed_fault *ft)
{
	struct fault_sum sum = fault_list_sum(ft);

	log_at(LOG_INFO, "fault", "%u cleared after %llu hits of %llu matches", ft->id, (unsigned long long)sum.hits,
	       (unsigned long long)sum.seen);
	fault_list_note(d, ft->id, "cleared", "");
	while (ft->nfaults)
		fault_remove(ft->fault[--ft->nfaults]);
	if (ft->unplugged) {
		rdma_host_unplug(ft->unplugged->rdma, false);
		uv_server_unplug(d->server, &ft->unplugged->uv, false);
	}
	list_del(&ft->link);
	free(ft->fault);
	free(ft);
	d->nfaults--;
}

/* Whether the fault's place is @place, which is port @port of @n, or a port of @place. */
static bool fault_list_at(const struct armed_fault *ft, const char *place, const struct fabric_node *n, u32 port)
{
	size_t len = strlen(place);

	if (!strncmp(ft->text, place, len) && strchr(" :", ft->text[len]))
		return true;
	return n && n == ft->node && (!port || port == ft->port);
}

/*
 * Clears faults by number, by place (including its ports), all, or that which exchanges the same cables as @line;
 * returns them as listed before.
 */
static json_t *cmd_clear(struct daemon *d, struct ctl_client *c, u32 id, const char *place, const char *line)
{
	bool whole = place && daemon_place_is_all(place); /* any place */
	u32 port = 0;
	const struct fabric_node *n = place ? daemon_place_node(d, place, &port) : NULL;
	json_t *gone = json_array();
	struct armed_fault *ft, *tmp;

	list_for_each_safe (ft, tmp, &d->faults, link) {
		if ((id && ft->id != id) || (place && !whole && !fault_list_at(ft, place, n, port)) ||
		    (line && !daemon_swap_is_same(d, ft->text, line)))
			continue;
		json_array_append_new(gone, fault_json(d, ft));
		fault_list_remove(d, ft);
	}
	if (json_array_size(gone) || (!id && !place))
		return gone;
	if (place && (whole || !strcmp(place, MANAGER_FAULT_PLACE) || daemon_place_exists(d, place)))
		return gone;
	json_decref(gone);
	if (place)
		return ctl_error(c, "%.64s: there is no such place, and no fault at it", place);
	return ctl_error(c, "there is no fault %u; `muslin fault list` names those that are armed", id);
}

json_t *daemon_fault_command(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	const char *op = json_string_value(json_object_get(req, "op")) ?: "";
	const char *text = json_string_value(json_object_get(req, "fault"));
	const char *place = json_string_value(json_object_get(req, "place"));
	json_int_t id = json_integer_value(json_object_get(req, "id"));
	const struct armed_fault *ft;
	struct daemon *d = arg;
	json_t *all;

	if (!strcmp(op, "list")) {
		all = json_array();
		list_for_each (ft, &d->faults, link)
			json_array_append_new(all, fault_json(d, ft));
		return all;
	}
	if (!strcmp(op, "clear") && id >= 0 && id <= UINT32_MAX)
		return cmd_clear(d, c, (u32)id, place, text);
	if (!strcmp(op, "parts") && text)
		return daemon_swap_parts(d, text);
	if (!strcmp(op, "add") && text)
		return cmd_add(d, c, text);
	return ctl_error(c, "a fault request needs an \"op\": add with a \"fault\", list, or clear");
}

void daemon_faults_destroy(struct daemon *d)
{
	while (!list_empty(&d->faults))
		fault_list_remove(d, list_first(&d->faults, struct armed_fault, link));
}
