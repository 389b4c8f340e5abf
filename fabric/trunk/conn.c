// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections of trunks: a stream socket, what waits to be sent, and what has come of a message that is not whole. Data packets that
 * wait are bounded by the link's credits, those of VL15 by number. The socket never blocks, and each turn has a budget.
 *
 * Where both daemons are on one machine, each direction goes on in a ring of shared memory after its first data packets. The socket then has
 * keepalives, which wake up the peer, and shows its death.
 */
#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdlib.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/lib/rights.h"
#include "fabric/trunk/trunk_internal.h"

#define BATCH 16  /* packets in a call: the peer works on them while more are made */
#define SMALL 512 /* bytes of payload that are copied */

void trunk_conn_flush_later(struct trunk_conn *c)
{
	if (!c->blocked && c->state != TRUNK_CONNECTING)
		loop_task_queue(c->set->loop, &c->flush);
}

void trunk_conn_end(struct trunk_conn *c)
{
	c->ended = true;
	loop_task_queue(c->set->loop, &c->flush);
}

void trunk_conn_put(struct trunk_conn *c, enum trunk_type type, const void *body, u32 len)
{
	struct trunk_head h = { .type = (u8)type, .len = cpu_to_be16((u16)len) };

	if (c->tail_len + sizeof(h) + len > sizeof(c->tail)) { /* the peer does not read */
		trunk_conn_end(c);
		return;
	}
	memcpy(c->tail + c->tail_len, &h, sizeof(h));
	memcpy(c->tail + c->tail_len + sizeof(h), body, len);
	c->tail_len += (u32)sizeof(h) + len;
	trunk_conn_flush_later(c);
}

void trunk_conn_drop_packets(struct trunk_conn *c)
{
	while (!list_empty(&c->packets)) {
		struct wire_packet *p = list_first(&c->packets, struct wire_packet, link);

		list_del(&p->link);
		fabric_remote_drop(c->trunk->remote, p);
	}
	c->smps = 0;
}

void trunk_conn_change(struct trunk_conn *c, enum fabric_remote_change what)
{
	if (c->state != TRUNK_READY || c->ended || fabric_remote_is_up(c->trunk->remote))
		return;
	c->wake |= what == FABRIC_REMOTE_WAKE;
	if (!++c->epoch)
		c->epoch = 1;
	c->link_told = false;
	c->tell_link = true;
	trunk_conn_drop_packets(c);
	trunk_conn_flush_later(c);
}

static bool ring_put_packet(struct trunk_conn *c, struct wire_packet *p);

void trunk_conn_send(struct trunk_conn *c, struct wire_packet *p)
{
	/* Nothing waits before it: its payload is copied once, from where the sender has it. */
	if (c->tx.shared && !c->ended && !c->tail_len && !c->tell_link && list_empty(&c->packets) &&
	    ring_put_packet(c, p)) {
		trunk_conn_flush_later(c);
		return;
	}
	if (c->state != TRUNK_READY || c->ended || (p->vl == WIRE_VL_MGMT && c->smps >= TRUNK_SMPS) ||
	    !wire_packet_own(p)) {
		fabric_remote_drop(c->trunk->remote, p);
		return;
	}
	c->smps += p->vl == WIRE_VL_MGMT;
	list_add(&c->packets, &p->link);
	trunk_conn_flush_later(c);
}

void trunk_conn_credits(struct trunk_conn *c)
{
	if (c->state != TRUNK_READY || c->tell_flow)
		return;
	c->tell_flow = true;
	trunk_conn_flush_later(c);
}

/* Sending */

/* What one call sends: the tail, and packets, each of a part that is copied, its payload, and pad bytes. */
static struct {
	struct iovec iov[1 + 3 * BATCH];
	u32 n;
	u8 copied[BATCH][sizeof(struct trunk_head) + WIRE_HDR_MAX + SMALL + 4];
} batch;

