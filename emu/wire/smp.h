/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subnet management packets and the attributes that configure nodes, switches and ports. IBTA 14.2. */
#ifndef MUSLIN_WIRE_SMP_H
#define MUSLIN_WIRE_SMP_H

#include "emu/wire/field.h"
#include "emu/wire/mad.h"

#define SMP_DATA         64 /* byte offset of the attribute */
#define SMP_DATA_SIZE    64
#define SMP_INITIAL_PATH 128
#define SMP_RETURN_PATH  192
#define SMP_PATH_SIZE    64
#define SMP_HOPS_MAX     63

/* IBTA 14.2.1 (LID routed) and 124 (directed route). Fields count from the start of the MAD. */
#define SMP_MKEY                 WIRE_FIELD(192, 64)
#define SMP_D                    WIRE_FIELD(32, 1) /* directed route: 0 outbound, 1 returning */
#define SMP_DR_STATUS            WIRE_FIELD(33, 15)
#define SMP_HOP_PTR              WIRE_FIELD(48, 8)
#define SMP_HOP_CNT              WIRE_FIELD(56, 8)
#define SMP_DR_SLID              WIRE_FIELD(256, 16)
#define SMP_DR_DLID              WIRE_FIELD(272, 16)
#define SMP_INITIAL_PATH_PORT(i) WIRE_FIELD(1024 + 8 * (i), 8)
#define SMP_RETURN_PATH_PORT(i)  WIRE_FIELD(1536 + 8 * (i), 8)

/* IBTA 14.2.5. */
enum wire_smp_attr {
	SMP_ATTR_NOTICE = 0x0002,
	SMP_ATTR_NODE_DESC = 0x0010,
	SMP_ATTR_NODE_INFO = 0x0011,
	SMP_ATTR_SWITCH_INFO = 0x0012,
	SMP_ATTR_GUID_INFO = 0x0014,
	SMP_ATTR_PORT_INFO = 0x0015,
	SMP_ATTR_PKEY_TABLE = 0x0016,
	SMP_ATTR_SL_TO_VL = 0x0017,
	SMP_ATTR_VL_ARB = 0x0018,
	SMP_ATTR_LFT = 0x0019,
	SMP_ATTR_RFT = 0x001a,
	SMP_ATTR_MFT = 0x001b,
	SMP_ATTR_LINK_SPEED_WIDTH_PAIRS = 0x001c,
	SMP_ATTR_VENDOR_MADS = 0x001d,
	SMP_ATTR_HIERARCHY_INFO = 0x001e,
	SMP_ATTR_SM_INFO = 0x0020,
	SMP_ATTR_VENDOR_DIAG = 0x0030,
	SMP_ATTR_LED_INFO = 0x0031,
	SMP_ATTR_CABLE_INFO = 0x0032,
	SMP_ATTR_PORT_INFO_EXT = 0x0033,
	SMP_ATTR_VENDOR_MIN = 0xff00,
	SMP_ATTR_MLNX_EXT_PORT_INFO = 0xff90,
};

/* NodeDescription. IBTA 14.2.5.2. */
#define NODEDESC_SIZE   64
#define NODEDESC_STRING WIRE_FIELD(0, 512) /* UTF-8, padded with NUL */

/* NodeInfo. IBTA 14.2.5.3. */
#define NODEINFO_SIZE          40
#define NODEINFO_BASE_VERSION  WIRE_FIELD(0, 8)
#define NODEINFO_CLASS_VERSION WIRE_FIELD(8, 8)
#define NODEINFO_NODE_TYPE     WIRE_FIELD(16, 8)
#define NODEINFO_NUM_PORTS     WIRE_FIELD(24, 8)
#define NODEINFO_SYSTEM_GUID   WIRE_FIELD(32, 64)
#define NODEINFO_NODE_GUID     WIRE_FIELD(96, 64)
#define NODEINFO_PORT_GUID     WIRE_FIELD(160, 64)
#define NODEINFO_PARTITION_CAP WIRE_FIELD(224, 16)
#define NODEINFO_DEVICE_ID     WIRE_FIELD(240, 16)
#define NODEINFO_REVISION      WIRE_FIELD(256, 32)
#define NODEINFO_LOCAL_PORT    WIRE_FIELD(288, 8)
#define NODEINFO_VENDOR_ID     WIRE_FIELD(296, 24)

