// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RoCE port of an Ethernet station (IBTA annexes A16, A17): packets to frames and back. The type of the source GID
 * selects RoCE v1 or v2, and the VLAN.
 */
#include <errno.h>
#include <stdio.h>

#include "emu/packet/roce.h"
#include "emu/wire/hdr.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce_internal.h"

#define SPORT_FIRST 0xc000u /* source ports of RoCEv2 lie in the dynamic range. A17.9.2 */

static bool same_type(const struct wire_l2 *own, const struct wire_l2 *l2)
{
	return (own->version == 1) == (l2->version == 1) && (own->vlan & WIRE_VLAN_ID) == (l2->vlan & WIRE_VLAN_ID);
}

/* Index of the GID table entry with this GID, RoCE version and VLAN; -1: none. */
static int find_gid(const struct roce_port *rp, const struct wire_gid *gid, const struct wire_l2 *l2)
{
	const struct wire_port_attr *a = &rp->wire.attr;
	int i;

	for (i = 0; i < WIRE_PORT_GIDS; i++)
		if (wire_gid_equal(&a->gid[i], gid) && !wire_gid_is_zero(gid) && same_type(&a->gid_l2[i], l2))
			return i;
	return -1;
}

int roce_ether_own(const struct roce_port *rp, const struct wire_gid *gid, u16 vlan)
{
	const struct wire_l2 v1 = { .vlan = vlan, .version = 1 }, v2 = { .vlan = vlan, .version = 2 };
	int i = find_gid(rp, gid, &v2);

	return i < 0 ? find_gid(rp, gid, &v1) : i;
}

/* Sending */

static bool route(struct roce_port *rp, const struct wire_packet *p, struct wire_roce *r)
{
	u32 qpn = wire_bth_qpn(wire_packet_bth(p));

	wire_roce_from_grh(p, r);
	if (find_gid(rp, &r->src, &p->l2) < 0 || wire_gid_is_zero(&r->dst))
		return false;
	if (!wire_roce_is_v1(r) && wire_gid_is_v4(&r->src) != wire_gid_is_v4(&r->dst) && !wire_gid_is_group(&r->dst))
		return false;
	r->sport = (u16)(SPORT_FIRST | (((qpn * 0x9e3779b1u) >> 16 ^ r->flow) & 0x3fff));
	return true;
}

static struct wire_buf *make_frame(const struct roce_port *rp, const struct wire_packet *p, const struct wire_roce *r,
				   const u8 *dst)
{
	struct ether_header h = { .tagged = r->l2.vlan, .tci = r->l2.vlan, .type = wire_roce_ethertype(r) };
	u32 head = ETHER_SIZE + (h.tagged ? ETHER_TAG_SIZE : 0), len = wire_roce_size(p, r);
	struct wire_buf *buf = wire_buf_alloc(max(head + len, (u32)ETHER_MIN));

	if (!buf)
		return NULL;
	memcpy(h.dst, dst, ETHER_ALEN);
	memcpy(h.src, rp->ether->mac, ETHER_ALEN);
	ether_header_put(&h, buf->data);
	wire_roce_put(p, r, buf->data + head);
	if (head + len < buf->size)
		memset(buf->data + head + len, 0, buf->size - head - len);
	return buf;
}

int roce_ether_frame(struct roce_port *rp, const u8 *dst, u16 tci, u16 type, const u8 *payload, u32 len)
{
	struct ether_header h = { .tagged = tci, .tci = tci, .type = type };
	u32 head = ETHER_SIZE + (tci ? ETHER_TAG_SIZE : 0);
	struct wire_buf *buf = wire_buf_alloc(max(head + len, (u32)ETHER_MIN));
	int err;

	if (!buf)
		return -ENOMEM;
	memset(buf->data, 0, buf->size);
	memcpy(h.dst, dst, ETHER_ALEN);
	memcpy(h.src, rp->ether->mac, ETHER_ALEN);
	ether_header_put(&h, buf->data);
	memcpy(buf->data + head, payload, len);
	err = ether_port_send(rp->ether, buf);
	if (err)
		wire_buf_put(buf);
	return err;
}

