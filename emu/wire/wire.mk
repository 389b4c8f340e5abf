# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Wire formats; the layout test compares with libibmad's.

emu/wire/layout_test_LIBS := -libmad
$(eval $(call module,emu/wire,emu/lib))
