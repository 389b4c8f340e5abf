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
TOPOLOGY = SUBNET / "subnet.topo"
KEY = "what the first command writes there\n"


class Pod:
    """A container of subnet/ that is a shard: its command, and how programs are run beside it."""

    def __init__(self, name, command, env=(), init=(), app=None):
        self.name, self.command, self.env, self.init, self.app = name, command, dict(env), list(init), app


def subnet_compose():
    """The pods, that with the switch first, and the programs to run in them: pod, whether in its app, words."""
    text = yaml.safe_load((SUBNET / "compose.yaml").read_text())
    assert text["configs"]["topology"]["file"] == f"./{TOPOLOGY.name}" and text["secrets"]["key"]["file"] == "./key"
    pods = []
    for name, s in text["services"].items():
        assert s["hostname"] == name and s["secrets"] == ["key"]
        assert s["configs"] == [{"source": "topology", "target": "/etc/muslin/subnet.topo"}]
        pods.append(Pod(name, [w.replace("$$", "$") for w in s["command"]]))
    runs = [(w[4], False, w[5:]) for w in comments(SUBNET / "compose.yaml") if w[:3] == ["docker", "compose", "exec"]]
    return pods, runs


def pod_env(container, pod):
    env = container.get("env", [])
    assert all("value" in e or e["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}} for e in env)
    return {e["name"]: e.get("value", pod) for e in env}


def subnet_kubernetes():
    """Both objects of the kustomization are in each daemon's working directory."""
    service, _, *sets = yaml.safe_load_all((SUBNET / "kubernetes.yaml").read_text())
    kustomization = yaml.safe_load((SUBNET / "kustomization.yaml").read_text())
    (topology,), (secret,) = kustomization["configMapGenerator"], kustomization["secretGenerator"]
    assert topology["files"] == [TOPOLOGY.name] and secret["files"] == ["key"]
    pods = []
    for s in sets:
        pod = s["spec"]["template"]["spec"]
        volumes = {v["name"]: v for v in pod["volumes"]}
        containers = {c["name"]: c for c in pod["containers"]}
        muslin, app = containers.pop("muslin"), containers.pop("app", None)
        assert not containers and s["spec"]["selector"]["matchLabels"] == s["spec"]["template"]["metadata"]["labels"]
        mounts = {m["name"]: m["mountPath"] for m in muslin["volumeMounts"]}
        assert mounts["subnet"] == muslin["workingDir"]
        assert volumes["subnet"]["projected"]["sources"] == [
            {"configMap": {"name": topology["name"]}},
            {"secret": {"name": secret["name"]}},
        ]
        init = pod.get("initContainers", [])
        for c in [*init, *([app] if app else [])]:  # all that share the volume of the sockets
            assert {m["name"]: m["mountPath"] for m in c["volumeMounts"]} == {"muslin": mounts["muslin"]}
        for i in range(s["spec"]["replicas"]):
            name = f"{s['metadata']['name']}-{i}"
            env = pod_env(muslin, name)
            command = [re.sub(r"\$\((\w+)\)", lambda m, e=env: e[m[1]], w) for w in muslin["command"]]
            pods.append(Pod(name, command, env, [c["command"] for c in init], app and pod_env(app, name)))
    assert service["spec"]["selector"] == sets[0]["spec"]["template"]["metadata"]["labels"]
    runs = []
    for w in comments(SUBNET / "kubernetes.yaml"):
        if w[:2] == ["kubectl", "exec"]:
            assert w[3:6] == ["-c", "app", "--"]
            runs.append((w[2], True, w[6:]))
    return pods, runs


def test_shards_of_the_subnet():
    """The topology has a shard for each container of either file, and the switch's listens at the service's port."""
    service = next(yaml.safe_load_all((SUBNET / "kubernetes.yaml").read_text()))
    words = [line.split() for line in TOPOLOGY.read_text().splitlines() if line.startswith("shard ")]
    listen = f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert words[0][:4] == ["shard", "spine", "listen", listen]
    for pods, _ in subnet_compose(), subnet_kubernetes():
        assert [w[1] for w in words] == ["spine", *(p.name for p in pods[1:])]


class Subnet:
    """The pods in the namespaces of network(), each with a folder for its volumes."""

    def __init__(self, fabric, pods):
        self.fabric, self.pods = fabric, {p.name: p for p in pods}
        self.hosts = [p.name for p in pods[1:]]
        self.spine = pods[0].name
        self.pids = network(fabric, {self.hosts[0]: "spine", self.hosts[1]: None})
        self.containers, self.daemons = {}, {}
        self.secret = fabric.folder / "secret"
        self.secret.write_text(KEY)
        self.secret.chmod(0o644)
        for p, pid in zip(pods, (self.pids[0], *self.pids), strict=True):
            self.start(p, pid)

    def write(self, path, text):
        path.write_text(text)
        path.chmod(0o600)
        if self.fabric.user is not None:
            shutil.chown(path, self.fabric.user)

    def start(self, pod, pid, name=None):
        c = Container(self.fabric, name or pod.name, pid)
        c.env[c.env.index(f"HOSTNAME={name or pod.name}")] = f"HOSTNAME={pod.name}"
        self.containers[pod.name] = c
        self.write(c.folder / TOPOLOGY.name, TOPOLOGY.read_text())
        if pod.command[0] != "sh":  # else its command copies the key
            self.write(c.folder / "key", KEY)
        shared = c.folder / "shared"
        shared.mkdir()
        if self.fabric.user is not None:
            shutil.chown(shared, self.fabric.user)
        c.app_env = [f"{k}={self.place(c, v)}" for k, v in (pod.app or {}).items()]
        c.env += [f"{k}={self.place(c, v)}" for k, v in pod.env.items()]
        for command in pod.init:
            c.start([self.place(c, w) for w in command]).wait(20)
        self.daemons[pod.name] = c.start([self.place(c, w) for w in pod.command])

    def place(self, c, text):
        """The paths within the containers are those of the pod's folder, or of the build."""
        mounts = {
            "/usr/local/lib/muslin": self.fabric.muslin.parents[1] / "lib/muslin",
            "/run/secrets/key": self.secret,
            "/etc/muslin": c.folder,
            "/run/muslin": c.folder / "shared",
            "/tmp": c.folder,
        }
        return re.sub("|".join(mounts), lambda m: str(mounts[m[0]]), text)

    def program(self, name, app, words):
        c = self.containers[name]
        env = ["/usr/bin/env", *c.app_env] if app else []
        return c.start([*env, *(self.place(c, w) for w in words)])

    def active(self):
        for name in self.hosts:
            c = self.containers[name]
            wait_until(
                lambda c=c: " Active " in c.start(["muslin", "show"]).wait(10, status=None), 60, f"{name} Active", 0.1
            )

    def move_spine(self):
        """The pod ends, and comes back at another address, which its name has then."""
        c = self.containers[self.spine]
        c.start(["muslin", "down"]).wait(20)
        self.daemons[self.spine].wait(20, status=None)
        for name in self.hosts:
            there = self.containers[name]
            wait_until(lambda c=there: " Down " in c.start(["muslin", "show"]).wait(10), 40, f"{name} Down", 0.1)
        hosts = self.fabric.folder / "hosts"
        hosts.write_text(re.sub(r"(?m) spine$", "", hosts.read_text()) + "10.9.0.2 spine\n")
        self.start(self.pods[self.spine], self.pids[1], "moved")

    def down(self):
        for name, c in self.containers.items():
            c.start(["muslin", "down"]).wait(20)
            self.daemons[name].wait(20, status=None)


@pytest.mark.parametrize("parse", [subnet_compose, subnet_kubernetes])
def test_one_subnet_of_containers(new_fabric, parse):
    """
    The only port of a container's host is a trunk to the container with the switch, in the first one's namespace, and
    then in the second one's.

        ib-0 = TCP = spine (switch, subnet manager) --- veth --- ib-1
    """
    pods, runs = parse()
    assert len(pods) == 3 and len(runs) == 2
    subnet = Subnet(new_fabric, pods)
    (where, *server), (whence, *client) = runs
    assert [where, whence] == subnet.hosts

    def connect():
        subnet.active()
        subnet.program(where, *server).wait(20)  # leaves the server running

        def attempt():
            out = subnet.program(whence, *client).wait(60, status=None)
            return out if "ping data" in out else None

        assert wait_until(attempt, 20, "a connection", 0.2).count("ping data") == 10

    connect()
    subnet.move_spine()
    connect()
    subnet.down()


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
