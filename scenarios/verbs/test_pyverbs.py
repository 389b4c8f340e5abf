# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The pyverbs suite of the distribution on a host: no test fails, and exactly those tests are skipped that
pyverbs_skips.txt lists, each with its reason.
"""

import gzip
import json
import pathlib
import shutil

import pytest
from muslin import wait_until

PACKAGED = pathlib.Path("/usr/share/doc/rdma-core/tests")
HERE = pathlib.Path(__file__).parents[1]
RUNNER = HERE / "programs/pyverbs_suite.py"


def unpack(folder):
    """Debian compresses the longer files; Python needs them uncompressed."""
    tests = folder / "tests"
    tests.mkdir()
    for f in PACKAGED.iterdir():
        if f.suffix == ".gz":
            (tests / f.stem).write_bytes(gzip.decompress(f.read_bytes()))
        elif f.is_file():
            shutil.copy(f, tests)
    return tests


SKIPS = pathlib.Path(__file__).with_name("pyverbs_skips.txt")


def expected_skips(file):
    """What must be skipped, {test: its reasons in versions of rdma-core}, and what may be: {(test, reason)}."""
    must, may = {}, set()
    for line in file.read_text().splitlines():
        name, _, why = line.lstrip("?").partition(" ")
        if line.startswith("?"):
            may.add((name, why))
        elif line and not line.startswith("#"):
            must.setdefault(name, set()).add(why)
    return must, may


def check_report(report, own=None, skips=SKIPS):
    """@own: reasons that are other ones than in @skips. Versions of rdma-core differ in which tests there are."""
    must, may = expected_skips(skips)
    must |= {t: {why} for t, why in (own or {}).items()}
    skipped = {t: why for t, why in report["skipped"].items() if (t, why) not in may}
    print("\n".join(f"{t} {why}" for t, why in sorted(report["skipped"].items())))
    assert not report["failed"], "\n".join(f"{t}:\n{trace}" for t, trace in report["failed"].items())
    assert {t: why for t, why in skipped.items() if why not in must.get(t, ())} == {}, "skipped"
    assert {t for t in must if t in report["tests"] and t not in skipped} == set(), "not skipped"
    assert len(report["tests"]) - len(report["skipped"]) >= 80, f"{len(report['skipped'])} tests were skipped"


def can_join(fabric, host):
    """A host's IPoIB interface joins the broadcast group some time after its port is up; other groups follow."""
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
    check_report(json.loads(result.read_text()))


def test_objects(fabric, program):
    """Queues are resized while in use."""
    out = fabric.run("h1", "/usr/bin/python3", program("objects.py"), "muslin0", fabric.port("h1")["lid"])
    assert out.split() == ["srq_resize", "cq_resize", "vectors", "1"]
