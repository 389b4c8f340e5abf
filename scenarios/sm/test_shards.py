# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A topology that `muslin up --shards` splits over daemons: commands, programs and the subnet manager of the whole, and
daemons that die.

    daemon 0: h1, h2 - leaf1 = spine1, spine2 = leaf2 - h3, h4 :daemon 1
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket

import pytest
from muslin import ProcessFailed, wait_until
from test_perftest import RESULT, free_port

SHARDS = "leafs 2 spines 2 hosts 2"


def test_show_is_of_the_whole(shards):
    names = {n["name"] for n in shards.show()["nodes"]}
    assert names == {"h1", "h2", "h3", "h4", "leaf1", "leaf2", "spine1", "spine2"}
    assert all(p["state"] == "Active" for n in shards.show()["nodes"] for p in n["ports"] if p.get("peer"))
    assert shards.port("leaf2", 3)["peer"] == "spine1"
    assert len(json.loads(shards.command("show", "--json", "leaf2"))["nodes"]) == 1
    assert "no node" in shards.command("show", "leaf3", status=1)
    assert "h3" in shards.command("show", "h9", status=1)  # a similar name, of the second daemon
    assert shards.command("show", "--topology").count("Switch") == 4


def test_show_of_a_node_names_the_manager_in_another_daemon(shards):
    for node in "h1", "h3", "leaf2":
        fabric, manager, *_ = shards.command("show", node).splitlines()
        assert re.fullmatch(rf"fabric {shards.name}, subnet manager on h1:1, lid \d+", fabric), node
        assert manager.startswith("embedded manager on h1: Master"), node
        assert json.loads(shards.command("show", "--json", node))["sm"] == shards.show()["sm"]


def test_a_fat_tree_in_four_shards(muslin_new_fabric):
    """192 trunks connect at once, none of them is refused, and the manager waits for them."""
    shown = muslin_new_fabric.up("fattree k=8 levels=3", "--shards", "4").show()
    assert len(shown["trunks"]) == 2 * 96 and all(t["connected"] for t in shown["trunks"])
    assert not any(shown["trunks_refused"].values()), shown["trunks_refused"]
    assert shown["manager"]["heavy_sweeps"] <= 3


def test_each_link_counts_once(muslin_new_fabric):
    """One of the six is between the daemons, which have seven and five ends of links."""
    out = muslin_new_fabric.command("up", "--shards", "2", "leafs 2 spines 1 hosts 2")
    assert "4 hosts, 3 switches, 6 links" in out, out


def test_programs_across_shards(shards):
    """By the names and IP addresses of hosts in the other daemon, too."""
    common = ["ib_write_bw", "-F", "-p", free_port(), "-n", "200"]
    _, out = shards.pair(("h3", *common), ("h1", *common, "h3"))
    assert RESULT.search(out), out
    common = ["rping", "-a", shards.ip("h1"), "-V", "-C", "10"]
    _, out = shards.pair(("h1", common[0], "-s", *common[1:]), ("h4", common[0], "-c", "-v", *common[1:]))
    assert out.count("ping data") == 10, out


def test_the_manager_in_another_shard(muslin_new_fabric):
    """The place sm and partitions are those of the daemon that has the embedded subnet manager."""
    fabric = muslin_new_fabric.up("leafs 2 spines 2 hosts 2", "--shards", "2", "--sm-host", "h3")
    with fabric.fault("sm", "pause") as fault:
        assert fault.hits == 1
    fabric.fault("sm", "busy", expect=False)
    assert "sm busy" in fabric.command("fault", "clear", "sm")
    path = fabric.folder / "partitions.conf"
    path.write_text("Default=0x7fff, ipoib : ALL=full;\nBlue=0x8002 : ALL=full;\n")
    fabric.command("partitions", path)
    assert all("0x8002" in fabric.run(host, "smpquery", "pkeys", "-D", "0") for host in ("h1", "h4"))


