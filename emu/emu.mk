# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon and the command line: they see every room.
MUSLIND_OBJS := $(patsubst %,$O/emu/%.o,muslind options addresses binding guests host iwarp manager sm_mad show control confine rundir)
MUSLIN_OBJS := $(patsubst %,$O/emu/%.o,muslin cli_up cli_show cli_trace rundir)
MUSLIND_ROOMS := $(patsubst %,$O/%.a,emu/ctl fabric fabric/eth sm emu/vdev emu/vnet emu/vhost emu/uverbs emu/wqe emu/cm rxe siw emu/mad emu/hca emu/wire emu/lib)
MUSLIND_OBJS += $O/emu/ether.o $O/emu/fault.o $O/emu/manager_fault.o $O/emu/timeline.o
MUSLIN_OBJS += $O/emu/cli_fault.o $O/emu/cli_top.o $O/emu/cli_svg.o
MUSLIN_OBJS += $O/emu/cli_vm.o

PROGRAMS += $O/muslind $O/muslin
$O/muslind: $(MUSLIND_OBJS) $(MUSLIND_ROOMS)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$O/muslin: $(MUSLIN_OBJS) $O/emu/ctl.a $O/emu/lib.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# The simulation: fabric, manager and traffic under a virtual clock.
PROGRAMS += $O/muslin-sim
$O/muslin-sim: $O/emu/sim.o $O/emu/sm_mad.o $(patsubst %,$O/%.a,fabric sm emu/mad emu/wire emu/lib)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

PROGRAMS += $O/muslin-vm
$O/muslin-vm: emu/guest/muslin-vm
	$(Q)ln -sf $(abspath $<) $@
