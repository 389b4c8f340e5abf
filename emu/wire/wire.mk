# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Formats: what its tests need beyond its own library.

emu/wire/layout_test_LIBS := -libmad
$(eval $(call module,emu/wire,emu/lib))
