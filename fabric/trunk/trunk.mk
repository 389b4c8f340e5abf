# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Trunks: links to ports of other daemons.
$(eval $(call module,fabric/trunk,fabric emu/fault emu/port emu/packet emu/wire emu/lib))
