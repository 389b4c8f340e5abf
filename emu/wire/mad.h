/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Management datagrams: the common header, RMPP, ClassPortInfo, Notice and InformInfo. IBTA 13.4 - 13.6. */
#ifndef MUSLIN_WIRE_MAD_H
#define MUSLIN_WIRE_MAD_H

#include "emu/wire/ether.h"
#include "emu/wire/field.h"
#include "emu/wire/gid.h"

#define MAD_SIZE            256
#define MAD_HDR_SIZE        24
#define MAD_BASE_VERSION_1  1
#define MAD_QKEY_WELL_KNOWN 0x80010000u /* QP1, IBTA 15.4.2 */
#define MAD_QPN_SMI         0
#define MAD_QPN_GSI         1

/* Common header. IBTA 13.4.3. Fields count from the start of the MAD. */
#define MAD_BASE_VERSION   WIRE_FIELD(0, 8)
#define MAD_CLASS          WIRE_FIELD(8, 8)
#define MAD_CLASS_VERSION  WIRE_FIELD(16, 8)
#define MAD_METHOD         WIRE_FIELD(24, 8)
#define MAD_METHOD_R       WIRE_FIELD(24, 1)
#define MAD_STATUS         WIRE_FIELD(32, 16)
#define MAD_CLASS_SPECIFIC WIRE_FIELD(48, 16)
#define MAD_TID            WIRE_FIELD(64, 64)
#define MAD_TID_HIGH       WIRE_FIELD(64, 32) /* identifies the agent, by convention of the kernel */
#define MAD_ATTR_ID        WIRE_FIELD(128, 16)
#define MAD_ATTR_MOD       WIRE_FIELD(160, 32)

struct wire_mad_hdr {
	u8 base_version;
	u8 mgmt_class;
	u8 class_version;
	u8 method;
	__be16 status;
	__be16 class_specific;
	__be64 tid;
	__be16 attr_id;
	__be16 reserved;
	__be32 attr_mod;
} __attribute__((packed));
static_assert(sizeof(struct wire_mad_hdr) == MAD_HDR_SIZE, "MAD header size");

/* The remote address of a MAD. Host order. */
struct mad_addr {
	u32 qpn;  /* remote QPN: 0, 1 or a redirected one */
	u32 qkey; /* on send, for QPs except 0 */
	u16 lid;  /* remote LID; 0xffff permissive (directed route) */
	u16 pkey_index;
	u8 sl;
	u8 path_bits; /* of the local LID */
	bool grh;
	u8 hop_limit, traffic_class, gid_index;
	u32 flow_label;
	struct wire_gid gid; /* remote GID (on receive: the source), when grh */
	struct wire_l2 l2;   /* on Ethernet: the remote station; on receive also the packet's other Layer 2 fields */
};

/* A whole MAD: the header as a struct, the rest as fields. */
struct wire_mad {
	union {
		struct wire_mad_hdr hdr;
		u8 raw[MAD_SIZE];
	};
};
static_assert(sizeof(struct wire_mad) == MAD_SIZE, "MAD size");

/* Management classes. IBTA 13.4.4. */
enum wire_mad_class {
	MAD_CLASS_SUBN_LID = 0x01,
	MAD_CLASS_SUBN_ADM = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_BM = 0x05,
	MAD_CLASS_DEV_MGT = 0x06,
	MAD_CLASS_CM = 0x07,
	MAD_CLASS_SNMP = 0x08,
	MAD_CLASS_VENDOR1_MIN = 0x09,
	MAD_CLASS_VENDOR1_MAX = 0x0f,
	MAD_CLASS_APP_MIN = 0x10,
	MAD_CLASS_DEV_ADM = 0x10,
	MAD_CLASS_CONG = 0x21,
	MAD_CLASS_APP_MAX = 0x2f,
	MAD_CLASS_VENDOR2_MIN = 0x30,
	MAD_CLASS_OPENIB_PING = 0x32, /* of ibping, OUI 0x001405 */
	MAD_CLASS_OPENIB_SYSSTAT = 0x33,
	MAD_CLASS_VENDOR2_MAX = 0x4f,
	MAD_CLASS_SUBN_DIRECTED = 0x81,
};

#define MAD_OUI_OPENIB 0x001405

/* Class versions. */
#define MAD_CLASS_VERSION_SUBN   1
#define MAD_CLASS_VERSION_SA     2
#define MAD_CLASS_VERSION_PERF   1
#define MAD_CLASS_VERSION_CM     2
#define MAD_CLASS_VERSION_VENDOR 1

