# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The kernel's siw in a guest against our iWARP: the guest's TCP passes QEMU's user networking, which is sockets of the
machine.

    w1: iwarp 127.0.0.1 ---- (10.0.2.2) QEMU (10.0.2.15) ---- guest on h1: siw0 over eth0

The guest connects: where others connect to it, iw_cm of Linux 6.1 may run into a BUG of its own (cm_work_handler).
"""

import pytest
from muslin import free_port, siw
from muslin.process import wait_until
from test_perftest import RESULT

pytestmark = pytest.mark.guest

TOPOLOGY = "leafs 1 spines 1 hosts 1\nhost w1 iwarp 127.0.0.1\n"
SETUP = """set -e
modprobe -a virtio_net rdma_ucm ib_uverbs
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
for n in 0 1 2; do
    module=/sys/firmware/qemu_fw_cfg/by_name/opt/muslin/siw$n/raw
    [ ! -f $module ] || { cp $module /tmp/module.ko; insmod /tmp/module.ko; }
done
rdma link add siw0 type siw netdev eth0"""


class Peer:
    """A fabric with the host w1, and a guest whose siw0 reaches it at @port."""

    def __init__(self, fabric):
        self.fabric = fabric.up(TOPOLOGY)
        self.port = free_port()
        words = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"]
        for i, file in enumerate(siw.modules(fabric.env["MUSLIN_CACHE"])):
            words += ["-fw_cfg", f"name=opt/muslin/siw{i},file={file}"]
        self.vm = fabric.vm("h1", *[f"--qemu-arg={w}" for w in words])
        self.vm.run(SETUP)

    def to_us(self, server, client, timeout=60):
        """Runs @server on w1 and @client in the guest, until it can connect."""
        srv = self.fabric.start("w1", *server)
        out = wait_until(lambda: self._try(client, srv), timeout, f"{client} from the guest", 0.3)
        return srv.wait(timeout, status=None), out

    def _try(self, client, srv):
        status, out = self.vm.call(client)
        if status == 0 or RESULT.search(out):  # perftest on siw may not disconnect when the other side has done so
            return out or " "
        assert srv.running(), f"{client}: {status}\n{out}\n{srv}\n{srv.output}"
        return None


@pytest.fixture(scope="module")
def peer(_make_fabric):
    fabric = _make_fabric("siw")
    try:
        peer = Peer(fabric)
        yield peer
        peer.vm.check()
    finally:
        fabric.down()


def test_rping_from_the_kernel(peer):
    args = f"-a {{}} -p {peer.port} -V -v -C 10"
    _, out = peer.to_us(
        ["rping", "-s", *args.format("127.0.0.1").split()], "timeout 20 rping -c " + args.format("10.0.2.2")
    )
    assert out.count("ping data") == 10


@pytest.mark.parametrize("tool", ["ib_write_bw", "ib_read_bw"])
def test_perftest_from_the_kernel(peer, tool):
    args = f"-R -p {peer.port} -n 50 -s 65536"
    _, out = peer.to_us([tool, *args.split()], f"timeout 30 {tool} {args} 10.0.2.2")
    assert RESULT.search(out), out
