# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the scenarios: a pair of guests, simulations, and the small programs in programs/."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from muslin.plugin import make_folder

HERE = pathlib.Path(__file__).parent
# Files without guests that take longest: none of them may be the last one of a run.
LONG = {
    *("test_packages", "test_trunk", "test_shards", "test_ethernet", "test_parity", "test_programs", "test_perftest"),
    "test_pyverbs",
}
PROGRAMS = HERE / "programs"
os.environ["PATH"] += ":/usr/sbin:/sbin"  # infiniband-diags, ibsim: Debian's users do not have them in their PATH
collect_ignore = [] if os.environ.get("MUSLIN_DEBIAN") else ["guests/test_vm_debian.py"]  # takes minutes
# Module names are unique: modules of one subject import from those of another by name.
sys.path[:0] = sorted({str(f.parent) for f in HERE.glob("*/test_*.py")})


def pytest_configure(config):
    config.addinivalue_line("markers", "also_connectx: runs with guests of both models")
    config.addinivalue_line("markers", "one_model: a parameter of such a test that runs with one of them")


def pytest_collection_modifyitems(config, items):
    """Sorts files with guests first, since they take longest when files run in parallel, and then those of LONG."""

    def rank(item):
        if item.get_closest_marker("guest"):
            return 0
        return 1 if pathlib.PurePath(item.nodeid.partition("::")[0]).stem in LONG else 2

    if not config.getoption("--muslin-model"):
        once = [i for i in items if i.get_closest_marker("one_model") and i.callspec.params["model"] == "connectx"]
        items[:] = [i for i in items if i not in once]
    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """For --dist loadfile: files in the order of their tests. Newer releases take those with the most tests first."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class InOrder(LoadFileScheduling):
        def _assign_work_unit(self, node):
            file = next(f for f in map(self._split_scope, self.collection) if f in self.workqueue)
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    return InOrder(config, log)


def pytest_generate_tests(metafunc):
    """
    Guests have muslin's virtio device; with --muslin-model that one, and without it in marked tests a ConnectX, too.
    """
    if "model" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--muslin-model")
        both = metafunc.definition.get_closest_marker("also_connectx")
        models = [chosen] if chosen else ["muslin", "connectx"] if both else ["muslin"]
        metafunc.parametrize("model", models, scope="module", indirect=True)


@pytest.fixture
def same_user(request):
    """Options of a run of pytest inside a test: its guests boot the images that those of the other tests have."""
    user = request.config.getoption("--muslin-user")
    return [f"--muslin-user={user}"] if user else []


def build_connectx(fabric, *options):
    """Output of `muslin vm --build` for a guest with a ConnectX. Skips if no QEMU supports it."""
    built = fabric.start_muslin("vm", "--build", "--model", "connectx", *options)
    built.wait(300, status=None)
    if "a ConnectX needs QEMU" in built.output:
        pytest.skip(built.output.strip())
    return built.output


@pytest.fixture(scope="module")
def connectx(shared_fabric):
    """Options of a guest with a ConnectX."""
    build_connectx(shared_fabric)
    return ["--model", "connectx"]


@pytest.fixture(scope="module")
def model(request):
    """The guests' adapter: a parameter of each test with such guests."""
    if request.param == "connectx" and not request.config.getoption("--muslin-model"):
        request.getfixturevalue("connectx")
    return request.param


@pytest.fixture(scope="module")
def guests(shared_fabric, model):
    """Guests on h1 and h5, which are on different leafs, both with ib0 up. A test must undo its changes to them."""
    vms = [shared_fabric.vm(host, "--model", model) for host in ("h1", "h5")]
    for vm in vms:
        vm.wait_ib0()
    yield vms
    for vm in vms:
        vm.stop()


@pytest.fixture(scope="module")
def mounted(guests):
    """Both guests: the first one has the second one's /export mounted at /mnt, over RDMA."""
    a, b = guests
    assert "rdma 20049" in b.run("nfs-server")
    assert "proto=rdma" in a.run("nfs-mount 10.0.0.5")
    yield guests
    a.run("umount /mnt", timeout=60)


@pytest.fixture(scope="module")
def ethernet(request, muslin_make_fabric):
    """A fabric of the topology that the module has as ETHERNET."""
    fabric = muslin_make_fabric(request.module.__name__.removeprefix("test_"))
    fabric.up(request.module.ETHERNET)
    yield fabric
    fabric.down()


ENDS = {"ib": ("h1", "h5"), "roce": ("r1", "r2"), "iwarp": ("w1", "w2")}


@pytest.fixture(params=ENDS)
def ends(request):
    """The fabric, a server, a client and the server's address; those of RoCE and iWARP are of the module's ETHERNET."""
    server, client = ENDS[request.param]
    fabric = request.getfixturevalue("shared_fabric" if request.param == "ib" else "ethernet")
    return fabric, server, client, fabric.ip(server)


@pytest.fixture(scope="module")
def shards(request, muslin_make_fabric):
    """A fabric of the topology that the module has as SHARDS, in two daemons."""
    fabric = muslin_make_fabric("shards").up(request.module.SHARDS, "--shards", "2")
    yield fabric
    fabric.down()


@pytest.fixture
def folder(request):
    """A directory that any user may enter."""
    path = make_folder(request.config, "muslin-t-")
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def build_folder(request):
    """The build folder: that of --muslin-build, or of this tree as in the plugin."""
    return pathlib.Path(request.config.getoption("--muslin-build") or HERE.parent / "build").resolve()


@pytest.fixture(scope="session")
def helper(build_folder):
    """helper("hostile"): the path of a program that `make helpers` builds."""

    def built(name):
        path = build_folder / name
        if not path.exists():
            pytest.fail(f"{path} does not exist: build it with `make helpers`", pytrace=False)
        return path

    return built


@pytest.fixture(scope="session")
def program(request):
    """
    program("apm"): the path of programs/apm.c, compiled with the files that these programs share; if programs/ has a
    directory with that name, of all its files. program("sharing.py"): the path of a copy that any user may read,
    beside the others. program("slow_copies.so"): a library to preload.
    """
    folder = make_folder(request.config, "muslin-p-")
    folder.chmod(0o755)
    werror = ["-Werror"] if os.environ.get("WERROR") == "1" else []

    def made(name):
        path = folder / name
        if not path.exists() and path.suffix == ".py":
            for file in PROGRAMS.glob("*.py"):
                shutil.copy(file, folder)
                (folder / file.name).chmod(0o755)
        elif not path.exists():
            tree = PROGRAMS / name
            if path.suffix == ".so":
                parts = ["-shared", "-fPIC", tree.with_suffix(".c")]
            else:
                sources = sorted(tree.glob("*.c")) if tree.is_dir() else [tree.with_suffix(".c"), PROGRAMS / "rc.c"]
                parts = [*sources, "-lrdmacm", "-libverbs"]
            subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", *werror, "-o", path, *parts], check=True)
        return path

    yield made
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def sim(muslin_programs):
    """Runs a simulation and returns its output; @status: of one that fails, its error message."""

    def run(*args, status=0):
        argv = [muslin_programs / "muslin-sim", *map(str, args)]
        r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        assert r.returncode == status, r.stderr
        return json.loads(r.stdout) if status == 0 else r.stderr

    return run
