# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The pyverbs suite of the distribution on a host: nothing fails, and just those tests are skipped that pyverbs_skips.txt
names, each for the reason that stands there.
"""

import gzip
import json
import pathlib
import shutil

import pytest
from muslin import wait_until

PACKAGED = pathlib.Path("/usr/share/doc/rdma-core/tests")
HERE = pathlib.Path(__file__).parent
RUNNER = HERE.parent / "harness" / "pyverbs_suite.py"


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


def expected_skips():
    """What must be skipped and what may be, for the machine decides: {test: reason}."""
    must, may = {}, {}
    for line in (HERE / "pyverbs_skips.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, why = line.lstrip("?").split(None, 1)
            (may if line.startswith("?") else must)[name] = why
    return must, may


def can_join(fabric, host):
    """A host's IP interface joins the broadcast group some time after its port is up; other groups follow that one."""
    out = fabric.run(host, "mckey", "-m", "239.9.9.9", "-b", fabric.ip(host), "-s", "-C", "1", status=None)
    return "joined dgid" in out


@pytest.mark.timeout(900)
def test_pyverbs_suite(fabric):
    tests = unpack(fabric.folder)
    wait_until(lambda: can_join(fabric, "h1"), 30, "a multicast group")
    runner = shutil.copy(RUNNER, fabric.folder)
    result = fabric.folder / "result.json"
    args = [tests, result, fabric.ip("h1"), "-v", "--dev", "muslin0"]
    out = fabric.run("h1", "/usr/bin/python3", runner, *args, timeout=840)
    assert result.exists(), out[-6000:]
    report = json.loads(result.read_text())
    assert not report["failed"], "\n".join(f"{t}:\n{trace}" for t, trace in report["failed"].items())
    must, may = expected_skips()
    skipped = {t: why for t, why in report["skipped"].items() if may.get(t) != why}
    print("\n".join(f"{t} {why}" for t, why in sorted(report["skipped"].items())))
    assert skipped == must
    assert report["ran"] - len(report["skipped"]) >= 80, f"of {report['ran']} tests {len(report['skipped'])} skipped"


def test_objects(fabric):
    """Queues change their size under way."""
    program = shutil.copy(HERE / "programs" / "objects.py", fabric.folder)
    out = fabric.run("h1", "/usr/bin/python3", program, "muslin0", fabric.port("h1")["lid"])
    assert out.split() == ["srq_resize", "cq_resize", "vectors", "1"]
