# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Random verbs of many programs with the distribution's libraries, against a model of verbs (programs/chaos), while
links, the subnet manager and programs fail.

    h1 h2 ---- leaf1 ---- spines ---- leaf2 ---- h3 h4        r1, r2: RoCEv2 ports        w1, w2: iWARP ports

A failure reports the seed. In the environment MUSLIN_CHAOS=100000 is the number of operations of each program,
MUSLIN_CHAOS_PAIRS=0,2 selects from PAIRS, and MUSLIN_CHAOS_WITHOUT=kills,faults,bad omits these; then a failure
reports the smallest failing run, too. --muslin-seed selects the operations, the kills and the faults.
"""

import collections
import contextlib
import mmap
import os
import random
import signal
import struct
import subprocess
import time

import pytest
from muslin import wait_until
from test_kills import objects, wait_ipoib, wait_same
from two import own_addresses

BY_HAND = "MUSLIN_CHAOS" in os.environ
OPS = int(os.environ.get("MUSLIN_CHAOS", "1000000"))  # of each program
SECONDS = 8  # after which the run ends, unless set by the environment
REDUCTION = 600  # seconds that the search for a smaller run may take
BOUND = 120  # seconds without another operation, or a program less, after which it hangs

RC, UC, UD, CM, IWARP = range(5)
# Offsets and numbers of struct head in programs/chaos/chaos.h
PROCS, CONNS, HOSTS = 16, 32, 16
SM_EPOCH, STOP, EPOCH, PROC, PROC_SIZE = 24, 28, 32, 32 + 4 * HOSTS, 32 + 64
CONN = PROC + PROCS * PROC_SIZE
KILLS, DONE, COUNTERS = 4, 8, 12
NAMES = ("operations", "requests", "completions", "errors", "queue pairs")
WITHOUT_BAD = 1

IB = ["h1", "h2", "h3", "h4"]
PLACES = [*IB, "h1", "h3", "r1", "r2", "w1", "w2"]  # of the programs
PAIRS = [(RC, 0, 2), (RC, 0, 3), (RC, 1, 2), (RC, 1, 4), (RC, 4, 5), (RC, 3, 5), (UC, 0, 2), (UC, 1, 3), (UD, 1, 2)]
PAIRS += [(UD, 4, 3), (CM, 0, 3), (CM, 2, 5), (RC, 6, 7), (CM, 6, 7), (UC, 6, 7), (UD, 7, 6)]
PAIRS += [(IWARP, 8, 9), (IWARP, 9, 8)]

# Parameters of a run; a smaller one has fewer of each.
Run = collections.namedtuple("Run", "ops pairs kills faults bad")

PACKETS = ["drop prob=1%", "duplicate prob=2%", "reorder depth=3 every=50", "corrupt what=payload prob=1%"]
PACKETS += ["delay time=1ms jitter=1ms"]


class World:
    """The file that the programs of one run share."""

    def __init__(self, fabric, path, size, run, seed):
        path.write_bytes(bytes(size))
        path.chmod(0o666)
        with path.open("r+b") as f:
            self.map = mmap.mmap(f.fileno(), size)
        self.path = path
        self.used = sorted({p for pair in run.pairs for p in pair[1:]})
        self.hosts = sorted({PLACES[p] for p in self.used})
        slots = {p: i for i, p in enumerate(self.used)}
        without = 0 if run.bad else WITHOUT_BAD
        struct.pack_into("=4IQ", self.map, 0, len(self.used), len(run.pairs), run.ops, without, seed)
        for p, slot in slots.items():
            at = PROC + slot * PROC_SIZE
            struct.pack_into("=I", self.map, at, self.hosts.index(PLACES[p]))
            struct.pack_into("=64s", self.map, at + 32, fabric.ip(PLACES[p]).encode())
        for i, (kind, a, b) in enumerate(run.pairs):
            struct.pack_into("=4I", self.map, CONN + 16 * i, kind, slots[a], slots[b], 0)

    def get(self, at):
        return struct.unpack_from("=I", self.map, at)[0]

    def add(self, at):
        struct.pack_into("=I", self.map, at, self.get(at) + 1)

    def counters(self):
        """Sums of all programs."""
        each = [struct.unpack_from("=5I", self.map, PROC + s * PROC_SIZE + COUNTERS) for s in range(len(self.used))]
        return collections.Counter(dict(zip(NAMES, map(sum, zip(*each, strict=True)), strict=True)))

    def done(self, slot):
        return self.get(STOP) or self.get(PROC + slot * PROC_SIZE + DONE)

    def stop(self):
        """All programs end as if each had executed its operations."""
        struct.pack_into("=I", self.map, STOP, 1)

    def kill(self, slot):
        """Its peers' requests have an excuse from now on."""
        self.add(PROC + slot * PROC_SIZE + KILLS)

    @contextlib.contextmanager
    def excused(self, whom, host):
        """Excuses during the block: requests of @host's programs, of all on IB, and of those that need the SA."""
        ats = [EPOCH + 4 * i for i, h in enumerate(self.hosts) if h == host or (whom == "ib" and h in IB)]
        ats += [SM_EPOCH] if host == "h1" or whom != "host" else []
        for at in ats:
            self.add(at)
        yield
        for at in ats:
            self.add(at)


def packets(fabric, rng, host):
    with fabric.fault(host, *rng.choice(PACKETS).split(), expect=False):
        time.sleep(0.1 + rng.random() * 0.4)  # a random time


def link(fabric, rng, host):
    fabric.command("link", f"{host}:1", "down")
    time.sleep(rng.random() * 0.2)
    fabric.command("link", f"{host}:1", "up")


def spine(fabric, rng, _host):
    place = f"leaf{rng.randint(1, 2)}:{rng.randint(3, 4)}"
    fabric.command("link", place, "down")
    time.sleep(rng.random() * 0.2)
    fabric.command("link", place, "up")


def sm(fabric, rng, _host):
    with fabric.fault("sm", rng.choice(["kill", "pause"])):
        time.sleep(rng.random() * 0.3)


def manager(fabric, rng, _host):
    """Another one, which becomes master, and hands the subnet back."""
    with fabric.fault(rng.choice(IB[1:]), "manager", priority=5):
        time.sleep(rng.random() * 0.5)


# Faults, their frequency, and the requests that they excuse.
FAULTS = [(packets, 6, "host"), (link, 2, "host"), (spine, 1, "ib"), (sm, 1, "sm"), (manager, 1, "sm")]


def wait_recovered(fabric):
    """The subnet is as before a fault: ports, the manager, and IPoIB, by which rdma_cm resolves addresses."""

    def is_up():
        show = fabric.show()
        hosts = [n for n in show["nodes"] if n["name"] in IB]
        return show["sm"] and show["sm"]["host"] == "h1" and all(n["ports"][0]["state"] == "Active" for n in hosts)

    wait_until(is_up, 40, "the subnet after a fault", 0.1)


def some_fault(fabric, rng, world):
    fault, _, whom = rng.choices(FAULTS, [weight for _, weight, _ in FAULTS])[0]
    hosts = IB if fault is not packets else [h for h in world.hosts if not h.startswith("w")]
    host = rng.choice(hosts)
    with world.excused(whom, host):
        fault(fabric, rng, host)
        wait_recovered(fabric)


class Runner:
    """Runs on one fabric, with the sums of their counters."""

    def __init__(self, fabric, program, seed):
        self.fabric, self.program, self.seed = fabric, program, seed
        self.size = int(subprocess.run([program, "size"], capture_output=True, check=True, text=True).stdout)
        self.total = collections.Counter()
        self.faults = self.kills = 0

    def start(self, world, slot):
        return self.fabric.start(PLACES[world.used[slot]], self.program, world.path, slot)

    def run(self, run):
        """Returns the failure, or nothing."""
        path = self.fabric.folder / "chaos.file"
        path.unlink(missing_ok=True)  # programs of a failed run have the old one
        world = World(self.fabric, path, self.size, run, self.seed)
        rng = random.Random(self.seed)
        programs = [self.start(world, slot) for slot in range(len(world.used))]
        try:
            text = self.watch(world, run, rng, programs)
        finally:
            self.total += world.counters()
            for p in programs:
                p.kill()
        return text

    def watch(self, world, run, rng, programs):
        began = seen = time.monotonic()
        progress = None
        while any(p.running() for p in programs):
            for p in programs:
                if not p.running() and p.popen.returncode:
                    return f"{p.output.strip()} (exit status {p.popen.returncode})"
            now = (world.counters()["operations"], sum(p.running() for p in programs))
            if now != progress:
                progress, seen = now, time.monotonic()
            if time.monotonic() > seen + BOUND:
                return f"for {BOUND} s programs have done nothing: {dict(world.counters())}"
            if not BY_HAND and time.monotonic() > began + SECONDS:
                world.stop()
            busy = [slot for slot in range(len(programs)) if not world.done(slot)]
            if busy and run.kills and rng.random() < 0.15:
                self.kill(world, rng.choice(busy), programs)
            if busy and run.faults and rng.random() < 0.5:
                some_fault(self.fabric, rng, world)
                self.faults += 1
            time.sleep(0.1)
        bad = [p for p in programs if p.popen.returncode or "clean" not in p.output]
        return "\n".join(f"{p.output.strip()} (exit status {p.popen.returncode})" for p in bad)

    def kill(self, world, slot, programs):
        world.kill(slot)
        programs[slot].signal(signal.SIGKILL)
        status = programs[slot].popen.wait()
        if status == -signal.SIGKILL:
            programs[slot] = self.start(world, slot)
            self.kills += 1

    def reduce(self, run):
        """The smallest failing run, and its failure."""
        text, smaller, end = None, True, time.monotonic() + REDUCTION
        while smaller and time.monotonic() < end:
            tries = [run._replace(**{what: False}) for what in ("kills", "faults", "bad") if getattr(run, what)]
            half = len(run.pairs) // 2
            tries += [run._replace(pairs=pairs) for pairs in (run.pairs[:half], run.pairs[half:]) if half]
            tries += [run._replace(ops=run.ops // 2)] if run.ops > 100 else []
            for smaller in tries:
                words = self.run(smaller) or self.run(smaller)
                if words:
                    run, text = smaller, words
                    break
            else:
                smaller = None
        return run, text


def chosen():
    """The run that the environment selects."""
    words = os.environ.get("MUSLIN_CHAOS_PAIRS")
    pairs = [PAIRS[int(i)] for i in words.split(",")] if words else PAIRS
    without = os.environ.get("MUSLIN_CHAOS_WITHOUT", "").split(",")
    return Run(OPS, tuple(pairs), **{what: what not in without for what in ("kills", "faults", "bad")})


@pytest.mark.timeout(0 if BY_HAND else 600)
def test_random_verbs(new_fabric, program):
    addresses = own_addresses("r") | {f"w{i}": a for i, a in zip((1, 2), own_addresses("w", 4).values(), strict=False)}
    ports = "".join(f"host {h} {'roce' if h[0] == 'r' else 'iwarp'} {addresses[h]}\n" for h in ("r1", "r2", "w1", "w2"))
    fabric = new_fabric.up(f"leafs 2 spines 2 hosts 2\n{ports}")
    wait_ipoib(fabric)
    before = objects(fabric)
    runner = Runner(fabric, program("chaos"), fabric.seed)
    began = time.monotonic()
    run = chosen()
    text = runner.run(run)
    seconds = f"{time.monotonic() - began:.0f} s"
    print(f"seed {fabric.seed}: {dict(runner.total)}, {runner.kills} kills, {runner.faults} faults, {seconds}")
    if text:
        print(text)  # the reduction takes a while
        small, words = runner.reduce(run) if BY_HAND else (None, None)
        smaller = f"\nthe smallest that fails: {small}: {words}" if words else ""
        assert not text, f"seed {fabric.seed}: {text}{smaller}"
    wait_same(objects, fabric, before)
