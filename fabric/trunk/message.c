// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages of trunks: the hello with version, GUIDs, port numbers and key; training of the link by both daemons (IBTA
 * 5.6.4); credits (7.9.4); packets.
 *
 * Each end has an epoch, which changes when its end of the link goes down or its values change. It sends epoch and
 * values, and acknowledges the peer's. An end comes up when the peer trains and has acknowledged the current epoch. The
 * acknowledgement of the peer's epoch is sent before any packet, so that the peer is up when packets arrive.
 *
 * The cable is what the last change of either end, plugging or pulling it, has made it. Changes of both ends that cross
 * have no order: then it is out at both if either one has pulled it.
 */
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/version.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "fabric/trunk/trunk_internal.h"

/* Neither counted nor warned of: a command has reached one of the daemons, and will reach the other one. */
static bool refusal_is_of_swap(u8 why)
{
	return why == TRUNK_SWAPPED || why == TRUNK_UNSWAPPED;
}

static struct trunk *number_trunk(const struct trunk_number *n)
{
	return !n ? NULL : n->trunk ? n->trunk : n->request->trunk;
}

/* Closes the trunk or the request that has been refused, if there is one. */
static void number_close(struct trunk_number *n, enum trunk_refusal why)
{
	struct trunk *t = n ? n->trunk : NULL;
	bool soon = t && t->s.state != TRUNK_READY && refusal_is_of_swap((u8)why);

	if (n && n->request)
		trunk_request_close(n->request);
	if (!t)
		return;
	trunk_session_close(t);
	trunk_refused(t, soon);
}

/* A listener's connection without another trunk ends soon: more hellos may follow. */
static void conn_refused(struct trunk_conn *c)
{
	if (!c->nlinks && !c->refused)
		trunk_conn_set_timer(c, TRUNK_REFUSED_TIME);
	c->refused = true;
}

/* A connector's connection without another trunk ends. */
bool trunk_message_refuse(struct trunk_conn *c, u32 number, enum trunk_refusal why)
{
	static const enum trunk_counter ctr[] = {
		[TRUNK_BAD_HELLO] = TRUNK_CTR_REFUSED_HELLO, [TRUNK_BAD_VERSION] = TRUNK_CTR_REFUSED_VERSION,
		[TRUNK_BAD_KEY] = TRUNK_CTR_REFUSED_KEY,     [TRUNK_BAD_PORT] = TRUNK_CTR_REFUSED_PORT,
		[TRUNK_BUSY] = TRUNK_CTR_REFUSED_BUSY,       [TRUNK_BAD_TLS] = TRUNK_CTR_REFUSED_TLS,
	};
	struct trunk_refuse r = { .why = (u8)why, .version = cpu_to_be16(TRUNK_VERSION) };
	struct trunk_number *n = trunk_number_find(c, number);
	struct trunk *t = number_trunk(n);

	if (!refusal_is_of_swap((u8)why)) {
		trunk_count(c->set, t, ctr[why], 1);
		log_at(LOG_WARN, "trunk", "%s: a peer is refused: %s", t ? t->name : "listener",
		       trunk_counter_name(ctr[why]));
	}
	trunk_conn_put(c, TRUNK_REFUSE, number, &r, sizeof(r));
	trunk_conn_flush_later(c);
	number_close(n, why);
	if (why == TRUNK_BAD_HELLO || why == TRUNK_BAD_VERSION || why == TRUNK_BAD_TLS || (c->connector && !c->nopen))
		trunk_conn_end(c);
	else
		conn_refused(c);
	return !c->ended;
}

void trunk_message_end(struct trunk *t, enum trunk_refusal why)
{
	struct trunk_refuse r = { .why = (u8)why, .version = cpu_to_be16(TRUNK_VERSION) };
	struct trunk_conn *c = t->conn;

	trunk_conn_put(c, TRUNK_REFUSE, t->s.number, &r, sizeof(r));
	trunk_conn_flush_later(c);
	trunk_session_close(t);
	if (c->connector && !c->nlinks && !trunk_tls_handshakes(c)) /* one that ends in it looks like a wrong peer */
		trunk_conn_end(c);
	else
		conn_refused(c);
}

