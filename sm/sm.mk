# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The subnet manager, and muslin-sm: the same on libibumad.
$(eval $(call room,sm,emu/wire emu/lib))

PROGRAMS += $O/muslin-sm
$O/muslin-sm: $O/sm/umad_main.o $O/sm.a $O/emu/wire.a $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -libumad -lpthread $(LIBS)