enum wire_node_type {
	NODE_TYPE_CA = 1,
	NODE_TYPE_SWITCH = 2,
	NODE_TYPE_ROUTER = 3,
};

/* SwitchInfo. IBTA 14.2.5.4. */
#define SWITCHINFO_SIZE                   20
#define SWITCHINFO_LFT_CAP                WIRE_FIELD(0, 16)
#define SWITCHINFO_RFT_CAP                WIRE_FIELD(16, 16)
#define SWITCHINFO_MFT_CAP                WIRE_FIELD(32, 16)
#define SWITCHINFO_LFT_TOP                WIRE_FIELD(48, 16)
#define SWITCHINFO_DEFAULT_PORT           WIRE_FIELD(64, 8)
#define SWITCHINFO_DEFAULT_MC_PRIMARY     WIRE_FIELD(72, 8)
#define SWITCHINFO_DEFAULT_MC_NOT_PRIMARY WIRE_FIELD(80, 8)
#define SWITCHINFO_LIFE_TIME              WIRE_FIELD(88, 5) /* 4.096 us * 2^n; over 19: no limit */
#define SWITCHINFO_PORT_STATE_CHANGE      WIRE_FIELD(93, 1) /* writing 1 clears it */
#define SWITCHINFO_OPT_SL_TO_VL           WIRE_FIELD(94, 2)
#define SWITCHINFO_LIDS_PER_PORT          WIRE_FIELD(96, 16)
#define SWITCHINFO_PART_ENFORCE_CAP       WIRE_FIELD(112, 16)
#define SWITCHINFO_INBOUND_ENFORCE_CAP    WIRE_FIELD(128, 1)
#define SWITCHINFO_OUTBOUND_ENFORCE_CAP   WIRE_FIELD(129, 1)
#define SWITCHINFO_FILTER_RAW_IN_CAP      WIRE_FIELD(130, 1)
#define SWITCHINFO_FILTER_RAW_OUT_CAP     WIRE_FIELD(131, 1)
#define SWITCHINFO_ENHANCED_PORT0         WIRE_FIELD(132, 1)
#define SWITCHINFO_MFT_TOP                WIRE_FIELD(144, 16)

/* GUIDInfo. IBTA 14.2.5.5. The attribute modifier is the block. */
#define GUIDINFO_SIZE      64
#define GUIDINFO_PER_BLOCK 8
#define GUIDINFO_GUID(i)   WIRE_FIELD(64 * (i), 64)

