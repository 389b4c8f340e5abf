# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bench figures of muslin as ratios to a peer measured in the same run. A section is a module with run(bench)."""

import contextlib
import functools
import importlib
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

from muslin import Fabric

SECTIONS = ("hosts", "fabric", "trunk", "roce", "iwarp", "guest")


class Bench:
    """
    Shared by the sections: the installed programs, a scratch directory, and fabrics that are destroyed with their
    section.
    """

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.failed = False
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muslin-bench-"))
        install = ["make", "-s", "install", f"O={self.build}", "DESTDIR=", f"prefix={self.folder}"]
        subprocess.run(install, check=True)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, name, function, *args):
        """Calls the function. If it fails, says so, for the bench's status; what comes after it is measured."""
        try:
            function(*args)
        except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as e:
            print(f"  {name} stopped: {e}", flush=True)
            self.failed = True

    @contextlib.contextmanager
    def fabric(self, *args, name="bench", **options):
        """A fabric that is up, created by `muslin up` with these arguments."""
        fabric = Fabric(self.folder / "bin", self.folder, name)
        try:
            fabric.up(*args, **options)
            yield fabric
        finally:
            fabric.down()

    @contextlib.contextmanager
    def pair(self, lines, options="", together=False):
        """The fabrics of two hosts with these lines of a topology: of one daemon each, or @together of one."""
        texts = [f"{line} {options}\n" for line in lines]
        if together:
            with self.fabric("".join(texts)) as both:
                yield both, both
        else:
            with self.fabric(texts[0], name="bench-a") as a, self.fabric(texts[1], name="bench-b") as b:
                yield a, b

    def measure_limits(self):
        """Limits of this machine's memory, network and wake-ups, by harness/bench/peer_bench."""
        return self.program("harness/bench/peer_bench", r"^(\w+) ([\d.]+)$")

    @functools.cached_property
    def limits(self):
        return self.measure_limits()

    def program(self, path, pattern):
        """Runs a program of the build; returns the matches of the pattern in its output as names and numbers."""
        out = subprocess.run([self.build / path], capture_output=True, text=True, check=True).stdout
        return {name: float(value) for name, value in re.findall(pattern, out, re.M)}


def by_turns(ours, theirs, times=3):
    """The medians of two functions that are measured alternately, so that other load of the machine affects both."""
    figures = [(ours(), theirs()) for _ in range(times)]
    return [statistics.median(column) for column in zip(*figures, strict=True)]


def row(what, figure, ratio, want, good):
    """Prints one line: the comparison, the figure with its unit, the ratio, the wanted ratio and the verdict."""
    verdict = "ok" if good else "MISSED"
    print(f"  {what:<52} {figure:>14}  ratio {ratio:7.3f}  wanted {want:<7} {verdict}", flush=True)


def report(what, figure):
    """Prints a line without a verdict."""
    print(f"  {what:<52} {figure:>14}", flush=True)


def last_row(out):
    """The numbers of the last line of figures in the output of a perftest program."""
    return [float(x) for x in re.findall(r"^\s*(\d+\s+\d+\s+.*)$", out, re.M)[-1].split()]


def perftest(fabrics, hosts, address, *argv):
    """The columns of a perftest program's last row, from the second host to the first one, at @address."""
    server, client = ((host, *map(str, argv)) for host in hosts)
    _, out = fabrics[0].pair(server, (*client, address), client_fabric=fabrics[1], timeout=240)
    return last_row(out)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(build="build", *sections):
    unknown = [s for s in sections if s not in SECTIONS]
    if unknown:
        print(f"ci/bench: no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
        return 2
    print("muslin bench: each figure, and its ratio to what the same run measured of the peer")
    bench = Bench(build)
    try:
        for section in sections or SECTIONS:
            print(f"{section}:", flush=True)
            bench.run(section, importlib.import_module(f"bench.{section}").run, bench)
    finally:
        bench.close()
    return int(bench.failed)
