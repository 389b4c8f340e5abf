// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The trunks of a fabric: their addresses and keys, and those that faults add and remove. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "fabric/trunk/trunk_internal.h"

#define KEY_MAX 4096

const char *trunk_counter_name(enum trunk_counter c)
{
	static const char *const names[] = { TRUNK_COUNTERS(COUNTER_NAME) };

	return c < TRUNK_CTR_NUM ? names[c] : "?";
}

/* Those of the topology, then those of faults; NULL: out of range. */
static struct trunk *trunk_at(const struct trunk_set *s, u32 index)
{
	struct trunk *t;

	if (index < s->ntrunks)
		return &s->trunks[index];
	index -= s->ntrunks;
	list_for_each (t, &s->extra, extra)
		if (!index--)
			return t;
	return NULL;
}

bool trunk_info(const struct trunk_set *s, u32 index, struct trunk_info *info)
{
	const struct trunk *t = trunk_at(s, index);

	if (!t)
		return false;
	*info = (struct trunk_info){
		.port = fabric_remote_local(t->remote),
		.peer = fabric_remote_node(t->remote),
		.num = t->port,
		.peer_port = fabric_node_ports(fabric_remote_node(t->remote)),
		.address = t->address,
		.listens = t->listener != NULL,
		.connected = t->s.state == TRUNK_READY,
		.tls = t->tls,
	};
	return true;
}

u64 trunk_counter(const struct trunk_set *s, u32 index, enum trunk_counter c)
{
	const struct trunk *t = trunk_at(s, index);

	return t && c < TRUNK_CTR_NUM ? t->ctr[c] : 0;
}

u64 trunk_set_counter(const struct trunk_set *s, enum trunk_counter c)
{
	return c < TRUNK_CTR_NUM ? s->ctr[c] : 0;
}

bool trunk_set_has_tcp(const struct trunk_set *s)
{
	return s->tcp;
}

u32 trunk_set_links_down(const struct trunk_set *s)
{
	u32 i, n = 0;

	for (i = 0; i < s->ntrunks; i++)
		n += !s->trunks[i].suspended && !fabric_remote_is_up(s->trunks[i].remote);
	return n;
}

/* The fabric's side */

static void on_send(void *ctx, struct wire_packet *p)
{
	struct trunk *t = ctx;

	if (t->conn)
		trunk_session_send(t, p);
	else
		fabric_remote_drop(t->remote, p);
}

static void on_credits(void *ctx, u8 vl)
{
	struct trunk *t = ctx;

	if (t->conn)
		trunk_session_credits(t, vl);
}

static void on_change(void *ctx, enum fabric_remote_change what)
{
	struct trunk *t = ctx;

	bool unplugged = what == FABRIC_REMOTE_UNPLUG;

	if ((unplugged || what == FABRIC_REMOTE_PLUG) && !fabric_remote_is_up(t->remote)) { /* else it was in, and is */
		t->cable = true;
		t->unplugged = unplugged;
	}
	if (t->conn)
		trunk_session_change(t, what);
}

static enum fabric_remote_payload on_payload(void *ctx, bool wait)
{
	struct trunk *t = ctx;

	return t->conn ? trunk_session_payload(t, wait) : FABRIC_REMOTE_KEEPS;
}

static const struct fabric_remote_ops remote_ops = {
	.send = on_send, .credits = on_credits, .change = on_change, .payload = on_payload
};

bool trunk_count_changes(struct trunk *t, u32 n)
{
	u64 now = loop_now(t->set->loop).ns;

	if (now - t->changes_since >= NSEC_PER_SEC) {
		t->changes_since = now;
		t->changes = 0;
	}
	t->changes += n;
	return t->changes <= TRUNK_CHANGES;
}

/* Creation */

/* Of a name to connect to, the length remains 0. False with a line in @err. */
static bool address_read(const char *text, bool listen, struct trunk_address *at, char *err, size_t err_len)
{
	struct trunk_addresses all;
	int rc = trunk_address_read(text, listen, &all);

	memset(at, 0, sizeof(*at));
	if (!rc)
		*at = all.at[0];
	if (!rc || (rc == EAI_NONAME && !listen))
		return true;
	snprintf(err, err_len, "trunk %s: %s", text, gai_strerror(rc));
	return false;
}

/* The key of the file as another trunk has read it: the file may have been a pipe. False: none has, or no memory. */
static bool key_copy(struct trunk *t, const char *path)
{
	const struct trunk *other;
	u32 i;

	for (i = 0; (other = trunk_at(t->set, i)); i++)
		if (other != t && other->key_path && !strcmp(other->key_path, path))
			break;
	t->key = other ? malloc(other->key_len) : NULL;
	if (!t->key)
		return false;
	t->key_len = other->key_len;
	memcpy(t->key, other->key, other->key_len);
	return true;
}

