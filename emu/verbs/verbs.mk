# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Shared by the front ends: objects, attributes, rings and entries of rxe's user ABI.
$(eval $(call module,emu/verbs,emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
