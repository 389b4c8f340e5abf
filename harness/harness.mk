# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The bench's peer, and four hostile programs: one in host mode, two in a guest's place, and one in a guest, which has no libraries for it.
$(eval $(call module,harness/bench,))
HELPERS += $O/hostile
$O/hostile: harness/hostile/hostile_main.c harness/hostile/draw.h emu/host/proto.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O1 -g $(WARNINGS) -o $@ $<
HELPERS += $O/hostile-guest
$O/hostile-guest: $O/harness/hostile/hostile_guest_main.o $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^
HELPERS += $O/hostile-qemu
$O/hostile-qemu: $O/harness/hostile/hostile_qemu_main.o $O/emu/vfio.a $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
HELPERS += $O/hostile-connectx
$O/hostile-connectx: harness/hostile/hostile_connectx_main.c
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O1 -g $(WARNINGS) -Wno-unused-parameter -MMD -MP -static -o $@ $<
