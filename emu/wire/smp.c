/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of subnet management attributes (IBTA 14.2.5) and of port states (7.2.7). */
#include "emu/wire/smp.h"

const char *wire_smp_attr_name(u16 attr)
{
	static const struct wire_name names[] = {
		{ SMP_ATTR_NOTICE, "Notice" },
		{ SMP_ATTR_NODE_DESC, "NodeDescription" },
		{ SMP_ATTR_NODE_INFO, "NodeInfo" },
		{ SMP_ATTR_SWITCH_INFO, "SwitchInfo" },
		{ SMP_ATTR_GUID_INFO, "GUIDInfo" },
		{ SMP_ATTR_PORT_INFO, "PortInfo" },
		{ SMP_ATTR_PKEY_TABLE, "P_KeyTable" },
		{ SMP_ATTR_SL_TO_VL, "SLtoVLMappingTable" },
		{ SMP_ATTR_VL_ARB, "VLArbitrationTable" },
		{ SMP_ATTR_LFT, "LinearForwardingTable" },
		{ SMP_ATTR_RFT, "RandomForwardingTable" },
		{ SMP_ATTR_MFT, "MulticastForwardingTable" },
		{ SMP_ATTR_SM_INFO, "SMInfo" },
		{ SMP_ATTR_VENDOR_DIAG, "VendorDiag" },
		{ SMP_ATTR_LED_INFO, "LedInfo" },
		{ SMP_ATTR_CABLE_INFO, "CableInfo" },
		{ SMP_ATTR_PORT_INFO_EXT, "PortInfoExtended" },
		{ SMP_ATTR_MLNX_EXT_PORT_INFO, "MlnxExtPortInfo" },
	};

	return wire_name(names, ARRAY_SIZE(names), attr);
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