bool trunk_message_violation(struct trunk_conn *c, const char *what)
{
	trunk_conn_count(c, TRUNK_CTR_VIOLATIONS);
	log_at(LOG_WARN, "trunk", "%s: the peer is disconnected: %s", trunk_conn_name(c), what);
	trunk_conn_end(c);
	return false;
}

static void trunk_put(struct trunk *t, enum trunk_type type, const void *body, u32 len)
{
	trunk_count(t->set, t, TRUNK_CTR_XMIT_BYTES, sizeof(struct trunk_head) + len);
	trunk_conn_put(t->conn, type, t->s.number, body, len);
}

/* Handshake */

void trunk_message_fill_hello(const struct trunk *t, struct trunk_hello *h)
{
	memcpy(h->magic, TRUNK_MAGIC, sizeof(h->magic));
	h->version = cpu_to_be16(TRUNK_VERSION);
	h->port = t->port;
	h->peer_port = t->peer_port;
	h->type = t->type;
	h->guid = cpu_to_be64(t->guid);
	h->peer_guid = cpu_to_be64(t->peer_guid);
	h->flags = (u8)((t->suspended ? TRUNK_HELLO_SUSPENDED : 0) | (t->added ? TRUNK_HELLO_ADDED : 0));
	memcpy(h->name, t->name, strcspn(t->name, ":"));
}

void trunk_message_hello(struct trunk *t)
{
	trunk_message_fill_hello(t, &t->s.mine);
	t->s.send_hello = false;
	trunk_put(t, TRUNK_HELLO, &t->s.mine, sizeof(t->s.mine));
}

void trunk_message_respond(struct trunk_request *r)
{
	list_del(&r->respond);
	trunk_count(r->conn->set, r->trunk, TRUNK_CTR_XMIT_BYTES, sizeof(struct trunk_head) + sizeof(r->mine));
	trunk_conn_put(r->conn, TRUNK_HELLO, r->number, &r->mine, sizeof(r->mine));
}

/* HMAC-SHA-256 (RFC 2104) of the sender's role and of both hellos, each of which has a nonce. */
static void message_mac(const struct trunk *t, const struct trunk_hello *mine, const struct trunk_hello *theirs,
			bool of_connector, u8 mac[TRUNK_MAC_SIZE])
{
	const struct trunk_hello *connector = t->listener ? theirs : mine, *listener = t->listener ? mine : theirs;
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, t->key_len, t->key);
	hmac_sha256_update(&h, 1, (const u8 *)(of_connector ? "C" : "L"));
	hmac_sha256_update(&h, sizeof(*connector), (const u8 *)connector);
	hmac_sha256_update(&h, sizeof(*listener), (const u8 *)listener);
#if NETTLE_VERSION_MAJOR >= 4
	hmac_sha256_digest(&h, mac);
#else
	hmac_sha256_digest(&h, TRUNK_MAC_SIZE, mac);
#endif
}

void trunk_message_auth(struct trunk *t)
{
	u8 mac[TRUNK_MAC_SIZE];

	message_mac(t, &t->s.mine, &t->s.theirs, !t->listener, mac);
	t->s.send_auth = false;
	trunk_put(t, TRUNK_AUTH, mac, sizeof(mac));
}

/* Is it of a port that can exist? Port 0 of a node has no link, and holds no credits. */
static bool hello_names_port(const struct trunk_hello *h)
{
	return h->guid && h->port && h->port <= FABRIC_SWITCH_PORTS_MAX && h->type >= NODE_TYPE_CA &&
	       h->type <= NODE_TYPE_ROUTER;
}

/*
 * The peer has proved the key, if there is one. A reason to refuse its hello: one end of the cable is, or both are, in
 * another port; 0: none.
 */
static u8 hello_of_swap(struct trunk *t, const struct trunk_hello *h)
{
	bool suspended = h->flags & TRUNK_HELLO_SUSPENDED;

	if (!t->suspended)
		return suspended ? TRUNK_UNSWAPPED : 0;
	if (suspended)
		t->peer_suspended = true;
	else if (t->peer_suspended)
		trunk_swap_ended(t);
	return TRUNK_SWAPPED;
}

