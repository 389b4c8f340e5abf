# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fault armed by a test."""

import json

from .errors import FabricError
from .errors import hide as __tracebackhide__  # noqa: F401


class Fault:
    """
    One armed fault. As a context manager it is cleared at the end of the block. With @expect (the default) a test
    fails if the fault has never fired.
    """

    def __init__(self, fabric, text, numbers, expect):
        self.fabric = fabric
        self.text = text
        self.number = numbers[0]
        self.numbers = numbers  # at the place all, of several daemons: of each
        self.expect = expect
        self.last = None  # its last report, after it was cleared or the fabric went down

    def report(self):
        """Its entry in `muslin fault list --json`: matches, hits, fired, digest, applied, held."""
        if self.last is None and self.fabric.hold is not None:
            return self.find(json.loads(self.fabric.command("fault", "list", "--json")))
        return self.last

    def find(self, listed):
        """Its entry in that list; None: it is not there. Of several daemons: counts are added, lists joined."""
        entries = [f for f in listed if f["id"] in self.numbers]
        for more in entries[1:]:
            for key in ("matches", "hits", "held", "fired"):
                entries[0][key] += more[key]
        return entries[0] if entries else None

    def _reported(self, key):
        report = self.report()
        if report is None:
            raise FabricError(f"{self} is not armed any more: `muslin fault clear` has removed it, with its counts")
        return report[key]

    @property
    def matches(self):
        """How many packets or requests have matched its keys."""
        return self._reported("matches")

    @property
    def hits(self):
        """At how many of these it has fired."""
        return self._reported("hits")

    @property
    def fired(self):
        """
        The numbers of the matches at which it fired; the first 64. At the place all: those of InfiniBand, of the
        Ethernet, and of each host on UDP or TCP, of each daemon, which count for themselves.
        """
        return self._reported("fired")

    def unfired(self):
        """It had to fire and never did. Of one that `muslin fault clear` has removed nothing is known."""
        report = self.report() if self.expect else None
        return report is not None and not report["hits"]

    def clear(self):
        """Clears the fault. No effect if it was cleared already."""
        if self.last is None and (report := self.report()) is not None:
            self.last = report
            for number in self.numbers:
                self.fabric.command("fault", "clear", number)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.clear()

    def __str__(self):
        return f"fault {self.number}: {self.text}"
