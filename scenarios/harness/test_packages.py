# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages, `make install` and `make uninstall`: versions, files and shell completion."""

import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest
from test_ci import LIMIT, TREE

pytestmark = pytest.mark.timeout(LIMIT + 100)


def output(*argv, **kw):
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=LIMIT, check=False, **kw)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


def build(request):
    return pathlib.Path(request.config.getoption("--muslin-build") or TREE / "build").resolve()


def make(request, *words):
    return output("make", "-s", "-C", TREE, f"O={build(request)}", *words)


def test_versions_agree(muslin_programs):
    """One version in the programs, the DKMS configuration, the Python package and the packages' changelogs."""
    version = output(TREE / "ci/package", "version").strip()
    for program in ("muslin", "muslind", "muslin-sim", "muslin-sm"):
        assert output(muslin_programs / program, "--version").split()[-1] == version
    files = "harness/muslin/__init__.py emu/guest/dkms.conf ci/pack/muslin.spec ci/pack/debian/changelog CHANGELOG.md"
    for file in files.split():
        assert re.search(rf"\b{re.escape(version)}\b", (TREE / file).read_text()), file


def test_uninstall_removes_what_install_put(request, folder):
    """Directories that others use stay, with their files."""
    where = [f"DESTDIR={folder}", "prefix=/opt/x", "libdir=/opt/x/lib64"]
    other = folder / "opt/x/share/man/man1/other.1"
    other.parent.mkdir(parents=True)
    other.write_text("")
    make(request, "install", *where)
    installed = {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}
    assert {"opt/x/bin/muslin", "opt/x/lib64/muslin/libmuslin-shim.so", "opt/x/share/man/man1/muslin.1"} <= installed
    make(request, "uninstall", *where)
    assert [p for p in folder.rglob("*") if not p.is_dir()] == [other]
    assert not list(folder.rglob("*muslin*"))


def test_programs_find_their_library(request, folder):
    """In lib, in lib64, and in the libdir that they were built with; `make install` refuses another one."""
    prefix, env = folder / "p", os.environ | {"MUSLIN_RUNDIR": str(folder / "r"), "MUSLIN_NAME": "libdir"}
    env.pop("LD_PRELOAD", None)
    muslin = prefix / "bin/muslin"
    for lib in "lib", "lib64":
        make(request, "install", f"prefix={prefix}", f"libdir={prefix}/{lib}")
        output(muslin, "up", "leafs 1 hosts 2", env=env)
        try:
            assert f"LD_PRELOAD='{prefix}/{lib}/muslin/" in output(muslin, "env", "h1", env=env)
        finally:
            output(muslin, "down", env=env)
        make(request, "uninstall", f"prefix={prefix}", f"libdir={prefix}/{lib}")
    argv = [TREE / "ci/install", "install", build(request), "", prefix, prefix / "elsewhere"]
    r = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert r.returncode == 1 and f"give libdir={prefix}/elsewhere to `make all`, too" in r.stderr, r


def test_install_leaves_folders_as_they_are(request, folder):
    """An existing directory, such as /usr and /tmp, keeps its mode all the time: ctime would show a change."""
    where = [f"DESTDIR={folder}", "prefix=/opt/x", "libdir=/opt/x/lib64"]
    make(request, "install", *where)
    above = [p for p in folder.rglob("*") if p.is_dir() and all(q.is_dir() for q in p.iterdir())]
    assert {folder / "opt", folder / "opt/x", folder / "opt/x/share"} <= set(above)
    before = [p.stat().st_ctime_ns for p in above]
    make(request, "install", *where)
    assert [p.stat().st_ctime_ns for p in above] == before


def copy_sources(folder, *names):
    for file in output("git", "-C", TREE, "ls-files", "-z", *names).split("\0")[:-1]:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / file, folder / file)


def test_a_tree_in_a_path_with_spaces(folder):
    """Its make has the same targets and names of objects as in any other directory."""
    tree = folder / "two words"
    copy_sources(tree, "Makefile", "ci", "emu", "fabric", "harness", "rxe", "siw", "sm")
    planned = output("make", "-n", "-C", tree, "all")
    assert " -o build/muslind " in planned and " -o build/emu/lib/loop.o emu/lib/loop.c" in planned
    output("make", "-C", tree, "build/muslin-rsh", "build/muslin-vm")
    assert (tree / "build/muslin-rsh").resolve() == tree / "emu/cli/muslin-rsh"
    assert (tree / "build/muslin-vm").resolve() == tree / "emu/guest/muslin-vm"


