# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The constants of libibverbs by name: a module of pyverbs up to rdma-core 58, and then a class for each enum."""

import enum

try:
    from pyverbs import enums

    globals().update(vars(enums))
except ImportError:
    from pyverbs import libibverbs_enums

    for kind in vars(libibverbs_enums).values():
        if isinstance(kind, enum.EnumMeta):
            globals().update(kind.__members__)
