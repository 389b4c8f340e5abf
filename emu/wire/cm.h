/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Communication management messages, and the RDMA IP CM service's private data. IBTA 12.6, 12.11, annex A11. */
#ifndef MUSLIN_WIRE_CM_H
#define MUSLIN_WIRE_CM_H

#include "emu/wire/field.h"
#include "emu/wire/mad.h"

/* The tables of IBTA 12.6 count bytes from the end of the MAD header; these fields count from the start of the MAD. */
#define CM_DATA                    MAD_HDR_SIZE
#define CM_FIELD(byte, bit, width) WIRE_FIELD((CM_DATA + (byte)) * 8 + (bit), (width))
#define CM_BLOB(byte, bytes)       WIRE_FIELD((CM_DATA + (byte)) * 8, (bytes)*8)

enum wire_cm_attr {
	CM_ATTR_REQ = 0x0010,
	CM_ATTR_MRA = 0x0011,
	CM_ATTR_REJ = 0x0012,
	CM_ATTR_REP = 0x0013,
	CM_ATTR_RTU = 0x0014,
	CM_ATTR_DREQ = 0x0015,
	CM_ATTR_DREP = 0x0016,
	CM_ATTR_SIDR_REQ = 0x0017,
	CM_ATTR_SIDR_REP = 0x0018,
	CM_ATTR_LAP = 0x0019,
	CM_ATTR_APR = 0x001a,
	CM_ATTR_SAP = 0x001b,
	CM_ATTR_SPR = 0x001c,
};

/* Every message except SIDR's starts with the sender's communication ID; in all of these
 * except REQ the receiver's follows. */
#define CM_LOCAL_COMM_ID  CM_FIELD(0, 0, 32)
#define CM_REMOTE_COMM_ID CM_FIELD(4, 0, 32) /* not in REQ, SIDR_REQ, SIDR_REP */

/* REQ. IBTA 12.6.5, table 106. */
#define CM_REQ_LOCAL_COMM_ID        CM_FIELD(0, 0, 32)
#define CM_REQ_SERVICE_ID           CM_FIELD(8, 0, 64)
#define CM_REQ_LOCAL_CA_GUID        CM_FIELD(16, 0, 64)
#define CM_REQ_LOCAL_QKEY           CM_FIELD(28, 0, 32)
#define CM_REQ_LOCAL_QPN            CM_FIELD(32, 0, 24)
#define CM_REQ_RESPONDER_RESOURCES  CM_FIELD(35, 0, 8)
#define CM_REQ_LOCAL_EECN           CM_FIELD(36, 0, 24)
#define CM_REQ_INITIATOR_DEPTH      CM_FIELD(39, 0, 8)
#define CM_REQ_REMOTE_EECN          CM_FIELD(40, 0, 24)
#define CM_REQ_REMOTE_RESP_TIMEOUT  CM_FIELD(43, 0, 5)
#define CM_REQ_TRANSPORT            CM_FIELD(43, 5, 2)
#define CM_REQ_FLOW_CONTROL         CM_FIELD(43, 7, 1)
#define CM_REQ_STARTING_PSN         CM_FIELD(44, 0, 24)
#define CM_REQ_LOCAL_RESP_TIMEOUT   CM_FIELD(47, 0, 5)
#define CM_REQ_RETRY_COUNT          CM_FIELD(47, 5, 3)
#define CM_REQ_PKEY                 CM_FIELD(48, 0, 16)
#define CM_REQ_PATH_MTU             CM_FIELD(50, 0, 4)
#define CM_REQ_RDC_EXISTS           CM_FIELD(50, 4, 1)
#define CM_REQ_RNR_RETRY_COUNT      CM_FIELD(50, 5, 3)
#define CM_REQ_MAX_CM_RETRIES       CM_FIELD(51, 0, 4)
#define CM_REQ_SRQ                  CM_FIELD(51, 4, 1)
#define CM_REQ_EXT_TRANSPORT        CM_FIELD(51, 5, 3)
#define CM_REQ_PRIMARY_LOCAL_LID    CM_FIELD(52, 0, 16)
#define CM_REQ_PRIMARY_REMOTE_LID   CM_FIELD(54, 0, 16)
#define CM_REQ_PRIMARY_LOCAL_GID    CM_BLOB(56, 16)
#define CM_REQ_PRIMARY_REMOTE_GID   CM_BLOB(72, 16)
#define CM_REQ_PRIMARY_FLOW_LABEL   CM_FIELD(88, 0, 20)
#define CM_REQ_PRIMARY_PACKET_RATE  CM_FIELD(91, 2, 6)
#define CM_REQ_PRIMARY_TCLASS       CM_FIELD(92, 0, 8)
#define CM_REQ_PRIMARY_HOP_LIMIT    CM_FIELD(93, 0, 8)
#define CM_REQ_PRIMARY_SL           CM_FIELD(94, 0, 4)
#define CM_REQ_PRIMARY_SUBNET_LOCAL CM_FIELD(94, 4, 1)
#define CM_REQ_PRIMARY_ACK_TIMEOUT  CM_FIELD(95, 0, 5)
#define CM_REQ_ALT_LOCAL_LID        CM_FIELD(96, 0, 16)
#define CM_REQ_ALT_REMOTE_LID       CM_FIELD(98, 0, 16)
#define CM_REQ_ALT_LOCAL_GID        CM_BLOB(100, 16)
#define CM_REQ_ALT_REMOTE_GID       CM_BLOB(116, 16)
#define CM_REQ_ALT_FLOW_LABEL       CM_FIELD(132, 0, 20)
#define CM_REQ_ALT_PACKET_RATE      CM_FIELD(135, 2, 6)
#define CM_REQ_ALT_TCLASS           CM_FIELD(136, 0, 8)
#define CM_REQ_ALT_HOP_LIMIT        CM_FIELD(137, 0, 8)
#define CM_REQ_ALT_SL               CM_FIELD(138, 0, 4)
#define CM_REQ_ALT_SUBNET_LOCAL     CM_FIELD(138, 4, 1)
#define CM_REQ_ALT_ACK_TIMEOUT      CM_FIELD(139, 0, 5)
#define CM_REQ_SAP_SUPPORTED        CM_FIELD(139, 5, 1)
#define CM_REQ_PRIVATE_DATA         CM_BLOB(140, 92)
#define CM_REQ_PRIVATE_DATA_LEN     92

