# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Programs in containers with any image, on a fabric outside: files in the container, `muslin env`, `muslin cdi` and the
compose file of one InfiniBand fabric. Without an engine a container is namespaces (user, mount, PID, network) and a
root with only a program and the libraries that it needs, as in a distroless image.

    container rping -s: h1 --- the fabric's switches --- h2: container rping -c
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from muslin import wait_until

COMPOSE = pathlib.Path(__file__).parents[2] / "ci" / "container" / "infiniband.yaml"
OLDEST = (2, 28)  # of Debian 10 and RHEL 8
ROOTS = [r for r in os.environ.get("MUSLIN_ROOTS", "").split(":") if r]
ENTER = """set -e
root=$1 mounts=$2
shift 2
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while read -r from to; do mount --bind "$from" "$root$to"; done <"$mounts"
exec "$@"
"""
EXEC = """import json, os, sys
os.chroot(sys.argv[1])
os.chdir("/")
os.execve(sys.argv[3], sys.argv[3:], json.loads(sys.argv[2]))
"""
# Given by compose to a service whose command needs a shell: the machine's files, and the volume.
SERVICE = 'mount -t tmpfs run /run && mkdir /run/muslin && mount --bind "$1" /run/muslin && shift && exec "$@"'


def library(fabric):
    """The installed preload library."""
    return fabric.muslin.parents[1] / "lib/muslin/libmuslin-shim.so"


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def test_preload_needs_libc_alone(shared_fabric):
    shim = library(shared_fabric)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", shim))
    assert needed == ["libc.so.6"]
    versions = set(re.findall(r"Name: (\S+) ", readelf("-V", shim).split("version needs")[-1]))
    assert versions and all(re.fullmatch(r"GLIBC_[\d.]+", v) for v in versions), versions
    newest = max(tuple(map(int, v.removeprefix("GLIBC_").split("."))) for v in versions)
    assert newest <= OLDEST, f"needs glibc {newest}: {versions}"


def test_env_is_what_run_sets(shared_fabric):
    given = json.loads(shared_fabric.command("env", "--json", "h2"))
    inside = dict(line.split("=", 1) for line in shared_fabric.run("h2", "env").splitlines() if "=" in line)
    assert given == {k: inside[k] for k in given} and {"LD_PRELOAD", "MUSLIN_HOST", "MUSLIN_SOCKET"} <= given.keys()
    script = 'eval "$("$1" env h2)" && ibstat -p'
    out = shared_fabric._start(["sh", "-c", script, "sh", shared_fabric.muslin]).wait(20)
    assert out == shared_fabric.run("h2", "ibstat", "-p")
    assert "h99" in shared_fabric.command("env", "h99", status=1)
    assert "usage" in shared_fabric.command("env", status=2)


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="needs musl-gcc")
def test_musl_is_reported(shared_fabric, folder):
    source = folder / "hello.c"
    main = 'int main(void) { puts("hello"); return system("true"); }\n'
    source.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{main}")
    subprocess.run(["musl-gcc", "-o", folder / "hello", source], check=True)
    out = shared_fabric.run("h1", folder / "hello")
    assert "hello" in out and out.count("not glibc") == 1


def distroless(root, *programs):
    """A root with these programs, the libraries that they need, and the provider of the devices."""
    provider = next(iter(pathlib.Path("/").glob("usr/lib*/**/libibverbs/librxe-rdmav*.so")))
    words = []
    for file in (*map(shutil.which, programs), str(provider)):
        out = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
        words += [file, *re.findall(r"(/\S+) \(0x", out)]
    libc = next(w for w in words if w.endswith("/libc.so.6"))
    gcc = pathlib.Path(libc).with_name("libgcc_s.so.1")  # libc loads it for pthread_exit()
    for file in {*words, str(gcc), "/etc/libibverbs.d/rxe.driver"}:
        to = root / file.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir()
    return root


