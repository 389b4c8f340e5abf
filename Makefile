# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# muslin. Each room has a fragment that names its programs and what its tests need; `make help` lists the targets.
SAN ?= 0
O ?= build$(if $(filter 1,$(SAN)),-san)
CC ?= gcc
PKGS := jansson libisal
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS += -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wno-unused-parameter -fno-strict-aliasing -MMD -MP
ifeq ($(SAN),1)
CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS += -fsanitize=address,undefined
endif
LIBS := -ljansson -lisal

all:

# $1 room, $2 the rooms whose archives its programs and tests link after its own, in order.
# Every x.c but x_test.c, x_fuzz.c and x_main.c goes into the archive; every x_test.c becomes a program.
define room
$1_OBJS := $$(patsubst %.c,$$O/%.o,$$(filter-out %_test.c %_fuzz.c %_main.c %_bench.c,$$(wildcard $1/*.c)))
$1_TESTS := $$(patsubst %.c,$$O/%,$$(wildcard $1/*_test.c))
$1_FUZZ := $$(wildcard $1/*_fuzz.c)
$1_NEEDS := $2
ARCHIVES += $$O/$1.a
TESTS += $$($1_TESTS)
FUZZ += $$($1_FUZZ)
$$O/$1.a: $$($1_OBJS)
	@rm -f $$@
	$$(Q)ar rcs $$@ $$^
$$($1_TESTS): $$O/%: $$O/%.o $$O/$1.a $$(patsubst %,$$O/%.a,$2)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o %.a,$$^) $$($$*_LIBS) $$(LIBS)
$1: $$O/$1.a $$($1_TESTS)
.PHONY: $1
endef

Q := $(if $(V),,@)
include $(sort $(wildcard emu/*/*.mk rxe/*.mk fabric/*.mk sm/*.mk emu/*.mk harness/*.mk ci/*.mk))

$O/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $($*_CFLAGS) -c -o $@ $<

-include $(shell find $O -name '*.d' 2>/dev/null)

all: $(ARCHIVES) $(PROGRAMS)
unit: $(TESTS)
.PHONY: all unit
.SECONDARY:
