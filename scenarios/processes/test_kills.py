# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
SIGKILL at random times for programs, for the client, for guests' QEMU, and for the daemon under guests. Peers of a
killed process end in bounded time, the daemon has as many descriptors and objects as before, and no process or file is
left.

    h1..h4 ---- leaf1 ---- spines ---- leaf2 ---- h5..h8          w1, w2: iWARP ports

MUSLIN_KILLS=1000 in the environment: number of killed programs, with a 30th as many guests (at least 2) and a 100th as
many daemons (at least 1). --muslin-seed selects the killed processes, and the times.
"""

import collections
import contextlib
import os
import pathlib
import random
import signal
import time

import endpoint
import pytest
from muslin import WaitTimeout, free_port, wait_until

KILLS = int(os.environ.get("MUSLIN_KILLS", "30"))
BOUND = 30  # seconds in which the peer of a killed program has to end

# A pair of programs: server, client, the output by which either shows that it is connected (None: the peer of the
# killed one may wait forever), and whether the server ends, too, or may wait for a message. {ip}: the server's address.
Pair = collections.namedtuple("Pair", "server client connected both", defaults=[True])
PAIRS = {
    "write": Pair("ib_write_bw -D 60 -F -p {port}", "ib_write_bw -D 60 -F -p {port} localhost", "remote address"),
    "read": Pair("ib_read_bw -D 60 -F -p {port}", "ib_read_bw -D 60 -F -p {port} localhost", "remote address"),
    "send": Pair("ib_send_bw -D 60 -F -p {port}", "ib_send_bw -D 60 -F -p {port} localhost", "remote address", False),
    "datagrams": Pair("ib_send_bw -c UD -D 60 -F -p {port}", "ib_send_bw -c UD -D 60 -F -p {port} localhost", None),
    "atomics": Pair("ib_atomic_bw -D 60 -F -p {port}", "ib_atomic_bw -D 60 -F -p {port} localhost", "remote address"),
    "rping": Pair("rping -s -v -a {ip} -p {port}", "rping -c -v -a {ip} -p {port} -C 10000000", "ping data"),
    "rstream": Pair("rstream -T v -C 1000000 -p {port}", "rstream -T v -C 1000000 -p {port} -s {ip}", None),
    # With rdma_cm each side waits for the other's message, maybe forever, until requests are outstanding and fail.
    "rsend": Pair(
        "ib_send_bw -R -D 1 --run_infinitely -F -p {port}",
        "ib_send_bw -R -D 1 --run_infinitely -F -p {port} {ip}",
        " 65536 ",
        False,
    ),
}
ALONE = [
    "ibv_asyncwatch",
    "ibv_rc_pingpong -p {port}",
    "opensm -f opensm.log -s 1",
    "saquery",
    "perfquery -a",
    "ibnetdiscover",
    "ibping -S",
    "mckey -m 239.1.2.3 -s -b {own} -C 100000",
    "rping -s -a {own} -p {port}",
    "sleep 60",
]
HOSTS = "h1", "h5"  # of the guests that keep running
CLIENT = ["show", "trace h1 -w h1.pcapng", "top", "timeline", "log", "fault list", "console", "metrics"]


@pytest.fixture
def killing(new_fabric):
    net = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
    return new_fabric.up(f"leafs 2 spines 2 hosts 4\nhost w1 iwarp {net}.1\nhost w2 iwarp {net}.2\n")


def objects(fabric):
    """The verbs objects of each host: {"h1 qp": 1, ...}."""
    hosts = [n for n in fabric.show()["nodes"] if "objects" in n]
    return {f"{n['name']} {kind}": count for n in hosts for kind, count in n["objects"].items()}


def descriptors(fabric):
    """Numbers of the daemon's descriptors by kind; "control.sock" is a connection of `muslin`."""
    pid, links = fabric.daemon_pid, []
    lines = [line.split() for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]]
    accepted = {f"socket:[{w[6]}]": pathlib.Path(w[7]).name for w in lines if len(w) == 8 and w[3] == "00000000"}
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            link = os.readlink(fd)
            links.append(accepted.get(link) or link.split(":")[0].split(" ")[0])
    return {k: v for k, v in collections.Counter(links).items() if not k.startswith("/proc")}


def held(fabric):
    """Resources of the daemon: descriptors and verbs objects."""
    return descriptors(fabric) | objects(fabric)


def baseline(fabric):
    """The same without connections of `muslin`, whose last one may still be open in the other."""
    return {k: v for k, v in held(fabric).items() if k != "control.sock"}


def wait_ipoib(fabric):
    """Waits until each host's IPoIB endpoint has its queue pair: it joins its group after `muslin up` has ended."""
    hosts = [n["name"] for n in fabric.show()["nodes"] if n["type"] != "switch" and n["lid"]]

    def joined():
        now = objects(fabric)
        return all(now[f"{host} qp"] for host in hosts)

    wait_until(joined, 20, f"IPoIB on {', '.join(hosts)}", 0.1)


