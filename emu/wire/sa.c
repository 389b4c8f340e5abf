/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the SA's attributes and status codes. */
#include "emu/wire/sa.h"

const char *wire_sa_attr_name(u16 attr)
{
	switch (attr) {
	case SA_ATTR_CLASS_PORT_INFO:
		return "ClassPortInfo";
	case SA_ATTR_NOTICE:
		return "Notice";
	case SA_ATTR_INFORM_INFO:
		return "InformInfo";
	case SA_ATTR_NODE_RECORD:
		return "NodeRecord";
	case SA_ATTR_PORT_INFO_RECORD:
		return "PortInfoRecord";
	case SA_ATTR_SL_TO_VL_RECORD:
		return "SLtoVLMappingTableRecord";
	case SA_ATTR_SWITCH_INFO_RECORD:
		return "SwitchInfoRecord";
	case SA_ATTR_LFT_RECORD:
		return "LinearForwardingTableRecord";
	case SA_ATTR_RFT_RECORD:
		return "RandomForwardingTableRecord";
	case SA_ATTR_MFT_RECORD:
		return "MulticastForwardingTableRecord";
	case SA_ATTR_SM_INFO_RECORD:
		return "SMInfoRecord";
	case SA_ATTR_LINK_RECORD:
		return "LinkRecord";
	case SA_ATTR_GUID_INFO_RECORD:
		return "GUIDInfoRecord";
	case SA_ATTR_SERVICE_RECORD:
		return "ServiceRecord";
	case SA_ATTR_PKEY_TABLE_RECORD:
		return "P_KeyTableRecord";
	case SA_ATTR_PATH_RECORD:
		return "PathRecord";
	case SA_ATTR_VL_ARB_RECORD:
		return "VLArbitrationTableRecord";
	case SA_ATTR_MCMEMBER_RECORD:
		return "MCMemberRecord";
	case SA_ATTR_TRACE_RECORD:
		return "TraceRecord";
	case SA_ATTR_MULTI_PATH_RECORD:
		return "MultiPathRecord";
	case SA_ATTR_SERVICE_ASSOC_RECORD:
		return "ServiceAssociationRecord";
	case SA_ATTR_INFORM_INFO_RECORD:
		return "InformInfoRecord";
	}
	return "?";
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
