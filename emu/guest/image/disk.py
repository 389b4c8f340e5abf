# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Images of disks: a file of the user's, with a boot loader and a kernel, or a Debian that is made here, by mmdebstrap and
without root, as one file system that a kernel beside it boots.
"""

import argparse
import os
import pathlib
import pwd
import shutil
import tarfile

import kernel
from image import HERE, cpio, forget, layer, make_kernel
from packages import alone, cache_folder, debian, digest, fail, resolve, run, say, unpack
from seed import LOGIN

DEBIAN = "debian"  # the name that means one that is made here
PACKAGES = """systemd-sysv udev kmod dbus openssh-server iproute2 iputils-ping ethtool procps less nano rdma-core
    ibverbs-utils ibverbs-providers rdmacm-utils infiniband-diags perftest""".split()
ROOT_MODULES = ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4"]
INIT = """#!/bin/busybox sh
# Mounts the disk, and hands over to its init.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in {modules}; do modprobe $module; done 2>/dev/null
n=0
until dev=$(findfs LABEL={label} 2>/dev/null) || [ $((n += 1)) = 200 ]; do sleep 0.1; done
mount -t ext4 "$dev" /root || exec poweroff -f
umount /proc
mount --move /dev /root/dev
exec switch_root /root /sbin/init
"""
# On a network of QEMU's own
NETWORK = "[Match]\nMACAddress={mac}\n[Network]\nDHCP=yes\n"
# Services that only cost time in a guest that is soon gone
MASKED = "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service".split()
CUSTOMIZE = """root=$1
{login}
cd "$1"
mkdir -p etc/systemd/system/multi-user.target.wants etc/systemd/network
ln -s /lib/systemd/system/systemd-networkd.service etc/systemd/system/multi-user.target.wants/
printf '{network}' >etc/systemd/network/80-muslin.network
for unit in {masked}; do ln -sf /dev/null etc/systemd/system/$unit; done
rm -f etc/resolv.conf
echo nameserver {resolver} >etc/resolv.conf
echo debian >etc/hostname
printf '127.0.0.1 localhost\\n127.0.1.1 debian\\n::1 localhost\\n' >etc/hosts
chroot . depmod {version}
"""
SIZE = "8G"  # of the disk; the file has holes
BLOCK = 4096
LABEL = "muslin"
QCOW2, BOOTS = b"QFI\xfb", b"\x55\xaa"  # magic number of the format; end of the first block of a disk with boot loader


def place(text):
    """Of --image: "debian", or a file."""
    if text != DEBIAN:
        try:
            if not pathlib.Path(text).is_file():
                raise argparse.ArgumentTypeError(f"{text}: no such file (or `debian`, which is made)")
            with open(text, "rb") as f:
                start = f.read(512)
        except OSError as e:
            raise argparse.ArgumentTypeError(f"{text}: {e.strerror.lower()}") from None
        if not start.startswith(QCOW2) and start[510:] != BOOTS:
            raise argparse.ArgumentTypeError(f"{text}: neither qcow2 nor a raw disk that a PC boots from")
    return text if text == DEBIAN else str(pathlib.Path(text).resolve())


def disk_argv(file, boots):
    """For QEMU, which keeps what the guest writes in a temporary file: @file stays as it is. It @boots by itself."""
    with open(file, "rb") as f:
        form = "qcow2" if f.read(4) == QCOW2 else "raw"
    name = str(file).replace(",", ",,")
    device = f"virtio-blk-pci,drive=disk,disable-legacy=on{',bootindex=0' if boots else ''}"
    return ["-drive", f"if=none,id=disk,format={form},snapshot=on,file={name}", "-device", device]


def file_system(tar, disk):
    """An ext4 of the files in @tar, which their owners need no root for."""
    with tarfile.open(tar) as t:
        members = sum(1 for _ in t)
    blocks = tar.stat().st_size // BLOCK * 5 // 4 + 16384
    run(["genext2fs", "-z", "-B", BLOCK, "-b", blocks, "-N", members + 4096, "-a", tar, disk])
    run(["truncate", "-s", SIZE, disk])
    run(["resize2fs", disk])
    run(["tune2fs", "-j", "-O", "extent,dir_index", "-c", "0", "-i", "0", "-L", LABEL, disk])


def make_disk(version, packages, mac, resolver):
    def make(out):
        tree = out.parent / "kernel"
        kernel.unpack_kernel(version, tree)
        modules = next(p for p in (tree / "lib/modules", tree / "usr/lib/modules") if p.is_dir())
        script = out.parent / "customize"
        text = {"login": LOGIN, "network": NETWORK.format(mac=mac).replace("\n", "\\n")}
        text |= {"masked": " ".join(MASKED), "resolver": resolver, "version": version}
        script.write_text(CUSTOMIZE.format(**text))
        address, suite, _ = debian()
        say(f"installing Debian {suite}, which takes some minutes")
        tar = out.parent / "root.tar"
        argv = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}"]
        argv += ["--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=path-exclude=/usr/share/doc/*"]
        argv += ["--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*"]
        argv += [f"--customize-hook=copy-in {modules} /usr/lib", f"--customize-hook=sh {script} \"$1\""]
        run([*argv, suite, tar, address])
        say("writing the disk")
        file_system(tar, out / "disk")

    return make


def make_initrd(tree, busybox):
    """For a disk without a boot loader."""

    def make(out):
        root = out.parent / "root"
        (root / "bin").mkdir(parents=True)
        shutil.copy(busybox, root / "bin/busybox")
        shutil.copytree(tree / "lib", root / "lib")
        (root / "init").write_text(INIT.format(modules=" ".join(ROOT_MODULES), label=LABEL))
        (root / "init").chmod(0o755)
        cpio(root, out / "initrd")

    return make


def may_install():
    """Whether mmdebstrap can install as this user."""
    user = {str(os.getuid()), *(u.pw_name for u in pwd.getpwall() if u.pw_uid == os.getuid())}
    ranges = pathlib.Path("/etc/subuid")
    has_range = ranges.exists() and any(line.split(":")[0] in user for line in ranges.read_text().splitlines())
    fake = shutil.which("fakechroot") and shutil.which("fakeroot")
    return os.getuid() == 0 or (has_range and shutil.which("newuidmap")) or fake


def make_debian(wanted, arch, packages, mac, resolver):
    """Version, kernel file, initramfs and disk of the kernel @wanted; made when they are not in the cache yet."""
    if not debian():
        fail("--image debian needs an apt that gets packages from Debian")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [t for t in ("mmdebstrap", "genext2fs", "resize2fs") if not shutil.which(t)]
    if missing:
        fail(f"--image debian needs {', '.join(missing)}: `ci/deps vm` installs it")
    if not may_install():
        fail(
            "--image debian needs a range of this user in /etc/subuid and /etc/subgid with newuidmap (package uidmap), "
            "or the packages fakechroot and fakeroot"
        )
    packages = [*PACKAGES, *packages]
    version = kernel.choose(wanted, arch)
    debs = alone(["busybox-static"])
    tools = layer("tools", digest(*(d[1] for d in debs)), lambda out: unpack(debs, out))
    busybox = next(p for p in (tools / "bin/busybox", tools / "usr/bin/busybox") if p.exists())
    kernel_name = digest(HERE / "kernel.py", version, *kernel.package(version), *ROOT_MODULES)
    tree = layer("kernel", kernel_name, make_kernel(version, [busybox, "depmod"], ROOT_MODULES))
    initrd = layer("initrd", digest(HERE / "disk.py", kernel_name), make_initrd(tree, busybox))
    found = sorted(d[1] for d in resolve(packages))
    name = digest(HERE / "disk.py", LOGIN, kernel_name, *found)
    disk = layer("disk", name, make_disk(version, packages, mac, resolver))
    forget(cache_folder())
    say("")
    return version, tree / "kernel", initrd / "initrd", disk / "disk"
