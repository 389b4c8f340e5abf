// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sessions of trunks: a trunk's use of a connection, from its hello until it is refused or the connection is closed,
 * and the queue of packets to send. Credits of the link limit the queue's data packets, TRUNK_SMPS those of VL15.
 */
#include <sys/random.h>

#include "emu/lib/log.h"
#include "fabric/trunk/trunk_internal.h"

/*
 * Of a connector, sends hellos: of all trunks if one of them is ready, which has proved the key; until then of as many
 * as the listener permits.
 */
static void session_greet(struct trunk_conn *c)
{
	struct trunk *t;

	list_for_each (t, &c->connector->trunks, sibling) {
		if (!c->nready && c->nhello >= TRUNK_REQUESTS)
			return;
		if (t->conn != c || t->s.hello_begun)
			continue;
		t->s.hello_begun = t->s.send_hello = true;
		c->nhello++;
		trunk_session_flush_later(t);
	}
}

/* A link that flaps faster than the peer accepts: what it is now is sent. */
static void on_paced(struct loop_timer *timer, struct now now)
{
	trunk_session_flush_later(container_of(timer, struct trunk, paced));
}

bool trunk_session_open(struct trunk *t, struct trunk_conn *c, u32 number)
{
	struct trunk_session *s = &t->s;
	struct trunk_number *n;

	memset(s, 0, sizeof(*s));
	list_init(&s->active);
	list_init(&s->packets);
	if (c->connector && t->key && getrandom(s->mine.nonce, sizeof(s->mine.nonce), 0) != sizeof(s->mine.nonce))
		return false;
	if (c->connector)
		number = trunk_number_next(c);
	n = trunk_number_add(c, number);
	if (!n)
		return false;
	n->trunk = t;
	s->state = TRUNK_WAITS_HELLO;
	t->paced.fn = on_paced;
	s->number = number;
	s->epoch = 1;
	if (!c->nopen++ && c->listener) {
		list_del(&c->link);
		c->listener->nunknown--;
	}
	if (!c->nready)
		trunk_conn_set_timer(c, TRUNK_HELLO_TIME);
	t->conn = c;
	if (c->connector) {
		session_greet(c);
		return true;
	}
	s->send_hello = true;
	trunk_session_flush_later(t);
	return true;
}

static void session_drop_packets(struct trunk *t)
{
	while (!list_empty(&t->s.packets)) {
		struct wire_packet *p = list_first(&t->s.packets, struct wire_packet, link);

		list_del(&p->link);
		fabric_remote_drop(t->remote, p);
	}
	t->s.smps = 0;
}

void trunk_session_close(struct trunk *t)
{
	struct trunk_conn *c = t->conn;
	bool ready = t->s.state == TRUNK_READY;
	u8 vl;

	list_del(&t->s.active);
	trunk_number_remove(c, t->s.number);
	c->nready -= ready;
	c->nhello -= t->s.hello_begun && !ready;
	if (!--c->nopen && c->listener) {
		list_add(&c->listener->unknown, &c->link);
		c->listener->nunknown++;
	}
	loop_timer_cancel(&t->paced);
	t->cable |= t->s.cable_epoch != 0; /* which may be lost */
	t->conn = NULL;
	t->s.state = TRUNK_CLOSED;
	if (c->connector && !c->ended)
		session_greet(c);
	if (!ready)
		return;
	trunk_count(t->set, t, TRUNK_CTR_LOST, 1);
	log_at(LOG_INFO, "trunk", "%s: the connection has ended", t->name);
	session_drop_packets(t);
	for (vl = 0; vl < TRUNK_DATA_VLS; vl++)
		fabric_remote_credits(t->remote, vl, 0);
	fabric_remote_down(t->remote, NULL);
	if (t->added) /* a peer that has lost its fault neither connects nor listens, perhaps */
		loop_timer_set(t->set->loop, &t->lost, loop_now(t->set->loop).ns + TRUNK_SWAP_LOST);
}

