// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Headers of Ethernet frames. IEEE 802.3, 802.1Q. */
#include "emu/wire/ether.h"

bool ether_header_get(struct ether_header *h, const u8 *frame, u32 len)
{
	if (len < ETHER_SIZE)
		return false;
	memcpy(h->dst, frame + ETHER_DST, ETHER_ALEN);
	memcpy(h->src, frame + ETHER_SRC, ETHER_ALEN);
	h->type = ether_type(frame);
	h->tagged = h->type == ETHERTYPE_VLAN;
	h->tci = 0;
	h->size = ETHER_SIZE;
	if (!h->tagged)
		return true;
	if (len < ETHER_SIZE + ETHER_TAG_SIZE)
		return false;
	h->tci = (u16)wire_load(frame + ETHER_TCI, 2);
	h->type = (u16)wire_load(frame + ETHER_TCI + 2, 2);
	h->size += ETHER_TAG_SIZE;
	return true;
}

u32 ether_header_put(const struct ether_header *h, u8 *frame)
{
	u32 at = ETHER_TYPE;

	memcpy(frame + ETHER_DST, h->dst, ETHER_ALEN);
	memcpy(frame + ETHER_SRC, h->src, ETHER_ALEN);
	if (h->tagged) {
		wire_store(frame + at, 2, ETHERTYPE_VLAN);
		wire_store(frame + at + 2, 2, h->tci);
		at += ETHER_TAG_SIZE;
	}
	wire_store(frame + at, 2, h->type);
	return at + 2;
}

void ether_multicast_mac(u8 mac[ETHER_ALEN], const u8 ip[16])
{
	bool v6 = ip[0] == 0xff;

	memcpy(mac, v6 ? "\x33\x33" : "\x01\x00", 2);
	memcpy(mac + 2, ip + 12, 4);
	if (v6)
		return;
	mac[2] = 0x5e;
	mac[3] &= 0x7f;
}
