# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One simulated fabric, controlled by the muslin command."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar, Protocol

from . import pair, report
from .errors import FabricError, ProcessFailed
from .errors import hide as __tracebackhide__  # noqa: F401
from .fault import Fault
from .host import Host, Link, Trace
from .process import Process, StrPath, wait_until
from .vm import VM

Program = Sequence[Any]  # (host, argv...)
UNSPLIT = "cannot be split into shards"  # in muslind's message about a topology


class Fabric:
    """
    A fabric with a name of its own. @programs: the directory of muslin and muslind; @folder: the directory for logs,
    captures and the run directory; @user: the uid that runs everything (None: the caller's own); @seed: of random
    decisions; @shards: the number of daemons, where the topology can be split.
    """

    # Of all fabrics of this process; the plugin empties these for each test.
    armed: ClassVar[list[Fault]] = []  # faults, in the order of arming
    used: ClassVar[list[Fabric]] = []  # fabrics on which a command ran
    unsplit: ClassVar[list[str]] = []  # why fabrics are in one daemon despite @shards

    def __init__(
        self,
        programs: StrPath,
        folder: StrPath,
        name: str,
        *,
        user: int | None = None,
        wrapper: Iterable[object] = (),
        seed: int | None = None,
        shards: int = 1,
    ) -> None:
        self.muslin = pathlib.Path(programs) / "muslin"
        self.folder = pathlib.Path(folder)
        self.name = name
        self.user = user
        self.wrapper = list(wrapper)
        self.seed = seed
        self.shards = shards
        self.count = itertools.count()
        self.processes: list[Process] = []
        self.faults: list[Fault] = []
        self.hold: int | None = None
        self.vms: list[VM] = []
        self.capture = False  # capture the ports of hosts that are used
        self.record = False  # down() collects the data of a page first
        self.recorded: dict[str, Any] | None = None  # those data of a fabric that is down
        self.traces: dict[str, Trace] = {}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("MUSLIN_", "LD_PRELOAD", "XDG_RUNTIME"))}
        self.env["MUSLIN_RUNDIR"] = str(self.folder / "run")
        self.env["MUSLIN_NAME"] = name
        self.env["HOME"] = str(self.folder)
        self.env["LC_ALL"] = "C.UTF-8"
        cache = pathlib.Path(tempfile.gettempdir()) / f"muslin-cache-{user or os.getuid()}"
        self.env["MUSLIN_CACHE"] = os.environ.get("MUSLIN_CACHE", str(cache))
        guests = ("MUSLIN_ACCEL", "MUSLIN_KERNEL", "MUSLIN_MODEL", "MUSLIN_QEMU", "MUSLIN_SNAPSHOT")
        self.env |= {k: os.environ[k] for k in guests if k in os.environ}
        self.env["OSM_CACHE_DIR"] = self.env["OSM_TMP_DIR"] = str(self.folder)
        # muslin-sm on a host of the fabric is preloaded, too. The quarantine of freed memory is smaller than the growth
        # that tests of the daemon's memory allow.
        options = f"log_path={self.folder}/sanitizer:verify_asan_link_order=0:quarantine_size_mb=8"
        self.env |= {f"{sanitizer}_OPTIONS": options for sanitizer in ("ASAN", "LSAN", "UBSAN")}

    # Programs

    def command(
        self, *args: object, timeout: float = 60.0, status: int | None = 0, pass_fds: Collection[int] = ()
    ) -> str:
        """Runs `muslin ARGS` to its end and returns what it printed."""
        return self._start([self.muslin, *args], pass_fds).wait(timeout, status)

    def start(self, host: Host | str, *argv: object) -> Process:
        """
        Starts a program on @host and returns its Process. It runs in the directory of the fabric; the program's own
        path may be relative to the current directory.
        """
        self._capture(host)
        program = [os.path.abspath(str(a)) if "/" in str(a) else str(a) for a in argv[:1]]
        return self._start([*self.wrapper, self.muslin, "run", host, "--", *program, *argv[1:]])

    def start_muslin(self, *args: object, pass_fds: Collection[int] = ()) -> Process:
        """Starts `muslin ARGS` and returns its Process."""
        return self._start([self.muslin, *args], pass_fds)

    def _capture(self, hosts: object) -> None:
        """
        With --muslin-capture: captures the packets of the ports of @hosts, from the first program or guest there on.
        """
        for h in str(hosts).split(",") if self.capture else []:
            if h not in self.traces:
                self.traces[h] = self.trace(h)

    def trace(self, place: Host | Link | str, *options: object) -> Trace:
        """
        Captures the packets that pass @place (a host, or NODE:PORT) until the end of the block; returns the Trace.
        """
        return Trace(self, place, self.folder / f"{next(self.count):03}-{str(place).replace(':', '.')}.pcapng", options)

    def vm(self, host: Host | str, *options: object, timeout: float = 300.0) -> VM:
        """Boots a guest on @host and returns its VM. The first one on a machine has to build its image."""
        self._capture(host)
        vm = VM(self, host, *options, timeout=timeout)
        self.vms.append(vm)
        return vm

    def run(self, host: Host | str, *argv: object, timeout: float = 60.0, status: int | None = 0) -> str:
        """Runs a program on @host to its end and returns its output."""
        return self.start(host, *argv).wait(timeout, status)

    def pair(
        self,
        server: Program,
        client: Program,
        *,
        client_fabric: Fabric | None = None,
        ready: str | None = None,
        restart: re.Pattern[str] = pair.RESTART_BOTH,
        timeout: float = 60.0,
    ) -> tuple[str, str]:
        """
        Runs @server = (host, argv...) and @client = (host, argv...) against each other and returns both outputs; the
        client's host is one of this fabric or of @client_fabric. The client starts when the server has printed @ready;
        with None it starts at once, and both start again while its connection is refused or one of them prints a
        match of @restart (see muslin.pair).
        """
        srv, clients = self.start(*server), client_fabric or self
        if ready:
            srv.expect(ready)
            out = clients.run(*client, timeout=timeout)
        else:
            out = pair.run(srv, lambda: clients.start(*client), timeout, restart)
        return srv.wait(timeout, status=None), out

    def start_pair(
        self,
        server: Program,
        client: Program,
        until: Callable[[], object],
        *,
        client_fabric: Fabric | None = None,
        timeout: float = 60.0,
        what: str = "traffic",
    ) -> tuple[Process, Process]:
        """
        Starts @server and @client as pair() does, and returns both, still running, when @until() is true. The client
        starts again until it is connected.
        """
        srv, clients = self.start(*server), client_fabric or self
        return srv, pair.start(srv, lambda: clients.start(*client), until, timeout, what)

    def _start(self, argv: Iterable[object], pass_fds: Collection[int] = ()) -> Process:
        if self not in self.used:
            self.used.append(self)
        words = [str(a) for a in argv]
        if "--" in words:  # a program on a host: by both names
            at = words.index("--")
            label = "-".join([words[at - 1], pathlib.Path(words[at + 1]).name if at + 1 < len(words) else "shell"])
        else:
            label = "-".join(["muslin", *words[len(self.wrapper) + 1 :][:1]])
        log = self.folder / f"{next(self.count):03}-{label[:40].replace('/', '.')}.log"
        p = Process(words, log, env=self.env, cwd=self.folder, user=self.user, pass_fds=pass_fds)
        self.processes.append(p)
        return p

    # The fabric

    def up(self, topology: StrPath | None = None, *args: object, timeout: float = 120.0) -> Fabric:
        """
        Brings the fabric up and waits for the embedded subnet manager, unless --no-sm is among @args; @topology is a
        path, or a topology as text (of one line or several). It has as many daemons as the plugin's --muslin-shards
        says, unless --shards is among @args or muslind cannot split the topology.
        """
        argv: list[object] = ["up", *([] if self.seed is None or "--seed" in args else ["--seed", str(self.seed)])]
        if topology is not None:
            if "\n" in str(topology):
                path = self.folder / "fabric.topo"
                path.write_text(str(topology))
                path.chmod(0o644)
                topology = path
            elif os.path.exists(topology):
                topology = os.path.abspath(topology)
            argv.append(topology)
        # The daemon exits when the write end is closed, by down() or because this process has ended.
        self._release_hold()
        end, self.hold = os.pipe()
        self.recorded = None
        argv[1:1] = ["--hold", str(end)]
        split = [] if self.shards < 2 or "--shards" in args else ["--shards", str(self.shards)]
        try:
            try:
                self.command(*argv, *split, *args, timeout=timeout, pass_fds=(end,))
            except ProcessFailed as e:
                if not split or UNSPLIT not in str(e):
                    raise
                message = next(line for line in str(e).splitlines() if UNSPLIT in line)
                self.unsplit.append(message.removeprefix("muslin: "))
                self.command(*argv, *args, timeout=timeout, pass_fds=(end,))
        finally:
            os.close(end)
        self.command("timeline", "--start")
        return self

    def sweep(self, host: Host | str = "h1") -> Fabric:
        """Runs OpenSM on @host of a fabric that is up with --no-sm, and waits until every linked port is Active."""
        self.sm_log = self.folder / f"opensm-{next(self.count)}.log"
        self.sm = self.start(host, "opensm", "-f", self.sm_log, "-s", "5")
        self.wait_active()
        return self

    def down(self) -> None:
        """Ends programs and daemon; raises if a sanitizer has reported an error. No effect when the fabric is down."""
        if self.hold is not None:
            with contextlib.suppress(AssertionError):  # the daemon may have ended
                for f in self.faults:
                    f.last = f.report()
            self.recorded = report.collect(self) if self.record else None
        for trace in self.traces.values():
            trace.stop()
        self.traces.clear()
        for vm in self.vms:
            vm.end()
        for p in self.processes:
            p.kill()
        self.command("down", status=None)
        self._release_hold()
        reports = "\n".join(f.read_text(errors="replace") for f in sorted(self.folder.glob("sanitizer.*")))
        if reports:
            raise FabricError(f"sanitizers (SAN=1) report of muslin's programs:\n{reports}")

    def _release_hold(self) -> None:
        if self.hold is not None:
            os.close(self.hold)
            self.hold = None

    # Faults

    def fault(
        self, place: Host | Link | str, action: str, *flags: str, expect: bool = True, **keys: object
    ) -> Fault:
        """
        Arms a fault: fabric.fault("h5", "drop", opcode="ack", nth=3). @flags are words without a value; a key that is
        a Python keyword ends with an underscore (for_="5ms"). @expect False: the test does not fail if it never fires.
        """
        words = [place, action, *flags, *(f"{k.rstrip('_')}={v}" for k, v in keys.items())]
        numbers = [int(n) for n in self.command("fault", "add", *words).split()]
        self.faults.append(Fault(self, " ".join(map(str, words)), numbers, expect))
        self.armed.append(self.faults[-1])
        return self.faults[-1]

    def clear(self) -> None:
        """Clears every fault."""
        for f in self.faults:
            f.clear()

    def unfired(self) -> list[Fault]:
        """The faults that had to fire and never did."""
        return [f for f in self.faults if f.unfired()]

    # State

    def show(self) -> dict[str, Any]:
        """The state of the fabric: the output of `muslin show --json`."""
        return dict(json.loads(self.command("show", "--json", "--counters")))

    @property
    def hosts(self) -> list[Host]:
        """All hosts, as Host objects."""
        return [Host(self, n["name"]) for n in self.show()["nodes"] if n["type"] != "switch"]

    def host(self, name: str) -> Host:
        """The Host with that name."""
        found = {h.name: h for h in self.hosts}
        if name not in found:
            raise FabricError(f"no host {name}; there are {', '.join(found)}")
        return found[name]

    def link(self, place: str) -> Link:
        """The Link at @place: NODE:PORT."""
        return Link(self, place)

    def node(self, name: Host | str) -> dict[str, Any]:
        """The attributes of a node, as in `muslin show --json`."""
        for node in self.show()["nodes"]:
            if node["name"] == str(name):
                return dict(node)
        raise FabricError(f"no node {name}")

    def port(self, name: Host | str, num: int = 1) -> dict[str, Any]:
        """The attributes of a node's port."""
        for port in self.node(name)["ports"]:
            if port["num"] == num:
                return dict(port)
        raise FabricError(f"no port {num} of {name}")

    def ip(self, host: Host | str) -> str:
        """The host's first IPv4 address."""
        for address in self.node(host)["ips"]:
            if ":" not in address:
                return str(address).split("/")[0]
        raise FabricError(f"{host} has no IPv4 address")

    def wait_active(self, timeout: float = 60.0) -> None:
        """Waits until every port with a link is Active."""

        def all_active() -> bool:
            ports = [(n["name"], p["num"], p["state"]) for n in self.show()["nodes"] for p in n["ports"]]
            return not [p for p in ports if p[2].lower() in ("init", "initialize", "armed")]

        wait_until(all_active, timeout, "all ports Active", 0.3)

    @property
    def daemon_pid(self) -> int:
        """Of the daemon with the fabric's name."""
        return int(next((self.folder / "run").glob(f"**/{self.name}/*pid")).read_text())

    @property
    def daemon_pids(self) -> list[int]:
        """Of all shards, in their order."""
        found = (self.folder / "run").glob(f"**/{self.name}.[0-9]*/pid")
        others = sorted(found, key=lambda path: int(path.parent.name.rpartition(".")[2]))
        return [self.daemon_pid, *(int(path.read_text()) for path in others)]

    def daemon_log(self) -> str:
        """The log of its daemon; of several, one after the other, each below a line with the daemon's name."""
        return self.command("log", "--name", self.name)


class FabricFactory(Protocol):
    """What muslin_fabric_factory returns."""

    def __call__(
        self, topology: StrPath | None = None, *args: object, label: str | None = None, up: bool = True
    ) -> Fabric: ...
