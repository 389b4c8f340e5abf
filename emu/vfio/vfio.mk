# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The vfio-user server.
$(eval $(call module,emu/vfio,emu/lib))
ifeq ($(RECORD),1)
emu/vfio/message_CFLAGS := -DVFIO_RECORD
endif
