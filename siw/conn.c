// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iWARP connection establishment: TCP handshake and MPA negotiation, until the queue pair has the stream (RFC 5044,
 * 7.1; RFC 6581). The initiator sends an MPA request and receives the reply; in between the responder's program accepts
 * or rejects. A frame is read up to its last byte and no further, within a time-out that a slow peer cannot extend.
 * States and events are rows of a table.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "siw/conn.h"

#define CONNECT_NS (20ull * 1000 * 1000 * 1000) /* TCP handshake */

enum conn_event {
	EV_ESTABLISHED, /* TCP */
	EV_REQUEST,     /* a valid MPA request */
	EV_BAD_REQUEST, /* unacceptable parameters: rejected (RFC 6581, 9) */
	EV_REPLY,       /* the MPA reply accepts, and fits the request */
	EV_REJECTED,    /* the MPA reply rejects */
	EV_REVISION_1,  /* the peer has MPA revision 1 only (RFC 6581, 10) */
	EV_ACCEPT,      /* by the responder's program */
	EV_REJECT,
	EV_FAILED, /* TCP failure, time-out, or a malformed or unexpected frame */
	EV_CLOSED  /* the stream was closed in RDMA mode */
};

/* Arguments of an event. */
struct conn_arg {
	int err;
	bool reset;                    /* FAILED: close by a TCP reset, to report an error to the peer */
	const struct mpa_frame *frame; /* of the peer; REJECT: private data */
	const struct hca_iw_param *param;
};

/* Executes one transition of the table below. -EINVAL: the state has none for the event. */
static int conn_event(struct hca_iw_conn *c, enum conn_event ev, const struct conn_arg *arg);

void siw_conn_fail(struct hca_iw_conn *c, int err, bool reset)
{
	(void)conn_event(c, EV_FAILED, &(struct conn_arg){ .err = err, .reset = reset });
}

static int event_raise(struct hca_iw_conn *c, enum hca_iw_event_type type, int status, const struct mpa_frame *f)
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

static void fd_unwatch(struct hca_iw_conn *c)
{
	loop_fd_del(&c->fd);
	loop_timer_cancel(&c->timer);
	list_del(&c->half);
	if (c->listener)
		c->listener->nhalf--;
	c->listener = NULL;
}

/* Closes the socket; @reset: by a TCP reset, to report an error to the peer. */
static void conn_close(struct hca_iw_conn *c, bool reset)
{
	int fd = c->fd.fd;

	fd_unwatch(c);
	c->state = CONN_CLOSED;
	c->fd.fd = -1;
	if (fd < 0)
		return;
	if (reset)
		siw_socket_reset(fd);
	else
		siw_half_close(c->siw, fd);
}

static void conn_free(struct hca_iw_conn *c)
{
	conn_close(c, false);
	loop_task_cancel(&c->task);
	list_del(&c->link);
	free(c);
}

static void on_timer(struct loop_timer *t, struct now now)
{
	struct hca_iw_conn *c = container_of(t, struct hca_iw_conn, timer);

	c->siw->counter[SIW_CTR_START_TIMEOUT]++;
	siw_conn_fail(c, -ETIMEDOUT, true);
}

void siw_conn_set_timer(struct hca_iw_conn *c, u64 ns)
{
	loop_timer_set(c->siw->loop, &c->timer, loop_now(c->siw->loop).ns + ns);
}

static u32 conn_epoll_events(const struct hca_iw_conn *c)
{
	return c->state == CONN_CONNECTING ? EPOLLOUT : c->state == CONN_RECVD_MPAREQ ? EPOLLIN | EPOLLRDHUP : EPOLLIN;
}

/* ---- RDMA mode: the queue pair has the stream ---- */

static void on_closed(void *ctx, int err)
{
	(void)conn_event(ctx, EV_CLOSED, &(struct conn_arg){ .err = err });
}

static void established_report(struct hca_iw_conn *c)
{
	c->established_due = false;
	(void)event_raise(c, HCA_IW_ESTABLISHED, 0, NULL);
}

/* Reports a stream that starts and ends in the same turn as both, in this order. */
static int close_report(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	c->sq = NULL;
	loop_task_cancel(&c->task);
	if (c->established_due)
		established_report(c);
	return event_raise(c, HCA_IW_CLOSED, arg->err, NULL);
}

