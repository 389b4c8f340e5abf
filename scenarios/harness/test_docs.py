# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Checks the documentation: its examples run, quoted code is in the tree, and the named files and functions exist. A
fence "sh test" or "python test" is an example to be run, "sh build" one that builds and is not run here, and "c FILE"
a quotation from FILE.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*sorted(TREE.glob("*.md")), *sorted((TREE / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.M | re.S)
FENCES = [(page, *m.groups()) for page in PAGES for m in FENCE.finditer(page.read_text())]
QUOTES = [f for f in FENCES if f[1] == "c"]
TOP = "ci|docs|emu|fabric|harness|man|rxe|scenarios|siw|sm"


def examples(language):
    found = [(page, text) for page, lang, word, text in FENCES if lang == language and word == "test"]
    assert found
    return [pytest.param(text, id=f"{page.stem}-{i}") for i, (page, text) in enumerate(found)]


@pytest.fixture
def env(folder, muslin_programs):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "MUSLIN"))}
    return env | {"PATH": f"{muslin_programs}:{env['PATH']}", "MUSLIN_RUNDIR": str(folder / "r"), "HOME": str(folder)}


@pytest.mark.parametrize("text", examples("sh"))
def test_shell(text, folder, env):
    script = f"set -e\ntrap 'muslin down >/dev/null 2>&1 || true' EXIT\n{text}\ntrap - EXIT\n"
    r = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout + r.stderr
    assert not list((folder / "r").glob("*/*.sock")), "the example leaves a daemon"


@pytest.mark.parametrize("text", examples("python"))
def test_python(text, folder, env):
    (folder / "test_example.py").write_text(text)
    env |= {"PYTHONPATH": str(TREE / "harness"), "PYTEST_PLUGINS": "muslin.plugin"}
    options = ["-q", "-p", "no:cacheprovider", "--muslin-build=installed"]
    argv = [sys.executable, "-m", "pytest", *options, "test_example.py"]
    r = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert r.returncode == 0 and "1 passed" in r.stdout, r.stdout + r.stderr


@pytest.mark.parametrize("quote", QUOTES, ids=[f"{q[0].stem}-{i}" for i, q in enumerate(QUOTES)])
def test_quotations(quote):
    page, _, file, text = quote
    assert text in (TREE / file).read_text(), f"{page.name} quotes what {file} has no more"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_names(page):
    """`module/file.c:function()`, `module/file`, [text](file)."""
    text, wrong = page.read_text(), []
    for file, function in re.findall(r"`([\w/.-]+\.[ch]):(\w+)\(\)`", text):
        path = TREE / file
        if not path.exists() or not re.search(rf"^\w[^;{{}}]*\b{function}\(", path.read_text(), re.M):
            wrong.append(f"{file}:{function}()")
    for name in re.findall(rf"`((?:{TOP})(?:/[\w.*-]+)*)[/:`]", text) + re.findall(r"\]\(([\w./-]+)\)", text):
        if not list(TREE.glob(name)) and not (page.parent / name).exists():
            wrong.append(name)
    assert not wrong, f"{page.name} names what the tree does not have"


def commands(page):
    """The words of each command in code, inline, indented or in a fence, without settings and comments."""
    text = page.read_text()
    code = re.findall(r"`([^`\n]+)`|^    (\S.*)$|^```([^`]*)^```", text, re.M)
    for line in "\n".join("".join(c) for c in code).splitlines():
        for part in re.split(r"&&|[;|]|\$\(", re.sub(r"(^|\s)#.*", "", line)):
            words = part.strip(" )").split()
            yield [w for w in words if not re.match(r"\w+=", w)]


@pytest.fixture(scope="module")
def make_targets():
    out = subprocess.run(["make", "-pnq"], cwd=TREE, capture_output=True, text=True, check=False, timeout=120).stdout
    return set(re.findall(r"^([\w./-]+):", out, re.M))


@pytest.mark.parametrize("page", [*PAGES, *sorted((TREE / "docs/example").glob("*.md"))], ids=lambda p: p.name)
def test_commands(page, make_targets):
    """`make target`, `ci/script --option`, `pytest --muslin-option`."""
    plugin, wrong = (TREE / "harness/muslin/plugin.py").read_text(), []
    for words in commands(page):
        name, options = words[0] if words else "", [w.partition("=")[0] for w in words if w.startswith("--")]
        if name == "make" and page.name != "CHANGELOG.md":
            wrong += [f"make {w}" for w in words[1:] if re.match(r"[a-z][\w/-]*$", w) and w not in make_targets]
        elif name.startswith("ci/"):
            script = TREE / name
            text = script.read_text() if script.is_file() else ""
            wrong += [name] * (not script.exists()) + [f"{name} {o}" for o in options if text and o not in text]
        wrong += [o for o in options if o.startswith("--muslin-") and o not in plugin]
    assert not wrong, f"{page.name} has commands that the tree does not have"


@pytest.fixture(scope="module")
def works_with():
    """The script, as a module."""
    loader = SourceFileLoader("works_with", str(TREE / "ci/works-with"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("works_with", loader))
    loader.exec_module(module)
    return module


def test_the_page_of_programs_has_the_scripts_rows(works_with):
    lines = [line for line in works_with.PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]
    assert [(name, links, file) for name, _, links, file, _ in rows] == [(r[0], r[2], r[3]) for r in works_with.ROWS]
    assert works_with.PAGE.read_text().partition("on hosts\n")[2].startswith(works_with.HEAD.partition("on hosts\n")[2])


def test_the_programs_that_work_have_tests(works_with):
    """A row without any would say that none failed."""
    files = dict.fromkeys(str(TREE / "scenarios" / row[3]) for row in works_with.ROWS)
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    out = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, cwd=TREE, timeout=60).stdout
    tests = [line.partition("::") for line in out.splitlines() if "::" in line]
    for name, _, _, file, part in works_with.ROWS:
        own = [t for path, _, t in tests if path.endswith(file) and works_with.has_parts(t, part)]
        assert own, f"{name}: no test of {file} has {part} in its name"