class Container:
    """A container with an image without a shell: @mounts: (source, target), @env a dictionary."""

    def __init__(self, fabric, root, mounts, env):
        self.fabric, self.root, self.env = fabric, root, json.dumps(env)
        self.mounts = fabric.folder / f"{env['MUSLIN_HOST']}.mounts"
        self.mounts.write_text("".join(f"{what} {where}\n" for what, where in mounts))
        for what, where in mounts:
            at = root / where.lstrip("/")
            at.parent.mkdir(parents=True, exist_ok=True)
            if os.path.isdir(what):
                at.mkdir(exist_ok=True)
            else:
                at.touch()

    def start(self, program, *args):
        inside = ["sh", "-c", ENTER, "sh", self.root, self.mounts, sys.executable, "-c", EXEC, self.root, self.env]
        return self.fabric._start(["unshare", "-Urmnpf", "--kill-child", *inside, shutil.which(program), *args])


def need_namespaces(fabric):
    probe = fabric._start(["unshare", "-Urmnpf", "true"])
    probe.popen.wait(10)
    if probe.popen.returncode:
        pytest.skip("user namespaces are not permitted here")


def ping(start_server, start_client):
    server = start_server()

    def attempt():
        out = start_client().wait(30, status=None)
        return out if "ping data" in out else None

    out = wait_until(attempt, 30, "a connection", 0.2)
    assert [f"rdma-ping-{i}" in out for i in range(10)] == [True] * 10
    assert "server DISCONNECT EVENT" in server.wait(30, status=None)


def test_cdi_devices_work_in_any_image(new_fabric, folder):
    need_namespaces(new_fabric)
    new_fabric.up("leafs 2 spines 2 hosts 1")
    file = new_fabric.folder / "muslin.json"
    new_fabric.command("cdi", "-w", file)
    spec = json.loads(file.read_text())
    assert spec == json.loads(new_fabric.command("cdi"))
    assert spec["kind"] == "muslin.dev/hca" and spec["cdiVersion"] == "0.3.0"
    assert [d["name"] for d in spec["devices"]] == [f"{new_fabric.name}.h1", f"{new_fabric.name}.h2"]
    programs = "rping", "ibv_devinfo"
    containers = [cdi_container(new_fabric, h, distroless(folder / h, *programs)) for h in ("h1", "h2")]
    out = containers[0].start("ibv_devinfo").wait(20)
    assert "PORT_ACTIVE" in out
    a, b, ip = *containers, new_fabric.ip("h1")
    words = "rping", "-C", "10", "-a", ip
    ping(lambda: a.start(*words, "-s"), lambda: b.start(*words, "-c", "-v"))


def test_cdi_leaves_nothing_that_it_cannot_write(shared_fabric):
    (shared_fabric.folder / "cdi.json").mkdir()
    shared_fabric.command("cdi", "-w", shared_fabric.folder / "cdi.json", status=1)
    assert not list(shared_fabric.folder.glob("*.part"))


def test_cdi_has_hosts_with_an_adapter(new_fabric):
    """A host with a network card alone has no device for a container."""
    new_fabric.up("ethernet sw1\nhost n1 nic sw1\nhost n2 nic sw1 roce\nhost r1 ether sw1 ip 10.1.0.1/24\n")
    names = [d["name"] for d in json.loads(new_fabric.command("cdi"))["devices"]]
    assert names == [f"{new_fabric.name}.{host}" for host in ("n2", "r1")]
    assert [n["name"] for n in new_fabric.show()["nodes"] if n.get("adapter") is False] == ["n1"]


def two_hosts(*names):
    """A dump of two hosts with these descriptions."""
    links = "".join(f'[{i}] "H-{i}"[1] # "x" lid {i} 4xHDR\n' for i in (1, 2))
    return f'Switch 4 "S-9"\n{links}' + "".join(f'Ca 1 "H-{i}" # "{n}"\n' for i, n in enumerate(names, 1))


@pytest.mark.parametrize(
    "name, allowed", [("node1 mlx5_0", True), ("1u-node", True), ("(odd)", False), ("x_", False), ("a+b", False)]
)
def test_cdi_names_of_a_dump(new_fabric, name, allowed):
    """A host whose name is not one of a device is left out with a message; the others have theirs."""
    new_fabric.up(two_hosts(name, "other"))
    file = new_fabric.folder / "muslin.json"
    out = new_fabric.command("cdi", "-w", file)
    spec, device = json.loads(file.read_text()), f"{new_fabric.name}.{name.split()[0]}"
    assert spec["cdiVersion"] == "0.3.0"
    assert [d["name"] for d in spec["devices"]] == [device] * allowed + [f"{new_fabric.name}.other"]
    assert out == "" if allowed else out.startswith(f'muslin: host "{name.split()[0]}" is left out: a device')


