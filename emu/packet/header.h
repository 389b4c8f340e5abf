/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The headers of a packet (IBTA 5.2): typed accessors of wire_packet.hdr. Valid while the packet has that header. */
#ifndef MUSLIN_PACKET_HEADER_H
#define MUSLIN_PACKET_HEADER_H

#include "emu/packet/packet.h"
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"

/* Pointer to hdr[] at offset @at. Not const, as the kernel's ip_hdr(): callers with a const packet must not write. */
static inline void *wire_packet_at(const struct wire_packet *p, u32 at)
{
	return (void *)(uintptr_t)(p->hdr + at);
}

static inline struct wire_lrh *wire_packet_lrh(const struct wire_packet *p)
{
	return wire_packet_at(p, 0);
}

static inline struct wire_grh *wire_packet_grh(const struct wire_packet *p)
{
	return wire_packet_at(p, p->grh_off);
}

static inline struct wire_bth *wire_packet_bth(const struct wire_packet *p)
{
	return wire_packet_at(p, p->bth_off);
}

/* NULL: a reserved opcode. */
static inline const struct wire_opcode *wire_packet_opcode(const struct wire_packet *p)
{
	return wire_opcode(wire_packet_bth(p)->opcode);
}

/* Extended transport headers; valid only if the packet's opcode has them. */
#define WIRE_PACKET_ETH(name, type, eth)                                                   \
	static inline struct type *wire_packet_##name(const struct wire_packet *p)         \
	{                                                                                  \
		return wire_packet_at(p, p->bth_off + wire_packet_opcode(p)->offset[eth]); \
	}
WIRE_PACKET_ETH(deth, wire_deth, WIRE_ETH_DETH)
WIRE_PACKET_ETH(xrceth, wire_xrceth, WIRE_ETH_XRC)
WIRE_PACKET_ETH(reth, wire_reth, WIRE_ETH_RETH)
WIRE_PACKET_ETH(atomic_eth, wire_atomic_eth, WIRE_ETH_ATOMIC)
WIRE_PACKET_ETH(aeth, wire_aeth, WIRE_ETH_AETH)
WIRE_PACKET_ETH(atomic_ack_eth, wire_atomic_ack_eth, WIRE_ETH_ATOMIC_ACK)
WIRE_PACKET_ETH(immdt, wire_immdt, WIRE_ETH_IMMDT)
WIRE_PACKET_ETH(ieth, wire_ieth, WIRE_ETH_IETH)
#undef WIRE_PACKET_ETH

#endif
