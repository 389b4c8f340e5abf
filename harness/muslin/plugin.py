# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pytest plugin: fixtures `fabric` (one of a test's own) and `shared_fabric` (the default one, for a module)."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from . import report
from .fabric import Fabric

TREE = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    group = parser.getgroup("muslin")
    group.addoption("--muslin-build", default=os.environ.get("MUSLIN_BUILD", str(TREE / "build")), help="build folder")
    group.addoption("--muslin-seed", type=int, default=1, help="what chance in fabrics and faults is drawn from")
    group.addoption("--muslin-artifacts", default=None, help="keep what failed tests leave in this folder")
    group.addoption("--muslin-kernel", default=None, help="the kernel of guests: a version or its beginning, as 6.12")
    group.addoption("--muslin-qemu", default=None, help="the QEMU of guests, or a version of the backports, as 10")
    group.addoption("--muslin-capture", action="store_true", help="capture what passes hosts that are used")
    group.addoption("--muslin-report", default=None, help="write a page about each fabric into this folder")


def pytest_configure(config):
    config.addinivalue_line("markers", "guest: boots QEMU guests")
    for option, name in (("--muslin-kernel", "MUSLIN_KERNEL"), ("--muslin-qemu", "MUSLIN_QEMU")):
        if config.getoption(option):
            os.environ[name] = config.getoption(option)


def pytest_collection_modifyitems(items):
    """Tests with guests are left out, with the reason, where there is no QEMU or nothing to build the driver with."""
    qemu = os.environ.get("MUSLIN_QEMU") or "qemu-system-x86_64"
    needs = ("qemu-system-x86_64" if qemu[0].isdigit() else qemu, "make", "gcc", "apt-get", "dpkg-deb")
    missing = [p for p in needs if not shutil.which(p)]
    for item in items:
        if item.get_closest_marker("guest"):
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"no {' and '.join(missing)} here: ci/deps vm"))
            item.add_marker(pytest.mark.timeout(600))


def pytest_report_header(config):
    kernel = os.environ.get("MUSLIN_KERNEL")
    guests = f", guests' kernel {kernel}" if kernel else ""
    return f"muslin: --muslin-seed={config.getoption('--muslin-seed')}{guests}"


def _vms(item):
    """The guests of the fabrics that the test has to do with."""
    return [vm for f in getattr(item, "funcargs", {}).values() if isinstance(f, Fabric) for vm in f.vms]


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item):
    """
    After a test that has passed: if a fault that it armed never fired, it has not tested what it says; and a kernel
    that has complained has not passed.
    """
    idle = [str(f) for fabric in getattr(item, "muslin_fabrics", []) for f in fabric.unfired()]
    if idle:
        raise AssertionError("never fired: " + "; ".join(idle))
    for vm in _vms(item):
        vm.check()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    result = outcome.get_result()
    if call.when == "call":
        item.stash_failed = result.failed
    if result.failed and call.when != "teardown":
        for vm in _vms(item):
            result.sections.append((f"kernel of the guest on {vm.host}", vm.keep()[-4000:]))


@pytest.fixture(scope="session")
def muslin_user():
    """Tests that root starts run as nobody: what muslin promises needs no privilege."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


@pytest.fixture(scope="session")
def muslin_programs(request):
    """
    The folder with the programs: as `make install` lays them out, in a place that any user may read; without a tree
    around, those that are installed.
    """
    if not (TREE / "Makefile").exists() or request.config.getoption("--muslin-build") == "installed":
        muslin = shutil.which("muslin")
        if not muslin:
            pytest.exit("muslin: the program is not in the PATH: `make install` puts it there", 2)
        yield pathlib.Path(muslin).resolve().parent
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muslin-"))
    folder.chmod(0o755)
    build = request.config.getoption("--muslin-build")
    where = [f"O={build}", "DESTDIR=", f"prefix={folder}"]
    subprocess.run(["make", "-s", "-C", TREE, "install", *where], check=True)
    yield folder / "bin"
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def _make_fabric(request, muslin_programs, muslin_user):
    """A maker of fabrics in folders of their own; each is put down by whoever made it."""

    def make(label):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muslin-t-"))
        if muslin_user is not None:
            os.chown(folder, muslin_user, muslin_user)
        seed = request.config.getoption("--muslin-seed")
        f = Fabric(muslin_programs, folder, f"{label[:20]}-{os.getpid()}", user=muslin_user, seed=seed)
        f.capture = request.config.getoption("--muslin-capture")
        return f

    return make


def _finish(fabric, request, failed):
    options = request.config.getoption
    replay = f"pytest '{request.node.nodeid}' --muslin-seed={options('--muslin-seed')}"
    if failed:
        print(f"--- again: {replay}\n--- daemon log of {fabric.name}\n{_log(fabric)}")
    for folder, wanted in ((options("--muslin-report"), True), (options("--muslin-artifacts"), failed)):
        if folder and wanted and fabric.hold is not None:
            report.write(fabric, pathlib.Path(folder) / fabric.name, request.node.name, not failed, replay)
    fabric.down()
    sanitizers = fabric.sanitizer_reports()
    for folder, wanted in ((options("--muslin-report"), True), (options("--muslin-artifacts"), failed)):
        if folder and wanted:
            shutil.copytree(fabric.folder, pathlib.Path(folder) / fabric.name, dirs_exist_ok=True, ignore=_not_kept)
    shutil.rmtree(fabric.folder, ignore_errors=True)
    assert not sanitizers, sanitizers


def _not_kept(folder, names):
    """What a copy of a fabric's folder leaves out: sockets, and the tree that programs see as /sys."""
    return [n for n in names if n == "tree" or pathlib.Path(folder, n).is_socket()]


def _log(fabric):
    try:
        return fabric.daemon_log()[-4000:]
    except (AssertionError, OSError) as e:
        return str(e)


@pytest.fixture
def new_fabric(request, _make_fabric):
    """A fabric that is not up yet."""
    f = _make_fabric(request.node.name.split("[")[0].removeprefix("test_"))
    request.node.muslin_fabrics = [*getattr(request.node, "muslin_fabrics", []), f]
    yield f
    _finish(f, request, getattr(request.node, "stash_failed", True))


@pytest.fixture
def fabric(new_fabric):
    """The default fabric (two leafs, two spines, four hosts a leaf) for one test alone."""
    return new_fabric.up()


@pytest.fixture(scope="module")
def shared_fabric(request, _make_fabric):
    """The default fabric, shared by the tests of a module that do not change it."""
    f = _make_fabric(request.module.__name__.rsplit(".", 1)[-1].removeprefix("test_"))
    f.up()
    before = request.session.testsfailed
    yield f
    _finish(f, request, request.session.testsfailed > before)