/* The listener finds the trunk, which needs a request if it has a key. */
static bool on_hello_listener(struct trunk_conn *c, u32 number, const struct trunk_hello *h)
{
	enum trunk_refusal why = TRUNK_BAD_HELLO;
	struct trunk *t;
	u8 swap;

	if (!c->listener && c->refused)
		return true; /* the response to a trunk that has been refused here meanwhile */
	t = c->listener ? trunk_match(c, h, &why) : NULL;

	if (t && (!trunk_count_changes(t, 0) || (t->key && !c->nready && c->nlinks - c->nopen >= TRUNK_REQUESTS))) {
		why = TRUNK_BUSY;
		t = NULL;
	}
	if (!t && why == TRUNK_BAD_PORT && h->flags & TRUNK_HELLO_ADDED)
		why = TRUNK_UNSWAPPED;
	swap = t && !t->key ? hello_of_swap(t, h) : 0;
	if (!t || swap)
		return trunk_message_refuse(c, number, t ? swap : why);
	if (t->key)
		return trunk_request_open(t, c, number, h) || trunk_message_refuse(c, number, TRUNK_BAD_HELLO);
	if (!trunk_session_open(t, c, number))
		return trunk_message_refuse(c, number, TRUNK_BAD_HELLO);
	t->s.theirs = *h;
	trunk_session_ready(t);
	return true;
}

/* @t: the trunk that connects, whose hello this one responds to; NULL: the listener has to find the trunk. */
static bool on_hello(struct trunk_conn *c, u32 number, struct trunk *t, const u8 *body)
{
	struct trunk_hello h;

	memcpy(&h, body, sizeof(h));
	h.name[sizeof(h.name) - 1] = 0;
	if (memcmp(h.magic, TRUNK_MAGIC, sizeof(h.magic)))
		return trunk_message_refuse(c, number, TRUNK_BAD_HELLO);
	if (be16_to_cpu(h.version) != TRUNK_VERSION)
		return trunk_message_refuse(c, number, TRUNK_BAD_VERSION);
	if (!hello_names_port(&h) || (t && !t->s.hello_begun))
		return trunk_message_refuse(c, number, TRUNK_BAD_HELLO);
	if (!t)
		return on_hello_listener(c, number, &h);
	if (trunk_guid_is_here(c->set, be64_to_cpu(h.guid)) || (t->peer_guid && be64_to_cpu(h.guid) != t->peer_guid) ||
	    (t->peer_port && h.port != t->peer_port))
		return trunk_message_refuse(c, number, TRUNK_BAD_PORT);
	t->s.theirs = h;
	if (!t->key && t->suspended)
		return trunk_message_refuse(c, number, TRUNK_SWAPPED);
	if (!t->key) {
		trunk_session_ready(t);
		return true;
	}
	t->s.state = TRUNK_WAITS_AUTH;
	t->s.send_auth = true;
	trunk_session_flush_later(t);
	return true;
}

/*
 * At the listener: the trunk gets the connection, unless another one has it meanwhile. It may also replace the one that
 * it had when the hello arrived, if that is still silent.
 */
static bool on_auth_listener(struct trunk_request *r, const u8 *body)
{
	struct trunk_conn *c = r->conn;
	struct trunk *t = r->trunk;
	struct trunk_hello mine = r->mine, theirs = r->theirs;
	u32 number = r->number;
	u8 swap, mac[TRUNK_MAC_SIZE];

	/* Its own hello must have been sent: the MAC covers it. */
	message_mac(t, &mine, &theirs, true, mac);
	if (!list_empty(&r->respond) || !memeql_sec(mac, body, sizeof(mac)))
		return trunk_message_refuse(c, number, TRUNK_BAD_KEY);
	swap = hello_of_swap(t, &theirs);
	if (swap)
		return trunk_message_refuse(c, number, swap);
	if ((t->conn && (r->replaces != t->ctr[TRUNK_CTR_CONNECTED] || !trunk_may_replace(t, c, &theirs))) ||
	    !trunk_count_changes(t, 0))
		return trunk_message_refuse(c, number, TRUNK_BUSY);
	trunk_request_close(r);
	if (t->conn) {
		log_at(LOG_WARN, "trunk", "%s: the peer is back on another connection, and has proved the key",
		       t->name);
		trunk_message_end(t, TRUNK_BUSY);
	}
	if (!trunk_session_open(t, c, number))
		return trunk_message_refuse(c, number, TRUNK_BAD_HELLO);
	t->s.mine = mine;
	t->s.theirs = theirs;
	t->s.send_hello = false;
	t->s.send_auth = true;
	trunk_session_ready(t);
	return true;
}