void trunk_session_ready(struct trunk *t)
{
	const struct trunk_hello *theirs = &t->s.theirs;
	struct fabric_remote *r = t->remote;
	struct trunk_conn *c = t->conn;
	u8 vl;

	t->s.state = TRUNK_READY;
	if (!c->nready++)
		trunk_conn_set_timer(c, TRUNK_PING);
	if (c->connector) {
		if (!c->connector->since)
			c->connector->since = loop_now(t->set->loop).ns;
		c->nhello--;
		session_greet(c);
	}
	trunk_count_changes(t, 1);
	trunk_count(t->set, t, TRUNK_CTR_CONNECTED, 1);
	fabric_remote_name(r, theirs->type, be64_to_cpu(theirs->guid), theirs->port, theirs->name);
	log_at(LOG_INFO, "trunk", "%s is connected to %.60s:%u", t->name, fabric_node_name(fabric_remote_node(r)),
	       theirs->port);
	for (vl = 0; vl < TRUNK_DATA_VLS; vl++)
		fabric_remote_credits(r, vl, FABRIC_REMOTE_BLOCKS);
	t->s.send_link = t->s.send_flow = true;
	trunk_session_flush_later(t);
}

void trunk_session_change(struct trunk *t, enum fabric_remote_change what)
{
	struct trunk_session *s = &t->s;

	if (s->state != TRUNK_READY || t->conn->ended || fabric_remote_is_up(t->remote))
		return;
	s->wake |= what == FABRIC_REMOTE_WAKE;
	if (!++s->epoch)
		s->epoch = 1;
	s->link_sent = false;
	s->send_link = true;
	session_drop_packets(t);
	trunk_session_flush_later(t);
}

void trunk_session_send(struct trunk *t, struct wire_packet *p)
{
	struct trunk_session *s = &t->s;
	struct trunk_conn *c = t->conn;

	/* If no other message of the trunk is queued, the payload is copied once: from its source into the ring. */
	if (c->tx.shared && !c->ended && !c->tail_len && !s->send_link && list_empty(&s->packets) &&
	    trunk_conn_ring_packet(t, p)) {
		if (c->urgent)
			trunk_conn_flush_later(c);
		return;
	}
	if (s->state != TRUNK_READY || c->ended || (p->vl == WIRE_VL_MGMT && s->smps >= TRUNK_SMPS) ||
	    !wire_packet_own(p)) {
		fabric_remote_drop(t->remote, p);
		return;
	}
	s->smps += p->vl == WIRE_VL_MGMT;
	list_add(&s->packets, &p->link);
	trunk_session_flush_later(t);
}

/* A ring reads the payload at once if it has space for it, and no other packet of the trunk waits. */
enum fabric_remote_payload trunk_session_payload(struct trunk *t, bool wait)
{
	struct trunk_conn *c = t->conn;

	if (!c->tx.shared || c->ended || t->s.state != TRUNK_READY)
		return FABRIC_REMOTE_KEEPS;
	if (!wait || (list_empty(&t->s.packets) && trunk_ring_fits(&c->tx, TRUNK_TAIL_REST)))
		return FABRIC_REMOTE_READS;
	return trunk_conn_wait_space(c) ? FABRIC_REMOTE_WAITS : FABRIC_REMOTE_KEEPS;
}

void trunk_session_credits(struct trunk *t, u8 vl)
{
	if (t->s.state != TRUNK_READY || t->s.send_flow || !trunk_message_flow_due(t, vl))
		return;
	t->s.send_flow = true;
	trunk_session_flush_later(t);
}

void trunk_session_flush_later(struct trunk *t)
{
	if (list_empty(&t->s.active))
		list_add(&t->conn->active, &t->s.active);
	trunk_conn_flush_later(t->conn);
}

bool trunk_session_owes(const struct trunk *t)
{
	const struct trunk_session *s = &t->s;

	return s->send_hello || s->send_auth || (s->send_link && !trunk_message_link_waits(t)) || s->send_flow ||
	       !list_empty(&s->packets);
}

bool trunk_session_tell(struct trunk *t)
{
	struct trunk_session *s = &t->s;

	if (t->conn->tail_len + TRUNK_SEND_MAX + TRUNK_TAIL_REST > TRUNK_TAIL_MAX)
		return false;
	if (s->send_hello)
		trunk_message_hello(t);
	if (s->send_auth)
		trunk_message_auth(t);
	if (s->send_link && trunk_message_link_waits(t))
		loop_timer_set(t->set->loop, &t->paced, t->sent_since + NSEC_PER_SEC);
	else if (s->send_link)
		trunk_message_link(t);
	if (s->send_flow)
		trunk_message_flow(t);
	return true;
}
