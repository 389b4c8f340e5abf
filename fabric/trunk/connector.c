// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connectors: connect to an address, and again after a loss; their trunks start when the connection is established. */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "fabric/trunk/trunk_internal.h"

#define RETRY_MIN (5 * NSEC_PER_MSEC)
#define RETRY_MAX (1 * NSEC_PER_SEC)
#define LASTS     (1 * NSEC_PER_SEC) /* a connection lost sooner counts as a failed one */

static void connector_retry_later(struct trunk_connector *k)
{
	k->wait = min(max(2 * k->wait, RETRY_MIN), max(k->wait, RETRY_MAX));
	loop_timer_set(k->set->loop, &k->retry, loop_now(k->set->loop).ns + k->wait);
}

static void connector_connect(struct trunk_connector *k)
{
	int family = k->at.sa.sa_family, one = 1;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fd < 0 || (connect(fd, &k->at.sa, k->at.len) && errno != EINPROGRESS)) {
		if (fd >= 0 && errno == EAGAIN)
			k->wait = 0; /* a Unix socket: the peer listens, and its backlog is full */
		if (fd >= 0)
			close(fd);
		connector_retry_later(k);
		return;
	}
	k->conn = trunk_conn_create(k->set, fd, family == AF_UNIX);
	if (!k->conn) {
		connector_retry_later(k);
		return;
	}
	k->conn->connector = k;
	if (k->tls && trunk_tls_start(k->conn))
		trunk_conn_destroy(k->conn); /* tries again later */
	else
		trunk_conn_start(k->conn);
}

/* Several addresses of the name are tried in turn. */
static void on_resolved(void *ctx, const struct trunk_addresses *found)
{
	struct trunk_connector *k = ctx;

	k->resolve = NULL;
	if (found->error) {
		if (!k->unresolved)
			log_at(LOG_WARN, "trunk", "%s: %s: %s; it is resolved again until it succeeds",
			       list_first(&k->trunks, struct trunk, sibling)->name, k->address,
			       gai_strerror(found->error));
		k->unresolved = true;
		connector_retry_later(k);
		return;
	}
	k->unresolved = false;
	k->at = found->at[k->attempts++ % found->n];
	connector_connect(k);
}

/* One of the topology does so also while it is suspended, to ask the peer whether its end is, too. */
static bool trunk_connects(const struct trunk *t)
{
	return !t->suspended || !t->added;
}

static bool connector_has_trunks(const struct trunk_connector *k)
{
	const struct trunk *t;

	list_for_each (t, &k->trunks, sibling)
		if (trunk_connects(t))
			return true;
	return false;
}

static void on_connector(struct loop_timer *timer, struct now now)
{
	struct trunk_connector *k = container_of(timer, struct trunk_connector, retry);

	if (!connector_has_trunks(k)) /* until one is resumed */
		return;
	if (!k->named) {
		connector_connect(k);
		return;
	}
	k->resolve = trunk_resolve_start(k->set->loop, k->address, on_resolved, k);
	if (!k->resolve)
		connector_retry_later(k);
}

void trunk_connector_opened(struct trunk_connector *k)
{
	struct trunk *t;

	list_for_each (t, &k->trunks, sibling) {
		loop_timer_cancel(&t->retry);
		if (!trunk_connects(t))
			continue;
		if (!trunk_session_open(t, k->conn, 0)) {
			trunk_conn_end(k->conn);
			return;
		}
	}
}

void trunk_connector_lost(struct trunk_connector *k)
{
	k->conn = NULL;
	if (k->since && loop_now(k->set->loop).ns - k->since >= LASTS)
		k->wait = 0;
	k->since = 0;
	connector_retry_later(k);
}

static void on_retry(struct loop_timer *timer, struct now now)
{
	struct trunk *t = container_of(timer, struct trunk, retry);
	struct trunk_conn *c = t->connector->conn;

	/* Without an established connection, the trunk starts with the next one. */
	if (c && !c->connecting && !c->ended && !t->conn && trunk_connects(t) && !trunk_session_open(t, c, 0))
		trunk_refused(t, false);
}

void trunk_refused(struct trunk *t, bool soon)
{
	struct trunk_connector *k = t->connector;
	u64 wait = soon ? t->swapped_wait : TRUNK_REFUSED_WAIT;

	if (!k)
		return;
	list_del(&t->sibling); /* the others come first on the next connection, too */
	list_add(&k->trunks, &t->sibling);
	if (k->conn && !k->conn->nopen) /* the connection ends, and so does another one */
		k->wait = wait;
	if (soon)
		t->swapped_wait = min(2 * wait, TRUNK_SWAPPED_MAX);
	loop_timer_set(t->set->loop, &t->retry, loop_now(t->set->loop).ns + wait);
}

void trunk_connector_restart(struct trunk *t)
{
	struct trunk_connector *k = t->connector;
	struct loop *loop = t->set->loop;

	if (!trunk_connects(t))
		return;
	k->wait = 0;
	t->swapped_wait = TRUNK_SWAPPED_WAIT;
	if (k->conn && t->suspended) /* the peer's end is suspended after this one, perhaps */
		loop_timer_set(loop, &t->retry, loop_now(loop).ns + TRUNK_SWAPPED_WAIT);
	else if (k->conn)
		on_retry(&t->retry, loop_now(loop));
	else if (!k->resolve)
		loop_timer_set(loop, &k->retry, 0);
}

/* Does the trunk use the connector's connection? */
static bool connector_is_of(const struct trunk_connector *k, const struct trunk *t)
{
	if (k->named ? strcmp(k->address, t->address) != 0 : !trunk_address_equal(&k->at, &t->at))
		return false;
	return k->tls == t->tls && (!t->tls || !memcmp(&k->tls_key, &t->tls_key, sizeof(t->tls_key)));
}

static struct trunk_connector *connector_of(const struct trunk_set *s, const struct trunk *t)
{
	struct trunk_connector *k;

	list_for_each (k, &s->connectors, link)
		if (connector_is_of(k, t))
			return k;
	return NULL;
}

bool trunk_connector_add(struct trunk *t)
{
	struct trunk_set *s = t->set;
	struct trunk_connector *k = connector_of(s, t);

	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return false;
		k->address = strdup(t->address);
		if (!k->address) {
			free(k);
			return false;
		}
		list_add(&s->connectors, &k->link);
		k->set = s;
		k->at = t->at;
		k->tls = t->tls;
		k->tls_key = t->tls_key;
		k->named = !t->at.len;
		k->retry.fn = on_connector;
		list_init(&k->trunks);
		loop_timer_set(s->loop, &k->retry, 0);
	}
	t->connector = k;
	t->retry.fn = on_retry;
	t->swapped_wait = TRUNK_SWAPPED_WAIT;
	k->ntrunks++;
	list_add(&k->trunks, &t->sibling);
	return true;
}

void trunk_connector_put(struct trunk *t)
{
	struct trunk_connector *k = t->connector;

	k->ntrunks--;
	list_del(&t->sibling);
	if (connector_has_trunks(k))
		return;
	if (k->resolve)
		trunk_resolve_cancel(k->resolve);
	k->resolve = NULL;
	if (k->conn && k->conn->connecting)
		trunk_conn_end(k->conn);
}

void trunk_connector_destroy(struct trunk_connector *k)
{
	if (k->conn)
		trunk_conn_destroy(k->conn);
	if (k->resolve)
		trunk_resolve_cancel(k->resolve);
	loop_timer_cancel(&k->retry);
	list_del(&k->link);
	explicit_bzero(&k->tls_key, sizeof(k->tls_key));
	free(k->address);
	free(k);
}