static bool key_read(struct trunk *t, const char *path, char *err, size_t err_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | (t->set->running ? O_NONBLOCK : 0)); /* the loop must not block */
	struct stat st;
	ssize_t n = -1;

	/* The daemon's user may have it to itself; that of an orchestrator's secret belongs to another user. */
	if (fd >= 0 && !fstat(fd, &st) && st.st_mode & (st.st_uid == geteuid() ? 077 : 022)) {
		snprintf(err, err_len,
			 "%s: the key of trunk %s has mode %04o, with which others may access it: use 0600", path,
			 t->name, st.st_mode & 07777u);
		close(fd);
		return false;
	}
	t->key = malloc(KEY_MAX);
	if (fd >= 0 && t->key)
		n = read(fd, t->key, KEY_MAX);
	if (n < 0)
		snprintf(err, err_len, "%s: the key of trunk %s cannot be read: %s", path, t->name, strerror(errno));
	if (fd >= 0)
		close(fd);
	while (n > 0 && (t->key[n - 1] == '\n' || t->key[n - 1] == '\r'))
		n--;
	if (n >= 0 && n < 16)
		snprintf(err, err_len, "%s: the key of trunk %s is shorter than 16 bytes", path, t->name);
	t->key_len = n > 0 ? (size_t)n : 0;
	return n >= 16;
}

/* Its key and TLS. False with a line in @err. */
static bool trunk_secure(struct trunk *t, const struct fabric_topology_trunk *tt, char *err, size_t err_len)
{
	t->key_path = tt->key ? strdup(tt->key) : NULL;
	if (tt->key && !t->key_path) {
		snprintf(err, err_len, "out of memory");
		return false;
	}
	if (tt->key && !key_copy(t, tt->key) && !key_read(t, tt->key, err, err_len))
		return false;
	t->tls = tt->tls;
	if (t->tls && !trunk_tls_in_build()) {
		snprintf(err, err_len,
			 "trunk %s: this build has no TLS, for it was made without GnuTLS; with \"tls off\" packets "
			 "are neither encrypted nor signed",
			 t->name);
		return false;
	}
	if (t->key)
		trunk_tls_derive(&t->tls_key, t->key, t->key_len);
	return true;
}

/* At the local port of @r, whose node has @guid in the topology. */
static bool trunk_init(struct trunk *t, struct fabric_remote *r, u64 guid, const struct fabric_topology_trunk *tt,
		       char *err, size_t err_len)
{
	struct trunk_set *s = t->set;
	const struct fabric_node *n;
	struct fabric_port_info info;

	t->remote = r;
	list_init(&t->requests);
	list_init(&t->sibling);
	list_init(&t->extra);
	n = fabric_port_node(fabric_remote_local(t->remote));
	fabric_port_info(fabric_remote_local(t->remote), &info);
	t->guid = guid;
	t->type = fabric_node_type(n);
	t->port = info.num;
	t->peer_guid = tt->peer_guid;
	t->peer_port = tt->peer_port;
	snprintf(t->name, sizeof(t->name), "%.58s:%u", fabric_node_name(n), t->port);
	t->address = strdup(tt->address);
	if (!t->address) {
		snprintf(err, err_len, "out of memory");
		return false;
	}
	if (!trunk_secure(t, tt, err, err_len) || !address_read(t->address, tt->listen, &t->at, err, err_len))
		return false;
	s->tcp |= t->address[0] != '/';
	fabric_remote_attach(t->remote, &remote_ops, t);
	if (tt->listen) {
		t->listener = trunk_listener_get(s, t, err, err_len);
		return t->listener != NULL;
	}
	if (!trunk_connector_add(t)) {
		snprintf(err, err_len, "out of memory");
		return false;
	}
	if (t->connector->ntrunks <= TRUNK_LINKS)
		return true;
	snprintf(err, err_len, "more than %u trunks connect to %s", TRUNK_LINKS, t->address);
	return false;
}

static void trunk_fini(struct trunk *t)
{
	free(t->address);
	free(t->key_path);
	if (t->key)
		explicit_bzero(t->key, t->key_len);
	explicit_bzero(&t->tls_key, sizeof(t->tls_key));
	free(t->key);
}

void trunk_swap_ended(struct trunk *t)
{
	t->swap_ended = true;
	loop_task_queue(t->set->loop, &t->set->swaps);
}

static void on_lost(struct loop_timer *timer, struct now now)
{
	struct trunk *t = container_of(timer, struct trunk, lost);

	if (t->s.state != TRUNK_READY)
		trunk_swap_ended(t);
}

/* Ends faults whose other parts have ended, which removes trunks. */
static void on_swaps_ended(struct loop_task *task, struct now now)
{
	struct trunk_set *s = container_of(task, struct trunk_set, swaps);
	struct trunk *t;
	u32 i;

	do {
		for (i = 0; (t = trunk_at(s, i)) && !t->swap_ended; i++)
			;
		if (!t)
			return;
		t->swap_ended = false;
		log_at(LOG_INFO, "trunk", "%s: the daemon at the other end does not have the swap: it ends", t->name);
		fabric_swap_end(s->fabric, t->remote);
	} while (1);
}

