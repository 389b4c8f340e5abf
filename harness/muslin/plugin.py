# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pytest plugin: fixtures `fabric` (one of a test's own) and `shared_fabric` (the default one, for a module)."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from .fabric import Fabric

TREE = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    group = parser.getgroup("muslin")
    group.addoption("--muslin-build", default=os.environ.get("MUSLIN_BUILD", str(TREE / "build")), help="build folder")
    group.addoption("--muslin-seed", type=int, default=1, help="what chance in fabrics and faults is drawn from")
    group.addoption("--muslin-artifacts", default=None, help="keep logs and captures of failed tests in this folder")


def pytest_report_header(config):
    return f"muslin: --muslin-seed={config.getoption('--muslin-seed')}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that passes although a fault which it armed never fired has not tested what it says."""
    outcome = yield
    if outcome.excinfo is not None:
        return
    idle = [str(f) for fabric in getattr(item, "muslin_fabrics", []) for f in fabric.unfired()]
    if idle:
        outcome.force_exception(AssertionError("never fired: " + "; ".join(idle)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.stash_failed = outcome.get_result().failed


@pytest.fixture(scope="session")
def muslin_user():
    """Tests that root starts run as nobody: what muslin promises needs no privilege."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


@pytest.fixture(scope="session")
def muslin_programs(request):
    """The programs as `make install` lays them out, in a folder that any user may read."""
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
        return Fabric(muslin_programs, folder, f"{label[:20]}-{os.getpid()}", user=muslin_user, seed=seed)

    return make


def _finish(fabric, request, failed):
    try:
        log = fabric.daemon_log() if failed else ""
    except (AssertionError, OSError) as e:
        log = str(e)
    fabric.down()
    reports = fabric.sanitizer_reports()
    keep = request.config.getoption("--muslin-artifacts")
    if failed:
        seed = request.config.getoption("--muslin-seed")
        print(f"--- to replay: pytest {request.node.nodeid!r} --muslin-seed={seed}")
        print(f"--- daemon log of {fabric.name}\n{log[-4000:]}")
        if keep:
            sockets = shutil.ignore_patterns("*sock*")
            shutil.copytree(fabric.folder, pathlib.Path(keep) / fabric.name, dirs_exist_ok=True, ignore=sockets)
    shutil.rmtree(fabric.folder, ignore_errors=True)
    assert not reports, reports


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