/* The two path blocks of REQ have the same layout, 44 bytes apart. */
#define CM_REQ_PATH_STRIDE 44

enum wire_cm_transport {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_RD = 2,
	CM_TRANSPORT_EXTENDED = 3, /* XRC, if CM_REQ_EXT_TRANSPORT is 1 */
};

/* MRA. IBTA 12.6.6, table 107. */
#define CM_MRA_LOCAL_COMM_ID    CM_FIELD(0, 0, 32)
#define CM_MRA_REMOTE_COMM_ID   CM_FIELD(4, 0, 32)
#define CM_MRA_MESSAGE          CM_FIELD(8, 0, 2)
#define CM_MRA_SERVICE_TIMEOUT  CM_FIELD(9, 0, 5)
#define CM_MRA_PRIVATE_DATA     CM_BLOB(10, 222)
#define CM_MRA_PRIVATE_DATA_LEN 222

/* The message that an MRA or REJ refers to. */
enum wire_cm_message {
	CM_MESSAGE_REQ = 0,
	CM_MESSAGE_REP = 1,
	CM_MESSAGE_LAP = 2,   /* MRA */
	CM_MESSAGE_OTHER = 2, /* REJ */
};

/* REJ. IBTA 12.6.7, table 108. */
#define CM_REJ_LOCAL_COMM_ID    CM_FIELD(0, 0, 32)
#define CM_REJ_REMOTE_COMM_ID   CM_FIELD(4, 0, 32)
#define CM_REJ_MESSAGE          CM_FIELD(8, 0, 2)
#define CM_REJ_INFO_LEN         CM_FIELD(9, 0, 7)
#define CM_REJ_REASON           CM_FIELD(10, 0, 16)
#define CM_REJ_INFO             CM_BLOB(12, 72)
#define CM_REJ_INFO_MAX         72
#define CM_REJ_PRIVATE_DATA     CM_BLOB(84, 148)
#define CM_REJ_PRIVATE_DATA_LEN 148

/* IBTA 12.6.7.2, table 109. */
#define CM_REJ_REASONS(R)                                                      \
	R(NO_QP, 1, "no QP available")                                         \
	R(NO_EEC, 2, "no EE context available")                                \
	R(NO_RESOURCES, 3, "no resources available")                           \
	R(TIMEOUT, 4, "timeout")                                               \
	R(UNSUPPORTED, 5, "unsupported request")                               \
	R(INVALID_COMM_ID, 6, "invalid communication ID")                      \
	R(INVALID_COMM_INSTANCE, 7, "invalid communication instance")          \
	R(INVALID_SERVICE_ID, 8, "invalid service ID")                         \
	R(INVALID_TRANSPORT, 9, "invalid transport service type")              \
	R(STALE_CONN, 10, "stale connection")                                  \
	R(NO_RDC, 11, "RDC does not exist")                                    \
	R(INVALID_GID, 12, "primary remote port GID rejected")                 \
	R(INVALID_LID, 13, "primary remote port LID rejected")                 \
	R(INVALID_SL, 14, "invalid primary SL")                                \
	R(INVALID_TCLASS, 15, "invalid primary traffic class")                 \
	R(INVALID_HOP_LIMIT, 16, "invalid primary hop limit")                  \
	R(INVALID_PACKET_RATE, 17, "invalid primary packet rate")              \
	R(INVALID_ALT_GID, 18, "alternate remote port GID rejected")           \
	R(INVALID_ALT_LID, 19, "alternate remote port LID rejected")           \
	R(INVALID_ALT_SL, 20, "invalid alternate SL")                          \
	R(INVALID_ALT_TCLASS, 21, "invalid alternate traffic class")           \
	R(INVALID_ALT_HOP_LIMIT, 22, "invalid alternate hop limit")            \
	R(INVALID_ALT_PACKET_RATE, 23, "invalid alternate packet rate")        \
	R(PORT_CM_REDIRECT, 24, "port and CM redirection")                     \
	R(PORT_REDIRECT, 25, "port redirection")                               \
	R(INVALID_MTU, 26, "invalid path MTU")                                 \
	R(INSUFFICIENT_RESP_RESOURCES, 27, "insufficient responder resources") \
	R(CONSUMER, 28, "consumer reject")                                     \
	R(INVALID_RNR_RETRY, 29, "RNR retry count rejected")                   \
	R(DUPLICATE_COMM_ID, 30, "duplicate local communication ID")           \
	R(INVALID_CLASS_VERSION, 31, "unsupported class version")              \
	R(INVALID_FLOW_LABEL, 32, "invalid primary flow label")                \
	R(INVALID_ALT_FLOW_LABEL, 33, "invalid alternate flow label")          \
	R(VENDOR_OPTION, 35, "vendor option not supported")

#define WIRE_CM_REJ_ENUM(name, value, text) CM_REJ_##name = value,
enum wire_cm_rej_reason {
	CM_REJ_REASONS(WIRE_CM_REJ_ENUM)
};
#undef WIRE_CM_REJ_ENUM

/* REP. IBTA 12.6.8, table 110. */
#define CM_REP_LOCAL_COMM_ID       CM_FIELD(0, 0, 32)
#define CM_REP_REMOTE_COMM_ID      CM_FIELD(4, 0, 32)
#define CM_REP_LOCAL_QKEY          CM_FIELD(8, 0, 32)
#define CM_REP_LOCAL_QPN           CM_FIELD(12, 0, 24)
#define CM_REP_LOCAL_EECN          CM_FIELD(16, 0, 24)
#define CM_REP_STARTING_PSN        CM_FIELD(20, 0, 24)
#define CM_REP_RESPONDER_RESOURCES CM_FIELD(24, 0, 8)
#define CM_REP_INITIATOR_DEPTH     CM_FIELD(25, 0, 8)
#define CM_REP_TARGET_ACK_DELAY    CM_FIELD(26, 0, 5)
#define CM_REP_FAILOVER_ACCEPTED   CM_FIELD(26, 5, 2)
#define CM_REP_FLOW_CONTROL        CM_FIELD(26, 7, 1)
#define CM_REP_RNR_RETRY_COUNT     CM_FIELD(27, 0, 3)
#define CM_REP_SRQ                 CM_FIELD(27, 3, 1)
#define CM_REP_LOCAL_CA_GUID       CM_FIELD(28, 0, 64)
#define CM_REP_PRIVATE_DATA        CM_BLOB(36, 196)
#define CM_REP_PRIVATE_DATA_LEN    196

