# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A guest's HCA.
$(eval $(call room,emu/vdev,rxe emu/wqe emu/vhost emu/mad emu/hca emu/wire emu/lib))
