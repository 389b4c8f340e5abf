# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One self-contained HTML page about a run: a drawing of the fabric, a timeline, throughput, faults, programs."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import html
import json
import math
import os
import pathlib
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import pytest

    from .fabric import Fabric

Data = dict[str, Any]  # JSON, and what is collected beside it
Span = tuple[float, float, str, str]  # from, to, colour, words
COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"]
MARKS = {"fault": "#c0392b", "sm": "#7d3c98", "port": "#c98a1b"}
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 900, 260, 60, 40, 30
REPLAY = (
    "#!/bin/sh\n"
    "# Repeats the test in pytest's rootdir, or in the directory that is given, as on another machine.\n"
    'root={root}\ncd "${{1:-$root}}" && exec {replay}\n'
)
STYLE = """
body{font:14px/1.45 sans-serif;margin:2em auto;max-width:70em;color:#223;padding:0 1em}
h1{font-size:1.4em}h2{font-size:1.1em;border-bottom:1px solid #ccd;margin-top:2em}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:2px 10px 2px 0;vertical-align:top}
tr:nth-child(even){background:#f5f7fa}.passed{color:#2a7d4f}.failed,.idle{color:#c0392b;font-weight:bold}
code,pre{font:12px monospace}pre{background:#f5f7fa;padding:8px;overflow:auto;max-height:22em}
svg{max-width:100%;height:auto}.axis{font:11px sans-serif;fill:#556}
"""


def collect(fabric: Fabric) -> Data:
    """
    Collects the data of the page: from a fabric that is up, with parts that cannot be read omitted; of one that is down
    it is what down() has collected.
    """
    if fabric.recorded:
        return fabric.recorded
    data: Data = {"name": fabric.name, "seed": fabric.seed}
    for key, args in {
        "svg": ("show", "--svg"),
        "timeline": ("timeline",),
        "faults": ("fault", "list", "--json"),
    }.items():
        try:
            data[key] = fabric.command(*args) if fabric.hold is not None else ""
        except AssertionError:
            data[key] = ""
    try:
        data["log"] = fabric.daemon_log()
    except AssertionError:
        data["log"] = ""
    data["timeline"] = json.loads(data["timeline"] or "{}")
    armed = json.loads(data["faults"] or "[]")
    data["faults"] = [r for r in (f.find(armed) or f.last for f in fabric.faults) if r]
    data["programs"] = [(str(p), p.popen.poll(), p.log.name) for p in fabric.processes if "run" in p.argv[1:2]]
    return data


def logs(text: str) -> list[tuple[str, str]]:
    """The log of each daemon, as `muslin log` prints those of several: [(title, text)]."""
    first, *more = re.split(r"^==> (.*) <==\n", text, flags=re.M)
    if not more:
        return [("Log of the daemon", first)]
    whole: dict[str, str] = {}
    for name, part in zip(more[::2], more[1::2]):
        whole[name] = whole.get(name, "") + part
    return [(f"Log of daemon {name}", part) for name, part in whole.items()]


def rates(timeline: Data) -> dict[str, list[float]]:
    """Gb/s between samples: {host: [...]}."""
    interval = timeline.get("interval") or 1
    return {
        host: [max(0, b - a) * 8 / interval / 1e9 for a, b in zip(samples, samples[1:])]
        for host, samples in timeline.get("bytes", {}).items()
    }


def _tick(v: float, step: float) -> str:
    """The label of a tick: the digits that tell it from the next one, @step away, and no exponent."""
    return f"{v:.{max(0, 1 - math.floor(math.log10(step)))}f}"


def _unit(top: float) -> tuple[str, float]:
    """The unit of a throughput axis up to @top Gb/s: its name, and how many of them are 1 Gb/s."""
    return next(((u, k) for u, k in (("Gb/s", 1), ("Mb/s", 1e3)) if top * k >= 1), ("kb/s", 1e6))


