# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
NFS over RDMA: guest b serves, guest a mounts.

    h1 (guest a)              h5 (guest b: nfsd)
        leaf1 ------------+------------ leaf2
"""

import pytest

pytestmark = pytest.mark.guest


def test_nfs_over_rdma(guests):
    a, b = guests
    assert "rdma 20049" in b.run("nfs-server")
    assert "proto=rdma" in a.run("nfs-mount 10.0.0.5")
    for size in (1, 4095, 65536, 1 << 20, 32 << 20):
        a.run(f"head -c {size} /dev/urandom >/mnt/f{size}", timeout=120)
        a.run("echo 3 >/proc/sys/vm/drop_caches")
        assert a.run(f"md5sum </mnt/f{size}") == b.run(f"md5sum </export/f{size}")
    a.run("mkdir /mnt/d && for i in $(seq 200); do : >/mnt/d/$i; done && rm -r /mnt/d", timeout=120)
    a.run("umount /mnt", timeout=60)
