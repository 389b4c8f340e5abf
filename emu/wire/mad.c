/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of MAD classes (IBTA 13.4.4), methods (13.4.5) and traps (14.2.5.1), and name lookup. */
#include "emu/wire/mad.h"

#include "emu/wire/sa.h"

const char *wire_name(const struct wire_name *names, u32 n, u16 value)
{
	for (; n; n--, names++)
		if (names->value == value)
			return names->name;
	return "?";
}

const char *wire_mad_class_name(u8 mgmt_class)
{
	static const struct wire_name names[] = {
		{ MAD_CLASS_SUBN_LID, "Subn" },
		{ MAD_CLASS_SUBN_DIRECTED, "SubnDR" },
		{ MAD_CLASS_SUBN_ADM, "SubnAdm" },
		{ MAD_CLASS_PERF, "Perf" },
		{ MAD_CLASS_BM, "BM" },
		{ MAD_CLASS_DEV_MGT, "DevMgt" },
		{ MAD_CLASS_CM, "ComMgt" },
		{ MAD_CLASS_SNMP, "SNMP" },
		{ MAD_CLASS_CONG, "CongCtl" },
	};

	if (mgmt_class >= MAD_CLASS_VENDOR1_MIN && mgmt_class <= MAD_CLASS_VENDOR1_MAX)
		return "Vendor";
	if (wire_mad_is_vendor2_class(mgmt_class))
		return "VendorOUI";
	return wire_name(names, ARRAY_SIZE(names), mgmt_class);
}

const char *wire_mad_method_name(u8 method)
{
	static const struct wire_name names[] = {
		{ MAD_METHOD_GET, "Get" },
		{ MAD_METHOD_SET, "Set" },
		{ MAD_METHOD_SEND, "Send" },
		{ MAD_METHOD_TRAP, "Trap" },
		{ MAD_METHOD_REPORT, "Report" },
		{ MAD_METHOD_TRAP_REPRESS, "TrapRepress" },
		{ MAD_METHOD_GET_RESP, "GetResp" },
		{ MAD_METHOD_REPORT_RESP, "ReportResp" },
		{ SA_METHOD_GET_TABLE, "GetTable" },
		{ SA_METHOD_GET_TRACE_TABLE, "GetTraceTable" },
		{ SA_METHOD_GET_MULTI, "GetMulti" },
		{ SA_METHOD_DELETE, "Delete" },
		{ SA_METHOD_GET_TABLE_RESP, "GetTableResp" },
		{ SA_METHOD_GET_TRACE_TABLE_RESP, "GetTraceTableResp" },
		{ SA_METHOD_GET_MULTI_RESP, "GetMultiResp" },
		{ SA_METHOD_DELETE_RESP, "DeleteResp" },
	};

	return wire_name(names, ARRAY_SIZE(names), method);
}

const char *wire_trap_name(u16 trap)
{
	static const struct wire_name names[] = {
		{ TRAP_GID_IN_SERVICE, "GID in service" },
		{ TRAP_GID_OUT_OF_SERVICE, "GID out of service" },
		{ TRAP_MCAST_CREATED, "multicast group created" },
		{ TRAP_MCAST_DELETED, "multicast group deleted" },
		{ TRAP_UNPATH, "path no longer valid" },
		{ TRAP_REPATH, "path changed" },
		{ TRAP_LINK_STATE_CHANGE, "link state change" },
		{ TRAP_LINK_INTEGRITY, "local link integrity threshold" },
		{ TRAP_BUFFER_OVERRUN, "buffer overrun threshold" },
		{ TRAP_FLOW_WATCHDOG, "flow control watchdog expired" },
		{ TRAP_LOCAL_CHANGES, "local changes" },
		{ TRAP_SYS_IMAGE_GUID, "system image GUID changed" },
		{ TRAP_BAD_MKEY, "bad M_Key" },
		{ TRAP_BAD_PKEY, "bad P_Key" },
		{ TRAP_BAD_QKEY, "bad Q_Key" },
		{ TRAP_BAD_PKEY_SWITCH, "bad P_Key at switch port" },
	};

	return wire_name(names, ARRAY_SIZE(names), trap);
}
