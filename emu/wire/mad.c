/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of MAD classes, methods and traps. */
#include "emu/wire/mad.h"

#include "emu/wire/sa.h"

const char *wire_mad_class_name(u8 mgmt_class)
{
	switch (mgmt_class) {
	case MAD_CLASS_SUBN_LID:
		return "Subn";
	case MAD_CLASS_SUBN_DIRECTED:
		return "SubnDR";
	case MAD_CLASS_SUBN_ADM:
		return "SubnAdm";
	case MAD_CLASS_PERF:
		return "Perf";
	case MAD_CLASS_BM:
		return "BM";
	case MAD_CLASS_DEV_MGT:
		return "DevMgt";
	case MAD_CLASS_CM:
		return "ComMgt";
	case MAD_CLASS_SNMP:
		return "SNMP";
	case MAD_CLASS_CONG:
		return "CongCtl";
	}
	if (mgmt_class >= MAD_CLASS_VENDOR1_MIN && mgmt_class <= MAD_CLASS_VENDOR1_MAX)
		return "Vendor";
	if (wire_mad_is_vendor2_class(mgmt_class))
		return "VendorOUI";
	return "?";
}

const char *wire_mad_method_name(u8 method)
{
	switch (method) {
	case MAD_METHOD_GET:
		return "Get";
	case MAD_METHOD_SET:
		return "Set";
	case MAD_METHOD_SEND:
		return "Send";
	case MAD_METHOD_TRAP:
		return "Trap";
	case MAD_METHOD_REPORT:
		return "Report";
	case MAD_METHOD_TRAP_REPRESS:
		return "TrapRepress";
	case MAD_METHOD_GET_RESP:
		return "GetResp";
	case MAD_METHOD_REPORT_RESP:
		return "ReportResp";
	case SA_METHOD_GET_TABLE:
		return "GetTable";
	case SA_METHOD_GET_TRACE_TABLE:
		return "GetTraceTable";
	case SA_METHOD_GET_MULTI:
		return "GetMulti";
	case SA_METHOD_DELETE:
		return "Delete";
	case SA_METHOD_GET_TABLE_RESP:
		return "GetTableResp";
	case SA_METHOD_GET_TRACE_TABLE_RESP:
		return "GetTraceTableResp";
	case SA_METHOD_GET_MULTI_RESP:
		return "GetMultiResp";
	case SA_METHOD_DELETE_RESP:
		return "DeleteResp";
	}
	return "?";
}

const char *wire_trap_name(u16 trap)
{
	switch (trap) {
	case TRAP_GID_IN_SERVICE:
		return "GID in service";
	case TRAP_GID_OUT_OF_SERVICE:
		return "GID out of service";
	case TRAP_MCAST_CREATED:
		return "multicast group created";
	case TRAP_MCAST_DELETED:
		return "multicast group deleted";
	case TRAP_UNPATH:
		return "path no longer valid";
	case TRAP_REPATH:
		return "path changed";
	case TRAP_LINK_STATE_CHANGE:
		return "link state change";
	case TRAP_LINK_INTEGRITY:
		return "local link integrity threshold";
	case TRAP_BUFFER_OVERRUN:
		return "buffer overrun threshold";
	case TRAP_FLOW_WATCHDOG:
		return "flow control watchdog expired";
	case TRAP_LOCAL_CHANGES:
		return "local changes";
	case TRAP_SYS_IMAGE_GUID:
		return "system image GUID changed";
	case TRAP_BAD_MKEY:
		return "bad M_Key";
	case TRAP_BAD_PKEY:
		return "bad P_Key";
	case TRAP_BAD_QKEY:
		return "bad Q_Key";
	case TRAP_BAD_PKEY_SWITCH:
		return "bad P_Key at switch port";
	}
	return "?";
}
