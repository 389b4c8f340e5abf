# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Entries of rxe's user ABI.
$(eval $(call room,emu/wqe,emu/hca emu/wire emu/lib))
