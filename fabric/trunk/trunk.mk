# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Trunks: links to ports of other daemons. TLS needs GnuTLS; GNUTLS=0: a build without it.
ifndef GNUTLS
GNUTLS := $(shell echo '\#include <gnutls/gnutls.h>' | $(CC) -E -x c - >/dev/null 2>&1 && echo 1 || echo 0)
endif
ifeq ($(GNUTLS),1)
fabric/trunk/tls_CFLAGS := -DMUSLIN_GNUTLS
fabric/trunk/tls_test_CFLAGS := -DMUSLIN_GNUTLS
LIBS += -lgnutls
endif
fabric/trunk/swap_test_LIBS := -Wl,--wrap=getaddrinfo
$(eval $(call module,fabric/trunk,fabric emu/fault emu/port emu/packet emu/wire emu/lib))

# Compiled again when GnuTLS has been installed or removed
$O/fabric/trunk/tls.o $O/fabric/trunk/tls_test.o $O/fuzz/fabric/trunk/tls.o: $O/fabric/trunk/gnutls
$O/fabric/trunk/gnutls: FORCE
	@mkdir -p $(@D) && echo $(GNUTLS) | cmp -s - $@ || echo $(GNUTLS) >$@
FORCE:
.PHONY: FORCE
