# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The subnet manager.
$(eval $(call module,sm,sm/sa emu/port emu/packet emu/wire emu/lib))
