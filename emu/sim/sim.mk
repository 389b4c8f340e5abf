# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The simulation: fabric, subnet manager and traffic under a virtual clock.
SIM_ROOMS := emu/smhost fabric fabric/eth sm/sa sm emu/mad emu/fault emu/port emu/packet emu/wire emu/lib

PROGRAMS += $O/muslin-sim
SIM_OBJS := $(patsubst %,$O/emu/sim/%.o,sim_main stats traffic report html)
$O/muslin-sim: $(SIM_OBJS) $(patsubst %,$O/%.a,$(SIM_ROOMS))
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lm
