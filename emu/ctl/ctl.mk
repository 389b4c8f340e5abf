# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The control socket.
$(eval $(call module,emu/ctl,emu/lib))