enum wire_cm_failover {
	CM_FAILOVER_ACCEPTED = 0,
	CM_FAILOVER_UNSUPPORTED = 1,
	CM_FAILOVER_REJECTED = 2, /* supported, but not this path */
};

/* RTU. IBTA 12.6.9, table 111. */
#define CM_RTU_LOCAL_COMM_ID    CM_FIELD(0, 0, 32)
#define CM_RTU_REMOTE_COMM_ID   CM_FIELD(4, 0, 32)
#define CM_RTU_PRIVATE_DATA     CM_BLOB(8, 224)
#define CM_RTU_PRIVATE_DATA_LEN 224

/* DREQ. IBTA 12.6.10, table 112. */
#define CM_DREQ_LOCAL_COMM_ID    CM_FIELD(0, 0, 32)
#define CM_DREQ_REMOTE_COMM_ID   CM_FIELD(4, 0, 32)
#define CM_DREQ_REMOTE_QPN       CM_FIELD(8, 0, 24)
#define CM_DREQ_PRIVATE_DATA     CM_BLOB(12, 220)
#define CM_DREQ_PRIVATE_DATA_LEN 220

/* DREP. IBTA 12.6.11, table 113. */
#define CM_DREP_LOCAL_COMM_ID    CM_FIELD(0, 0, 32)
#define CM_DREP_REMOTE_COMM_ID   CM_FIELD(4, 0, 32)
#define CM_DREP_PRIVATE_DATA     CM_BLOB(8, 224)
#define CM_DREP_PRIVATE_DATA_LEN 224

/* LAP. IBTA 12.8.1, table 115. */
#define CM_LAP_LOCAL_COMM_ID       CM_FIELD(0, 0, 32)
#define CM_LAP_REMOTE_COMM_ID      CM_FIELD(4, 0, 32)
#define CM_LAP_REMOTE_QPN          CM_FIELD(12, 0, 24)
#define CM_LAP_REMOTE_RESP_TIMEOUT CM_FIELD(15, 0, 5)
#define CM_LAP_ALT_LOCAL_LID       CM_FIELD(20, 0, 16)
#define CM_LAP_ALT_REMOTE_LID      CM_FIELD(22, 0, 16)
#define CM_LAP_ALT_LOCAL_GID       CM_BLOB(24, 16)
#define CM_LAP_ALT_REMOTE_GID      CM_BLOB(40, 16)
#define CM_LAP_ALT_FLOW_LABEL      CM_FIELD(56, 0, 20)
#define CM_LAP_ALT_TCLASS          CM_FIELD(59, 0, 8)
#define CM_LAP_ALT_HOP_LIMIT       CM_FIELD(60, 0, 8)
#define CM_LAP_ALT_PACKET_RATE     CM_FIELD(61, 2, 6)
#define CM_LAP_ALT_SL              CM_FIELD(62, 0, 4)
#define CM_LAP_ALT_SUBNET_LOCAL    CM_FIELD(62, 4, 1)
#define CM_LAP_ALT_ACK_TIMEOUT     CM_FIELD(63, 0, 5)
#define CM_LAP_PRIVATE_DATA        CM_BLOB(64, 168)
#define CM_LAP_PRIVATE_DATA_LEN    168

/* APR. IBTA 12.8.2, tables 116 and 117. */
#define CM_APR_LOCAL_COMM_ID    CM_FIELD(0, 0, 32)
#define CM_APR_REMOTE_COMM_ID   CM_FIELD(4, 0, 32)
#define CM_APR_INFO_LEN         CM_FIELD(8, 0, 8)
#define CM_APR_STATUS           CM_FIELD(9, 0, 8)
#define CM_APR_INFO             CM_BLOB(12, 72)
#define CM_APR_INFO_MAX         72
#define CM_APR_PRIVATE_DATA     CM_BLOB(84, 148)
#define CM_APR_PRIVATE_DATA_LEN 148

enum wire_cm_apr_status {
	CM_APR_OK = 0,
	CM_APR_INVALID_COMM_ID = 1,
	CM_APR_UNSUPPORTED = 2,
	CM_APR_REJECT = 3,
	CM_APR_REDIRECT = 4,
	CM_APR_IS_CURRENT = 5,
	CM_APR_INVALID_QPN = 6,
	CM_APR_INVALID_LID = 7,
	CM_APR_INVALID_GID = 8,
	CM_APR_INVALID_FLOW_LABEL = 9,
	CM_APR_INVALID_TCLASS = 10,
	CM_APR_INVALID_HOP_LIMIT = 11,
	CM_APR_INVALID_PACKET_RATE = 12,
	CM_APR_INVALID_SL = 13,
};

