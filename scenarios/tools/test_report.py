# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page about a run, the drawing, rates and metrics; and a killed harness leaves no processes."""

import functools
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree

import pytest
from muslin import free_port, report, wait_until

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
PINGPONG = ["ibv_rc_pingpong", "-p", free_port(), "-n", "2000"]


@pytest.fixture
def page(fabric, tmp_path):
    """A page about some traffic, a fault that fired and one that did not."""
    fabric.fault("h5", "drop", opcode="rc", nth=500)
    fabric.fault("h6", "drop", opcode="rc", expect=False)
    fabric.pair(("h5", *PINGPONG), ("h1", *PINGPONG, fabric.ip("h5")))
    fabric.command("link", "h8:1", "down")
    wait_until(lambda: fabric.port("h8")["state"] == "Down", 10, "h8's port")
    return report.write(fabric, tmp_path, "a <test>", {"call": report.PASSED}, "pytest again", root=tmp_path)


def test_the_page_in_a_browser(page):
    """A browser renders it, and its document has all parts; it loads nothing from elsewhere."""
    assert BROWSER, "no chromium here: ci/deps test installs it"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent}/browser"]
    args = [BROWSER, *flags, "--virtual-time-budget=3000", "--dump-dom", f"file://{page}"]
    dom = subprocess.run(args, capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.search(r'id="result" class="passed">passed', dom) and "a &lt;test&gt;" in dom
    assert dom.count("<polyline") >= 2 and re.search(r"<text[^>]*>h5</text>", dom)
    assert len(re.findall(r"<rect(?! class)", dom)) == 12 and "stroke-dasharray" in dom
    drawn = dom[dom.index('id="timeline"'):]
    assert len(re.findall(r'<rect class="span"[^>]*>', drawn)) >= 4
    for lane in ("fault 1 h5 drop opcode=rc nth=500", "subnet manager", "h8:1"):
        assert re.search(rf"<text[^>]*>{lane} ?<", drawn), lane
    assert "h5 drop opcode=rc nth=500" in dom and dom.count("never fired") == 1
    assert "h8:1 Down" in dom
    assert not re.search(r"(src|href)=\"https?:", dom)
    shot = page.parent / "page.png"
    args = [BROWSER, *flags, f"--screenshot={shot}", f"file://{page}"]
    subprocess.run(args, capture_output=True, timeout=60, check=True)
    assert shot.stat().st_size > 10000


@pytest.mark.parametrize(("rate", "seconds", "unit"), [(200e9, 60, "Gb/s"), (3e6, 0.3, "Mb/s"), (120, 7, "kb/s")])
def test_axes(rate, seconds, unit):
    """Ticks of an axis are different numbers without an exponent, in a unit that suits them."""
    samples = [int(i * rate / 8 * seconds / 10) for i in range(10)]
    drawn = report.plot({"interval": seconds / 10, "now": seconds, "bytes": {"h1": samples}, "events": []})
    ticks = re.findall(r"[>]([^<>]+)</text>", drawn)
    times, rates = [t for t in ticks if t.endswith(" s")], [t for t in ticks if re.fullmatch(r"[\d.]+", t)]
    assert len(set(times)) == len(set(rates)) == 6 and unit in ticks and "<polyline" in drawn
    assert all(re.fullmatch(r"\d+(\.\d+)?( s)?", t) for t in times + rates)


def test_the_drawing_is_well_formed(shared_fabric):
    svg = xml.etree.ElementTree.fromstring(shared_fabric.command("show", "--svg"))
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(space + "rect")) == 12 and len(svg.findall(space + "line")) == 12


def test_top_shows_rates(shared_fabric):
    args = ["ib_write_bw", "-p", free_port(), "-D", "100"]
    h1 = shared_fabric.host("h1")
    before = h1.counters["port_xmit_packets"]
    ends = shared_fabric.start_pair(
        ("h5", *args), ("h1", *args, shared_fabric.ip("h5")), lambda: h1.counters["port_xmit_packets"] > before + 2000
    )
    out = shared_fabric.command("top", "-n", "1", "--interval", "0.5")
    rows = [r.split() for r in out.splitlines()[1:]]
    assert rows[0][1] == "Active" and float(rows[0][4]) > 1000
    assert any(r[0] == "h1:1" and float(r[2]) > 0.01 for r in rows)
    for end in ends:
        end.kill()


