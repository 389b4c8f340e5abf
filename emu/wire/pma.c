/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of performance management attributes. IBTA 16.1.3. */
#include "emu/wire/pma.h"

const char *wire_pma_attr_name(u16 attr)
{
	static const struct wire_name names[] = {
		{ PMA_ATTR_CLASS_PORT_INFO, "ClassPortInfo" },
		{ PMA_ATTR_PORT_SAMPLES_CONTROL, "PortSamplesControl" },
		{ PMA_ATTR_PORT_SAMPLES_RESULT, "PortSamplesResult" },
		{ PMA_ATTR_PORT_COUNTERS, "PortCounters" },
		{ PMA_ATTR_PORT_RCV_ERROR_DETAILS, "PortRcvErrorDetails" },
		{ PMA_ATTR_PORT_XMIT_DISCARD_DETAILS, "PortXmitDiscardDetails" },
		{ PMA_ATTR_PORT_OP_RCV_COUNTERS, "PortOpRcvCounters" },
		{ PMA_ATTR_PORT_FLOW_CTL_COUNTERS, "PortFlowCtlCounters" },
		{ PMA_ATTR_PORT_VL_OP_PACKETS, "PortVLOpPackets" },
		{ PMA_ATTR_PORT_VL_OP_DATA, "PortVLOpData" },
		{ PMA_ATTR_PORT_VL_XMIT_FLOW_CTL_ERRORS, "PortVLXmitFlowCtlUpdateErrors" },
		{ PMA_ATTR_PORT_VL_XMIT_WAIT, "PortVLXmitWaitCounters" },
		{ PMA_ATTR_PORT_COUNTERS_EXT, "PortCountersExtended" },
		{ PMA_ATTR_PORT_SAMPLES_RESULT_EXT, "PortSamplesResultExtended" },
		{ PMA_ATTR_PORT_EXT_SPEEDS_COUNTERS, "PortExtendedSpeedsCounters" },
		{ PMA_ATTR_SW_PORT_VL_CONGESTION, "SwPortVLCongestion" },
		{ PMA_ATTR_PORT_XMIT_DATA_SL, "PortXmitDataSL" },
		{ PMA_ATTR_PORT_RCV_DATA_SL, "PortRcvDataSL" },
	};

	return wire_name(names, ARRAY_SIZE(names), attr);
}