/* SIDR_REQ. IBTA 12.11.1, table 119. */
#define CM_SIDR_REQ_REQUEST_ID       CM_FIELD(0, 0, 32)
#define CM_SIDR_REQ_PKEY             CM_FIELD(4, 0, 16)
#define CM_SIDR_REQ_SERVICE_ID       CM_FIELD(8, 0, 64)
#define CM_SIDR_REQ_PRIVATE_DATA     CM_BLOB(16, 216)
#define CM_SIDR_REQ_PRIVATE_DATA_LEN 216

/* SIDR_REP. IBTA 12.11.2, tables 120 and 121. */
#define CM_SIDR_REP_REQUEST_ID       CM_FIELD(0, 0, 32)
#define CM_SIDR_REP_STATUS           CM_FIELD(4, 0, 8)
#define CM_SIDR_REP_INFO_LEN         CM_FIELD(5, 0, 8)
#define CM_SIDR_REP_QPN              CM_FIELD(8, 0, 24)
#define CM_SIDR_REP_SERVICE_ID       CM_FIELD(12, 0, 64)
#define CM_SIDR_REP_QKEY             CM_FIELD(20, 0, 32)
#define CM_SIDR_REP_INFO             CM_BLOB(24, 72)
#define CM_SIDR_REP_INFO_MAX         72
#define CM_SIDR_REP_PRIVATE_DATA     CM_BLOB(96, 136)
#define CM_SIDR_REP_PRIVATE_DATA_LEN 136

enum wire_cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_UNSUPPORTED = 1,
	CM_SIDR_REJECT = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_UNSUPPORTED_VERSION = 5,
};

/*
 * RDMA IP CM service, annex A11: a header at the start of REQ's and SIDR_REQ's private data carries the IP addresses.
 * Fields count from the start of the private data. An IPv4 address is in the last four of its sixteen bytes.
 */
#define CM_IP_HDR_SIZE  36
#define CM_IP_MAJOR     WIRE_FIELD(0, 4)
#define CM_IP_MINOR     WIRE_FIELD(4, 4)
#define CM_IP_VERSION   WIRE_FIELD(8, 4) /* 4 or 6 */
#define CM_IP_SRC_PORT  WIRE_FIELD(16, 16)
#define CM_IP_SRC_ADDR  WIRE_FIELD(32, 128)
#define CM_IP_DST_ADDR  WIRE_FIELD(160, 128)
#define CM_IP_SRC_ADDR4 WIRE_FIELD(128, 32)
#define CM_IP_DST_ADDR4 WIRE_FIELD(256, 32)
#define CM_IP_MAJOR_0   0

/* Service IDs: 00 00 00 00 01, the IP protocol, the destination port. Annex A11; A8 for the other prefixes. */
#define CM_SERVICE_ID_IP_PREFIX    0x0000000001000000ull
#define CM_SERVICE_ID_IP_MASK      0xffffffffff000000ull
#define CM_SERVICE_ID_PROTO_MASK   0xffffffffffff0000ull
#define CM_SERVICE_ID_TCP          0x0000000001060000ull
#define CM_SERVICE_ID_UDP          0x0000000001110000ull
#define CM_SERVICE_ID_IB           0x00000000013f0000ull /* RDMA_PS_IB of AF_IB */
#define CM_SERVICE_ID_SDP          0x0000000000010000ull
#define CM_SERVICE_ID_SDP_MASK     0xffffffffffff0000ull
#define CM_SERVICE_ID_LOCAL_PREFIX 0x0200000000000000ull /* administered by the local CM */
#define CM_SERVICE_ID_AGN_MASK     0xff00000000000000ull

/* PS: an RDMA_PS_* value (TCP 0x106, UDP 0x111, IPOIB 0x2, IB 0x13f), port in host order. */
static inline u64 wire_cm_service_id(u16 ps, u16 port)
{
	return (u64)ps << 16 | port;
}

const char *wire_cm_attr_name(u16 attr); /* "REQ"; "?" if unknown */

#endif
