# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# muslin. Each room has a fragment that names its programs and what its tests need; `make help` lists the targets.
SAN ?= 0
O ?= build$(if $(filter 1,$(SAN)),-san)
CC ?= gcc
PYTHON ?= /usr/bin/python3
prefix ?= /usr/local
Q := $(if $(V),,@)

CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS += -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wno-unused-parameter -fno-strict-aliasing -MMD -MP
LIBS := -Wl,--as-needed -ljansson -lisal -lpcap -luring
ifeq ($(SAN),1)
CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS += -fsanitize=address,undefined
endif

all:

include ci/room.mk
include $(sort $(wildcard emu/*/*.mk rxe/*.mk siw/*.mk fabric/*.mk fabric/*/*.mk sm/*.mk emu/*.mk harness/*.mk))
include ci/targets.mk