def plot(timeline: Data) -> str:
    """Plots the throughput of each host with traffic, with a line for each fault."""
    lines = {h: r for h, r in rates(timeline).items() if any(r)}
    span = max([timeline.get("now") or 1, 0.1])
    top = max([max(r) for r in lines.values()] or [1]) * 1.1 or 1
    lines = {h: r for h, r in lines.items() if max(r) > top / 500}  # management traffic alone is not plotted
    unit, scale = _unit(top)

    def x(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * t / span

    def y(v: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * v / top

    out = [f'<svg id="throughput" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">']
    for i in range(6):
        v, t = top * i / 5, span * i / 5
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#e3e7ec"/>')
        shown = _tick(v * scale, top * scale / 5)
        out.append(f'<text class="axis" x="{LEFT - 6}" y="{y(v) + 4:.1f}" style="text-anchor:end">{shown}</text>')
        out.append(f'<text class="axis" x="{x(t):.1f}" y="{HEIGHT - 10}">{_tick(t, span / 5)} s</text>')
    for t, kind, what in timeline.get("events", []):
        if kind == "fault":
            out.append(
                f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="10" y2="{HEIGHT - BOTTOM}" stroke="{MARKS[kind]}" '
                f'stroke-opacity="0.5"><title>{html.escape(what)}</title></line>'
            )
    for i, (host, rate) in enumerate(sorted(lines.items())):
        dots = " ".join(f"{x((k + 1) * timeline['interval']):.1f},{y(v):.1f}" for k, v in enumerate(rate))
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<polyline points="{dots}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        where = f'x="{LEFT + 12 + 70 * i}" y="12" style="fill:{colour}"'
        out.append(f'<text class="axis" {where}>{html.escape(host)}</text>')
    out.append(f'<text class="axis" x="4" y="24" style="text-anchor:start">{unit}</text></svg>')
    return "".join(out)


STATES = {"Active": "#2a7d4f", "Armed": "#8fbf6a", "Initialize": "#e0b13c", "Down": "#c0392b"}
LANE, NAMES = 18, 240


def lanes(timeline: Data) -> list[tuple[str, list[Span]]]:
    """
    The timeline as spans: [(label, [(from, to, colour, words)])]. A fault from its start to its end or clearing, a
    port from each state to the next; events of the subnet manager have no length.
    """
    end = max(timeline.get("now") or 1, 0.1)
    spans: dict[str, list[Span]] = {}
    began: dict[str, list[float]] = {}
    names: dict[str, str] = {}
    at: dict[str, tuple[float, str]] = {}
    for t, kind, what in timeline.get("events", []):
        subject, _, words = what.strip().partition(" ")
        if kind == "port":
            if subject in at:
                since, state = at[subject]
                spans.setdefault(subject, []).append((since, t, STATES.get(state, "#999"), state))
            at[subject] = (t, words)
        elif kind == "sm":
            spans.setdefault("subnet manager", []).append((t, t, MARKS["sm"], what))
        elif words.startswith("armed"):
            names[subject] = words.removeprefix("armed: ")
        elif words == "fired":
            spans.setdefault(f"fault {subject}", []).append((t, t, MARKS["fault"], "fired"))
        elif words == "begins":
            began.setdefault(subject, []).append(t)  # at all links: once at those of each kind
        elif words in ("ends", "cleared") and began.get(subject):
            over = [began[subject].pop(0)] if words == "ends" else began.pop(subject)
            spans.setdefault(f"fault {subject}", []).extend((s, t, MARKS["fault"], "in force") for s in over)
    for subject, left in began.items():
        spans.setdefault(f"fault {subject}", []).extend((s, end, MARKS["fault"], "in force") for s in left)
    for subject, (since, state) in at.items():
        spans.setdefault(subject, []).append((since, end, STATES.get(state, "#999"), state))
    order = {"fault": 0, "subnet": 1}
    rows = sorted(spans.items(), key=lambda s: (order.get(s[0].split()[0], 2), s[0]))
    return [(f"{label} {names.get(label.removeprefix('fault '), '')}", row) for label, row in rows]


def gantt(timeline: Data) -> str:
    """Draws the timeline: a lane for each fault, the subnet manager, and each port with state changes."""
    rows, end = lanes(timeline), max(timeline.get("now") or 1, 0.1)
    height = LANE * len(rows) + 24

    def x(t: float) -> float:
        return NAMES + (WIDTH - NAMES - RIGHT) * t / end

    out = [f'<svg id="timeline" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">']
    for i in range(6):
        t = end * i / 5
        out.append(f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="0" y2="{height - 18}" stroke="#e3e7ec"/>')
        out.append(f'<text class="axis" x="{x(t):.1f}" y="{height - 5}">{_tick(t, end / 5)} s</text>')
    for n, (label, spans) in enumerate(rows):
        y = LANE * n + 3
        place = f'x="4" y="{y + 11}" style="text-anchor:start"'
        shown = label if len(label) < 38 else label[:36] + "..."
        out.append(f'<text class="axis" {place}>{html.escape(shown)}<title>{html.escape(label)}</title></text>')
        for since, to, colour, words in spans:
            out.append(
                f'<rect class="span" x="{x(since):.1f}" y="{y}" width="{max(2, x(to) - x(since)):.1f}" '
                f'height="{LANE - 6}" fill="{colour}"><title>{since:.3f} s: {html.escape(words)}</title></rect>'
            )
    out.append("</svg>")
    keys = "".join(f'<span style="color:{c}">&#9632;</span> {s} ' for s, c in STATES.items())
    return "".join(out) + f"<p>Ports: {keys}</p>" if rows else "<p>Nothing happened.</p>"


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    cells = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{h}</th>' for h in head)}</tr>{cells}</table>"


def page(
    data: Data,
    title: str,
    passed: bool,
    replay: str,
    *,
    captures: Iterable[str] = (),
    failures: Mapping[str, str] | None = None,
) -> str:
    """The page as text. @captures: names of files beside it; @failures: pytest's text of each phase that failed."""
    e = html.escape
    faults = [
        (f["id"], f"<code>{e(f['fault'])}</code>", f["matches"], f["hits"] or '<span class="idle">never fired</span>')
        for f in data["faults"]
    ]
    events = [
        (f"{t:.3f}", f'<span style="color:{MARKS[kind]}">{kind}</span>', e(what))
        for t, kind, what in data["timeline"].get("events", [])
    ]
    programs = [
        (f"<code>{e(p)}</code>", "still ran" if s is None else s, f'<a href="{e(log)}">{e(log)}</a>')
        for p, s, log in data["programs"]
    ]
    files = "".join(f'<li><a href="{e(c)}">{e(c)}</a></li>' for c in captures)
    word = "passed" if passed else "failed"
    when = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
    return "".join(
        [
            f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{e(title)}</title><style>{STYLE}</style>',
            f'<h1>{e(title)}: <span id="result" class="{word}">{word}</span></h1>',
            f"<p>fabric {e(data['name'])}, seed {data['seed']}, {when}<br>again: <code>{e(replay)}</code></p>",
            *(f"<h2>Failure in {e(when)}</h2><pre>{e(text)}</pre>" for when, text in (failures or {}).items()),
            f"<h2>Fabric</h2>{data['svg']}",
            f"<h2>Throughput of hosts</h2>{plot(data['timeline'])}",
            f"<h2>Faults</h2>{table(['', 'fault', 'matches', 'hits'], faults)}",
            f"<h2>Captures</h2><ul>{files}</ul>" if files else "",
            f"<h2>Programs</h2>{table(['program', 'exit status', 'output'], programs)}",
            f"<h2>Timeline</h2>{gantt(data['timeline'])}{table(['s', '', ''], events)}",
            *(f"<h2>{e(title)}</h2><pre>{e(text[-20000:])}</pre>" for title, text in logs(data["log"])),
            "</html>",
        ]
    )


@dataclasses.dataclass
class Phase:
    """A phase of a test, as pytest's report of it."""

    failed: bool = False
    duration: float = 0.0
    longreprtext: str = ""


PASSED = Phase()
Result = Union[Phase, "pytest.TestReport"]


def _reason(text: str) -> str:
    """The line of pytest's text of a failure that says why: the first one marked with E, and where it is."""
    lines = text.strip().splitlines()
    marked = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return f"{lines[-1].split(' ')[0]} {marked[0]}" if marked else lines[-1]


def _copy_files(source: pathlib.Path, target: pathlib.Path, since: float) -> list[str]:
    """
    Copies a fabric's files, without sockets and the tree that programs see as /sys; returns their names. One that the
    daemon or a program removes meanwhile is omitted.
    """
    names = []
    for where, folders, files in os.walk(source):
        folders[:] = [f for f in folders if f != "tree"]
        for path in (pathlib.Path(where, f) for f in files):
            name = path.relative_to(source)
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and (path.suffix != ".log" or path.stat().st_mtime >= since):
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, target / name)
                    names.append(str(name))
    return names


def write(
    fabric: Fabric,
    folder: pathlib.Path,
    title: str,
    reports: Mapping[str, Result],
    replay: str,
    *,
    root: pathlib.Path,
    since: float = 0,
    run: str | None = None,
) -> pathlib.Path:
    """
    Writes folder/report.html about a fabric, and beside it the timeline and the result as JSON, and the fabric's files.
    @reports: pytest's report of each phase of the test; @replay: the command that repeats it in @root, its rootdir;
    @since: output of programs that ended before is omitted; @run: the name of the session, whose index lists it.
    """
    data = collect(fabric)
    folder.mkdir(parents=True, exist_ok=True)
    files = _copy_files(fabric.folder, folder, since)
    captures = sorted(name for name in files if name.endswith((".pcap", ".pcapng")))
    data = {**data, "programs": [p for p in data["programs"] if p[2] in files]}
    passed = not any(r.failed for r in reports.values())
    failures = {when: r.longreprtext for when, r in reports.items() if r.failed}
    (folder / "report.html").write_text(page(data, title, passed, replay, captures=captures, failures=failures))
    (folder / "timeline.json").write_text(json.dumps(data["timeline"]))
    (folder / "replay.sh").write_text(REPLAY.format(root=shlex.quote(str(root)), replay=replay))
    (folder / "replay.sh").chmod(0o755)
    result = {
        "test": title,
        "run": run,
        "passed": passed,
        "seconds": sum(r.duration for r in reports.values()),
        "failure": next((_reason(t) for t in failures.values() if t.strip()), ""),
        "faults": [f["fault"] for f in data["faults"]],
        "captures": captures,
        # Text of a failure in the index, without the names of the drawings.
        "drawn": "" if passed else re.sub(r' id="\w+"', "", plot(data["timeline"]) + gantt(data["timeline"])),
    }
    (folder / "result.json").write_text(json.dumps(result))
    return folder / "report.html"


def write_index(folder: pathlib.Path, run: str) -> None:
    """
    Writes folder/index.html over the reports below it of the session @run, failures first. If there are none it removes
    that of an earlier session.
    """
    results = [(p.parent, json.loads(p.read_text())) for p in folder.glob("*/result.json")]
    results = [(where, r) for where, r in results if r.get("run") == run]
    e = html.escape
    rows = [
        (
            f'<span class="{"passed" if r["passed"] else "failed"}">{"passed" if r["passed"] else "failed"}</span>',
            f'<a href="{e(where.name)}/report.html">{e(r["test"])}</a><br><code>{e(r["failure"])}</code>'
            + (f"<details><summary>throughput and timeline</summary>{r['drawn']}</details>" if r["drawn"] else ""),
            f"{r['seconds']:.1f} s",
            "<br>".join(f"<code>{e(f)}</code>" for f in r["faults"]),
            "<br>".join(f'<a href="{e(where.name)}/{e(c)}">{e(c)}</a>' for c in r["captures"]),
        )
        for where, r in sorted(results, key=lambda x: (x[1]["passed"], x[1]["test"]))
    ]
    if not rows:
        (folder / "index.html").unlink(missing_ok=True)
        return
    failed = sum(not r["passed"] for _, r in results)
    text = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>muslin</title><style>{STYLE}</style>'
    text += f"<h1>{len(rows)} fabric{'s' * (len(rows) != 1)}, {failed} of failed tests</h1>"
    (folder / "index.html").write_text(text + table(["", "test", "time", "faults", "captures"], rows) + "</html>")