/* PortInfo. IBTA 14.2.5.6. Attribute modifier: PORTINFO_MOD_*. */
#define PORTINFO_SIZE                  64
#define PORTINFO_MOD_PORT_MASK         0xff
#define PORTINFO_MOD_EXT_SPEEDS        0x80000000u /* the SM supports LinkSpeedExt* */
#define PORTINFO_MKEY                  WIRE_FIELD(0, 64)
#define PORTINFO_GID_PREFIX            WIRE_FIELD(64, 64)
#define PORTINFO_LID                   WIRE_FIELD(128, 16)
#define PORTINFO_SM_LID                WIRE_FIELD(144, 16)
#define PORTINFO_CAP_MASK              WIRE_FIELD(160, 32)
#define PORTINFO_DIAG_CODE             WIRE_FIELD(192, 16)
#define PORTINFO_MKEY_LEASE            WIRE_FIELD(208, 16) /* seconds */
#define PORTINFO_LOCAL_PORT            WIRE_FIELD(224, 8)
#define PORTINFO_WIDTH_ENABLED         WIRE_FIELD(232, 8)
#define PORTINFO_WIDTH_SUPPORTED       WIRE_FIELD(240, 8)
#define PORTINFO_WIDTH_ACTIVE          WIRE_FIELD(248, 8)
#define PORTINFO_SPEED_SUPPORTED       WIRE_FIELD(256, 4)
#define PORTINFO_STATE                 WIRE_FIELD(260, 4)
#define PORTINFO_PHYS_STATE            WIRE_FIELD(264, 4)
#define PORTINFO_LINK_DOWN_DEFAULT     WIRE_FIELD(268, 4) /* 1 Sleep, 2 Polling */
#define PORTINFO_MKEY_PROTECT          WIRE_FIELD(272, 2)
#define PORTINFO_LMC                   WIRE_FIELD(277, 3)
#define PORTINFO_SPEED_ACTIVE          WIRE_FIELD(280, 4)
#define PORTINFO_SPEED_ENABLED         WIRE_FIELD(284, 4)
#define PORTINFO_NEIGHBOR_MTU          WIRE_FIELD(288, 4)
#define PORTINFO_SM_SL                 WIRE_FIELD(292, 4)
#define PORTINFO_VL_CAP                WIRE_FIELD(296, 4)
#define PORTINFO_INIT_TYPE             WIRE_FIELD(300, 4)
#define PORTINFO_VL_HIGH_LIMIT         WIRE_FIELD(304, 8)
#define PORTINFO_VL_ARB_HIGH_CAP       WIRE_FIELD(312, 8)
#define PORTINFO_VL_ARB_LOW_CAP        WIRE_FIELD(320, 8)
#define PORTINFO_INIT_TYPE_REPLY       WIRE_FIELD(328, 4)
#define PORTINFO_MTU_CAP               WIRE_FIELD(332, 4)
#define PORTINFO_VL_STALL_COUNT        WIRE_FIELD(336, 3)
#define PORTINFO_HOQ_LIFE              WIRE_FIELD(339, 5) /* 4.096 us * 2^n; over 19: no limit */
#define PORTINFO_OPER_VLS              WIRE_FIELD(344, 4)
#define PORTINFO_PART_ENFORCE_IN       WIRE_FIELD(348, 1)
#define PORTINFO_PART_ENFORCE_OUT      WIRE_FIELD(349, 1)
#define PORTINFO_FILTER_RAW_IN         WIRE_FIELD(350, 1)
#define PORTINFO_FILTER_RAW_OUT        WIRE_FIELD(351, 1)
#define PORTINFO_MKEY_VIOLATIONS       WIRE_FIELD(352, 16)
#define PORTINFO_PKEY_VIOLATIONS       WIRE_FIELD(368, 16)
#define PORTINFO_QKEY_VIOLATIONS       WIRE_FIELD(384, 16)
#define PORTINFO_GUID_CAP              WIRE_FIELD(400, 8)
#define PORTINFO_CLIENT_REREGISTER     WIRE_FIELD(408, 1)
#define PORTINFO_MC_PKEY_TRAP_SUPPRESS WIRE_FIELD(409, 2)
#define PORTINFO_SUBNET_TIMEOUT        WIRE_FIELD(411, 5)
#define PORTINFO_RESP_TIME             WIRE_FIELD(419, 5)
#define PORTINFO_LOCAL_PHY_ERRORS      WIRE_FIELD(424, 4)
#define PORTINFO_OVERRUN_ERRORS        WIRE_FIELD(428, 4)
#define PORTINFO_MAX_CREDIT_HINT       WIRE_FIELD(432, 16)
#define PORTINFO_SPEED_EXT2_ACTIVE     WIRE_FIELD(449, 2)
#define PORTINFO_SPEED_EXT2_SUPPORTED  WIRE_FIELD(451, 2)
#define PORTINFO_SPEED_EXT2_ENABLED    WIRE_FIELD(453, 3)
#define PORTINFO_LINK_ROUND_TRIP       WIRE_FIELD(456, 24) /* 4 ns units */
#define PORTINFO_CAP_MASK2             WIRE_FIELD(480, 16)
#define PORTINFO_SPEED_EXT_ACTIVE      WIRE_FIELD(496, 4)
#define PORTINFO_SPEED_EXT_SUPPORTED   WIRE_FIELD(500, 4)
#define PORTINFO_SPEED_EXT_ENABLED     WIRE_FIELD(507, 5)

