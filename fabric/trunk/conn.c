// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections of trunks: a stream socket to another daemon, which all trunks to that daemon share. The socket never
 * blocks, and each turn has a budget. Packets wait in the queues of their trunks, which take turns. Between daemons on
 * one machine, rings take over (conn_ring.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "fabric/trunk/trunk_internal.h"

#define BATCH       64          /* packets in a call ... */
#define BATCH_BYTES (64u << 10) /* ... and their bytes: the peer processes them while this daemon produces more */
#define SMALL       512         /* a payload of up to so many bytes is copied */

const char *trunk_conn_name(const struct trunk_conn *c)
{
	u32 i;

	for (i = 0; i < c->nlinks; i++)
		if (c->links[i].trunk)
			return c->links[i].trunk->name;
	return c->listener ? c->listener->address : c->connector->address;
}

void trunk_conn_count(struct trunk_conn *c, enum trunk_counter ctr)
{
	u32 i;

	for (i = 0; i < c->nlinks; i++)
		if (c->links[i].trunk)
			trunk_count(c->set, c->links[i].trunk, ctr, 1);
	if (!c->nopen)
		trunk_count(c->set, NULL, ctr, 1);
}

void trunk_conn_set_timer(struct trunk_conn *c, u64 ns)
{
	loop_timer_set(c->set->loop, &c->timer, loop_now(c->set->loop).ns + ns);
}

void trunk_conn_flush_later(struct trunk_conn *c)
{
	if (!c->blocked && !c->connecting)
		loop_task_queue(c->set->loop, &c->flush);
}

void trunk_conn_end(struct trunk_conn *c)
{
	c->ended = true;
	loop_task_queue(c->set->loop, &c->flush);
}

void trunk_conn_put(struct trunk_conn *c, enum trunk_type type, u32 number, const void *body, u32 len)
{
	struct trunk_head h = { .type = (u8)type, .len = cpu_to_be16((u16)len), .link = cpu_to_be32(number) };

	if (c->tail_len + sizeof(h) + len > sizeof(c->tail)) { /* the peer does not read */
		trunk_conn_end(c);
		return;
	}
	memcpy(c->tail + c->tail_len, &h, sizeof(h));
	memcpy(c->tail + c->tail_len + sizeof(h), body, len);
	c->tail_len += (u32)sizeof(h) + len;
}

/* Sending */

/* The parts of one call: the tail, and for each packet a copied part, its payload, and pad bytes. */
static struct {
	struct iovec iov[1 + 3 * BATCH];
	u32 niov, n;
	size_t bytes;
	struct trunk *trunk[BATCH]; /* of each packet */
	u8 copied[BATCH][sizeof(struct trunk_head) + WIRE_HDR_MAX + SMALL + 4];
} batch;

static void batch_add(struct trunk *t, struct wire_packet *p)
{
	static u8 zero[4];
	u32 len = wire_packet_link_len(p) - WIRE_ICRC_LEN, pad = -p->len & 3u;
	struct trunk_head h = trunk_packet_head(t, p, len);
	u8 *to = batch.copied[batch.n], *at = to;

	batch.trunk[batch.n++] = t;
	batch.bytes += len;
	wire_lrh_set_words(wire_packet_lrh(p), (len + WIRE_ICRC_LEN) / 4); /* a fault may have truncated it */
	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), p->hdr, p->hdr_len);
	at += sizeof(h) + p->hdr_len;
	if (p->len <= SMALL) {
		if (p->len)
			memcpy(at, p->data, p->len);
		memset(at + p->len, 0, pad);
		at += p->len + pad;
	}
	batch.iov[batch.niov++] = (struct iovec){ to, (size_t)(at - to) };
	if (p->len <= SMALL)
		return;
	batch.iov[batch.niov++] = (struct iovec){ (void *)(uintptr_t)p->data, p->len };
	if (pad)
		batch.iov[batch.niov++] = (struct iovec){ zero, pad };
}

void trunk_conn_packet_sent(struct trunk *t, struct wire_packet *p)
{
	u32 len = wire_packet_link_len(p), blocks = (len + WIRE_VCRC_LEN + 63) / 64;

	if (p->vl != WIRE_VL_MGMT)
		t->s.sent[p->vl] += blocks;
	else if (!list_empty(&p->link))
		t->s.smps--;
	list_del(&p->link);
	fabric_remote_sent(t->remote, p->vl, blocks);
	trunk_count(t->set, t, TRUNK_CTR_XMIT_PKTS, 1);
	trunk_count(t->set, t, TRUNK_CTR_XMIT_BYTES, sizeof(struct trunk_head) + len - WIRE_ICRC_LEN);
	wire_packet_free(p);
}

