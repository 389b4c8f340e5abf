# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The muslin command: output, and error messages."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest
from muslin import wait_until


def test_show_json(shared_fabric):
    shown = json.loads(shared_fabric.command("show", "--json"))
    kinds = [n["type"] for n in shown["nodes"]]
    assert kinds.count("ca") == 8 and kinds.count("switch") == 4
    assert all(n["guid"] and n["ports"] for n in shown["nodes"])


def test_show_names_hosts_and_addresses(shared_fabric):
    out = shared_fabric.command("show")
    assert "h1" in out and "leaf1" in out and shared_fabric.ip("h1") in out


def test_unknown_host(shared_fabric):
    p = shared_fabric._start([shared_fabric.muslin, "run", "h99", "--", "true"])
    out = p.wait(status=None)
    assert p.popen.returncode != 0 and "h99" in out


def test_exit_status_is_the_programs(shared_fabric):
    shared_fabric.run("h1", "sh", "-c", "exit 42", status=42)


def test_second_up_is_refused(shared_fabric):
    assert "running" in shared_fabric.command("up", status=1)


def test_nothing_is_up(new_fabric):
    out = new_fabric.command("show", status=1)
    assert "muslin up" in out


@pytest.mark.parametrize(
    "text, line",
    [
        ("leafs two\n", 1),
        ('vendid=0x2c9\nSwitch 4 "S-1" # "s" base port 0\n[9] "H-1"[1]\n', 3),
        ("leafs 1 spines 1 hosts 2\nnonsense here\n", 2),
    ],
    ids=["number", "port", "word"],
)
def test_wrong_topology_names_the_line(new_fabric, text, line):
    path = new_fabric.folder / "bad.topo"
    path.write_text(text)
    out = new_fabric.command("up", path, status=1)
    assert f"bad.topo:{line}" in out


def test_a_daemon_that_has_died(new_fabric):
    """It is told apart from one that was never started; `log` and `up` work."""
    new_fabric.up("leafs 1 hosts 1")
    pid = new_fabric.daemon_pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 10, "the daemon's end")
    assert f"{new_fabric.name} is not up: its daemon has died; see `muslin log" in new_fabric.command("show", status=1)
    assert "SUBNET UP" in new_fabric.daemon_log()
    new_fabric.command("down", status=1)
    assert "is not up; start it with" in new_fabric.command("log", status=1)


def test_nothing_is_left_of_the_run_directory(new_fabric):
    """Neither by commands without a fabric nor after `down`."""
    del new_fabric.env["MUSLIN_RUNDIR"]
    new_fabric.env["XDG_RUNTIME_DIR"] = str(new_fabric.folder)
    for words in (["list"], ["up", "leafs 1 hosts 1"], ["down"]):
        new_fabric.command(*words)
        assert (new_fabric.folder / "muslin").exists() == (words[0] == "up")
    new_fabric.env["XDG_RUNTIME_DIR"] = "/proc/nothing"
    assert "cannot make the run directory: No such file" in new_fabric.command("up", status=1)


@pytest.mark.parametrize("group", [False, True], ids=["command", "group"])
@pytest.mark.parametrize("shards", [1, 2])
def test_an_interrupted_up_leaves_nothing(new_fabric, shards, group):
    """At any time before it is up: neither daemons nor files."""
    argv = [new_fabric.muslin, "up", "--shards", str(shards), "fattree k=16 levels=3"]
    run = new_fabric.folder / "run"
    early = 0
    for ms in (0, 3, 10, 30, 60, 100):
        up = subprocess.Popen(argv, env=new_fabric.env, user=new_fabric.user, start_new_session=True)
        time.sleep(ms / 1000)  # the moment of the signal
        (os.killpg if group else os.kill)(up.pid, signal.SIGTERM)
        status = up.wait(30)
        early += status == -signal.SIGTERM
        if not status:
            new_fabric.command("down")
        wait_until(lambda: not list(run.glob("*")) and not daemons(run), 10, f"the end of all after {ms} ms")
    assert early > 1