/* Methods. IBTA 13.4.5; those of SA: 15.2.2. */
enum wire_mad_method {
	MAD_METHOD_GET = 0x01,
	MAD_METHOD_SET = 0x02,
	MAD_METHOD_SEND = 0x03,
	MAD_METHOD_TRAP = 0x05,
	MAD_METHOD_REPORT = 0x06,
	MAD_METHOD_TRAP_REPRESS = 0x07,
	MAD_METHOD_RESP = 0x80, /* the R bit */
	MAD_METHOD_GET_RESP = 0x81,
	MAD_METHOD_REPORT_RESP = 0x86,
};

/* Status. IBTA 13.4.7. The upper byte belongs to the class. */
enum wire_mad_status {
	MAD_STATUS_OK = 0x0000,
	MAD_STATUS_BUSY = 0x0001,
	MAD_STATUS_REDIRECT = 0x0002,
	MAD_STATUS_BAD_VERSION = 1 << 2, /* base or class version */
	MAD_STATUS_BAD_METHOD = 2 << 2,
	MAD_STATUS_BAD_METHOD_ATTR = 3 << 2, /* the method does not support this attribute */
	MAD_STATUS_BAD_VALUE = 7 << 2,       /* invalid field of the attribute or its modifier */
};
#define MAD_STATUS_INVALID_MASK 0x001c
#define MAD_STATUS_CLASS_MASK   0xff00

/* Attributes of every class. IBTA 13.4.8. */
enum wire_mad_attr {
	MAD_ATTR_CLASS_PORT_INFO = 0x0001,
	MAD_ATTR_NOTICE = 0x0002,
	MAD_ATTR_INFORM_INFO = 0x0003,
};

/* Offset of the data of each class, in bytes. */
#define MAD_GMP_DATA      64 /* PerfMgt, BM, DevMgt */
#define MAD_GMP_DATA_SIZE (MAD_SIZE - MAD_GMP_DATA)
#define MAD_VENDOR1_DATA  24
#define MAD_VENDOR2_DATA  40
#define MAD_VENDOR2_OUI   WIRE_FIELD(37 * 8, 24)

static inline u8 wire_mad_get_class(const void *mad)
{
	return (u8)wire_get(mad, MAD_CLASS);
}

static inline u8 wire_mad_get_method(const void *mad)
{
	return (u8)wire_get(mad, MAD_METHOD);
}

static inline u64 wire_mad_get_tid(const void *mad)
{
	return wire_get(mad, MAD_TID);
}

static inline bool wire_mad_is_smp_class(u8 mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_LID || mgmt_class == MAD_CLASS_SUBN_DIRECTED;
}

static inline bool wire_mad_is_vendor2_class(u8 mgmt_class)
{
	return mgmt_class >= MAD_CLASS_VENDOR2_MIN && mgmt_class <= MAD_CLASS_VENDOR2_MAX;
}

/* Whether an RMPP header follows the common header in this class. IBTA 13.6.2. */
static inline bool wire_mad_class_has_rmpp(u8 mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_ADM || mgmt_class == MAD_CLASS_DEV_ADM ||
	       wire_mad_is_vendor2_class(mgmt_class);
}

/* Whether the method is a response to be matched with a request. IBTA 13.4.5. */
static inline bool wire_mad_is_response(u8 method)
{
	return (method & MAD_METHOD_RESP) || method == MAD_METHOD_TRAP_REPRESS;
}

/* RMPP header. IBTA 13.6.2.1. Fields count from the start of the MAD. */
#define RMPP_HDR_SIZE    12
#define RMPP_VERSION     WIRE_FIELD(192, 8)
#define RMPP_TYPE        WIRE_FIELD(200, 8)
#define RMPP_RESP_TIME   WIRE_FIELD(208, 5)
#define RMPP_FLAGS       WIRE_FIELD(213, 3)
#define RMPP_STATUS      WIRE_FIELD(216, 8)
#define RMPP_DATA1       WIRE_FIELD(224, 32)
#define RMPP_DATA2       WIRE_FIELD(256, 32)
#define RMPP_SEGMENT     RMPP_DATA1 /* DATA, ACK */
#define RMPP_PAYLOAD_LEN RMPP_DATA2 /* DATA */
#define RMPP_NEW_WINDOW  RMPP_DATA2 /* ACK */

#define RMPP_VERSION_1      1
#define RMPP_RESP_TIME_NONE 0x1f