def test_install_from_a_tree_that_others_cannot_read(request, folder):
    """As one that was unpacked with umask 077: others can read what was installed, and execute the same files."""
    tree, dest = folder / "tree", folder / "two words"
    copy_sources(tree, "ci", "emu/abi", "emu/cli", "emu/guest", "man")
    output("chmod", "-R", "go-rwx", tree)
    output(tree / "ci/install", "install", build(request), dest, "/usr", "/usr/lib")
    for path in dest.rglob("*"):
        mode = path.lstat().st_mode
        rights = 0o5 if path.is_dir() or mode & 0o100 else 0o4
        assert path.is_symlink() or mode & 0o77 == rights << 3 | rights, (path, oct(mode))


@pytest.fixture(scope="module")
def wheel(request):
    """It compiles nothing that the build folder has, and nothing of sanitizers goes into it."""
    make(request, "all")
    compiled = "  CC " in make(request, "wheel")
    assert compiled == build(request).name.endswith("-san")
    return max((build(request) / "packages").glob("muslin-*.whl"), key=lambda p: p.stat().st_mtime)


def test_setup_with_a_wheel(wheel, folder):
    """ci/setup with a package builds nothing: it adds the wheel's programs to the PATH and its plugin to pytest."""
    (folder / "test_mine.py").write_text('def test_mine(fabric):\n    assert "Active" in fabric.run("h1", "ibstat")\n')
    script = """
        words=$("$1"/ci/setup "$PWD/prefix" "$2") && eval "$words"
        muslin up
        trap 'muslin down' EXIT
        muslin run h1 -- ibv_devinfo
        command -v muslind
        /usr/bin/python3 -m pytest -q -p no:cacheprovider test_mine.py
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "MUSLIN", "PYTHONPATH", "LD_PRELOAD"))}
    env |= {"MUSLIN_RUNDIR": str(folder / "r"), "HOME": str(folder)}
    shutil.copy(wheel, folder)
    out = output("sh", "-e", "-c", script, "sh", TREE, wheel.name, cwd=folder, env=env)
    assert "PORT_ACTIVE" in out and f"{folder}/prefix/bin/muslind" in out and "1 passed" in out, out
    assert not (folder / "prefix/lib/muslin").exists(), "it was built"


def test_setup_that_fails(folder):
    """`eval` of what it prints fails, too, so that a pipeline ends there."""
    script = 'set -e; eval "$("$1"/ci/setup "$PWD/prefix" nosuch.whl)"; echo it goes on'
    argv = ["sh", "-c", script, "sh", TREE]
    r = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 1 and not r.stdout and r.stderr == f"ci/setup: {folder}/nosuch.whl: no such file\n", r


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    """A virtual environment with the wheel, and with pytest of the system."""
    venv = tmp_path_factory.mktemp("wheel") / "venv"
    output("/usr/bin/python3", "-m", "venv", "--system-site-packages", venv)
    output(venv / "bin/pip", "install", "-q", "--no-index", "--no-deps", wheel)
    return venv


def test_wheel(wheel, venv, folder):
    """`pip install FILE` alone: programs with their libraries, commands, and the plugin."""
    names = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in names if "__pycache__" in n]
    assert {"GPL-2.0-only.txt", "BSD-2-Clause.txt"} <= {pathlib.PurePath(n).name for n in names}
    libraries = {n.rpartition("/")[2] for n in names if re.search(r"/_programs/lib/[^/]+$", n)}
    assert libraries == {n.split("/")[-2] for n in names if "/_programs/share/licenses/" in n}
    versions = "import muslin, importlib.metadata as m; print(muslin.__version__, m.version('muslin'))"
    assert len(set(output(venv / "bin/python", "-c", versions, cwd=folder).split())) == 1
    muslin = venv / "bin/muslin"
    daemon = next(venv.glob("lib/python3*/site-packages/muslin/_programs/bin/muslind"))
    carried = re.findall(r"=> (\S+/_programs/\S+)", output("ldd", daemon))
    assert len(carried) >= 4, "the libraries come from the wheel"
    env = os.environ | {"MUSLIN_RUNDIR": str(folder / "r"), "MUSLIN_NAME": "wheel", "HOME": str(folder)}
    env.pop("LD_PRELOAD", None)
    output(muslin, "up", env=env)
    try:
        assert "Active" in output(muslin, "run", "h1", "--", "ibstat", env=env)
    finally:
        output(muslin, "down", env=env)
    (folder / "test_mine.py").write_text('def test_mine(fabric):\n    assert "Active" in fabric.run("h1", "ibstat")\n')
    assert "1 passed" in pytest_of(venv, folder, "test_mine.py")


def pytest_of(venv, folder, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "MUSLIN", "PYTHONPATH", "LD_PRELOAD"))}
    return output(venv / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *args, cwd=folder, env=env)


def test_example_with_a_wheel(venv, folder):
    """docs/example as its README says; without fetching pytest, which the system has."""
    shutil.copytree(TREE / "docs/example", folder / "project")
    assert "12 passed" in pytest_of(venv, folder / "project", "-n", "2")


def test_pip_leaves_the_source_as_it_was(folder):
    """`pip install .` builds in a temporary folder: neither metadata nor a folder build/ appears beside the source."""
    source, out = folder / "source", folder / "out"
    copy_sources(source, "pyproject.toml", "README.md", "LICENSES", "harness", "ci")
    before = sorted(source.rglob("*"))
    options = ["-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", out]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)}
    output("/usr/bin/python3", "-m", "pip", "wheel", *options, source, env=env)
    (wheel,) = out.iterdir()
    assert {"muslin/plugin.py", "muslin/fabric.py", "muslin/py.typed"} <= set(zipfile.ZipFile(wheel).namelist())
    assert sorted(source.rglob("*")) == before and not list(folder.glob("muslin-wheel-*"))


@pytest.mark.skipif(not shutil.which("dpkg-buildpackage"), reason="not a Debian system: dpkg-buildpackage is missing")
def test_deb(request):
    """lintian reports nothing of the packages. ci/package-check compiles them with Debian's flags."""
    make(request, "deb", "OBJECTS=1")
    packages = list((build(request) / "packages").glob("*.deb"))
    assert {"muslin", "muslin-dkms", "python3-muslin"} <= {p.name.split("_")[0] for p in packages}
    assert output("lintian", "--allow-root", "--tag-display-limit", "0", *packages) == ""


