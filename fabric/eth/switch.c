// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bridge (IEEE 802.1Q, clause 8): VLAN classification, address learning and forwarding. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/eth/eth_internal.h"

#define TABLE_BUCKETS 1024
#define TABLE_MAX     16384 /* entries of all VLANs; further stations are not learned */

/* A learned address. */
struct eth_entry {
	struct list link;
	u8 mac[ETHER_ALEN];
	u16 vid;
	struct eth_end *end;
	u64 last_frame; /* time of the last frame, ns */
};

/* A frame being forwarded. */
struct passage {
	struct eth_end *in;
	struct ether_header h;
	struct wire_buf *buf, *tagged, *untagged; /* one of the two is buf; the other is built when a port needs it */
	u16 vid;
	u8 class;
};

/* Filtering database */

static struct list *fdb_bucket(struct eth_switch *sw, const u8 *mac, u16 vid)
{
	u64 h = (wire_load(mac, 6) << 12 | vid) * 0x9e3779b97f4a7c15ull;

	return &sw->table[h >> 54];
}
static_assert(TABLE_BUCKETS == 1u << (64 - 54), "the hash has as many values");

static struct eth_entry *fdb_find(struct eth_switch *sw, const u8 *mac, u16 vid)
{
	struct list *b = fdb_bucket(sw, mac, vid);
	struct eth_entry *en;

	list_for_each (en, b, link)
		if (en->vid == vid && !memcmp(en->mac, mac, ETHER_ALEN))
			return en;
	return NULL;
}

static bool fdb_entry_expired(const struct eth_switch *sw, const struct eth_entry *en, u64 now)
{
	return now - en->last_frame >= sw->age_ns;
}

static void fdb_learn(struct eth_switch *sw, const u8 *mac, u16 vid, struct eth_end *end)
{
	struct eth_entry *en;

	if (ether_is_multicast(mac))
		return;
	en = fdb_find(sw, mac, vid);
	if (!en) {
		en = sw->nentries < TABLE_MAX ? calloc(1, sizeof(*en)) : NULL;
		if (!en)
			return;
		memcpy(en->mac, mac, ETHER_ALEN);
		en->vid = vid;
		list_add(fdb_bucket(sw, mac, vid), &en->link);
		sw->nentries++;
	}
	en->end = end;
	en->last_frame = eth_now(sw->e);
	if (!loop_timer_armed(&sw->sweep))
		loop_timer_set(sw->e->loop, &sw->sweep, en->last_frame + sw->age_ns);
}

static void fdb_delete_matching(struct eth_switch *sw, const struct eth_end *end, u64 now)
{
	struct eth_entry *en, *tmp;
	u32 i;

	for (i = 0; i < TABLE_BUCKETS; i++)
		list_for_each_safe (en, tmp, &sw->table[i], link)
			if (now ? fdb_entry_expired(sw, en, now) : !end || en->end == end) {
				list_del(&en->link);
				free(en);
				sw->nentries--;
			}
}

void eth_switch_forget(struct eth_switch *sw, const struct eth_end *end)
{
	fdb_delete_matching(sw, end, 0);
}

static void switch_sweep(struct loop_timer *t, struct now now)
{
	struct eth_switch *sw = container_of(t, struct eth_switch, sweep);

	fdb_delete_matching(sw, NULL, now.ns);
	if (sw->nentries)
		loop_timer_set(sw->e->loop, t, now.ns + sw->age_ns);
}

int eth_switch_init(struct eth_switch *sw)
{
	u32 i;

	sw->table = calloc(TABLE_BUCKETS, sizeof(*sw->table));
	for (i = 0; sw->table && i < TABLE_BUCKETS; i++)
		list_init(&sw->table[i]);
	sw->sweep.fn = switch_sweep;
	return sw->table ? 0 : -ENOMEM;
}

/* VLANs */

static bool vlan_is_tagged(const struct eth_end *end, u16 vid)
{
	u32 i;

	if (end->cfg.all)
		return vid != end->cfg.vlan;
	for (i = 0; i < end->cfg.ntrunk; i++)
		if (end->cfg.trunk[i] == vid)
			return true;
	return false;
}

/* The VLAN of a received frame; 0: the port is no member. A tag with VID 0 has the priority only (802.1Q, 6.9.1). */
static u16 vlan_classify(const struct eth_end *in, const struct ether_header *h)
{
	u16 vid = h->tci & WIRE_VLAN_ID;

	if (!h->tagged || !vid || vid == in->cfg.vlan)
		return in->cfg.vlan;
	return vlan_is_tagged(in, vid) ? vid : 0;
}

/* A copy of the frame with another header. */
static struct wire_buf *passage_rewrite(const struct passage *p, bool tagged)
{
	struct ether_header h = p->h;
	u32 body = p->buf->size - h.size, size = ETHER_SIZE + (tagged ? ETHER_TAG_SIZE : 0);
	struct wire_buf *buf = wire_buf_alloc(size + body);

	if (!buf)
		return NULL;
	h.tagged = tagged;
	h.tci = (u16)(p->class << WIRE_VLAN_PRIO_SHIFT | p->vid);
	ether_header_put(&h, buf->data);
	memcpy(buf->data + size, p->buf->data + p->h.size, body);
	return buf;
}

static void passage_send(struct passage *p, struct eth_end *out)
{
	bool tagged = p->vid != out->cfg.vlan;
	struct wire_buf **form = tagged ? &p->tagged : &p->untagged;

	if (out == p->in || (tagged && !vlan_is_tagged(out, p->vid)))
		return;
	if (!*form)
		*form = passage_rewrite(p, tagged);
	if (*form)
		eth_end_queue(out, wire_buf_get(*form), p->class, p->in);
}

static void passage_forward(struct eth_switch *sw, struct passage *p)
{
	struct eth_entry *en = ether_is_multicast(p->h.dst) ? NULL : fdb_find(sw, p->h.dst, p->vid);
	u32 i;

	if (en && !fdb_entry_expired(sw, en, eth_now(sw->e))) {
		passage_send(p, en->end);
		return;
	}
	if (!ether_is_multicast(p->h.dst))
		eth_count(p->in, ETH_CTR_FLOODED);
	for (i = 0; i < sw->nends; i++)
		passage_send(p, sw->end[i]);
}

void eth_switch_receive(struct eth_end *in, struct wire_buf *buf, u8 class)
{
	struct passage p = { .in = in, .buf = buf, .class = class };
	struct eth_switch *sw = in->sw;

	if (!ether_header_get(&p.h, buf->data, buf->size)) {
		eth_count(in, ETH_CTR_RX_SHORT);
		goto out;
	}
	p.vid = vlan_classify(in, &p.h);
	if (!p.vid) {
		eth_count(in, ETH_CTR_RX_FILTERED);
		goto out;
	}
	/* a tag with a VID is forwarded unchanged */
	if (p.h.tagged && (p.h.tci & WIRE_VLAN_ID))
		p.tagged = wire_buf_get(buf);
	else if (!p.h.tagged)
		p.untagged = wire_buf_get(buf);
	fdb_learn(sw, p.h.src, p.vid, in);
	passage_forward(sw, &p);
	wire_buf_put(p.tagged);
	wire_buf_put(p.untagged);
out:
	wire_buf_put(buf);
}
