# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The plugin from the user's side: fixtures, marker, ini value, artifacts by node id, the index. muslin-pytest(7)."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from muslin import Process, plugin, wait_until
from test_ci import LIMIT, TREE

pytestmark = pytest.mark.timeout(LIMIT + 100)

TESTS = """
import pytest
from muslin import FabricError, MuslinError, WaitTimeout, free_port, wait_until


def test_ini(muslin_fabric):
    assert [str(h) for h in muslin_fabric.hosts] == ["h1", "h2"]


@pytest.mark.muslin("leafs 1 hosts 3", "--no-sm")
def test_marker(muslin_fabric):
    assert len(muslin_fabric.hosts) == 3 and not muslin_fabric.show().get("manager")


def test_factory(muslin_fabric_factory):
    a, b = muslin_fabric_factory("leafs 1 hosts 2"), muslin_fabric_factory("leafs 1 hosts 4\\n")
    assert len(a.hosts) == 2 and len(b.hosts) == 4


def test_objects(fabric):
    h1, h2 = fabric.hosts
    with h2.trace("-s", "128") as trace:
        args = ["ibv_rc_pingpong", "-p", free_port(), "-n", 20]
        out = fabric.pair((h2, *args), (h1, *args, h2.ip))[1]
    assert "20 iters" in out and [p for p in trace.packets("infiniband.bth.opcode == 2")]
    link = h2.link()
    with link.down():
        wait_until(lambda: link.state == "Down", 10, "the link is down")
    wait_until(lambda: link.state == "Active", 20, "the link is up")
    with pytest.raises(FabricError, match="no host h9; there are h1, h2"):
        fabric.host("h9")
    with pytest.raises(WaitTimeout):
        wait_until(lambda: False, 0.1)
    assert issubclass(WaitTimeout, MuslinError) and h1.lid and "port_xmit_data" in str(h1.counters).lower()


@pytest.mark.parametrize("link", ["ib/1", "ib_1", "ib 1"])
def test_a_name_that_is_longer_than_twenty_letters(fabric, link):
    fabric.host("h1").fault("drop", opcode="rc", expect=False)
    assert not link, link
"""


SHARED = """
import json


def armed(fabric):
    return json.loads(fabric.command("fault", "list", "--json"))


def test_arms_one(muslin_shared_fabric):
    muslin_shared_fabric.fault("h1", "drop", opcode="rc", expect=False)
    assert len(armed(muslin_shared_fabric)) == 1


def test_none_is_left(muslin_shared_fabric):
    assert not armed(muslin_shared_fabric)


def test_one_never_fires(muslin_shared_fabric):
    muslin_shared_fabric.fault("h1", "drop", opcode="rc", nth=1000)


def test_fails(muslin_shared_fabric):
    muslin_shared_fabric.fault("h1", "drop", opcode="rc", nth=1000)
    raise ValueError


def test_none_is_left_again(muslin_shared_fabric):
    assert not armed(muslin_shared_fabric)
"""

WIDER = """
import pytest


@pytest.fixture(scope="module")
def two(muslin_make_fabric):
    fabrics = [muslin_make_fabric(name).up("leafs 1 hosts 2") for name in ("left", "right")]
    yield fabrics
    for f in fabrics:
        f.down()


@pytest.fixture(scope="module")
def held(muslin_make_fabric):
    class Holder:
        inside = muslin_make_fabric("held").up("leafs 1 hosts 2")

    yield Holder
    Holder.inside.down()


def test_passes(two, muslin_shared_fabric):
    two[0].run("h1", "ibstat")
    muslin_shared_fabric.run("h1", "ibstat")


def test_two(two):
    assert "ACTIVE" not in two[0].run("h2", "ibstatus"), "the port of left"


def test_held(held):
    assert "ACTIVE" not in held.inside.run("h1", "ibstatus"), "the port of held"


def test_shared(muslin_shared_fabric):
    assert "ACTIVE" not in muslin_shared_fabric.run("h1", "ibstatus"), "the port of shared"


def test_another(fabric):
    assert "ACTIVE" not in fabric.run("h1", "ibstatus"), "the port of another"
"""

