# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian packages: which ones a system needs, fetched once into the cache and unpacked without any privilege."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request


def fail(text, status=1):
    print(f"muslin: {text}", file=sys.stderr)
    sys.exit(status)


def say(text, detail=False):
    """Progress: one line that the next one takes over on a terminal; elsewhere without the details."""
    if sys.stderr.isatty():
        print(f"\r\33[Kmuslin: {text}" if text else "\r\33[K", end="", file=sys.stderr, flush=True)
    elif text and not detail:
        print(f"muslin: {text}", file=sys.stderr, flush=True)


def run(argv, **kw):
    got = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **kw)
    if got.returncode:
        said = got.stdout.decode(errors="replace")[-2000:]
        fail(f"{' '.join(map(str, argv))[:200]} ended with {got.returncode}:\n{said}")
    return got.stdout.decode(errors="replace")


def digest(*parts):
    """A short name for this content: of texts, and of files by their bytes."""
    h = hashlib.sha256()
    for p in parts:
        h.update(p.read_bytes() if isinstance(p, pathlib.Path) else str(p).encode())
        h.update(b"\0")
    return h.hexdigest()[:16]


def cache_folder():
    base = os.environ.get("MUSLIN_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muslin"
    )
    folder = pathlib.Path(base)
    try:
        (folder / "debs").mkdir(parents=True, exist_ok=True)
    except OSError as e:
        fail(f"{folder}: {e.strerror}; set MUSLIN_CACHE")
    return folder


def apt_state():
    """Changes whenever what apt knows of the archives does."""
    lists = pathlib.Path("/var/lib/apt/lists")
    return [(p.name, p.stat().st_mtime_ns) for p in sorted(lists.glob("*Packages*"))]


def resolve(packages):
    """What apt would fetch for @packages on an empty system: (address, file name, sha256 or '')."""
    known = cache_folder() / f"resolved-{digest(apt_state(), *packages)}"
    if known.exists():
        return json.loads(known.read_text())
    options = ["Dir::State::status=/dev/null", "Debug::NoLocking=1", "APT::Sandbox::User="]
    with tempfile.TemporaryDirectory() as empty:
        os.mkdir(f"{empty}/partial")
        options.append(f"Dir::Cache::archives={empty}")
        words = [w for o in options for w in ("-o", o)]
        text = run(["apt-get", "install", "-y", "--print-uris", "--no-install-recommends", *words, *packages])
    found = re.findall(r"^'([^']+)' (\S+) \d+ ?(?:SHA256:)?(\S*)$", text, re.M)
    part = known.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(found))
    part.rename(known)
    return found


def fetch(address, name, sha256):
    """The package's file in the cache, fetched when it is not there yet."""
    path = cache_folder() / "debs" / name
    if path.exists():
        return path
    part = path.with_suffix(f".{os.getpid()}")
    with urllib.request.urlopen(address, timeout=60) as src, part.open("wb") as dst:
        shutil.copyfileobj(src, dst)
    if len(sha256) == 64 and hashlib.sha256(part.read_bytes()).hexdigest() != sha256:
        part.unlink()
        fail(f"{name}: damaged on the way")
    part.rename(path)
    return path


def unpack(debs, folder):
    """Fetches each of @debs, as resolve() names them, and unpacks it in @folder."""
    folder.mkdir(parents=True, exist_ok=True)
    say(f"unpacking {len(debs)} package" + "s" * (len(debs) > 1))
    for i, (address, name, sha256) in enumerate(debs, 1):
        say(f"package {i} of {len(debs)}: {name.split('_')[0]}", detail=True)
        run(["dpkg-deb", "-x", fetch(address, name, sha256), folder])
