# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that users' pipelines copy, as far as they run without a hosted runner: the scripts, the files, the plugin."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

TREE = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 800  # s, for builds, guests and whole runs of pytest beside other tests
pytestmark = pytest.mark.timeout(LIMIT + 100)

USER_TEST = """
def test_mine(fabric):
    fault = fabric.fault("h5", "drop", opcode="rc", nth=20)
    args = ["ibv_rc_pingpong", "-p", "{port}", "-n", "100"]
    _, out = fabric.pair(("h5", *args), ("h1", *args, fabric.ip("h5")))
    assert "100 iters" in out and fault.fired == [20]


def test_that_fires_nothing(fabric):
    fabric.fault("h5", "drop", opcode="rc", nth=20)


def test_that_fails(fabric):
    assert "0x0 bytes" in fabric.run("h1", "smpquery", "nodedesc", fabric.port("h5")["lid"])
"""


GUEST_TEST = """
import pytest


@pytest.mark.guest
def test_mine_in_a_guest(fabric):
    vm = fabric.vm("h5")
    vm.wait_ib0()
    fault = fabric.fault("h5", "drop", attr="PathRecord", nth=1)
    assert "State: Active" in vm.run("ibstat")
    vm.ping("10.0.0.1", count=5)  # ib0 requests the path again
    assert fault.fired == [1]
"""


def users_tests(folder, programs, env, *args, text=USER_TEST):
    from muslin import free_port

    (folder / "test_user.py").write_text(text.replace("{port}", free_port()))
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=junit.xml", "--muslin-artifacts=kept"]
    argv.append("--muslin-capture")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | env
    env["PATH"] = f"{programs}:{os.environ['PATH']}"
    r = subprocess.run([*argv, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT)
    return r.stdout + r.stderr


def check_report(out, folder):
    assert "1 passed" in out and "2 failed" in out, out
    assert "never fired: fault 1: h5 drop opcode=rc nth=20" in out
    assert re.search(r"again: pytest .*test_that_fails --muslin-seed=1", out)
    assert 'failures="2"' in (folder / "junit.xml").read_text()
    kept = next((folder / "kept").glob("*that_fails"))
    assert {"report.html", "timeline.json", "replay.sh"} <= {p.name for p in kept.iterdir()}
    capture = next(kept.glob("*-h1.pcapng"))
    out = subprocess.run(["tshark", "-r", capture], capture_output=True, text=True, check=True).stdout
    assert "NodeDescription" in out, out


def test_the_plugin_from_a_package(folder, muslin_programs):
    """pip installs it; the tests of another repository find the fixture."""
    source = folder / "source"
    source.mkdir()
    shutil.copy(TREE / "pyproject.toml", source)
    for part in ("harness", "ci/pack"):
        shutil.copytree(TREE / part, source / part)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder / "site", source], check=True, capture_output=True, text=True, timeout=120)
    check_report(users_tests(folder, muslin_programs, {"PYTHONPATH": str(folder / "site")}), folder)


@pytest.mark.guest
def test_a_guest_in_somebody_elses_test(same_user, folder, muslin_programs):
    env = {"PYTHONPATH": str(TREE / "harness"), "PYTEST_PLUGINS": "muslin.plugin"}
    out = users_tests(folder, muslin_programs, env, "--muslin-build=installed", *same_user, text=GUEST_TEST)
    assert "1 passed" in out, out


def test_two_at_a_time(folder, muslin_programs):
    """pytest-xdist: fabrics of different workers are independent."""
    env = {"PYTHONPATH": str(TREE / "harness"), "PYTEST_PLUGINS": "muslin.plugin"}
    check_report(users_tests(folder, muslin_programs, env, "--muslin-build=installed", "-n", "2"), folder)


def on_fabric(folder, programs, commands, **env):
    env = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "MUSLIN_RUNDIR": str(folder / "r"), **env}
    env["MUSLIN_COMMANDS"] = commands
    return subprocess.run([TREE / "ci/on-fabric"], cwd=folder, env=env, capture_output=True, text=True, timeout=100)


def test_commands_on_a_fabric(folder, muslin_programs):
    """The `run` of the action: rping between two hosts of a topology in one line."""
    commands = """
        ip=$(muslin show h1 | grep -om1 '10[.][0-9.]*')
        muslin run h1 -- rping -s -C 5 -a "$ip" &
        until muslin run h2 -- rping -c -v -C 5 -a "$ip"; do sleep 0.2; done
        wait
    """
    r = on_fabric(folder, muslin_programs, commands, MUSLIN_TOPOLOGY="leafs 1 hosts 2")
    assert r.returncode == 0 and r.stdout.count("ping data") == 5, r.stdout + r.stderr
    assert not list((folder / "r").glob("*/*.sock"))


def test_commands_that_fail(folder, muslin_programs):
    """Returns their status, takes the fabric down, and keeps the logs."""
    fail = "muslin fault add h1 drop qpn=0x777777; exit 7"
    r = on_fabric(folder, muslin_programs, fail, MUSLIN_ARTIFACTS=str(folder / "kept"))
    assert r.returncode == 7
    kept = {p.name: p.read_text() for p in (folder / "kept").iterdir()}
    assert "never fired" in kept["faults.txt"] and "h1" in kept["fabric.json"] and "<svg" in kept["fabric.svg"]
    assert not list((folder / "r").glob("*/*.sock"))


def test_the_files_are_what_their_readers_want():
    action = yaml.safe_load((TREE / "ci/action/action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert "uses" in step or "shell" in step
        for script in re.findall(r"\$GITHUB_ACTION_PATH/([\w./-]+)", step.get("run", "")):
            assert os.access(TREE / "ci/action" / script, os.X_OK), script
        for name in re.findall(r"inputs\.(\w+)", str(step)):
            assert name in action["inputs"]
    template = yaml.safe_load((TREE / "ci/gitlab/muslin.yml").read_text())[".muslin"]
    assert all(isinstance(line, str) for part in ("before_script", "after_script") for line in template[part])
    for line in [*template["before_script"], *template["after_script"]]:
        subprocess.run(["sh", "-n", "-c", line], check=True)
    container = (TREE / "ci/container/Containerfile").read_text()
    before = container.partition("ci/deps build")[0]  # which reads its table
    assert re.search(r"^COPY ci/deps ci/packages /muslin/ci/$", before, re.M), before
    packages = re.search(r"recommends (libjansson.*?)&&", container, re.S)[1].replace("\\", " ").split()
    argv = ["apt-get", "install", "--simulate", "-q", "--no-install-recommends", *packages]
    r = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stdout + r.stderr  # also if another release has a library by another name
