# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The pyverbs suite of the distribution on a host: no test fails, and exactly those tests are skipped that
pyverbs_skips.txt lists, each with its reason; on RoCE with the differences of pyverbs_skips_roce.txt.

    h1 -- leaf1 ...       r1 -- sw1
"""

import compileall
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
    """Uncompressed, since Debian compresses the longer files, and compiled, since guests are slow at that."""
    tests = folder / "tests"
    tests.mkdir()
    for f in PACKAGED.iterdir():
        if f.suffix == ".gz":
            (tests / f.stem).write_bytes(gzip.decompress(f.read_bytes()))
        elif f.is_file():
            shutil.copy(f, tests)
    compileall.compile_dir(tests, quiet=2)
    return tests


SKIPS = pathlib.Path(__file__).with_name("pyverbs_skips.txt")
ROCE_SKIPS = SKIPS.with_name("pyverbs_skips_roce.txt")


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


def check_report(report, own=None, skips=SKIPS, differences=None):
    """
    @own: reasons that are other ones than in @skips; @differences: a file of reasons besides those, and of tests that
    run. Versions of rdma-core differ in which tests there are.
    """
    must, may = expected_skips(skips)
    must |= {t: {why} for t, why in (own or {}).items()}
    for test, reasons in expected_skips(differences)[0].items() if differences else ():
        if test.startswith("+"):
            del must[test[1:]]
        else:
            must[test] = must.get(test, set()) | reasons
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


def run_suite(fabric, host, device):
    """The suite's report."""
    tests = unpack(fabric.folder)
    runner = shutil.copy(RUNNER, fabric.folder)
    result = fabric.folder / "result.json"
    args = [tests, result, fabric.ip(host), "-v", "--dev", device]
    out = fabric.run(host, "/usr/bin/python3", runner, *args, timeout=840)
    assert result.exists(), out[-6000:]
    return json.loads(result.read_text())


@pytest.mark.timeout(900)
def test_pyverbs_suite(fabric):
    wait_until(lambda: can_join(fabric, "h1"), 30, "a multicast group")
    check_report(run_suite(fabric, "h1", "muslin0"))


@pytest.mark.timeout(900)
def test_pyverbs_suite_on_roce(new_fabric):
    fabric = new_fabric.up("ethernet sw1 mtu 4200\nhost r1 ether sw1 ip 10.1.0.1/24\n")
    check_report(run_suite(fabric, "r1", "rxe0"), differences=ROCE_SKIPS)


def test_objects(fabric, program):
    """Queues are resized while in use, and every completion vector has its events."""
    out = fabric.run("h1", "/usr/bin/python3", program("objects.py"), "muslin0", fabric.port("h1")["lid"])
    assert out.split() == ["srq_resize", "cq_resize", "refused", "vectors", "4"]
