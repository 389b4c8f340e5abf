# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The interface between a port and its link.
$(eval $(call module,emu/port,emu/packet emu/wire emu/lib))
