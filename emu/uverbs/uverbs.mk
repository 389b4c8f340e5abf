# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Host mode's server.
$(eval $(call room,emu/uverbs,rxe emu/wqe emu/cm emu/mad emu/hca emu/wire emu/lib))