static bool on_auth(struct trunk *t, const u8 *body)
{
	u8 mac[TRUNK_MAC_SIZE];

	if (t->s.send_hello)
		return trunk_message_refuse(t->conn, t->s.number, TRUNK_BAD_KEY);
	message_mac(t, &t->s.mine, &t->s.theirs, false, mac);
	if (!memeql_sec(mac, body, sizeof(mac)))
		return trunk_message_refuse(t->conn, t->s.number, TRUNK_BAD_KEY);
	if (t->suspended)
		return trunk_message_refuse(t->conn, t->s.number, TRUNK_SWAPPED);
	trunk_session_ready(t);
	return true;
}

/* The peer's end of a trunk that a swap has suspended or added here. */
static void trunk_refused_by_swap(struct trunk *t, u8 why)
{
	if (t->suspended && why == TRUNK_SWAPPED)
		t->peer_suspended = true;
	else if (t->suspended ? t->peer_suspended && why == TRUNK_UNSWAPPED
			      : t->added && t->ctr[TRUNK_CTR_CONNECTED] && refusal_is_of_swap(why))
		trunk_swap_ended(t);
}

static bool on_refuse(struct trunk_conn *c, struct trunk_number *n, const u8 *body)
{
	static const char *const why[] = { "it gives no reason",
					   "hello",
					   "version",
					   "key",
					   "GUIDs or port numbers",
					   "the port has a peer",
					   "TLS, which one end uses and the other does not",
					   "its end of the cable is in another port",
					   "it has no swap of the cable" };
	struct trunk *t = number_trunk(n);
	struct trunk_refuse r;

	memcpy(&r, body, sizeof(r));
	if (r.why == TRUNK_BAD_TLS) /* of the connection */
		trunk_conn_count(c, TRUNK_CTR_REFUSED_BY_PEER);
	else if (!refusal_is_of_swap(r.why))
		trunk_count(c->set, t, TRUNK_CTR_REFUSED_BY_PEER, 1);
	if (n && n->trunk)
		trunk_refused_by_swap(t, r.why);
	if (!t || !t->suspended)
		log_at(refusal_is_of_swap(r.why) ? LOG_INFO : LOG_WARN, "trunk",
		       "%s: the peer, which has version %u, refuses: %s", t ? t->name : trunk_conn_name(c),
		       be16_to_cpu(r.version), why[r.why < ARRAY_SIZE(why) ? r.why : 0]);
	if (r.why == TRUNK_BAD_TLS) {
		if (c->connector)
			c->connector->wait = TRUNK_REFUSED_WAIT;
		trunk_conn_end(c);
		return false;
	}
	number_close(n, r.why);
	if (c->listener && n)
		conn_refused(c);
	else if (!c->nlinks)
		trunk_conn_end(c);
	return !c->ended;
}

/* Link */

static bool link_changes(const struct trunk *t)
{
	return !t->s.link_sent || t->s.wake || t->cable;
}

bool trunk_message_link_waits(const struct trunk *t)
{
	return link_changes(t) && t->changes_sent >= TRUNK_CHANGES_SENT &&
	       loop_now(t->set->loop).ns - t->sent_since < NSEC_PER_SEC;
}

/* Any second of the peer has less than twice TRUNK_CHANGES_SENT of them, which it accepts. */
static void link_count_sent(struct trunk *t)
{
	u64 now = loop_now(t->set->loop).ns;

	if (!link_changes(t))
		return;
	if (now - t->sent_since >= NSEC_PER_SEC) {
		t->sent_since = now;
		t->changes_sent = 0;
	}
	t->changes_sent++;
}

