# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a module's fragment calls: $1 the module, $2 the modules whose archives its programs and tests link after its own, in
# order. Every x.c but x_test.c, x_fuzz.c, x_bench.c and x_main.c goes into the archive; every x_test.c and x_bench.c
# becomes a program. <path>_LIBS and <path>_CFLAGS add to one program or object.
define module
$1_OBJS := $$(patsubst %.c,$$O/%.o,$$(filter-out %_test.c %_fuzz.c %_main.c %_bench.c,$$(wildcard $1/*.c)))
$1_BINS := $$(patsubst %.c,$$O/%,$$(wildcard $1/*_test.c $1/*_bench.c))
ARCHIVES += $$O/$1.a
TESTS += $$(filter %_test,$$($1_BINS))
BENCHES += $$(filter %_bench,$$($1_BINS))
FUZZERS += $$(patsubst %.c,$$O/fuzz/%,$$(wildcard $1/*_fuzz.c))
$$O/$1.a: $$($1_OBJS)
	@mkdir -p $$(@D) && rm -f $$@
	$$(Q)ar rcs $$@ $$^
$$($1_BINS): $$O/%: $$O/%.o $$O/$1.a $$(patsubst %,$$O/%.a,$2)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o %.a,$$^) $$($$*_LIBS) $$(LIBS)
$$(patsubst %.c,$$O/fuzz/%,$$(wildcard $1/*_fuzz.c)): $$O/fuzz/%: $$O/fuzz/%.o $$($1_OBJS:$$O/%=$$O/fuzz/%) \
		$$(foreach r,$2,$$(patsubst %.c,$$O/fuzz/%.o,$$(filter-out %_test.c %_fuzz.c %_main.c %_bench.c,$$(wildcard $$r/*.c))))
	$$(Q)clang -fsanitize=fuzzer,address,undefined -o $$@ $$^ $$($$*_LIBS) $$(LIBS)
$1: $$O/$1.a $$($1_BINS)
.PHONY: $1
endef

# Checks at each access to memory, with which a compilation takes twice as long. ASan finds what the last three would.
LEFT_TO_SAN := -fno-sanitize=alignment,null,object-size,pointer-overflow

$O/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $($*_CFLAGS) -c -o $@ $<

$O/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(Q)clang $(CPPFLAGS) $(filter-out -Werror,$(CFLAGS)) -Wno-everything $($*_CFLAGS) -O1 -g1 \
		-fsanitize=fuzzer-no-link,address,undefined $(LEFT_TO_SAN) -c -o $@ $<