static void on_established(struct loop_task *t, struct now now)
{
	established_report(container_of(t, struct hca_iw_conn, task));
}

/* Responder: the initiator has sent its RTR message, or sends none. */
static void on_started(void *ctx)
{
	struct hca_iw_conn *c = ctx;

	c->established_due = true;
	loop_task_queue(c->siw->loop, &c->task);
}

static int stream_attach(struct hca_iw_conn *c, u64 owner, u32 qpn)
{
	int fd = c->fd.fd, err;

	fd_unwatch(c);
	c->fd.fd = -1;
	if (hca_qp_owner(c->siw->hca, qpn) == owner) {
		err = siw_qp_attach(c->siw->hca, qpn, fd, &c->terms, NULL, 0, on_closed, c);
	} else {
		close(fd);
		err = -EINVAL;
	}
	if (err) {
		c->state = CONN_CLOSED;
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
	siw_capture(c->siw, &c->local, &c->remote, &c->seq, frame, (u32)len, true);
	/* the first bytes of a connection always fit in the send buffer */
	return send(c->fd.fd, frame, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len ? 0 : -ECONNRESET;
}

/* 1: @f is complete; 0: incomplete; -errno. */
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
		if (len > 0 && siw_fault_corrupts_frame(c->siw)) {
			c->buf[0] ^= 1; /* of the MPA key */
			len = mpa_frame_parse(c->buf, c->len, f);
		}
		if (len < 0)
			c->siw->counter[SIW_CTR_START]++;
		if (len < 0)
			return len;
		if (len) {
			siw_capture(c->siw, &c->remote, &c->local, &c->seq, c->buf, c->len, false);
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

/* Retries with MPA revision 1, on a new TCP connection (RFC 6581, 10). */
static int request_retry(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	int err;

	c->siw->counter[SIW_CTR_FALLBACK]++;
	fd_unwatch(c);
	siw_socket_reset(c->fd.fd);
	c->req.revision = 1;
	c->req.enhanced = c->req.peer_to_peer = c->req.rtr_zero = c->req.rtr_write = c->req.rtr_read = false;
	c->local = c->bound;
	c->seq = (struct siw_capture_seq){ 0 };
	c->len = 0;
	c->fd.fd = siw_socket_connect(&c->local, &c->remote);
	err = c->fd.fd < 0 ? c->fd.fd : siw_fd_add(c->siw, &c->fd, conn_epoll_events(c)) ? -ENOMEM : 0;
	if (err)
		siw_conn_fail(c, err, true);
	else
		siw_conn_set_timer(c, CONNECT_NS);
	return err;
}

/* A peer without MPA revision 2 may close the connection without a reply. */
static bool peer_may_be_revision_1(const struct hca_iw_conn *c, int err)
{
	return c->state == CONN_AWAIT_MPAREP && c->req.revision == 2 && !c->len &&
	       (err == -ECONNRESET || err == -EPIPE);
}

static int request_send(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	int err;

	siw_socket_names(c->fd.fd, &c->local, &c->remote);
	siw_conn_set_timer(c, c->siw->options.start_ns);
	err = send_frame(c, &c->req);
	if (!err && loop_fd_mod(&c->fd, EPOLLIN))
		err = -ENOMEM;
	if (err)
		siw_conn_fail(c, err, true);
	return err;
}

static int reply_receive(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	return event_raise(c, HCA_IW_REPLY, stream_attach(c, c->owner, c->qpn), arg->frame);
}

static int rejection_report(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	conn_close(c, false);
	return event_raise(c, HCA_IW_REPLY, -ECONNREFUSED, arg->frame);
}

static int failure_report(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	conn_close(c, arg->reset);
	return event_raise(c, HCA_IW_REPLY, arg->err, NULL);
}

static void on_tcp_connected(struct hca_iw_conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd.fd, SOL_SOCKET, SO_ERROR, &err, &len) || err)
		siw_conn_fail(c, err ? -err : -EIO, false);
	else
		(void)conn_event(c, EV_ESTABLISHED, NULL);
}

static void on_reply(struct hca_iw_conn *c, const struct mpa_frame *reply)
{
	static const enum conn_event events[] = {
		[MPA_ACCEPT] = EV_REPLY, [MPA_REJECT] = EV_REJECTED, [MPA_REVISION_1] = EV_REVISION_1
	};
	enum mpa_result v = mpa_reply_check(&c->req, reply, &c->terms);

	if (v == MPA_MISMATCH) {
		c->siw->counter[SIW_CTR_START]++;
		siw_conn_fail(c, -EPROTO, true);
	} else {
		(void)conn_event(c, events[v], &(struct conn_arg){ .frame = reply });
	}
}

/* ---- responder ---- */

static int reject_send(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	struct mpa_frame reply = c->reply;

	reply.reject = true;
	reply.data = arg->frame ? arg->frame->data : NULL;
	reply.data_len = arg->frame ? arg->frame->data_len : 0;
	(void)send_frame(c, &reply);
	c->siw->counter[SIW_CTR_REJECT]++;
	conn_close(c, false);
	return 0;
}

/* Rejects a request before a program has received it. */
static int request_reject(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	(void)reject_send(c, arg);
	conn_free(c);
	return 0;
}

static int request_drop(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	conn_close(c, arg->reset);
	conn_free(c);
	return 0;
}

static int request_report(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	struct hca_iw_listener *l = c->listener;

	c->fn = l->fn;
	c->ctx = l->ctx;
	fd_unwatch(c);
	if (event_raise(c, HCA_IW_REQUEST, 0, &c->req))
		return request_reject(c, &(struct conn_arg){ 0 });
	if (c->state == CONN_RECVD_MPAREQ && siw_fd_add(c->siw, &c->fd, conn_epoll_events(c)))
		siw_conn_fail(c, -ENOMEM, true);
	return 0;
}

/*
 * Reports the error when the program accepts or rejects: a DISCONNECTED event is for established connections only, and
 * rping's server, for one, mistakes it for the event of another connection.
 */
static int request_withdraw(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	conn_close(c, arg->reset);
	return 0;
}

static int withdrawn(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	return -ECONNRESET;
}

static int reply_send(struct hca_iw_conn *c, const struct conn_arg *arg)
{
	const struct hca_iw_param *p = arg->param;
	int err = send_frame(c, &c->reply);

	if (err) {
		conn_close(c, true);
		return err;
	}
	err = stream_attach(c, p->owner, p->qpn);
	if (err)
		return err;
	if (c->terms.rtr_zero || c->terms.rtr_write || c->terms.rtr_read)
		c->sq->started = on_started;
	else
		on_started(c);
	return 0;
}

static void on_request(struct hca_iw_conn *c)
{
	const struct siw_options *o = &c->siw->options;
	const struct mpa_limits own = { SIW_READS, SIW_READS, o->crc, o->markers };
	bool accept;

	if (c->req.reply || c->req.revision > o->revision) { /* a responder of revision 1 closes (RFC 6581, 10) */
		c->siw->counter[SIW_CTR_START]++;
		siw_conn_fail(c, -EPROTO, true);
		return;
	}
	accept = mpa_reply_create(&c->req, &own, &c->reply, &c->terms) == MPA_ACCEPT && !siw_fault_rejects(c->siw);
	(void)conn_event(c, accept ? EV_REQUEST : EV_BAD_REQUEST, &(struct conn_arg){ 0 });
}

/* ---- states (RFC 5044, 7.1; RFC 6581, 9, 10) ---- */

static const struct {
	enum conn_state state;
	enum conn_event event;
	int (*action)(struct hca_iw_conn *c, const struct conn_arg *arg); /* in state @next; may free the connection */
	enum conn_state next;
} transitions[] = {
	/* initiator */
	{ CONN_CONNECTING, EV_ESTABLISHED, request_send, CONN_AWAIT_MPAREP },
	{ CONN_CONNECTING, EV_FAILED, failure_report, CONN_CLOSED },
	{ CONN_AWAIT_MPAREP, EV_REPLY, reply_receive, CONN_RDMA_MODE },
	{ CONN_AWAIT_MPAREP, EV_REJECTED, rejection_report, CONN_CLOSED },
	{ CONN_AWAIT_MPAREP, EV_REVISION_1, request_retry, CONN_CONNECTING },
	{ CONN_AWAIT_MPAREP, EV_FAILED, failure_report, CONN_CLOSED },
	/* responder */
	{ CONN_AWAIT_MPAREQ, EV_REQUEST, request_report, CONN_RECVD_MPAREQ },
	{ CONN_AWAIT_MPAREQ, EV_BAD_REQUEST, request_reject, CONN_CLOSED },
	{ CONN_AWAIT_MPAREQ, EV_FAILED, request_drop, CONN_CLOSED },
	{ CONN_RECVD_MPAREQ, EV_ACCEPT, reply_send, CONN_RDMA_MODE },
	{ CONN_RECVD_MPAREQ, EV_REJECT, reject_send, CONN_CLOSED },
	{ CONN_RECVD_MPAREQ, EV_FAILED, request_withdraw, CONN_CLOSED },
	{ CONN_CLOSED, EV_ACCEPT, withdrawn, CONN_CLOSED },
	{ CONN_CLOSED, EV_REJECT, withdrawn, CONN_CLOSED },
	/* both */
	{ CONN_RDMA_MODE, EV_CLOSED, close_report, CONN_CLOSED },
};

static int conn_event(struct hca_iw_conn *c, enum conn_event ev, const struct conn_arg *arg)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(transitions); i++) {
		if (transitions[i].state != c->state || transitions[i].event != ev)
			continue;
		c->state = transitions[i].next;
		return transitions[i].action(c, arg);
	}
	return -EINVAL;
}