void trunk_message_link(struct trunk *t)
{
	struct fabric_remote_link l = fabric_remote_link(t->remote);
	struct trunk_link m = {
		.epoch = cpu_to_be32(t->s.epoch),
		.ack = cpu_to_be32(t->s.peer_epoch),
		.flags = (u8)((t->cable ? TRUNK_LINK_CABLE : 0) | (t->s.wake ? TRUNK_LINK_WAKE : 0) |
			      (l.trains ? TRUNK_LINK_TRAINS : 0) | (l.unplugged ? TRUNK_LINK_UNPLUGGED : 0) |
			      (l.pulled ? TRUNK_LINK_PULLED : 0)),
		.width = l.width_enabled,
		.speed = l.speed_enabled,
		.speed_ext = l.speed_ext_enabled,
		.fdr10 = l.fdr10_enabled,
		.lanes_limit = l.lanes_limit,
		.speed_limit = l.speed_limit,
	};

	link_count_sent(t);
	if (t->cable) {
		t->s.cable_epoch = t->s.epoch;
		t->unplugged = l.unplugged;
	}
	t->s.send_link = false;
	t->s.link_sent = true;
	t->s.wake = t->cable = false;
	trunk_put(t, TRUNK_LINK, &m, sizeof(m));
}

/*
 * The peer's cable. Its changes and those of this end have crossed if the peer has not acknowledged the epoch in which
 * this end has sent its last one. What the peer says first, without a change since the handshake, is older than any
 * change here.
 */
static void link_cable(struct trunk *t, const struct trunk_link *m)
{
	bool unplugged = m->flags & TRUNK_LINK_UNPLUGGED, crossed;
	struct trunk_session *s = &t->s;

	if (s->cable_epoch && (s32)(be32_to_cpu(m->ack) - s->cable_epoch) >= 0)
		s->cable_epoch = 0;
	crossed = t->cable || s->cable_epoch;
	if (m->flags & TRUNK_LINK_CABLE)
		fabric_remote_cable(t->remote, unplugged || (crossed && t->unplugged));
	else if (!s->link_received && unplugged && !crossed)
		fabric_remote_cable(t->remote, true);
	s->link_received = true;
}

static bool on_link(struct trunk *t, const u8 *body)
{
	struct trunk_session *s = &t->s;
	struct fabric_remote *r = t->remote;
	struct fabric_remote_link peer;
	struct trunk_link m;
	bool changes;
	u32 epoch;

	memcpy(&m, body, sizeof(m));
	epoch = be32_to_cpu(m.epoch);
	peer = (struct fabric_remote_link){
		.trains = m.flags & TRUNK_LINK_TRAINS,
		.unplugged = m.flags & TRUNK_LINK_UNPLUGGED,
		.pulled = m.flags & TRUNK_LINK_PULLED,
		.width_enabled = m.width,
		.speed_enabled = m.speed,
		.speed_ext_enabled = m.speed_ext,
		.fdr10_enabled = m.fdr10,
		.lanes_limit = m.lanes_limit,
		.speed_limit = m.speed_limit,
	};
	if (!epoch || peer.lanes_limit > 12 || peer.speed_limit > WIRE_SPEED_XDR)
		return trunk_message_violation(t->conn, "invalid values of the link");
	changes = epoch != s->peer_epoch || m.flags & (TRUNK_LINK_CABLE | TRUNK_LINK_WAKE);
	if (!trunk_count_changes(t, changes))
		return trunk_message_violation(t->conn, "its end of the link changes too often");
	link_cable(t, &m);
	if (m.flags & TRUNK_LINK_WAKE)
		fabric_remote_wake(r);
	if (epoch != s->peer_epoch) {
		s->peer_epoch = epoch;
		s->send_link = true;
		fabric_remote_down(r, &peer);
		trunk_session_flush_later(t);
	}
	if (fabric_remote_is_up(r) || !peer.trains || !s->link_sent || be32_to_cpu(m.ack) != s->epoch)
		return true;
	if (!fabric_remote_up(r, &peer))
		trunk_session_change(t, FABRIC_REMOTE_LINK);
	return true;
}

/* Credits */

/* FCCL has grown since it was sent: much, or the peer has few credits left. */
bool trunk_message_flow_due(const struct trunk *t, u8 vl)
{
	const struct trunk_session *s = &t->s;
	s32 gain = (s32)(s->abr[vl] + fabric_remote_free(t->remote, vl) - s->fccl[vl]);

	return gain >= TRUNK_FLOW_STEP || (gain > 0 && s->fccl[vl] - s->abr[vl] < FABRIC_REMOTE_BLOCKS / 2);
}