def files(fabric):
    """Files in the run directory, without those that programs see as /sys."""
    return sorted(str(p) for p in (fabric.folder / "run").rglob("*") if "/tree/" not in str(p))


def rss(fabric):
    """RSS of the daemon, in KiB, without programs: it returns free memory a second after the last one has ended."""
    wait_until(lambda: not left_processes(fabric), 20, "the end of what was started")
    time.sleep(1.5)
    status = pathlib.Path(f"/proc/{fabric.daemon_pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def is_sanitized(fabric):
    """AddressSanitizer's allocator keeps freed memory; LeakSanitizer finds leaks when the daemon ends."""
    return "libasan" in pathlib.Path(f"/proc/{fabric.daemon_pid}/maps").read_text()


def left_processes(fabric):
    """Processes of the fabric's directory that the harness has not started."""
    known = {p.pid for p in fabric.processes if p.running()} | {fabric.daemon_pid}
    left = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            env = (proc / "environ").read_bytes()
            if f"MUSLIN_NAME={fabric.name}\0".encode() in env and int(proc.name) not in known:
                left.append((int(proc.name), (proc / "cmdline").read_bytes()))
    return left


class Killer:
    """Starts programs, kills some, and counts."""

    def __init__(self, fabric, seed):
        self.fabric, self.rng, self.kills = fabric, random.Random(seed), 0

    def argv(self, text, ip, own):
        return ["stdbuf", "-oL", *text.format(ip=ip, own=own, port=self.port).split()]

    def pair(self, name):
        """A pair, of which one is to be killed, and the other one has to end; None if its peer may wait forever."""
        pair = PAIRS[name]
        self.port = free_port()
        hosts = self.rng.sample([f"h{i}" for i in range(1, 9)], 2)
        if name in ("rping", "rsend") and self.rng.random() < 0.4:
            hosts = ["w1", "w2"]
        ip = self.fabric.ip(hosts[0])
        server = self.fabric.start(hosts[0], *self.argv(pair.server, ip, ip))
        if self.rng.random() < 0.9:
            time.sleep(0.15 + self.rng.random() * 0.1)  # a random time
        client = self.fabric.start(hosts[1], *self.argv(pair.client, ip, ip))
        victim, peer = self.rng.sample([server, client], 2)
        return victim, peer, pair.connected if pair.both or peer is client else None

    def alone(self):
        self.port = free_port()
        host = f"h{self.rng.randint(1, 8)}"
        own = self.fabric.ip(host)
        return self.fabric.start(host, *self.argv(self.rng.choice(ALONE), own, own)), None, None

    def client(self):
        return self.fabric.start_muslin(*self.rng.choice(CLIENT).split()), None, None

    def kill(self, process):
        """Kills the process only, not its session, to check the processes that it leaves."""
        if process.running():
            os.kill(process.pid, signal.SIGKILL)
            self.kills += 1
        process.popen.wait()

    def round(self, n):
        """@n kills, one after the other, while the others run; then each peer has to end."""
        started = []
        for _ in range(n):
            kind = self.rng.random()
            if kind < 0.6:
                started.append(self.pair(self.rng.choice(list(PAIRS))))
            else:
                started.append(self.alone() if kind < 0.85 else self.client())
        self.rng.shuffle(started)
        for victim, peer, connected in started:
            time.sleep(self.rng.random() * 0.15)
            # A peer that never connected may wait for one that was killed before it connected.
            met = peer and connected and connected in peer.output and connected in victim.output
            self.kill(victim)
            if peer and not met:
                self.kill(peer)
        for victim, peer, connected in started:
            if peer and connected:
                wait_until(lambda p=peer: not p.running(), BOUND, f"the end of {peer}, whose peer {victim} was killed")
        self.fabric.processes[:] = [p for p in self.fabric.processes if p.running()]


def wait_same(state, fabric, before, timeout=15):
    """Waits until @state of the daemon equals @before; reports differences."""
    changed = None

    def same():
        nonlocal changed
        now = state(fabric)
        changed = {k: (before.get(k, 0), now.get(k, 0)) for k in before | now if before.get(k, 0) != now.get(k, 0)}
        return not changed

    with contextlib.suppress(WaitTimeout):
        wait_until(same, timeout, "the daemon's state", 0.3)
    assert not changed, f"left after {timeout} s (before, now): {changed}"


@pytest.mark.timeout(300 + 2 * KILLS)
def test_programs(killing):
    killer, daemon = Killer(killing, killing.seed), killing.daemon_pid
    wait_ipoib(killing)
    first = objects(killing)
    faults = random.Random(killing.seed)
    killer.round(8)  # objects that are created once and kept exist
    wait_until(lambda: not left_processes(killing), 20, "the end of what was started")
    wait_same(objects, killing, first)
    before, memory, there = baseline(killing), rss(killing), files(killing)
    killer.kills = 0
    rounds = 0
    late = 0  # memory after two thirds of the kills
    while killer.kills < KILLS:
        spine = f"leaf1:{faults.randint(5, 6)}"
        fault = killing.fault(f"h{faults.randint(1, 8)}", "drop", prob="1%", expect=False)
        if rounds % 3 == 2:
            killing.command("link", spine, "down")
        killer.round(8)
        fault.clear()
        if rounds % 3 == 2:
            killing.command("link", spine, "up")
        rounds += 1
        if not late and killer.kills > KILLS * 2 // 3:
            late = rss(killing)
    last = rss(killing)
    print(f"{killer.kills} kills in {rounds} rounds; RSS {memory} KiB, then {late} and {last} KiB")
    assert killing.daemon_pid == daemon
    wait_until(lambda: not left_processes(killing), 20, f"the end of {left_processes(killing)}")
    wait_same(held, killing, before)
    assert files(killing) == there
    if not is_sanitized(killing):  # its allocator keeps freed memory
        assert last < memory + 24576  # the pools of packets and buffers have been filled
        if KILLS >= 300:
            assert last < late + 4096, "memory does not level off"
    killing.wait_active()
    args = ["-a", killing.ip("h1"), "-C", "5"]
    killing.pair(("h1", "rping", "-s", *args), ("h5", "rping", "-c", *args))


WORK = [
    "true",
    "/usr/bin/ping -f 10.0.0.1",
    "ibv_rc_pingpong -n 100000000",
    "rping -s",
    "rping -c -a 10.0.0.6 -C 1000000 -S 65000",
]


@pytest.mark.guest
@pytest.mark.timeout(3600)
def test_guests(shared_fabric):
    """QEMU of a guest with traffic is killed, or the client that has started it; its host is free again each time."""
    fabric, rng = shared_fabric, random.Random(shared_fabric.seed)
    wait_ipoib(fabric)
    fabric.command("vm", "h2", "--print")  # the socket of h2's guests, which is created once and kept, exists
    first = baseline(fabric)
    fabric.vm("h2").wait_ib0().stop()
    wait_until(lambda: not left_processes(fabric), 20, "the end of the first guest")
    wait_same(held, fabric, first)  # the daemon has detected it, too
    before, memory, there = baseline(fabric), rss(fabric), files(fabric)
    for n in range(max(2, KILLS // 30)):
        peer = fabric.start("h6", *"rping -s -P -S 65000 -a 10.0.0.6".split())
        vm = fabric.vm("h2")
        vm.start(rng.choice(WORK), "work")
        time.sleep(rng.random() * 0.5)  # the moment is random
        os.kill(vm.process.pid if n % 3 == 2 else endpoint.qemu(vm), signal.SIGKILL)
        wait_until(lambda vm=vm: not vm.process.running(), 20, "the end of the guest")
        vm.stop()
        peer.kill()
        wait_until(lambda: not left_processes(fabric), 20, f"the end of {left_processes(fabric)}")
        wait_same(held, fabric, before)
        fabric.processes[:] = [p for p in fabric.processes if p.running()]
    print(f"{n + 1} guests; RSS {memory} KiB, then {rss(fabric)} KiB")
    assert files(fabric) == there
    assert rss(fabric) < memory + 16384 or is_sanitized(fabric)


@pytest.mark.guest
@pytest.mark.model("muslin", reason="QEMU does not connect a ConnectX to another daemon")
@pytest.mark.timeout(1800)
def test_daemon_under_guests(fabric):
    """Guests survive each end of the daemon: their drivers register new devices, and they communicate again."""
    rng = random.Random(fabric.seed)
    a, b = (fabric.vm(host).wait_ib0() for host in HOSTS)
    before = None
    daemons = max(1, KILLS // 100)
    for _ in range(daemons):
        a.start("exec /usr/bin/ping -i 0.05 10.0.0.5", "echoes")
        time.sleep(rng.random())  # a random time
        endpoint.replace_daemon(fabric)
        a.wait_ib0()
        b.wait_ib0()
        a.wait("/usr/bin/ping -c 1 -W 1 10.0.0.5 >/dev/null", 60, what="an echo")
        a.run("killall -q -INT ping", status=None)
        server = b.start("ibv_rc_pingpong -n 20", "pingpong")
        try:
            a.wait("ibv_rc_pingpong -n 20 10.0.0.5", what="a connection")
        except AssertionError as e:
            raise AssertionError("\n".join([str(e), *(fabric.command("show", "--counters", h) for h in HOSTS)])) from e
        server.wait(20)
        wait_ipoib(fabric)
        if before:
            wait_same(held, fabric, before)
        before = before or baseline(fabric)
    print(f"{daemons} daemons")
