// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Offloads of the card: checksums and TCP segmentation (TSO), so that the network sees complete frames only. Virtio
 * 1.2, 5.1.6.2.
 */
#include <errno.h>

#include "emu/packet/lso.h"
#include "emu/virtio/net/vnet_internal.h"
#include "emu/wire/inet.h"

#define DATA_VALID 2
#define FRAME_MAX  9216 /* bytes after the Ethernet header; the guest checks longer ones itself */
#define NEEDS_CSUM 1
#define GSO_NONE   0
#define GSO_TCPV4  1
#define GSO_TCPV6  4
#define OVERHEAD   (ETHER_SIZE + ETHER_TAG_SIZE)
#define PACKET_MAX 65535u
#define PADDING    (WIRE_INET_ENCAP - 2) /* as in IPoIB, between the ethertype and the packet */

/* Virtio 1.2, 5.1.6. */
struct vnet_hdr {
	u8 flags, gso_type;
	__le16 hdr_len, gso_size, csum_start, csum_offset, num_buffers;
};
static_assert(sizeof(struct vnet_hdr) == VNET_HDR, "virtio 1.2, 5.1.6");

u8 vnet_in_flags(const struct wire_buf *frame)
{
	struct ether_header h;
	u8 p[FRAME_MAX];
	u32 len;

	if (!ether_header_get(&h, frame->data, frame->size) || frame->size - h.size > sizeof(p) - WIRE_INET_ENCAP)
		return 0;
	len = frame->size - h.size;
	wire_store(p, WIRE_INET_ENCAP, (u64)h.type << 16);
	memcpy(p + WIRE_INET_ENCAP, frame->data + h.size, len);
	return wire_inet_ok(p, len + WIRE_INET_ENCAP) ? DATA_VALID : 0;
}

/* The guest has stored the sum of the pseudo-header in the checksum's field. */
static int fill_checksum(struct wire_buf *b, u32 start, u32 offset)
{
	u16 sum;

	if (start < ETHER_SIZE || start + offset + 2 > b->size)
		return -EPROTO;
	sum = wire_inet_fold(wire_inet_sum(0, b->data + start, b->size - start));
	wire_store(b->data + start + offset, 2, sum ? sum : 0xffff);
	return 0;
}

static int take_frame(struct vnet_out *o, const struct vhost_chain *c, const struct vnet_hdr *hdr, u32 len)
{
	int err = 0;

	if (len > o->mtu + OVERHEAD)
		return -EPROTO;
	o->frame = wire_buf_alloc(len);
	if (!o->frame || vhost_chain_read(c, VNET_HDR, o->frame->data, len) != len)
		err = -EPROTO;
	else if (hdr->flags)
		err = fill_checksum(o->frame, le16_to_cpu(hdr->csum_start), le16_to_cpu(hdr->csum_offset));
	if (err)
		vnet_out_drop(o);
	return err;
}

/* Stores the packet with padding after the ethertype, for segmentation. */
static int take_packet(struct vnet_out *o, const struct vhost_chain *c, const struct vnet_hdr *hdr, u32 len)
{
	u32 tcp = le16_to_cpu(hdr->csum_start) + PADDING;
	u8 tag[2], *p;

	if (len > PACKET_MAX + OVERHEAD || len < OVERHEAD + 20)
		return -EPROTO;
	vhost_chain_read(c, VNET_HDR + 2 * ETHER_ALEN, tag, sizeof(tag));
	o->l2 = 2 * ETHER_ALEN + (wire_load(tag, 2) == ETHERTYPE_VLAN ? ETHER_TAG_SIZE : 0);
	o->packet = wire_buf_alloc(len + PADDING);
	if (!o->packet)
		return -EPROTO;
	p = o->packet->data;
	vhost_chain_read(c, VNET_HDR, p, o->l2 + 2);
	memset(p + o->l2 + 2, 0, PADDING);
	vhost_chain_read(c, VNET_HDR + o->l2 + 2, p + o->l2 + WIRE_INET_ENCAP, len - o->l2 - 2);
	o->mss = le16_to_cpu(hdr->gso_size);
	o->next = 0;
	if (tcp > o->l2 && tcp + 20 <= o->packet->size)
		o->head = tcp - o->l2 + (p[tcp + 12] >> 4) * 4u;
	if (tcp > o->l2 && tcp + 20 <= o->packet->size && o->l2 + o->head <= o->packet->size && o->mss &&
	    o->head - WIRE_INET_ENCAP + o->mss <= o->mtu && wire_lso_valid(p + o->l2, o->head) &&
	    (wire_load(p + o->l2, 2) == WIRE_INET_IP6) == (hdr->gso_type == GSO_TCPV6))
		return 0;
	vnet_out_drop(o);
	return -EPROTO;
}

int vnet_out_take(struct vnet_out *o, const struct vhost_chain *c, u32 mtu)
{
	u32 len = c->out_len - VNET_HDR;
	struct vnet_hdr hdr;

	o->mtu = mtu;
	if (c->out_len < VNET_HDR + ETHER_SIZE || vhost_chain_read(c, 0, &hdr, sizeof(hdr)) != sizeof(hdr) ||
	    hdr.flags & ~NEEDS_CSUM)
		return -EPROTO;
	if (hdr.gso_type == GSO_NONE)
		return take_frame(o, c, &hdr, len);
	if ((hdr.gso_type != GSO_TCPV4 && hdr.gso_type != GSO_TCPV6) || !hdr.flags)
		return -EPROTO;
	return take_packet(o, c, &hdr, len);
}

struct wire_buf *vnet_out_next(struct vnet_out *o)
{
	struct wire_buf *b = o->frame, *s;
	u32 len;

	o->frame = NULL;
	while (!b && o->packet) { /* out of memory for a segment: tries the next one */
		len = o->packet->size - o->l2 - o->head;
		s = wire_lso_segment(o->packet->data + o->l2, o->head, len, o->mss, o->next);
		b = s ? wire_buf_alloc(o->l2 + s->size - PADDING) : NULL;
		if (b) { /* after the addresses and the tag, without padding */
			memcpy(b->data, o->packet->data, o->l2 + 2);
			memcpy(b->data + o->l2 + 2, s->data + WIRE_INET_ENCAP, s->size - WIRE_INET_ENCAP);
		}
		wire_buf_put(s);
		if (++o->next * o->mss >= len)
			vnet_out_drop(o);
	}
	return b;
}

void vnet_out_drop(struct vnet_out *o)
{
	wire_buf_put(o->frame);
	wire_buf_put(o->packet);
	o->frame = o->packet = NULL;
}
