# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pyverbs suite of the distribution on a host: nothing fails, and each test that skips says why."""

import gzip
import pathlib
import re
import shutil

import pytest

PACKAGED = pathlib.Path("/usr/share/doc/rdma-core/tests")


def unpack(folder):
    """Debian packs the longer files; Python wants them plain."""
    tests = folder / "tests"
    tests.mkdir()
    for f in PACKAGED.iterdir():
        if f.suffix == ".gz":
            (tests / f.stem).write_bytes(gzip.decompress(f.read_bytes()))
        elif f.is_file():
            shutil.copy(f, tests)
    return tests


@pytest.mark.timeout(900)
def test_pyverbs_suite(fabric):
    tests = unpack(fabric.folder)
    p = fabric.start("h1", "/usr/bin/python3", str(tests / "run_tests.py"), "-v", "--dev", "muslin0")
    out = p.wait(840, status=None)
    ran = int(re.search(r"^Ran (\d+) tests", out, re.M)[1])
    skipped = re.findall(r"^(test_\w+) .*skipped ['\"](.*)['\"]$", out, re.M)
    print("\n".join(sorted(f"skipped {name}: {why}" for name, why in skipped)))
    failed = re.findall(r"^(?:FAIL|ERROR): .*", out, re.M)
    assert not failed, "\n".join(failed) + out[-6000:]
    assert p.popen.returncode == 0, out[-6000:]
    assert ran - len(skipped) >= 40, f"only {ran - len(skipped)} of {ran} tests ran"
