# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# muslin-sm: the subnet manager as a program of its own, on libibumad.
PROGRAMS += $O/muslin-sm
$O/muslin-sm: $O/sm/umad/umad_main.o $O/sm/sa.a $O/sm.a $O/emu/packet.a $O/emu/wire.a $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -libumad -lpthread $(LIBS)
