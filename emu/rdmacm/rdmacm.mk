# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# RDMA connection management by IP address.
$(eval $(call module,emu/rdmacm,emu/ipoib emu/cm emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
