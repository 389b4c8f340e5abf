# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Guests for work: `muslin vm` with a command's standard streams, a directory of the machine, more packages and modules.

    h1: the guest
"""

import os
import pathlib
import re
import shutil
import signal

import pytest
from kernel_source import kernel
from muslin import wait_until

SIZE = 3_000_001  # no multiple of a block size
SCRIPT = (
    "tee /data/copy; echo from the guest >&2; lsmod >&2; "
    "strace -V >&2; tcpdump --version >&2; gdb -batch -ex 'print 6 * 7' >&2; python3 -c 'print(\"six\", 6)' >&2; "
    "PATH=$PATH:/usr/sbin; command -v sshd >&2; "
    "echo reopened >/dev/stderr; sleep 1000 & exit 7"
)

# As of a kernel's build, with files of Debian's packages
MAKEFILE = (
    "modules_install: ; mkdir -p $(INSTALL_MOD_PATH)/lib/modules && cp -r {modules} $(INSTALL_MOD_PATH)/lib/modules\n"
    "modules: ; $(MAKE) -C {headers} M=$(M) modules\n"
)


def shell(fabric, line, *args):
    """A shell command in which $0 is muslin, with redirections by the shell."""
    return fabric._start(["sh", "-c", line, fabric.muslin, *args])


@pytest.mark.guest
def test_cp(shared_fabric, folder):
    guest = shared_fabric.vm("h1")
    given, back = folder / "given", shared_fabric.folder / "back"
    given.write_bytes(os.urandom(SIZE))
    given.chmod(0o755)
    shared_fabric.command("cp", given, "h1:/tmp/")
    assert guest.read("/tmp/given") == given.read_bytes() and guest.run("test -x /tmp/given") == ""
    shared_fabric.command("cp", "h1:/tmp/given", back)
    assert back.read_bytes() == given.read_bytes()
    for path, reason in (
        ("/nowhere/x", "^muslin: h1:/nowhere/x: can(no|')t create /nowhere/x.part: "),
        ("/nowhere/", "^muslin: h1:/nowhere/: no such directory in the guest\n$"),
        ("/dev/full/", "^muslin: h1:/dev/full/: no such directory in the guest\n$"),
    ):
        assert re.search(reason, shared_fabric.command("cp", given, f"h1:{path}", status=1))
    assert "no such file" in shared_fabric.command("cp", "h1:/nowhere", back, status=1)
    assert "no guest runs on host h3" in shared_fabric.command("cp", given, "h3:/tmp/", status=1)
    shared_fabric.command("cp", given, back, status=2)
    shared_fabric.command("cp", given, "h1:/tmp/again")  # after those that failed
    guest.run("cmp /tmp/given /tmp/again")
    given.write_text("#!/bin/sh\necho the service\n")
    shared_fabric.command("cp", given, "h1:/usr/local/bin/")
    assert guest.run("given") == "the service\n"
    guest.stop()


@pytest.mark.guest
def test_a_module_that_the_kernel_does_not_have(shared_fabric):
    """It is named; one that is built in is no error."""
    out = shared_fabric.command("vm", "h2", "--build", "--module", "dummy,no-such,8250", status=1)
    assert re.search(r"^muslin: --module no_such: kernel \S+ has no such module$", out, re.M), out


@pytest.mark.guest
def test_streams_share_packages_modules(new_fabric, folder):
    fabric = new_fabric.up("leafs 1 hosts 1")
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    given, out, err = folder / "given", fabric.folder / "out", fabric.folder / "err"
    given.write_bytes(os.urandom(SIZE))
    packages = "--packages strace,gdb,tcpdump,python3,openssh-server --module dummy"
    line = f'exec "$0" vm h1 --share "$1":/data {packages} -- sh -c "$2" <"$3" >"$4" 2>"$5"'
    shell(fabric, line, shared, SCRIPT, given, out, err).wait(600, status=7)
    assert out.read_bytes() == given.read_bytes() == (shared / "copy").read_bytes()
    said = err.read_text()
    assert "from the guest\n" in said and "reopened" in said
    for word in ("strace -- version", "tcpdump version", "$1 = 42\n", "six 6\n", "/sshd\n"):
        assert word in said, said
    assert any(line.startswith("dummy ") for line in said.splitlines()), said


@pytest.mark.model("muslin", reason="a ConnectX needs a real QEMU")
def test_interrupted_vm_is_silent_and_leaves_nothing(new_fabric):
    """Interrupted before its guest has booted."""
    fabric = new_fabric.up("leafs 1 hosts 1")
    qemu = fabric.folder / "qemu"
    qemu.write_text(f"#!/bin/sh\n[ $1 = --version ] && exit 1\necho $$ >{fabric.folder}/pid\nexec sleep 1000\n")
    qemu.chmod(0o755)
    process = fabric.start_muslin("vm", "h1", "--qemu", qemu, "--", "true")
    pid = fabric.folder / "pid"
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 300, "QEMU")
    process.popen.send_signal(signal.SIGINT)
    out = process.wait(20, status=130)
    assert "Traceback" not in out
    assert not pathlib.Path(f"/proc/{pid.read_text().strip()}").exists()


def children(process):
    pid = process.popen.pid
    return [pathlib.Path("/proc", p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cache_of_links(fabric, *patterns):
    """A cache of the test's own, with what that of all tests has by these patterns."""
    shared, own = pathlib.Path(fabric.env["MUSLIN_CACHE"]), fabric.folder / "cache"
    own.mkdir()
    own.chmod(0o777)
    for pattern in patterns:
        for part in shared.glob(pattern):
            (own / part.name).symlink_to(part)
    fabric.env["MUSLIN_CACHE"] = str(own)
    return own


