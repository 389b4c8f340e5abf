# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The harness: the bench's peers, and a program that means harm.
$(eval $(call room,harness,))
HELPERS += $O/hostile
$O/hostile: harness/hostile_main.c emu/uverbs/proto.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O1 -g -Wall -Wextra -Werror -o $@ $<