@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is missing")
def test_rpm(request):
    make(request, "rpm")
    packages = [p for p in (build(request) / "packages").glob("*.rpm") if "-debug" not in p.name]  # those are RPM's own
    assert {"muslin", "muslin-dkms", "python3-muslin"} <= {re.split(r"-\d", p.name)[0] for p in packages}
    said = output("rpmlint", "-c", TREE / "ci/pack/rpmlint.toml", *packages, TREE / "ci/pack/muslin.spec")
    assert "0 errors, 0 warnings" in said, said


@pytest.mark.parametrize(
    "typed, offered",
    [
        (["ru"], {"run"}),
        (["run", "h"], {"h1", "h2"}),
        (["link", "h1:1", "d"], {"down"}),
        (["show", "--j"], {"--json"}),
        (["fault", "clear", ""], {"all", "h1"}),
        (["vm", "h"], {"h1", "h2"}),
        (["vm", "h1", "--sn"], {"--snapshot"}),
        (["vm", "h1", "--model", ""], {"muslin", "connectx"}),
    ],
)
def test_completion_in_bash(shared_fabric, typed, offered):
    words = " ".join(f"'{w}'" for w in ["muslin", *typed])
    line = f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}"
    script = f"source {TREE}/ci/completion/muslin; {line}; _muslin; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    got = set(output("bash", "-c", script, env=shared_fabric.env).split())
    assert offered <= got, got


def test_completion_of_guests_options(muslin_programs):
    """Each shell offers all options of `muslin vm`."""
    said = output(muslin_programs / "muslin", "vm", "--help")
    options = set(re.findall(r"^  (?:.*, )?--([a-z-]+)", said, re.M)) | {"snapshot"}
    assert {"share", "image", "no-snapshot"} < options
    texts = [(TREE / "ci/completion" / file).read_text() for file in ("muslin", "_muslin", "muslin.fish")]
    bash = re.search(r"^\tvm\)\n((?:\t\techo .*\n)+)", texts[0], re.M)[1]
    zsh = re.search(r"_arguments '--mem.*?^\tfi", texts[1], re.M | re.S)[0]
    assert set(re.findall(r"--([a-z-]+)", bash)) - {"name"} == options
    assert set(re.findall(r"'\*?--([a-z-]+)\[", zsh)) == options
    assert set(re.findall(r"-n \$vm -l ([a-z-]+)", texts[2])) == options


