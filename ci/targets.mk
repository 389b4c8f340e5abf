# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The targets that people call. They install what is missing, build, and run.
JOBS := $(shell nproc)
FUZZ_RUNS ?= 1500
# Scenarios wait more than they compute: files side by side, the guests' ones first (conftest.py). -n 0: one by one.
WORKERS := $(shell expr $(JOBS) + 1)
PYTEST_ARGS ?=
# Scenarios that `make test` runs with ASan and UBSan, in the time that CI has: those of what programs, guests and peers
# can send: verbs, rdma_cm, hostile programs, guests and RoCE peers, late memory, and the tables of rules. It runs the
# others without: what boots guests, faults, iWARP, perftest, pyverbs, OpenSM's tests and the diagnostics. All of them
# with sanitizers: make test SAN=1. Without: SAN_SCENARIOS=. With PYTEST_ARGS nothing is left out.
SAN_SCENARIOS ?= verbs rdmacm sm hostile hostile_guest roce_hostile late_clients descriptors forks rules_verbs rules_smp rules_sa rules_cm
SAN_FILES := $(foreach s,$(SAN_SCENARIOS),$(wildcard scenarios/*/test_$s.py))
# Scenarios that run with each fabric split over two daemons, too: all by `make test-shards`, SHARD_SOME by `make test`.
SHARD_SOME ?= diags faults rdmacm
SHARD_SCENARIOS ?= $(SHARD_SOME) fault_links fault_packets fault_hca manager_faults through_faults parity sm opensm sa perftest
shard_files = $(foreach s,$1,$(wildcard scenarios/*/test_$s.py))
# Guests resume where they can, which saves most of each boot.
test test-connectx san san-scenarios: export MUSLIN_SNAPSHOT ?= 1

all: $(ARCHIVES) $(PROGRAMS)

helpers: $(HELPERS) # of scenarios and the bench

deps-%:
	@ci/deps $*

unit: $(TESTS:%=%.run)
$(TESTS:%=%.run): %.run: %
	$(Q)$< >$<.log 2>&1 || { tail -n 40 $<.log; echo "FAILED: $<"; exit 1; }; echo "  TEST $<: $$(tail -n 1 $<.log)"

print-tests: # their names, for ci/arm64
	@echo $(TESTS)

# Each parser runs on its corpus, and on what the fuzzer derives from it, for a bounded number of runs.
fuzz: $(FUZZERS:%=%.run)
$(FUZZERS:%=%.run): $O/fuzz/%_fuzz.run: $O/fuzz/%_fuzz
	$(Q)c=$(dir $*)corpus/$(notdir $*); mkdir -p $O/fuzz/corpus/$* $$c; echo "  FUZZ $*"; \
		$< -runs=$(FUZZ_RUNS) -max_total_time=10 -timeout=10 -rss_limit_mb=2048 -seed=1 -verbosity=0 $O/fuzz/corpus/$* $$c >$<.log 2>&1 || \
		{ tail -n 40 $<.log; exit 1; }

check:
	$(Q)ci/check $O

tests: $(TESTS)

# What can be compiled meanwhile waits neither for downloads nor for dpkg: `all`, and what `san` will link. Unit tests run
# with sanitizers alone, but for random verbs, of which a processor does many more without.
CHAOS_TEST := $O/rxe/chaos/chaos_test
test:
	$(Q)ci/deps build
	$(Q)$(MAKE) -j$(WORKERS) deps-test all $(if $(filter 1,$(SAN)),,san-archives)
	$(Q)$(MAKE) -j$(JOBS) all helpers $(if $(filter 1,$(SAN)),tests,$(FUZZERS) $(CHAOS_TEST) san-programs)
	$(Q)$(MAKE) -j$(JOBS) check $(if $(filter 1,$(SAN)),unit,fuzz $(CHAOS_TEST).run san-unit)
	$(Q)$(PYTHON) -m pytest --muslin-user=nobody --muslin-build=$O -n $(WORKERS) --dist loadfile $(PYTEST_ARGS) \
		$(if $(filter 1,$(SAN))$(strip $(PYTEST_ARGS)),,$(SAN_FILES:%=--ignore=%))
	$(Q)$(if $(strip $(PYTEST_ARGS)),,$(call pytest_shards,$(SHARD_SOME)))
	$(Q)$(if $(filter 1,$(SAN)),,$(MAKE) san-scenarios)

pytest_shards = $(PYTHON) -m pytest --muslin-user=nobody --muslin-build=$O --muslin-shards=2 -n $(WORKERS) --dist loadfile \
	$(PYTEST_ARGS) $(call shard_files,$1)

test-shards: all helpers
	$(Q)$(call pytest_shards,$(SHARD_SCENARIOS))

