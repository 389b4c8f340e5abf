# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs in a wheel: their location, and the commands that pip installs for them."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import NoReturn

CARRIED = pathlib.Path(__file__).with_name("_programs") / "bin"


def folder() -> pathlib.Path | None:
    """The directory of muslin and muslind: of this package, else of the PATH; None: not found."""
    if (CARRIED / "muslin").exists():
        return CARRIED
    found = shutil.which("muslin")
    return pathlib.Path(found).resolve().parent if found else None


def main() -> NoReturn:
    """Runs the packaged program with this script's name."""
    name = pathlib.Path(sys.argv[0]).name
    program = CARRIED / name
    if not program.exists():
        sys.exit(f"{name}: this Python package carries no programs: install muslin's wheel, its .deb or its .rpm")
    os.execv(program, [str(program), *sys.argv[1:]])
