# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
ci/container, for a fabric on several machines, as far as possible without an engine (with one: ci/container-check):
the commands of compose.yaml and kubernetes.yaml, word for word, each container's in a network namespace with an eth0
of its own, without capabilities.

    first: its command of the file, eth0 10.9.0.1 --- veth --- second: its command, eth0 10.9.0.2
"""

import os
import pathlib
import re
import shlex
import shutil
import signal

import pytest
import yaml
from muslin import wait_until
from test_roce_namespaces import NETWORK

FILES = pathlib.Path(__file__).parents[2] / "ci" / "container"


def comments(path):
    """The commands in the comment at the top, each as a list of words."""
    text = []
    for line in path.read_text().splitlines()[1:]:
        if not line.startswith("#"):
            break
        text.append(line.removeprefix("#   ") if line.startswith("#   ") else "")
    return [shlex.split(c.rstrip("& ")) for c in "\n".join(text).replace("\\\n", " ").splitlines() if c.strip()]


def compose():
    """Containers by name, with the command of each, and the programs to run in them."""
    path = FILES / "compose.yaml"
    services = yaml.safe_load(path.read_text())["services"]
    hosts = {s["hostname"]: [w.replace("$$", "$") for w in s["command"]] for s in services.values()}
    runs = []
    for words in comments(path):
        assert words[:2] == ["docker", "compose"]
        if words[2] == "exec":
            assert words[3] == "-T"
            runs.append((words[4], words[5:]))
    return hosts, dict.fromkeys(hosts), runs


def kubernetes():
    path = FILES / "kubernetes.yaml"
    service, pods = yaml.safe_load_all(path.read_text())
    spec = pods["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == spec["selector"]["matchLabels"] == labels
    assert service["metadata"]["name"] == spec["serviceName"] and service["spec"]["ports"][0]["port"] == 4791
    (container,) = spec["template"]["spec"]["containers"]
    names = [f"{pods['metadata']['name']}-{i}" for i in range(spec["replicas"])]
    runs = [(w[2], w[4:]) for w in comments(path) if w[1] == "exec"]
    return {n: container["command"] for n in names}, {n: f"{n}.{spec['serviceName']}" for n in names}, runs


class Container:
    """Replaces a runtime's container: a namespace, a directory, a name."""

    def __init__(self, fabric, name, pid):
        self.fabric = fabric
        self.enter = ["nsenter", "--preserve-credentials", "-U", "-n", "-m", "-t", pid, "--"]
        self.enter += ["setpriv", "--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all", "--"]
        self.folder = fabric.folder / name
        self.folder.mkdir(mode=0o700)
        if fabric.user is not None:
            shutil.chown(self.folder, fabric.user)
        rundir, path = self.folder / "run", f"{fabric.muslin.parent}:{os.environ['PATH']}"
        self.env = ["/usr/bin/env", "-u", "MUSLIN_NAME", f"MUSLIN_RUNDIR={rundir}", f"HOSTNAME={name}", f"PATH={path}"]

    def start(self, argv):
        return self.fabric._start([*self.enter, *self.env, "sh", "-c", f'cd {self.folder}; exec "$@"', "sh", *argv])


def network(fabric, aliases):
    """Two namespaces in which the names @aliases resolve; returns their processes."""
    if not all(shutil.which(t) for t in ("unshare", "nsenter", "setpriv", "ip")):
        pytest.skip("needs unshare, nsenter, setpriv and ip")
    probe = fabric._start(["unshare", "-Urnm", "true"])
    probe.popen.wait(10)
    if probe.popen.returncode:
        pytest.skip("user namespaces are not permitted here")
    hosts = fabric.folder / "hosts"
    lines = [f"10.9.0.{i} {name} {alias or ''}\n" for i, (name, alias) in enumerate(aliases.items(), 1)]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(lines))
    hosts.chmod(0o644)
    script = f"mount --bind {hosts} /etc/hosts\n" + NETWORK.replace("v0", "eth0")
    net = fabric._start(["unshare", "-Urnm", "sh", "-c", script])
    return wait_until(lambda: re.search(r"namespaces (\d+) (\d+)", net.output), 10, "the namespaces").groups()


@pytest.mark.parametrize("parse", [compose, kubernetes])
def test_commands_work(new_fabric, parse):
    hosts, aliases, runs = parse()
    assert len(hosts) == 2 and len(runs) == 2
    pids = network(new_fabric, aliases)
    containers = {name: Container(new_fabric, name, pid) for name, pid in zip(hosts, pids, strict=True)}
    daemons = [containers[name].start(command) for name, command in hosts.items()]
    for name, c in containers.items():
        wait_until(lambda c=c, n=name: n in c.start(["muslin", "show"]).wait(10, status=None), 20, "the daemon")
    (where, server), (whence, client) = runs
    containers[where].start(server).wait(20)  # leaves the server running

    def attempt():
        out = containers[whence].start(client).wait(60, status=None)
        return out if "ping data" in out else None

    assert wait_until(attempt, 20, "a connection", 0.2).count("ping data") == 10
    log = containers[where].folder / "rping.log"
    wait_until(lambda: "server DISCONNECT EVENT" in log.read_text(), 20, "the server's end")
    for c in containers.values():
        c.start(["muslin", "down"]).wait(20)
    for d in daemons:
        d.wait(20, status=None)


