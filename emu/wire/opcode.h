/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BTH opcodes: one table has the headers and the properties of each. */
#ifndef MUSLIN_WIRE_OPCODE_H
#define MUSLIN_WIRE_OPCODE_H

#include "emu/lib/types.h"

/* The upper three bits of an opcode select the transport. IBTA 9.2.1; CNP: annex A17; XRC: annex A14. */
enum wire_transport {
	WIRE_TP_RC = 0x00,
	WIRE_TP_UC = 0x20,
	WIRE_TP_RD = 0x40,
	WIRE_TP_UD = 0x60,
	WIRE_TP_CNP = 0x80,
	WIRE_TP_XRC = 0xa0,
};
#define WIRE_TP_MASK 0xe0
#define WIRE_OP_MASK 0x1f /* the operation, coded alike for RC, UC and XRC */

#define WIRE_OPCODES(OP)                                                                                        \
	OP(RC_SEND_FIRST, 0x00, SEND | START | PAYLOAD | REQUEST | RWQE, 0)                                     \
	OP(RC_SEND_MIDDLE, 0x01, SEND | MIDDLE | PAYLOAD | REQUEST, 0)                                          \
	OP(RC_SEND_LAST, 0x02, SEND | END | PAYLOAD | REQUEST | COMP, 0)                                        \
	OP(RC_SEND_LAST_IMM, 0x03, SEND | END | PAYLOAD | REQUEST | COMP | IMM, IMMDT)                          \
	OP(RC_SEND_ONLY, 0x04, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP, 0)                         \
	OP(RC_SEND_ONLY_IMM, 0x05, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, IMMDT)           \
	OP(RC_WRITE_FIRST, 0x06, WRITE | START | PAYLOAD | REQUEST, RETH)                                       \
	OP(RC_WRITE_MIDDLE, 0x07, WRITE | MIDDLE | PAYLOAD | REQUEST, 0)                                        \
	OP(RC_WRITE_LAST, 0x08, WRITE | END | PAYLOAD | REQUEST, 0)                                             \
	OP(RC_WRITE_LAST_IMM, 0x09, WRITE | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, IMMDT)                 \
	OP(RC_WRITE_ONLY, 0x0a, WRITE | START | END | PAYLOAD | REQUEST, RETH)                                  \
	OP(RC_WRITE_ONLY_IMM, 0x0b, WRITE | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, RETH | IMMDT)  \
	OP(RC_READ_REQUEST, 0x0c, READ | START | END | REQUEST, RETH)                                           \
	OP(RC_READ_RESP_FIRST, 0x0d, READ | START | PAYLOAD | RESPONSE | ACK, AETH)                             \
	OP(RC_READ_RESP_MIDDLE, 0x0e, READ | MIDDLE | PAYLOAD | RESPONSE, 0)                                    \
	OP(RC_READ_RESP_LAST, 0x0f, READ | END | PAYLOAD | RESPONSE | ACK, AETH)                                \
	OP(RC_READ_RESP_ONLY, 0x10, READ | START | END | PAYLOAD | RESPONSE | ACK, AETH)                        \
	OP(RC_ACK, 0x11, START | END | RESPONSE | ACK, AETH)                                                    \
	OP(RC_ATOMIC_ACK, 0x12, ATOMIC | START | END | RESPONSE | ACK, AETH | ATOMICACKETH)                     \
	OP(RC_CMP_SWAP, 0x13, ATOMIC | START | END | REQUEST, ATOMICETH)                                        \
	OP(RC_FETCH_ADD, 0x14, ATOMIC | START | END | REQUEST, ATOMICETH)                                       \
	OP(RC_SEND_LAST_INV, 0x16, SEND | END | PAYLOAD | REQUEST | COMP | INV, IETH)                           \
	OP(RC_SEND_ONLY_INV, 0x17, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP | INV, IETH)            \
	OP(UC_SEND_FIRST, 0x20, SEND | START | PAYLOAD | REQUEST | RWQE, 0)                                     \
	OP(UC_SEND_MIDDLE, 0x21, SEND | MIDDLE | PAYLOAD | REQUEST, 0)                                          \
	OP(UC_SEND_LAST, 0x22, SEND | END | PAYLOAD | REQUEST | COMP, 0)                                        \
	OP(UC_SEND_LAST_IMM, 0x23, SEND | END | PAYLOAD | REQUEST | COMP | IMM, IMMDT)                          \
	OP(UC_SEND_ONLY, 0x24, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP, 0)                         \
	OP(UC_SEND_ONLY_IMM, 0x25, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, IMMDT)           \
	OP(UC_WRITE_FIRST, 0x26, WRITE | START | PAYLOAD | REQUEST, RETH)                                       \
	OP(UC_WRITE_MIDDLE, 0x27, WRITE | MIDDLE | PAYLOAD | REQUEST, 0)                                        \
	OP(UC_WRITE_LAST, 0x28, WRITE | END | PAYLOAD | REQUEST, 0)                                             \
	OP(UC_WRITE_LAST_IMM, 0x29, WRITE | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, IMMDT)                 \
	OP(UC_WRITE_ONLY, 0x2a, WRITE | START | END | PAYLOAD | REQUEST, RETH)                                  \
	OP(UC_WRITE_ONLY_IMM, 0x2b, WRITE | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, RETH | IMMDT)  \
	OP(UD_SEND_ONLY, 0x64, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP, DETH)                      \
	OP(UD_SEND_ONLY_IMM, 0x65, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, DETH | IMMDT)    \
	OP(CNP, 0x81, START | END | PAYLOAD | CONTROL, 0)                                                       \
	OP(XRC_SEND_FIRST, 0xa0, SEND | START | PAYLOAD | REQUEST | RWQE, XRCETH)                               \
	OP(XRC_SEND_MIDDLE, 0xa1, SEND | MIDDLE | PAYLOAD | REQUEST, XRCETH)                                    \
	OP(XRC_SEND_LAST, 0xa2, SEND | END | PAYLOAD | REQUEST | COMP, XRCETH)                                  \
	OP(XRC_SEND_LAST_IMM, 0xa3, SEND | END | PAYLOAD | REQUEST | COMP | IMM, XRCETH | IMMDT)                \
	OP(XRC_SEND_ONLY, 0xa4, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP, XRCETH)                   \
	OP(XRC_SEND_ONLY_IMM, 0xa5, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, XRCETH | IMMDT) \
	OP(XRC_WRITE_FIRST, 0xa6, WRITE | START | PAYLOAD | REQUEST, XRCETH | RETH)                             \
	OP(XRC_WRITE_MIDDLE, 0xa7, WRITE | MIDDLE | PAYLOAD | REQUEST, XRCETH)                                  \
	OP(XRC_WRITE_LAST, 0xa8, WRITE | END | PAYLOAD | REQUEST, XRCETH)                                       \
	OP(XRC_WRITE_LAST_IMM, 0xa9, WRITE | END | PAYLOAD | REQUEST | RWQE | COMP | IMM, XRCETH | IMMDT)       \
	OP(XRC_WRITE_ONLY, 0xaa, WRITE | START | END | PAYLOAD | REQUEST, XRCETH | RETH)                        \
	OP(XRC_WRITE_ONLY_IMM, 0xab, WRITE | START | END | PAYLOAD | REQUEST | RWQE | COMP | IMM,               \
	   XRCETH | RETH | IMMDT)                                                                               \
	OP(XRC_READ_REQUEST, 0xac, READ | START | END | REQUEST, XRCETH | RETH)                                 \
	OP(XRC_READ_RESP_FIRST, 0xad, READ | START | PAYLOAD | RESPONSE | ACK, AETH)                            \
	OP(XRC_READ_RESP_MIDDLE, 0xae, READ | MIDDLE | PAYLOAD | RESPONSE, 0)                                   \
	OP(XRC_READ_RESP_LAST, 0xaf, READ | END | PAYLOAD | RESPONSE | ACK, AETH)                               \
	OP(XRC_READ_RESP_ONLY, 0xb0, READ | START | END | PAYLOAD | RESPONSE | ACK, AETH)                       \
	OP(XRC_ACK, 0xb1, START | END | RESPONSE | ACK, AETH)                                                   \
	OP(XRC_ATOMIC_ACK, 0xb2, ATOMIC | START | END | RESPONSE | ACK, AETH | ATOMICACKETH)                    \
	OP(XRC_CMP_SWAP, 0xb3, ATOMIC | START | END | REQUEST, XRCETH | ATOMICETH)                              \
	OP(XRC_FETCH_ADD, 0xb4, ATOMIC | START | END | REQUEST, XRCETH | ATOMICETH)                             \
	OP(XRC_SEND_LAST_INV, 0xb6, SEND | END | PAYLOAD | REQUEST | COMP | INV, XRCETH | IETH)                 \
	OP(XRC_SEND_ONLY_INV, 0xb7, SEND | START | END | PAYLOAD | REQUEST | RWQE | COMP | INV, XRCETH | IETH)