void trunk_message_flow(struct trunk *t)
{
	struct trunk_session *s = &t->s;
	struct trunk_flow m[TRUNK_DATA_VLS];
	u32 n = 0;
	u8 vl;

	s->send_flow = false;
	for (vl = 0; vl < TRUNK_DATA_VLS; vl++) {
		u32 free = fabric_remote_free(t->remote, vl);

		if (!trunk_message_flow_due(t, vl))
			continue;
		s->fccl[vl] = s->abr[vl] + free;
		m[n++] =
			(struct trunk_flow){ .vl = vl, .free = cpu_to_be16((u16)free), .abr = cpu_to_be32(s->abr[vl]) };
	}
	if (n)
		trunk_put(t, TRUNK_FLOW, m, n * (u32)sizeof(*m));
}

static bool on_flow(struct trunk *t, const u8 *body, u32 len)
{
	struct trunk_flow m;

	for (; len >= sizeof(m); body += sizeof(m), len -= (u32)sizeof(m)) {
		u32 free, outstanding;

		memcpy(&m, body, sizeof(m));
		free = be16_to_cpu(m.free);
		if (m.vl >= TRUNK_DATA_VLS || free > FABRIC_REMOTE_BLOCKS)
			return trunk_message_violation(t->conn, "invalid credits");
		outstanding = t->s.sent[m.vl] - be32_to_cpu(m.abr);
		if (outstanding > 2 * FABRIC_REMOTE_BLOCKS)
			return trunk_message_violation(t->conn, "credits for packets that were not sent");
		fabric_remote_credits(t->remote, m.vl, outstanding + FABRIC_REMOTE_BLOCKS - free);
	}
	return !len || trunk_message_violation(t->conn, "a message of a wrong length");
}

/* Packets */

static bool on_packet(struct trunk *t, u8 flags, const u8 *body, const u8 *shared, u32 len)
{
	struct trunk_session *s = &t->s;
	struct fabric_remote *r = t->remote;
	struct wire_packet *p;
	u8 vl;

	flags &= WIRE_PKT_BAD_ICRC | WIRE_PKT_BAD_VCRC | WIRE_PKT_EBP;
	trunk_count(t->set, t, TRUNK_CTR_RCV_PKTS, 1);
	vl = body[0] >> 4; /* the LRH begins with it */
	if (vl < TRUNK_DATA_VLS) {
		u32 blocks = (len + WIRE_ICRC_LEN + WIRE_VCRC_LEN + 63) / 64;

		if ((s32)(s->abr[vl] + blocks - s->fccl[vl]) > 0) {
			fabric_remote_overrun(r);
			return trunk_message_violation(t->conn, "a packet without credits");
		}
		s->abr[vl] += blocks;
	}
	/* The parser expects lengths with CRCs, and does not read the CRCs. */
	p = wire_packet_parse_shared(body, shared, len + WIRE_ICRC_LEN + WIRE_VCRC_LEN);
	if (p) {
		p->flags |= flags;
		fabric_remote_receive(r, p);
	} else {
		trunk_count(t->set, t, TRUNK_CTR_MALFORMED, 1);
		fabric_remote_malformed(r, flags & WIRE_PKT_EBP);
	}
	if (vl < TRUNK_DATA_VLS) /* now the packet is in the input buffer, or has left it */
		trunk_session_credits(t, vl);
	return true;
}

/* All further messages of the peer are in the ring whose memfd and eventfd it has passed. */
static bool on_ring(struct trunk_conn *c, const u8 *body)
{
	struct trunk_ring_open m;
	int err;

	memcpy(&m, body, sizeof(m));
	if (c->rx.shared || c->npassed != 2 || passed_kind(c->passed[1]) != PASSED_EVENTFD ||
	    be32_to_cpu(m.size) != TRUNK_RING)
		return trunk_message_violation(c, "an invalid ring");
	c->owner = (struct shared_owner){ .sock = c->w.fd, .pid = passed_owner(c->w.fd) };
	err = trunk_ring_map(&c->rx, &c->owner, c->passed[0], c->passed[1]);
	if (err)
		return trunk_message_violation(c, "a ring that cannot be mapped");
	passed_close(c->passed[0], c->owner.pid);
	c->npassed = 0;
	trunk_conn_has_ring(c);
	return !c->ended;
}

