# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The embedded subnet manager on the management layer of a CA port.
$(eval $(call module,emu/smhost,sm/sa sm emu/mad emu/port emu/packet emu/wire emu/lib))