def test_the_host_of_the_manager_needs_a_link(muslin_new_fabric):
    """The host of --sm-host is alone in its shard: `muslin up` waited half a minute for the ports of the others."""
    fabric = muslin_new_fabric
    text = "leafs 2 spines 1 hosts 1\ndisable h2:1"
    out = fabric.command("up", text, "--shards", "2", "--sm-host", "h2", status=1)
    assert '--sm-host: port 1 of host "h2" has no cable, or a disabled one, ' in out and 'such as "h1"' in out


def test_the_manager_is_in_a_shard_with_a_link(muslin_new_fabric):
    """By default it was in the first one, whose only host has none."""
    text = "leafs 2 spines 1 hosts 1\ndisable leaf1:1"
    assert "its manager is on h2\n" in muslin_new_fabric.command("up", text, "--shards", "2")
    assert "0x" in muslin_new_fabric.run("h2", "smpquery", "portinfo", "-D", "0,1", "1")
    muslin_new_fabric.fault("sm", "busy")


def test_trace_and_metrics_of_both(shards):
    with shards.trace("h4") as trace:
        shards.run("h3", "smpquery", "nodeinfo", shards.port("h4")["lid"])
    assert trace.packets("infiniband.mad.attributeid == 0x11")
    text = shards.command("metrics")
    for host in ("h1", "h4"):
        one = shards.command("metrics", host)
        assert re.search(r'^muslin_sm_up\{.*host="h\d+"\} 1$', one, re.M) and f'node="{host}",port="1"}} 1' in one
        assert set(re.findall('node="(.*?)"', one)) == {host}
    assert 'node="h1"' in text and 'node="h4"' in text and 'node="spine2"' in text
    assert "leaf2:1" in shards.command("top", "-n", "1", "--interval", "0.1")


def test_console_finds_the_daemon_of_each_node(shards):
    def console(text):
        return shards._start(["sh", "-c", f"printf '{text}' | '{shards.muslin}' console"]).wait(20)

    console('Unlink "h1"[1]\\nUnlink h4\\nError h3[1] 50\\n')
    assert [shards.port(h)["state"] for h in ("h1", "h2", "h3", "h4")] == ["Down", "Active", "Active", "Down"]
    assert "h3:1 drop prob=50%" in shards.command("fault", "list")
    console("Link h1\\nLink h4\\nClear h3[1]\\n")
    wait_until(lambda: all(shards.port(h)["state"] == "Active" for h in ("h1", "h4")), 60, "the links", 0.1)
    assert "drop" not in shards.command("fault", "list")


def start_shard(fabric, index):
    daemon = [fabric.muslin.parent / "muslind", "--name", fabric.name, "--shard", f"{index}/2", SHARDS]
    fabric._start(daemon, ()).wait(30)


def kill_shard(fabric, index):
    name = f"{fabric.name}.{index}" if index else fabric.name
    os.kill(int(next((fabric.folder / "run").glob(f"{name}/pid")).read_text()), signal.SIGKILL)


def events(fabric):
    return json.loads(fabric.command("timeline"))["events"]


def do_without(fabric, dead, names):
    """Commands for the whole fabric do without the dead daemon and say so; @names: its nodes, a host first."""

    def said(*args, status=0):
        out = fabric.command(*args, status=status)
        assert f"daemon {dead}, which runs a part of fabric {fabric.name}, is not up" in out, out
        return out

    assert said("show", "--topology").count("Switch") == 2
    numbers = re.findall(r"^\d+$", said("fault", "add", "all", "delay", "time=1us", "prob=1%"), re.M)
    assert [str(f["id"]) for f in json.loads(fabric.command("fault", "list", "--json"))] == numbers
    assert len(numbers) == 1
    fabric.command("fault", "clear", "all")
    assert f"but daemon {dead} has, which is not up" in said("show", names[0], status=1)
    for words in ["show"], ["top", "-n", "1", "--interval", "0.1"], ["metrics"], ["timeline"]:
        out = fabric.command(*words)
        assert not [n for n in names if re.search(rf'^(ca|switch) {n} |^{n}:\d|node="{n}"', out, re.M)], out
    assert {f"==> {fabric.name} <==", f"==> {fabric.name}.1 <=="} <= set(fabric.command("log").splitlines())


