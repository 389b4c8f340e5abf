# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The subnet manager, and muslin-sm: the same on libibumad.
$(eval $(call room,sm,emu/wire emu/lib))
