# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The preload library. It is not sanitized: it lives in other people's programs, of other distributions, too. So it needs libc.so.6 alone,
# and nothing of it that came after glibc 2.28 (scenarios/tools/test_foreign.py).
SHIM_C := $(filter-out %_test.c,$(wildcard emu/shim/*.c))
SHIM := $O/libmuslin-shim.so
PROGRAMS += $(SHIM)
$(SHIM): $(SHIM_C) emu/shim/shim.h emu/shim/old_libc.h emu/host/proto.h emu/shim/shim.mk
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARNINGS) -Wno-unused-parameter -U_FORTIFY_SOURCE -include emu/shim/old_libc.h \
		-fPIC -fvisibility=default -ftls-model=initial-exec \
		-shared -Wl,-z,nopack-relative-relocs -o $@ $(SHIM_C)

TESTS += $O/emu/shim/table_test
$O/emu/shim/table_test: $O/emu/shim/table_test.o $O/emu/shim/table.o $O/emu/shim/lock.o
	$(Q)$(CC) $(LDFLAGS) -o $@ $^
