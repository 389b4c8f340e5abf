/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of BTH opcodes (IBTA 9.2.1), built at compile time: offsets and lengths derive from the header sets. */
#include "emu/wire/opcode.h"

#include "emu/wire/hdr.h"

/* Short names for the columns of WIRE_OPCODES. */
enum {
	START = WIRE_OPF_START,
	MIDDLE = WIRE_OPF_MIDDLE,
	END = WIRE_OPF_END,
	PAYLOAD = WIRE_OPF_PAYLOAD,
	REQUEST = WIRE_OPF_REQUEST,
	RESPONSE = WIRE_OPF_RESPONSE,
	ACK = WIRE_OPF_ACK,
	SEND = WIRE_OPF_SEND,
	WRITE = WIRE_OPF_WRITE,
	READ = WIRE_OPF_READ,
	ATOMIC = WIRE_OPF_ATOMIC,
	IMM = WIRE_OPF_IMM,
	INV = WIRE_OPF_INV,
	RWQE = WIRE_OPF_RWQE,
	COMP = WIRE_OPF_COMP,
	CONTROL = WIRE_OPF_CONTROL,
};

enum {
	DETH = 1 << WIRE_ETH_DETH,
	XRCETH = 1 << WIRE_ETH_XRC,
	RETH = 1 << WIRE_ETH_RETH,
	ATOMICETH = 1 << WIRE_ETH_ATOMIC,
	AETH = 1 << WIRE_ETH_AETH,
	ATOMICACKETH = 1 << WIRE_ETH_ATOMIC_ACK,
	IMMDT = 1 << WIRE_ETH_IMMDT,
	IETH = 1 << WIRE_ETH_IETH,
};

#define LEN_IF(set, eth, type) ((set) >> (eth)&1 ? (int)sizeof(struct type) : 0)

/* Bytes from the start of the BTH to header ETH, or to the payload for WIRE_ETH_NUM. */
#define BEFORE(set, eth)                                                                                         \
	((int)sizeof(struct wire_bth) + ((eth) > WIRE_ETH_RDETH ? LEN_IF(set, WIRE_ETH_RDETH, wire_rdeth) : 0) + \
	 ((eth) > WIRE_ETH_DETH ? LEN_IF(set, WIRE_ETH_DETH, wire_deth) : 0) +                                   \
	 ((eth) > WIRE_ETH_XRC ? LEN_IF(set, WIRE_ETH_XRC, wire_xrceth) : 0) +                                   \
	 ((eth) > WIRE_ETH_RETH ? LEN_IF(set, WIRE_ETH_RETH, wire_reth) : 0) +                                   \
	 ((eth) > WIRE_ETH_ATOMIC ? LEN_IF(set, WIRE_ETH_ATOMIC, wire_atomic_eth) : 0) +                         \
	 ((eth) > WIRE_ETH_AETH ? LEN_IF(set, WIRE_ETH_AETH, wire_aeth) : 0) +                                   \
	 ((eth) > WIRE_ETH_ATOMIC_ACK ? LEN_IF(set, WIRE_ETH_ATOMIC_ACK, wire_atomic_ack_eth) : 0) +             \
	 ((eth) > WIRE_ETH_IMMDT ? LEN_IF(set, WIRE_ETH_IMMDT, wire_immdt) : 0) +                                \
	 ((eth) > WIRE_ETH_IETH ? LEN_IF(set, WIRE_ETH_IETH, wire_ieth) : 0))

#define OFFSET(set, eth) ((set) >> (eth)&1 ? BEFORE(set, eth) : 0)

#define ROW(name_, value, flags_, set) \
	[value] = { \
		.name = #name_, \
		.flags = (flags_), \
		.op = (value), \
		.transport = (value) & WIRE_TP_MASK, \
		.eths = (set), \
		.hdr_len = BEFORE(set, WIRE_ETH_NUM), \
		.offset = { \
			[WIRE_ETH_RDETH] = OFFSET(set, WIRE_ETH_RDETH), \
			[WIRE_ETH_DETH] = OFFSET(set, WIRE_ETH_DETH), \
			[WIRE_ETH_XRC] = OFFSET(set, WIRE_ETH_XRC), \
			[WIRE_ETH_RETH] = OFFSET(set, WIRE_ETH_RETH), \
			[WIRE_ETH_ATOMIC] = OFFSET(set, WIRE_ETH_ATOMIC), \
			[WIRE_ETH_AETH] = OFFSET(set, WIRE_ETH_AETH), \
			[WIRE_ETH_ATOMIC_ACK] = OFFSET(set, WIRE_ETH_ATOMIC_ACK), \
			[WIRE_ETH_IMMDT] = OFFSET(set, WIRE_ETH_IMMDT), \
			[WIRE_ETH_IETH] = OFFSET(set, WIRE_ETH_IETH), \
		}, \
	},

static const struct wire_opcode opcodes[256] = { WIRE_OPCODES(ROW) };

const struct wire_opcode *wire_opcode(u8 op)
{
	return opcodes[op].name ? &opcodes[op] : NULL;
}
