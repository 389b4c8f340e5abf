// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iWARP listeners: TCP connections that are accepted, and limits of those whose MPA request is not complete (half
 * open), of a listener and from one address.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "siw/conn.h"

/* The oldest half-open connection (from address @from if that has too many) when the limit is reached; else NULL. */
static struct hca_iw_conn *half_open_oldest(const struct hca_iw_listener *l, const struct hca_iw_addr *from)
{
	struct hca_iw_conn *c, *first = NULL;
	u32 n = 0;

	list_for_each (c, &l->half, half)
		if (ip_addr_equal(&c->remote.ip, &from->ip)) {
			first = first ?: c;
			n++;
		}
	if (n >= SIW_HALF_OF_ONE)
		return first;
	return l->nhalf < SIW_HALF_OPEN ? NULL : list_first(&l->half, struct hca_iw_conn, half);
}

/* Drops a half-open connection if the limit is reached. */
static void half_open_evict(struct hca_iw_listener *l, const struct hca_iw_addr *from)
{
	struct hca_iw_conn *c = half_open_oldest(l, from);

	if (!c)
		return;
	l->siw->counter[SIW_CTR_HALF_OPEN_DROPPED]++;
	siw_conn_fail(c, -ETIMEDOUT, true);
}

void siw_conn_passive_open(struct hca_iw_listener *l, int fd)
{
	struct hca_iw_addr local = { .port = 0 }, remote = { .port = 0 };
	struct hca_iw_conn *c;

	siw_socket_names(fd, &local, &remote);
	half_open_evict(l, &remote);
	c = siw_conn_create(l->siw, fd, CONN_AWAIT_MPAREQ);
	if (!c) {
		siw_socket_reset(fd);
		return;
	}
	c->listener = l;
	c->local = local;
	c->remote = remote;
	list_add(&l->half, &c->half);
	l->nhalf++;
	siw_conn_set_timer(c, l->siw->options.start_ns);
}

static void on_accept(struct loop_fd *w, u32 events, struct now now)
{
	struct hca_iw_listener *l = container_of(w, struct siw_listen_fd, fd)->listener;
	u32 i;

	for (i = 0; i < SIW_ACCEPTS; i++) {
		int fd = siw_socket_accept(w->fd);

		if (fd < 0)
			return;
		siw_conn_passive_open(l, fd);
	}
}

void siw_unlisten(struct hca_iw_listener *l)
{
	u32 i;

	for (i = 0; i < l->n; i++) {
		loop_fd_del(&l->at[i].fd);
		close(l->at[i].fd.fd);
	}
	while (!list_empty(&l->half))
		siw_conn_fail(list_first(&l->half, struct hca_iw_conn, half), -ECONNRESET, true);
	list_del(&l->link);
	free(l);
}

int siw_listen(struct hca *hca, const struct hca_iw_addr *addr, u32 n, hca_iw_event_fn *fn, void *ctx,
	       struct hca_iw_listener **listener)
{
	struct siw *siw = hca_transport_data(hca);
	struct hca_iw_listener *l = calloc(1, sizeof(*l));
	int fd;

	if (!l)
		return -ENOMEM;
	l->siw = siw;
	l->fn = fn;
	l->ctx = ctx;
	list_init(&l->half);
	list_add(&siw->listeners, &l->link);
	for (; l->n < min(n, (u32)SIW_LISTEN_ADDRS); addr++) {
		struct siw_listen_fd *at = &l->at[l->n];

		fd = siw_socket_listen(addr);
		if (fd < 0)
			goto err;
		*at = (struct siw_listen_fd){ .fd = { .fd = fd, .fn = on_accept }, .listener = l };
		l->n++;
		if (siw_fd_add(siw, &at->fd, EPOLLIN)) {
			fd = -errno;
			goto err;
		}
	}
	*listener = l;
	return 0;
err:
	siw_unlisten(l);
	return fd;
}

void siw_listeners_watch(struct siw *siw, bool on)
{
	struct hca_iw_listener *l;
	u32 i;

	list_for_each (l, &siw->listeners, link)
		for (i = 0; i < l->n; i++) {
			loop_fd_del(&l->at[i].fd);
			if (on && loop_fd_add(siw->loop, &l->at[i].fd, EPOLLIN))
				log_at(LOG_ERROR, "iwarp", "a listener is stopped: %s", strerror(errno));
		}
}