@pytest.fixture
def interrupted(new_fabric):
    """interrupted(event, options...): SIGINT at `muslin vm h1` when it has printed @event; nothing of it stays."""
    fabric = new_fabric.up("leafs 1 hosts 1")
    temporary = fabric.folder / "temporary"
    temporary.mkdir()
    temporary.chmod(0o777)
    fabric.env["TMPDIR"] = str(temporary)

    def interrupt(event, *words, timeout=550):
        process = fabric.start_muslin("vm", "h1", *words)
        process.expect(event, timeout)
        running = wait_until(lambda: children(process), 30, "its child")
        process.popen.send_signal(signal.SIGINT)
        out = process.wait(30, status=130)
        assert "Traceback" not in out and not list(temporary.iterdir())
        wait_until(lambda: not [p for p in running if p.exists()], 20, "the end of its children")

    interrupt.fabric = fabric
    return interrupt


@pytest.mark.guest
def test_interrupted_while_a_command_runs(interrupted):
    """The guest ends with muslin."""
    interrupted("has booted", "--snapshot", "--", "sh", "-c", "echo has booted; exec sleep 1000")


@pytest.mark.guest
def test_interrupted_while_an_image_is_built(interrupted):
    """The cache has no part of an image."""
    own = cache_of_links(interrupted.fabric, "debs", "resolved-*")
    interrupted("unpacking ", "--build")
    assert not [p.name for p in own.iterdir() if p.name.startswith(("build-", "base-", "image-"))]


@pytest.mark.guest
def test_interrupted_while_a_snapshot_is_taken(interrupted):
    """Neither QEMU nor a part of a snapshot stays."""
    interrupted.fabric.command("vm", "--build", timeout=550)
    own = cache_of_links(interrupted.fabric, "[!ls]*")
    interrupted.fabric.command("vm", "--build", timeout=550)
    interrupted("taking a snapshot", "--snapshot", "--", "true")
    assert not [p.name for p in own.iterdir() if p.name.startswith(("build-", "snapshot-"))]


def test_vm_refuses_before_it_builds(new_fabric):
    fabric = new_fabric.up("leafs 1 hosts 2")
    fabric.env["MUSLIN_CACHE"] = "/proc/nonexistent"  # cannot be made, by root either
    assert "h1 is named twice" in fabric.command("vm", "h1,h2,h1", "--build", status=2)
    assert "no such folder" in fabric.command("vm", "h1", "--share", "/nonexistent", status=2)
    assert "HOST[,HOST...]" in fabric.command("vm", "--help")
    for model, protocol in (("muslin", "vhost-user"), ("connectx", "vfio-user")):
        out = fabric.command("vm", "h1", "--model", model, "--qemu-arg", "-virtfs", "--print")
        assert protocol in out and "expected" not in out
        out = fabric.command("vm", "h1", "--model", model, "--mem", "512M,slots=2,maxmem=4G", "--print")
        assert "-m 512M,slots=2,maxmem=4G" in out and "size=512M,share=on" in out
    out = fabric.command("vm", "h1", "--share", fabric.folder, "--print", status=2)
    assert "--share is for guests that muslin vm starts" in out


@pytest.mark.guest
def test_folder_of_a_kernel_without_one(new_fabric):
    fabric = new_fabric.up("leafs 1 hosts 1")
    build = fabric.folder / "build"
    (build / "include/config").mkdir(parents=True)
    vm = ("vm", "h1", "--arch", "amd64", "--kernel", "./build", "--build")
    assert "there is no kernel with modules" in fabric.command(*vm, status=1)
    (build / "include/config/kernel.release").write_text("6.1.0-mine\n")
    (build / "modules.order").touch()
    (build / ".config").write_text("CONFIG_ARM64=y\nCONFIG_X86_64 is not set\n")
    assert "there is no arch/x86/boot/bzImage, of amd64" in fabric.command(*vm, status=1)


@pytest.mark.guest
def test_kernel_of_ones_own(new_fabric, folder):
    fabric = new_fabric.up("leafs 1 hosts 1")
    version = kernel().choose(os.environ.get("MUSLIN_KERNEL"))
    image = kernel().unpack_kernel(version, folder / "unpacked")
    build = folder / "build"
    for path in ("include/config", "arch/x86/boot"):
        (build / path).mkdir(parents=True)
    shutil.copy(image, build / "arch/x86/boot/bzImage")
    (build / "include/config/kernel.release").write_text(f"{version}\n")
    (build / "modules.order").touch()
    (build / ".config").write_text("CONFIG_X86_64=y\n")
    modules = next(folder.glob(f"unpacked/**/modules/{version}"))
    headers = kernel().headers(version, folder / "headers")
    (build / "Makefile").write_text(MAKEFILE.format(modules=modules, headers=headers))
    command = ("--", "sh", "-c", "uname -r; ibstat -p")
    guest = fabric.start_muslin("vm", "h1", "--arch", "amd64", "--kernel", build, *command)
    assert f"{version}\n0x" in guest.wait(600)
