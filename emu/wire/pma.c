/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the performance management attributes. */
#include "emu/wire/pma.h"

const char *wire_pma_attr_name(u16 attr)
{
	switch (attr) {
	case PMA_ATTR_CLASS_PORT_INFO:
		return "ClassPortInfo";
	case PMA_ATTR_PORT_SAMPLES_CONTROL:
		return "PortSamplesControl";
	case PMA_ATTR_PORT_SAMPLES_RESULT:
		return "PortSamplesResult";
	case PMA_ATTR_PORT_COUNTERS:
		return "PortCounters";
	case PMA_ATTR_PORT_RCV_ERROR_DETAILS:
		return "PortRcvErrorDetails";
	case PMA_ATTR_PORT_XMIT_DISCARD_DETAILS:
		return "PortXmitDiscardDetails";
	case PMA_ATTR_PORT_OP_RCV_COUNTERS:
		return "PortOpRcvCounters";
	case PMA_ATTR_PORT_FLOW_CTL_COUNTERS:
		return "PortFlowCtlCounters";
	case PMA_ATTR_PORT_VL_OP_PACKETS:
		return "PortVLOpPackets";
	case PMA_ATTR_PORT_VL_OP_DATA:
		return "PortVLOpData";
	case PMA_ATTR_PORT_VL_XMIT_FLOW_CTL_ERRORS:
		return "PortVLXmitFlowCtlUpdateErrors";
	case PMA_ATTR_PORT_VL_XMIT_WAIT:
		return "PortVLXmitWaitCounters";
	case PMA_ATTR_PORT_COUNTERS_EXT:
		return "PortCountersExtended";
	case PMA_ATTR_PORT_SAMPLES_RESULT_EXT:
		return "PortSamplesResultExtended";
	case PMA_ATTR_PORT_EXT_SPEEDS_COUNTERS:
		return "PortExtendedSpeedsCounters";
	case PMA_ATTR_SW_PORT_VL_CONGESTION:
		return "SwPortVLCongestion";
	case PMA_ATTR_PORT_XMIT_DATA_SL:
		return "PortXmitDataSL";
	case PMA_ATTR_PORT_RCV_DATA_SL:
		return "PortRcvDataSL";
	}
	return "?";
}
