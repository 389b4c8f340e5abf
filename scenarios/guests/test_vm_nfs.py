# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
NFS over RDMA: guest b serves, guest a mounts.

    h1 (guest a)              h5 (guest b: nfsd)
        leaf1 ------------+------------ leaf2
"""

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest

SIZES = (1, 4095, 65537, 1 << 20, 16 << 20)
STORM = """set -e; mkdir /mnt/storm; cd /mnt/storm
for i in $(seq 300); do echo $i >$i; done
for i in $(seq 300); do mv $i new$i; done
for i in $(seq 1 2 300); do rm new$i; done
mkdir -p a/b/c; ln -s ../new2 a/link; ln new4 a/hard; chmod 600 new6; touch -d '2001-02-03 04:05:06' new8"""
FOUND = """cd $1/storm; ls | grep -c new; cat new300 a/link; stat -c %h new4; stat -c %a new6; stat -c %Y new8
ls | md5sum"""


def digest(vm, path):
    return vm.run(f"md5sum <{path}", timeout=120)


def forget(vm):
    """The client reads from the server from now on, not from its cache."""
    vm.run("sync; echo 3 >/proc/sys/vm/drop_caches")


@pytest.mark.parametrize("size", SIZES)
def test_file_to_the_server_and_back(mounted, size):
    a, b = mounted
    a.run(f"head -c {size} /dev/urandom >/tmp/f && cp /tmp/f /mnt/to", timeout=120)
    forget(a)
    assert digest(a, "/tmp/f") == digest(b, "/export/to") == digest(a, "/mnt/to")
    b.run(f"head -c {size} /dev/urandom >/export/from && rm /export/to", timeout=120)
    assert digest(a, "/mnt/from") == digest(b, "/export/from")
    a.run("rm /mnt/from /tmp/f")


@pytest.mark.also_connectx
def test_pieces_of_a_file(mounted):
    """Writes and reads at odd offsets, after the end and over existing data."""
    a, b = mounted
    a.run("head -c 3000000 /dev/urandom >/tmp/f; cp /tmp/f /mnt/f")
    for at, n in ((0, 1), (4095, 2), (65535, 70000), (1234567, 345678), (3100000, 5000)):
        piece = f"dd if=/dev/urandom bs={n} count=1 of=/tmp/piece 2>/dev/null"
        put = f"bs=64k seek={at} oflag=seek_bytes conv=notrunc 2>/dev/null"
        a.run(f"{piece}; for f in /tmp/f /mnt/f; do dd if=/tmp/piece of=$f {put} || exit 1; done")
    forget(a)
    assert digest(a, "/tmp/f") == digest(a, "/mnt/f") == digest(b, "/export/f")
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


# With a server from 6.6 on the client gets a write delegation, with which its locks stay local until the recall.
HELD = "grep -q 'ADVISORY  WRITE' /proc/locks"
LOCKS = {"flock": ("flock-ex", "flock-ex-nb"), "fcntl": ("setlkw", "setlk")}  # one waits, and one does not


@pytest.fixture(scope="module")
def two_clients(mounted):
    """The server is a client of itself, too."""
    a, b = mounted
    b.run("nfs-mount 10.0.0.5")
    yield a, b
    b.run("umount /mnt", timeout=60)


@pytest.mark.parametrize("kind", LOCKS)
def test_locks(two_clients, kind):
    """A lock excludes others, of the same client and of another one, and a waiting one gets it when it is released."""
    a, b = two_clients
    wait, attempt = (f"socat -u - OPEN:/mnt/lock,{option}" for option in LOCKS[kind])
    a.run("touch /mnt/lock")
    a.start(f"(until [ -e /tmp/free ]; do sleep 0.1; done) | {wait}", "holder")
    a.wait(HELD, what="the holder's lock")
    assert a.call(attempt)[0] != 0 and b.call(attempt)[0] != 0
    b.start(f"{wait} && echo mine", "waiter")
    assert b.call(attempt)[0] != 0 and "mine" not in b.log("waiter")
    a.run("touch /tmp/free")
    b.wait("grep mine /tmp/waiter.log", 90, what="the lock")  # without a callback a client polls every 30 s
    a.run(attempt)
    a.run("rm /tmp/free /mnt/lock")


def test_locks_of_version_3(mounted):
    """By lockd's own protocol, beside the RDMA of the data: between programs of the server and of the client."""
    a, b = mounted
    a.run("modprobe nfsv3; rpcbind; rpc.statd; mkdir -p /v3")
    a.run("mount -t nfs -o vers=3,rdma,port=20049,mountproto=tcp 10.0.0.5:/export /v3")
    places = ((a, "/v3"), (b, "/export"))
    for (holder, mine), (other, theirs) in (places, reversed(places)):
        attempt = f"socat -u /dev/null OPEN:{theirs}/lock,creat,setlk"
        other.run(attempt)
        holder.start(f"(until [ -e /tmp/free ]; do sleep 0.1; done) | socat -u - OPEN:{mine}/lock,setlkw", "holder")
        b.wait("grep -q 'POSIX  ADVISORY  WRITE' /proc/locks", what="the server's lock")
        assert other.call(attempt)[0] != 0
        holder.run("touch /tmp/free")
        other.wait(attempt, what="the lock")
        holder.run("rm /tmp/free")
    a.run("umount /v3", timeout=60)
    b.run("rm /export/lock")


