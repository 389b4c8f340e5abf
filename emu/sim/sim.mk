# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The simulation: fabric, subnet manager and traffic under a virtual clock.
SIM_MODULES := emu/smhost fabric fabric/eth sm/sa sm emu/mad emu/fault emu/port emu/packet emu/wire emu/lib

$(eval $(call module,emu/sim,$(SIM_MODULES)))
PROGRAMS += $O/muslin-sim
$O/muslin-sim: $O/emu/sim/sim_main.o $O/emu/sim.a $(patsubst %,$O/%.a,$(SIM_MODULES))
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lm
