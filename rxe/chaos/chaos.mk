# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A seeded random test of the transport engine against a reference model of verbs.
$(eval $(call module,rxe/chaos,rxe emu/hca emu/fault emu/port emu/packet emu/wire emu/lib))