def daemons(run):
    """Process ids of muslind with this run directory."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"muslind" in (process / "cmdline").read_bytes() and f"={run}\0" in (process / "environ").read_text():
                found.append(process.name)
    return found


def test_output_that_cannot_be_written(shared_fabric):
    """A full disk is an error; the place of a closed standard output is not that of the socket to the daemon."""
    for words in (["list"], ["--help"], ["show", "--json"], ["fault", "list"], ["log"]):
        with open("/dev/full", "w") as full:
            argv = [shared_fabric.muslin, *words]
            options = {"env": shared_fabric.env, "user": shared_fabric.user, "text": True, "check": False}
            r = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, **options)
        assert r.returncode == 1 and r.stderr.startswith("muslin: standard output: "), words
        closed = 'exec "$@" <&- >&- 2>&-'
        assert not subprocess.run(["sh", "-c", closed, "sh", *argv], **options).returncode, words


def test_up_with_closed_descriptors(new_fabric):
    script = 'exec "$0" up "leafs 1 hosts 1" <&- >&- 2>&-'
    subprocess.run(["sh", "-c", script, new_fabric.muslin], env=new_fabric.env, user=new_fabric.user, check=True)
    assert "SUBNET UP" in new_fabric.daemon_log()


def test_programs_of_sbin(shared_fabric):
    """opensm and infiniband-diags are there, which is not in the PATH of each user."""
    shared_fabric.env["PATH"], path = "/usr/bin:/bin:/usr/sbinary", shared_fabric.env["PATH"]
    try:
        assert "Active" in shared_fabric.run("h1", "ibstat")
        directories = shared_fabric.run("h1", "sh", "-c", "echo $PATH").strip()
        assert directories == "/usr/bin:/bin:/usr/sbinary:/usr/local/sbin:/usr/sbin:/sbin"
    finally:
        shared_fabric.env["PATH"] = path


def test_a_start_that_fails_says_why_in_one_line(new_fabric):
    for text, words in (
        ("host a roce 192.0.2.77\n", "host a roce 192.0.2.77 cannot be created: Cannot assign requested address; "),
        ("ethernet s\nhost t tap s tap/77\nhost a ether s ip 10.0.0.1\n", "station t: TAP interface tap/77: "),
        ("leafs 1 hosts 1\n\npartition-file /no/such\n", "bad.topo:3: /no/such: No such file or directory"),
    ):
        path = new_fabric.folder / "bad.topo"
        path.write_text(text)
        out = new_fabric.command("up", path, status=1)
        assert out.replace(f"{new_fabric.folder}/", "").startswith(f"muslin: {words}") and out.count("\n") == 1, out


def test_up_takes_the_short_form_as_argument(new_fabric):
    new_fabric.up("leafs 2 spines 1 hosts 1")
    out = new_fabric.command("show")
    assert "leaf2" in out and "h2" in out and "spine2" not in out
    assert "topology:1: " in new_fabric.command("up", "leafs two", status=1)


@pytest.mark.parametrize("shards", [1, 2])
def test_down_waits_for_the_processes(new_fabric, shards):
    """Threads that were still exiting had files in the run directory open: it could not be unmounted."""
    new_fabric.command("up", "leafs 2 spines 1 hosts 2", "--shards", shards)
    new_fabric.run("h1", "ibv_devinfo")
    pids = new_fabric.daemon_pids
    assert len(pids) == shards
    # by the shell itself, at once; a process whose parent has yet to wait for it has one thread
    script = 'muslin=$1; shift; "$muslin" down && for pid; do echo /proc/$pid/task/*; done'
    out = new_fabric._start(["sh", "-c", script, "sh", new_fabric.muslin, *map(str, pids)]).wait(20)
    assert [len(line.split()) for line in out.splitlines()] == [1] * shards, out


def test_up_counts(new_fabric):
    assert "1 host, 1 switch, 1 link;" in new_fabric.command("up", "leafs 1 hosts 1")
    assert "SUBNET UP: 2 nodes (1 switch), " in new_fabric.daemon_log()


@pytest.mark.parametrize("off", ["disable h1:1", "disable leaf1:1"])
def test_the_subnet_manager_runs_where_a_link_is(new_fabric, off):
    """A port without one reaches nothing: `muslin up` would wait for the other ports in vain."""
    assert "its manager is on h2\n" in new_fabric.command("up", f"leafs 1 hosts 3\n{off}")
    new_fabric.wait_active()


def test_the_host_of_the_subnet_manager_needs_a_link(new_fabric):
    """Without one, `muslin up` waited half a minute for the ports of the others."""
    text = "leafs 1 hosts 2\ndisable h1:1"
    out = new_fabric.command("up", "--sm-host", "h1", text, status=1)
    assert '--sm-host: port 1 of host "h1" has no cable, or a disabled one, ' in out and 'such as "h2"' in out
    assert not new_fabric.command("list")
    assert "its manager is on h2\n" in new_fabric.command("up", "--sm-host", "h2", text)


def test_up_names_the_host_of_a_manager_without_a_link(new_fabric):
    out = new_fabric.command("up", "leafs 1 hosts 1\ndisable h1:1")
    assert "0 links; subnet up" in out and "its manager is on h1, whose port has no link\n" in out


def test_up_without_a_subnet_manager(new_fabric):
    """It does not recommend a second manager where one beyond a trunk may be at work."""
    assert "; no subnet manager yet: muslin run HOST" in new_fabric.command("up", "leafs 1 hosts 1", "--no-sm")
    new_fabric.down()
    trunk = f"leafs 1 hosts 1\ntrunk leaf1:2 listen {new_fabric.folder}/t"
    assert "; no embedded subnet manager: a manager beyond a trunk, or" in new_fabric.command("up", trunk, "--no-sm")


def test_fabrics_have_loopback_networks_of_their_own(new_fabric):
    """Programs of fabrics side by side may listen on the same port: the network follows from the fabric's name."""
    networks = set()
    for name in (f"n{i}" for i in range(30)):
        new_fabric.command("up", "--name", name, "--no-sm", "leafs 1 hosts 1")
        lines = (new_fabric.folder / "run" / name / "tree" / "addresses").read_text().splitlines()
        networks.add(re.match(r"h1 10.0.0.1 (127[.]\d+[.]\d+)[.]1 8 ib0", lines[0])[1])
        new_fabric.command("down", "--name", name)
    assert len(networks) == 30


