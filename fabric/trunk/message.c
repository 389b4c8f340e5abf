// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages of a trunk: the hello with version, GUIDs, port numbers and key; training of the link by both daemons (IBTA 5.6.4); credits
 * (7.9.4); packets.
 *
 * Either end has an epoch, which changes when its end of the link goes down or its values change. It tells epoch and values, and
 * acknowledges the peer's. An end comes up when the peer trains and has acknowledged the present epoch. The acknowledgement of the
 * peer's epoch is sent before any packet, so that the peer is up when packets arrive.
 */
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/version.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "fabric/trunk/trunk_internal.h"

static const char *trunk_conn_name(const struct trunk_conn *c)
{
	return c->trunk ? c->trunk->name : "listener";
}

void trunk_conn_refuse(struct trunk_conn *c, enum trunk_refusal why)
{
	static const enum trunk_counter ctr[] = {
		[TRUNK_BAD_HELLO] = TRUNK_CTR_REFUSED_HELLO, [TRUNK_BAD_VERSION] = TRUNK_CTR_REFUSED_VERSION,
		[TRUNK_BAD_KEY] = TRUNK_CTR_REFUSED_KEY,     [TRUNK_BAD_PORT] = TRUNK_CTR_REFUSED_PORT,
		[TRUNK_BUSY] = TRUNK_CTR_REFUSED_BUSY,       [TRUNK_BAD_TLS] = TRUNK_CTR_REFUSED_TLS,
	};
	struct trunk_refuse r = { .why = (u8)why, .version = cpu_to_be16(TRUNK_VERSION) };

	trunk_count(c, ctr[why], 1);
	log_at(LOG_WARN, "trunk", "%s: a peer is refused: %s", trunk_conn_name(c), trunk_counter_name(ctr[why]));
	trunk_conn_put(c, TRUNK_REFUSE, &r, sizeof(r));
	trunk_conn_end(c);
}

bool trunk_message_violation(struct trunk_conn *c, const char *what)
{
	trunk_count(c, TRUNK_CTR_VIOLATIONS, 1);
	log_at(LOG_WARN, "trunk", "%s: the peer is disconnected: %s", trunk_conn_name(c), what);
	trunk_conn_end(c);
	return false;
}

/* Handshake */

void trunk_message_hello(struct trunk_conn *c)
{
	const struct trunk *t = c->trunk;
	struct trunk_hello *h = &c->mine;

	memcpy(h->magic, TRUNK_MAGIC, sizeof(h->magic));
	h->version = cpu_to_be16(TRUNK_VERSION);
	h->port = t->port;
	h->peer_port = t->peer_port;
	h->type = t->type;
	h->guid = cpu_to_be64(t->guid);
	h->peer_guid = cpu_to_be64(t->peer_guid);
	memcpy(h->name, t->name, strcspn(t->name, ":"));
	trunk_conn_put(c, TRUNK_HELLO, h, sizeof(*h));
}

/* HMAC-SHA-256 (RFC 2104) of who says it and of both hellos, which hold a nonce each. */
static void message_mac(const struct trunk_conn *c, bool of_connector, u8 mac[TRUNK_MAC_SIZE])
{
	const struct trunk_hello *connector = c->listener ? &c->theirs : &c->mine;
	const struct trunk_hello *listener = c->listener ? &c->mine : &c->theirs;
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, c->trunk->key_len, c->trunk->key);
	hmac_sha256_update(&h, 1, (const u8 *)(of_connector ? "C" : "L"));
	hmac_sha256_update(&h, sizeof(*connector), (const u8 *)connector);
	hmac_sha256_update(&h, sizeof(*listener), (const u8 *)listener);
#if NETTLE_VERSION_MAJOR >= 4
	hmac_sha256_digest(&h, mac);
#else
	hmac_sha256_digest(&h, TRUNK_MAC_SIZE, mac);
#endif
}

static void message_auth(struct trunk_conn *c)
{
	u8 mac[TRUNK_MAC_SIZE];

	message_mac(c, !c->listener, mac);
	trunk_conn_put(c, TRUNK_AUTH, mac, sizeof(mac));
}

