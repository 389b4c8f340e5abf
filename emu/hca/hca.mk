# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
$(eval $(call module,emu/hca,emu/fault emu/port emu/packet emu/wire emu/lib))
