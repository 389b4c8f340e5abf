# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Packets inside the daemon: their pool, and conversion from and to the bytes of each link.
$(eval $(call module,emu/packet,emu/wire emu/lib))
