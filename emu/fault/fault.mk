# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
$(eval $(call module,emu/fault,emu/packet emu/wire emu/lib))