def test_delegation_is_recalled(mounted):
    """
    A client keeps a delegation for a file open for reading, until the server recalls it over the same connection.
    """
    a, b = mounted
    b.run("echo one >/export/shared")
    a.run("cat /mnt/shared; exec 9</mnt/shared; cat <&9")
    b.wait("cat /proc/fs/nfsd/clients/*/states | grep 'type: deleg'", what="a delegation")
    b.run("echo two >>/export/shared", timeout=20)
    assert "type: deleg" not in b.run("cat /proc/fs/nfsd/clients/*/states")
    assert a.run("cat /mnt/shared").split() == ["one", "two"]
    b.run("rm /export/shared")


def test_server_reboots(new_fabric):
    """
    The server is reset during a transfer, and boots again. The mount recovers: written data is there, the transfer
    completes, and an open file is still valid.

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
    a.run("head -c 50331648 /dev/urandom >/tmp/f", timeout=120)
    a.run("head -c 4194304 /tmp/f >/tmp/small && cp /tmp/small /mnt/before && sync", timeout=120)
    a.start("exec 9>/mnt/open; echo one >&9; until [ -e /tmp/go ]; do sleep 0.1; done; echo two >&9", "open")
    a.wait("grep one /mnt/open")
    slow = new_fabric.fault("h5", "rate", bps="50M")  # 8 s: else it may end before the reset
    a.start("dd if=/tmp/f of=/mnt/during bs=64k conv=fsync && echo ended", "dd")
    wait_until(lambda: int(b.run("stat -c %s /export/during 2>/dev/null || echo 0")) > 1 << 20, 30, "its start", 0)
    b.reboot()
    slow.clear()
    b.wait_ib0()
    assert "ended" not in a.log("dd")
    b.run("nfs-server /dev/vda")
    a.wait("grep -q 'ended\\|dd:' /tmp/dd.log", 150, "the transfer's end")
    assert "ended" in a.log("dd"), a.log("dd") + b.run("ls -lai /export; dmesg | tail -n 20")
    a.run("touch /tmp/go")
    a.wait("grep two /mnt/open")
    forget(a)
    assert digest(a, "/tmp/f") == digest(b, "/export/during") == digest(a, "/mnt/during")
    assert digest(a, "/tmp/small") == digest(b, "/export/before")
    assert b.run("cat /export/open").split() == ["one", "two"]
    a.run("umount /mnt", timeout=60)
