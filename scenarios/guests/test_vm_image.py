# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest from the image of a disk: a qcow2 file with a boot loader, the distribution's kernel, and a small system that
takes the keys from the seed as cloud-init does. Its mlx5 finds a ConnectX. The loader is SYSLINUX, or systemd's stub in
the EFI system partition of a GPT.

    h1: the guest
"""

import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import build_connectx
from muslin import free_port

OWN = ("--packages", "dropbear-bin", "--module", "vfat,nls_ascii,nls_cp437,isofs")
SIZE = 300_001
CONFIG = """SERIAL 0 115200
DEFAULT linux
LABEL linux
  KERNEL vmlinuz
  INITRD initrd
  APPEND {append}
"""
APPEND = 'quiet console=ttyS0 mitigations=off no_timer_check rdinit=/bin/busybox -- sh -c "{first}"'
MIB = 1 << 20
FIRMWARE = pathlib.Path("/usr/share/ovmf/OVMF.fd")
STUB = pathlib.Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
SECTIONS = {".cmdline": 0x30000, ".linux": 0x2000000, ".initrd": 0x4000000}  # of the stub, and where they go
FIRST = (
    "/bin/busybox --install -s /bin; mount -t devtmpfs d /dev; "
    "modprobe -a virtio_pci virtio_blk nls_cp437 nls_ascii vfat; "
    "until mount -t vfat {disk} /mnt; do sleep 0.1; done; . /mnt/init"
)
INIT = r"""
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /run
mkdir -p /dev/pts /root/.ssh /seed /etc/dropbear /run/lock; mount -t devpts p /dev/pts
chmod 700 /root /root/.ssh
modprobe virtio_net
mount -t vfat -o ro "$(findfs LABEL=cidata || findfs LABEL=CIDATA)" /seed
cp /seed/user-data /seed/meta-data /seed/network-config /run
grep -o 'ssh-[a-z0-9]* [^"]*' /run/user-data | sort -u >/root/.ssh/authorized_keys
ip link set lo up; ip link set eth0 up; ip addr add 192.0.2.15/24 dev eth0
echo the serial console
mount -o remount,rw /mnt; echo written >/mnt/written; sync
dropbear -R -E -F
"""


def run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def vmlinuz(initrd, folder):
    """The kernel of the image as Debian installs it, from its package in the cache, which is not read to its end."""
    version = re.search(rb"Linux version (\S+)", (initrd.parent / "kernel").read_bytes())[1].decode()
    for package in initrd.parents[1].glob(f"debs/linux-*-{version}_*.deb"):
        for where in (f"./boot/vmlinuz-{version}", f"./usr/lib/modules/{version}/vmlinuz"):
            unpack = 'dpkg-deb --fsys-tarfile "$0" | tar -x -C "$1" --occurrence=1 "$2"'
            subprocess.run(["sh", "-c", unpack, package, folder, where], capture_output=True, check=False)
            if (folder / where).exists():
                return folder / where
    raise AssertionError(f"no kernel {version} in the cache")


def fat(raw, at, size, files):
    """A file system of @size MiB at @at MiB of the disk."""
    place = f"{raw}@@{at}M"
    run("mformat", "-i", place, "-F", "-h", "255", "-s", "63", "-H", at * MIB // 512, "-T", size * MIB // 512, "::")
    for folder in sorted({str(p) for name in files for p in pathlib.PurePath(name).parents if p.name}):
        run("mmd", "-i", place, f"::{folder}")
    for name, path in files.items():
        run("mcopy", "-i", place, path, f"::{name}")


def bios_disk(raw, folder, files):
    """Without partitions."""
    (folder / "config").write_text(CONFIG.format(append=APPEND.format(first=FIRST.format(disk="/dev/vda"))))
    fat(raw, 0, 160, {**files, "syslinux.cfg": folder / "config"})
    run("syslinux", "--install", raw)


def uefi_disk(raw, folder, files):
    """A GPT with an EFI system partition, which has one program: the kernel, its command line and its initramfs."""
    program, cmdline = folder / "BOOTX64.EFI", folder / "cmdline"
    cmdline.write_text(APPEND.format(first=FIRST.format(disk="/dev/vda1")))
    parts = {".cmdline": cmdline, ".linux": files["vmlinuz"], ".initrd": files["initrd"]}
    argv = [f"--add-section={name}={path}" for name, path in parts.items()]
    headers = run("objdump", "-p", STUB)
    base = int(re.search(r"^ImageBase\s+(\w+)", headers, re.M)[1], 16)
    argv += [f"--change-section-vma={name}={base + SECTIONS[name]:#x}" for name in parts]
    run("objcopy", *argv, STUB, program)
    table = "label: gpt\nstart=1MiB, size=158MiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B\n"
    subprocess.run(["/usr/sbin/sfdisk", "-q", raw], input=table, text=True, check=True)
    fat(raw, 1, 158, {"EFI/BOOT/BOOTX64.EFI": program, "init": files["init"]})


DISKS = {"bios": bios_disk, "uefi": uefi_disk}


@pytest.fixture(scope="module", params=DISKS)
def image(request, shared_fabric, tmp_path_factory):
    """A qcow2 file that any user can read and nobody write, with options for its guest."""
    initrd = pathlib.Path(build_connectx(shared_fabric, *OWN).split()[-1])
    folder = tmp_path_factory.mktemp("image")
    raw, file = folder / "raw", shared_fabric.folder / f"own image, {request.param}.qcow2"
    with raw.open("wb") as f:
        f.truncate(160 * MIB)
    (folder / "init").write_text(INIT)
    files = {"init": folder / "init", "initrd": initrd, "vmlinuz": vmlinuz(initrd, folder)}
    DISKS[request.param](raw, folder, files)
    run("qemu-img", "convert", "-O", "qcow2", raw, file)
    shutil.rmtree(folder)
    file.chmod(0o444)
    options = ["--qemu-arg=-bios", f"--qemu-arg={FIRMWARE}"] if request.param == "uefi" else []
    return ["--image", file, *options]


@pytest.mark.guest
def test_boot_loader_kernel_and_seed_of_the_image(shared_fabric, image):
    """A command's streams and status by SSH; the fabric, a folder and the seed inside; the file is as it was."""
    before = hashlib.sha256(image[1].read_bytes()).digest()
    shared = shared_fabric.folder / "shared"
    shared.mkdir(exist_ok=True)
    shared.chmod(0o777)
    given, out, err, console = (shared_fabric.folder / name for name in ("given", "out", "err", "image.console"))
    given.write_bytes(os.urandom(SIZE))
    script = (
        "cat >/share/copy; cp /run/user-data /run/meta-data /share; ibstat; ip addr show; uname -n; cat /mnt/written; "
        "echo h1 | tee /sys/class/infiniband/*/node_desc >/dev/null; dmesg | grep ACCESS_REG >&2; "
        "readlink /sys/class/infiniband/*/device/driver; echo told >&2; exit 7"
    )
    words = ["vm", "h1", *image, "--share", shared, "--console", console, "--ssh-port", free_port()]
    line = f'exec "$0" {shlex.join(map(str, words))} -- sh -c "$1" <"$2" >"$3" 2>"$4"'
    argv = ["sh", "-c", line, shared_fabric.muslin, script, given, out, err]
    shared_fabric._start(argv).wait(240, status=7)
    text, said = out.read_text(), err.read_text()
    assert "the serial console" in console.read_text(errors="replace")
    assert (shared / "copy").read_bytes() == given.read_bytes() and said.endswith("told\n"), said
    assert "ACCESS_REG" not in said, said  # a register that mlx5 writes and the device rejects
    assert "CA type: MT4115" in text and re.search(rf"Base lid: {shared_fabric.port('h1')['lid']}\b", text), text
    assert "inet 10.0.0.1/8" in text and "h1\nwritten\n" in text and text.endswith("/mlx5_core\n"), text
    head, user = (shared / "user-data").read_text().split("\n", 1)
    meta = json.loads((shared / "meta-data").read_text())
    assert head == "#cloud-config" and json.loads(user)["disable_root"] is False
    assert meta["local-hostname"] == "h1"
    assert hashlib.sha256(image[1].read_bytes()).digest() == before