def test_metrics_for_prometheus(shared_fabric):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = shared_fabric._start([shared_fabric.muslin, "metrics", "--listen", port])

    def fetch():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        except (ConnectionError, urllib.error.URLError):
            return None

    text = wait_until(fetch, 10, "the endpoint")
    assert re.search(r'^muslin_port_up\{fabric="[^"]+",node="h1",port="1"\} 1$', text, re.M)
    assert re.search(r'^muslin_port_xmit_packets_total\{.*node="leaf1",port="1"\} [1-9]\d*$', text, re.M)
    assert all(re.match(r"# (TYPE|HELP) |muslin_\w+\{[^}]*\} [\d.]+$", line) for line in text.splitlines())
    assert "muslin_sm_up{" in text and re.search(r'^muslin_port_info\{.*node="h1",.*peer="leaf1",.*\} 1$', text, re.M)
    with socket.create_connection(("127.0.0.1", port)) as s:  # a probe that resets its connection
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for method, status, length in ("GET", 200, 1), ("HEAD", 200, 0), ("POST", 405, 1):  # RFC 9110, 9.1: HEAD as GET
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request(method, "/metrics")
        got = connection.getresponse()
        assert got.status == status and bool(got.read()) == bool(length) and int(got.headers["Content-Length"])
        assert status != 405 or got.headers["Allow"] == "GET, HEAD"
        connection.close()
    page = f"http://127.0.0.1:{port}/metrics?node="
    for leaf1 in ("le%61f1", "%6Ceaf%31&also=h1", "leaf1&node=h1"):
        assert 'node="leaf1"' in urllib.request.urlopen(page + leaf1, timeout=5).read().decode()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{page}leaf1%2", timeout=5)
    one = urllib.request.urlopen(f"{page}leaf1", timeout=5).read().decode()
    assert 'node="leaf1"' in one and 'node="h1"' not in one
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{page}h99", timeout=5)
    health = urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read().decode()
    assert health == "24 of 24 linked ports are Active; the subnet manager is on h1\n"
    with shared_fabric.fault("sm", "kill"), pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
    wait_until(lambda: (shared_fabric.show()["manager"] or {}).get("up"), 20, "the subnet manager")
    assert fetch()
    server.kill()


