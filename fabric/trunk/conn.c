// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections of trunks: a stream socket, what waits to be sent, and what has come of a message that is not whole. Data packets that
 * wait are bounded by the link's credits, those of VL15 by number. The socket never blocks, and each turn has a budget.
 */
#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdlib.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
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

void trunk_conn_send(struct trunk_conn *c, struct wire_packet *p)
{
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

	list_del(&p->link);
	if (p->vl == WIRE_VL_MGMT)
		c->smps--;
	else
		c->sent[p->vl] += blocks;
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

static void conn_watch(struct trunk_conn *c, bool blocked)
{
	if (blocked == c->blocked)
		return;
	c->blocked = blocked;
	loop_fd_mod(&c->w, EPOLLIN | (blocked ? EPOLLOUT : 0u));
}

/* Sends one batch. Bytes, 0: there is nothing; or negative: not now, or never again. */
static ssize_t conn_write(struct trunk_conn *c)
{
	struct msghdr m = { .msg_iov = batch.iov };
	struct wire_packet *p;
	size_t len = 0;
	u32 n = 0, i;
	ssize_t sent;

	if (c->state == TRUNK_READY && sizeof(c->tail) - c->tail_len >= TRUNK_MSG_MAX + 256u) {
		if (c->tell_link)
			trunk_message_link(c);
		if (c->tell_flow)
			trunk_message_flow(c);
		if (c->tell_alive)
			trunk_conn_put(c, TRUNK_KEEPALIVE, "", 0);
		c->tell_alive = false;
	}
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
	sent = sendmsg(c->w.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
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

static void conn_flush(struct loop_task *task, struct now now)
{
	struct trunk_conn *c = container_of(task, struct trunk_conn, flush);
	size_t total = 0;
	ssize_t n = 1;

	while (n > 0 && total < TRUNK_WRITE) {
		n = c->state == TRUNK_CONNECTING ? 0 : conn_write(c);
		total += n > 0 ? (size_t)n : 0;
	}
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
			trunk_message(c, &h, data + at + sizeof(h), body); /* refuses it by its length */
			break;
		}
		if (len - at - sizeof(h) < body)
			break;
		if (!trunk_message(c, &h, data + at + sizeof(h), body))
			break;
		at += (u32)sizeof(h) + body;
	}
	return at;
}

static ssize_t conn_recv(struct trunk_conn *c, u8 *to, size_t size)
{
	struct iovec iov = { to, size };
	u32 nfds;

	/* Descriptors that come on a local socket are closed by others. */
	return c->local ? passed_recv(c->w.fd, &iov, NULL, 0, &nfds) : recv(c->w.fd, to, size, MSG_DONTWAIT);
}

static void conn_read(struct trunk_conn *c, struct now now)
{
	static u8 input[sizeof(c->part) + TRUNK_READ];
	u32 len = c->part_len, used;
	ssize_t n;

	memcpy(input, c->part, len);
	n = conn_recv(c, input + len, c->state == TRUNK_READY ? TRUNK_READ : 512);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		trunk_conn_end(c);
		return;
	}
	c->heard = now.ns;
	trunk_count(c, TRUNK_CTR_RCV_BYTES, (u64)n);
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
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		conn_read(c, now);
}

/* Life */

static void on_timer(struct loop_timer *t, struct now now)
{
	struct trunk_conn *c = container_of(t, struct trunk_conn, timer);

	if (c->ended)
		return;
	if (c->state != TRUNK_READY) {
		trunk_count(c, TRUNK_CTR_REFUSED_HELLO, 1);
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
	loop_task_cancel(&c->flush);
	loop_fd_del(&c->w);
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
