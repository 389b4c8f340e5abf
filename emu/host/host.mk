# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Host mode's server.
$(eval $(call module,emu/host,rxe emu/verbs emu/rdmacm emu/ipoib emu/cm emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
emu/host/readback_test_LIBS := -Wl,--wrap=recv
emu/host/late_test_LIBS := -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev
