# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The targets that people call. They install what is missing, build, and run.
JOBS := $(shell nproc)
FUZZ_RUNS ?= 3000
# Scenarios wait more than they compute: files side by side, the guests' ones first (conftest.py). -n 0: one by one.
WORKERS := $(shell expr $(JOBS) + 1)
PYTEST_ARGS ?=

all: $(ARCHIVES) $(PROGRAMS) $(HELPERS)

deps-%:
	@ci/deps $*

unit: $(TESTS)
	$(Q)for t in $(TESTS); do echo "  TEST $$t"; $$t >$$t.log 2>&1 || { tail -n 40 $$t.log; echo "FAILED: $$t"; exit 1; }; \
		tail -n 1 $$t.log; done

# Each door is fed its corpus, and what the fuzzer makes of it, for a bounded number of runs.
fuzz: $(FUZZERS)
	$(Q)for f in $(FUZZERS); do n=$${f#$O/fuzz/}; n=$${n%_fuzz}; c=$$(dirname $$n)/corpus/$$(basename $$n); \
		mkdir -p $O/fuzz/corpus/$$n $$c; echo "  FUZZ $$n"; \
		$$f -runs=$(FUZZ_RUNS) -max_total_time=40 -timeout=10 -rss_limit_mb=2048 -seed=1 -verbosity=0 $O/fuzz/corpus/$$n $$c >$$f.log 2>&1 || \
		{ tail -n 40 $$f.log; exit 1; }; done

check:
	$(Q)ci/check $O

test:
	$(Q)ci/deps test
	$(Q)$(MAKE) -j$(JOBS) all $(if $(filter 1,$(SAN)),,$(FUZZERS)) $(TESTS)
	$(Q)$(MAKE) check
	$(Q)$(MAKE) unit
	$(Q)$(if $(filter 1,$(SAN)),,$(MAKE) fuzz)
	$(Q)$(PYTHON) -m pytest --muslin-build=$O -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

demo:
	$(Q)ci/deps demo
	$(Q)$(MAKE) -j$(JOBS) all
	$(Q)PATH=$(abspath $O):$$PATH ci/demo
	$(Q)if ci/deps vm; then echo; echo "The same with guests' kernels:"; ci/demo-guests $O; \
	else echo "Without QEMU the guests' half is left out."; fi

bench:
	$(Q)ci/deps test
	$(Q)$(MAKE) -j$(JOBS) all $(BENCHES)
	$(Q)$(PYTHON) ci/bench $O $(BENCH)

asan:
	$(Q)$(MAKE) test SAN=1

install: all
	install -d $(DESTDIR)$(prefix)/bin $(DESTDIR)$(prefix)/lib/muslin $(DESTDIR)$(prefix)/share/man/man1 \
		$(DESTDIR)$(prefix)/share/man/man5 $(DESTDIR)$(prefix)/share/man/man8
	install $(filter-out %.so,$(PROGRAMS)) $(DESTDIR)$(prefix)/bin
	install -m 644 $(filter %.so,$(PROGRAMS)) $(DESTDIR)$(prefix)/lib/muslin
	install -d $(DESTDIR)$(prefix)/share/muslin/src/emu/abi $(DESTDIR)$(prefix)/share/muslin/src/emu/guest/image
	cp -r emu/guest/image/*.py emu/guest/image/root $(DESTDIR)$(prefix)/share/muslin/src/emu/guest/image
	install -m 644 emu/abi/*.h $(DESTDIR)$(prefix)/share/muslin/src/emu/abi
	install -m 644 emu/guest/*.[ch] emu/guest/Kbuild $(DESTDIR)$(prefix)/share/muslin/src/emu/guest
	install -m 644 emu/guest/dkms.conf $(DESTDIR)$(prefix)/share/muslin/src
	for s in 1 5 8; do install -m 644 man/*.$$s $(DESTDIR)$(prefix)/share/man/man$$s; done

clean:
	rm -rf build build-san

help:
	@echo "make demo     install what is missing, build, and show a fabric at work"
	@echo "make test     everything: checks, unit tests, fuzzers over their corpora, scenarios (SAN=1: ASan and UBSan)"
	@echo "make all      build only           make check   static checks only"
	@echo "make bench    ratios, each against a peer measured in the same run (BENCH="hosts fabric": some sections)"
	@echo "make fuzz     FUZZ_RUNS=n runs of each fuzz target"
	@echo "make install  DESTDIR= prefix=$(prefix)"

.PHONY: all unit fuzz check test demo bench asan install clean help
.SECONDARY:
-include $(shell find $O -name '*.d' 2>/dev/null)