enum wire_rmpp_type {
	RMPP_TYPE_NONE = 0,
	RMPP_TYPE_DATA = 1,
	RMPP_TYPE_ACK = 2,
	RMPP_TYPE_STOP = 3,
	RMPP_TYPE_ABORT = 4,
};

enum wire_rmpp_flag {
	RMPP_FLAG_ACTIVE = 1 << 0,
	RMPP_FLAG_FIRST = 1 << 1,
	RMPP_FLAG_LAST = 1 << 2,
};

/* Reason of STOP and ABORT. IBTA 13.6.2.1. */
enum wire_rmpp_status {
	RMPP_STATUS_OK = 0,
	RMPP_STATUS_RESX = 1,      /* STOP: resources exhausted */
	RMPP_STATUS_T2L = 118,     /* ABORT from here on: total time too long */
	RMPP_STATUS_BAD_LEN = 119, /* last flag and payload length disagree */
	RMPP_STATUS_BAD_SEG = 120, /* first flag and segment number disagree */
	RMPP_STATUS_BAD_TYPE = 121,
	RMPP_STATUS_W2S = 122, /* new window last too small */
	RMPP_STATUS_S2B = 123, /* segment number too big */
	RMPP_STATUS_BAD_STATUS = 124,
	RMPP_STATUS_BAD_VERSION = 125,
	RMPP_STATUS_TMR = 126, /* too many retries */
	RMPP_STATUS_UNSPEC = 127,
};

/* ClassPortInfo. IBTA 13.4.8.1. Fields count from the start of the attribute. */
#define CPI_SIZE          72
#define CPI_BASE_VERSION  WIRE_FIELD(0, 8)
#define CPI_CLASS_VERSION WIRE_FIELD(8, 8)
#define CPI_CAP_MASK      WIRE_FIELD(16, 16)
#define CPI_CAP_MASK2     WIRE_FIELD(32, 27)
#define CPI_RESP_TIME     WIRE_FIELD(59, 5)
#define CPI_REDIRECT_GID  WIRE_FIELD(64, 128)
#define CPI_REDIRECT_TC   WIRE_FIELD(192, 8)
#define CPI_REDIRECT_SL   WIRE_FIELD(200, 4)
#define CPI_REDIRECT_FL   WIRE_FIELD(204, 20)
#define CPI_REDIRECT_LID  WIRE_FIELD(224, 16)
#define CPI_REDIRECT_PKEY WIRE_FIELD(240, 16)
#define CPI_REDIRECT_QP   WIRE_FIELD(264, 24)
#define CPI_REDIRECT_QKEY WIRE_FIELD(288, 32)
#define CPI_TRAP_GID      WIRE_FIELD(320, 128)
#define CPI_TRAP_TC       WIRE_FIELD(448, 8)
#define CPI_TRAP_SL       WIRE_FIELD(456, 4)
#define CPI_TRAP_FL       WIRE_FIELD(460, 20)
#define CPI_TRAP_LID      WIRE_FIELD(480, 16)
#define CPI_TRAP_PKEY     WIRE_FIELD(496, 16)
#define CPI_TRAP_HL       WIRE_FIELD(512, 8)
#define CPI_TRAP_QP       WIRE_FIELD(520, 24)
#define CPI_TRAP_QKEY     WIRE_FIELD(544, 32)

/* CapabilityMask bits common to all classes; bits 8 and up are class-specific. */
enum wire_cpi_cap {
	CPI_CAP_TRAP = 1 << 0,
	CPI_CAP_GET_SET_NOTICE = 1 << 1,
	CPI_CAP_HAS_CAP_MASK2 = 1 << 2,
};

/* Notice. IBTA 13.4.8.2. Fields count from the start of the attribute. */
#define NOTICE_SIZE          80 /* GMPs; an SMP has the first 64 bytes, without the issuer's GID */
#define NOTICE_SMP_SIZE      64
#define NOTICE_IS_GENERIC    WIRE_FIELD(0, 1)
#define NOTICE_TYPE          WIRE_FIELD(1, 7)
#define NOTICE_PRODUCER_TYPE WIRE_FIELD(8, 24)  /* generic */
#define NOTICE_VENDOR_ID     WIRE_FIELD(8, 24)  /* vendor-specific */
#define NOTICE_TRAP_NUMBER   WIRE_FIELD(32, 16) /* generic */
#define NOTICE_DEVICE_ID     WIRE_FIELD(32, 16) /* vendor-specific */
#define NOTICE_ISSUER_LID    WIRE_FIELD(48, 16)
#define NOTICE_TOGGLE        WIRE_FIELD(64, 1)
#define NOTICE_COUNT         WIRE_FIELD(65, 15)
#define NOTICE_DETAILS       WIRE_FIELD(80, 432)
#define NOTICE_ISSUER_GID    WIRE_FIELD(512, 128)