def test_a_shard_dies_and_comes_back(muslin_new_fabric):
    shards = muslin_new_fabric.up(SHARDS, "--shards", "2")
    kill_shard(shards, 1)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Down", 20, "its links down", 0.1)
    assert {n["name"] for n in shards.show()["nodes"]} == {"h1", "h2", "leaf1", "spine1"}
    do_without(shards, f"{shards.name}.1", ["h3", "h4", "leaf2", "spine2"])
    start_shard(shards, 1)
    wait_until(lambda: shards.port("spine1", 2)["state"] == "Active", 60, "its links", 0.1)
    wait_until(lambda: shards.port("h3")["state"] == "Active", 60, "it is back", 0.1)
    before = events(shards)  # it does not record yet
    shards.command("timeline", "--start")
    with shards.link("h3").down():
        wait_until(lambda: shards.port("leaf2", 1)["state"] == "Down", 10, "the switch's end", 0.05)
    later = [t for t, _, what in events(shards) if what == "leaf2:1 Down"]
    assert len(later) == 1 and before and later[0] > max(t for t, *_ in before), (before, later)
    traffic = json.loads(shards.command("timeline"))["bytes"]
    assert abs(len(traffic["h1"]) - len(traffic["h3"])) <= 2, {h: len(b) for h, b in traffic.items()}
    shards.command("down")
    assert not list((shards.folder / "run").glob("*/pid"))


def test_the_first_shard_dies_and_comes_back(muslin_new_fabric):
    """It has the subnet manager; the other daemon's hosts go on without."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2")
    common = ["ib_write_bw", "-F", "-p", free_port(), "-n", "2000"]
    fabric.pair(("h4", *common), ("h3", *common, "h4"))
    top = fabric.start_muslin("top", "--interval", "0.5")

    def tables():
        """The rows of each table that it has printed; the last one may be incomplete."""
        return [[r.split() for r in t.splitlines() if ":" in r] for t in top.output.split("packets/s")[1:-1]]

    wait_until(tables, 20, "a table of both shards", 0.1)
    kill_shard(fabric, 0)
    wait_until(lambda: fabric.port("leaf2", 3)["state"] == "Down", 20, "its links down", 0.1)
    assert {n["name"] for n in fabric.show()["nodes"]} == {"h3", "h4", "leaf2", "spine2"}
    printed = len(tables())
    wait_until(lambda: len(tables()) > printed + 1, 20, "a table without the dead one", 0.1)
    top.kill()
    rows = tables()[-1]
    assert rows and not [r for r in rows if r[0].startswith(("h1:", "h2:", "leaf1:", "spine1:"))], rows
    rows = [r for t in tables() for r in t if float(r[-3]) + float(r[-2]) > 0.5]
    assert not rows, rows  # another port's counters
    do_without(fabric, fabric.name, ["h1", "h2", "leaf1", "spine1"])
    fabric.pair(("h4", *common), ("h3", *common, "h4"))
    start_shard(fabric, 0)
    wait_until(lambda: all(fabric.port(h)["state"] == "Active" for h in ("h1", "h3")), 60, "it is back", 0.1)
    wait_until(lambda: fabric.show()["manager"]["nodes"] == 8, 60, "the manager's sweep", 0.1)
    wait_until(lambda: fabric.show()["manager"]["up"], 60, "the subnet up", 0.1)
    fabric.pair(("h3", *common), ("h1", *common, "h3"))
    kill_shard(fabric, 0)
    fabric.command("down")
    assert not list((fabric.folder / "run").glob("*/pid"))


def test_a_shard_dies_while_commands_ask_it(muslin_new_fabric):
    """They do without it, as without one that is not up."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2")
    first = fabric.daemon_pid
    os.kill(first, signal.SIGSTOP)
    words = ["show"], ["show", "h3"], ["metrics", "h3"], ["show", "--topology"]
    asks = [fabric.start_muslin(*w) for w in words]
    all_links = fabric.start_muslin("fault", "add", "all", "delay", "time=1us", "prob=1%")

    def connected(p):
        for fd in pathlib.Path(f"/proc/{p.popen.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has closed the descriptor meanwhile
                if os.readlink(fd).startswith("socket:"):
                    return True
        return False

    for p in *asks, all_links:
        wait_until(lambda p=p: connected(p), 10, "its connection", 0.05)
    os.kill(first, signal.SIGKILL)
    for p in asks:
        out = p.wait(20)
        assert "h3" in out and "h1" not in out, out
    assert len(re.findall(r"^\d+$", all_links.wait(20), re.M)) == 1
    assert len(json.loads(fabric.command("fault", "list", "--json"))) == 1


def test_a_shard_dies_during_up(muslin_new_fabric):
    """The command says so at once; it waited for the ports of that shard, and named them alone."""
    fabric = muslin_new_fabric
    up = fabric.start_muslin("up", "--shards", "2", "fattree k=16 levels=3")
    pid = fabric.folder / "run" / f"{fabric.name}.1" / "pid"
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 30, "the shard", 0.001)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    with pytest.raises(ProcessFailed, match=rf"{fabric.name}\.1"):
        up.wait(20)