static void frame_receive(struct roce_port *rp, struct wire_buf *buf, const struct ether_header *h);

/* Loopback to a GID of this port, without the link. */
static void loop_back(struct roce_port *rp, struct wire_packet *p, const struct wire_roce *r)
{
	struct wire_buf *buf = make_frame(rp, p, r, rp->ether->mac);
	struct ether_header h;

	if (!buf)
		return;
	if (ether_header_get(&h, buf->data, buf->size))
		frame_receive(rp, buf, &h);
	wire_buf_put(buf);
}

static enum roce_answer station_of(struct roce_port *rp, const struct wire_roce *r, struct wire_packet *p, u8 *mac)
{
	if (!ether_is_zero(p->l2.mac)) {
		memcpy(mac, p->l2.mac, ETHER_ALEN);
		return ROCE_SEND;
	}
	if (wire_gid_is_group(&r->dst)) {
		ether_multicast_mac(mac, r->dst.raw);
		return ROCE_SEND;
	}
	return roce_neigh_find(rp, r, p, mac);
}

/* Sends the packet, or queues it for address resolution. -EAGAIN: backpressure of the link. */
static int packet_send(struct roce_port *rp, struct wire_packet *p)
{
	struct wire_buf *buf = NULL;
	struct wire_roce r;
	u8 mac[ETHER_ALEN];
	int err = 0;

	if (!route(rp, p, &r)) { /* the GID table has changed since it was queued */
		roce_count(rp, ROCE_CTR_UNROUTED);
	} else if (find_gid(rp, &r.dst, &p->l2) >= 0) {
		loop_back(rp, p, &r);
		roce_count(rp, ROCE_CTR_SENT);
	} else {
		switch (station_of(rp, &r, p, mac)) {
		case ROCE_PENDING:
			return 0;
		case ROCE_UNREACHABLE:
			roce_count(rp, ROCE_CTR_NEIGHBOUR);
			break;
		case ROCE_SEND:
			buf = make_frame(rp, p, &r, mac);
			err = buf ? ether_port_send(rp->ether, buf) : -ENOMEM;
			break;
		}
	}
	if (err)
		wire_buf_put(buf);
	if (err == -EAGAIN)
		return err;
	if (buf)
		roce_count(rp, err ? ROCE_CTR_SEND_ERROR : ROCE_CTR_SENT);
	if (buf && !err)
		roce_tap(rp, p, &r, true);
	wire_packet_free(p);
	return 0;
}

static void run(struct roce_port *rp)
{
	while (!list_empty(&rp->tx)) {
		struct wire_packet *p = list_first(&rp->tx, struct wire_packet, link);

		list_del(&p->link);
		rp->ntx--;
		if (!packet_send(rp, p))
			continue;
		list_add(rp->tx.next, &p->link); /* back to the head of the queue */
		rp->ntx++;
		return;
	}
}

/* Receiving */

static bool mac_matches(const struct roce_port *rp, const struct ether_header *h)
{
	return ether_is_multicast(h->dst) || !memcmp(h->dst, rp->ether->mac, ETHER_ALEN);
}

static void frame_receive(struct roce_port *rp, struct wire_buf *buf, const struct ether_header *h)
{
	const u8 *payload = buf->data + h->size;
	struct wire_roce r = { .l2.vlan = h->tci };
	u32 body;
	int n = wire_roce_head(payload, buf->size - h->size, h->type, &r, &body);

	if (n < 0) {
		roce_count(rp, ROCE_CTR_MALFORMED);
		return;
	}
	if (!n) {
		if (!rp->managed)
			roce_neigh_frame(rp, h, payload, buf->size - h->size);
		return;
	}
	if (!wire_gid_is_group(&r.dst) && find_gid(rp, &r.dst, &r.l2) < 0) {
		roce_count(rp, ROCE_CTR_REFUSED);
		return;
	}
	memcpy(r.l2.mac, h->src, ETHER_ALEN);
	roce_recv_packet(rp, buf, h->size + (u32)n, body, &r);
}

