/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packet headers of the IBA link, network and transport layers, with accessors for fields smaller than a byte. */
#ifndef MUSLIN_WIRE_HDR_H
#define MUSLIN_WIRE_HDR_H

#include "emu/lib/types.h"
#include "emu/wire/gid.h"

/* All are packed, so that a header may be at any address of a packet. */
#define WIRE_HDR __attribute__((packed))

/* Local Route Header. IBTA 7.7. */
struct wire_lrh {
	u8 vl_lver; /* VL 4, LVer 4 */
	u8 sl_lnh;  /* SL 4, reserved 2, LNH 2 */
	__be16 dlid;
	__be16 pktlen; /* reserved 5, length 11 in 4-byte words, LRH to ICRC inclusive */
	__be16 slid;
} WIRE_HDR;
static_assert(sizeof(struct wire_lrh) == 8, "LRH size");

enum wire_lnh {
	WIRE_LNH_RAW = 0,
	WIRE_LNH_RAW_IPV6 = 1,
	WIRE_LNH_BTH = 2,
	WIRE_LNH_GRH = 3,
};

#define WIRE_VL_MGMT  15
#define WIRE_VL_NUM   16
#define WIRE_SL_NUM   16
#define WIRE_ICRC_LEN 4
#define WIRE_VCRC_LEN 2

static inline u8 wire_lrh_vl(const struct wire_lrh *h)
{
	return h->vl_lver >> 4;
}

static inline void wire_lrh_set_vl(struct wire_lrh *h, u8 vl)
{
	h->vl_lver = vl << 4 | (h->vl_lver & 0xf);
}

static inline u8 wire_lrh_lver(const struct wire_lrh *h)
{
	return h->vl_lver & 0xf;
}

static inline u8 wire_lrh_sl(const struct wire_lrh *h)
{
	return h->sl_lnh >> 4;
}

static inline u8 wire_lrh_lnh(const struct wire_lrh *h)
{
	return h->sl_lnh & 3;
}

static inline u16 wire_lrh_dlid(const struct wire_lrh *h)
{
	return be16_to_cpu(h->dlid);
}

static inline u16 wire_lrh_slid(const struct wire_lrh *h)
{
	return be16_to_cpu(h->slid);
}

static inline unsigned int wire_lrh_words(const struct wire_lrh *h)
{
	return be16_to_cpu(h->pktlen) & 0x7ff;
}

static inline void wire_lrh_set_words(struct wire_lrh *h, unsigned int words)
{
	h->pktlen = cpu_to_be16(words & 0x7ff);
}

static inline void wire_lrh_fill(struct wire_lrh *h, u8 vl, u8 sl, enum wire_lnh lnh, u16 dlid, u16 slid,
				 unsigned int words)
{
	h->vl_lver = vl << 4;
	h->sl_lnh = sl << 4 | lnh;
	h->dlid = cpu_to_be16(dlid);
	h->slid = cpu_to_be16(slid);
	wire_lrh_set_words(h, words);
}

/* Global Route Header. IBTA 8.3. */
struct wire_grh {
	__be32 ver_tc_flow; /* IPVer 4, TClass 8, FlowLabel 20 */
	__be16 paylen;      /* bytes from the end of the GRH to ICRC inclusive */
	u8 nxthdr;
	u8 hoplmt;
	struct wire_gid sgid;
	struct wire_gid dgid;
} WIRE_HDR;
static_assert(sizeof(struct wire_grh) == 40, "GRH size");

#define WIRE_GRH_IPVER      6
#define WIRE_GRH_NXTHDR_IBA 0x1b

static inline u8 wire_grh_ipver(const struct wire_grh *h)
{
	return be32_to_cpu(h->ver_tc_flow) >> 28;
}

static inline u8 wire_grh_tclass(const struct wire_grh *h)
{
	return be32_to_cpu(h->ver_tc_flow) >> 20;
}

static inline u32 wire_grh_flow(const struct wire_grh *h)
{
	return be32_to_cpu(h->ver_tc_flow) & 0xfffff;
}

static inline void wire_grh_set_ver_tc_flow(struct wire_grh *h, u8 tclass, u32 flow)
{
	h->ver_tc_flow = cpu_to_be32((u32)WIRE_GRH_IPVER << 28 | (u32)tclass << 20 | (flow & 0xfffff));
}