#define READY BIT(TRUNK_READY)
static const struct {
	u16 least, most;
	u8 states; /* of the trunk */
	bool of_conn;
} messages[TRUNK_TYPES] = {
	[TRUNK_HELLO] = { sizeof(struct trunk_hello), sizeof(struct trunk_hello),
			  BIT(TRUNK_CLOSED) | BIT(TRUNK_WAITS_HELLO) },
	[TRUNK_AUTH] = { TRUNK_MAC_SIZE, TRUNK_MAC_SIZE, BIT(TRUNK_WAITS_AUTH) },
	[TRUNK_REFUSE] = { sizeof(struct trunk_refuse), sizeof(struct trunk_refuse),
			   BIT(TRUNK_CLOSED) | BIT(TRUNK_WAITS_HELLO) | BIT(TRUNK_WAITS_AUTH) | READY },
	[TRUNK_LINK] = { sizeof(struct trunk_link), sizeof(struct trunk_link), READY },
	[TRUNK_FLOW] = { sizeof(struct trunk_flow), TRUNK_DATA_VLS * sizeof(struct trunk_flow), READY },
	[TRUNK_PACKET] = { sizeof(struct wire_lrh), TRUNK_MSG_MAX, READY },
	[TRUNK_KEEPALIVE] = { 0, 0, READY, true },
	[TRUNK_RING_OPEN] = { sizeof(struct trunk_ring_open), sizeof(struct trunk_ring_open), READY, true },
};
#undef READY

static bool length_is_valid(u8 type, u32 len)
{
	return type < TRUNK_TYPES && len >= messages[type].least && len <= messages[type].most;
}

/* Answers a message that is invalid, or not permitted in @state. False: the connection has ended. */
static bool on_invalid(struct trunk_conn *c, const struct trunk_head *h, u32 len, bool used, enum trunk_state state)
{
	u32 number = be32_to_cpu(h->link);

	if (!used && c->refused && h->type > TRUNK_HELLO && length_is_valid(h->type, len) && !messages[h->type].of_conn)
		return true; /* sent before the trunk's refusal has arrived */
	if (used && state == TRUNK_WAITS_AUTH)
		return trunk_message_refuse(c, number, TRUNK_BAD_KEY);
	if (c->nready)
		return trunk_message_violation(c, "an invalid message, or one of a wrong length");
	if (h->type == TRUNK_TLS_ALERT || h->type == TRUNK_TLS_CLIENT)
		return trunk_message_refuse(c, number, TRUNK_BAD_TLS);
	return trunk_message_refuse(c, number, TRUNK_BAD_HELLO);
}

bool trunk_message(struct trunk_conn *c, const struct trunk_head *h, const u8 *body, const u8 *shared, u32 len)
{
	u32 number = be32_to_cpu(h->link);
	struct trunk_number *n = trunk_number_find(c, number);
	struct trunk *t = n ? n->trunk : NULL;
	enum trunk_state state = t ? t->s.state : n ? TRUNK_WAITS_AUTH : TRUNK_CLOSED;

	if (h->type < TRUNK_TYPES && messages[h->type].of_conn)
		state = c->nready ? TRUNK_READY : TRUNK_CLOSED;
	if (!length_is_valid(h->type, len) || !(messages[h->type].states & BIT(state)))
		return on_invalid(c, h, len, n != NULL, state);
	if (t)
		trunk_count(c->set, t, TRUNK_CTR_RCV_BYTES, sizeof(*h) + len);
	switch (h->type) {
	case TRUNK_HELLO:
		return on_hello(c, number, t, body);
	case TRUNK_AUTH:
		return t ? on_auth(t, body) : on_auth_listener(n->request, body);
	case TRUNK_REFUSE:
		return on_refuse(c, n, body);
	case TRUNK_LINK:
		return on_link(t, body);
	case TRUNK_FLOW:
		return on_flow(t, body, len);
	case TRUNK_PACKET:
		return on_packet(t, h->flags, body, shared, len);
	case TRUNK_RING_OPEN:
		return on_ring(c, body);
	}
	return true;
}