/*
 * Is the frame for RoCE only? On a managed station, a guest's network stack receives all other frames, and also
 * multicast.
 */
static bool frame_is_own(const struct roce_port *rp, const struct wire_buf *buf, const struct ether_header *h)
{
	struct wire_roce r = { .l2.vlan = h->tci };
	u32 body;

	if (!rp->managed)
		return true;
	return wire_roce_head(buf->data + h->size, buf->size - h->size, h->type, &r, &body) > 0 &&
	       find_gid(rp, &r.dst, &r.l2) >= 0;
}

static int receive(void *ctx, struct wire_buf *buf)
{
	struct roce_port *rp = ctx;
	struct ether_header h;

	if (!ether_header_get(&h, buf->data, buf->size) || !mac_matches(rp, &h))
		return !rp->managed;
	if (rp->managed && !frame_is_own(rp, buf, &h)) {
		if (ether_is_multicast(h.dst))
			frame_receive(rp, buf, &h);
		return 0;
	}
	frame_receive(rp, buf, &h);
	return 1;
}

static void ready(void *ctx)
{
	roce_send_run(ctx);
}

static void link_changed(void *ctx, bool up)
{
	if (!up)
		roce_neigh_flush(ctx);
	roce_link_changed(ctx, up);
}

/* Open and close */

/* The IPv6 link-local address of an EUI-48 (RFC 4291, appendix A). */
static struct wire_gid link_local(const u8 *mac)
{
	u64 hi = wire_load(mac, 3) ^ 0x020000, lo = wire_load(mac + 3, 3);

	return wire_gid_make(WIRE_GID_PREFIX_DEFAULT, hi << 40 | 0xfffe000000ull | lo);
}

static u32 add_gids(struct roce_port *rp, u32 at, const struct roce_config *cfg, u8 version)
{
	struct wire_port_attr *a = &rp->wire.attr;
	u32 i;

	for (i = 0; i <= cfg->naddr && i < ROCE_ADDRS && at < WIRE_PORT_GIDS; i++, at++) {
		a->gid[at] = i < cfg->naddr ? cfg->addr[i] : link_local(rp->ether->mac);
		a->gid_l2[at] = (struct wire_l2){ .vlan = i < cfg->naddr ? cfg->vlan[i] : 0, .version = version };
		a->gid_net[at] = i < cfg->naddr ? cfg->net[i] : 64;
		memcpy(a->gid_l2[at].mac, rp->ether->mac, ETHER_ALEN);
	}
	return at;
}

static int open_station(struct roce_port *rp, const struct roce_config *cfg)
{
	rp->ether = cfg->ether;
	rp->managed = !cfg->naddr;
	memcpy(rp->wire.attr.mac, rp->ether->mac, ETHER_ALEN);
	rp->wire.attr.netdev_mtu = rp->ether->mtu;
	rp->wire.attr.kbps = rp->ether->rate / 1000;
	roce_port_set_mtu(rp, rp->ether->mtu);
	if (!rp->managed)
		add_gids(rp, add_gids(rp, 0, cfg, cfg->v1 ? 1 : 2), cfg, cfg->v1 ? 2 : 1);
	rp->ether->roce = (struct ether_user){ .ctx = rp, .receive = receive, .ready = ready, .link = link_changed };
	return 0;
}

static void close_station(struct roce_port *rp)
{
	roce_neigh_flush(rp);
	if (rp->ether)
		rp->ether->roce = (struct ether_user){ 0 };
}

/* A tagged address has an interface of its own, named as ip-link(8) does. */
static const char *device(const struct roce_port *rp, u32 gid)
{
	u16 vlan = rp->wire.attr.gid_l2[gid % WIRE_PORT_GIDS].vlan & WIRE_VLAN_ID;
	static char name[sizeof("eth0.4095")];

	snprintf(name, sizeof(name), vlan ? "eth0.%u" : "eth0", vlan);
	return name;
}

const struct roce_link roce_ether_link = {
	.open = open_station,
	.close = close_station,
	.route = route,
	.run = run,
	.device = device,
};
