/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of SA attributes (IBTA 15.2.5) and status codes (15.2.3), and fields common to all PathRecords. */
#include "emu/wire/sa.h"

void wire_sa_path_limits(u8 *r, u8 mtu, u8 rate, u8 life)
{
	wire_set(r, PATHREC_MTU_SELECTOR, SA_SELECT_EXACTLY);
	wire_set(r, PATHREC_MTU, mtu);
	wire_set(r, PATHREC_RATE_SELECTOR, SA_SELECT_EXACTLY);
	wire_set(r, PATHREC_RATE, rate);
	wire_set(r, PATHREC_LIFE_SELECTOR, SA_SELECT_EXACTLY);
	wire_set(r, PATHREC_LIFE, life);
}

const char *wire_sa_attr_name(u16 attr)
{
	static const struct wire_name names[] = {
		{ SA_ATTR_CLASS_PORT_INFO, "ClassPortInfo" },
		{ SA_ATTR_NOTICE, "Notice" },
		{ SA_ATTR_INFORM_INFO, "InformInfo" },
		{ SA_ATTR_NODE_RECORD, "NodeRecord" },
		{ SA_ATTR_PORT_INFO_RECORD, "PortInfoRecord" },
		{ SA_ATTR_SL_TO_VL_RECORD, "SLtoVLMappingTableRecord" },
		{ SA_ATTR_SWITCH_INFO_RECORD, "SwitchInfoRecord" },
		{ SA_ATTR_LFT_RECORD, "LinearForwardingTableRecord" },
		{ SA_ATTR_RFT_RECORD, "RandomForwardingTableRecord" },
		{ SA_ATTR_MFT_RECORD, "MulticastForwardingTableRecord" },
		{ SA_ATTR_SM_INFO_RECORD, "SMInfoRecord" },
		{ SA_ATTR_LINK_RECORD, "LinkRecord" },
		{ SA_ATTR_GUID_INFO_RECORD, "GUIDInfoRecord" },
		{ SA_ATTR_SERVICE_RECORD, "ServiceRecord" },
		{ SA_ATTR_PKEY_TABLE_RECORD, "P_KeyTableRecord" },
		{ SA_ATTR_PATH_RECORD, "PathRecord" },
		{ SA_ATTR_VL_ARB_RECORD, "VLArbitrationTableRecord" },
		{ SA_ATTR_MCMEMBER_RECORD, "MCMemberRecord" },
		{ SA_ATTR_TRACE_RECORD, "TraceRecord" },
		{ SA_ATTR_MULTI_PATH_RECORD, "MultiPathRecord" },
		{ SA_ATTR_SERVICE_ASSOC_RECORD, "ServiceAssociationRecord" },
		{ SA_ATTR_INFORM_INFO_RECORD, "InformInfoRecord" },
	};

	return wire_name(names, ARRAY_SIZE(names), attr);
}

const char *wire_sa_status_name(u16 status)
{
	static const char *const names[] = {
		[SA_STATUS_OK >> 8] = "OK",
		[SA_STATUS_NO_RESOURCES >> 8] = "no resources",
		[SA_STATUS_REQ_INVALID >> 8] = "invalid request",
		[SA_STATUS_NO_RECORDS >> 8] = "no records",
		[SA_STATUS_TOO_MANY_RECORDS >> 8] = "too many records",
		[SA_STATUS_INVALID_GID >> 8] = "invalid GID",
		[SA_STATUS_INSUFFICIENT_COMPONENTS >> 8] = "insufficient components",
		[SA_STATUS_DENIED >> 8] = "request denied",
		[SA_STATUS_PRIORITY_SUGGESTED >> 8] = "priority suggested",
	};
	static_assert(ARRAY_SIZE(names) == (SA_STATUS_PRIORITY_SUGGESTED >> 8) + 1, "one name for each status");

	return (status >> 8) < ARRAY_SIZE(names) ? names[status >> 8] : "?";
}
