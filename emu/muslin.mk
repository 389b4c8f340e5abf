# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon and the command line.
PROGRAMS += $O/muslind
$O/muslind: $O/emu/muslind.o $O/fabric.a $O/emu/uverbs.a $O/rxe.a $O/emu/mad.a $O/emu/hca.a $O/emu/wire.a $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

PROGRAMS += $O/muslin
$O/muslin: $O/emu/muslin.o
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
