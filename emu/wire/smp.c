/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the subnet management attributes and of the states that they carry. */
#include "emu/wire/smp.h"

const char *wire_smp_attr_name(u16 attr)
{
	switch (attr) {
	case SMP_ATTR_NOTICE:
		return "Notice";
	case SMP_ATTR_NODE_DESC:
		return "NodeDescription";
	case SMP_ATTR_NODE_INFO:
		return "NodeInfo";
	case SMP_ATTR_SWITCH_INFO:
		return "SwitchInfo";
	case SMP_ATTR_GUID_INFO:
		return "GUIDInfo";
	case SMP_ATTR_PORT_INFO:
		return "PortInfo";
	case SMP_ATTR_PKEY_TABLE:
		return "P_KeyTable";
	case SMP_ATTR_SL_TO_VL:
		return "SLtoVLMappingTable";
	case SMP_ATTR_VL_ARB:
		return "VLArbitrationTable";
	case SMP_ATTR_LFT:
		return "LinearForwardingTable";
	case SMP_ATTR_RFT:
		return "RandomForwardingTable";
	case SMP_ATTR_MFT:
		return "MulticastForwardingTable";
	case SMP_ATTR_SM_INFO:
		return "SMInfo";
	case SMP_ATTR_VENDOR_DIAG:
		return "VendorDiag";
	case SMP_ATTR_LED_INFO:
		return "LedInfo";
	case SMP_ATTR_CABLE_INFO:
		return "CableInfo";
	case SMP_ATTR_PORT_INFO_EXT:
		return "PortInfoExtended";
	case SMP_ATTR_MLNX_EXT_PORT_INFO:
		return "MlnxExtPortInfo";
	}
	return "?";
}

static const char *name_of(const char *const *names, unsigned int n, u32 value)
{
	return value < n && names[value] ? names[value] : "?";
}

const char *wire_port_state_name(u8 state)
{
	static const char *const names[] = {
		[PORT_STATE_NOP] = "NoChange",    [PORT_STATE_DOWN] = "Down",
		[PORT_STATE_INIT] = "Initialize", [PORT_STATE_ARMED] = "Armed",
		[PORT_STATE_ACTIVE] = "Active",   [PORT_STATE_ACTIVE_DEFER] = "ActiveDefer",
	};
	static_assert(ARRAY_SIZE(names) == PORT_STATE_NUM, "one name for each port state");

	return name_of(names, ARRAY_SIZE(names), state);
}

const char *wire_phys_state_name(u8 state)
{
	static const char *const names[] = {
		[PHYS_STATE_NOP] = "NoChange",
		[PHYS_STATE_SLEEP] = "Sleep",
		[PHYS_STATE_POLLING] = "Polling",
		[PHYS_STATE_DISABLED] = "Disabled",
		[PHYS_STATE_TRAINING] = "PortConfigurationTraining",
		[PHYS_STATE_LINK_UP] = "LinkUp",
		[PHYS_STATE_RECOVERY] = "LinkErrorRecovery",
		[PHYS_STATE_PHY_TEST] = "PhyTest",
	};
	static_assert(ARRAY_SIZE(names) == PHYS_STATE_NUM, "one name for each physical state");

	return name_of(names, ARRAY_SIZE(names), state);
}

const char *wire_sm_state_name(u8 state)
{
	static const char *const names[] = {
		[SM_STATE_NOT_ACTIVE] = "NotActive",
		[SM_STATE_DISCOVERING] = "Discovering",
		[SM_STATE_STANDBY] = "Standby",
		[SM_STATE_MASTER] = "Master",
	};
	static_assert(ARRAY_SIZE(names) == SM_STATE_NUM, "one name for each SM state");

	return name_of(names, ARRAY_SIZE(names), state);
}

const char *wire_sminfo_mod_name(u32 mod)
{
	static const char *const names[] = {
		[SMINFO_MOD_HANDOVER] = "Handover", [SMINFO_MOD_ACKNOWLEDGE] = "Acknowledge",
		[SMINFO_MOD_DISABLE] = "Disable",   [SMINFO_MOD_STANDBY] = "Standby",
		[SMINFO_MOD_DISCOVER] = "Discover",
	};
	static_assert(ARRAY_SIZE(names) == SMINFO_MOD_NUM, "one name for each modifier");

	return name_of(names, ARRAY_SIZE(names), mod);
}