/* CapabilityMask. IBTA 14.2.5.6; bit 0 is the least significant. */
enum wire_port_cap {
	PORT_CAP_SM = 1u << 1,
	PORT_CAP_NOTICE = 1u << 2,
	PORT_CAP_TRAP = 1u << 3,
	PORT_CAP_OPT_IPD = 1u << 4,
	PORT_CAP_AUTO_MIGRATION = 1u << 5,
	PORT_CAP_SL_MAP = 1u << 6,
	PORT_CAP_MKEY_NVRAM = 1u << 7,
	PORT_CAP_PKEY_NVRAM = 1u << 8,
	PORT_CAP_LED_INFO = 1u << 9,
	PORT_CAP_SM_DISABLED = 1u << 10,
	PORT_CAP_SYS_IMAGE_GUID = 1u << 11,
	PORT_CAP_PKEY_SW_EXT_PORT_TRAP = 1u << 12,
	PORT_CAP_CABLE_INFO = 1u << 13,
	PORT_CAP_EXT_SPEEDS = 1u << 14,
	PORT_CAP_CAP_MASK2 = 1u << 15,
	PORT_CAP_CM = 1u << 16,
	PORT_CAP_SNMP = 1u << 17,
	PORT_CAP_REINIT = 1u << 18,
	PORT_CAP_DEV_MGT = 1u << 19,
	PORT_CAP_VENDOR_CLASS = 1u << 20,
	PORT_CAP_DR_NOTICE = 1u << 21,
	PORT_CAP_CAP_MASK_NOTICE = 1u << 22,
	PORT_CAP_BOOT_MGT = 1u << 23,
	PORT_CAP_LINK_LATENCY = 1u << 24,
	PORT_CAP_CLIENT_REREGISTER = 1u << 25,
	PORT_CAP_OTHER_LOCAL_CHANGES = 1u << 26,
	PORT_CAP_LINK_SPEED_WIDTH_PAIRS = 1u << 27,
	PORT_CAP_VENDOR_MADS = 1u << 28,
	PORT_CAP_MC_PKEY_TRAP_SUPPRESS = 1u << 29,
	PORT_CAP_MC_FDB_TOP = 1u << 30,
	PORT_CAP_HIERARCHY_INFO = 1u << 31,
};

enum wire_port_cap2 {
	PORT_CAP2_SET_NODE_DESC = 1 << 0,
	PORT_CAP2_PORT_INFO_EXT = 1 << 1,
	PORT_CAP2_VIRT = 1 << 2,
	PORT_CAP2_SWITCH_PORT_STATE_TABLE = 1 << 3,
	PORT_CAP2_LINK_WIDTH_2X = 1 << 4,
	PORT_CAP2_LINK_SPEED_HDR = 1 << 5,
	PORT_CAP2_MKEY_PROTECT_EXT = 1 << 6,
	PORT_CAP2_ENHANCED_TRAP_128 = 1 << 7,
	PORT_CAP2_PARTITION_TOP = 1 << 8,
	PORT_CAP2_ENHANCED_QOS_ARBITER = 1 << 9,
	PORT_CAP2_LINK_SPEED_NDR = 1 << 10,
	PORT_CAP2_EXT_SPEEDS2 = 1 << 11,
	PORT_CAP2_LINK_SPEED_XDR = 1 << 12,
};

/* Logical link states. IBTA 7.2.7. */
enum wire_port_state {
	PORT_STATE_NOP = 0, /* Set only: no change */
	PORT_STATE_DOWN = 1,
	PORT_STATE_INIT = 2,
	PORT_STATE_ARMED = 3,
	PORT_STATE_ACTIVE = 4,
	PORT_STATE_ACTIVE_DEFER = 5, /* verbs only: not in MADs */
	PORT_STATE_NUM,
};

enum wire_phys_state {
	PHYS_STATE_NOP = 0,
	PHYS_STATE_SLEEP = 1,
	PHYS_STATE_POLLING = 2,
	PHYS_STATE_DISABLED = 3,
	PHYS_STATE_TRAINING = 4,
	PHYS_STATE_LINK_UP = 5,
	PHYS_STATE_RECOVERY = 6,
	PHYS_STATE_PHY_TEST = 7,
	PHYS_STATE_NUM,
};