# All scenarios of guests with a ConnectX, of which `make test` runs some, and a Debian on a disk.
test-connectx: export MUSLIN_DEBIAN = 1
test-connectx: all helpers
	$(Q)$(PYTHON) -m pytest --muslin-user=nobody --muslin-build=$O --muslin-model=connectx -n $(WORKERS) \
		--dist loadfile $(PYTEST_ARGS) scenarios/guests

archives: $(ARCHIVES)

san-archives: all
	$(Q)$(MAKE) SAN=1 archives

san-programs:
	$(Q)$(MAKE) SAN=1 all helpers tests

san-unit:
	$(Q)$(MAKE) SAN=1 unit

# All unit tests, which include random verbs (rxe/chaos), and SAN_SCENARIOS, which are the end of `make test`.
san:
	$(Q)$(MAKE) -j$(JOBS) san-programs
	$(Q)$(MAKE) -j$(JOBS) san-unit
	$(Q)$(MAKE) san-scenarios

san-scenarios:
	$(Q)$(if $(SAN_FILES),$(PYTHON) -m pytest --muslin-user=nobody --muslin-build=build-san -n $(WORKERS) --dist loadfile $(SAN_FILES))

demo:
	$(Q)ci/deps demo
	$(Q)$(MAKE) -j$(JOBS) all
	$(Q)PATH='$(abspath $O)':$$PATH ci/demo
	$(Q)if ci/deps vm; then echo; echo "The same with guests' kernels:"; ci/demo-guests $O; \
	else echo "Without QEMU the guests' half is left out."; fi

# The topologies of docs/examples under random traffic, simulated.
examples: $O/muslin-sim
	$(Q)for t in docs/examples/*.topo; do echo "== $$t"; $< --summary --seconds 0.0002 --load 0.5 --size 2048 $$t || exit 1; done

bench:
	$(Q)ci/deps test
	$(Q)$(MAKE) -j$(JOBS) all helpers $(BENCHES)
	$(Q)$(PYTHON) ci/bench $O $(BENCH)

# Random verbs against a model of them, for as long as one likes: CHAOS="--seconds 600 --seed 7". rxe/chaos has the words.
CHAOS ?= --ops 1000000
chaos: $O/rxe/chaos/chaos_test
	$(Q)$< $(CHAOS)

# The same with programs, the distribution's libraries and a daemon: so many operations of each program (scenarios/verbs/test_chaos.py).
CHAOS_OPS ?= 100000
chaos-programs: all helpers
	$(Q)MUSLIN_CHAOS=$(CHAOS_OPS) $(PYTHON) -m pytest --muslin-build=$O -s scenarios/verbs/test_chaos.py $(PYTEST_ARGS)

asan:
	$(Q)$(MAKE) test SAN=1

install: all
	$(Q)ci/install install $O '$(DESTDIR)' '$(prefix)' '$(libdir)'

uninstall: all
	$(Q)ci/install uninstall $O '$(DESTDIR)' '$(prefix)' '$(libdir)'

# Packages, into $O/packages: Debian's, RPM's, and a wheel that holds the programs, too.
deb rpm wheel:
	$(Q)ci/deps package
	$(Q)ci/package $@ $O

clean:
	rm -rf build build-san

help:
	@echo "make demo     install what is missing, build, and show a fabric at work"
	@echo "make test     everything: checks, unit tests, fuzzers over their corpora, scenarios (SAN=1: ASan and UBSan)"
	@echo "make all      build only           make check   static checks only"
	@echo "make helpers  programs of scenarios and the bench, which make test builds, too"
	@echo "make chaos    random verbs, faults and kills against a model of verbs (CHAOS='--seconds 600 --seed 7')"
	@echo "make chaos-programs    the same with programs on a fabric, CHAOS_OPS=n operations of each"
	@echo "make examples the topologies of docs/examples under traffic, simulated"
	@echo "make bench    ratios, each against a peer measured in the same run (BENCH='hosts fabric': some sections)"
	@echo "make san      unit tests and some scenarios with ASan and UBSan, as make test has them (make test SAN=1: all)"
	@echo "make test-shards    scenarios with each fabric split over two daemons, of which make test runs some"
	@echo "make test-connectx  all scenarios of guests with a ConnectX, of which make test runs some"
	@echo "make fuzz     FUZZ_RUNS=n runs of each fuzz target"
	@echo "make install  DESTDIR= prefix=$(prefix) libdir=$(libdir); make uninstall removes the same files"
	@echo "make deb | rpm | wheel    packages, into $O/packages"

.PHONY: all archives san-archives san-programs san-unit san-scenarios helpers tests unit $(TESTS:%=%.run) print-tests san fuzz $(FUZZERS:%=%.run) check test test-connectx test-shards demo examples bench chaos chaos-programs asan install uninstall deb rpm wheel clean help
.SECONDARY:
-include $(shell find $O -name '*.d' 2>/dev/null)
