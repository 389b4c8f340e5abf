# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# muslin. Each module (a directory) has a fragment that names its programs and what its tests need; `make help` lists the targets.
# O=build-san alone means SAN=1, too: the tests' `make install` names the folder only.
ifeq ($(origin SAN),undefined)
SAN := $(if $(filter %-san,$(O)),1,0)
endif
O ?= build$(if $(filter 1,$(SAN)),-san)
# One name for a folder: the compiler's dependency files contain it. subst, since the path of the tree may have spaces.
override O := $(subst $(CURDIR)/,,$(abspath $(O)))
CC ?= gcc
PYTHON ?= /usr/bin/python3
prefix ?= /usr/local
libdir ?= $(prefix)/lib
Q := $(if $(V),,@)

# CI sets WERROR=1: a compiler newer than those that it has must not stop a build for a new warning.
WARNINGS := -Wall -Wextra -Wno-missing-field-initializers -Wno-gnu-variable-sized-type-not-at-end $(if $(filter 1,$(WERROR)),-Werror)
CPPFLAGS += -I. -D_GNU_SOURCE
# With sanitizers -O1 and line numbers alone: a build takes half as long, and runs nearly as fast.
CFLAGS += -std=gnu11 $(if $(filter 1,$(SAN)),-O1 -g1,-O2 -g) $(WARNINGS) -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wno-unused-parameter -fno-strict-aliasing -MMD -MP
LIBS := -Wl,--as-needed -ljansson -lisal -lnettle -lpcap -luring
ifeq ($(SAN),1)
CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS += -fsanitize=address,undefined
endif

all:

include ci/module.mk
include $(sort $(foreach r,emu rxe siw fabric sm harness,$(wildcard $r/*.mk $r/*/*.mk $r/*/*/*.mk)))
include ci/targets.mk
