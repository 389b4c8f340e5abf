# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A guest from the image of a disk: a qcow2 file with a boot loader (SYSLINUX), the distribution's kernel, and a small
system that takes the keys from the seed as cloud-init does. Its mlx5 finds a ConnectX.

    h1: the guest
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

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
  APPEND quiet console=ttyS0 mitigations=off no_timer_check rdinit=/bin/busybox -- sh -c "{first}"
"""
FIRST = (
    "/bin/busybox --install -s /bin; mount -t devtmpfs d /dev; "
    "modprobe -a virtio_pci virtio_blk nls_cp437 nls_ascii vfat; "
    "until mount -t vfat /dev/vda /mnt; do sleep 0.1; done; . /mnt/init"
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
mount -t vfat -o remount,rw /dev/vda /mnt; echo written >/mnt/written; sync
dropbear -R -E -F
"""


def run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def vmlinuz(initrd, folder):
    """The kernel of the image as Debian has it, of its package in the cache."""
    version = re.search(rb"Linux version (\S+)", (initrd.parent / "kernel").read_bytes())[1].decode()
    for package in initrd.parents[1].glob(f"debs/linux-*-{version}_*.deb"):
        run("dpkg-deb", "-x", package, folder / "kernel")
        for where in (f"boot/vmlinuz-{version}", f"usr/lib/modules/{version}/vmlinuz"):
            if (folder / "kernel" / where).exists():
                return folder / "kernel" / where
    raise AssertionError(f"no kernel {version} in the cache")


@pytest.fixture(scope="module")
def image(shared_fabric, tmp_path_factory):
    """A qcow2 file that any user can read and nobody write."""
    initrd = pathlib.Path(build_connectx(shared_fabric, *OWN).split()[-1])
    folder = tmp_path_factory.mktemp("image")
    raw, file = folder / "raw", shared_fabric.folder / "own image, of h1.qcow2"
    with raw.open("wb") as f:
        f.truncate(160 << 20)
    (folder / "config").write_text(CONFIG.format(first=FIRST))
    (folder / "init").write_text(INIT)
    run("mformat", "-i", raw, "-F", "-h", "255", "-s", "63", "-H", "0", "-T", (160 << 20) // 512, "::")
    for name, path in {
        "syslinux.cfg": folder / "config",
        "init": folder / "init",
        "initrd": initrd,
        "vmlinuz": vmlinuz(initrd, folder),
    }.items():
        run("mcopy", "-i", raw, path, f"::{name}")
    run("syslinux", "--install", raw)
    run("qemu-img", "convert", "-O", "qcow2", raw, file)
    shutil.rmtree(folder)
    file.chmod(0o444)
    return file


@pytest.mark.guest
def test_boot_loader_kernel_and_seed_of_the_image(shared_fabric, image):
    """A command's streams and status by SSH; the fabric, a folder and the seed inside; the file is as it was."""
    before = hashlib.sha256(image.read_bytes()).digest()
    shared = shared_fabric.folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    given, out, err, console = (shared_fabric.folder / name for name in ("given", "out", "err", "image.console"))
    given.write_bytes(os.urandom(SIZE))
    script = (
        "cat >/share/copy; cp /run/user-data /run/meta-data /share; ibstat; ip addr show; uname -n; cat /mnt/written; "
        "echo h1 | tee /sys/class/infiniband/*/node_desc >/dev/null; dmesg | grep ACCESS_REG >&2; "
        "readlink /sys/class/infiniband/*/device/driver; echo told >&2; exit 7"
    )
    line = 'exec "$0" vm h1 --image "$1" --share "$2" --console "$3" --ssh-port "$4" -- sh -c "$5" <"$6" >"$7" 2>"$8"'
    argv = ["sh", "-c", line, shared_fabric.muslin, image, shared, console, free_port(), script, given, out, err]
    shared_fabric._start(argv).wait(240, status=7)
    text, said = out.read_text(), err.read_text()
    assert "the serial console" in console.read_text(errors="replace")
    assert (shared / "copy").read_bytes() == given.read_bytes() and said.endswith("told\n"), said
    assert "ACCESS_REG" not in said, said  # a register that mlx5 writes and the device refuses
    assert "CA type: MT4115" in text and re.search(rf"Base lid: {shared_fabric.port('h1')['lid']}\b", text), text
    assert "inet 10.0.0.1/24" in text and "h1\nwritten\n" in text and text.endswith("/mlx5_core\n"), text
    head, user = (shared / "user-data").read_text().split("\n", 1)
    meta = json.loads((shared / "meta-data").read_text())
    assert head == "#cloud-config" and json.loads(user)["disable_root"] is False
    assert meta["local-hostname"] == "h1"
    assert hashlib.sha256(image.read_bytes()).digest() == before


def test_images_that_cannot_be(new_fabric):
    fabric = new_fabric.up("leafs 1 hosts 1")
    fabric.env["MUSLIN_CACHE"] = "/nonexistent"
    assert "no such file" in fabric.command("vm", "h1", "--image", "/nonexistent.qcow2", status=2)
    assert "--ssh-port is of guests with --image" in fabric.command("vm", "h1", "--ssh-port", "22000", status=2)
    assert "wanted a port" in fabric.command("vm", "h1", "--image", __file__, "--ssh-port", "70000", status=2)
