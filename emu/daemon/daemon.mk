# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon: composed of every module.
DAEMON_MODULES := emu/smhost emu/ctl fabric/trunk fabric fabric/eth sm/sa sm emu/connectx emu/vfio emu/virtio emu/virtio/net emu/virtio/vhost emu/host emu/verbs emu/rdmacm emu/ipoib emu/cm \
	rxe/roce rxe siw emu/mad emu/hca emu/fault emu/port emu/packet emu/wire emu/lib
$(eval $(call module,emu/daemon,$(DAEMON_MODULES)))

PROGRAMS += $O/muslind
$O/muslind: $O/emu/daemon/muslind_main.o $O/emu/daemon.a $(patsubst %,$O/%.a,$(DAEMON_MODULES))
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