@pytest.mark.guest
@pytest.mark.parametrize("image", ["uefi"], indirect=True, scope="module")
def test_agent_and_copies(shared_fabric, image, folder):
    """The harness's commands and `muslin cp`, in such a guest as in others, and after it has booted again."""
    given, back = folder / "given", shared_fabric.folder / "back"
    given.write_bytes(os.urandom(SIZE))
    vm = shared_fabric.vm("h2", *image, "--model", "connectx")
    for n in range(2):
        assert "CA type: MT4115" in vm.run("ibstat")
        shared_fabric.command("cp", given, "h2:/tmp/")
        shared_fabric.command("cp", "h2:/tmp/given", back)
        assert back.read_bytes() == given.read_bytes()
        back.unlink()
        if not n:
            vm.reboot(240)
    vm.stop()


KEYS = """import sys
sys.path.insert(0, sys.argv[1])
import seed
print(seed.own_key().with_suffix(".pub").read_text(), end="")
"""
LOCK = """import os, sys
sys.path.insert(0, sys.argv[1])
import image
if not os.getuid():
    os.setresuid(65534, 65534, 65534)
with image.cache_lock("any"):
    pass
"""
CONNECT = """import sys
sys.path.insert(0, sys.argv[1])
import ssh
ssh.Ssh(22000, None)
"""