def test_down_leaves_nothing(new_fabric):
    new_fabric.up()
    pid = new_fabric.daemon_pid
    new_fabric.command("down")
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 10, "the daemon's end")
    assert not list((new_fabric.folder / "run").glob(f"{new_fabric.name}/*sock*"))


def test_a_run_directory_that_was_removed_stays_removed(new_fabric):
    """The daemon writes counters and states of ports there, also when a program ends, and while it itself ends."""
    new_fabric.up("leafs 1 hosts 2")
    run, pid = new_fabric.folder / "run", new_fabric.daemon_pid
    program = new_fabric.start("h1", "ib_write_bw")
    wait_until(lambda: new_fabric.node("h1")["objects"]["contexts"], 20, "its context")
    run.rename(new_fabric.folder / "moved")  # at once, as no removal is
    program.kill()
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 10, "the daemon's end")
    assert not run.exists()


def test_a_killed_daemon_can_be_replaced_at_once(new_fabric):
    """While it is still exiting, `up` waits for its lock, and `down` leaves nothing of it."""
    new_fabric.up("leafs 1 hosts 2")
    for _ in range(3):
        os.kill(new_fabric.daemon_pid, signal.SIGKILL)
        new_fabric.command("up", "leafs 1 hosts 2")
    os.kill(new_fabric.daemon_pid, signal.SIGKILL)
    new_fabric.command("down", status=None)
    assert not list((new_fabric.folder / "run").glob("*/pid"))


@pytest.mark.parametrize(
    "options, words",
    [
        (["--lfts", "/nonexistent"], "/nonexistent"),
        (["--partitions", "/nonexistent"], "/nonexistent"),
        (["--sm-host", "h9"], "h9"),
        (["--hold", "999"], "--hold 999"),
        (["--shards", "2", "--lfts", "/nonexistent"], "/nonexistent"),
    ],
    ids=["lfts", "partitions", "sm-host", "hold", "shards"],
)
def test_a_failed_up_leaves_nothing(new_fabric, options, words):
    """Neither sockets nor a pid file, and the next start is as if it had not been."""
    assert words in new_fabric.command("up", *options, status=1)
    assert not list((new_fabric.folder / "run").iterdir())
    assert not new_fabric.command("list")
    new_fabric.up()


