# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the harness of this tree pytest's plugin."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "harness"))
pytest_plugins = ["muslin.plugin"]
