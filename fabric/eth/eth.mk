# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Simulated Ethernet.
$(eval $(call module,fabric/eth,emu/fault emu/port emu/packet emu/wire emu/lib))
