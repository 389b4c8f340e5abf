# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Build backend (PEP 517) of the Python package: setuptools', whose metadata and build folder are temporary. Its own
places are in the source tree, where they would stay, and where the folder build/ has the programs.
"""

import atexit
import os
import pathlib
import tempfile

from setuptools.build_meta import *  # noqa: F401, F403

_scratch = tempfile.TemporaryDirectory(prefix="muslin-wheel-")
atexit.register(_scratch.cleanup)
_config = pathlib.Path(_scratch.name, "setup.cfg")
_config.write_text(f"[egg_info]\negg_base = {_scratch.name}\n[build]\nbuild_base = {_scratch.name}/build\n")
os.environ["DIST_EXTRA_CONFIG"] = str(_config)
