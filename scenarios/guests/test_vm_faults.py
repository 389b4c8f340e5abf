# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Kernel upper-layer protocols under faults: guest b serves NFS over RDMA, guest a mounts it; both have IPoIB. The subnet
manager runs on h1.

    h1 (guest a)  leaf1 --+-- spine1 --+-- leaf2  h5 (guest b: nfsd)
                          +-- spine2 --+
"""

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest
COPY = """head -c 4000000 /dev/urandom >/tmp/sent
cp /tmp/sent /mnt/{0} && sync -f /mnt && echo 3 >/proc/sys/vm/drop_caches"""


def same(a, b, name):
    assert a.run("md5sum </tmp/sent") == b.run(f"md5sum </export/{name}") == a.run(f"md5sum </mnt/{name}")


def test_nfs_outlasts_the_loss_of_the_servers_link(shared_fabric, mounted):
    """During a copy the server's link is down for five seconds: the client reconnects and completes the copy."""
    a, b = mounted
    cut = shared_fabric.fault("h5", "down", opcode="rc", nth=500, for_="5s")
    a.run(COPY.format("link"), timeout=120)
    same(a, b, "link")
    assert cut.hits == 1
    cut.clear()


def test_nfs_outlasts_an_error_of_its_queue_pair(shared_fabric, mounted):
    """A work request of the server fails, and so its queue pair: RPCs are retransmitted over another connection."""
    a, b = mounted
    broken = shared_fabric.fault("h5", "complete", status="LOC_PROT_ERR", queue="send", nth=60)
    a.run(COPY.format("error"), timeout=120)
    same(a, b, "error")
    assert broken.hits == 1
    broken.clear()


def test_ipoib_across_a_restart_of_the_manager(shared_fabric, guests):
    """
    The subnet manager dies during a ping; a new one, without groups, has clients reregister, and then nodes without
    earlier traffic resolve each other.
    """
    a, b = guests
    a.start("ping -i 0.2 -c 40 10.0.0.5", "ping")
    a.wait("grep -q 'seq=3 ' /tmp/ping.log", what="the ping")
    death = shared_fabric.fault("sm", "kill")
    a.run("ping -c 3 -i 0.2 -W 5 10.0.0.5")
    death.clear()
    wait_until(lambda: shared_fabric.show()["manager"]["up"], 20, "the new manager", 0.1)
    a.wait("grep -q 'packet loss' /tmp/ping.log", what="the end of the ping")
    assert " 0% packet loss" in a.log("ping"), a.log("ping")
    for vm in guests:
        vm.wait_ib0()
    # Linux may have no address handle of the manager yet when IPoIB joins again: the next attempt is 2 s later
    b.run("ip neigh flush dev ib0")
    b.wait("ping -c 1 -W 2 10.0.0.1", what="ARP by the new group")
    b.wait("ping -c 1 -W 2 10.0.0.7", what="a host that was not talked to before")


def test_a_fatal_error_of_the_device(shared_fabric, guests):
    """A program gets the event, which is of no port."""
    a, _ = guests
    watch = a.start("ibv_asyncwatch", "watch")
    a.wait("grep -q 'async event' /tmp/watch.log", what="ibv_asyncwatch")
    with shared_fabric.fault("h1", "event", name="DEVICE_FATAL", expect=False):
        a.wait("grep -q IBV_EVENT_DEVICE_FATAL /tmp/watch.log", 30, what="the event")
    watch.kill()
    a.wait_ib0()
