# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The kernel's siw in a guest against muslin's iWARP, each of them as initiator: the guest's TCP passes QEMU's user
networking, which uses sockets of the machine.

    w1 127.0.0.1                          (10.0.2.2)
    w2 127.0.0.3 crc=on                 ------------- QEMU (10.0.2.15) ---- guest on h1: siw0 over eth0
                                          127.0.0.2

The kernel misses an initiator's first message that arrives before its own reply has been sent completely, and waits
forever. muslin repeats an RTR message if that is possible, which is the empty WRITE; so the other RTR messages, and
revision 1, which has none, are not tested with a guest on a loaded machine: see test_iwarp_mpa.py.
"""

import re
import signal

import kernel_siw
import pytest
from muslin import free_port
from muslin.process import wait_until
from test_perftest import RESULT
from two import RESTART_ON_TCP

pytestmark = pytest.mark.guest

TOPOLOGY = """leafs 1 spines 1 hosts 1
host w1 iwarp 127.0.0.1
host w2 iwarp 127.0.0.3 crc=on
"""
GUEST = "127.0.0.2"  # its @port, too
PARAMETERS = "/sys/module/siw/parameters"
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
    """A fabric with iWARP hosts, and a guest whose siw0 reaches w1 at @port, and is reached at the same port."""

    def __init__(self, fabric):
        self.fabric = fabric.up(TOPOLOGY)
        self.port = free_port()
        net = f"user,id=net,hostfwd=tcp:{GUEST}:{self.port}-:{self.port}"
        words = ["-netdev", net, "-device", "virtio-net-pci,netdev=net"]
        for i, file in enumerate(kernel_siw.modules(fabric.env["MUSLIN_CACHE"])):
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
        if RESTART_ON_TCP.search(out + srv.output):
            srv.restart()
            return None
        assert srv.running(), f"{client}: {status}\n{out}\n{srv}\n{srv.output}"
        return None

    def to_guest(self, server, host, client):
        """The other direction; retries while perftest's server is late with its second listener."""
        return wait_until(lambda: self._try_guest(server, host, client), 60, f"{client} to the guest", 0.3)

    def _try_guest(self, server, host, client):
        """The guest's kernel shows when the guest listens."""
        running = self.vm.start(server, "server")
        self.vm.wait(f"ss -Hltn sport = :{self.port} | grep -q .")
        out = self.fabric.run(host, *client.split(), status=None)
        early = RESTART_ON_TCP.search(out)
        if early:
            running.kill()
        return None if early else (running.wait(60, None), out)

    def rping_to_us(self):
        args = f"-p {self.port} -V -v -C 10"
        _, out = self.to_us(f"rping -s -a 127.0.0.1 {args}".split(), f"timeout 20 rping -c -a 10.0.2.2 {args}")
        assert out.count("ping data") == 10, out

    def rping_to_guest(self, host):
        args = f"-p {self.port} -V -v -C 10"
        srv, out = self.to_guest(f"rping -s -a 0.0.0.0 {args}", host, f"rping -c -a {GUEST} {args}")
        assert out.count("ping data") == 10, (srv, out)


def dissect(fabric, file):
    """
    Dissects the capture: no malformed packet, and no wrong CRC. Returns the numbers of FPDUs and of correct CRCs.
    """
    argv = ["tshark", "-r", file, "-O", "iwarp_mpa,iwarp_ddp_rdmap", "-o", "tcp.check_checksum:TRUE"]
    argv += ["--disable-protocol", "rpcordma"]  # a dissector that mistakes payloads for its own protocol
    out = fabric._start(argv).wait(100)
    assert not re.search(r"malformed|bad crc|bad length|incorrect", out, re.I)
    return out.count("ULPDU length"), out.count("Good CRC32")


@pytest.fixture(scope="module")
def peer(muslin_make_fabric):
    """Checks the packets of w1 and w2 at the end, whichever tests ran; w2 has CRCs in all FPDUs."""
    fabric = muslin_make_fabric("siw")
    try:
        peer = Peer(fabric)
        files = {host: fabric.folder / f"{host}.pcapng" for host in ("w1", "w2")}
        traces = [fabric.start_muslin("trace", "-w", file, host) for host, file in files.items()]
        wait_until(lambda: all(f.exists() for f in files.values()), 10, "the captures")
        yield peer
        peer.vm.check()
        for t in traces:
            t.signal(signal.SIGINT)
            t.wait(20, None)
        fpdus, good = dissect(fabric, files["w1"])
        assert good > 1000 or fpdus < 1000
        fpdus, good = dissect(fabric, files["w2"])
        assert good == fpdus
    finally:
        fabric.down()


@pytest.fixture
def crcs(peer):
    """The guest's kernel requests them, so both sides use them."""
    peer.vm.run(f"echo 1 >{PARAMETERS}/mpa_crc_required")
    yield
    peer.vm.run(f"echo 0 >{PARAMETERS}/mpa_crc_required")


def shown(text):
    """A tool's output about a device, without its GUIDs, the MTU of its interface and the tool's process number."""
    return re.sub(r"(?m)(guid:|_mtu:)\s+.*|\b[0-9a-f]{16}\b|\[\d+\]", r"\1", text).strip()


@pytest.mark.parametrize("tool", ["ibv_devinfo -d siw0", "ibstat siw0", "ibv_devices"])
def test_shown_as_the_kernels(peer, tool):
    """Host mode's siw0 looks like the kernel's, line by line."""
    theirs = "\n".join(line for line in peer.vm.call(tool)[1].splitlines() if "muslin" not in line)
    assert shown(peer.fabric.run("w1", *tool.split(), status=None)) == shown(theirs)


def test_rping_from_the_kernel(peer):
    peer.rping_to_us()


@pytest.mark.parametrize("host", ["w1", "w2"])
def test_rping_to_the_kernel(peer, host):
    """Without CRCs and with them."""
    peer.rping_to_guest(host)


@pytest.mark.parametrize(
    "name, value, usual", [("mpa_crc_required", 1, 0), ("mpa_version", 1, 2), ("peer_to_peer", 1, 0)]
)
def test_rping_from_the_kernel_with(peer, name, value, usual):
    peer.vm.run(f"echo {value} >{PARAMETERS}/{name}")
    try:
        peer.rping_to_us()
    finally:
        peer.vm.run(f"echo {usual} >{PARAMETERS}/{name}")


TOOLS = ["ib_write_bw", "ib_read_bw", "ib_send_bw"]


@pytest.mark.parametrize("tool", TOOLS)
def test_perftest_from_the_kernel(peer, crcs, tool):
    args = f"-R -p {peer.port} -n 50 -s 65536"
    client = f"timeout 30 {tool} -d siw0 {args} 10.0.2.2 >/tmp/out; s=$?; cat /tmp/out; exit $s"  # no errors
    _, out = peer.to_us([tool, *args.split()], client)
    assert RESULT.search(out), out


@pytest.mark.parametrize("tool", TOOLS)
def test_perftest_to_the_kernel(peer, crcs, tool):
    args = f"-R -p {peer.port} -n 50 -s 65536"
    srv, out = peer.to_guest(f"{tool} -d siw0 {args}", "w2", f"{tool} {args} {GUEST}")
    assert RESULT.search(out), (srv, out)


def test_sends_to_the_kernel(peer, crcs):
    args = f"-p {peer.port} -C 200 -S 4000"
    srv, out = peer.to_guest(f"ucmatose {args}", "w1", f"ucmatose {args} -s {GUEST}")
    assert "return status 0" in out and "return status 0" in srv, (srv, out)