/* Base Transport Header. IBTA 9.2. */
struct wire_bth {
	u8 opcode;
	u8 flags; /* SE 1, MigReq 1, PadCnt 2, TVer 4 */
	__be16 pkey;
	__be32 ecn_qpn; /* FECN 1, BECN 1, reserved 6, destination QP 24 */
	__be32 ack_psn; /* AckReq 1, reserved 7, PSN 24 */
} WIRE_HDR;
static_assert(sizeof(struct wire_bth) == 12, "BTH size");

#define WIRE_BTH_SE     0x80
#define WIRE_BTH_MIGREQ 0x40
#define WIRE_BTH_FECN   0x80000000u
#define WIRE_BTH_BECN   0x40000000u
#define WIRE_BTH_ACKREQ 0x80000000u

static inline bool wire_bth_se(const struct wire_bth *h)
{
	return h->flags & WIRE_BTH_SE;
}

static inline void wire_bth_set_se(struct wire_bth *h)
{
	h->flags |= WIRE_BTH_SE;
}

static inline bool wire_bth_migreq(const struct wire_bth *h)
{
	return h->flags & WIRE_BTH_MIGREQ;
}

static inline void wire_bth_set_migreq(struct wire_bth *h, bool on)
{
	h->flags = (h->flags & ~WIRE_BTH_MIGREQ) | (on ? WIRE_BTH_MIGREQ : 0);
}

static inline u8 wire_bth_pad(const struct wire_bth *h)
{
	return h->flags >> 4 & 3;
}
static inline void wire_bth_set_pad(struct wire_bth *h, u32 payload_len)
{
	h->flags = (h->flags & ~0x30) | (-payload_len & 3) << 4;
}

static inline u8 wire_bth_tver(const struct wire_bth *h)
{
	return h->flags & 0xf;
}

static inline u16 wire_bth_pkey(const struct wire_bth *h)
{
	return be16_to_cpu(h->pkey);
}

static inline u32 wire_bth_qpn(const struct wire_bth *h)
{
	return be32_to_cpu(h->ecn_qpn) & WIRE_QPN_MASK;
}

static inline bool wire_bth_fecn(const struct wire_bth *h)
{
	return be32_to_cpu(h->ecn_qpn) & WIRE_BTH_FECN;
}

static inline bool wire_bth_becn(const struct wire_bth *h)
{
	return be32_to_cpu(h->ecn_qpn) & WIRE_BTH_BECN;
}

static inline void wire_bth_set_fecn(struct wire_bth *h)
{
	h->ecn_qpn |= cpu_to_be32(WIRE_BTH_FECN);
}

static inline void wire_bth_set_becn(struct wire_bth *h)
{
	h->ecn_qpn |= cpu_to_be32(WIRE_BTH_BECN);
}

static inline bool wire_bth_ackreq(const struct wire_bth *h)
{
	return be32_to_cpu(h->ack_psn) & WIRE_BTH_ACKREQ;
}

static inline void wire_bth_set_ackreq(struct wire_bth *h)
{
	h->ack_psn |= cpu_to_be32(WIRE_BTH_ACKREQ);
}

static inline u32 wire_bth_psn(const struct wire_bth *h)
{
	return be32_to_cpu(h->ack_psn) & WIRE_PSN_MASK;
}

static inline void wire_bth_set_psn(struct wire_bth *h, u32 psn)
{
	h->ack_psn = (h->ack_psn & ~cpu_to_be32(WIRE_PSN_MASK)) | cpu_to_be32(psn & WIRE_PSN_MASK);
}

static inline void wire_bth_fill(struct wire_bth *h, u8 opcode, bool se, u8 pad, u16 pkey, u32 qpn, bool ackreq,
				 u32 psn)
{
	h->opcode = opcode;
	h->flags = (se ? WIRE_BTH_SE : 0) | (pad & 3) << 4;
	h->pkey = cpu_to_be16(pkey);
	h->ecn_qpn = cpu_to_be32(qpn & WIRE_QPN_MASK);
	h->ack_psn = cpu_to_be32((ackreq ? WIRE_BTH_ACKREQ : 0) | (psn & WIRE_PSN_MASK));
}

/* Distance from PSN b to PSN a in the 24-bit circle: negative when a is before b. IBTA 9.7.2. */
static inline s32 wire_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

static inline u32 wire_psn_add(u32 psn, u32 n)
{
	return (psn + n) & WIRE_PSN_MASK;
}

/* Reliable Datagram Extended Transport Header. IBTA 9.3.1. */
struct wire_rdeth {
	__be32 ee_context; /* reserved 8, EE context 24 */
} WIRE_HDR;
static_assert(sizeof(struct wire_rdeth) == 4, "RDETH size");

