# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A guest's HCA.
$(eval $(call module,emu/virtio,rxe emu/verbs emu/virtio/vhost emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
