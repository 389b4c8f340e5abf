# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A guest's HCA as a ConnectX adapter.
$(eval $(call module,emu/connectx,rxe emu/verbs emu/vfio emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
# RECORD=1: a guest with MUSLIN_CONNECTX_RECORD in the daemon's environment writes what its driver does for the fuzzer's corpus.
ifeq ($(RECORD),1)
$(foreach f,command corpus wqe,$(eval emu/connectx/$f_CFLAGS := -DCX_RECORD))
endif
emu/connectx/format_test_CFLAGS := $(patsubst %,-isystem %,$(lastword $(wildcard /usr/src/linux-headers-*-common/include/linux/mlx5)))
