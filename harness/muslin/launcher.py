# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs that a wheel carries: where they are, and the commands that pip makes of them."""

import os
import pathlib
import shutil
import sys

CARRIED = pathlib.Path(__file__).with_name("_programs") / "bin"


def folder():
    """The folder with muslin and muslind: of this package, else of the PATH; None where there is none."""
    if (CARRIED / "muslin").exists():
        return CARRIED
    found = shutil.which("muslin")
    return pathlib.Path(found).resolve().parent if found else None


def main():
    """Runs the carried program that has this script's name."""
    name = pathlib.Path(sys.argv[0]).name
    program = CARRIED / name
    if not program.exists():
        sys.exit(f"{name}: this Python package carries no programs: install muslin's wheel, its .deb or its .rpm")
    os.execv(program, [str(program), *sys.argv[1:]])
