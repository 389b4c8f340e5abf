# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The plugin from the user's side: fixtures, marker, ini value, artifacts by node id, the index. muslin-pytest(7)."""

import json
import os
import re
import subprocess
import sys

import pytest
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


def run_pytest(programs, folder, text, *options):
    """Runs the tests @text in @folder with the programs that are installed there; returns the output."""
    (folder / "test_users.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmuslin_topology = leafs 1 hosts 2\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"PYTHONPATH": str(TREE / "harness"), "PYTEST_PLUGINS": "muslin.plugin"}
    env["PATH"] = f"{programs}:{env['PATH']}"
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--muslin-build=installed", *options]
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
