# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The RoCE link layer of the InfiniBand transport.
$(eval $(call module,rxe/roce,rxe fabric/eth emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
rxe/roce/incast_test_LIBS := -Wl,--wrap=clock_gettime,--wrap=epoll_wait,--wrap=syscall