static void on_fd(struct loop_fd *w, u32 events, struct now now)
{
	struct hca_iw_conn *c = container_of(w, struct hca_iw_conn, fd);
	bool initiator = c->state == CONN_AWAIT_MPAREP;
	struct mpa_frame f;
	int got;

	if (c->state == CONN_CONNECTING) {
		on_tcp_connected(c);
		return;
	}
	if (c->state ==
	    CONN_RECVD_MPAREQ) { /* no data comes before the reply (RFC 5044, 7.1.2): the stream was closed */
		siw_conn_fail(c, -ECONNRESET, true);
		return;
	}
	got = read_frame(c, initiator ? &f : &c->req);
	if (got < 0 && peer_may_be_revision_1(c, got))
		(void)conn_event(c, EV_REVISION_1, NULL);
	else if (got < 0)
		siw_conn_fail(c, got, true);
	else if (got && initiator)
		on_reply(c, &f);
	else if (got)
		on_request(c);
}

struct hca_iw_conn *siw_conn_create(struct siw *siw, int fd, enum conn_state state)
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
	if (siw_fd_add(siw, &c->fd, conn_epoll_events(c))) {
		c->fd.fd = -1;
		conn_free(c);
		return NULL;
	}
	return c;
}

/* ---- verbs calls of the program ---- */

