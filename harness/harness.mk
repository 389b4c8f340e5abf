# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The harness: the bench's peers, and two programs that mean harm.
$(eval $(call room,harness,))
HELPERS += $O/hostile
$O/hostile: harness/hostile_main.c emu/uverbs/proto.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O1 -g -Wall -Wextra -Werror -o $@ $<
HELPERS += $O/hostile-guest
$O/hostile-guest: $O/harness/hostile_guest_main.o $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^