ENDS = """
def test_down(fabric):
    fault = fabric.fault("h1", "drop", attr="NodeInfo", nth=1)
    fabric.run("h1", "ibnetdiscover", status=None)
    fabric.down()
    assert fault.fired == [1]
    assert not fault.hits, "after down"


def test_down_passes(fabric):
    fabric.fault("h1", "drop", attr="NodeInfo", nth=1)
    fabric.run("h1", "ibnetdiscover", status=None)
    fabric.down()


def test_sanitizer(fabric):
    (fabric.folder / "sanitizer.1").write_text("ERROR: AddressSanitizer: heap-use-after-free")


def test_sanitizer_of_a_shared_fabric(muslin_shared_fabric):
    (muslin_shared_fabric.folder / "sanitizer.1").write_text("ERROR: LeakSanitizer: detected memory leaks")
"""


PATHS = """
import pytest


def test_program(fabric):
    assert fabric.run("h1", "./mine") == f"in {fabric.folder}\\n"


@pytest.mark.muslin("three.topo")
def test_marker(fabric):
    assert len(fabric.hosts) == 3 and fabric.ip(fabric.host("h3")) == "10.0.0.3"


@pytest.mark.muslin(topology="leafs 1 hosts 4")
def test_keyword(fabric):
    assert len(fabric.hosts) == 4
"""

MESSAGES = """
import muslin.pair
import pytest


def test_expect(fabric):
    fabric.start("h1", "sh", "-c", "sleep 0.2; echo starts; exec sleep 60").expect("listens", 4)


def test_pair(fabric, monkeypatch):
    monkeypatch.setattr(muslin.pair, "CONNECT_SECONDS", 1)
    fabric.pair(("h1", "echo", "the server"), ("h2", "sh", "-c", "echo refused; exit 3"))


def test_start_pair(fabric):
    fabric.start_pair(("h1", "echo", "the server"), ("h2", "echo", "the client"), lambda: False, timeout=1)


def test_trace(fabric):
    fabric.trace("h9")


def test_packets(fabric):
    with fabric.trace("h1") as trace:
        trace.packets("nonsense..")


def test_cleared_fault(fabric):
    fault = fabric.fault("h1", "drop", expect=False)
    fabric.command("fault", "clear")
    fault.hits


@pytest.mark.muslin("leafs 1 hosts 2", "--hold=0", topo="leafs 1")
def test_keyword(fabric):
    pass
"""


SHARDS = """
import json
import re

import pytest

TWO = "leafs 2 spines 1 hosts 1"


@pytest.mark.muslin(TWO)
def test_two(muslin_fabric):
    assert len(muslin_fabric.daemon_pids) == 2
    assert re.findall(r"info  fabric \\S+: (\\d) nodes", muslin_fabric.daemon_log()) == ["3", "2"]
    with muslin_fabric.fault("all", "delay", time="1us", class_="Subn") as everywhere:
        here = muslin_fabric.fault("h1", "delay", time="1us", class_="Subn")
        there = muslin_fabric.fault("h2", "delay", time="1us", class_="Subn")
        lid = muslin_fabric.host("h2").lid
        assert "h2" in muslin_fabric.run("h1", "smpquery", "nodedesc", lid)
        assert everywhere.hits > max(here.hits, there.hits) > 0
    listed = json.loads(muslin_fabric.command("fault", "list", "--json"))
    assert [f["id"] for f in listed] == sorted([here.number, there.number])


@pytest.mark.muslin(TWO, "--shards", "1")
def test_its_own_number(muslin_fabric):
    assert len(muslin_fabric.daemon_pids) == 1


def test_one_leaf(muslin_fabric):
    assert len(muslin_fabric.daemon_pids) == 1


def test_of_a_wrong_option(muslin_new_fabric):
    muslin_new_fabric.up(TWO, "--nonsense")


@pytest.mark.one_daemon("it counts daemons")
@pytest.mark.muslin(TWO)
def test_one_daemon(muslin_fabric):
    assert len(muslin_fabric.daemon_pids) == 1
"""