static int qp_check(struct hca *hca, const struct hca_iw_param *p)
{
	struct hca_qp *qp = hca_qp_lookup(hca, p->qpn);
	const struct siw_qp *sq = qp ? qp->transport : NULL;

	if (!qp || hca_qp_owner(hca, p->qpn) != p->owner)
		return -EINVAL;
	return siw_qp_may_attach(sq) ? 0 : -EINVAL;
}

struct hca_iw_conn *siw_conn_active_open(struct siw *siw, int fd, const struct hca_iw_param *p, hca_iw_event_fn *fn,
					 void *ctx)
{
	struct hca_iw_conn *c = siw_conn_create(siw, fd, CONN_CONNECTING);

	if (!c) {
		close(fd);
		return NULL;
	}
	c->fn = fn;
	c->ctx = ctx;
	c->owner = p->owner;
	c->qpn = p->qpn;
	fill_request(c, p);
	siw_conn_set_timer(c, CONNECT_NS);
	return c;
}

static int conn_connect(struct hca *hca, struct hca_iw_addr *src, const struct hca_iw_addr *dst,
			const struct hca_iw_param *p, hca_iw_event_fn *fn, void *ctx, struct hca_iw_conn **conn)
{
	struct siw *siw = hca_transport_data(hca);
	struct hca_iw_addr from = *src;
	int err = qp_check(hca, p), fd;

	if (err)
		return err;
	if (p->data_len > MPA_PRIVATE_MAX - (siw->options.revision == 2 ? MPA_V2_LEN : 0))
		return -EINVAL;
	if (siw->down)
		return -ENETUNREACH;
	fd = siw_socket_connect(src, dst);
	if (fd < 0)
		return fd;
	*conn = siw_conn_active_open(siw, fd, p, fn, ctx);
	if (!*conn)
		return -ENOMEM;
	(*conn)->bound = from;
	(*conn)->local = *src;
	(*conn)->remote = *dst;
	return 0;
}