/* Keeps the rest of a message of which @sent bytes have been sent. */
static void conn_keep_rest(struct trunk_conn *c, u32 first, size_t sent, size_t len)
{
	for (; len; first++) {
		const struct iovec *v = &batch.iov[first];
		size_t n = min(v->iov_len, len);

		if (sent < n) {
			memcpy(c->tail + c->tail_len, (const u8 *)v->iov_base + sent, n - sent);
			c->tail_len += (u32)(n - sent);
		}
		sent -= min(sent, n);
		len -= n;
	}
}

/* @n bytes of the batch have been sent. */
static void conn_sent(struct trunk_conn *c, size_t n)
{
	size_t of_tail = min(n, (size_t)c->tail_len);
	u32 at = 1, i;

	c->spoken = loop_now(c->set->loop).ns;
	c->tail_len -= (u32)of_tail;
	memmove(c->tail, c->tail + of_tail, c->tail_len);
	n -= of_tail;
	for (i = 0; n; i++) {
		struct wire_packet *p = list_first(&batch.trunk[i]->s.packets, struct wire_packet, link);
		size_t len = sizeof(struct trunk_head) + wire_packet_link_len(p) - WIRE_ICRC_LEN;

		if (n < len)
			conn_keep_rest(c, at, n, len);
		at += p->len <= SMALL ? 1u : p->len % 4 ? 3u : 2u;
		n -= min(n, len);
		c->by_socket += c->by_socket < TRUNK_RING_AFTER;
		trunk_conn_packet_sent(batch.trunk[i], p);
	}
}

static void conn_watch(struct trunk_conn *c, bool blocked)
{
	if (blocked == c->blocked)
		return;
	c->blocked = blocked;
	loop_fd_mod(&c->w, EPOLLIN | (c->blocked ? EPOLLOUT : 0u));
}

static bool conn_tail_has_space(const struct trunk_conn *c)
{
	return c->tail_len + TRUNK_SEND_MAX + TRUNK_TAIL_REST <= TRUNK_TAIL_MAX;
}

void trunk_conn_tell(struct trunk_conn *c)
{
	if (c->send_alive && conn_tail_has_space(c)) {
		c->send_alive = false;
		trunk_conn_put(c, TRUNK_KEEPALIVE, 0, "", 0);
	}
	while (!list_empty(&c->respond) && conn_tail_has_space(c))
		trunk_message_respond(list_first(&c->respond, struct trunk_request, respond));
}

/* Fills the batch and the tail. Returns how many of the active trunks have taken part. */
static u32 conn_fill_batch(struct trunk_conn *c)
{
	struct wire_packet *p;
	struct trunk *t;
	u32 n = 0;

	trunk_conn_tell(c);
	batch.n = 0;
	batch.niov = 1;
	batch.bytes = 0;
	list_for_each (t, &c->active, s.active) {
		/* The tail must have space for the rest of one message. */
		if (batch.n == BATCH || batch.bytes >= BATCH_BYTES || !trunk_session_tell(t))
			break;
		list_for_each (p, &t->s.packets, link) {
			if (batch.n == BATCH || batch.bytes >= BATCH_BYTES)
				break;
			batch_add(t, p);
		}
		n++;
	}
	batch.iov[0] = (struct iovec){ c->tail, c->tail_len };
	return n;
}

void trunk_conn_rotate(struct trunk_conn *c, u32 n)
{
	while (n-- && !list_empty(&c->active)) {
		struct trunk *t = list_first(&c->active, struct trunk, s.active);

		list_del(&t->s.active);
		if (trunk_session_owes(t))
			list_add(&c->active, &t->s.active);
	}
}

/* Does TLS accept no data yet, or never? */
static bool conn_tls_waits(struct trunk_conn *c)
{
	int err = trunk_tls_flush(c);

	if (err == -EAGAIN)
		conn_watch(c, true);
	else if (err && err != -EINPROGRESS && !c->ended)
		trunk_conn_end(c);
	return err;
}

/* Sends one batch. Bytes, 0: there is nothing to send; or negative: the socket accepts no more. */
static ssize_t conn_write(struct trunk_conn *c)
{
	struct msghdr m = { .msg_iov = batch.iov };
	size_t len = 0;
	u32 n, i;
	ssize_t sent;

	if (c->tls && conn_tls_waits(c))
		return -1;
	n = conn_fill_batch(c);
	for (i = 0; i < batch.niov; i++)
		len += batch.iov[i].iov_len;
	if (!len) {
		trunk_conn_rotate(c, n);
		return 0;
	}
	m.msg_iovlen = batch.niov;
	sent = c->tls ? trunk_tls_send(c, batch.iov, batch.niov) : sendmsg(c->w.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN && errno != EINTR) {
		trunk_conn_end(c);
		return -1;
	}
	if (sent > 0)
		conn_sent(c, (size_t)sent);
	trunk_conn_rotate(c, n);
	if (sent == (ssize_t)len)
		return sent;
	conn_watch(c, true);
	return -1;
}

