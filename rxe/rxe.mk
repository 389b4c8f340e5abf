# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The InfiniBand transport engine.
$(eval $(call room,rxe,emu/hca emu/wire emu/lib))
rxe/rxe_test_LIBS := -Wl,--wrap=realloc
rxe/incast_test_LIBS := -Wl,--wrap=clock_gettime,--wrap=epoll_wait,--wrap=epoll_pwait2 $O/fabric/eth.a $O/emu/wire.a $O/emu/lib.a
$O/rxe/incast_test: $O/fabric/eth.a
