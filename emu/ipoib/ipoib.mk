# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The IPoIB endpoint of a host-mode port.
$(eval $(call module,emu/ipoib,rxe emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
