# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The bench's peer, and three hostile programs: one in host mode, one in a guest's place, and one in a guest, which has no libraries for it.
$(eval $(call module,harness/bench,))
HELPERS += $O/hostile
$O/hostile: harness/hostile/hostile_main.c emu/host/proto.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O1 -g $(WARNINGS) -o $@ $<
HELPERS += $O/hostile-guest
$O/hostile-guest: $O/harness/hostile/hostile_guest_main.o $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^
HELPERS += $O/hostile-connectx
$O/hostile-connectx: harness/hostile/hostile_connectx_main.c emu/connectx/driver.h emu/connectx/format.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O1 -g $(WARNINGS) -static -o $@ $<