static bool on_hello(struct trunk_conn *c, const u8 *body)
{
	struct trunk_hello *h = &c->theirs;
	enum trunk_refusal why = TRUNK_BAD_HELLO;

	memcpy(h, body, sizeof(*h));
	h->name[sizeof(h->name) - 1] = 0;
	if (memcmp(h->magic, TRUNK_MAGIC, sizeof(h->magic))) {
		trunk_conn_refuse(c, TRUNK_BAD_HELLO);
		return false;
	}
	if (be16_to_cpu(h->version) != TRUNK_VERSION) {
		trunk_conn_refuse(c, TRUNK_BAD_VERSION);
		return false;
	}
	if (c->listener) {
		c->trunk = trunk_match(c->listener, h, &why);
		if (!c->trunk) {
			trunk_conn_refuse(c, why);
			return false;
		}
		list_del(&c->link);
		c->listener->nunknown--;
		c->trunk->conn = c;
		trunk_message_hello(c);
	} else if (trunk_guid_is_here(c->set, be64_to_cpu(h->guid)) ||
		   (c->trunk->peer_guid && be64_to_cpu(h->guid) != c->trunk->peer_guid) ||
		   (c->trunk->peer_port && h->port != c->trunk->peer_port)) {
		trunk_conn_refuse(c, TRUNK_BAD_PORT);
		return false;
	}
	if (!c->trunk->key) {
		trunk_conn_ready(c);
		return true;
	}
	c->state = TRUNK_WAITS_AUTH;
	if (!c->listener)
		message_auth(c);
	return true;
}

static bool on_auth(struct trunk_conn *c, const u8 *body)
{
	u8 mac[TRUNK_MAC_SIZE];

	message_mac(c, c->listener != NULL, mac);
	if (!memeql_sec(mac, body, sizeof(mac))) {
		trunk_conn_refuse(c, TRUNK_BAD_KEY);
		return false;
	}
	if (c->listener)
		message_auth(c);
	trunk_conn_ready(c);
	return true;
}

static void on_refuse(struct trunk_conn *c, const u8 *body)
{
	static const char *const why[] = { "it gives no reason",
					   "hello",
					   "version",
					   "key",
					   "GUIDs or port numbers",
					   "the port has a peer",
					   "TLS, which one end uses and the other does not" };
	struct trunk_refuse r;

	memcpy(&r, body, sizeof(r));
	trunk_count(c, TRUNK_CTR_REFUSED_BY_PEER, 1);
	log_at(LOG_WARN, "trunk", "%s: the peer, which speaks version %u, refuses: %s", trunk_conn_name(c),
	       be16_to_cpu(r.version), why[r.why < ARRAY_SIZE(why) ? r.why : 0]);
	if (c->trunk)
		c->trunk->wait = 5 * NSEC_PER_SEC;
	trunk_conn_end(c);
}

/* Link */

void trunk_message_link(struct trunk_conn *c)
{
	struct fabric_remote_link l = fabric_remote_link(c->trunk->remote);
	struct trunk_link m = {
		.epoch = cpu_to_be32(c->epoch),
		.ack = cpu_to_be32(c->peer_epoch),
		.flags = (u8)((c->trunk->cable ? TRUNK_LINK_CABLE : 0) | (c->wake ? TRUNK_LINK_WAKE : 0) |
			      (l.trains ? TRUNK_LINK_TRAINS : 0) | (l.unplugged ? TRUNK_LINK_UNPLUGGED : 0) |
			      (l.pulled ? TRUNK_LINK_PULLED : 0)),
		.width = l.width_enabled,
		.speed = l.speed_enabled,
		.speed_ext = l.speed_ext_enabled,
		.lanes_limit = l.lanes_limit,
		.speed_limit = l.speed_limit,
	};

	c->tell_link = false;
	c->link_told = true;
	c->wake = c->trunk->cable = false;
	trunk_conn_put(c, TRUNK_LINK, &m, sizeof(m));
}

