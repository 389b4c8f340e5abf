# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One simulated fabric, driven through the muslin program as a user would."""

import itertools
import json
import os
import pathlib
import re
import signal
import tempfile
import time

from .fault import Fault
from .process import Process, wait_until
from .vm import VM

REFUSED = re.compile(r"ouldn't connect|refused|REJECTED|UNREACHABLE|ADDR_ERROR|status -?(8|111)|event 8|blka 8", re.I)
# What perftest says when both sides have to begin anew: with -R its server was asked for a second connection too early,
# and waits for a second one alone; or it could not measure the processor's clock, on a machine that has much to do.
ANEW = re.compile("Failed to connect RDMA CM events|Correlation coefficient")


class FabricError(AssertionError):
    pass


class Fabric:
    """
    A fabric under a name of its own. @programs: the folder with muslin and muslind; @folder: where logs, captures and
    the run directory go; @user: a uid to run everything as (None: the caller's own); @seed: of what is random.
    """

    def __init__(self, programs, folder, name, *, user=None, wrapper=(), seed=None):
        self.muslin = pathlib.Path(programs) / "muslin"
        self.folder = pathlib.Path(folder)
        self.name = name
        self.user = user
        self.wrapper = list(wrapper)
        self.seed = seed
        self.count = itertools.count()
        self.processes = []
        self.faults = []
        self.hold = None
        self.vms = []
        self.capture = False  # what passes the ports of hosts that are used
        self.traces = {}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("MUSLIN_", "LD_PRELOAD", "XDG_RUNTIME"))}
        self.env["MUSLIN_RUNDIR"] = str(self.folder / "run")
        self.env["MUSLIN_NAME"] = name
        self.env["HOME"] = str(self.folder)
        self.env["LC_ALL"] = "C.UTF-8"
        cache = pathlib.Path(tempfile.gettempdir()) / f"muslin-cache-{user or os.getuid()}"
        self.env["MUSLIN_CACHE"] = os.environ.get("MUSLIN_CACHE", str(cache))
        self.env |= {k: os.environ[k] for k in ("MUSLIN_ACCEL", "MUSLIN_KERNEL", "MUSLIN_QEMU") if k in os.environ}
        self.env["OSM_CACHE_DIR"] = self.env["OSM_TMP_DIR"] = str(self.folder)
        for sanitizer in ("ASAN", "LSAN", "UBSAN"):
            # muslin-sm on a host of the fabric is preloaded, too
            self.env[f"{sanitizer}_OPTIONS"] = f"log_path={self.folder}/sanitizer:verify_asan_link_order=0"

    # Programs

    def command(self, *args, timeout=60.0, status=0, pass_fds=()):
        """Runs `muslin ARGS` to its end and returns what it printed."""
        return self._start([self.muslin, *args], pass_fds).wait(timeout, status)

    def start(self, host, *argv):
        """Starts a program on @host and returns its Process."""
        self._capture(host)
        return self._start([*self.wrapper, self.muslin, "run", host, "--", *argv])

    def start_muslin(self, *args, pass_fds=()):
        """Starts `muslin ARGS` and returns its Process."""
        return self._start([self.muslin, *args], pass_fds)

    def _capture(self, hosts):
        """If that is wanted: from the first program or guest on a host on, all that passes its port."""
        for h in hosts.split(",") if self.capture else []:
            if h not in self.traces:
                file = self.folder / f"{next(self.count):03}-{h}.pcapng"
                self.traces[h] = self.start_muslin("trace", h, "-w", file)
                wait_until(file.exists, 10, f"the capture at {h}", 0.02)

    def vm(self, host, *options, timeout=300.0):
        """Boots a guest on @host and returns its VM. The first one on a machine waits for its image."""
        self._capture(host)
        vm = VM(self, host, *options, timeout=timeout)
        self.vms.append(vm)
        return vm

    def run(self, host, *argv, timeout=60.0, status=0):
        """Runs a program on @host to its end and returns what it printed."""
        return self.start(host, *argv).wait(timeout, status)

    def pair(self, server, client, *, of=None, ready=None, anew=ANEW, timeout=60.0):
        """
        Runs @server = (host, argv...) and @client = (host, argv...; a host @of another fabric) against each other: the
        client starts when the server has printed @ready (None: tries again while the client cannot connect, or one says
        that both must begin @anew). Returns both outputs.
        """
        srv, clients = self.start(*server), of or self
        if ready:
            srv.expect(ready)
            out = clients.run(*client, timeout=timeout)
        else:
            out = clients._retry(srv, client, timeout, anew)
        return srv.wait(timeout, status=None), out

    def _retry(self, srv, client, timeout, anew=ANEW):
        head = (0.1 * 2**n for n in itertools.count())

        def attempt():
            p = self.start(*client)
            text = p.wait(timeout, status=None)
            if p.popen.returncode == 0 and not anew.search(text):
                return text or " "
            if not anew.search(text + srv.output) and not REFUSED.search(text):
                raise AssertionError(f"{p} ended with {p.popen.returncode}:\n{text}\nthe server {srv}:\n{srv.output}")
            srv.restart()  # who makes several connections may have made some, which it would wait for the end of
            time.sleep(next(head))
            return None

        return wait_until(attempt, 20, f"a connection to {srv}", 0.2)

    def _start(self, argv, pass_fds=()):
        log = self.folder / f"{next(self.count):03}-{pathlib.Path(str(argv[-1])).name[:20] or 'x'}.log"
        p = Process(argv, log, env=self.env, cwd=self.folder, user=self.user, pass_fds=pass_fds)
        self.processes.append(p)
        return p

    # The fabric

    def up(self, topology=None, *args, timeout=120.0):
        """
        Brings it up and waits for the embedded subnet manager, unless --no-sm is among @args; @topology is a path, or
        text (then it contains a newline).
        """
        argv = ["up", *([] if self.seed is None or "--seed" in args else ["--seed", str(self.seed)])]
        if topology is not None:
            if "\n" in str(topology):
                path = self.folder / "fabric.topo"
                path.write_text(str(topology))
                path.chmod(0o644)
                topology = path
            argv.append(topology)
        # The daemon ends when the write end is closed, by down() or because this process is no more.
        end, self.hold = os.pipe()
        try:
            self.command(argv[0], "--hold", end, *argv[1:], *args, timeout=timeout, pass_fds=(end,))
        finally:
            os.close(end)
        self.command("timeline", "--start")
        return self

    def sweep(self, host="h1"):
        """Runs OpenSM on @host of a fabric that is up with --no-sm, and waits until every linked port is Active."""
        self.sm_log = self.folder / f"opensm-{next(self.count)}.log"
        self.sm = self.start(host, "opensm", "-f", self.sm_log, "-s", "5")
        self.wait_active()
        return self

    def down(self):
        """Ends programs and daemon. Harmless when it is down."""
        for p in self.traces.values():
            p.signal(signal.SIGINT)
            p.wait(10, status=None)
        for p in self.processes:
            p.kill()
        self.command("down", status=None)
        if self.hold is not None:
            os.close(self.hold)
            self.hold = None

    def sanitizer_reports(self):
        """What the sanitizers have said of muslin's own programs: of a build with SAN=1 only."""
        return "\n".join(f.read_text(errors="replace") for f in sorted(self.folder.glob("sanitizer.*")))

    # Faults

    def fault(self, place, action, *flags, expect=True, **keys):
        """
        Arms a fault: fabric.fault("h5", "drop", opcode="ack", nth=3). @flags are words without a value; a key that is a
        word of Python takes an underscore (for_="5ms"). @expect False: the test does not mind when it never fires.
        """
        words = [place, action, *flags, *(f"{k.rstrip('_')}={v}" for k, v in keys.items())]
        number = int(self.command("fault", "add", *words).split()[-1])
        self.faults.append(Fault(self, " ".join(map(str, words)), number, expect))
        return self.faults[-1]

    def clear(self):
        """Clears every fault."""
        for f in self.faults:
            f.clear()

    def unfired(self):
        """The faults that were to fire and never did."""
        return [f for f in self.faults if f.expect and not f.hits]

    # Its state

    def show(self):
        """The state of the fabric: what `muslin show --json` prints."""
        return json.loads(self.command("show", "--json", "--counters"))

    def node(self, name):
        for node in self.show()["nodes"]:
            if node["name"] == name:
                return node
        raise FabricError(f"no node {name}")

    def port(self, name, num=1):
        for port in self.node(name)["ports"]:
            if port["num"] == num:
                return port
        raise FabricError(f"no port {num} of {name}")

    def ip(self, host):
        """The host's first IPv4 address."""
        return next(a.split("/")[0] for a in self.node(host)["ips"] if ":" not in a)

    def wait_active(self, timeout=60.0):
        """Until every port that has a link is Active."""

        def settled():
            ports = [(n["name"], p["num"], p["state"]) for n in self.show()["nodes"] for p in n["ports"]]
            return not [p for p in ports if p[2].lower() in ("init", "initialize", "armed")]

        wait_until(settled, timeout, "all ports Active", 0.3)

    @property
    def daemon_pid(self):
        return int(next((self.folder / "run").glob(f"**/{self.name}/*pid")).read_text())

    def daemon_log(self):
        return self.command("log")
