# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The vhost-user back end.
$(eval $(call module,emu/virtio/vhost,emu/lib))