static void conn_own(struct hca_iw_conn *c, hca_iw_event_fn *fn, void *ctx)
{
	c->fn = fn;
	c->ctx = ctx;
}

/* Does private data of @len bytes fit in the reply? */
static bool reply_fits(const struct hca_iw_conn *c, u16 len)
{
	return len + (c->reply.enhanced ? MPA_V2_LEN : 0) <= MPA_PRIVATE_MAX;
}

static int conn_accept(struct hca_iw_conn *c, const struct hca_iw_param *p)
{
	const struct mpa_limits own = { p->ird, p->ord, c->siw->options.crc, c->siw->options.markers };

	if (c->state == CONN_RECVD_MPAREQ && (qp_check(c->siw->hca, p) || !reply_fits(c, p->data_len)))
		return -EINVAL;
	if (c->state == CONN_RECVD_MPAREQ)
		mpa_reply_create(&c->req, &own, &c->reply, &c->terms);
	c->reply.data = p->data;
	c->reply.data_len = p->data_len;
	return conn_event(c, EV_ACCEPT, &(struct conn_arg){ .param = p });
}

static int conn_reject(struct hca_iw_conn *c, const u8 *data, u16 len)
{
	const struct mpa_frame f = { .data = data, .data_len = len };

	if (c->state == CONN_RECVD_MPAREQ && !reply_fits(c, len))
		return -EINVAL;
	return conn_event(c, EV_REJECT, &(struct conn_arg){ .frame = &f });
}

static int conn_disconnect(struct hca_iw_conn *c)
{
	if (!c->sq)
		return -EINVAL;
	siw_qp_disconnect(c->sq);
	return 0;
}

static void conn_destroy(struct hca_iw_conn *c)
{
	c->fn = NULL;
	if (c->state == CONN_RECVD_MPAREQ)
		(void)conn_event(c, EV_REJECT, &(struct conn_arg){ 0 });
	if (c->sq)
		siw_qp_disconnect(c->sq);
	if (c->sq) { /* the end waits for moves */
		c->sq->closed = NULL;
		c->sq->started = NULL;
	}
	conn_free(c);
}

void siw_conns_watch(struct siw *siw, bool on)
{
	struct hca_iw_conn *c;

	siw_listeners_watch(siw, on);
	list_for_each (c, &siw->conns, link) {
		loop_fd_del(&c->fd);
		if (on && c->fd.fd >= 0 && loop_fd_add(siw->loop, &c->fd, conn_epoll_events(c)))
			log_at(LOG_ERROR, "iwarp", "a connection is stalled: %s", strerror(errno));
	}
}

void siw_conns_reset(struct siw *siw)
{
	struct hca_iw_conn *c;
	bool again = true;

	while (again) { /* handling one event may free others */
		again = false;
		list_for_each (c, &siw->conns, link)
			if (c->fd.fd >= 0) {
				siw_conn_fail(c, -ECONNRESET, true);
				again = true;
				break;
			}
	}
}

void siw_conns_destroy(struct siw *siw)
{
	while (!list_empty(&siw->listeners))
		siw_unlisten(list_first(&siw->listeners, struct hca_iw_listener, link));
	while (!list_empty(&siw->conns))
		conn_destroy(list_first(&siw->conns, struct hca_iw_conn, link));
}

const struct hca_iw_ops siw_conn_ops = {
	.connect = conn_connect,
	.listen = siw_listen,
	.unlisten = siw_unlisten,
	.own = conn_own,
	.accept = conn_accept,
	.reject = conn_reject,
	.disconnect = conn_disconnect,
	.destroy = conn_destroy,
};
