# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The iWARP transport engine.
$(eval $(call module,siw,emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