static void batch_add(struct wire_packet *p, u8 *to)
{
	static u8 zero[4];
	u32 len = wire_packet_link_len(p) - WIRE_ICRC_LEN, pad = -p->len & 3u;
	struct trunk_head h = { .type = TRUNK_PACKET, .flags = p->flags, .len = cpu_to_be16((u16)len) };
	u8 *at = to;

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
	batch.iov[batch.n++] = (struct iovec){ to, (size_t)(at - to) };
	if (p->len <= SMALL)
		return;
	batch.iov[batch.n++] = (struct iovec){ (void *)(uintptr_t)p->data, p->len };
	if (pad)
		batch.iov[batch.n++] = (struct iovec){ zero, pad };
}

/* The packet has left, or the first bytes of it. */
static void conn_packet_gone(struct trunk_conn *c, struct wire_packet *p)
{
	u32 blocks = (wire_packet_link_len(p) + WIRE_VCRC_LEN + 63) / 64;

	if (p->vl != WIRE_VL_MGMT) {
		c->sent[p->vl] += blocks;
		c->by_socket += c->by_socket < TRUNK_RING_AFTER;
	} else if (!list_empty(&p->link)) {
		c->smps--;
	}
	list_del(&p->link);
	fabric_remote_sent(c->trunk->remote, p->vl, blocks);
	trunk_count(c, TRUNK_CTR_XMIT_PKTS, 1);
	wire_packet_free(p);
}

/* Keeps what is left of a message, of which the first @sent bytes have left. */
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

/* @n bytes of the batch have left. */
static void conn_sent(struct trunk_conn *c, size_t n)
{
	u32 at = 0;

	trunk_count(c, TRUNK_CTR_XMIT_BYTES, n);
	c->spoken = loop_now(c->set->loop).ns;
	if (c->tail_len) {
		size_t of_tail = min(n, (size_t)c->tail_len);

		c->tail_len -= (u32)of_tail;
		memmove(c->tail, c->tail + of_tail, c->tail_len);
		n -= of_tail;
		at = 1;
	}
	while (n) {
		struct wire_packet *p = list_first(&c->packets, struct wire_packet, link);
		size_t len = sizeof(struct trunk_head) + wire_packet_link_len(p) - WIRE_ICRC_LEN;

		if (n < len)
			conn_keep_rest(c, at, n, len);
		at += p->len <= SMALL ? 1u : p->len % 4 ? 3u : 2u;
		n -= min(n, len);
		conn_packet_gone(c, p);
	}
}

/* Beside a ring the socket only wakes up: its edges are enough, and what it has is read now and then. */
static void conn_watch_again(struct trunk_conn *c)
{
	loop_fd_mod(&c->w, EPOLLIN | (c->blocked ? EPOLLOUT : 0u) | (c->rx.shared ? EPOLLET : 0u));
}

static void conn_watch(struct trunk_conn *c, bool blocked)
{
	if (blocked == c->blocked)
		return;
	c->blocked = blocked;
	conn_watch_again(c);
}

static void conn_tell(struct trunk_conn *c)
{
	if (c->state != TRUNK_READY || sizeof(c->tail) - c->tail_len < TRUNK_MSG_MAX + 256u)
		return;
	if (c->tell_link)
		trunk_message_link(c);
	if (c->tell_flow)
		trunk_message_flow(c);
	if (c->tell_alive)
		trunk_conn_put(c, TRUNK_KEEPALIVE, "", 0);
	c->tell_alive = false;
}

/* True: not now, or never again. */
static bool conn_tls_waits(struct trunk_conn *c)
{
	int err = trunk_tls_flush(c);

	if (err == -EAGAIN)
		conn_watch(c, true);
	else if (err && err != -EINPROGRESS && !c->ended)
		trunk_conn_end(c);
	return err;
}

