# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fault armed by a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .errors import FabricError
from .errors import hide as __tracebackhide__  # noqa: F401

if TYPE_CHECKING:
    from .fabric import Fabric

Report = dict[str, Any]  # an entry of `muslin fault list --json`


class Fault:
    """
    One armed fault. As a context manager it is cleared at the end of the block. With @expect (the default) a test
    fails if the fault has never fired.
    """

    def __init__(self, fabric: Fabric, text: str, numbers: list[int], expect: bool) -> None:
        self.fabric = fabric
        self.text = text
        self.number = numbers[0]
        self.numbers = numbers  # at the place all, of several daemons: of each
        self.expect = expect
        self.last: Report | None = None  # its last report, after it was cleared or the fabric went down

    def report(self) -> Report | None:
        """Its entry in `muslin fault list --json`: matches, hits, fired, digest, applied, held."""
        if self.last is None and self.fabric.hold is not None:
            return self.find(json.loads(self.fabric.command("fault", "list", "--json")))
        return self.last

    def find(self, listed: list[Report]) -> Report | None:
        """Its entry in that list; None: it is not there. Of several daemons: counts are added, lists joined."""
        entries = [f for f in listed if f["id"] in self.numbers]
        for more in entries[1:]:
            for key in ("matches", "hits", "held", "fired"):
                entries[0][key] += more[key]
        return entries[0] if entries else None

    def _reported(self, key: str) -> Any:
        report = self.report()
        if report is None:
            raise FabricError(f"{self} is not armed any more: `muslin fault clear` has removed it, with its counts")
        return report[key]

    @property
    def matches(self) -> int:
        """How many packets or requests have matched its keys."""
        return int(self._reported("matches"))

    @property
    def hits(self) -> int:
        """At how many of these it has fired."""
        return int(self._reported("hits"))

    @property
    def fired(self) -> list[int]:
        """
        The numbers of the matches at which it fired; the first 64. At the place all: those of InfiniBand, of the
        Ethernet, and of each host on UDP or TCP, of each daemon, which count for themselves.
        """
        return list(self._reported("fired"))

    def unfired(self) -> bool:
        """It had to fire and never did. Of one that `muslin fault clear` has removed nothing is known."""
        report = self.report() if self.expect else None
        return report is not None and not report["hits"]

    def clear(self) -> None:
        """Clears the fault. No effect if it was cleared already."""
        if self.last is None and (report := self.report()) is not None:
            self.last = report
            for number in self.numbers:
                self.fabric.command("fault", "clear", number)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *exc: object) -> None:
        self.clear()

    def __str__(self) -> str:
        return f"fault {self.number}: {self.text}"
