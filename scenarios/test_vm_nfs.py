# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
NFS over RDMA: guest b serves, guest a mounts.

    h1 (guest a)              h5 (guest b: nfsd)
        leaf1 ------------+------------ leaf2
"""

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest

SIZES = (1, 4095, 65537, 1 << 20, 64 << 20)
STORM = """set -e; mkdir /mnt/storm; cd /mnt/storm
for i in $(seq 300); do echo $i >$i; done
for i in $(seq 300); do mv $i new$i; done
for i in $(seq 1 2 300); do rm new$i; done
mkdir -p a/b/c; ln -s ../new2 a/link; ln new4 a/hard; chmod 600 new6; touch -d '2001-02-03 04:05:06' new8"""
FOUND = """cd $1/storm; ls | grep -c new; cat new300 a/link; stat -c %h new4; stat -c %a new6; stat -c %Y new8
ls | sha256sum"""


def sha256(vm, path):
    return vm.run(f"sha256sum <{path}", timeout=120)


def forget(vm):
    """What the client reads from now on it asks the server for."""
    vm.run("sync; echo 3 >/proc/sys/vm/drop_caches")


@pytest.fixture(scope="module")
def mounted(guests):
    a, b = guests
    assert "rdma 20049" in b.run("nfs-server")
    assert "proto=rdma" in a.run("nfs-mount 10.0.0.5")
    yield guests
    a.run("umount /mnt", timeout=60)


@pytest.mark.parametrize("size", SIZES)
def test_file_to_the_server_and_back(mounted, size):
    a, b = mounted
    a.run(f"head -c {size} /dev/urandom >/tmp/f && cp /tmp/f /mnt/to", timeout=120)
    forget(a)
    assert sha256(a, "/tmp/f") == sha256(b, "/export/to") == sha256(a, "/mnt/to")
    b.run(f"head -c {size} /dev/urandom >/export/from && rm /export/to", timeout=120)
    assert sha256(a, "/mnt/from") == sha256(b, "/export/from")
    a.run("rm /mnt/from /tmp/f")


def test_pieces_of_a_file(mounted):
    """Writes and reads at odd places, past the end and over what is there."""
    a, b = mounted
    a.run("head -c 3000000 /dev/urandom >/tmp/f; cp /tmp/f /mnt/f")
    for at, n in ((0, 1), (4095, 2), (65535, 70000), (1234567, 345678), (3100000, 5000)):
        piece = f"dd if=/dev/urandom bs={n} count=1 of=/tmp/piece 2>/dev/null"
        put = f"bs=64k seek={at} oflag=seek_bytes conv=notrunc 2>/dev/null"
        a.run(f"{piece}; for f in /tmp/f /mnt/f; do dd if=/tmp/piece of=$f {put} || exit 1; done")
    forget(a)
    assert sha256(a, "/tmp/f") == sha256(a, "/mnt/f") == sha256(b, "/export/f")
    a.run("rm /tmp/f /mnt/f")


def test_metadata_storm(mounted):
    a, b = mounted
    a.run(STORM, timeout=120)
    forget(a)
    seen = a.run(f"set -- /mnt; {FOUND}")
    assert seen == b.run(f"set -- /export; {FOUND}")
    assert seen.split()[:6] == ["150", "300", "2", "2", "600", "981173106"]
    a.run("rm -r /mnt/storm", timeout=120)
    assert b.run("ls /export").strip() == ""


def test_server_reboots(new_fabric):
    """
    The server goes down in the middle of a transfer, without a word, and boots again. The mount recovers by itself:
    what was written is there, the transfer ends well, and a file that was open goes on.

        h1 (guest a)              h5 (guest b: nfsd, a disk)
            leaf1 ------------+------------ leaf2
    """
    disk = new_fabric.folder / "disk"
    with disk.open("wb") as f:
        f.truncate(200 << 20)
    disk.chmod(0o666)
    new_fabric.up()
    drive = ("-drive", f"file={disk},if=none,id=disk,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=disk")
    a, b = new_fabric.vm("h1"), new_fabric.vm("h5", *(f"--qemu-arg={w}" for w in drive))
    for vm in (a, b):
        vm.wait_ib0()
    b.run("nfs-server /dev/vda")
    a.run("nfs-mount 10.0.0.5")
    a.run("head -c 50331648 /dev/urandom >/tmp/f; cp /tmp/f /mnt/before && sync")
    a.start("exec 9>/mnt/open; echo one >&9; until [ -e /tmp/go ]; do sleep 0.1; done; echo two >&9", "open")
    a.wait("grep one /mnt/open")
    a.start("dd if=/tmp/f of=/mnt/during bs=64k conv=fsync && echo ended", "dd")
    wait_until(lambda: int(b.run("stat -c %s /export/during 2>/dev/null || echo 0")) > 1 << 20, 30, "its start", 0)
    b.reboot()
    b.wait_ib0()
    assert "ended" not in a.log("dd")
    b.run("nfs-server /dev/vda")
    a.wait("grep -q ended /tmp/dd.log", 150, "the transfer's end")
    a.run("touch /tmp/go")
    a.wait("grep two /mnt/open")
    forget(a)
    assert sha256(a, "/tmp/f") == sha256(b, "/export/before") == sha256(b, "/export/during") == sha256(a, "/mnt/during")
    assert b.run("cat /export/open").split() == ["one", "two"]
    a.run("umount /mnt", timeout=60)