/* Datagram Extended Transport Header. IBTA 9.3.2. */
struct wire_deth {
	__be32 qkey;
	__be32 src_qp; /* reserved 8, source QP 24 */
} WIRE_HDR;
static_assert(sizeof(struct wire_deth) == 8, "DETH size");

static inline u32 wire_deth_qkey(const struct wire_deth *h)
{
	return be32_to_cpu(h->qkey);
}

static inline u32 wire_deth_src_qp(const struct wire_deth *h)
{
	return be32_to_cpu(h->src_qp) & WIRE_QPN_MASK;
}

static inline void wire_deth_fill(struct wire_deth *h, u32 qkey, u32 src_qp)
{
	h->qkey = cpu_to_be32(qkey);
	h->src_qp = cpu_to_be32(src_qp & WIRE_QPN_MASK);
}

/* XRC Extended Transport Header, in every XRC request packet. IBTA annex A14. */
struct wire_xrceth {
	__be32 srqn; /* reserved 8, XRC SRQ 24 */
} WIRE_HDR;
static_assert(sizeof(struct wire_xrceth) == 4, "XRCETH size");

static inline u32 wire_xrceth_srqn(const struct wire_xrceth *h)
{
	return be32_to_cpu(h->srqn) & WIRE_QPN_MASK;
}

/* RDMA Extended Transport Header. IBTA 9.3.3. */
struct wire_reth {
	__be64 va;
	__be32 rkey;
	__be32 dmalen;
} WIRE_HDR;
static_assert(sizeof(struct wire_reth) == 16, "RETH size");

/* Atomic Extended Transport Header. IBTA 9.3.4. */
struct wire_atomic_eth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} WIRE_HDR;
static_assert(sizeof(struct wire_atomic_eth) == 28, "AtomicETH size");

/* ACK Extended Transport Header. IBTA 9.3.5. */
struct wire_aeth {
	__be32 syn_msn; /* syndrome 8, MSN 24 */
} WIRE_HDR;
static_assert(sizeof(struct wire_aeth) == 4, "AETH size");

/* Syndrome: bit 7 reserved, bits 6:5 the type, bits 4:0 credits, timer or NAK code. IBTA 9.3.5. */
enum wire_aeth_type {
	WIRE_AETH_ACK = 0x00,
	WIRE_AETH_RNR_NAK = 0x20,
	WIRE_AETH_RESERVED = 0x40,
	WIRE_AETH_NAK = 0x60,
};
#define WIRE_AETH_TYPE_MASK  0x60
#define WIRE_AETH_VALUE_MASK 0x1f

enum wire_nak {
	WIRE_NAK_PSN_SEQ = 0,
	WIRE_NAK_INVALID_REQUEST = 1,
	WIRE_NAK_REMOTE_ACCESS = 2,
	WIRE_NAK_REMOTE_OP = 3,
	WIRE_NAK_INVALID_RD_REQUEST = 4,
};

static inline u8 wire_aeth_syndrome(const struct wire_aeth *h)
{
	return be32_to_cpu(h->syn_msn) >> 24;
}

static inline u32 wire_aeth_msn(const struct wire_aeth *h)
{
	return be32_to_cpu(h->syn_msn) & 0xffffff;
}

static inline void wire_aeth_fill(struct wire_aeth *h, u8 syndrome, u32 msn)
{
	h->syn_msn = cpu_to_be32((u32)syndrome << 24 | (msn & 0xffffff));
}

static inline enum wire_aeth_type wire_aeth_type(u8 syndrome)
{
	return (enum wire_aeth_type)(syndrome & WIRE_AETH_TYPE_MASK);
}

static inline u8 wire_aeth_value(u8 syndrome)
{
	return syndrome & WIRE_AETH_VALUE_MASK;
}

/* Atomic ACK Extended Transport Header. IBTA 9.3.5. */
struct wire_atomic_ack_eth {
	__be64 orig;
} WIRE_HDR;
static_assert(sizeof(struct wire_atomic_ack_eth) == 8, "AtomicAckETH size");

/* Immediate data. IBTA 9.3.6. */
struct wire_immdt {
	__be32 imm;
} WIRE_HDR;
static_assert(sizeof(struct wire_immdt) == 4, "ImmDt size");

/* Invalidate Extended Transport Header. IBTA 9.3.7. */
struct wire_ieth {
	__be32 rkey;
} WIRE_HDR;
static_assert(sizeof(struct wire_ieth) == 4, "IETH size");

#endif