static void conn_flush(struct loop_task *task, struct now now)
{
	struct trunk_conn *c = container_of(task, struct trunk_conn, flush);
	size_t total = 0;
	ssize_t n = 1;

	if (c->local && !c->tls && !c->ended && !c->tx.shared && !c->tail_len && !c->blocked &&
	    c->by_socket == TRUNK_RING_AFTER)
		trunk_conn_ring_open(c);
	while (n > 0 && total < TRUNK_WRITE) {
		n = c->connecting || c->tx.shared ? 0 : conn_write(c);
		total += n > 0 ? (size_t)n : 0;
	}
	if (c->tx.shared && !c->ended)
		trunk_conn_ring_flush(c);
	if (c->ended)
		trunk_conn_destroy(c);
	else if (n > 0)
		loop_task_queue(c->set->loop, &c->flush);
}

/* Receiving */

/* Processes the messages in the first @len bytes of @data; returns how many bytes complete messages had. */
static u32 conn_messages(struct trunk_conn *c, const u8 *data, u32 len)
{
	u32 at = 0;

	while (!c->ended && len - at >= sizeof(struct trunk_head)) {
		struct trunk_head h;
		u32 body;

		memcpy(&h, data + at, sizeof(h));
		body = be16_to_cpu(h.len);
		if (body > TRUNK_MSG_MAX) {
			/* It is refused by its length. No buffer has space for it, so nothing behind it is read. */
			trunk_message(c, &h, data + at + sizeof(h), NULL, body);
			trunk_conn_end(c);
			break;
		}
		if (len - at - sizeof(h) < body)
			break;
		if (c->rx.shared) {
			trunk_message_violation(c, "a message on the socket in addition to its ring");
			break;
		}
		if (!trunk_message(c, &h, data + at + sizeof(h), data + at + sizeof(h), body))
			break;
		at += (u32)sizeof(h) + body;
	}
	return at;
}

static void conn_close_passed(struct trunk_conn *c)
{
	while (c->npassed)
		passed_close(c->passed[--c->npassed], passed_owner(c->w.fd));
}

static ssize_t conn_recv(struct trunk_conn *c, u8 *to, size_t size)
{
	struct iovec iov = { to, size };
	int fds[ARRAY_SIZE(c->passed)];
	u32 nfds = 0;
	ssize_t n;

	if (c->tls)
		return trunk_tls_recv(c, to, size);
	if (!c->local)
		return recv(c->w.fd, to, size, MSG_DONTWAIT);
	n = passed_recv(c->w.fd, &iov, fds, ARRAY_SIZE(fds), &nfds);
	if (nfds) {
		conn_close_passed(c);
		memcpy(c->passed, fds, nfds * sizeof(*fds));
		c->npassed = nfds;
		if (passed_refused(passed_owner(c->w.fd))) {
			trunk_message_violation(c, "too many of its descriptors wait to be closed");
			errno = EMFILE;
			return -1;
		}
	}
	return n;
}

static void conn_read(struct trunk_conn *c, struct now now)
{
	static u8 input[sizeof(c->part) + TRUNK_READ];
	u32 len = c->part_len, used;
	ssize_t n;

	memcpy(input, c->part, len);
	n = conn_recv(c, input + len, c->nready || c->tls ? TRUNK_READ : 512);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		trunk_conn_end(c);
		return;
	}
	c->heard = now.ns;
	len += (u32)n;
	used = conn_messages(c, input, len);
	if (c->ended)
		return;
	c->part_len = len - used;
	memcpy(c->part, input + used, c->part_len);
	loop_stay_awake(c->set->loop);
}

static void conn_connected(struct trunk_conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(c->w.fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
		trunk_conn_end(c);
		return;
	}
	c->connecting = false;
	conn_watch(c, false);
	trunk_connector_opened(c->connector);
}

static void on_socket(struct loop_fd *w, u32 events, struct now now)
{
	struct trunk_conn *c = container_of(w, struct trunk_conn, w);

	if (c->ended)
		return;
	if (c->connecting) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			conn_connected(c);
		return;
	}
	if (events & EPOLLOUT) {
		conn_watch(c, false);
		trunk_conn_flush_later(c);
	}
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		conn_read(c, now);
}

/* Timer */

/*
 * Without a trunk after the handshake: the connection ends. A listener answers: to the hellos whose senders have not
 * proved the key, or to a peer that has sent none; a connector counts that nobody has answered its own.
 */
