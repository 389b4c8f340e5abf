// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Listeners of trunks: accept connections, and keep those without a trunk within limits. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "fabric/trunk/trunk_internal.h"

#define BACKLOG    SOMAXCONN
#define ACCEPT_MAX 16                  /* connections accepted in one turn */
#define BUSY_WAIT  (5 * NSEC_PER_MSEC) /* while another process begins to listen at the path */

/*
 * Who has connected: the process, the IPv4 address, or the network of the IPv6 address, of which one has many (a /64).
 */
static u64 conn_source(int fd, bool local)
{
	struct trunk_address at = { .len = sizeof(at.in6) };
	u64 source = 0;

	if (local)
		return (u64)passed_owner(fd);
	if (getpeername(fd, &at.sa, &at.len))
		return 0;
	if (at.sa.sa_family == AF_INET)
		memcpy(&source, &at.in.sin_addr, sizeof(at.in.sin_addr));
	else if (IN6_IS_ADDR_V4MAPPED(&at.in6.sin6_addr))
		memcpy(&source, &at.in6.sin6_addr.s6_addr[12], 4);
	else
		memcpy(&source, &at.in6.sin6_addr, sizeof(source));
	return source;
}

/*
 * Makes room for one more connection: it replaces the oldest one of the same source, or else the oldest one. So a
 * source of very many connections replaces its own ones, and not those of others.
 */
static void listener_replace(struct trunk_listener *l, u64 source)
{
	struct trunk_conn *c, *oldest = list_first(&l->unknown, struct trunk_conn, link);

	list_for_each (c, &l->unknown, link)
		if (c->source == source) {
			oldest = c;
			break;
		}
	if (!oldest->refused) {
		trunk_count(l->set, NULL, TRUNK_CTR_REFUSED_HELLO, 1);
		log_at(LOG_WARN, "trunk", "%s: too many connections without a trunk: the oldest one ends", l->address);
	}
	trunk_conn_destroy(oldest);
}

static void on_listener(struct loop_fd *w, u32 events, struct now now)
{
	struct trunk_listener *l = container_of(w, struct trunk_listener, w);
	bool local = l->at.sa.sa_family == AF_UNIX;
	struct trunk_conn *c;
	int fd, one = 1;
	u64 source;
	u32 i;

	for (i = 0; i < ACCEPT_MAX; i++) {
		fd = accept_next(&l->accept, SOCK_NONBLOCK);
		if (fd < 0)
			return;
		if (!local)
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		source = conn_source(fd, local);
		if (l->nunknown >= (local ? TRUNK_UNKNOWN_LOCAL : TRUNK_UNKNOWN))
			listener_replace(l, source);
		c = trunk_conn_create(l->set, fd, local);
		if (!c)
			continue;
		c->listener = l;
		c->source = source;
		list_add(&l->unknown, &c->link);
		l->nunknown++;
		if (l->tls && trunk_tls_start(c))
			trunk_conn_destroy(c);
	}
}

static void listener_close_socket(struct trunk_listener *l)
{
	loop_fd_del(&l->w);
	accept_fini(&l->accept);
	socket_path_unlink(&l->path);
	if (l->accept.fd >= 0)
		close(l->accept.fd);
	l->accept.fd = l->accept.spare = -1;
}

static int listener_open(struct trunk_listener *l)
{
	bool wait = !l->set->running; /* the loop does not wait */
	int family = l->at.sa.sa_family, one = 1, zero = 0;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	accept_init(&l->accept, fd);
	l->w = (struct loop_fd){ .fd = fd, .fn = on_listener };
	if (family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6 && l->address[0] == '*')
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	err = family == AF_UNIX ? socket_path_listen(&l->path, fd, l->at.un.sun_path, BACKLOG, wait) : 0;
	if (err)
		return err;
	if (family != AF_UNIX && (bind(fd, &l->at.sa, l->at.len) || listen(fd, BACKLOG)))
		return -errno;
	return loop_fd_add(l->set->loop, &l->w, EPOLLIN);
}

/* -EBUSY has been returned: it is tried again, as long as it takes. */
static void on_busy(struct loop_timer *timer, struct now now)
{
	struct trunk_listener *l = container_of(timer, struct trunk_listener, busy);
	int rc = listener_open(l);

	if (!rc)
		return;
	listener_close_socket(l);
	loop_timer_set(l->set->loop, &l->busy, now.ns + (rc == -EBUSY ? BUSY_WAIT : NSEC_PER_SEC));
	if (rc != -EBUSY)
		log_at(LOG_WARN, "trunk", "it cannot listen at %s: %s; it is tried again", l->address, strerror(-rc));
}

void trunk_listener_close(struct trunk_listener *l)
{
	struct trunk_conn *c, *tmp;

	list_for_each_safe (c, tmp, &l->unknown, link)
		trunk_conn_destroy(c);
	loop_timer_cancel(&l->busy);
	listener_close_socket(l);
	free(l->address);
}

/* Its connections have yet to send refusals, and end in time. */
void trunk_listener_put(struct trunk_listener *l)
{
	if (--l->ntrunks)
		return;
	loop_timer_cancel(&l->busy);
	listener_close_socket(l);
}

/* Begins to listen for its first trunk. */
static int listener_start(struct trunk_listener *l)
{
	int rc = l->address ? listener_open(l) : -ENOMEM;

	if (rc != -EBUSY || !l->set->running)
		return rc;
	listener_close_socket(l);
	loop_timer_set(l->set->loop, &l->busy, loop_now(l->set->loop).ns + BUSY_WAIT);
	return 0;
}

struct trunk_listener *trunk_listener_get(struct trunk_set *s, const struct trunk *t, char *err, size_t err_len)
{
	struct trunk_listener *l = s->listeners;
	int rc;

	while (l < s->listeners + s->nlisteners && !trunk_address_equal(&l->at, &t->at))
		l++;
	if (l == s->listeners + s->nlisteners) {
		s->nlisteners++;
		*l = (struct trunk_listener){ .set = s, .at = t->at, .address = strdup(t->address), .tls = t->tls };
		l->accept.fd = l->accept.spare = -1;
		l->busy.fn = on_busy;
		list_init(&l->unknown);
	}
	if (l->tls != t->tls) {
		snprintf(err, err_len, "trunk %s: all trunks that listen at %s use TLS, or none", t->name, t->address);
		return NULL;
	}
	rc = l->ntrunks ? 0 : listener_start(l);
	if (!rc) {
		l->ntrunks++;
		return l;
	}
	snprintf(err, err_len, "trunk %s: it cannot listen at %s: %s", t->name, t->address, strerror(-rc));
	listener_close_socket(l);
	return NULL;
}
