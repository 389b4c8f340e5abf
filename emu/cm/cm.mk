# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Communication management (IBTA 12).
$(eval $(call module,emu/cm,rxe emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
