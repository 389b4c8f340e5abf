# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""UCX as it is installed here."""

import pathlib

import pytest

HAS_VERBS = pytest.mark.skipif(
    not list(pathlib.Path("/usr/lib").glob("*/ucx/libuct_ib.so*")), reason="UCX is built without verbs"
)