def test_cdi_of_names_with_a_digit(new_fabric):
    """Needs a newer version of the interface: in the default fabric the names of the devices are those of the hosts."""
    new_fabric.env["MUSLIN_NAME"] = new_fabric.name = "default"
    new_fabric.up(two_hosts("1u", "other"))
    spec = json.loads(new_fabric.command("cdi"))
    assert spec["cdiVersion"] == "0.5.0" and [d["name"] for d in spec["devices"]] == ["1u", "other"]


def cdi_container(fabric, host, root):
    """A container with the device of @host, as an engine makes it."""
    spec = json.loads(fabric.command("cdi"))
    (device,) = (d for d in spec["devices"] if d["name"] == f"{fabric.name}.{host}")
    edits = [spec["containerEdits"], device["containerEdits"]]
    mounts = [(m["hostPath"], m["containerPath"]) for e in edits for m in e.get("mounts", [])]
    assert not [what for what, _ in mounts if "control" in what]  # a container does not own the fabric
    return Container(fabric, root, mounts, dict(e.split("=", 1) for x in edits for e in x["env"]))


@pytest.mark.skipif(not ROOTS, reason="ci/images makes roots of distributions, and runs this test")
@pytest.mark.parametrize("root", ROOTS or [""], ids=os.path.basename)
def test_devices_in_roots_of_distributions(new_fabric, folder, root):
    """Programs of the root, of another release than this machine's, with each other and with those of this machine."""
    need_namespaces(new_fabric)
    new_fabric.up("leafs 1 hosts 3")
    a, b = (cdi_container(new_fabric, host, pathlib.Path(root)) for host in ("h1", "h2"))
    own = cdi_container(new_fabric, "h3", distroless(folder / "own", "rping"))
    assert "PORT_ACTIVE" in a.start("ibv_devinfo").wait(30)
    words = "rping", "-C", "10", "-a", new_fabric.ip("h1")
    for client in (b, own):
        ping(lambda: a.start(*words, "-s"), lambda client=client: client.start(*words, "-c", "-v"))
    words = "ib_write_bw", "-R", "-n", "200", "-F"
    server = a.start(*words)
    wait_until(lambda: "BW average" in b.start(*words, new_fabric.ip("h1")).wait(60, status=None), 60, "bandwidth", 0.2)
    server.wait(30)


def test_compose_shares_one_fabric(new_fabric, folder):
    """The commands of the file and of the comment at its top, word for word except for the library's path."""
    need_namespaces(new_fabric)
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    volume = new_fabric.folder / "volume"
    volume.mkdir(mode=0o777)
    volume.chmod(0o777)
    assert services["fabric"]["volumes"] == ["muslin:/run/muslin"]
    there = str(library(new_fabric).parent)
    command = [w.replace("/usr/local/lib/muslin", there) for w in services["fabric"]["command"]]
    env = ["env", "-u", "MUSLIN_NAME", *(f"{k}={v}" for k, v in services["fabric"]["environment"].items())]
    path = f"PATH={new_fabric.muslin.parent}:{os.environ['PATH']}"
    alone = ["unshare", "-Urmpf", "--kill-child", "sh", "-c", SERVICE, "sh", volume]
    daemon = new_fabric._start([*alone, *env, path, *command])
    wait_until((volume / "fabrics/default/host.sock").exists, 20, "the daemon")
    containers = {}
    for name in ("alice", "bob"):
        assert services[name]["volumes"] == ["muslin:/run/muslin:ro"]
        root = distroless(folder / name, "rping")
        containers[name] = Container(new_fabric, root, [(volume, "/run/muslin")], services[name]["environment"])
    runs = [shlex.split(line) for line in re.findall(r"^#   (docker compose .* exec .*)$", COMPOSE.read_text(), re.M)]
    words = [w[w.index("exec") + 1 :] for w in runs]
    words = [[x for x in w if x not in ("-T", "-d", "&")] for w in words]
    server, client = ((containers[where], argv) for where, *argv in words)
    ping(lambda: server[0].start(*server[1]), lambda: client[0].start(*client[1]))
    daemon.kill()
