# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Subnet administration.
$(eval $(call module,sm/sa,sm emu/port emu/packet emu/wire emu/lib))
