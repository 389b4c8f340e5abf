# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Debian packages: which ones a system needs, fetched once into the cache and unpacked without any privilege. Where apt
looks for them is a list of its options: own() for the machine's release, backports(), or later(). Architectures have
Debian's names: amd64, arm64.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ALONE = ["Dir::State::status=/dev/null", "Debug::NoLocking=1", "APT::Sandbox::User="]  # nothing installed, no root
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
NATIVE = MACHINES.get(os.uname().machine, os.uname().machine)
LATER = "trixie"  # the oldest whose backports have a QEMU with vfio-user
DAY = 86400
TRIES = 3


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
    """The output of a program, which ends with its children, that may still write, when this one is interrupted."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **kw}
    try:
        process = subprocess.Popen([str(a) for a in argv], start_new_session=True, **options)
    except FileNotFoundError:
        fail(f"{argv[0]} is missing: `ci/deps vm` installs it")
    try:
        out = process.communicate()[0].decode(errors="replace")
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # until the last of them has closed its output
        raise
    if process.returncode:
        fail(f"{' '.join(map(str, argv))[:200]} ended with {process.returncode}:\n{out[-2000:]}")
    return out


def digest(*parts):
    """A short name for this content: of texts, and of files by their bytes."""
    h = hashlib.sha256()
    for p in parts:
        h.update(p.read_bytes() if isinstance(p, pathlib.Path) else str(p).encode())
        h.update(b"\0")
    return h.hexdigest()[:16]


def cache_path():
    return pathlib.Path(
        os.environ.get("MUSLIN_CACHE")
        or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muslin")
    )


def cache_folder():
    folder = cache_path()
    try:
        (folder / "debs").mkdir(parents=True, exist_ok=True)
    except OSError as e:
        fail(f"{folder}: {e.strerror}; set MUSLIN_CACHE")
    return folder


@contextlib.contextmanager
def cache_lock(name):
    """Of what the cache has by this @name: a second one waits, and finds what the first one has made."""
    file = cache_folder() / "lock"
    try:
        lock = file.open("w")
    except OSError as e:
        fail(f"{file}: {e.strerror}; set MUSLIN_CACHE")
    with lock:  # of one byte of the file, for each name another one
        at = int(digest(name), 16) >> 2
        fcntl.fcntl(lock, fcntl.F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
        yield


def words(options):
    return [w for o in options for w in ("-o", o)]


def apt_state(where):
    """Changes whenever what apt knows of the archives does."""
    lists = pathlib.Path(dict(o.split("=", 1) for o in where).get("Dir::State::lists", "/var/lib/apt/lists"))
    return [(p.name, p.stat().st_mtime_ns) for p in sorted(lists.glob("*Packages*"))]


def remembered(what, where, find):
    """find()'s answer, computed once in each state of apt's lists, or each time where no cache can be written."""
    known = cache_path() / f"resolved-{digest(apt_state(where), *what)}"
    with contextlib.suppress(OSError):
        os.utime(known)
        return json.loads(known.read_text())
    text = json.dumps(find())
    with contextlib.suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        part = known.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.rename(known)
    return json.loads(text)


def debian():
    """Address, name and state ("stable") of the release that apt gets packages from here; None: it is not Debian."""

    def find():
        form = "$(ORIGIN) $(LABEL) $(CODENAME) $(REPO_URI) $(SUITE)"
        text = run(["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Component: main"])
        m = re.search(r"^Debian Debian ([a-z]+) (\S+) (\S+)$", text, re.M)
        return m and [m[2], m[1], m[3]]

    return remembered(["release", "state"], (), find)


def repository(arch, suites):
    """
    Where apt finds these suites of the archive ("trixie", "trixie-backports") for @arch, and nothing else, whether the
    machine's own sources have them or not: it keeps lists of its own in the cache, of the day. The last one is
    preferred.
    """
    release = debian()
    folder = cache_folder() / f"lists-{digest(*release, arch, *suites)}"
    places = {"Etc::sourceparts": "sources", "State::lists": "lists", "Cache": "apt"}
    where = ["Dir::Etc::sourcelist=/dev/null", *(f"Dir::{k}={folder / v}" for k, v in places.items())]
    where += [f"APT::Default-Release={suites[-1]}"]
    if arch != NATIVE:
        where += [f"APT::Architecture={arch}", f"APT::Architectures={arch}"]
    signed = f" signed-by={KEYRING}" if KEYRING.exists() else ""
    text = "".join(f"deb [arch={arch}{signed}] {release[0]} {suite} main\n" for suite in suites)
    sources, stamp = folder / "sources/sources.list", folder / "updated"
    with cache_lock(folder.name):
        for name in ("sources", "lists/partial", "apt/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        if not sources.exists() or sources.read_text() != text:  # another one's apt may read it just now
            sources.write_text(text)
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > DAY:
            run(["apt-get", "update", *words([*ALONE, *where, "Acquire::Languages=none", "Acquire::Retries=3"])])
            stamp.touch()
    return where


def own(arch=NATIVE):
    """Where apt finds the machine's release: its own sources, or the same release for another architecture."""
    if arch == NATIVE:
        return ()
    if not debian():
        fail(f"packages for {arch} can be had where apt's are Debian's")
    return repository(arch, [debian()[1]])


def backports(arch=NATIVE):
    """Where apt finds the backports to this release; nowhere when this is no Debian, or one that has no backports."""
    release = debian()
    if not release or not re.fullmatch(r"(old)*stable", release[2]):
        return None
    return repository(arch, [f"{release[1]}-backports"])


def later():
    """Where apt finds the release LATER with its backports, for programs that bring their libraries; or None."""
    return repository(NATIVE, [LATER, f"{LATER}-backports"]) if debian() else None


def names(prefix, where=()):
    """Of the packages that apt knows there."""
    argv = ["apt-cache", "pkgnames", *words(where), prefix]
    return remembered(["names", prefix], where, lambda: sorted(run(argv).split()))


def fetchable(packages, where, command):
    """What apt-get @command would fetch for @packages: (address, file name, sha256 or '')."""

    def find():
        with tempfile.TemporaryDirectory() as empty:
            os.mkdir(f"{empty}/partial")
            options = words([*ALONE, f"Dir::Cache::archives={empty}", *where])
            text = run(["apt-get", *command, "--print-uris", *options, *packages])
        return re.findall(r"^'([^']+)' (\S+) \d+ ?(?:SHA256:)?(\S*)$", text, re.M)

    return remembered([*command, *packages], where, find)


def resolve(packages, where=()):
    """What apt would fetch for @packages on an empty system: (address, file name, sha256 or '')."""
    return fetchable(packages, where, ["install", "-y", "--no-install-recommends"])


def alone(packages, where=()):
    """The same for these packages without what they depend on."""
    return fetchable(packages, where, ["download"])


def load(address, part):
    """One that breaks off is tried again."""
    import urllib.request  # takes longer than all other imports, which a start from the cache does not need

    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(address, timeout=60) as src, part.open("wb") as dst:
                shutil.copyfileobj(src, dst)
            return
        except OSError as e:
            if not left:
                fail(f"{address}: {e}; the package lists may be old: apt-get update")


def fetch(address, name, sha256):
    """The package's file in the cache, fetched when it is not there yet."""
    path = cache_folder() / "debs" / name
    if path.exists():
        return path
    with cache_lock(name):
        if path.exists():
            return path
        part = path.with_suffix(f".{os.getpid()}")
        load(address, part)
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
