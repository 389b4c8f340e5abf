# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The guest's image: a kernel, and an initramfs of layers. Each layer is named after what it is made of and stays in the
cache: the packages; a kernel with its modules; our driver for it; all of these with our files on top.
"""

import contextlib
import os
import pathlib
import re
import shutil
import tempfile
import time

import kernel
from packages import NATIVE, alone, cache_folder, cache_lock, digest, fail, own, resolve, run, say, unpack

PACKAGES = """busybox-static dash rdma-core ibverbs-utils ibverbs-providers rdmacm-utils infiniband-diags perftest
    iproute2 ethtool opensm nfs-common nfs-kernel-server rpcbind iperf3 iputils-ping socat nvme-cli open-iscsi
    srptools""".split()
# Dependencies that only maintainer scripts and tools need that a guest does not run.
WITHOUT = re.compile(
    r"^(python3|libpython3|perl|libperl|dpkg|tar|debconf|cdebconf|adduser|passwd|login|ucf|usrmerge|"
    r"sensible-utils|udev|media-types|lsb-base|init-system|sysvinit|dmsetup|libpam|kmod_|libsemanage|readline-common|"
    r"lib(text|file|number)-|gcc-12-base|libgdbm)"
)
MODULES = """sha256_ssse3 virtio_pci virtio_console virtio_net virtio_blk qemu_fw_cfg ib_core ib_cm ib_umad
    ib_uverbs ib_ipoib rdma_cm rdma_ucm rdma_rxe crc32_generic crc32_pclmul rpcrdma nfs nfsv3 nfsv4 nfsd bonding
    rds_rdma ext4 crc32c_generic sch_tbf 9p 9pnet_virtio 8021q smc smc_diag nvme_rdma nvmet_rdma brd ib_iser
    ib_isert ib_srp ib_srpt target_core_iblock sd_mod""".split()
CONNECTX = ["mlx5_core", "mlx5_ib"]
STRIP = """usr/share/doc usr/share/man usr/share/locale usr/share/lintian usr/share/perl5 usr/share/bash-completion
    usr/share/zoneinfo usr/share/misc usr/lib/systemd/system lib/systemd/system
    usr/lib/x86_64-linux-gnu/perl usr/lib/x86_64-linux-gnu/gconv usr/lib/aarch64-linux-gnu/perl
    usr/lib/aarch64-linux-gnu/gconv""".split()
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    "_rpc:x:100:65534::/run/rpcbind:/bin/false\nstatd:x:101:65534::/var/lib/nfs:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nrpc: files\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/netconfig": "udp tpi_clts v inet udp - -\ntcp tpi_cots_ord v inet tcp - -\n"
    "local tpi_cots_ord - loopback - - -\n",
    "etc/exports": "",
}
FOLDERS = "proc sys dev tmp run root mnt etc var/lib/nfs var/log".split()
KEEP = 4  # of each kind of layer, and what was in use within the hour
HOUR = 3600
KINDS = "base kernel driver image root disk initrd snapshot tools qemu resolved lists build".split()
HERE = pathlib.Path(__file__).resolve().parent


def cpio(root, out):
    """Appends the tree to @out as a newc archive, everything owned by root."""
    with out.open("ab") as f:
        for ino, path in enumerate([root, *sorted(root.rglob("*"))], 1):
            name = str(path.relative_to(root)).encode()
            st = path.lstat()
            link = path.is_symlink()
            data = os.readlink(path).encode() if link else path.read_bytes() if path.is_file() else b""
            mode = st.st_mode if not path.is_dir() or link else 0o40755
            fields = [ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
            head = b"070701" + b"".join(b"%08X" % v for v in fields) + name + b"\0"
            f.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
        head = b"070701" + b"".join(b"%08X" % v for v in [0] * 11 + [11, 0]) + b"TRAILER!!!\0"
        f.write(head + b"\0" * (-len(head) % 4))


def layer(kind, name, make):
    """The folder of a layer; make(folder) fills it when there is none of this name."""
    cache = cache_folder()
    folder = cache / f"{kind}-{name}"
    with cache_lock(folder.name):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as tmp:
                out = pathlib.Path(tmp) / "out"
                out.mkdir()
                with cache_lock(out.parent.name):  # forget() does not take it for one that nobody builds
                    make(out)
                out.rename(folder)
        os.utime(folder)
    return folder


def used(path):
    """When it was made or used last; what another one has removed meanwhile: now."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return time.time()


def forget(cache):
    """Removes layers that nobody has used for long, and what a build that was killed has left."""
    for kind in KINDS:
        found = sorted(cache.glob(f"{kind}-*"), key=used)
        for old in found[: len(found) if kind == "build" else -KEEP]:
            if time.time() - used(old) > HOUR:
                with cache_lock(old.name):
                    if time.time() - used(old) > HOUR:  # still, now that nobody makes it
                        shutil.rmtree(old, ignore_errors=True)
                        with contextlib.suppress(OSError):
                            old.unlink()


