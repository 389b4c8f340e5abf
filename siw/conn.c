// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections from their TCP handshake to the first FPDU, each side of it: the initiator sends an MPA request and gets a reply, the
 * responder's program accepts or rejects in between (RFC 5044, 7.1; RFC 6581). Then the stream is the queue pair's. A frame is
 * read to its last byte and not further, within a time that a slow peer cannot stretch.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "siw/conn.h"

#define CONNECT_NS (20ull * 1000 * 1000 * 1000) /* TCP's handshake */

static int tell(struct hca_iw_conn *c, enum hca_iw_event_type type, int status, const struct mpa_frame *f)
{
	u16 ird = min(c->terms.ird, (u16)255), ord = min(c->terms.ord, (u16)255);
	struct hca_iw_event ev = { .type = type, .status = status, .local = c->local, .remote = c->remote };

	ev.ird = (u8)ird;
	ev.ord = (u8)ord;
	if (f) {
		ev.data = f->data;
		ev.data_len = f->data_len;
	}
	return c->fn ? c->fn(c->ctx, c, &ev) : 0;
}

static void watch_end(struct hca_iw_conn *c)
{
	loop_fd_del(&c->fd);
	loop_timer_cancel(&c->timer);
	list_del(&c->half);
	if (c->listener)
		c->listener->nhalf--;
	c->listener = NULL;
}

/* The socket goes; @reset: the peer is to see that something was wrong. */
static void hang_up(struct hca_iw_conn *c, bool reset)
{
	int fd = c->fd.fd;

	watch_end(c);
	c->state = CONN_DEAD;
	c->fd.fd = -1;
	if (fd < 0)
		return;
	if (reset)
		siw_socket_reset(fd);
	else
		siw_linger(c->siw, fd);
}

static void conn_free(struct hca_iw_conn *c)
{
	hang_up(c, false);
	loop_task_cancel(&c->task);
	list_del(&c->link);
	free(c);
}

/*
 * The start has failed: whoever waits for it is told; a request that nobody knows of is forgotten. Who has not answered a request
 * yet learns it by his answer: a disconnection is of what was connected, and rping's server, for one, takes it for its own.
 */
static void fail(struct hca_iw_conn *c, int err, bool reset, const struct mpa_frame *f)
{
	enum conn_state was = c->state;

	hang_up(c, reset);
	if (was == CONN_AWAIT_REQUEST)
		conn_free(c);
	else if (was != CONN_ASKED)
		(void)tell(c, HCA_IW_REPLY, err, f);
}

static void on_timer(struct loop_timer *t, struct now now)
{
	struct hca_iw_conn *c = container_of(t, struct hca_iw_conn, timer);

	c->siw->counter[SIW_CTR_START_TIMEOUT]++;
	fail(c, -ETIMEDOUT, true, NULL);
}

static void set_timer(struct hca_iw_conn *c, u64 ns)
{
	loop_timer_set(c->siw->loop, &c->timer, loop_now(c->siw->loop).ns + ns);
}

/* ---- the stream, while it is the queue pair's ---- */

static void on_closed(void *ctx, int err)
{
	struct hca_iw_conn *c = ctx;

	c->sq = NULL;
	c->state = CONN_DEAD;
	loop_task_cancel(&c->task);
	(void)tell(c, HCA_IW_CLOSED, err, NULL);
}

static void on_established(struct loop_task *t, struct now now)
{
	(void)tell(container_of(t, struct hca_iw_conn, task), HCA_IW_ESTABLISHED, 0, NULL);
}

/* Of a responder: the initiator has sent its first FPDU, or need not. */
static void on_started(void *ctx)
{
	struct hca_iw_conn *c = ctx;

	loop_task_queue(c->siw->loop, &c->task);
}

static int attach(struct hca_iw_conn *c, u32 qpn)
{
	int fd = c->fd.fd, err;

	watch_end(c);
	c->fd.fd = -1;
	c->state = CONN_STREAM;
	err = siw_qp_attach(c->siw->hca, qpn, fd, &c->terms, NULL, 0, on_closed, c);
	if (err) {
		c->state = CONN_DEAD;
		return err;
	}
	c->sq = hca_qp_lookup(c->siw->hca, qpn)->transport;
	c->sq->local = c->local;
	c->sq->remote = c->remote;
	c->sq->seq = c->seq;
	siw_rtr_start(c->sq);
	return 0;
}

/* ---- frames ---- */