PLACE = pathlib.Path(__file__).resolve().parents[2] / "emu/guest/image"


def said_by(script, cache, **env):
    """The message with which @script fails."""
    argv, env = [sys.executable, "-c", script, PLACE], {**os.environ, "MUSLIN_CACHE": str(cache), **env}
    got = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert got.returncode == 1
    return got.stderr


@pytest.mark.parametrize("script, program", [(KEYS, "ssh-keygen"), (CONNECT, "ssh")], ids=["keygen", "ssh"])
def test_program_that_is_missing(tmp_path, script, program):
    said = said_by(script, tmp_path, PATH="/nonexistent")
    assert said == f"muslin: {program} is missing: `ci/deps vm` installs it\n"


def test_cache_of_another_user(folder):
    """Its lock is there, and closed to others."""
    lock = folder / "cache/lock"
    (lock.parent / "debs").mkdir(parents=True)
    lock.touch()
    lock.chmod(0o444)
    assert said_by(LOCK, lock.parent) == f"muslin: {lock}: Permission denied; set MUSLIN_CACHE\n"


def test_key_of_guests_that_start_at_once(tmp_path):
    """All have the same one, and its public half."""
    argv, env = [sys.executable, "-c", KEYS, PLACE], {**os.environ, "MUSLIN_CACHE": str(tmp_path)}
    started = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 8
    assert len(set(said)) == 1 and said[0].startswith("ssh-ed25519 ")


def test_images_that_cannot_be(new_fabric, folder):
    fabric = new_fabric.up("leafs 1 hosts 1")
    fabric.env["MUSLIN_CACHE"] = "/nonexistent"
    assert "no such file" in fabric.command("vm", "h1", "--image", "/nonexistent.qcow2", status=2)
    assert "--ssh-port is of guests with --image" in fabric.command("vm", "h1", "--ssh-port", "22000", status=2)
    image, closed = folder / "image", folder / "closed"
    folder.chmod(0o755)
    image.touch()
    assert "neither qcow2 nor a raw disk" in fabric.command("vm", "h1", "--image", image, status=2)
    image.write_bytes(b"\0" * 510 + b"\x55\xaa")
    assert "amd64 guests" in fabric.command("vm", "h1", "--image", image, "--arch", "arm64", status=2)
    assert "expected a port" in fabric.command("vm", "h1", "--image", image, "--ssh-port", "70000", status=2)
    closed.mkdir(mode=0)
    said = fabric.command("vm", "h1", "--image", closed / "image", status=2)
    assert re.search("permission denied|no such file", said)  # the latter for root