def test_down_of_a_shard_that_does_not_end(muslin_new_fabric):
    """It is killed; the others, and the first one with the subnet manager, end before."""
    fabric = muslin_new_fabric.up("leafs 3 spines 2 hosts 1", "--shards", "3")
    run = fabric.folder / "run"
    stopped = int(next(run.glob(f"{fabric.name}.2/pid")).read_text())
    os.kill(stopped, signal.SIGSTOP)
    proc = pathlib.Path("/proc")
    first = proc / str(fabric.daemon_pid)
    down = fabric.start_muslin("down")
    wait_until(lambda: not first.exists(), 9, "the end of the first daemon", 0.1)
    assert (proc / str(stopped)).exists()
    with pytest.raises(ProcessFailed, match=rf"fabric {fabric.name}\.2 did not exit"):
        down.wait(20)
    assert not list(run.glob("*/pid"))


def test_the_first_shard_ends_alone(muslin_new_fabric):
    """By a signal: commands still reach the other one, as if the first one had died."""
    fabric = muslin_new_fabric.up(SHARDS, "--shards", "2")
    os.kill(fabric.daemon_pid, signal.SIGTERM)
    wait_until(lambda: fabric.port("leaf2", 3)["state"] == "Down", 20, "its links down", 0.1)
    do_without(fabric, fabric.name, ["h1", "h2", "leaf1", "spine1"])
    start_shard(fabric, 0)
    wait_until(lambda: all(fabric.port(h)["state"] == "Active" for h in ("h1", "h3")), 60, "it is back", 0.1)
    fabric.command("down")
    assert not list((fabric.folder / "run").glob("*/pid"))


def test_refused_peers_of_all_daemons_count(muslin_new_fabric):
    """The second of three daemons refuses one."""
    fabric = muslin_new_fabric.up("leafs 3 spines 2 hosts 1", "--shards", "3")
    assert not any(fabric.show()["trunks_refused"].values())
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(next((fabric.folder / "run").glob(f"{fabric.name}.1/trunk.sock"))))
        s.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(200))
        while s.recv(1000):
            pass
    refused = fabric.show()["trunks_refused"]
    assert refused["refused_hello"] == sum(refused.values()) == 1, refused