static void conn_handshake_expired(struct trunk_conn *c)
{
	bool tls = !c->connecting && trunk_tls_handshakes(c), silent = !c->nlinks && !c->refused && !tls;
	u32 i = c->nlinks;

	while (i--)
		if (c->links[i].request)
			trunk_message_refuse(c, c->links[i].number, TRUNK_BAD_KEY);
	if (c->listener && silent)
		trunk_message_refuse(c, 0, TRUNK_BAD_HELLO);
	else if (!c->refused && !c->connecting)
		trunk_conn_count(c, c->connector ? TRUNK_CTR_UNANSWERED
				    : tls        ? TRUNK_CTR_REFUSED_TLS
						 : TRUNK_CTR_REFUSED_HELLO);
	if (tls)
		log_at(LOG_WARN, "trunk", "%s: the TLS handshake has not been completed in %llu s", trunk_conn_name(c),
		       TRUNK_HELLO_TIME / NSEC_PER_SEC);
	else if (c->connector && !c->connecting)
		log_at(LOG_WARN, "trunk", "%s: the peer at %s has not answered the hello in %llu s", trunk_conn_name(c),
		       c->connector->address, TRUNK_HELLO_TIME / NSEC_PER_SEC);
	trunk_conn_end(c);
}

static void conn_each_second(struct trunk_conn *c, struct now now)
{
	u32 i = c->nlinks;

	while (i--) {
		struct trunk_request *r = c->links[i].request;

		if (r && now.ns - r->since >= TRUNK_HELLO_TIME)
			trunk_message_refuse(c, r->number, TRUNK_BAD_KEY);
	}
}

static void on_timer(struct loop_timer *timer, struct now now)
{
	struct trunk_conn *c = container_of(timer, struct trunk_conn, timer);

	if (c->ended)
		return;
	if (now.ns - timer->when >= TRUNK_LATE) { /* this daemon did not run: what has come meanwhile is not read yet */
		c->heard = now.ns;
		trunk_conn_set_timer(c, c->nready ? TRUNK_PING : TRUNK_HELLO_TIME);
		return;
	}
	if (!c->nready) {
		conn_handshake_expired(c);
		return;
	}
	if (now.ns - c->heard >= TRUNK_SILENCE) {
		trunk_conn_count(c, TRUNK_CTR_TIMEOUTS);
		log_at(LOG_WARN, "trunk", "%s: nothing was received from the peer for %llu s", trunk_conn_name(c),
		       TRUNK_SILENCE / NSEC_PER_SEC);
		trunk_conn_end(c);
		return;
	}
	loop_timer_set(c->set->loop, &c->timer, now.ns + TRUNK_PING);
	conn_each_second(c, now);
	if (now.ns - c->spoken >= TRUNK_PING) {
		c->send_alive = true;
		trunk_conn_flush_later(c);
	}
}

/* Creation */

struct trunk_conn *trunk_conn_create(struct trunk_set *set, int fd, bool local)
{
	struct trunk_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		passed_close_socket(fd, 0);
		return NULL;
	}
	c->set = set;
	list_init(&c->rings);
	list_init(&c->link);
	list_init(&c->active);
	list_init(&c->respond);
	c->local = local;
	c->w = (struct loop_fd){ .fd = fd, .fn = on_socket };
	c->timer.fn = on_timer;
	loop_task_init(&c->flush, conn_flush);
	if (local)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ TRUNK_SNDBUF }, sizeof(int));
	if (loop_fd_add(set->loop, &c->w, EPOLLIN)) {
		trunk_conn_destroy(c);
		return NULL;
	}
	c->heard = c->spoken = loop_now(set->loop).ns;
	trunk_conn_set_timer(c, TRUNK_HELLO_TIME);
	return c;
}

void trunk_conn_start(struct trunk_conn *c)
{
	c->connecting = true;
	conn_watch(c, true);
}

void trunk_conn_destroy(struct trunk_conn *c)
{
	loop_timer_cancel(&c->timer);
	loop_timer_cancel(&c->full);
	trunk_tls_end(c);
	loop_task_cancel(&c->flush);
	loop_fd_del(&c->w);
	loop_fd_del(&c->wake);
	list_del(&c->rings);
	conn_close_passed(c);
	trunk_ring_destroy(&c->tx);
	trunk_ring_destroy(&c->rx);
	passed_close_socket(c->w.fd, c->local ? passed_owner(c->w.fd) : 0);
	c->ended = true;
	while (c->nlinks) {
		struct trunk_number *n = &c->links[c->nlinks - 1];

		if (n->trunk)
			trunk_session_close(n->trunk);
		else
			trunk_request_close(n->request);
	}
	if (!list_empty(&c->link)) {
		list_del(&c->link);
		c->listener->nunknown--;
	}
	if (c->connector)
		trunk_connector_lost(c->connector);
	free(c->links);
	free(c);
}
