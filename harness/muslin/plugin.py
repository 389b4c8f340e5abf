# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pytest plugin. Fixtures, marker, options and ini values: muslin-pytest(7)."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import os
import pathlib
import pwd
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Union

import pytest

from . import launcher, report
from .fabric import Fabric, FabricFactory
from .fault import Fault
from .process import StrPath
from .vm import MODELS

TREE = pathlib.Path(__file__).resolve().parents[2]
FABRICS = pytest.StashKey[list[Fabric]]()  # of a test: its own fabrics
REPORTS = pytest.StashKey[dict[str, pytest.TestReport]]()  # of a test: pytest's report of each phase
BEGAN = pytest.StashKey[float]()  # of a test: what was written earlier is of other tests
MADE = pytest.StashKey[list[Fabric]]()  # of the session: fabrics whose directories exist
ENDED = pytest.StashKey[list[Fabric]]()  # of the session: those whose directories go after the report of the test
# Of the session: {fabric of wider scope: {phase of a test: pytest's report}}.
FAILED = pytest.StashKey[dict[Fabric, dict[str, report.Result]]]()
RUN = pytest.StashKey[str]()  # of the session: its name, the same in all workers
CLEANER = pytest.StashKey["subprocess.Popen[str]"]()  # of the session: removes its directories when pytest is killed
# Reads names of directories until pytest has closed the pipe or has ended in any way, and then removes them. Daemons
# and programs may take a moment to end.
CLEAN = 'while read -r f; do set -- "$@" "$f"; done; until rm -rf -- "$@" || [ $((n += 1)) -gt 20 ]; do sleep 0.5; done'
GUEST_OPTIONS = ("kernel", "qemu", "model")  # each is --muslin-NAME, and the environment variable MUSLIN_NAME
SHARDS_MAX = 64  # of `muslin up --shards`
CLOCK_TICK = 0.01  # seconds by which a file's time may be behind the clock, at most: the kernel's coarsest tick
RESTORED = "crng reseeded due to virtual machine fork"  # what a kernel logs first after a restore, from Linux 5.18 on

Topology = Union[StrPath, None]
MakeFabric = Callable[[str], Fabric]