SUBNET = FILES / "subnet"


def subnet_compose():
    """Name, environment and command of each container, that with the switch first, and the programs to run in them."""
    services = yaml.safe_load((SUBNET / "compose.yaml").read_text())["services"]
    containers = [(n, s["environment"], [w.replace("$$", "$") for w in s["command"]]) for n, s in services.items()]
    assert all(s["hostname"] == n and s["secrets"] == ["key"] for n, s in services.items())
    runs = [(w[4], w[5:]) for w in comments(SUBNET / "compose.yaml") if w[:3] == ["docker", "compose", "exec"]]
    return containers, runs


def subnet_kubernetes():
    service, _, *sets = yaml.safe_load_all((SUBNET / "kubernetes.yaml").read_text())
    (secret,) = yaml.safe_load((SUBNET / "kustomization.yaml").read_text())["secretGenerator"]
    containers = []
    for s in sets:
        pod = s["spec"]["template"]["spec"]
        (c,), (volume,) = pod["containers"], pod["volumes"]
        env = {e["name"]: e["value"] for e in c["env"]}
        assert volume["secret"]["secretName"] == secret["name"] and c["volumeMounts"][0]["name"] == volume["name"]
        assert env["KEY"] == f"{c['volumeMounts'][0]['mountPath']}/{secret['files'][0]}"
        assert s["spec"]["selector"]["matchLabels"] == s["spec"]["template"]["metadata"]["labels"]
        names = [f"{s['metadata']['name']}-{i}" for i in range(s["spec"]["replicas"])]
        containers += [(n, env, c["command"]) for n in names]
    assert service["spec"]["selector"] == sets[0]["spec"]["template"]["metadata"]["labels"]
    assert int(containers[0][1]["HOSTS"]) == len(containers) - 1
    runs = [(w[2], w[4:]) for w in comments(SUBNET / "kubernetes.yaml") if w[1] == "exec"]
    return containers, runs


@pytest.mark.parametrize("parse", [subnet_compose, subnet_kubernetes])
def test_one_subnet_of_containers(new_fabric, parse):
    """
    The only port of a container's host is a trunk to the container with the switch, in the first one's namespace.

        alice, ib-0 = TCP = spine (switch, subnet manager) --- veth --- bob, ib-1
    """
    told, runs = parse()
    assert len(told) == 3 and len(runs) == 2
    key = new_fabric.folder / "key"
    key.write_text("what the first command writes there\n")
    key.chmod(0o644)
    first, second = network(new_fabric, {told[1][0]: "spine", told[2][0]: None})
    containers, daemons = {}, []
    for (name, env, command), pid in zip(told, (first, first, second), strict=True):
        containers[name] = c = Container(new_fabric, name, pid)
        c.env += [f"{k}={v}" for k, v in {**env, "KEY": key}.items()]
        daemons.append(c.start(command))
    hosts = [n for n, *_ in told[1:]]
    for name in hosts:
        show = containers[name]
        wait_until(lambda c=show: " Active " in c.start(["muslin", "show"]).wait(10, status=None), 40, f"{name} Active")
    (where, server), (whence, client) = runs
    assert [where, whence] == hosts
    containers[where].start(server).wait(20)

    def attempt():
        out = containers[whence].start(client).wait(60, status=None)
        return out if "ping data" in out else None

    assert wait_until(attempt, 20, "a connection", 0.2).count("ping data") == 10
    for c in containers.values():
        c.start(["muslin", "down"]).wait(20)
    for d in daemons:
        d.wait(20, status=None)


def test_image_and_pods_agree_on_the_user():
    user = re.findall(r"^USER (\d+)$", (FILES / "Containerfile").read_text(), re.M)
    for path in FILES / "kubernetes.yaml", SUBNET / "kubernetes.yaml":
        for pods in yaml.safe_load_all(path.read_text()):
            if pods["kind"] == "StatefulSet":
                assert [str(pods["spec"]["template"]["spec"]["securityContext"]["runAsUser"])] == user


def test_orphans_of_a_container_leave_no_zombies(new_fabric):
    """Its first process is the daemon, as in compose.yaml: orphaned processes become the daemon's children."""
    script = 'sleep 600 & echo "orphan $!"; exec "$@"'
    daemon = new_fabric._start(["sh", "-c", script, "sh", new_fabric.muslin, "up", "--foreground"])
    wait_until(lambda: "h1" in new_fabric.start_muslin("show").wait(10, status=None), 20, "the daemon")
    orphan = int(re.search(r"orphan (\d+)", daemon.output)[1])
    children = pathlib.Path(f"/proc/{daemon.popen.pid}/task/{daemon.popen.pid}/children")
    assert children.read_text().split() == [str(orphan)]
    os.kill(orphan, signal.SIGTERM)
    wait_until(lambda: not children.read_text().split(), 10, "the orphan's end")
    assert "is in the foreground" in new_fabric.start_muslin("log").wait(10, status=1)
    new_fabric.start_muslin("down").wait(20)
    daemon.wait(20)
