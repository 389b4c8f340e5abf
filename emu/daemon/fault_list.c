// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Armed faults, by the numbers that commands use. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/daemon/manager_fault.h"
#include "emu/hca/hca_fault.h"
#include "emu/lib/log.h"
#include "emu/lib/spec.h"
#include "fabric/fault.h"
#include "rxe/roce/roce.h"
#include "siw/siw.h"

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

static bool place_is_all(const char *place)
{
	return !strcmp(place, FAULT_PLACE_ALL);
}

/* Whether the place is a node, or a port of one. */
static bool fault_list_has(struct daemon *d, const char *place)
{
	const char *colon = strrchr(place, ':'), *port;
	char name[FABRIC_NAME_MAX] = "";
	bool all;

	if (colon && (size_t)(colon - place) < sizeof(name))
		snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
	return fabric_place_find(d->fabric, place, &port) || daemon_ether_place(d, place, &all) ||
	       daemon_ether_place(d, name, &all);
}

struct host *daemon_fault_host(struct daemon *d, const char *place, char *err, size_t err_len)
{
	struct host *h = daemon_host_get(d, place);

	if (!h)
		snprintf(err, err_len, "%.64s: %s", place,
			 place_is_all(place) || fault_list_has(d, place) ? "this fault needs a host as its place"
									 : "there is no such node");
	return h;
}

/* Functions that return the fault set of a target at a place; NULL: not a place of the target. */

/* The host at the place (its node, or port 1) if it is not on the fabric; else NULL. */
static struct host *bound_host_at(struct daemon *d, const char *place)
{
	const struct fabric_node *n = fabric_node_find(d->fabric, place);
	size_t len = strlen(place);
	char name[FABRIC_NAME_MAX];

	if (!n && len > 2 && len - 2 < sizeof(name) && !strcmp(place + len - 2, ":1")) {
		snprintf(name, sizeof(name), "%.*s", (int)(len - 2), place);
		n = fabric_node_find(d->fabric, name);
	}
	return n && fabric_node_binding(n) ? daemon_host_get(d, fabric_node_name(n)) : NULL;
}

static struct fault_set *second_managers_at(struct daemon *d, const char *place)
{
	return bound_host_at(d, place) || !daemon_host_get(d, place) ? NULL : &d->second_managers;
}

static struct fault_set *ether_at(struct daemon *d, const char *place)
{
	struct eth *net = daemon_ether_net(d);
	bool all;

	return net && (place_is_all(place) || daemon_ether_place(d, place, &all)) ? eth_faults(net) : NULL;
}

/* The fault set of a RoCE port on sockets. */
static struct fault_set *roce_at(struct daemon *d, const char *place)
{
	const struct host *h = bound_host_at(d, place);

	return h && !h->station && h->roce ? roce_port_faults(h->roce) : NULL;
}

static struct fault_set *iwarp_at(struct daemon *d, const char *place)
{
	const struct host *h = bound_host_at(d, place);

	return h && h->siw ? siw_faults(h->uv.hca) : NULL;
}

static struct fault_set *fabric_at(struct daemon *d, const char *place)
{
	if (place_is_all(place))
		return daemon_manager_needed(d) ? fabric_faults(d->fabric) : NULL;
	return bound_host_at(d, place) || ether_at(d, place) || daemon_ether_no_port(d, place, NULL, 0)
		       ? NULL
		       : fabric_faults(d->fabric);
}

static struct fault_set *hca_at(struct daemon *d, const char *place)
{
	struct host *h = daemon_host_get(d, place);

	return h && h->uv.hca ? hca_faults(h->uv.hca) : NULL;
}

static struct fault_set *firmware_at(struct daemon *d, const char *place)
{
	struct host *h = daemon_host_get(d, place);

	return h && daemon_guest_infiniband(h) ? &h->firmware : NULL;
}

/* The targets in the order in which those that have the action resolve the place. */
static const struct {
	const struct fault_target *target;
	struct fault_set *(*at)(struct daemon *d, const char *place);
} targets[] = {
	{ &second_manager_target, second_managers_at },
	{ &eth_fault_target, ether_at },
	{ &roce_fault_target, roce_at },
	{ &siw_fault_target, iwarp_at },
	{ &fabric_fault_target, fabric_at },
	{ &hca_fault_target, hca_at },
	{ &connectx_fault_target, firmware_at },
};