/* Sends one batch. Bytes, 0: there is nothing; or negative: not now, or never again. */
static ssize_t conn_write(struct trunk_conn *c)
{
	struct msghdr m = { .msg_iov = batch.iov };
	struct wire_packet *p;
	size_t len = 0;
	u32 n = 0, i;
	ssize_t sent;

	if (c->tls && conn_tls_waits(c))
		return -1;
	conn_tell(c);
	batch.n = 0;
	if (c->tail_len)
		batch.iov[batch.n++] = (struct iovec){ c->tail, c->tail_len };
	/* The tail takes the rest of one message. */
	if (sizeof(c->tail) - c->tail_len >= TRUNK_MSG_MAX + sizeof(struct trunk_head))
		list_for_each (p, &c->packets, link) {
			if (n == BATCH)
				break;
			batch_add(p, batch.copied[n++]);
		}
	if (!batch.n)
		return 0;
	m.msg_iovlen = batch.n;
	for (i = 0; i < batch.n; i++)
		len += batch.iov[i].iov_len;
	sent = c->tls ? trunk_tls_send(c, batch.iov, batch.n) : sendmsg(c->w.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN && errno != EINTR) {
		trunk_conn_end(c);
		return -1;
	}
	if (sent > 0)
		conn_sent(c, (size_t)sent);
	if (sent == (ssize_t)len)
		return sent;
	conn_watch(c, true);
	return -1;
}

/* Sending by the ring */

/* The peer looks at its rings. When its socket takes no more, it has something to read, and will look. */
static void conn_wake_peer(struct trunk_conn *c)
{
	struct trunk_head h = { .type = TRUNK_KEEPALIVE };

	if (!c->tx.shared) { /* the socket may have taken the half of a message */
		c->tell_alive = true;
		trunk_conn_flush_later(c);
	} else if (send(c->w.fd, &h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
		trunk_conn_end(c);
	}
}

static u8 *ring_reserve(struct trunk_conn *c, u32 len)
{
	bool bad = false;
	u8 *to = trunk_ring_reserve(&c->tx, len, &bad);

	if (bad)
		trunk_message_violation(c, "an invalid index of a ring");
	return to;
}

static void ring_write(struct trunk_conn *c, u32 len)
{
	trunk_ring_write(&c->tx, len);
	trunk_count(c, TRUNK_CTR_XMIT_BYTES, len);
	c->spoken = loop_now(c->set->loop).ns;
}

static bool ring_put_packet(struct trunk_conn *c, struct wire_packet *p)
{
	u32 len = wire_packet_link_len(p) - WIRE_ICRC_LEN, pad = -p->len & 3u;
	struct trunk_head h = { .type = TRUNK_PACKET, .flags = p->flags, .len = cpu_to_be16((u16)len) };
	u8 *to = ring_reserve(c, (u32)sizeof(h) + len);

	if (!to)
		return false;
	wire_lrh_set_words(wire_packet_lrh(p), (len + WIRE_ICRC_LEN) / 4); /* a fault may have truncated it */
	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), p->hdr, p->hdr_len);
	to += sizeof(h) + p->hdr_len;
	if (p->len)
		memcpy(to, p->data, p->len);
	memset(to + p->len, 0, pad);
	ring_write(c, (u32)sizeof(h) + len);
	conn_packet_gone(c, p);
	return true;
}

/* What waits, as far as there is space. */
static void ring_flush(struct trunk_conn *c)
{
	u8 *to;

	conn_tell(c);
	to = c->tail_len ? ring_reserve(c, c->tail_len) : NULL;
	if (to) {
		memcpy(to, c->tail, c->tail_len);
		ring_write(c, c->tail_len);
		c->tail_len = 0;
	}
	while (!c->tail_len && !list_empty(&c->packets) &&
	       ring_put_packet(c, list_first(&c->packets, struct wire_packet, link)))
		;
	if (!c->ended && trunk_ring_wakes_reader(&c->tx))
		conn_wake_peer(c);
}

void trunk_conn_has_ring(struct trunk_conn *c)
{
	trunk_count(c, TRUNK_CTR_RINGS, 1);
	list_del(&c->rings);
	list_add(&c->set->rings, &c->rings);
	if (c->rx.shared)
		conn_watch_again(c);
}