struct trunk_set *trunk_set_create(struct loop *loop, struct fabric *f, const struct fabric_topology *topo, char *err,
				   size_t err_len)
{
	struct trunk_set *s = calloc(1, sizeof(*s));
	bool ok = true;

	if (s) {
		s->loop = loop;
		list_init(&s->rings);
		list_init(&s->extra);
		list_init(&s->connectors);
		loop_task_init(&s->swaps, on_swaps_ended);
		s->poller = (struct loop_poller){ .poll = trunk_conn_poll, .sleep = trunk_conn_sleep };
		loop_poller_add(loop, &s->poller);
		s->fabric = f;
		s->trunks = calloc(topo->ntrunks + 1u, sizeof(*s->trunks));
		s->guids = calloc(fabric_node_count(f) + 1u, sizeof(*s->guids));
		/* trunks of faults listen at one more address */
		s->listeners = calloc(topo->ntrunks + 1u, sizeof(*s->listeners));
	}
	if (!s || !s->trunks || !s->guids || !s->listeners) {
		snprintf(err, err_len, "out of memory");
		trunk_set_destroy(s);
		return NULL;
	}
	while (ok && s->ntrunks < topo->ntrunks) {
		struct fabric_remote *r = fabric_remote(f, s->ntrunks);
		struct trunk *t = &s->trunks[s->ntrunks];

		t->set = s;
		ok = trunk_init(t, r, fabric_node_guid(fabric_port_node(fabric_remote_local(r))),
				&topo->trunks[s->ntrunks], err, err_len);
		s->ntrunks++;
	}
	if (ok && !trunk_match_sort(s)) {
		snprintf(err, err_len, "out of memory");
		ok = false;
	}
	if (ok) {
		trunk_match_sort_guids(s);
		s->running = true;
		return s;
	}
	trunk_set_destroy(s);
	return NULL;
}

/* Ends its session and the requests for it. */
static void trunk_end(struct trunk *t)
{
	while (!list_empty(&t->requests))
		trunk_message_refuse(list_first(&t->requests, struct trunk_request, link)->conn,
				     list_first(&t->requests, struct trunk_request, link)->number, TRUNK_SWAPPED);
	if (t->conn)
		trunk_message_end(t, TRUNK_SWAPPED);
	loop_timer_cancel(&t->retry);
	loop_timer_cancel(&t->lost);
}

static struct trunk *trunk_of(const struct trunk_set *s, const struct fabric_remote *r)
{
	struct trunk *t;
	u32 i;

	for (i = 0; (t = trunk_at(s, i)); i++)
		if (t->remote == r)
			break;
	return t;
}

void trunk_set_suspend(struct trunk_set *s, struct fabric_remote *r, bool suspended)
{
	struct trunk *t = trunk_of(s, r);

	t->suspended = suspended;
	t->peer_suspended = t->swap_ended = false;
	if (suspended)
		trunk_end(t);
	else if (t->conn)
		trunk_message_end(t, TRUNK_SWAPPED);
	if (t->connector)
		trunk_connector_restart(t);
}

static void trunk_destroy(struct trunk *t)
{
	trunk_end(t);
	if (t->connector)
		trunk_connector_put(t);
	if (t->listener)
		trunk_listener_put(t->listener);
	list_del(&t->extra);
	fabric_remote_attach(t->remote, NULL, NULL);
	trunk_fini(t);
	free(t);
}

int trunk_set_add(struct trunk_set *s, struct fabric_remote *r, u64 guid, const struct fabric_topology_trunk *tt,
		  char *err, size_t err_len)
{
	struct trunk *t = calloc(1, sizeof(*t));

	if (!t) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	t->set = s;
	t->added = t->suspended = true;
	t->lost.fn = on_lost;
	if (!trunk_init(t, r, guid, tt, err, err_len)) {
		trunk_destroy(t);
		return -EINVAL;
	}
	list_add(&s->extra, &t->extra);
	if (trunk_match_sort(s))
		return 0;
	snprintf(err, err_len, "out of memory");
	trunk_destroy(t);
	return -ENOMEM;
}

void trunk_set_remove(struct trunk_set *s, struct fabric_remote *r)
{
	struct trunk *t = trunk_of(s, r);

	trunk_match_remove(s, t);
	trunk_destroy(t);
}

void trunk_set_destroy(struct trunk_set *s)
{
	struct trunk *t;
	u32 i;

	if (!s)
		return;
	for (i = 0; (t = trunk_at(s, i)); i++) {
		if (t->conn)
			trunk_conn_destroy(t->conn);
		loop_timer_cancel(&t->retry);
		if (t->remote)
			fabric_remote_attach(t->remote, NULL, NULL);
	}
	while (!list_empty(&s->extra))
		trunk_destroy(list_first(&s->extra, struct trunk, extra));
	for (i = 0; i < s->nlisteners; i++)
		trunk_listener_close(&s->listeners[i]);
	while (!list_empty(&s->connectors))
		trunk_connector_destroy(list_first(&s->connectors, struct trunk_connector, link));
	loop_poller_del(&s->poller);
	loop_task_cancel(&s->swaps);
	for (i = 0; i < s->ntrunks; i++)
		trunk_fini(&s->trunks[i]);
	free(s->trunks);
	free(s->by_port);
	free(s->guids);
	free(s->listeners);
	free(s);
}