def test_metrics_while_the_fabric_is_down(new_fabric):
    """Requests fail with 503 then, and succeed when it is up again."""
    port = free_port()
    server = new_fabric.start_muslin("metrics", "--listen", port)
    paths = ["metrics", "metrics?node=h1", "health"]

    def fetch(path="metrics"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as got:
                return got.status, got.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except (ConnectionError, urllib.error.URLError):
            return None

    wait_until(fetch, 10, "the endpoint")
    for end in (lambda: new_fabric.command("down"), lambda: os.kill(new_fabric.daemon_pid, signal.SIGKILL)):
        assert all(code == 503 and f"fabric {new_fabric.name} is not up; " in text for code, text in map(fetch, paths))
        assert fetch("else") == (404, "not found\n")
        new_fabric.up("leafs 1 hosts 2")
        assert [fetch(path)[0] for path in paths] == [200] * 3
        assert fetch("metrics?node=h9")[0] == 404
        end()
        wait_until(lambda: fetch()[0] != 200, 10, "the daemon's end")
    assert fetch()[0] == 503 and server.running()


def test_bar_of_a_flap_ends_with_it(new_fabric):
    """The fault's and that of the port's state: neither goes on to the end of the timeline, while it is armed."""
    new_fabric.up("leafs 1 hosts 2")
    with new_fabric.fault("h2", "flap", down="300ms", times=1) as fault:

        def over():
            timeline = json.loads(new_fabric.command("timeline"))
            ends = [t for t, kind, what in timeline["events"] if (kind, what) == ("fault", f"{fault.number} ends")]
            active = [t for t, kind, what in timeline["events"] if (kind, what) == ("port", "h2:1 Active")]
            return timeline if ends and active and active[-1] > ends[0] and timeline["now"] > active[-1] + 0.5 else None

        timeline = wait_until(over, 20, "the flap's end")
    lanes = {" ".join(label.split()[:2]): spans for label, spans in report.lanes(timeline)}
    ((begin, end, _, words),) = lanes[f"fault {fault.number}"]
    assert words == "in force" and 0.2 < end - begin < timeline["now"] - begin - 0.4
    states = lanes["h2:1"]
    assert "Down" in [s for *_, s in states[:-1]] and states[-1][3] == "Active"
    assert all(to < timeline["now"] - 0.4 for _, to, _, state in states if state == "Down")


def test_samples_have_their_times(new_fabric):
    """Also those for which the daemon got no processor, since a plot has one each 200 ms."""
    new_fabric.up("leafs 1 hosts 2")
    stopped = time.monotonic()
    os.kill(new_fabric.daemon_pid, signal.SIGSTOP)
    wait_until(lambda: time.monotonic() > stopped + 1.5, 10, "1.5 seconds")
    os.kill(new_fabric.daemon_pid, signal.SIGCONT)
    timeline = json.loads(new_fabric.command("timeline"))
    assert timeline["now"] > 1.5
    assert abs(len(timeline["bytes"]["h1"]) - timeline["now"] / timeline["interval"]) <= 2, timeline


def test_lane_of_a_fault_at_all_links():
    """It begins and ends at links of each kind for itself."""
    events = [[1, "fault", "1 begins"], [2, "fault", "1 begins"], [3, "fault", "1 ends"], [4, "fault", "1 ends"]]
    ((_, spans),) = report.lanes({"now": 5, "events": events})
    assert [span[:2] for span in spans] == [(1, 3), (2, 4)]


TEST = """
import time

def test_long(new_fabric):
    print("PHASE up", flush=True)
    new_fabric.up()
    print("PID", new_fabric.daemon_pid, flush=True)
    new_fabric.start("h1", "ib_write_bw", "-D", "SECONDS")
    print("PHASE runs", flush=True)
    GUEST
    time.sleep(NAP)
    print("PHASE ends", flush=True)
"""


def mounts():
    return {line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()}


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("phase", ["up", "runs", "boots", "ends"])
def test_nothing_is_left(request, folder, shared_fabric, sig, phase):
    """
    The run ends in any way, at any time: while the fabric comes up, during a test, while a guest boots, or at the end.
    Its daemon, programs, guests and sockets are gone, and nothing is mounted.
    """
    if phase == "boots" and not shutil.which("qemu-system-x86_64"):
        pytest.skip("QEMU is not installed: ci/deps vm")
    guest = 'print("PHASE boots", flush=True); new_fabric.vm("h2")' if phase == "boots" else ""
    text = TEST.replace("GUEST", guest).replace("NAP", "0" if phase == "ends" else "100")
    seconds = str(1000 + os.getpid())  # identifies its programs
    text = text.replace("SECONDS", seconds)
    (folder / "test_long.py").write_text(text)
    args = [sys.executable, "-m", "pytest", "-s", "-p", "muslin.plugin", "-p", "no:cacheprovider", "test_long.py",
            f"--muslin-build={request.getfixturevalue('build_folder')}"]
    args.append(f"--muslin-user={request.config.getoption('--muslin-user') or ''}")
    env = dict(os.environ, PYTHONPATH=str(request.config.rootpath / "harness"), TMPDIR=str(folder))
    env["MUSLIN_CACHE"] = shared_fabric.env["MUSLIN_CACHE"]
    before = mounts()
    with (folder / "out").open("w") as out:
        heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a background job ignores it
        run = subprocess.Popen(args, cwd=folder, env=env, stdout=out, stderr=out, preexec_fn=heed)
    wait_until(lambda: f"PHASE {phase}" in (folder / "out").read_text(), 60, f"the phase {phase}", 0.002)
    if phase == "boots":
        wait_until(lambda: processes("qemu-system", folder), 200, "QEMU")  # the first guest has to build its image
    run.send_signal(sig)
    try:
        run.wait(30)
    finally:
        run.kill()
    wait_until(lambda: not processes(str(folder)), 20, f"the end of what runs in {folder}", 0.1)
    wait_until(lambda: not processes(f"ib_write_bw -D {seconds}$"), 20, "the programs' end", 0.1)
    wait_until(lambda: not [p for p in folder.glob("**/*") if p.is_socket()], 20, "the sockets' end", 0.1)
    assert not [place for place in mounts() - before if "muslin" in place]


def processes(pattern, folder=None):
    """The processes whose command line matches and, with @folder, contains it."""
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout.split()
    if folder:
        found = [p for p in found if str(folder) in command_line(p)]
    return [p for p in found if int(p) != os.getpid()]


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_logs_of_several_daemons():
    assert report.logs("one\n") == [("Log of the daemon", "one\n")]
    text = "==> a <==\none\n==> a.1 <==\ntwo\n==> a <==\nthree\n"
    assert report.logs(text) == [("Log of daemon a", "one\nthree\n"), ("Log of daemon a.1", "two\n")]