/* LinkWidth*: bits of Supported and Enabled; Active has one bit. In Enabled, 0 is "no change", 255 "all supported". */
enum wire_link_width {
	LINK_WIDTH_1X = 1 << 0,
	LINK_WIDTH_4X = 1 << 1,
	LINK_WIDTH_8X = 1 << 2,
	LINK_WIDTH_12X = 1 << 3,
	LINK_WIDTH_2X = 1 << 4,
	LINK_WIDTH_ALL_SUPPORTED = 255,
};

/* LinkSpeed*: the same, with 15 for "all supported". Active is 0 if LinkSpeedExtActive has the speed. */
enum wire_link_speed {
	LINK_SPEED_SDR = 1 << 0,
	LINK_SPEED_DDR = 1 << 1,
	LINK_SPEED_QDR = 1 << 2,
	LINK_SPEED_ALL_SUPPORTED = 15,
};

/*
 * LinkSpeedExt*: the same; 30 disables extended speeds and 31 is "all supported". The bits of LinkSpeedExt2* are
 * stored above them, shifted by LINK_SPEED_EXT2_SHIFT.
 */
#define LINK_SPEED_EXT2_SHIFT 5
enum wire_link_speed_ext {
	LINK_SPEED_EXT_NONE = 0,
	LINK_SPEED_EXT_FDR = 1 << 0,
	LINK_SPEED_EXT_EDR = 1 << 1,
	LINK_SPEED_EXT_HDR = 1 << 2,
	LINK_SPEED_EXT_NDR = 1 << 3,
	LINK_SPEED_EXT_XDR = 1 << LINK_SPEED_EXT2_SHIFT,
	LINK_SPEED_EXT_DISABLE = 30,
	LINK_SPEED_EXT_ALL_SUPPORTED = 31,
};

/* M_KeyProtectBits. IBTA 14.2.4. */
enum wire_mkey_protect {
	MKEY_PROTECT_NONE = 0,      /* Get always succeeds and returns the M_Key */
	MKEY_PROTECT_HIDE = 1,      /* Get succeeds, but PortInfo's M_Key is 0 without the M_Key */
	MKEY_PROTECT_GET = 2,       /* Get requires the M_Key, too */
	MKEY_PROTECT_GET_NVRAM = 3, /* as 2, the lease never expires */
};

/* VLCap and OperationalVLs: data VLs 0 .. n - 1 for codes 1 (1), 2 (2), 3 (4), 4 (8), 5 (15). 0 if reserved. */
static inline u8 wire_vl_count(u8 code)
{
	static const u8 count[] = { 0, 1, 2, 4, 8, 15 };

	return code < ARRAY_SIZE(count) ? count[code] : 0;
}

/* P_KeyTable. IBTA 14.2.5.7. Attribute modifier: switch port << 16 | block. */
#define PKEYTABLE_SIZE      64
#define PKEYTABLE_PER_BLOCK 32
#define PKEYTABLE_PKEY(i)   WIRE_FIELD(16 * (i), 16)

/* SLtoVLMappingTable. IBTA 14.2.5.8. Attribute modifier: input port << 8 | output port. */
#define SLTOVL_SIZE   8
#define SLTOVL_VL(sl) WIRE_FIELD(4 * (sl), 4)

/* VLArbitrationTable. IBTA 14.2.5.9. Attribute modifier: block << 16 | port; blocks 1, 2 low and 3, 4 high priority. */
#define VLARB_SIZE      64
#define VLARB_PER_BLOCK 32
#define VLARB_VL(i)     WIRE_FIELD(16 * (i) + 4, 4)
#define VLARB_WEIGHT(i) WIRE_FIELD(16 * (i) + 8, 8) /* 64-byte units */
enum wire_vlarb_block {
	VLARB_LOW_LO = 1,
	VLARB_LOW_HI = 2,
	VLARB_HIGH_LO = 3,
	VLARB_HIGH_HI = 4,
};

