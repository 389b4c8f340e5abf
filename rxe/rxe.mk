# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The InfiniBand transport engine.
$(eval $(call module,rxe,emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
rxe/rxe_test_LIBS := -Wl,--wrap=realloc
