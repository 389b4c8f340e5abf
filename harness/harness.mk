# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The harness: only the bench peers are compiled.
$(eval $(call room,harness,))