/* LinearForwardingTable. IBTA 14.2.5.10. Attribute modifier: block of 64 LIDs. */
#define LFT_SIZE      64
#define LFT_PER_BLOCK 64
#define LFT_BLOCK_MAX 767
#define LFT_PORT(i)   WIRE_FIELD(8 * (i), 8)
#define LFT_PORT_NONE 255

/* RandomForwardingTable. IBTA 14.2.5.11. Attribute modifier: block of 16 entries. */
#define RFT_SIZE      64
#define RFT_PER_BLOCK 16
#define RFT_LID(i)    WIRE_FIELD(32 * (i), 16)
#define RFT_VALID(i)  WIRE_FIELD(32 * (i) + 16, 1)
#define RFT_LMC(i)    WIRE_FIELD(32 * (i) + 17, 3)
#define RFT_PORT(i)   WIRE_FIELD(32 * (i) + 24, 8)

/* MulticastForwardingTable. IBTA 14.2.5.12. Attribute modifier: position << 28 | block of 32 LIDs from 0xc000. */
#define MFT_SIZE               64
#define MFT_PER_BLOCK          32
#define MFT_PORTS_PER_POSITION 16
#define MFT_BLOCK_MASK         0x1ff
#define MFT_POSITION_SHIFT     28
#define MFT_PORT_MASK(i)       WIRE_FIELD(16 * (i), 16) /* bit n: port 16 * position + n */

/* SMInfo. IBTA 14.2.5.13. */
#define SMINFO_SIZE      21
#define SMINFO_GUID      WIRE_FIELD(0, 64)
#define SMINFO_SM_KEY    WIRE_FIELD(64, 64)
#define SMINFO_ACT_COUNT WIRE_FIELD(128, 32)
#define SMINFO_PRIORITY  WIRE_FIELD(160, 4)
#define SMINFO_STATE     WIRE_FIELD(164, 4)

enum wire_sm_state {
	SM_STATE_NOT_ACTIVE = 0,
	SM_STATE_DISCOVERING = 1,
	SM_STATE_STANDBY = 2,
	SM_STATE_MASTER = 3,
	SM_STATE_NUM,
};

/* Attribute modifiers of SubnSet(SMInfo). IBTA 14.4.1. */
enum wire_sminfo_mod {
	SMINFO_MOD_HANDOVER = 1,
	SMINFO_MOD_ACKNOWLEDGE = 2,
	SMINFO_MOD_DISABLE = 3,
	SMINFO_MOD_STANDBY = 4,
	SMINFO_MOD_DISCOVER = 5,
	SMINFO_MOD_NUM,
};

/* VendorDiag. IBTA 14.2.5.14. */
#define VENDORDIAG_SIZE       64
#define VENDORDIAG_NEXT_INDEX WIRE_FIELD(0, 16)
#define VENDORDIAG_DATA       WIRE_FIELD(16, 496)

/* LedInfo. IBTA 14.2.5.15. */
#define LEDINFO_SIZE 4
#define LEDINFO_MASK WIRE_FIELD(0, 1)

/* Vendor attribute 0xff90 of Mellanox devices. */
#define MLNXEXTPORT_STATE_CHANGE_ENABLE WIRE_FIELD(24, 8)
#define MLNXEXTPORT_SPEED_SUPPORTED     WIRE_FIELD(56, 8)
#define MLNXEXTPORT_SPEED_ENABLED       WIRE_FIELD(88, 8)
#define MLNXEXTPORT_SPEED_ACTIVE        WIRE_FIELD(120, 8)
#define MLNXEXTPORT_FDR10               1 /* the bit in the speed fields */

/* Names for logs and output; "?" if the value has none. */
const char *wire_smp_attr_name(u16 attr);
const char *wire_port_state_name(u8 state); /* "Active", as in ibstat */
const char *wire_phys_state_name(u8 state); /* "LinkUp" */
const char *wire_sm_state_name(u8 state);
const char *wire_sminfo_mod_name(u32 mod);

#endif