/* What the place "all" means: the kinds of links, in the order in which their faults are listed. */
static const struct {
	const struct fault_target *target;
	const char *links;
} link_kinds[] = {
	{ &fabric_fault_target, "InfiniBand links" },
	{ &eth_fault_target, "Ethernet links" },
	{ &roce_fault_target, "RoCE hosts on UDP" },
	{ &siw_fault_target, "iWARP hosts" },
};

/*
 * Fault set number @i of all links of the kind: 0 has those of a network, the others that of the host at each node.
 * NULL: none.
 */
static struct fault_set *fault_list_links(struct daemon *d, const struct fault_target *target, u32 i)
{
	const struct host *h = i ? d->hosts[i - 1] : NULL;

	if (target == &fabric_fault_target)
		return i ? NULL : fabric_at(d, FAULT_PLACE_ALL);
	if (target == &eth_fault_target)
		return i ? NULL : ether_at(d, FAULT_PLACE_ALL);
	if (target == &roce_fault_target)
		return h && h->roce && !h->station ? roce_port_faults(h->roce) : NULL;
	return h && h->siw ? siw_faults(h->uv.hca) : NULL;
}

static bool fault_list_any(struct daemon *d, const struct fault_target *target)
{
	u32 i = 0;

	if (target != &roce_fault_target && target != &siw_fault_target)
		return false;
	while (i <= fabric_node_count(d->fabric) && !fault_list_links(d, target, i))
		i++;
	return i <= fabric_node_count(d->fabric);
}

static struct fault_set *fault_list_refuse(struct daemon *d, const char *place, const char *action, char *err,
					   size_t err_len)
{
	char names[200];
	size_t at;
	u32 i;

	if (fault_kind(&hca_fault_target, action) || fault_kind(&second_manager_target, action) ||
	    fault_kind(&connectx_fault_target, action)) {
		if (daemon_fault_host(d, place, err, err_len))
			snprintf(err, err_len, "%.64s: the host has no %s", place,
				 fault_kind(&hca_fault_target, action) ? "adapter" : "InfiniBand port");
		return NULL;
	}
	if (daemon_ether_no_port(d, place, err, err_len))
		return NULL;
	if (!place_is_all(place) && !fault_list_has(d, place)) {
		snprintf(err, err_len, "%.64s: there is no such node", place);
		return NULL;
	}
	at = (size_t)snprintf(err, err_len, "%s: there is no such fault at %.64s; there are:", action, place);
	for (i = 0; i < ARRAY_SIZE(targets) && at < err_len; i++)
		if (targets[i].at(d, place) || (place_is_all(place) && fault_list_any(d, targets[i].target))) {
			fault_names(targets[i].target, names, sizeof(names));
			at += (size_t)snprintf(err + at, err_len - at, " %s", names);
		}
	return NULL;
}

/* Prepares the set for the fault of a line. */
static void fault_list_ready(struct daemon *d, struct fault_set *set)
{
	set->seed = d->opt.seed + fault_list_next(d); /* of no other fault, nor of one in another shard */
	set->notify = fault_list_notify;
	set->notify_ctx = d;
}

/* The fault set for a line, by its first two words; NULL with a message in @err. */
static struct fault_set *fault_list_set(struct daemon *d, const char *place, const char *action, char *err,
					size_t err_len)
{
	struct fault_set *set = NULL;
	u32 i;

	if (!strcmp(place, MANAGER_FAULT_PLACE) && !fabric_node_find(d->fabric, place))
		set = &d->manager_faults;
	else if (!*action)
		set = fabric_faults(d->fabric);
	for (i = 0; i < ARRAY_SIZE(targets) && !set; i++)
		if (fault_kind(targets[i].target, action))
			set = targets[i].at(d, place);
	if (!set)
		return fault_list_refuse(d, place, action, err, err_len);
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
	if (links) /* an error: no cable */
		fault_list_push(ft, links, line, err, err_len);
	rdma_host_unplug(h->rdma, true);
	uv_server_unplug(d->server, &h->uv, true);
	return 0;
}