def test_completion_of_ups_options(muslin_programs):
    """Each shell offers all options that `muslin up --help` lists."""
    said = output(muslin_programs / "muslin", "up", "--help")
    options = set(re.findall(r"--([a-z-]+)", said.split("\n", 1)[1])) | {"help"}
    assert {"shards", "join", "packet-life", "apm"} < options
    texts = [(TREE / "ci/completion" / file).read_text() for file in ("muslin", "_muslin", "muslin.fish")]
    bash = re.search(r"^\tup\)\n((?:\t\techo .*\n)+)", texts[0], re.M)[1]
    zsh = re.search(r"_arguments '--seed.*?^\t\t;;", texts[1], re.M | re.S)[0]
    assert set(re.findall(r"--([a-z-]+)", bash)) - {"name"} == options
    assert set(re.findall(r"'--([a-z-]+)\[", zsh)) == options
    assert set(re.findall(r"-n \$up -l ([a-z-]+)", texts[2])) == options


def offered_by_bash(line):
    words = " ".join(f"'{w}'" for w in line)
    script = f"source {TREE}/ci/completion/muslin; COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _muslin"
    return output("bash", "-c", f"{script}; printf '%s\\n' \"${{COMPREPLY[@]}}\"").split()


def offered_by_fish(line):
    script = f"complete -e muslin; source {TREE}/ci/completion/muslin.fish; complete -C '{' '.join(line)}'"
    return [out.split("\t")[0] for out in output("fish", "-N", "-c", script).splitlines()]


def test_completion_of_all_commands(muslin_programs):
    """Each shell offers all commands and options that `muslin help` lists."""
    found = {}
    for command, rest in re.findall(r"^  ([a-z]+)(.*)", output(muslin_programs / "muslin", "help"), re.M):
        words = ["muslin", command, *(["list"] if command == "fault" and " list " in rest else [])]
        options = re.findall(r"(?<=[\[ |])--?[A-Za-z]+", rest) if command not in ("up", "vm") else []
        found.setdefault(tuple(words), set()).update(options)
    assert {"-w", "-C", "-W", "-c", "--duration", "-s"} <= found["muslin", "trace"]
    assert {"--topology", "--json"} <= found["muslin", "show"] and found["muslin", "fault", "list"] == {"--json"}
    commands = {words[1] for words in found}
    zsh = (TREE / "ci/completion/_muslin").read_text()
    assert set(re.findall("['\"]([a-z]+):", re.search(r"commands=\(.*?\)\n", zsh, re.S)[0])) == commands
    for offered in offered_by_bash, offered_by_fish:
        assert commands <= set(offered(["muslin", ""])), offered
        for words, options in found.items():
            assert all(o in offered([*words, o[:1] if o[1] != "-" else o]) for o in options), (offered, words)
    for (_, command, *_), options in found.items():
        text = re.search(rf"^\t{command}\) [^\n]*;;$|^\t{command}\)\n.*?^\t\t;;$", zsh, re.S | re.M)
        assert not options or all(re.search(rf"{o}(?![a-z])", text[0]) for o in options), (command, text)


SIM = ("muslin-sim", "_muslin-sim", "muslin-sim.fish")


def test_completion_of_the_simulator(muslin_programs):
    """Each shell offers the options that it has."""
    said = output(muslin_programs / "muslin-sim", "--help")
    options = set(re.findall(r"--([a-z-]+)", said)) | {"help", "version"}
    assert {"lfts", "lmc", "partitions"} < options
    for file, option in zip(SIM, (r"--([a-z-]+)", r"'\*?--([a-z-]+)\[", r" -l ([a-z-]+)"), strict=True):
        assert set(re.findall(option, (TREE / "ci/completion" / file).read_text())) == options, file
    script = f"source {TREE}/ci/completion/muslin-sim; COMP_WORDS=(muslin-sim --routing u); COMP_CWORD=2; _muslin_sim"
    assert output("bash", "-c", f'{script}; echo "${{COMPREPLY[@]}}"') == "updn\n"


@pytest.mark.parametrize("shell, check", [("zsh", "-n"), ("fish", "--no-execute")])
def test_completion_is_read(shell, check):
    files = {"zsh": ["_muslin", "_muslin-sim"], "fish": ["muslin.fish", "muslin-sim.fish"]}[shell]
    for file in files:
        output(shell, check, TREE / "ci/completion" / file)
