# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A guest's network card.
$(eval $(call room,emu/vnet,emu/vhost emu/wire emu/lib))