/* Writes the refusals of all kinds of links, each text once. False: there is none. */
static bool fault_list_refuse_all(char refused[][REFUSED_MAX], char *err, size_t err_len)
{
	u32 i, k, at = 0;

	for (i = 0; i < ARRAY_SIZE(link_kinds); i++) {
		for (k = 0; k < i && strcmp(refused[k], refused[i]); k++)
			;
		if (!*refused[i] || k < i || at >= err_len)
			continue;
		at += (u32)(at ? snprintf(err + at, err_len - at, "; and at %s %s", link_kinds[i].links, refused[i])
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
		set = fault_list_links(d, link_kinds[kind].target, i);
		if (!set)
			continue;
		fault_list_ready(d, set);
		set->seed += (u64)(kind + i * ARRAY_SIZE(link_kinds)) << 32; /* each has random numbers of its own */
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
	char refused[ARRAY_SIZE(link_kinds)][REFUSED_MAX] = { "" };
	u32 kind;

	if (!strcmp(action, "kill"))
		return spec_refuse(err, err_len, "kill: it needs a node as its place");
	for (kind = 0; kind < ARRAY_SIZE(link_kinds); kind++)
		if (fault_kind(link_kinds[kind].target, action))
			fault_list_arm_kind(d, ft, text, kind, refused[kind]);
	if (ft->nfaults)
		return 0;
	if (!fault_list_refuse_all(refused, err, err_len))
		fault_list_refuse(d, FAULT_PLACE_ALL, action, err, err_len);
	return -1;
}

/* Arms the fault of the line @text with the words @w. 0, or negative with a message in @err. */
static int fault_list_arm(struct daemon *d, struct armed_fault *ft, const char *text, const struct spec_words *w,
			  char *err, size_t err_len)
{
	const char *place = w->n ? w->word[0] : "", *action = w->n > 1 ? w->word[1] : "";
	struct fault_set *set;

	if (place_is_all(place) && *action)
		return fault_list_arm_all(d, ft, text, action, err, err_len);
	set = fault_list_set(d, place, action, err, err_len);
	if (!set)
		return -1;
	if (set->target == &hca_fault_target && !strcmp(action, HCA_FAULT_UNPLUG))
		return fault_list_unplug(d, ft, set, place, text, err, err_len);
	return fault_list_push(ft, set, text, err, err_len);
}

/* The node of a place, by any of its names, and the port number (0: none given). */
static const struct fabric_node *place_node(struct daemon *d, const char *place, u32 *port)
{
	const char *num;
	const struct fabric_node *n = fabric_place_find(d->fabric, place, &num);

	*port = num ? (u32)strtoul(num, NULL, 10) : 0;
	return n;
}

/* Whether the place has the name of no node; more than one may have that name. */
static bool place_is_unknown(struct daemon *d, const char *place)
{
	return !place_is_all(place) && strcmp(place, MANAGER_FAULT_PLACE) != 0 && !fault_list_has(d, place) &&
	       !fabric_node_matches(d->fabric, place, NULL, 0);
}

static json_t *refuse_place(struct daemon *d, struct ctl_client *c, const char *place)
{
	char name[FABRIC_NAME_MAX], like[4 * (FABRIC_NAME_MAX + 8)];
	size_t len = strcspn(place, ":");

	snprintf(name, sizeof(name), "%.*s", (int)min(len, sizeof(name) - 1), place);
	daemon_like_text(d, name, false, like, sizeof(like));
	return ctl_error(c, "%.64s: there is no such node%s; `muslin show` lists all", place, like);
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
		return w.n && place_is_unknown(d, w.word[0]) ? refuse_place(d, c, w.word[0]) : ctl_error(c, "%s", err);
	}
	memcpy(ft->text, text, len);
	ft->node = place_node(d, w.word[0], &ft->port);
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
 * A fault that exchanges cables of several daemons: the ends of these, by fabric_whole_cables(), and the words of its
 * line. False: it is another one, or is refused when it is added.
 */
static bool fault_list_cables(struct daemon *d, const char *text, struct spec_words *w, struct fabric_end end[4])
{
	char err[200];
	u32 k, i;

	if (!d->whole || spec_split(w, text, err, sizeof(err)))
		return false;
	for (k = 2; k < w->n && strncmp(w->word[k], "with=", 5); k++)
		;
	if (k >= w->n || strcmp(w->word[1], "swap") ||
	    fabric_whole_cables(d->fabric, w->word[0], w->word[k] + 5, end, err, sizeof(err)))
		return false;
	for (i = 1; i < 4 && end[i].node->shard == end[0].node->shard; i++)
		;
	return i < 4;
}

static bool end_is(const struct fabric_end *a, const struct fabric_end *b)
{
	return a->node == b->node && a->num == b->num;
}

/* Whether two lines exchange the same cables, each named by one of its ends. */
static bool fault_list_same_cables(struct daemon *d, const char *a, const char *b)
{
	struct fabric_end x[4], y[4];
	struct spec_words w;
	u32 i;

	if (!fault_list_cables(d, a, &w, x) || !fault_list_cables(d, b, &w, y))
		return false;
	for (i = 0; i < 4 && !(end_is(&x[0], &y[i]) && end_is(&x[2], &y[i ^ 2])); i++)
		;
	return i < 4;
}

/* The line of @w with the places of two ends instead. NULL: too long. */
static json_t *fault_list_part(const struct spec_words *w, const struct fabric_end *place,
			       const struct fabric_end *with)
{
	const char *quote = spec_quote(place->node->name);
	char line[sizeof(w->text)], word[FABRIC_NAME_MAX + 16];
	size_t at;
	u32 i;

	at = (size_t)snprintf(line, sizeof(line), "%s%s:%u%s", quote, place->node->name, place->num, quote);
	for (i = 1; i < w->n && at < sizeof(line); i++) {
		bool is_with = !strncmp(w->word[i], "with=", 5);

		snprintf(word, sizeof(word), "with=%s:%u", with->node->name, with->num);
		quote = spec_quote(is_with ? word : w->word[i]);
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s%s%s", quote, is_with ? word : w->word[i],
				       quote);
	}
	return at < sizeof(line) ? json_string(line) : NULL;
}

/*
 * A fault that exchanges cables of several daemons is armed in each of these, with a line that begins with an end of a
 * cable there. An array of these lines and daemons, in the order of the latter; empty: the line is for one daemon. With
 * --join, the daemons have names.
 */
static json_t *cmd_parts(struct daemon *d, const char *text)
{
	json_t *parts = json_array();
	struct fabric_end end[4];
	struct spec_words w;
	u32 shard, i, n = d->opt.shards;
	json_t *part;

	if (d->opt.join)
		n = d->whole->nshards;
	for (shard = 0; fault_list_cables(d, text, &w, end) && shard < n; shard++) {
		for (i = 0; i < 4 && end[i].node->shard != shard; i++)
			;
		if (i == 4)
			continue;
		part = json_pack("{s:i, s:o}", "shard", (int)shard, "fault",
				 i ? fault_list_part(&w, &end[i], &end[i ^ 2]) : json_string(text));
		if (d->opt.join)
			json_object_set_new(part, "name", json_string(d->whole->shards[shard].name));
		json_array_append_new(parts, part);
	}
	return parts;
}

/*
 * Clears faults by number, by place (including its ports), all, or that which exchanges the same cables as @line;
 * returns them as listed before.
 */
static json_t *cmd_clear(struct daemon *d, struct ctl_client *c, u32 id, const char *place, const char *line)
{
	bool whole = place && place_is_all(place); /* any place */
	u32 port = 0;
	const struct fabric_node *n = place ? place_node(d, place, &port) : NULL;
	json_t *gone = json_array();
	struct armed_fault *ft, *tmp;

	list_for_each_safe (ft, tmp, &d->faults, link) {
		if ((id && ft->id != id) || (place && !whole && !fault_list_at(ft, place, n, port)) ||
		    (line && !fault_list_same_cables(d, ft->text, line)))
			continue;
		json_array_append_new(gone, fault_json(d, ft));
		fault_list_remove(d, ft);
	}
	if (json_array_size(gone) || (!id && !place))
		return gone;
	if (place && (whole || !strcmp(place, MANAGER_FAULT_PLACE) || fault_list_has(d, place)))
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
		return cmd_parts(d, text);
	if (!strcmp(op, "add") && text)
		return cmd_add(d, c, text);
	return ctl_error(c, "a fault request needs an \"op\": add with a \"fault\", list, or clear");
}

void daemon_faults_destroy(struct daemon *d)
{
	while (!list_empty(&d->faults))
		fault_list_remove(d, list_first(&d->faults, struct armed_fault, link));
}