/* The socket has taken all that was to be sent before. Where there is no memory for a ring it goes on. */
static void ring_open(struct trunk_conn *c)
{
	struct {
		struct trunk_head head;
		struct trunk_ring_open body;
	} m = { { .type = TRUNK_RING_OPEN, .len = cpu_to_be16(sizeof(m.body)) }, { cpu_to_be32(TRUNK_RING) } };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	RIGHTS_CONTROL(control, 1) = { 0 };
	int fd = trunk_ring_create(&c->tx);

	c->by_socket = 0; /* if it fails: again later */
	if (fd < 0)
		return;
	rights_put(&msg, control, &fd, 1);
	if (sendmsg(c->w.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(m))
		trunk_conn_has_ring(c);
	else
		trunk_ring_destroy(&c->tx);
	close(fd);
}

static void conn_flush(struct loop_task *task, struct now now)
{
	struct trunk_conn *c = container_of(task, struct trunk_conn, flush);
	size_t total = 0;
	ssize_t n = 1;

	if (c->local && !c->tls && !c->ended && !c->tx.shared && !c->tail_len && !c->blocked &&
	    c->by_socket == TRUNK_RING_AFTER)
		ring_open(c);
	while (n > 0 && total < TRUNK_WRITE) {
		n = c->state == TRUNK_CONNECTING || c->tx.shared ? 0 : conn_write(c);
		total += n > 0 ? (size_t)n : 0;
	}
	if (c->tx.shared && !c->ended)
		ring_flush(c);
	if (c->ended)
		trunk_conn_destroy(c);
	else if (n > 0)
		loop_task_queue(c->set->loop, &c->flush);
}

/* Receiving */

/* Messages of the first @len bytes of @data; returns how many bytes were those of whole messages. */
static u32 conn_messages(struct trunk_conn *c, const u8 *data, u32 len)
{
	u32 at = 0;

	while (!c->ended && len - at >= sizeof(struct trunk_head)) {
		struct trunk_head h;
		u32 body;

		memcpy(&h, data + at, sizeof(h));
		body = be16_to_cpu(h.len);
		if (body > TRUNK_MSG_MAX) {
			trunk_message(c, &h, data + at + sizeof(h), NULL, body); /* refuses it by its length */
			break;
		}
		if (len - at - sizeof(h) < body)
			break;
		if (c->rx.shared && h.type != TRUNK_KEEPALIVE) {
			trunk_message_violation(c, "a message beside its ring");
			break;
		}
		if (!trunk_message(c, &h, data + at + sizeof(h), data + at + sizeof(h), body))
			break;
		at += (u32)sizeof(h) + body;
	}
	return at;
}

static ssize_t conn_recv(struct trunk_conn *c, u8 *to, size_t size)
{
	struct iovec iov = { to, size };
	u32 nfds = 0;
	ssize_t n;
	int fd;

	if (c->tls)
		return trunk_tls_recv(c, to, size);
	if (!c->local)
		return recv(c->w.fd, to, size, MSG_DONTWAIT);
	n = passed_recv(c->w.fd, &iov, &fd, 1, &nfds);
	if (nfds) {
		passed_close(c->passed, passed_owner(c->w.fd));
		c->passed = fd;
	}
	return n;
}

/* One read. True: there may be more. */
static bool conn_read(struct trunk_conn *c, struct now now)
{
	static u8 input[sizeof(c->part) + TRUNK_READ];
	u32 len = c->part_len, used;
	ssize_t n;

	memcpy(input, c->part, len);
	n = conn_recv(c, input + len, c->state == TRUNK_READY || c->tls ? TRUNK_READ : 512);
	c->unread = n == TRUNK_READ;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		trunk_conn_end(c);
		return false;
	}
	c->heard = now.ns;
	trunk_count(c, TRUNK_CTR_RCV_BYTES, (u64)n);
	len += (u32)n;
	used = conn_messages(c, input, len);
	if (c->ended)
		return false;
	c->part_len = len - used;
	memcpy(c->part, input + used, c->part_len);
	loop_stay_awake(c->set->loop);
	return true;
}

/* Receiving by the ring */