enum wire_notice_type {
	NOTICE_TYPE_FATAL = 0,
	NOTICE_TYPE_URGENT = 1,
	NOTICE_TYPE_SECURITY = 2,
	NOTICE_TYPE_SUBN_MGT = 3,
	NOTICE_TYPE_INFO = 4,
	NOTICE_TYPE_EMPTY = 0x7f,
};

enum wire_notice_producer {
	NOTICE_PRODUCER_CA = 1,
	NOTICE_PRODUCER_SWITCH = 2,
	NOTICE_PRODUCER_ROUTER = 3,
	NOTICE_PRODUCER_CLASS_MGR = 4,
};

/* Generic traps of subnet management and administration. IBTA 14.2.5.1. */
enum wire_trap {
	TRAP_GID_IN_SERVICE = 64,
	TRAP_GID_OUT_OF_SERVICE = 65,
	TRAP_MCAST_CREATED = 66,
	TRAP_MCAST_DELETED = 67,
	TRAP_UNPATH = 68,
	TRAP_REPATH = 69,
	TRAP_LINK_STATE_CHANGE = 128,
	TRAP_LINK_INTEGRITY = 129,
	TRAP_BUFFER_OVERRUN = 130,
	TRAP_FLOW_WATCHDOG = 131,
	TRAP_LOCAL_CHANGES = 144,
	TRAP_SYS_IMAGE_GUID = 145,
	TRAP_BAD_MKEY = 256,
	TRAP_BAD_PKEY = 257,
	TRAP_BAD_QKEY = 258,
	TRAP_BAD_PKEY_SWITCH = 259,
};

