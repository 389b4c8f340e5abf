// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections between daemons on one machine: each direction changes to a ring of shared memory after its first
 * packets. From then on the socket carries nothing in that direction: an eventfd wakes the reader, and the socket's end
 * shows the peer's death.
 *
 * A sleeping reader is woken after each flush, but later for acknowledgements alone (emu/packet/ack_delay.h): with the
 * next message, when this daemon goes to sleep, or after ACK_DELAY. They are in the ring meanwhile, for a reader that
 * is awake.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/rights.h"
#include "fabric/trunk/trunk_internal.h"

#define ACK_DELAY (3 * NSEC_PER_USEC)
#define UNREAD    (5 * NSEC_PER_USEC) /* for which an awake peer may leave messages unread */

/* Sending */

/* The peer polls its rings: by the eventfd of the one that it reads, or by a message on the socket. */
static void ring_wake_peer(struct trunk_conn *c)
{
	if (c->tx.shared) {
		trunk_ring_signal(&c->tx);
		return;
	}
	c->send_alive = true;
	trunk_conn_flush_later(c);
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
	c->spoken = loop_now(c->set->loop).ns;
}

/* Wakes the peer if it sleeps, and something was written since the last call. True: it slept. */
static bool ring_announce(struct trunk_conn *c)
{
	bool slept = trunk_ring_wakes_reader(&c->tx);

	c->urgent = false;
	c->ack_until = 0;
	if (slept)
		ring_wake_peer(c);
	return slept;
}

/*
 * After a packet was written: must the peer be woken for it, or may it sleep on because it is an ACK? A peer that is
 * asleep already is woken now, and wakes up while this daemon goes on; the flush finds one that has just gone to sleep.
 */
static void ring_packet_written(struct trunk_conn *c, bool ack)
{
	if (!ack)
		ack_delay_paired(&c->ack_delay);
	if (!ack || (!c->ack_until && !ack_delay_begin(&c->ack_delay)))
		c->urgent = true;
	else if (!c->ack_until)
		c->ack_until = loop_now(c->set->loop).ns + ACK_DELAY;
	if (c->urgent && trunk_ring_reader_sleeps(&c->tx))
		ring_announce(c);
}

/* Acknowledgements got no request in time, or this daemon goes to sleep. */
static void ring_announce_acks(struct trunk_conn *c)
{
	if (ring_announce(c))
		ack_delay_unpaired(&c->ack_delay);
}

bool trunk_conn_ring_packet(struct trunk *t, struct wire_packet *p)
{
	u32 len = wire_packet_link_len(p) - WIRE_ICRC_LEN, pad = -p->len & 3u;
	struct trunk_head h = trunk_packet_head(t, p, len);
	u8 *to = ring_reserve(t->conn, (u32)sizeof(h) + len);
	bool ack = ack_delay_permits(p);

	if (!to)
		return false;
	wire_lrh_set_words(wire_packet_lrh(p), (len + WIRE_ICRC_LEN) / 4); /* a fault may have truncated it */
	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), p->hdr, p->hdr_len);
	to += sizeof(h) + p->hdr_len;
	if (p->len)
		memcpy(to, p->data, p->len);
	memset(to + p->len, 0, pad);
	ring_write(t->conn, (u32)sizeof(h) + len);
	ring_packet_written(t->conn, ack);
	trunk_conn_packet_sent(t, p);
	return true;
}

static bool ring_waits(const struct trunk_conn *c)
{
	return c->tail_len || c->wants_space || !list_empty(&c->active) || !list_empty(&c->respond);
}

static void on_full(struct loop_timer *timer, struct now now)
{
	struct trunk_conn *c = container_of(timer, struct trunk_conn, full);

	c->wants_space = false;
	c->stuck = true;
	fabric_remote_ready(c->set->fabric);
}

bool trunk_conn_wait_space(struct trunk_conn *c)
{
	if (c->stuck)
		return false;
	if (!c->wants_space)
		loop_timer_set(c->set->loop, &c->full, loop_now(c->set->loop).ns + TRUNK_FULL);
	c->wants_space = true;
	return true;
}

/* False: there is no space. */
static bool ring_put_tail(struct trunk_conn *c)
{
	u8 *to = c->tail_len ? ring_reserve(c, c->tail_len) : NULL;

	if (!to)
		return !c->tail_len;
	memcpy(to, c->tail, c->tail_len);
	ring_write(c, c->tail_len);
	c->urgent = true;
	c->tail_len = 0;
	return true;
}

/* Messages of one trunk. False: there is no space for all of them. */
static bool ring_put_trunk(struct trunk *t)
{
	trunk_session_tell(t);
	if (!ring_put_tail(t->conn))
		return false;
	while (!list_empty(&t->s.packets))
		if (!trunk_conn_ring_packet(t, list_first(&t->s.packets, struct wire_packet, link)))
			return false;
	return true;
}