ENDED = """
import pathlib
import time

import pytest


@pytest.fixture
def slow(fabric):
    yield fabric
    pathlib.Path("teardown").touch()
    time.sleep(100)


def test_long(slow):
    program = slow.start("h1", "sleep", "100")
    pathlib.Path("pids.new").write_text(f"{slow.daemon_pid} {program.pid}")
    pathlib.Path("pids.new").rename("pids")
    time.sleep(100)
"""


def prepare(programs, folder, text, *options):
    """Writes the tests @text in @folder; returns command line and environment of pytest with the installed programs."""
    (folder / "test_users.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmuslin_topology = leafs 1 hosts 2\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"PYTHONPATH": str(TREE / "harness"), "PYTEST_PLUGINS": "muslin.plugin"}
    env["PATH"] = f"{programs}:{env['PATH']}"
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--muslin-build=installed", *options], env


def run_pytest(programs, folder, text, *options):
    """Runs the tests @text in @folder; returns the output."""
    argv, env = prepare(programs, folder, text, *options)
    r = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    return r.stdout + r.stderr


@pytest.fixture(scope="module")
def users(muslin_programs, tmp_path_factory):
    """Runs the tests above two at a time, as another user: returns the output and the directory."""
    folder = tmp_path_factory.mktemp("users")
    options = ["-n", "2", "--junitxml=junit.xml", "--muslin-artifacts=kept", "--muslin-report=pages"]
    return run_pytest(muslin_programs, folder, TESTS, *options), folder


def test_faults_in_a_fabric_of_a_wider_scope(muslin_programs, tmp_path):
    """They end with the test that armed them, also when it failed, and that one alone has to see them fire."""
    out = run_pytest(muslin_programs, tmp_path, SHARED)
    assert "3 passed" in out and "2 failed" in out, out
    assert len(re.findall("^E +AssertionError: never fired: fault 2: h1 drop", out, re.M)) == 1, out


def test_fixtures(users):
    out, _ = users
    assert "4 passed" in out and "3 failed" in out, out


def test_artifacts_by_node_id(users):
    """Each failed case of a parametrised test keeps a directory of its own, readable by others."""
    _, folder = users
    kept = sorted((folder / "kept").glob("*/result.json"))
    tests = {json.loads(k.read_text())["test"] for k in kept}
    name = "test_users.py::test_a_name_that_is_longer_than_twenty_letters"
    assert tests == {f"{name}[{p}]" for p in ("ib/1", "ib_1", "ib 1")}
    assert all(k.parent.stat().st_mode & 0o755 == 0o755 for k in kept)


def test_artifacts_repeat_their_test(users, muslin_programs):
    """From any directory: replay.sh changes to pytest's rootdir, or to that of another machine."""
    _, folder = users
    env = prepare(muslin_programs, folder, TESTS)[1]
    (folder / "bin").mkdir()
    (folder / "bin/pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:cacheprovider "$@"\n')
    (folder / "bin/pytest").chmod(0o755)
    env |= {"PATH": f"{folder}/bin:{env['PATH']}", "MUSLIN_BUILD": "installed"}
    replay = next(folder.glob("kept/*ib.1*/replay.sh"))
    for args in [], [str(folder)]:
        r = subprocess.run([str(replay), *args], cwd="/", env=env, capture_output=True, text=True, timeout=LIMIT)
        assert r.returncode == 1 and "AssertionError: ib/1" in r.stdout and "1 failed" in r.stdout, r.stdout + r.stderr
    r = subprocess.run([str(replay), "/nonexistent"], cwd="/", env=env, capture_output=True, text=True, timeout=LIMIT)
    assert r.returncode and "/nonexistent" in r.stderr and not r.stdout, r.stdout + r.stderr


def test_artifacts_that_cannot_be_written(muslin_programs, tmp_path):
    (tmp_path / "file").write_text("")
    text = 'def test_fails(fabric):\n    assert False\n\n\ndef test_passes(fabric):\n    pass\n'
    out = run_pytest(muslin_programs, tmp_path, text, "--muslin-artifacts=file", "--muslin-report=file/pages")
    assert "1 failed" in out and "1 passed" in out, out
    said = out[out.index("artefacts that could not be written") :]
    assert re.search(r"artefacts are incomplete: .*Not a directory: .*: .*::test_fails\b", said), out
    assert re.search(r"artefacts are incomplete: .*Not a directory: .*: .*::test_passes\b", said), out


def test_a_guests_options_are_repeated(muslin_programs, tmp_path):
    """Another model or kernel is another test."""
    options = "--muslin-model=connectx", "--muslin-kernel=6.1 x"
    out = run_pytest(muslin_programs, tmp_path, "def test_fails(fabric):\n    assert False\n", *options)
    again = "again: pytest test_users.py::test_fails --muslin-seed=1 --muslin-kernel='6.1 x' --muslin-model=connectx\n"
    assert again in out


def test_a_trace_without_tshark(muslin_programs, tmp_path):
    """One line says what is missing, instead of a hundred of Python's subprocess."""
    text = """
def test_trace(fabric, monkeypatch):
    with fabric.trace("h1") as trace:
        pass
    monkeypatch.setenv("PATH", "/nonexistent")
    trace.packets()
"""
    out = run_pytest(muslin_programs, tmp_path, text)
    assert re.search(r"FabricError: there is no tshark, .*: install Debian's package tshark$", out, re.M), out
    assert "subprocess" not in out


def test_index(users):
    """One page over all fabrics, failures first, with the failure; each test of the JUnit file names its page."""
    _, folder = users
    index = (folder / "pages/index.html").read_text()
    assert "8 fabrics, 3 of failed tests" in index
    results = re.findall(r'class="(passed|failed)"', index)
    assert results == ["failed"] * 3 + ["passed"] * 5
    assert all(re.search(rf"test_users.py:\d+: AssertionError: {p}\b", index) for p in ("ib/1", "ib_1", "ib 1"))
    assert index.count("<summary>throughput and timeline</summary><svg") == 3
    page = next((folder / "pages").glob("*twenty_letters*ib_1*/report.html")).read_text()
    assert "Failure in call" in page and "assert not link" in page
    assert (folder / "junit.xml").read_text().count('name="muslin_report"') == 11  # failed tests have an artifact, too


def results(folder):
    """Of the pages below it: {test: [result]}, in the order of their directories' names."""
    found = {}
    for file in sorted(folder.glob("*/result.json")):
        found.setdefault(json.loads(file.read_text())["test"], []).append((file.parent, json.loads(file.read_text())))
    return found


def test_artifacts_of_wider_scopes(muslin_programs, tmp_path):
    """A test that fails leaves page, log, output and capture of each fabric it used, which others use on."""
    out = run_pytest(muslin_programs, tmp_path, WIDER, "--muslin-artifacts=kept", "--muslin-report=pages")
    assert "1 passed" in out and "4 failed" in out and "error" not in out, out
    kept = results(tmp_path / "kept")
    assert {t.split("::")[1]: len(k) for t, k in kept.items()} == {
        "test_two": 2, "test_held": 1, "test_shared": 1, "test_another": 1,
    }  # fmt: skip
    tests = (("two", "left", "left"), ("held",) * 3, ("shared", "shared", "users"), ("another",) * 3)
    for test, of, name in tests:
        folder, result = kept[f"test_users.py::test_{test}"][0]
        assert not result["passed"]
        assert re.match(rf"test_users.py:\d+: AssertionError: the port of {of}$", result["failure"])
        page = (folder / "report.html").read_text()
        assert "Failure in call" in page and f"fabric {name}-" in page[page.index("Log of the daemon") :]
        assert len(list(folder.glob("*-ibstatus.log"))) == 1 and not list(folder.glob("*-ibstat.log"))
        assert "ibstatus" in page and "ibstat.log" not in page
    index = (tmp_path / "kept/index.html").read_text()
    assert "5 fabrics, 5 of failed tests" in index and index.count("AssertionError: the port of") == 5
    pages = results(tmp_path / "pages")
    module = pages["test_users.py"][0][1]
    assert not module["passed"] and "the port of shared" in module["failure"]
    mine = {t.split("-")[0]: r[0][1] for t, r in pages.items() if "::" not in t}
    assert {t: (r["passed"], r["failure"][-7:]) for t, r in mine.items() if t != "test_users.py"} == {
        "left": (False, "of left"), "right": (False, "of left"), "held": (False, "of held"),
    }  # fmt: skip


def test_fabrics_that_are_down(muslin_programs, tmp_path):
    """One that the test took down has a page with its timeline; an error of down() fails page and index, too."""
    out = run_pytest(muslin_programs, tmp_path, ENDS, "--muslin-artifacts=kept")
    assert "3 passed" in out and "1 failed" in out and "2 errors" in out, out
    kept = {t.split("::")[1]: k[0] for t, k in results(tmp_path / "kept").items()}
    assert set(kept) == {"test_down", "test_sanitizer", "test_sanitizer_of_a_shared_fabric"}
    folder, result = kept["test_down"]
    assert "AssertionError: after down" in result["failure"] and len(result["faults"]) == 1
    assert json.loads((folder / "timeline.json").read_text())["events"]
    page = (folder / "report.html").read_text()
    assert "<svg" in page[page.index("<h2>Fabric") :] and "fabric down-" in page[page.index("Log of the daemon") :]
    for test, error in (("", "AddressSanitizer"), ("_of_a_shared_fabric", "LeakSanitizer")):
        folder, result = kept[f"test_sanitizer{test}"]
        assert not result["passed"] and "sanitizers (SAN=1) report" in result["failure"]
        page = (folder / "report.html").read_text()
        assert "Failure in teardown" in page and error in page and 'id="result" class="failed"' in page
    assert "3 fabrics, 3 of failed tests" in (tmp_path / "kept/index.html").read_text()


def test_paths_are_relative_to_pytests_directory(muslin_programs, tmp_path):
    """That of a program and of a topology; programs run in the directory of the fabric."""
    (tmp_path / "mine").write_text("#!/bin/sh\necho in $PWD\n")
    (tmp_path / "mine").chmod(0o755)
    (tmp_path / "three.topo").write_text("leafs 1 hosts 3\n")
    out = run_pytest(muslin_programs, tmp_path, PATHS)
    assert "3 passed" in out, out


def test_messages_have_the_outputs(muslin_programs, tmp_path):
    """Those of a program that does not do what is expected, up to that time."""
    out = run_pytest(muslin_programs, tmp_path, MESSAGES)
    assert "6 failed" in out and "1 error" in out, out
    for words in (
        r"WaitTimeout: 'listens' in the output of .* did not happen within 4 s .*:\nE +starts",
        r"WaitTimeout: a connection to .* ended with 3:\nE +refused\n(.*\n)+?E +the server .*:\nE +the server$",
        r"WaitTimeout: traffic did not happen .*: `.* echo the client` (runs|ended with 0):$",
        r"ProcessFailed: `.* trace h9 .*` ended with 1, not 0:\nE +muslin: fabric .* has no node \"h9\"",
        r"FabricError: `tshark .* nonsense\.\.` ended with \d+:\n(.*\n)*E +tshark: ",
        r"FabricError: fault 1: h1 drop is not armed any more",
        r"TypeError: .*muslin\(\) got an unexpected keyword argument 'topo'",
    ):
        assert re.search(words, out, re.M), (words, out)
    assert "muslin/process.py" not in out and "muslin/pair.py" not in out, "lines of the plugin, not of the test"
    out = run_pytest(muslin_programs, tmp_path, "def test_mine(fabric): pass\n", "--muslin-user=nosuch")
    assert "--muslin-user=nosuch: there is no such user" in out or os.geteuid(), out


def test_index_of_a_second_run(muslin_programs, tmp_path):
    """It has what that run wrote, and is removed if that is nothing; a page's directory has files of one run."""
    text = 'def test_{}(fabric):\n    fabric.run("h1", "{}")\n    assert False\n'
    both = text.format("a", "ibstat") + text.format("b", "ibstat")
    run_pytest(muslin_programs, tmp_path, both, "--muslin-artifacts=k")
    index = tmp_path / "k/index.html"
    assert "2 fabrics" in index.read_text()
    run_pytest(muslin_programs, tmp_path, text.format("a", "ibstatus"), "--muslin-artifacts=k")
    assert "1 fabric, 1 of failed tests" in index.read_text() and "test_b" not in index.read_text()
    folder = results(tmp_path / "k")["test_users.py::test_a"][0][0]
    assert list(folder.glob("*-ibstatus.log")) and not list(folder.glob("*-ibstat.log"))
    run_pytest(muslin_programs, tmp_path, "def test_c():\n    pass\n", "--muslin-artifacts=k")
    assert not index.exists()


def test_shards(muslin_programs, tmp_path):
    """Fabrics are split where muslind can split them and the test does not say how; the output names the others."""
    out = run_pytest(muslin_programs, tmp_path, SHARDS, "--muslin-shards=2", "--junitxml=junit.xml", "-rs")
    assert "3 passed, 1 skipped" in out and "1 failed" in out, out
    assert "one daemon: it counts daemons" in out
    assert "--nonsense" in out and "--muslin-seed=1 --muslin-shards=2" in out
    unsplit = out.split("in one daemon despite --muslin-shards=2")[1]
    assert re.search(r"fewer leaf switches.* cannot be split into shards: test_users.py::test_one_leaf$", unsplit, re.M)
    assert unsplit.count("test_users.py::") - unsplit.count("FAILED test_users.py::") == 1, out
    assert (tmp_path / "junit.xml").read_text().count('name="muslin_one_daemon"') == 1
    out = run_pytest(muslin_programs, tmp_path, SHARDS, "-k", "one_daemon")
    assert "1 passed" in out and "despite" not in out, out


@pytest.mark.parametrize("number", ["0", "65", "-1", "two"])
def test_shards_that_no_fabric_can_have(muslin_programs, tmp_path, number):
    out = run_pytest(muslin_programs, tmp_path, SHARDS, f"--muslin-shards={number}")
    assert f"--muslin-shards: expected a number of daemons from 1 to 64, not '{number}'\n" in out
    assert "passed" not in out


def ended(pid):
    """Whether the process has ended, even if nobody has reaped it."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("signals", ["TERM", "INT INT", "KILL"])
def test_a_signal_leaves_nothing(muslin_programs, tmp_path, folder, signals):
    """Neither directories nor programs: also if a second Ctrl-C ends the teardown, or pytest has no teardown."""
    argv, env = prepare(muslin_programs, tmp_path, ENDED)
    with (tmp_path / "log").open("w") as log:
        argv = ["env", "--default-signal=INT", *argv]  # a shell's background jobs ignore it
        p = subprocess.Popen(argv, cwd=tmp_path, env=env | {"TMPDIR": str(folder)}, stdout=log, stderr=log)
    try:
        for name, begun in zip(signals.split(), ["pids", "teardown"]):
            wait_until((tmp_path / begun).exists, 60, begun)
            p.send_signal(getattr(signal, f"SIG{name}"))
        p.wait(60)
    finally:
        p.kill()
        p.wait()
    wait_until(lambda: all(map(ended, (tmp_path / "pids").read_text().split())), 20, "the end of the programs")
    wait_until(lambda: not list(folder.iterdir()), 30, "the removal of the directories")


def test_kill_reaches_no_other_program(tmp_path, monkeypatch):
    """The ID of a process that has been reaped may be another one's. What it has left in its group is killed."""
    killed, killpg = [], os.killpg

    def count(group, sig):
        if sig:  # 0 only looks whether there is such a group
            killed.append((group, sig))
        killpg(group, sig)

    monkeypatch.setattr(os, "killpg", count)
    program = Process(["true"], tmp_path / "log")
    program.wait()
    program.kill()
    assert not killed
    program = Process(["sh", "-c", "sleep 100 & echo $!"], tmp_path / "log")
    child = int(program.wait())
    program.kill()
    wait_until(lambda: ended(child), 20, "the child's end")
    assert killed == [(program.pid, signal.SIGKILL)]
    program.kill()
    assert len(killed) == 1


def test_a_build_folder_that_is_empty(muslin_programs, tmp_path):
    """The plugin outside of a source tree: a wrong --muslin-build is reported, and only tests with a fabric fail."""
    site = tmp_path / "site"
    site.mkdir()
    subprocess.run(["cp", "-r", TREE / "harness/muslin", site / "muslin"], check=True)
    (tmp_path / "test_users.py").write_text("def test_fabric(fabric): pass\ndef test_other(): pass\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHONPATH"))}
    env |= {"PYTHONPATH": str(site), "PYTEST_PLUGINS": "muslin.plugin"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--muslin-build={tmp_path}/nothing"]
    r = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert "1 passed" in r.stdout and "1 error" in r.stdout
    assert f"--muslin-build={tmp_path}/nothing: there is no program muslin" in r.stdout


def test_ports_of_parallel_processes():
    """Before a program listens, too: two tests that run at once had the same port now and then."""
    ask = "from muslin import free_port; print(*(free_port() for _ in range(60)), flush=True); input()"
    env = os.environ | {"PYTHONPATH": str(TREE / "harness")}
    argv = [sys.executable, "-c", ask]
    with contextlib.ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        others = [stack.enter_context(subprocess.Popen(argv, env=env, **pipes)) for _ in range(10)]
        ports = [port for other in others for port in other.stdout.readline().split()]
        for other in others:
            other.stdin.close()
    assert len(ports) == len(set(ports)) == 10 * 60


def test_the_log_of_a_restored_guest():
    """Without the boot before the snapshot; all of it if the guest was not restored."""
    boot = "[    0.000000] Linux version 6.1\n[    1.600000] Run /init as init process\n"
    since = "[    2.540379] random: crng reseeded due to virtual machine fork\n[    2.7] virtio-pci: found\n"
    assert plugin._since_restore(boot + since) == since
    assert plugin._since_restore(since) == since
    assert plugin._since_restore(boot) == boot


CONNECTIONS = """
import socket
from muslin import free_port
from muslin.process import PORT_BLOCK

for port in (int(free_port()) for _ in range(2 * PORT_BLOCK)):
    with socket.create_server(("127.0.0.1", port)) as listener, socket.create_connection(("127.0.0.1", port)) as c:
        listener.accept()[0].close()
        assert not c.recv(1)
"""


def test_ports_after_many_connections():
    """More than a process has ports, within a minute, each of a connection that the server has closed first."""
    env = os.environ | {"PYTHONPATH": str(TREE / "harness")}
    subprocess.run([sys.executable, "-c", CONNECTIONS], env=env, check=True)