/* DataDetails. IBTA 14.2.5.1. Fields count from the start of the Notice, as the others do. */
/* 64 - 67 */
#define NOTICE_64_GID WIRE_FIELD(16 * 8, 128)
/* 128 */
#define NOTICE_128_LID WIRE_FIELD(10 * 8, 16)
/* 129, 130, 131 */
#define NOTICE_129_LID  WIRE_FIELD(12 * 8, 16)
#define NOTICE_129_PORT WIRE_FIELD(14 * 8, 8)
/* 144 */
#define NOTICE_144_LID                 WIRE_FIELD(12 * 8, 16)
#define NOTICE_144_OTHER_LOCAL_CHANGES WIRE_FIELD(15 * 8 + 7, 1)
#define NOTICE_144_CAP_MASK            WIRE_FIELD(16 * 8, 32)
#define NOTICE_144_CHANGE_FLAGS        WIRE_FIELD(20 * 8, 16)
#define NOTICE_144_CAP_MASK2           WIRE_FIELD(22 * 8, 16)
enum wire_notice_144_flag {
	NOTICE_144_NODE_DESC = 1 << 0,
	NOTICE_144_LINK_WIDTH_ENABLED = 1 << 1,
	NOTICE_144_LINK_SPEED_ENABLED = 1 << 2,
	NOTICE_144_SM_PRIORITY = 1 << 3,
	NOTICE_144_HIERARCHY_INFO = 1 << 4,
	NOTICE_144_CAP_MASK2_CHANGE = 1 << 5,
};
/* 145 */
#define NOTICE_145_LID            WIRE_FIELD(12 * 8, 16)
#define NOTICE_145_SYS_IMAGE_GUID WIRE_FIELD(16 * 8, 64)
/* 256 */
#define NOTICE_256_LID          WIRE_FIELD(12 * 8, 16)
#define NOTICE_256_DR_SLID      WIRE_FIELD(14 * 8, 16)
#define NOTICE_256_METHOD       WIRE_FIELD(16 * 8, 8)
#define NOTICE_256_ATTR_ID      WIRE_FIELD(18 * 8, 16)
#define NOTICE_256_ATTR_MOD     WIRE_FIELD(20 * 8, 32)
#define NOTICE_256_MKEY         WIRE_FIELD(24 * 8, 64)
#define NOTICE_256_DR_NOTICE    WIRE_FIELD(33 * 8, 1)
#define NOTICE_256_DR_TRUNCATED WIRE_FIELD(33 * 8 + 1, 1)
#define NOTICE_256_DR_HOPS      WIRE_FIELD(33 * 8 + 2, 6)
#define NOTICE_256_DR_PATH      WIRE_FIELD(34 * 8, 240)
/* 257, 258 */
#define NOTICE_257_LID1 WIRE_FIELD(12 * 8, 16)
#define NOTICE_257_LID2 WIRE_FIELD(14 * 8, 16)
#define NOTICE_257_KEY  WIRE_FIELD(16 * 8, 32)
#define NOTICE_257_SL   WIRE_FIELD(20 * 8, 4)
#define NOTICE_257_QP1  WIRE_FIELD(21 * 8, 24)
#define NOTICE_257_QP2  WIRE_FIELD(25 * 8, 24)
#define NOTICE_257_GID1 WIRE_FIELD(28 * 8, 128)
#define NOTICE_257_GID2 WIRE_FIELD(44 * 8, 128)
/* 259 */
#define NOTICE_259_DATA_VALID WIRE_FIELD(10 * 8, 16)
#define NOTICE_259_LID1       WIRE_FIELD(12 * 8, 16)
#define NOTICE_259_LID2       WIRE_FIELD(14 * 8, 16)
#define NOTICE_259_PKEY       WIRE_FIELD(16 * 8, 16)
#define NOTICE_259_SL         WIRE_FIELD(18 * 8, 4)
#define NOTICE_259_QP1        WIRE_FIELD(19 * 8, 24)
#define NOTICE_259_QP2        WIRE_FIELD(23 * 8, 24)
#define NOTICE_259_GID1       WIRE_FIELD(26 * 8, 128)
#define NOTICE_259_GID2       WIRE_FIELD(42 * 8, 128)
#define NOTICE_259_SW_LID     WIRE_FIELD(58 * 8, 16)
#define NOTICE_259_PORT       WIRE_FIELD(60 * 8, 8)
enum wire_notice_259_valid {
	NOTICE_259_VALID_LID1 = 1 << 0,
	NOTICE_259_VALID_LID2 = 1 << 1,
	NOTICE_259_VALID_PKEY = 1 << 2,
	NOTICE_259_VALID_SL = 1 << 3,
	NOTICE_259_VALID_QP1 = 1 << 4,
	NOTICE_259_VALID_QP2 = 1 << 5,
	NOTICE_259_VALID_GID1 = 1 << 6,
	NOTICE_259_VALID_GID2 = 1 << 7,
};

/* InformInfo. IBTA 13.4.8.3. Fields count from the start of the attribute. */
#define INFORMINFO_SIZE          36
#define INFORMINFO_GID           WIRE_FIELD(0, 128)
#define INFORMINFO_LID_BEGIN     WIRE_FIELD(128, 16) /* 0xffff: all LIDs */
#define INFORMINFO_LID_END       WIRE_FIELD(144, 16)
#define INFORMINFO_IS_GENERIC    WIRE_FIELD(176, 8)
#define INFORMINFO_SUBSCRIBE     WIRE_FIELD(184, 8)
#define INFORMINFO_TYPE          WIRE_FIELD(192, 16) /* 0xffff: all types */
#define INFORMINFO_TRAP_NUMBER   WIRE_FIELD(208, 16) /* 0xffff: all traps */
#define INFORMINFO_DEVICE_ID     WIRE_FIELD(208, 16)
#define INFORMINFO_QPN           WIRE_FIELD(224, 24)
#define INFORMINFO_RESP_TIME     WIRE_FIELD(251, 5)
#define INFORMINFO_PRODUCER_TYPE WIRE_FIELD(264, 24) /* 0xffffff: all producers */
#define INFORMINFO_VENDOR_ID     WIRE_FIELD(264, 24)

#define INFORMINFO_ALL_LIDS      0xffff
#define INFORMINFO_ALL_TYPES     0xffff
#define INFORMINFO_ALL_TRAPS     0xffff
#define INFORMINFO_ALL_PRODUCERS 0xffffff

/* Names for logs and traces; "?" if the value has none. */
/* Tables of names for sparse values. */
struct wire_name {
	u16 value;
	const char *name;
};
const char *wire_name(const struct wire_name *names, u32 n, u16 value); /* "?" if unknown */
const char *wire_mad_class_name(u8 mgmt_class);
const char *wire_mad_method_name(u8 method); /* those of SA too */
const char *wire_trap_name(u16 trap);

#endif