void trunk_conn_ring_flush(struct trunk_conn *c)
{
	do
		trunk_conn_tell(c);
	while (ring_put_tail(c) && !list_empty(&c->respond));
	while (ring_put_tail(c) && !list_empty(&c->active) &&
	       ring_put_trunk(list_first(&c->active, struct trunk, s.active)))
		trunk_conn_rotate(c, 1);
	if (!c->ended && c->urgent)
		ring_announce(c);
	if (!trunk_ring_has_space(&c->tx))
		return;
	c->stuck = false;
	if (!c->wants_space)
		return;
	c->wants_space = false;
	loop_timer_cancel(&c->full);
	fabric_remote_ready(c->set->fabric);
}

/* Receiving */

/* Processes messages of @most bytes, and one more at most; returns their bytes. */
static u32 ring_messages(struct trunk_conn *c, u32 most)
{
	u8 copy[WIRE_HDR_MAX + sizeof(struct trunk_flow)];
	const u8 *body = NULL;
	struct trunk_head h;
	bool bad = false;
	u32 total, len;

	static_assert(sizeof(copy) >= TRUNK_DATA_VLS * sizeof(struct trunk_flow), "all messages except packets");
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

/*
 * A peer that leaves messages unread, and does not sleep, probably waits for the processor on which this daemon polls
 * without finding anything. sched_yield() does not help: Linux lets the same task go on if it has had less of the
 * processor than the other one. A peer that reads nothing for TRUNK_FULL is not waited for.
 */
static void ring_let_peer_run(struct trunk_conn *c, struct now now)
{
	if (!c->tx.shared || !trunk_ring_unread(&c->tx)) {
		c->unread_since = 0;
		return;
	}
	if (!c->unread_since)
		c->unread_since = now.ns;
	if (now.ns - c->unread_since >= UNREAD && now.ns - c->unread_since < TRUNK_FULL)
		loop_stop_polling(c->set->loop);
}

static u32 ring_poll(struct trunk_conn *c, struct now now)
{
	u32 n = 0, len;

	if (c->ack_until && now.ns >= c->ack_until)
		ring_announce_acks(c);
	if (c->tx.shared && ring_waits(c) && trunk_ring_has_space(&c->tx)) {
		trunk_conn_flush_later(c);
		n++;
	}
	if (!c->rx.shared)
		return n;
	len = ring_messages(c, TRUNK_RING_READ);
	if (!len) {
		ring_let_peer_run(c, now);
		return n;
	}
	c->unread_since = 0;
	c->heard = now.ns;
	if (!c->ended && trunk_ring_free(&c->rx))
		ring_wake_peer(c);
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
		bool waits = ring_waits(c);

		if (asleep && c->ack_until && !c->ended)
			ring_announce_acks(c);
		if (c->rx.shared && trunk_ring_sleep(&c->rx, asleep && !c->ended))
			busy = true;
		if (c->tx.shared && trunk_ring_wait_space(&c->tx, asleep && waits) && waits)
			busy = true;
	}
	return busy;
}

/* Creation */

/* The peer has signalled: the poller reads the ring. */
static void on_wake(struct loop_fd *w, u32 events, struct now now)
{
	loop_stay_awake(w->loop);
}

void trunk_conn_has_ring(struct trunk_conn *c)
{
	trunk_conn_count(c, TRUNK_CTR_RINGS);
	list_del(&c->rings);
	list_add(&c->set->rings, &c->rings);
	c->full.fn = on_full;
	if (!c->rx.shared || c->wake.loop)
		return;
	c->wake = (struct loop_fd){ .fd = c->rx.event, .fn = on_wake };
	if (loop_fd_add(c->set->loop, &c->wake, EPOLLIN | EPOLLET))
		trunk_conn_end(c);
}

/* Without memory for a ring, the socket remains in use. */
void trunk_conn_ring_open(struct trunk_conn *c)
{
	struct {
		struct trunk_head head;
		struct trunk_ring_open body;
	} m = { { .type = TRUNK_RING_OPEN, .len = cpu_to_be16(sizeof(m.body)) }, { cpu_to_be32(TRUNK_RING) } };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	RIGHTS_CONTROL(control, 2) = { 0 };
	int fd = trunk_ring_create(&c->tx);

	c->by_socket = 0; /* if this fails, it is tried again later */
	if (fd < 0)
		return;
	rights_put(&msg, control, (int[]){ fd, c->tx.event }, 2);
	if (sendmsg(c->w.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(m))
		trunk_conn_has_ring(c);
	else
		trunk_ring_destroy(&c->tx);
	close(fd);
}
