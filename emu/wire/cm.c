/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of CM messages. IBTA 12.6. */
#include "emu/wire/cm.h"

const char *wire_cm_attr_name(u16 attr)
{
	static const char *const names[] = {
		"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR", "SAP", "SPR",
	};
	static_assert(ARRAY_SIZE(names) == CM_ATTR_SPR - CM_ATTR_REQ + 1, "one name for each message");

	return attr >= CM_ATTR_REQ && attr <= CM_ATTR_SPR ? names[attr - CM_ATTR_REQ] : "?";
}