static bool on_link(struct trunk_conn *c, const u8 *body)
{
	struct fabric_remote *r = c->trunk->remote;
	struct fabric_remote_link peer;
	struct trunk_link m;
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
		.lanes_limit = m.lanes_limit,
		.speed_limit = m.speed_limit,
	};
	if (!epoch || peer.lanes_limit > 12 || peer.speed_limit > WIRE_SPEED_NDR)
		return trunk_message_violation(c, "invalid values of the link");
	if (epoch != c->peer_epoch || m.flags & (TRUNK_LINK_CABLE | TRUNK_LINK_WAKE))
		c->changes++;
	if (c->changes > TRUNK_CHANGES)
		return trunk_message_violation(c, "its end of the link changes too often");
	/* The cable is out when either end says so at first, unless it was plugged meanwhile; then the last word counts. */
	if (m.flags & TRUNK_LINK_CABLE || (!c->heard_link && peer.unplugged && !c->plugged))
		fabric_remote_cable(r, peer.unplugged);
	c->heard_link = true;
	if (m.flags & TRUNK_LINK_WAKE)
		fabric_remote_wake(r);
	if (epoch != c->peer_epoch) {
		c->peer_epoch = epoch;
		c->tell_link = true;
		fabric_remote_down(r, &peer);
		trunk_conn_flush_later(c);
	}
	if (fabric_remote_is_up(r) || !peer.trains || !c->link_told || be32_to_cpu(m.ack) != c->epoch)
		return true;
	if (!fabric_remote_up(r, &peer))
		trunk_conn_change(c, FABRIC_REMOTE_LINK);
	return true;
}

/* Credits */

/* Blocks by which FCCL has grown since the peer was told, where it must be told; 0: not now. */
static u32 flow_due(const struct trunk_conn *c, u8 vl, u32 free)
{
	s32 gain = (s32)(c->abr[vl] + free - c->told[vl]);

	if (gain >= TRUNK_FLOW_STEP)
		return (u32)gain;
	return gain > 0 && c->told[vl] - c->abr[vl] < FABRIC_REMOTE_BLOCKS / 2 ? (u32)gain : 0;
}

void trunk_message_flow(struct trunk_conn *c)
{
	struct trunk_flow m[TRUNK_DATA_VLS];
	u32 n = 0;
	u8 vl;

	c->tell_flow = false;
	for (vl = 0; vl < TRUNK_DATA_VLS; vl++) {
		u32 free = fabric_remote_free(c->trunk->remote, vl);

		if (!flow_due(c, vl, free))
			continue;
		c->told[vl] = c->abr[vl] + free;
		m[n++] =
			(struct trunk_flow){ .vl = vl, .free = cpu_to_be16((u16)free), .abr = cpu_to_be32(c->abr[vl]) };
	}
	if (n)
		trunk_conn_put(c, TRUNK_FLOW, m, n * (u32)sizeof(*m));
}

static bool on_flow(struct trunk_conn *c, const u8 *body, u32 len)
{
	struct trunk_flow m;

	for (; len >= sizeof(m); body += sizeof(m), len -= (u32)sizeof(m)) {
		u32 free, outstanding;

		memcpy(&m, body, sizeof(m));
		free = be16_to_cpu(m.free);
		if (m.vl >= TRUNK_DATA_VLS || free > FABRIC_REMOTE_BLOCKS)
			return trunk_message_violation(c, "invalid credits");
		outstanding = c->sent[m.vl] - be32_to_cpu(m.abr);
		if (outstanding > 2 * FABRIC_REMOTE_BLOCKS)
			return trunk_message_violation(c, "credits for packets that were not sent");
		fabric_remote_credits(c->trunk->remote, m.vl, outstanding + FABRIC_REMOTE_BLOCKS - free);
	}
	return !len || trunk_message_violation(c, "a message of a wrong length");
}

/* Packets */