/* Bytes of messages that were read, @most and a message at most. */
static u32 ring_messages(struct trunk_conn *c, u32 most)
{
	u8 copy[WIRE_HDR_MAX + sizeof(struct trunk_flow)];
	const u8 *body = NULL;
	struct trunk_head h;
	bool bad = false;
	u32 total, len;

	static_assert(sizeof(copy) >= TRUNK_DATA_VLS * sizeof(struct trunk_flow), "all messages but packets");
	for (total = 0; total < most && !c->ended; total += len) {
		body = trunk_ring_next(&c->rx, &h, &bad);
		if (!body)
			break;
		len = be16_to_cpu(h.len);
		memcpy(copy, body, min((size_t)len, sizeof(copy)));
		if (!trunk_message(c, &h, copy, body, len))
			break;
		len += (u32)sizeof(h);
		trunk_ring_read(&c->rx, len);
	}
	if (bad)
		trunk_message_violation(c, "an invalid ring");
	return total;
}

static u32 ring_poll(struct trunk_conn *c, struct now now)
{
	u32 n = 0, len;

	if (c->tx.shared && (c->tail_len || !list_empty(&c->packets)) && trunk_ring_has_space(&c->tx)) {
		trunk_conn_flush_later(c);
		n++;
	}
	if (!c->rx.shared)
		return n;
	len = ring_messages(c, TRUNK_READ);
	if (!len)
		return n;
	c->heard = now.ns;
	trunk_count(c, TRUNK_CTR_RCV_BYTES, len);
	if (!c->ended && trunk_ring_free(&c->rx))
		conn_wake_peer(c);
	return n + 1;
}

u32 trunk_conn_poll(struct loop_poller *p, struct now now)
{
	struct trunk_set *s = container_of(p, struct trunk_set, poller);
	struct trunk_conn *c;
	u32 n = 0;

	list_for_each (c, &s->rings, rings)
		if (!c->ended)
			n += ring_poll(c, now);
	return n;
}

bool trunk_conn_sleep(struct loop_poller *p, bool asleep)
{
	struct trunk_set *s = container_of(p, struct trunk_set, poller);
	struct trunk_conn *c;
	bool busy = false;

	list_for_each (c, &s->rings, rings) {
		bool waits = c->tail_len || !list_empty(&c->packets);

		if (c->rx.shared && trunk_ring_sleep(&c->rx, asleep && !c->ended))
			busy = true;
		if (c->tx.shared && trunk_ring_wait_space(&c->tx, asleep && waits) && waits)
			busy = true;
	}
	return busy;
}

static void conn_connected(struct trunk_conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(c->w.fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
		trunk_conn_end(c);
		return;
	}
	c->state = TRUNK_WAITS_HELLO;
	conn_watch(c, false);
	trunk_message_hello(c);
}

static void on_socket(struct loop_fd *w, u32 events, struct now now)
{
	struct trunk_conn *c = container_of(w, struct trunk_conn, w);

	if (c->ended)
		return;
	if (c->state == TRUNK_CONNECTING) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			conn_connected(c);
		return;
	}
	if (events & EPOLLOUT) {
		conn_watch(c, false);
		trunk_conn_flush_later(c);
	}
	if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		return;
	if (c->rx.shared && !(events & (EPOLLERR | EPOLLHUP)) && ++c->unread < TRUNK_UNREAD) {
		c->heard = now.ns;
		loop_stay_awake(c->set->loop);
		return;
	}
	while (conn_read(c, now) && c->rx.shared && events & EPOLLHUP)
		; /* to its end: there are no more edges, and what a socket holds is bounded */
}

/* Life */

static void on_timer(struct loop_timer *t, struct now now)
{
	struct trunk_conn *c = container_of(t, struct trunk_conn, timer);

	if (c->ended)
		return;
	if (c->state != TRUNK_READY) {
		bool tls = c->state != TRUNK_CONNECTING && trunk_tls_handshakes(c);

		trunk_count(c, tls ? TRUNK_CTR_REFUSED_TLS : TRUNK_CTR_REFUSED_HELLO, 1);
		if (tls)
			log_at(LOG_WARN, "trunk", "%s: the TLS handshake has not been completed in %llu s",
			       c->trunk ? c->trunk->name : c->listener->address, TRUNK_HELLO_TIME / NSEC_PER_SEC);
		trunk_conn_end(c);
		return;
	}
	if (now.ns - c->heard >= TRUNK_SILENCE) {
		trunk_count(c, TRUNK_CTR_TIMEOUTS, 1);
		log_at(LOG_WARN, "trunk", "%s: the peer has been silent for %llu s", c->trunk->name,
		       TRUNK_SILENCE / NSEC_PER_SEC);
		trunk_conn_end(c);
		return;
	}
	loop_timer_set(c->set->loop, &c->timer, now.ns + TRUNK_PING);
	if (c->unread)
		conn_read(c, now);
	if (c->ended)
		return;
	c->changes = 0;
	if (now.ns - c->spoken >= TRUNK_PING) {
		c->tell_alive = true;
		trunk_conn_flush_later(c);
	}
}