#define WIRE_OP_ENUM(name, value, flags, hdrs) WIRE_##name = value,
enum wire_opcode_value {
	WIRE_OPCODES(WIRE_OP_ENUM)
};
#undef WIRE_OP_ENUM

/* Headers that follow the BTH, in the order in which they appear. */
enum wire_eth {
	WIRE_ETH_RDETH,
	WIRE_ETH_DETH,
	WIRE_ETH_XRC,
	WIRE_ETH_RETH,
	WIRE_ETH_ATOMIC,
	WIRE_ETH_AETH,
	WIRE_ETH_ATOMIC_ACK,
	WIRE_ETH_IMMDT,
	WIRE_ETH_IETH,
	WIRE_ETH_NUM,
};

/* Properties of an opcode. */
enum wire_opf {
	WIRE_OPF_START = 1 << 0, /* first or only packet of a message */
	WIRE_OPF_MIDDLE = 1 << 1,
	WIRE_OPF_END = 1 << 2,     /* last or only */
	WIRE_OPF_PAYLOAD = 1 << 3, /* may carry payload (CNP: 16 reserved bytes) */
	WIRE_OPF_REQUEST = 1 << 4,
	WIRE_OPF_RESPONSE = 1 << 5,
	WIRE_OPF_ACK = 1 << 6, /* carries an AETH */
	WIRE_OPF_SEND = 1 << 7,
	WIRE_OPF_WRITE = 1 << 8,
	WIRE_OPF_READ = 1 << 9,    /* request or response of RDMA READ */
	WIRE_OPF_ATOMIC = 1 << 10, /* request or response of an atomic */
	WIRE_OPF_IMM = 1 << 11,
	WIRE_OPF_INV = 1 << 12,
	WIRE_OPF_RWQE = 1 << 13, /* consumes a receive WQE (a send: at its first packet) */
	WIRE_OPF_COMP = 1 << 14, /* completes a receive WQE */
	WIRE_OPF_CONTROL = 1 << 15,
};

struct wire_opcode {
	const char *name; /* "RC_SEND_FIRST" */
	u16 flags;        /* WIRE_OPF_* */
	u8 op;
	u8 transport;            /* enum wire_transport */
	u16 eths;                /* bit set of enum wire_eth */
	u8 hdr_len;              /* from the BTH to the payload, in bytes */
	u8 offset[WIRE_ETH_NUM]; /* from the start of the BTH; 0 if absent */
};

/* The row of @op; NULL if the opcode is reserved or of an unsupported transport (RD). */
const struct wire_opcode *wire_opcode(u8 op);

#endif
