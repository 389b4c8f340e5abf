# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The command line, a client of the control socket.
$(eval $(call module,emu/cli,emu/ctl emu/lib))

emu/cli/cli_env_CFLAGS := -DMUSLIN_LIBDIR='"$(libdir)/muslin"'
PROGRAMS += $O/muslin
$O/muslin: $O/emu/cli/muslin_main.o $O/emu/cli.a $O/emu/ctl.a $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

PROGRAMS += $O/muslin-rsh
$O/muslin-rsh: emu/cli/muslin-rsh
	$(Q)mkdir -p $O && ln -sf '$(abspath $<)' $@

PROGRAMS += $O/muslin-vm
$O/muslin-vm: emu/guest/muslin-vm
	$(Q)mkdir -p $O && ln -sf '$(abspath $<)' $@