def merge(root, name):
    """One tree, as Debian's base-files makes it: /NAME is /usr/NAME."""
    old, new = root / name, root / "usr" / name
    new.mkdir(parents=True, exist_ok=True)
    if old.is_dir() and not old.is_symlink():
        run(["cp", "-a", f"{old}/.", new])
        shutil.rmtree(old)
    if not old.is_symlink():
        old.symlink_to(f"usr/{name}")


def make_base(debs, arch):
    def make(out):
        root = out.parent / "root"
        unpack(debs, root)
        here = root
        if arch != NATIVE:
            here = out.parent / "here"
            unpack(alone(["busybox-static"]), here)
        shutil.copy(next(p for p in (here / "bin/busybox", here / "usr/bin/busybox") if p.exists()), out / "busybox")
        for d in STRIP:
            shutil.rmtree(root / d, ignore_errors=True)
        for d in ("bin", "sbin", "lib", "lib64"):
            merge(root, d)
        for d in FOLDERS:
            (root / d).mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (root / name).write_text(text)
        sh = root / "usr/bin/sh"
        sh.unlink(missing_ok=True)
        sh.symlink_to("dash")
        shutil.rmtree(root / "var/run", ignore_errors=True)
        (root / "var/run").symlink_to("/run")
        say("writing the packages' layer")
        cpio(root, out / "initrd")

    return make


def make_kernel(version, depmod, names):
    def make(out):
        tree = out.parent / "kernel"
        vmlinuz = kernel.unpack_kernel(version, tree)
        (out / "kernel").write_bytes(kernel.uncompressed(vmlinuz))
        merge(tree, "lib")
        kernel.prune(tree, version, names, depmod)
        (tree / "usr/lib").rename(out / "lib")

    return make


def make_driver(version):
    def make(out):
        shutil.copy(kernel.build_driver(version, out.parent / "driver"), out)

    return make


def make_image(version, layers, names, depmod):
    """Of the @layers: packages, kernel with modules, of which it takes @names, and a driver, unless that is None."""
    base, modules, driver = layers

    def make(out):
        root = out.parent / "root"
        shutil.copytree(HERE / "root", root)
        there = root / f"usr/lib/modules/{version}"
        kernel.copy_modules(modules / f"lib/modules/{version}", there, names)
        if driver:
            (there / "extra").mkdir()
            shutil.copy(driver / "muslin.ko", there / "extra")
        (root / "lib").symlink_to("usr/lib")
        run([*depmod, "-b", root, version])
        (root / "lib").unlink()
        say("writing the image")
        shutil.copy(base / "initrd", out / "initrd")
        cpio(root, out / "initrd")
        os.link(modules / "kernel", out / "kernel")

    return make


def image(wanted, arch=NATIVE, stock=False, *, packages=(), modules=()):
    """
    Version, kernel file and initramfs of the kernel @wanted, of which is made what is not in the cache yet; with
    @packages and @modules besides its own. The driver is ours, or in a @stock image the distribution's for a ConnectX.
    """
    version = kernel.choose(wanted, arch)
    whole = resolve([*packages], own(arch)) if packages else []  # requested packages have all their dependencies
    debs = [d for d in resolve([*PACKAGES, *packages], own(arch)) if d in whole or not WITHOUT.match(d[1])]
    base_name = digest(HERE / "image.py", *sorted(d[1] for d in debs))
    base = layer("base", base_name, make_base(debs, arch))
    depmod = [base / "busybox", "depmod"]
    wanted_modules = [m.replace("-", "_") for m in modules]
    names = [*MODULES, *wanted_modules]
    release = [HERE / "kernel.py", version, *kernel.package(version)]
    kernel_name = digest(*release, *names, *CONNECTX)
    tree = layer("kernel", kernel_name, make_kernel(version, depmod, [*names, *CONNECTX]))
    if wrong := kernel.unknown(tree / f"lib/modules/{version}", wanted_modules):
        fail(f"--module {','.join(wrong)}: kernel {version} has no such module")
    driver_name = "" if stock else digest(*release, *(x for p in kernel.driver_sources() for x in (p.name, p)))
    driver = layer("driver", driver_name, make_driver(version)) if driver_name else None
    names += CONNECTX if stock else []
    ours = [p for p in sorted((HERE / "root").rglob("*")) if p.is_file()]
    name = digest(base_name, kernel_name, driver_name, *(x for p in ours for x in (p.name, p)))
    folder = layer("image", name, make_image(version, (base, tree, driver), names, depmod))
    forget(cache_folder())
    say("")
    return version, folder / "kernel", folder / "initrd"
