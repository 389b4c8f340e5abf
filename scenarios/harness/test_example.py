# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/example, a user's project: a copy of it is tested as its README describes, on InfiniBand, RoCE and iWARP."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest
import yaml
from test_ci import LIMIT, TREE

pytestmark = pytest.mark.timeout(LIMIT + 100)
EXAMPLE = TREE / "docs/example"
TESTS = 4  # on each kind of link


def run(folder, programs, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"PYTHONPATH": str(TREE / "harness"), "PATH": f"{programs}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "pytest", "-p", "muslin.plugin", "-p", "no:cacheprovider"]
    argv.append("--muslin-build=installed")
    r = subprocess.run([*argv, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    return r.returncode, r.stdout + r.stderr


@pytest.fixture
def project(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "project")
    return tmp_path / "project"


def test_passes_on_every_link(project, muslin_programs):
    status, out = run(project, muslin_programs, "-n", "2")
    assert status == 0 and f"{3 * TESTS} passed" in out, out
    assert not (project / "muslin-artifacts").exists(), "artefacts of tests that passed"


def test_leaves_what_an_upload_needs(project, muslin_programs):
    """
    One of its tests fails: the directory that the workflow uploads has index, page, logs, the command, and captures of
    both hosts with the packets of the last round.
    """
    file = project / "tests/test_service.py"
    file.write_text(file.read_text().replace('count("ping data") == 50', 'count("ping data") == 51', 1))
    status, out = run(project, muslin_programs, "-k", "every_round")
    assert status == 1 and "3 failed" in out, out
    kept = sorted((project / "muslin-artifacts").glob("*/result.json"))
    assert [json.loads(k.read_text())["test"].split("[")[1] for k in kept] == ["ib]", "iwarp]", "roce]"]
    for name in ("report.html", "timeline.json", "replay.sh"):
        assert all((k.parent / name).stat().st_size for k in kept), name
    assert all(list(k.parent.glob("*-rping.log")) for k in kept)
    index = (project / "muslin-artifacts/index.html").read_text()
    assert index.count("report.html") == 3
    for k in kept:
        captures = sorted(k.parent.glob("*.pcapng"))
        assert [c.stem[4:] for c in captures] == ["h2", "h1"]
        assert all(f"{k.parent.name}/{c.name}" in index for c in captures)
        for c in captures:
            out = subprocess.run(["tshark", "-r", c, "-x"], capture_output=True, text=True, check=True).stdout
            assert "rdma-ping-49" in re.sub(r"(?m)^.{56}|\n", "", out), f"{c}: the last round's data"
    cases = list(xml.etree.ElementTree.parse(project / "junit.xml").iter("testcase"))
    assert len(cases) == 3 and all(c.find("failure") is not None for c in cases)


def test_workflows():
    """The names in them exist: the action with its inputs, the template, the directory that pytest writes."""
    job = yaml.safe_load((EXAMPLE / ".github/workflows/test.yml").read_text())["jobs"]["rdma"]
    uses = [s for s in job["steps"] if "/muslin/" in s.get("uses", "")]
    folder = uses[0]["uses"].split("/muslin/")[1].split("@")[0]
    action = yaml.safe_load((TREE / folder / "action.yml").read_text())
    assert set(uses[0]["with"]) <= set(action["inputs"])
    gitlab = yaml.safe_load((EXAMPLE / ".gitlab-ci.yml").read_text())
    template = yaml.safe_load((TREE / "ci/gitlab/muslin.yml").read_text())
    assert gitlab["rdma"]["extends"] in template
    assert set(gitlab["rdma"]["variables"]) <= set(template[".muslin"]["variables"])
    options = (EXAMPLE / "pyproject.toml").read_text()
    for kept in (job["steps"][-1]["with"]["path"].split(), gitlab["rdma"]["artifacts"]["paths"]):
        assert all(f"={path}" in options for path in kept)
