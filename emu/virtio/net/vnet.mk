# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A guest's network card.
$(eval $(call module,emu/virtio/net,emu/virtio/vhost emu/fault emu/port emu/packet emu/wire emu/lib))
