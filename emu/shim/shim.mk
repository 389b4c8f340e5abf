# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The preload library. It is not sanitized: it lives in other people's programs.
SHIM_C := $(wildcard emu/shim/*.c)
SHIM := $O/libmuslin-shim.so
PROGRAMS += $(SHIM)
$(SHIM): $(SHIM_C) emu/shim/shim.h emu/host/proto.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARNINGS) -Wno-unused-parameter -U_FORTIFY_SOURCE -fPIC \
		-fvisibility=default -shared -o $@ $(SHIM_C) -ldl -lpthread