static int send_frame(struct hca_iw_conn *c, const struct mpa_frame *f)
{
	u8 frame[MPA_FRAME_MAX];
	int len = mpa_frame_build(f, frame);

	if (len < 0)
		return len;
	siw_tap(c->siw, &c->local, &c->remote, &c->seq, frame, (u32)len, true);
	/* the first bytes of a connection: TCP has room for them */
	return send(c->fd.fd, frame, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len ? 0 : -ECONNRESET;
}

/* 1: @f is there; 0: more is to come; -errno. */
static int read_frame(struct hca_iw_conn *c, struct mpa_frame *f)
{
	for (;;) {
		u32 whole = c->len < MPA_HEADER_LEN ? MPA_HEADER_LEN : mpa_frame_length(c->buf);
		ssize_t n;
		int len;

		n = recv(c->fd.fd, c->buf + c->len, min(whole, (u32)sizeof(c->buf)) - c->len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		c->len += (u32)n;
		len = mpa_frame_parse(c->buf, c->len, f);
		if (len < 0)
			c->siw->counter[SIW_CTR_START]++;
		if (len < 0)
			return len;
		if (len) {
			siw_tap(c->siw, &c->remote, &c->local, &c->seq, c->buf, c->len, false);
			return 1;
		}
	}
}

/* ---- initiator ---- */

static void fill_request(struct hca_iw_conn *c, const struct hca_iw_param *p)
{
	const struct siw_options *o = &c->siw->options;
	bool v2 = o->revision == 2;

	c->req = (struct mpa_frame){ .revision = o->revision,
				     .crc = o->crc,
				     .markers = o->markers,
				     .enhanced = v2,
				     .ird = p->ird,
				     .ord = p->ord };
	c->req.peer_to_peer = v2 && (o->rtr_zero || o->rtr_write || o->rtr_read);
	c->req.rtr_zero = v2 && o->rtr_zero;
	c->req.rtr_write = v2 && o->rtr_write;
	c->req.rtr_read = v2 && o->rtr_read;
	memcpy(c->data, p->data, p->data_len);
	c->req.data = c->data;
	c->req.data_len = p->data_len;
}

/* By revision 1, on a new connection. RFC 6581, 10. */
static void ask_again(struct hca_iw_conn *c)
{
	int err;

	c->siw->counter[SIW_CTR_OLDER]++;
	watch_end(c);
	siw_socket_reset(c->fd.fd);
	c->req.revision = 1;
	c->req.enhanced = c->req.peer_to_peer = c->req.rtr_zero = c->req.rtr_write = c->req.rtr_read = false;
	c->local = c->asked;
	c->seq = (struct siw_tap_seq){ 0 };
	c->len = 0;
	c->state = CONN_CONNECTING;
	c->fd.fd = siw_socket_connect(&c->local, &c->remote);
	err = c->fd.fd < 0 ? c->fd.fd : loop_fd_add(c->siw->loop, &c->fd, EPOLLOUT) ? -ENOMEM : 0;
	if (err)
		fail(c, err, true, NULL);
	else
		set_timer(c, CONNECT_NS);
}

/* A peer that knows no revision 2 may end the connection without a word. */
static bool is_older(const struct hca_iw_conn *c, int err)
{
	return c->state == CONN_AWAIT_REPLY && c->req.revision == 2 && !c->len && (err == -ECONNRESET || err == -EPIPE);
}

static void on_reply(struct hca_iw_conn *c, const struct mpa_frame *reply)
{
	int err;

	switch (mpa_conclude(&c->req, reply, &c->terms)) {
	case MPA_ACCEPT:
		err = attach(c, c->qpn);
		(void)tell(c, HCA_IW_REPLY, err, reply);
		return;
	case MPA_REJECT:
		fail(c, -ECONNREFUSED, false, reply);
		return;
	case MPA_OLDER:
		ask_again(c);
		return;
	default:
		c->siw->counter[SIW_CTR_START]++;
		fail(c, -EPROTO, true, NULL);
	}
}

static void on_connected(struct hca_iw_conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd.fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
		fail(c, err ? -err : -EIO, false, NULL);
		return;
	}
	siw_socket_names(c->fd.fd, &c->local, &c->remote);
	c->state = CONN_AWAIT_REPLY;
	set_timer(c, c->siw->options.start_ns);
	err = send_frame(c, &c->req);
	if (!err && !loop_fd_mod(&c->fd, EPOLLIN))
		return;
	fail(c, err ? err : -ENOMEM, true, NULL);
}

/* ---- responder ---- */

/* -EINVAL: more data than a reply has room for; nothing has happened. */
static int refuse(struct hca_iw_conn *c, const u8 *data, u16 len)
{
	struct mpa_frame reply = c->reply;

	reply.reject = true;
	reply.data = data;
	reply.data_len = len;
	if (send_frame(c, &reply) == -EMSGSIZE)
		return -EINVAL;
	c->siw->counter[SIW_CTR_REJECT]++;
	hang_up(c, false);
	return 0;
}

static void on_request(struct hca_iw_conn *c)
{
	struct hca_iw_listener *l = c->listener;
	const struct siw_options *o = &c->siw->options;
	const struct mpa_wants own = { SIW_READS, SIW_READS, o->crc, o->markers };

	if (c->req.reply || c->req.revision > o->revision) { /* RFC 6581, 10: an older one closes */
		c->siw->counter[SIW_CTR_START]++;
		fail(c, -EPROTO, true, NULL);
		return;
	}
	if (mpa_answer(&c->req, &own, &c->reply, &c->terms) != MPA_ACCEPT) {
		(void)refuse(c, NULL, 0);
		conn_free(c);
		return;
	}
	c->fn = l->fn;
	c->ctx = l->ctx;
	c->state = CONN_ASKED;
	watch_end(c);
	if (tell(c, HCA_IW_REQUEST, 0, &c->req)) {
		(void)refuse(c, NULL, 0);
		conn_free(c);
	} else if (c->state == CONN_ASKED && loop_fd_add(c->siw->loop, &c->fd, EPOLLIN | EPOLLRDHUP)) {
		fail(c, -ENOMEM, true, NULL);
	}
}

static void on_fd(struct loop_fd *w, u32 events, struct now now)
{
	struct hca_iw_conn *c = container_of(w, struct hca_iw_conn, fd);
	struct mpa_frame f;
	int got;

	if (c->state == CONN_CONNECTING) {
		on_connected(c);
		return;
	}
	if (c->state == CONN_ASKED) { /* nothing may come before the reply (RFC 5044, 7.1.2), but an end */
		fail(c, -ECONNRESET, true, NULL);
		return;
	}
	got = read_frame(c, c->state == CONN_AWAIT_REPLY ? &f : &c->req);
	if (got < 0 && is_older(c, got))
		ask_again(c);
	else if (got < 0)
		fail(c, got, true, NULL);
	else if (got && c->state == CONN_AWAIT_REPLY)
		on_reply(c, &f);
	else if (got)
		on_request(c);
}

static struct hca_iw_conn *conn_create(struct siw *siw, int fd, enum conn_state state)
{
	struct hca_iw_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->siw = siw;
	c->state = state;
	c->fd = (struct loop_fd){ .fd = fd, .fn = on_fd };
	c->timer.fn = on_timer;
	loop_task_init(&c->task, on_established);
	list_init(&c->half);
	list_add(&siw->conns, &c->link);
	if (loop_fd_add(siw->loop, &c->fd, state == CONN_CONNECTING ? EPOLLOUT : EPOLLIN)) {
		c->fd.fd = -1;
		conn_free(c);
		return NULL;
	}
	return c;
}

/* ---- what the user asks for ---- */

static int check(struct hca *hca, const struct hca_iw_param *p)
{
	struct hca_qp *qp = hca_qp_lookup(hca, p->qpn);
	const struct siw_qp *sq = qp ? qp->transport : NULL;

	return !sq || qp->state < HCA_QPS_INIT || qp->state > HCA_QPS_RTS || sq->fd.fd >= 0 ? -EINVAL : 0;
}

struct hca_iw_conn *siw_conn_ask(struct siw *siw, int fd, const struct hca_iw_param *p, hca_iw_event_fn *fn, void *ctx)
{
	struct hca_iw_conn *c = conn_create(siw, fd, CONN_CONNECTING);

	if (!c) {
		close(fd);
		return NULL;
	}
	c->fn = fn;
	c->ctx = ctx;
	c->qpn = p->qpn;
	fill_request(c, p);
	set_timer(c, CONNECT_NS);
	return c;
}

static int conn_connect(struct hca *hca, struct hca_iw_addr *src, const struct hca_iw_addr *dst,
			const struct hca_iw_param *p, hca_iw_event_fn *fn, void *ctx, struct hca_iw_conn **conn)
{
	struct siw *siw = hca_transport_data(hca);
	struct hca_iw_addr from = *src;
	int err = check(hca, p), fd;

	if (err)
		return err;
	if (p->data_len > MPA_PRIVATE_MAX - (siw->options.revision == 2 ? MPA_V2_LEN : 0))
		return -EINVAL;
	fd = siw_socket_connect(src, dst);
	if (fd < 0)
		return fd;
	*conn = siw_conn_ask(siw, fd, p, fn, ctx);
	if (!*conn)
		return -ENOMEM;
	(*conn)->asked = from;
	(*conn)->local = *src;
	(*conn)->remote = *dst;
	return 0;
}

static void conn_own(struct hca_iw_conn *c, hca_iw_event_fn *fn, void *ctx)
{
	c->fn = fn;
	c->ctx = ctx;
}

static int conn_accept(struct hca_iw_conn *c, const struct hca_iw_param *p)
{
	const struct mpa_wants own = { p->ird, p->ord, c->siw->options.crc, c->siw->options.markers };
	int err = c->state == CONN_ASKED ? check(c->siw->hca, p) : c->state == CONN_DEAD ? -ECONNRESET : -EINVAL;

	if (err)
		return err;
	mpa_answer(&c->req, &own, &c->reply, &c->terms);
	c->reply.data = p->data;
	c->reply.data_len = p->data_len;
	err = send_frame(c, &c->reply);
	if (err == -EMSGSIZE)
		return -EINVAL;
	if (err) {
		hang_up(c, true);
		return err;
	}
	err = attach(c, p->qpn);
	if (err)
		return err;
	c->sq->started = on_started;
	if (!c->sq->wait_start)
		on_started(c);
	return 0;
}

static int conn_reject(struct hca_iw_conn *c, const u8 *data, u16 len)
{
	if (c->state != CONN_ASKED)
		return c->state == CONN_DEAD ? -ECONNRESET : -EINVAL;
	return refuse(c, data, len);
}

static int conn_disconnect(struct hca_iw_conn *c)
{
	if (!c->sq)
		return -EINVAL;
	siw_qp_end(c->sq);
	return 0;
}

static void conn_destroy(struct hca_iw_conn *c)
{
	c->fn = NULL;
	if (c->state == CONN_ASKED)
		(void)refuse(c, NULL, 0);
	if (c->sq)
		siw_qp_end(c->sq);
	conn_free(c);
}

/* ---- listening ---- */

/* The one that has taken longest to say what it wants, of those from that address when they are too many; NULL: there is room. */
static struct hca_iw_conn *in_the_way(const struct hca_iw_listener *l, const struct hca_iw_addr *from)
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

/* A newcomer takes its place. */
static void make_room(struct hca_iw_listener *l, const struct hca_iw_addr *from)
{
	struct hca_iw_conn *c = in_the_way(l, from);

	if (!c)
		return;
	l->siw->counter[SIW_CTR_CROWDED]++;
	fail(c, -ETIMEDOUT, true, NULL);
}

void siw_conn_take(struct hca_iw_listener *l, int fd)
{
	struct hca_iw_addr local = { .port = 0 }, remote = { .port = 0 };
	struct hca_iw_conn *c;

	siw_socket_names(fd, &local, &remote);
	make_room(l, &remote);
	c = conn_create(l->siw, fd, CONN_AWAIT_REQUEST);
	if (!c) {
		siw_socket_reset(fd);
		return;
	}
	c->listener = l;
	c->local = local;
	c->remote = remote;
	list_add(&l->half, &c->half);
	l->nhalf++;
	set_timer(c, l->siw->options.start_ns);
}

static void on_accept(struct loop_fd *w, u32 events, struct now now)
{
	struct hca_iw_listener *l = container_of(w, struct siw_listen_fd, fd)->listener;
	u32 i;

	for (i = 0; i < SIW_ACCEPTS; i++) {
		int fd = siw_socket_accept(w->fd);

		if (fd < 0)
			return;
		siw_conn_take(l, fd);
	}
}

static void conn_unlisten(struct hca_iw_listener *l)
{
	u32 i;

	for (i = 0; i < l->n; i++) {
		loop_fd_del(&l->at[i].fd);
		close(l->at[i].fd.fd);
	}
	while (!list_empty(&l->half))
		fail(list_first(&l->half, struct hca_iw_conn, half), -ECONNRESET, true, NULL);
	list_del(&l->link);
	free(l);
}

static int conn_listen(struct hca *hca, const struct hca_iw_addr *addr, u32 n, hca_iw_event_fn *fn, void *ctx,
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
		if (loop_fd_add(siw->loop, &at->fd, EPOLLIN)) {
			fd = -errno;
			goto err;
		}
	}
	*listener = l;
	return 0;
err:
	conn_unlisten(l);
	return fd;
}

void siw_conns_end(struct siw *siw)
{
	while (!list_empty(&siw->listeners))
		conn_unlisten(list_first(&siw->listeners, struct hca_iw_listener, link));
	while (!list_empty(&siw->conns))
		conn_destroy(list_first(&siw->conns, struct hca_iw_conn, link));
}

const struct hca_iw_ops siw_conn_ops = {
	.connect = conn_connect,
	.listen = conn_listen,
	.unlisten = conn_unlisten,
	.own = conn_own,
	.accept = conn_accept,
	.reject = conn_reject,
	.disconnect = conn_disconnect,
	.destroy = conn_destroy,
};