def _shards(text: str) -> int:
    """Of --muslin-shards."""
    if not text.isdecimal() or not 1 <= int(text) <= SHARDS_MAX:
        raise argparse.ArgumentTypeError(f"expected a number of daemons from 1 to {SHARDS_MAX}, not {text!r}")
    return int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("muslin")
    group.addoption("--muslin-build", default=os.environ.get("MUSLIN_BUILD"), help="a build directory, or installed")
    group.addoption("--muslin-seed", type=int, default=1, help="the seed of all random numbers of fabrics and faults")
    group.addoption("--muslin-shards", type=_shards, default=1, help="split each fabric over N daemons, if possible")
    group.addoption("--muslin-artifacts", default=None, help="keep the files of failed tests in this directory")
    group.addoption("--muslin-kernel", help="the kernel of guests: a version prefix (6.12), or newest")
    group.addoption("--muslin-qemu", help="the QEMU of guests: a program, a version prefix (10), or newest")
    group.addoption("--muslin-model", choices=MODELS, help="the model of guests' adapters: see muslin(1)")
    group.addoption("--muslin-capture", action="store_true", help="capture the packets of every host that is used")
    group.addoption("--muslin-user", default=None, help="when root runs the tests: the user of fabrics and programs")
    group.addoption("--muslin-report", default=None, help="write pages about all fabrics, and an index, here")
    parser.addini("muslin_topology", "the topology of muslin_fabric: text, or a file relative to the rootdir")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "muslin(topology, *args): of muslin_fabric, and arguments of `muslin up`")
    config.addinivalue_line("markers", "guest: boots QEMU guests")
    config.addinivalue_line("markers", "model(name, reason=None): skipped where --muslin-model is another one")
    config.stash[RUN] = getattr(config, "workerinput", {}).get("muslin_run") or secrets.token_hex(8)
    config.stash[MADE] = list[Fabric]()
    config.stash[ENDED] = list[Fabric]()
    config.stash[FAILED] = dict[Fabric, dict[str, report.Result]]()
    config.addinivalue_line("markers", "one_daemon(reason): skipped with --muslin-shards")
    for option in GUEST_OPTIONS:
        if config.getoption(f"--muslin-{option}"):
            os.environ[f"MUSLIN_{option.upper()}"] = config.getoption(f"--muslin-{option}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist, for each worker."""
    node.workerinput["muslin_run"] = node.config.stash[RUN]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Skips, with the reason: tests with guests if there is no QEMU or the driver cannot be built, those of another model,
    and with --muslin-shards those of one daemon.
    """
    qemu = os.environ.get("MUSLIN_QEMU") or "qemu-system-x86_64"
    if qemu[0].isdigit() or qemu == "newest":
        qemu = "qemu-system-x86_64"
    needs = (qemu, "make", "gcc", "apt-get", "dpkg-deb")
    missing = [p for p in needs if not shutil.which(p)]
    release = pathlib.Path("/etc/os-release")
    ubuntu = release.exists() and re.search(r"^ID(_LIKE)?=.*\bubuntu\b", release.read_text(), re.M)
    if ubuntu and not os.environ.get("MUSLIN_KERNEL"):
        missing.append("kernel of Debian")
    model = config.getoption("--muslin-model")
    for item in items:
        only = item.get_closest_marker("model")
        if only and model not in (None, *only.args):
            why = f": {only.kwargs['reason']}" if "reason" in only.kwargs else ""
            item.add_marker(pytest.mark.skip(reason=f"of the model {only.args[0]} alone{why}"))
        one = item.get_closest_marker("one_daemon")
        if one and config.getoption("--muslin-shards") > 1:
            item.add_marker(pytest.mark.skip(reason=f"one daemon: {one.args[0]}"))
        if item.get_closest_marker("guest"):
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"no {' and '.join(missing)} here: ci/deps vm"))
            if config.pluginmanager.hasplugin("timeout"):
                item.add_marker(pytest.mark.timeout(600))


def pytest_report_header(config: pytest.Config) -> str:
    kernel = os.environ.get("MUSLIN_KERNEL")
    guests = f", guests' kernel {kernel}" if kernel else ""
    return f"muslin: {_repeat(config)}{guests}"


def _repeat(config: pytest.Config) -> str:
    """The options with which a fabric does the same again."""
    options = {"seed": config.getoption("--muslin-seed"), "shards": config.getoption("--muslin-shards")}
    return " ".join(f"--muslin-{k}={v}" for k, v in options.items() if k == "seed" or v > 1)


def _own(item: pytest.Item) -> list[Fabric]:
    return item.stash.get(FABRICS, [])


def _fabrics(item: pytest.Item) -> list[Fabric]:
    """The test's own fabrics, then those of wider scope that it got from a fixture or on which it ran a command."""
    values = getattr(item, "funcargs", {}).values()
    return list(dict.fromkeys([*_own(item), *_among(values), *Fabric.used]))


def _among(values: Iterable[object]) -> Iterator[Fabric]:
    """The fabrics among the values of fixtures, some of which are several fabrics."""
    for v in values:
        if isinstance(v, Fabric):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from (f for f in v if isinstance(f, Fabric))


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    Fabric.armed.clear()
    item.addfinalizer(lambda: _clear_faults(item))


def _shared_faults(item: pytest.Item) -> list[Fault]:
    """Those that the test has armed in fabrics that are up and outlive it."""
    own = _own(item)
    return [f for f in Fabric.armed if f.fabric not in own and f.fabric.hold is not None]


def _clear_faults(item: pytest.Item) -> None:
    """The next test does not expect them."""
    for fault in _shared_faults(item):
        fault.clear()


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """
    Fails a test that has passed if a fault that it armed never fired, or the kernel of a guest reported a problem.
    """
    idle = [str(f) for fabric in _own(item) for f in fabric.unfired()]
    idle += [str(f) for f in _shared_faults(item) if f.unfired()]
    if idle:
        raise AssertionError("never fired: " + "; ".join(idle))
    for fabric in _fabrics(item):
        for vm in fabric.vms:
            vm.check()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    for why in Fabric.unsplit:
        item.user_properties.append(("muslin_one_daemon", why))
        item.add_report_section(call.when, "muslin", f"A fabric is in one daemon: {why}")
    Fabric.unsplit.clear()
    outcome = yield
    result = outcome.get_result()
    if call.when == "setup":
        item.stash[BEGAN] = call.start - CLOCK_TICK
        item.stash[REPORTS] = dict[str, pytest.TestReport]()
    item.stash[REPORTS][call.when] = result
    if result.failed:
        _add_sections(item, result)
    try:
        _write_pages(item, result)
    except OSError as e:
        _add_property(item, result, ("muslin_incomplete", f"artefacts are incomplete: {e}"))
    if call.when == "teardown":
        while item.config.stash[ENDED]:
            _remove(item.config, item.config.stash[ENDED].pop())
        item.stash[FABRICS] = list[Fabric]()
        Fabric.used.clear()


def _replay(config: pytest.Config, nodeid: str) -> str:
    """The command that repeats a test, also with the guests that it had."""
    guests = {name: config.getoption(f"--muslin-{name}") for name in GUEST_OPTIONS}
    options = (f"--muslin-{name}={shlex.quote(value)}" for name, value in guests.items() if value)
    return " ".join(["pytest", shlex.quote(nodeid), _repeat(config), *options])


def _add_sections(item: pytest.Item, result: pytest.TestReport) -> None:
    """To pytest's report of a phase that failed: the logs of daemons and guests, and the command that repeats it."""
    fabrics = _fabrics(item)
    for fabric in fabrics:
        for vm in fabric.vms if result.when != "teardown" else []:
            result.sections.extend((f"output of {job}", log) for job, log in vm.job_logs(item.stash[BEGAN]) if log)
            result.sections.append((f"kernel of the guest on {vm.host}", _since_restore(vm.keep())[-4000:]))
        if log := _log(fabric):
            result.sections.append((f"daemon log of {fabric.name}", log))
    if fabrics:
        result.sections.append(("muslin", f"again: {_replay(item.config, item.nodeid)}"))


def _since_restore(log: str) -> str:
    """The log of a guest's kernel without the boot before its snapshot, which is the same for all guests."""
    return log[log.rfind("\n", 0, max(0, log.rfind(RESTORED))) + 1 :]


def _log(fabric: Fabric) -> str:
    """The end of the daemon's log; empty: the fabric was never up."""
    try:
        log: str = fabric.recorded["log"] if fabric.recorded else fabric.daemon_log()
        return log[-4000:]
    except (AssertionError, OSError):
        return ""


def _write_pages(item: pytest.Item, result: pytest.TestReport) -> None:
    """Of the test's own fabrics at its end; of those of wider scope, with which other tests go on, when it fails."""
    own = _own(item)
    for n, fabric in enumerate(_fabrics(item)):
        if fabric not in own and result.failed:
            failures = item.config.stash[FAILED].setdefault(fabric, {})
            failures[f"{result.when} of {item.nodeid}"] = result
        if result.failed if fabric not in own else result.when == "teardown":
            reports, option = item.stash[REPORTS], item.config.getoption
            kept = option("--muslin-artifacts") if any(r.failed for r in reports.values()) else None
            for folder in sorted({option("--muslin-report"), kept} - {None}):
                page = pathlib.Path(folder) / _artifact_name(item.nodeid, n)
                _write(item.config, fabric, page, item.nodeid, reports, since=0 if fabric in own else item.stash[BEGAN])
                _add_property(item, result, ("muslin_report", str(page / "report.html")))


def _add_property(item: pytest.Item, result: pytest.TestReport, pair: tuple[str, object]) -> None:
    """For the JUnit file, which takes those that the report of the teardown has."""
    if pair not in item.user_properties:
        item.user_properties.append(pair)
        if result.when == "teardown":
            result.user_properties.append(pair)


def _write(
    config: pytest.Config,
    fabric: Fabric,
    folder: pathlib.Path,
    title: str,
    reports: Mapping[str, report.Result],
    *,
    since: float = 0,
) -> None:
    """Writes page and files of a fabric in place of an earlier run's, without output older than @since."""
    shutil.rmtree(folder, ignore_errors=True)
    report.write(
        fabric, folder, title, reports, _replay(config, title), root=config.rootpath, since=since, run=config.stash[RUN]
    )


def _end(config: pytest.Config, fabric: Fabric, name: str, title: str) -> None:
    """Takes a fabric of wider scope down. With --muslin-report its page has the failures of all tests that used it."""
    failures = config.stash[FAILED].pop(fabric, {})
    try:
        if fabric.hold is not None and fabric.folder.exists():
            fabric.down()
    except Exception:
        text = str(pytest.ExceptionInfo.from_current().getrepr())
        failures["teardown"] = report.Phase(failed=True, longreprtext=text)
        raise
    finally:
        if config.getoption("--muslin-report") and fabric.recorded:
            folder = pathlib.Path(config.getoption("--muslin-report"), name)
            _write(config, fabric, folder, title, failures or {"call": report.PASSED})


def make_folder(config: pytest.Config, prefix: str) -> pathlib.Path:
    """Creates a directory, which does not survive the session, even if that is killed."""
    if CLEANER not in config.stash:
        config.stash[CLEANER] = subprocess.Popen(
            ["sh", "-c", CLEAN],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # a Ctrl-C, or a signal to pytest's process group, does not end it
            text=True,
        )
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    with contextlib.suppress(BrokenPipeError):  # it was killed
        print(folder, file=config.stash[CLEANER].stdin, flush=True)
    return folder


def _remove(config: pytest.Config, fabric: Fabric) -> None:
    config.stash[MADE].remove(fabric)
    shutil.rmtree(fabric.folder, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Names the tests with fabrics in one daemon with --muslin-shards, and those without all artefacts, and why."""
    titles = {
        "muslin_one_daemon": f"in one daemon despite --muslin-shards={config.getoption('--muslin-shards')}",
        "muslin_incomplete": "artefacts that could not be written",
    }
    for key, title in titles.items():
        found: dict[str, dict[str, None]] = {}
        for result in itertools.chain.from_iterable(terminalreporter.stats.values()):
            for name, why in getattr(result, "user_properties", ()):
                if name == key:
                    found.setdefault(why, {})[result.nodeid] = None
        if found:
            terminalreporter.section(title)
        for why, tests in found.items():
            terminalreporter.line(f"{why}: {', '.join(tests)}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the index of the pages of all workers."""
    if not hasattr(session.config, "workerinput"):
        for option in ("--muslin-report", "--muslin-artifacts"):
            folder = session.config.getoption(option)
            if folder and pathlib.Path(folder).is_dir():
                report.write_index(pathlib.Path(folder), session.config.stash[RUN])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the directories of fabrics whose test has no report, since the session was interrupted."""
    for fabric in [*config.stash.get(MADE, [])]:
        _remove(config, fabric)
    if CLEANER in config.stash:
        config.stash[CLEANER].communicate()


# ---- programs ----


@pytest.fixture(scope="session")
def muslin_user(request: pytest.FixtureRequest) -> int | None:
    """The uid of fabrics and programs if root starts the tests; None: the caller's own."""
    name = request.config.getoption("--muslin-user")
    try:
        return pwd.getpwnam(name).pw_uid if name and os.geteuid() == 0 else None
    except KeyError:
        pytest.fail(f"--muslin-user={name}: there is no such user", pytrace=False)


@pytest.fixture(scope="session")
def muslin_programs(request: pytest.FixtureRequest) -> Iterator[pathlib.Path]:
    """
    The directory of the programs: those of --muslin-build as `make install` installs them, in a directory that any
    user may read; without that option and outside of a source tree, the installed ones.
    """
    build = request.config.getoption("--muslin-build")
    tree = (TREE / "Makefile").exists()
    if build == "installed" or not (build or tree):
        programs = launcher.folder()
        if not programs:
            pytest.fail(
                "muslin: the program is not in the PATH: install the wheel or a package, or name a build folder "
                "by --muslin-build",
                pytrace=False,
            )
        yield programs
        return
    build = pathlib.Path(build or TREE / "build").resolve()
    if not tree:  # the build directory of another source tree: its programs find each other
        if not (build / "muslin").exists():
            pytest.fail(f"--muslin-build={build}: there is no program muslin: build it with `make`", pytrace=False)
        yield build
        return
    folder = make_folder(request.config, "muslin-")
    folder.chmod(0o755)
    where = [f"O={build}", "DESTDIR=", f"prefix={folder}", f"libdir={folder}/lib"]
    subprocess.run(["make", "-s", "-C", TREE, "install", *where], check=True)
    yield folder / "bin"
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def muslin_addresses() -> Callable[..., list[str]]:
    """
    addresses(n): n IPv4 loopback addresses for RoCE and iWARP hosts, which no other fixture and no other worker of
    pytest-xdist uses.
    """
    numbers = itertools.cycle(range(1, 255))
    pid = os.getpid()

    def addresses(n: int = 2) -> list[str]:
        return [f"127.{128 + (pid >> 8) % 127}.{pid % 256}.{next(numbers)}" for _ in range(n)]

    return addresses


# ---- fabrics ----


@pytest.fixture(scope="session")
def muslin_make_fabric(
    request: pytest.FixtureRequest, muslin_programs: pathlib.Path, muslin_user: int | None
) -> Iterator[MakeFabric]:
    """
    make(label): a Fabric that is not up, in a directory of its own. The caller takes it down; for fixtures of any
    scope.
    """
    config, count = request.config, itertools.count(1)

    def make(label: str) -> Fabric:
        folder = make_folder(config, "muslin-t-")
        if muslin_user is not None:
            os.chown(folder, muslin_user, muslin_user)
        options = {k: config.getoption(f"--muslin-{k}") for k in ("seed", "shards")}
        # A name of its own: it selects the network of loopback addresses for the sockets of the hosts.
        f = Fabric(muslin_programs, folder, f"{label[:20]}-{os.getpid()}-{next(count)}", user=muslin_user, **options)
        f.capture = config.getoption("--muslin-capture")
        f.record = any(config.getoption(f"--muslin-{option}") for option in ("report", "artifacts"))
        config.stash[MADE].append(f)
        return f

    yield make
    left = [f for f in config.stash[MADE] if f not in config.stash[ENDED]]
    config.stash[ENDED].extend(left)
    with contextlib.ExitStack() as stack:
        for f in left:
            stack.callback(_end, config, f, _artifact_name(f.name), f.name)


def _artifact_name(nodeid: str, n: int = 0) -> str:
    """A readable file name for a test, from its node id; different for any two tests."""
    name = re.sub(r"[^\w.=,+@\[\]-]", "_", nodeid.replace("::", ".").replace("/", "."))
    if name != nodeid.replace("::", ".").replace("/", ".") or len(name) > 180:
        name = f"{name[:180]}-{hashlib.sha256(nodeid.encode()).hexdigest()[:6]}"
    return f"{name}+{n + 1}" if n else name


def _test_name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).split("[")[0].removeprefix("test_")


def _marked(request: pytest.FixtureRequest) -> tuple[Topology, tuple[object, ...]]:
    """Topology and arguments of the marker."""

    def muslin(topology: Topology = None, *args: object) -> tuple[Topology, tuple[object, ...]]:
        return topology, args

    marker = request.node.get_closest_marker("muslin")
    return muslin(*marker.args, **marker.kwargs) if marker else (None, ())


@pytest.fixture
def muslin_topology(request: pytest.FixtureRequest) -> Topology:
    """
    The topology of muslin_fabric: of the marker, else of the ini value. Override it for the tests of a directory.
    """
    topology = _marked(request)[0]
    if topology is not None:
        return topology
    text = request.config.getini("muslin_topology")
    file = request.config.rootpath / text if text else None
    return file if file and "\n" not in text and file.is_file() else text or None


@pytest.fixture
def muslin_fabric_factory(
    request: pytest.FixtureRequest, muslin_make_fabric: MakeFabric
) -> Iterator[FabricFactory]:
    """make(topology=None, *args): a Fabric that is up (up=False: not yet). All of them end with the test."""
    made: list[Fabric] = []

    def make(topology: Topology = None, *args: object, label: str | None = None, up: bool = True) -> Fabric:
        f = muslin_make_fabric(f"{label or _test_name(request)}{len(made) or ''}")
        made.append(f)
        request.node.stash.setdefault(FABRICS, []).append(f)
        return f.up(topology, *args) if up else f

    yield make
    request.config.stash[ENDED].extend(made)
    with contextlib.ExitStack() as stack:
        for f in made:
            stack.callback(f.down)


@pytest.fixture
def muslin_new_fabric(muslin_fabric_factory: FabricFactory) -> Fabric:
    """A fabric for one test that is not up yet."""
    return muslin_fabric_factory(up=False)


@pytest.fixture
def muslin_fabric(
    request: pytest.FixtureRequest, muslin_new_fabric: Fabric, muslin_topology: Topology
) -> Fabric:
    """A fabric for one test: of muslin_topology; by default two leafs, two spines and four hosts a leaf."""
    return muslin_new_fabric.up(muslin_topology, *_marked(request)[1])


@pytest.fixture(scope="module")
def muslin_shared_fabric(request: pytest.FixtureRequest, muslin_make_fabric: MakeFabric) -> Iterator[Fabric]:
    """The default fabric, shared by the tests of a module that do not change it."""
    f = muslin_make_fabric(request.module.__name__.rsplit(".", 1)[-1].removeprefix("test_"))
    try:
        yield f.up()
    finally:
        request.config.stash[ENDED].append(f)
        worker = getattr(request.config, "workerinput", {}).get("workerid")  # each that has tests of the module
        name = _artifact_name(request.node.nodeid) + (f"@{worker}" if worker else "")
        _end(request.config, f, name, request.node.nodeid)


# Names before 1.0.


@pytest.fixture
def new_fabric(muslin_new_fabric: Fabric) -> Fabric:
    """Alias of muslin_new_fabric."""
    return muslin_new_fabric


@pytest.fixture
def fabric(muslin_fabric: Fabric) -> Fabric:
    """Alias of muslin_fabric."""
    return muslin_fabric


@pytest.fixture(scope="module")
def shared_fabric(muslin_shared_fabric: Fabric) -> Fabric:
    """Alias of muslin_shared_fabric."""
    return muslin_shared_fabric