struct trunk_conn *trunk_conn_create(struct trunk_set *set, int fd, bool local)
{
	struct trunk_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		passed_close_socket(fd, 0);
		return NULL;
	}
	c->set = set;
	c->passed = -1;
	list_init(&c->rings);
	c->state = TRUNK_WAITS_HELLO;
	c->local = local;
	c->w = (struct loop_fd){ .fd = fd, .fn = on_socket };
	c->timer.fn = on_timer;
	c->epoch = 1;
	if (local)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ TRUNK_SNDBUF }, sizeof(int));
	list_init(&c->link);
	list_init(&c->packets);
	loop_task_init(&c->flush, conn_flush);
	if (getrandom(c->mine.nonce, sizeof(c->mine.nonce), 0) != sizeof(c->mine.nonce) ||
	    loop_fd_add(set->loop, &c->w, EPOLLIN)) {
		trunk_conn_destroy(c);
		return NULL;
	}
	c->heard = c->spoken = loop_now(set->loop).ns;
	loop_timer_set(set->loop, &c->timer, c->heard + TRUNK_HELLO_TIME);
	return c;
}

void trunk_conn_start(struct trunk_conn *c)
{
	c->state = TRUNK_CONNECTING;
	conn_watch(c, true);
}

void trunk_conn_ready(struct trunk_conn *c)
{
	struct fabric_remote *r = c->trunk->remote;
	u8 vl;

	c->state = TRUNK_READY;
	c->trunk->wait = 0;
	trunk_count(c, TRUNK_CTR_CONNECTED, 1);
	fabric_remote_name(r, c->theirs.type, be64_to_cpu(c->theirs.guid), c->theirs.port, c->theirs.name);
	log_at(LOG_INFO, "trunk", "%s is connected to %.60s:%u", c->trunk->name,
	       fabric_node_name(fabric_remote_node(r)), c->theirs.port);
	for (vl = 0; vl < TRUNK_DATA_VLS; vl++)
		fabric_remote_credits(r, vl, FABRIC_REMOTE_BLOCKS);
	loop_timer_set(c->set->loop, &c->timer, loop_now(c->set->loop).ns + TRUNK_PING);
	c->plugged = c->trunk->cable;
	c->tell_link = c->tell_flow = true;
	trunk_conn_flush_later(c);
}

void trunk_conn_destroy(struct trunk_conn *c)
{
	struct trunk *t = c->trunk;
	u8 vl;

	loop_timer_cancel(&c->timer);
	trunk_tls_end(c);
	loop_task_cancel(&c->flush);
	loop_fd_del(&c->w);
	list_del(&c->rings);
	passed_close(c->passed, c->local ? passed_owner(c->w.fd) : 0);
	trunk_ring_destroy(&c->tx);
	trunk_ring_destroy(&c->rx);
	passed_close_socket(c->w.fd, c->local ? passed_owner(c->w.fd) : 0);
	if (c->listener && !t) {
		list_del(&c->link);
		c->listener->nunknown--;
	}
	if (t && t->conn == c) {
		t->conn = NULL;
		if (c->state == TRUNK_READY) {
			trunk_count(c, TRUNK_CTR_LOST, 1);
			log_at(LOG_INFO, "trunk", "%s: the connection has ended", t->name);
			trunk_conn_drop_packets(c);
			for (vl = 0; vl < TRUNK_DATA_VLS; vl++)
				fabric_remote_credits(t->remote, vl, 0);
			fabric_remote_down(t->remote, NULL);
		}
		trunk_lost(t);
	}
	free(c);
}
