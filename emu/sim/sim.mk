# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The simulation: fabric, subnet manager and traffic under a virtual clock.
SIM_ROOMS := emu/smhost fabric fabric/eth sm/sa sm emu/mad emu/fault emu/port emu/packet emu/wire emu/lib

$(eval $(call room,emu/sim,$(SIM_ROOMS)))
PROGRAMS += $O/muslin-sim
$O/muslin-sim: $O/emu/sim/sim_main.o $O/emu/sim.a $(patsubst %,$O/%.a,$(SIM_ROOMS))
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lm
