# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of tests with guests: a problem reported by a kernel fails the test, and its log is kept."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.guest

HARNESS = pathlib.Path(__file__).resolve().parents[2] / "harness"
TESTS = """
import pytest
from muslin import ProcessFailed

@pytest.fixture(scope="module")
def vm(shared_fabric):
    return shared_fabric.vm("h1")

def test_that_says_something_harmless(vm):
    vm.run("echo a bug, a warning, an oops >/dev/kmsg")

@pytest.mark.parametrize("text", [
    "BUG: kernel NULL pointer dereference",
    "WARNING: CPU: 0 PID: 1 at made/up.c:1",
    "INFO: task x blocked for more than",
])
def test_that_complains(vm, text):
    vm.run(f"echo '{text}' >/dev/kmsg")

def test_after_them(vm):
    pass

def test_that_hangs(vm):
    with pytest.raises(AssertionError, match="took more than 2 s"):
        vm.run("sleep 60", timeout=2)
    assert vm.run("echo next") == "next\\n"

def test_that_hangs_in_a_guest_whose_clock_is_faster(vm, monkeypatch):
    send = vm._send
    monkeypatch.setattr(vm, "_send", lambda text, timeout: send(text, timeout - 2))
    with pytest.raises(AssertionError, match="took more than 4 s"):
        vm.run("sleep 60", timeout=4)
    assert vm.call("kill -9 $$")[0] == 137

def test_of_a_wrong_status(vm):
    with pytest.raises(ProcessFailed, match="ended with 3, not 0"):
        vm.run("exit 3")
    assert vm.call("exit 3") == (3, "")

def test_of_an_earlier_job(vm):
    vm.start("echo earlier", "earlier").wait()

def test_of_a_job(vm):
    vm.run("for i in $(seq 500); do echo filler $i of the log >/dev/kmsg; done; echo newest >/dev/kmsg")
    vm.start("echo said by the server; sleep 99", "server")
    vm.start("echo said by the client; false", "client")
    vm.wait("grep connected /tmp/client.log", 1)

def test_that_panics(shared_fabric):
    vm = shared_fabric.vm("h5")
    with pytest.raises(AssertionError):
        vm.run("echo c >/proc/sysrq-trigger", timeout=10)
"""


def test_splats_fail_tests_and_are_kept(same_user, muslin_programs, tmp_path, folder, new_fabric):
    """And nothing of the guests is left in TMPDIR."""
    folder.chmod(0o1777)
    (tmp_path / "test_made_up.py").write_text(TESTS)
    argv = [sys.executable, "-m", "pytest", "-p", "muslin.plugin", "-p", "no:cacheprovider", "-rA", "test_made_up.py"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"PYTHONPATH": str(HARNESS), "PATH": f"{muslin_programs}:{env['PATH']}"}
    env |= {"TMPDIR": str(folder), "MUSLIN_CACHE": new_fabric.env["MUSLIN_CACHE"]}
    options = ["--muslin-artifacts=kept", "--muslin-capture", "--muslin-build=installed", *same_user]
    out = subprocess.run([*argv, *options], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=250).stdout
    assert not list(folder.glob("muslin*"))
    assert "6 passed" in out and "5 failed" in out and "error" not in out.splitlines()[-1], out
    assert out.count("FAILED test_made_up.py::test_that_complains") == 3, out
    assert "FAILED test_made_up.py::test_that_panics" in out
    assert "the kernel of the guest on h1 complains" in out and "Kernel panic" in out
    test = re.search(r"^_+ test_of_a_job _+$(.*?)^_{8,}", out, re.M | re.S)[1]
    for name in ("server; sleep 99", "client; false"):  # their logs, and the newest lines of the kernel's
        words = re.escape(f"`echo said by the {name}` in the guest on h1")
        assert re.search(rf"^-+ output of {words} -+\nsaid by the {name.partition(';')[0]}$", test, re.M), test
    assert re.search(r"^-+ kernel of the guest on h1 -+$.*filler 500 of the log$.*newest$", test, re.M | re.S), test
    assert "output of `echo earlier`" not in test
    complaints = re.findall(r"^E +AssertionError: the kernel of the guest on h1 complains:\n((?:E .*\n)+)", out, re.M)
    assert len(complaints) == 3
    for text in complaints:
        assert re.search("BUG: kernel|WARNING: CPU|blocked for more", text), text
    kept = {p.name.split("-", 1)[-1]: p for p in tmp_path.glob("kept/*/*") if "h1" in p.name or "h5" in p.name}
    assert {"h1.console", "h1.dmesg", "h1.client.log", "h1.pcapng", "h5.console"} <= kept.keys()
    assert "BUG: kernel NULL" in kept["h1.dmesg"].read_text() and kept["h1.pcapng"].stat().st_size > 1000