def test_a_failed_up_keeps_the_sockets_of_guests(new_fabric):
    """After a crash of the daemon its guests wait for it at these sockets; the start after the failed one has them."""
    new_fabric.up()
    pid = new_fabric.daemon_pid
    os.kill(pid, signal.SIGKILL)
    crashed = new_fabric.folder / "run" / new_fabric.name
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 10, "the daemon's end")
    guest = crashed / "vm" / "0"
    guest.parent.mkdir(mode=0o700)
    guest.touch()
    new_fabric.command("up", "--sm-host", "h9", status=1)
    assert guest.exists() and not list(crashed.glob("*sock")) and not (crashed / "pid").exists()


@pytest.mark.parametrize(
    "args, status, words",
    [
        (["nope"], 2, 'no command "nope"; `muslin help` lists them'),
        (["up", "--nam", "x"], 2, "--nam: no such option; `muslin up --help` lists them"),
        (["up", "-x"], 2, "muslin: invalid option -- 'x'"),
        (["up", "--seed"], 2, "muslin: option '--seed' requires an argument"),
        (["up", "--name", ""], 2, "missing FABRIC"),
        (["show", "--name", "a b"], 2, '"a b" cannot name a fabric: '),
        (["run", "h1", "--name", "x", "true"], 2, "--name: options are before the host"),
        (["up", ""], 1, '"": No such file'),
        (["up", "--packet-life", "0"], 2, "--packet-life 0: not a number from 1 to 31"),
        (["up", "--shards"], 2, "--shards: missing number"),
        (["top", "--interval", "0"], 2, "--interval 0: not a number above 0, up to 3600"),
        (["top", "-n"], 2, "-n: missing number"),
        (["metrics", "--listen", "x"], 2, "--listen x: not a number"),
        (["trace", "-c", "0.5", "h1"], 2, "-c 0.5: not a whole number"),
        (["down", "--name="], 2, "missing FABRIC"),
        (["list", "x"], 2, "usage: muslin list"),
        (["--version", "x"], 2, "usage: muslin --version"),
        (["help", "up"], 0, "muslin up --help"),
        (["up", "--help"], 0, "\n  --lfts FILE "),
        (["up", "-h"], 0, "\n  --lfts FILE "),
        (["show", "-h"], 0, "[--counters] [NODE]"),
        (["show", "--topology", "--svg"], 2, "[NODE] | --topology | --svg"),
        (["show", "--topology", "h1"], 2, "[NODE] | --topology | --svg"),
        (["show", "--svg", "--json"], 2, "[NODE] | --topology | --svg"),
        (["help", "nope"], 2, 'no command "nope"'),
        (["mode", "--help"], 0, "HOST [v1|v2]"),
        (["console", "--help"], 0, "ibsim"),
        (["partitions", "--help"], 0, "[FILE]"),
        (["vm", "--version"], 0, "muslin "),
        (["up", "leafz 2 spines 2"], 1, "topology:1: "),
        (["up", "--no-sm", "--sm-host", "h1"], 2, "--no-sm and --sm-host exclude each other"),
        (["up", "--qos", "--no-sm"], 2, "--no-sm and --qos exclude each other"),
        (["up", "--no-sm", "--lmc=1"], 2, "--no-sm and --lmc exclude each other"),
        (["up", "--no-sm", "--shards", "2", "--packet-life", "14"], 2, "--no-sm and --packet-life exclude each"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_options_are_what_they_are_called(new_fabric, args, status, words):
    out = new_fabric.command(*args, status=status)
    assert words in out and (not status or out.count("\n") == 1)
    assert not new_fabric.command("list")


@pytest.mark.parametrize(
    "args, words",
    [
        (["--mem", "x"], "--mem: expected a size such as 768M"),
        (["--cpus", "0"], "--cpus: expected a number, not '0'"),
        (["--foo"], "unrecognized arguments: --foo; `muslin vm --help` lists the options"),
        (["--tcp", "0,1"], "--tcp: expected PORT[,PORT...], or 0 for none, not '0,1'"),
        (["--share", "/nonexistent"], "--share: /nonexistent: no such folder"),
        (["--qemu", "/nonexistent"], "--qemu /nonexistent: no such program"),
    ],
    ids=lambda v: v[0] if isinstance(v, list) else "",
)
def test_wrong_options_of_a_guest(shared_fabric, args, words):
    """They are refused in one line, before an image is built."""
    out = shared_fabric.command("vm", "h1", *args, status=2)
    assert words in out and out.count("\n") == 1


def test_a_host_has_one_guest(new_fabric):
    """Also while the first one boots: its QEMU is connected, and no driver uses the device yet."""
    new_fabric.up("leafs 1 hosts 1")
    path = re.search(r"socket,id=hca0,path=([^,]+)", new_fabric.command("vm", "h1", "--print"))[1]
    with socket.socket(socket.AF_UNIX) as front_end:
        front_end.connect(path)
        wait_until(lambda: new_fabric._start([new_fabric.muslin, "vm", "h1", "--print"]).popen.wait(20), 10, "refusal")
        assert "host h1 has a guest already" in new_fabric.command("vm", "h1", "--print", status=1)
    wait_until(lambda: not new_fabric._start([new_fabric.muslin, "vm", "h1", "--print"]).popen.wait(20), 10, "no guest")


def test_help_of_one_command_is_its_own(new_fabric):
    assert "down" not in new_fabric.command("help", "up")


def on_terminal(fabric, *words, **env):
    """What `muslin WORDS` prints on a terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    argv = [str(w) for w in (fabric.muslin, *words)]
    process = subprocess.Popen(
        argv, stdin=slave, stdout=slave, stderr=slave, env={**fabric.env, "TERM": "xterm", **env}, user=fabric.user
    )
    os.close(slave)
    seen = b""
    try:
        while got := os.read(master, 4096):
            seen += got
    except OSError:  # EIO: the program has ended
        pass
    os.close(master)
    assert process.wait(10) == 0
    return seen.decode()


def test_top_of_more_ports_than_16_bits_count(new_fabric):
    """11,664 hosts and 1,620 switches of 36 ports have 69,984 linked ports: each has its line, and no other one."""
    new_fabric.up("fattree k=36 levels=3", "--no-sm")
    header, *rows = new_fabric.command("top", "-n", "1", "--interval", "0.1", timeout=120).splitlines()
    assert header.startswith("port") and len(rows) == len({r.split()[0] for r in rows}) == 36**3 // 4 * 6


def test_states_have_colours_on_a_terminal(shared_fabric):
    """Green, or red for a link that is down; nowhere else, nor with NO_COLOR or on a terminal that has none."""
    show, top = ["show", "h8"], ["top", "-n", "1", "--interval", "0.1"]
    assert "\033[32mActive\033[0m" in on_terminal(shared_fabric, *show)
    shared_fabric.command("link", "h8:1", "down")
    assert "\033[31mDown\033[0m" in on_terminal(shared_fabric, *show)
    assert re.search(r"^h8:1 +\033\[31mDown\033\[0m ", on_terminal(shared_fabric, *top), re.M)
    shared_fabric.command("link", "h8:1", "up")
    wait_until(lambda: shared_fabric.port("h8")["state"] == "Active", 20, "the link")
    for words in show, top:
        assert "\033[0m" not in on_terminal(shared_fabric, *words, NO_COLOR="1")
        assert "\033[0m" not in on_terminal(shared_fabric, *words, TERM="dumb")
        assert "\033" not in shared_fabric.command(*words)


def test_top_fits_the_terminal(shared_fabric):
    """40 columns and 10 rows: no longer lines, no more rows, the rest is counted; q ends it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    top = subprocess.Popen(
        [shared_fabric.muslin, "top", "--interval", "0.2"],
        stdin=slave,
        stdout=slave,
        env=shared_fabric.env,
        user=shared_fabric.user,
    )
    os.close(slave)
    seen = b""
    while b"more" not in seen:
        seen += os.read(master, 4096)
    os.write(master, b"q")
    assert top.wait(20) == 0
    os.close(master)
    lines = re.sub(r"\033\[\d+m", "", seen.decode().split("\033[2J")[1]).splitlines()
    assert len(lines) < 10 and max(map(len, lines)) <= 40 and lines[0].startswith("port")
    assert lines[8].startswith("... and ")