static bool on_packet(struct trunk_conn *c, u8 flags, const u8 *body, const u8 *shared, u32 len)
{
	struct fabric_remote *r = c->trunk->remote;
	struct wire_packet *p;
	u8 vl;

	flags &= WIRE_PKT_BAD_ICRC | WIRE_PKT_BAD_VCRC | WIRE_PKT_EBP;
	trunk_count(c, TRUNK_CTR_RCV_PKTS, 1);
	vl = body[0] >> 4; /* the LRH begins with it */
	if (vl < TRUNK_DATA_VLS) {
		u32 blocks = (len + WIRE_ICRC_LEN + WIRE_VCRC_LEN + 63) / 64;

		if ((s32)(c->abr[vl] + blocks - c->told[vl]) > 0) {
			fabric_remote_overrun(r);
			return trunk_message_violation(c, "a packet without credits");
		}
		c->abr[vl] += blocks;
		c->tell_flow = true;
		trunk_conn_flush_later(c);
	}
	/* The parser looks at lengths with the CRCs, and not at them. */
	p = wire_packet_parse_shared(body, shared, len + WIRE_ICRC_LEN + WIRE_VCRC_LEN);
	if (!p) {
		trunk_count(c, TRUNK_CTR_MALFORMED, 1);
		fabric_remote_malformed(r, flags & WIRE_PKT_EBP);
		return true;
	}
	p->flags = flags;
	fabric_remote_receive(r, p);
	return true;
}

/* All that the peer says from now on comes in the ring whose memfd it has passed. */
static bool on_ring(struct trunk_conn *c, const u8 *body)
{
	struct trunk_ring_open m;
	int err;

	memcpy(&m, body, sizeof(m));
	if (c->rx.shared || c->passed < 0 || be32_to_cpu(m.size) != TRUNK_RING)
		return trunk_message_violation(c, "an invalid ring");
	c->owner = (struct shared_owner){ .sock = c->w.fd, .pid = passed_owner(c->w.fd) };
	err = trunk_ring_map(&c->rx, &c->owner, c->passed);
	passed_close(c->passed, c->owner.pid);
	c->passed = -1;
	if (err)
		return trunk_message_violation(c, "a ring that cannot be mapped");
	trunk_conn_has_ring(c);
	return true;
}

bool trunk_message(struct trunk_conn *c, const struct trunk_head *h, const u8 *body, const u8 *shared, u32 len)
{
	static const struct {
		u16 least, most;
		u8 states;
	} row[TRUNK_TYPES] = {
#define READY BIT(TRUNK_READY)
		[TRUNK_HELLO] = { sizeof(struct trunk_hello), sizeof(struct trunk_hello), BIT(TRUNK_WAITS_HELLO) },
		[TRUNK_AUTH] = { TRUNK_MAC_SIZE, TRUNK_MAC_SIZE, BIT(TRUNK_WAITS_AUTH) },
		[TRUNK_REFUSE] = { sizeof(struct trunk_refuse), sizeof(struct trunk_refuse),
				   BIT(TRUNK_WAITS_HELLO) | BIT(TRUNK_WAITS_AUTH) | READY },
		[TRUNK_LINK] = { sizeof(struct trunk_link), sizeof(struct trunk_link), READY },
		[TRUNK_FLOW] = { sizeof(struct trunk_flow), TRUNK_DATA_VLS * sizeof(struct trunk_flow), READY },
		[TRUNK_PACKET] = { sizeof(struct wire_lrh), TRUNK_MSG_MAX, READY },
		[TRUNK_KEEPALIVE] = { 0, 0, READY },
		[TRUNK_RING_OPEN] = { sizeof(struct trunk_ring_open), sizeof(struct trunk_ring_open), READY },
#undef READY
	};

	if (h->type >= TRUNK_TYPES || len < row[h->type].least || len > row[h->type].most ||
	    !(row[h->type].states & BIT(c->state))) {
		if (c->state == TRUNK_READY)
			return trunk_message_violation(c, "a message that there is not, or of a wrong length");
		trunk_conn_refuse(c, c->state == TRUNK_WAITS_AUTH                                ? TRUNK_BAD_KEY
				     : h->type == TRUNK_TLS_ALERT || h->type == TRUNK_TLS_CLIENT ? TRUNK_BAD_TLS
												 : TRUNK_BAD_HELLO);
		return false;
	}
	switch (h->type) {
	case TRUNK_HELLO:
		return on_hello(c, body);
	case TRUNK_AUTH:
		return on_auth(c, body);
	case TRUNK_REFUSE:
		on_refuse(c, body);
		return false;
	case TRUNK_LINK:
		return on_link(c, body);
	case TRUNK_FLOW:
		return on_flow(c, body, len);
	case TRUNK_PACKET:
		return on_packet(c, h->flags, body, shared, len);
	case TRUNK_RING_OPEN:
		return on_ring(c, body);
	}
	return true;
}
