# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Communication libraries and their requirements of a device: UCX, libfabric, rsockets, and single calls of theirs.

    h1 -- leaf1 ... leaf2 -- h5        r1 -- sw1 -- sw2 -- r2        w1, w2: iWARP on loopback addresses
"""

import os
import re
import subprocess
import sys

import pytest
import ucx
from muslin import free_port
from test_kills import is_sanitized

SWITCHES = """
ethernet sw1 mtu 4200
ethernet sw2 mtu 4200
ethernet sw1 sw2
host r1 ether sw1 ip 10.1.0.1/24
host r2 ether sw2 ip 10.1.0.2/24
"""
ETHERNET = SWITCHES + "host w1 iwarp 127.83.10.1\nhost w2 iwarp 127.83.10.2\n"
DEVICES = {"h1": "muslin0", "r1": "rxe0"}
NOT_IWARP = pytest.mark.parametrize("ends", ["ib", "roce"], indirect=True)
RSOCKETS = ["env", f"LD_PRELOAD=/usr/lib/{os.uname().machine}-linux-gnu/rsocket/librspreload.so"]


@pytest.fixture(scope="module")
def compiled():
    """compiled(PATH, "-static"): the path, to which an empty program or library was compiled with these options."""

    def run(path, *options, source="int main(void) { return 0; }"):
        subprocess.run(["gcc", *options, "-x", "c", "-o", path, "-"], input=source, text=True, check=True)
        path.chmod(0o755)
        return path

    return run


@NOT_IWARP
def test_no_provider_of_an_adapter_maker_is_promised(ends):
    """Programs that find Mellanox' vendor ID use mlx5's own calls (perftest from 26.04 on)."""
    fabric, host, *_ = ends
    assert re.search(r"vendor_id:\s+0xffffff\s+vendor_part_id:\s+0\s", fabric.run(host, "ibv_devinfo", "-v"))


def test_address_vectors_of_ethernet(ethernet, program):
    """DLIDs are ignored, flow labels have 20 bits: UCX sets 0xc000 and ~0."""
    assert "END" in ethernet.run("r1", program("address_vector"))


@ucx.HAS_VERBS
@NOT_IWARP
@pytest.mark.parametrize(
    "test", ["rc_verbs am_lat bcopy", "rc_verbs put_bw zcopy", "rc_verbs get zcopy", "ud_verbs am_bw bcopy"]
)
def test_ucx_transports(ends, test):
    """If built with MPI, it does not use that when its input is a terminal."""
    fabric, server, client, ip = ends
    device = DEVICES[server]
    transport, what, layout = test.split()
    command = f"UCX_UD_VERBS_ETH_DGID_CHECK=n exec ucx_perftest -p {free_port()} -d {device}:1 -x {transport} -t {what}"
    command += f" -D {layout} -n 200 -w 10 -s 1024"
    terminal = ("env", "SHELL=/bin/sh", "script", "-qec")
    _, out = fabric.pair(*((h, *terminal, f"{command} {to}", "/dev/null") for h, to in ((server, ""), (client, ip))))
    assert re.search(r"^Final:\s+200\s", out, re.M), out


@ucx.HAS_VERBS
@NOT_IWARP
@pytest.mark.parametrize("transport", ["rc", "ud"])
@pytest.mark.parametrize("test", ["tag_lat", "tag_bw", "ucp_put_bw"])
def test_ucx_protocols(ends, transport, test):
    """UCX connects them by datagrams of its own, of which it checks on RoCE what rxe's completions do not have."""
    fabric, server, client, ip = ends
    device = DEVICES[server]
    variables = [f"UCX_TLS={transport}", f"UCX_NET_DEVICES={device}:1", "UCX_UD_VERBS_ETH_DGID_CHECK=n"]
    command = f"{' '.join(variables)} exec ucx_perftest -p {free_port()} -t {test} -n 100 -w 10 -s 1024"
    terminal = ("env", "SHELL=/bin/sh", "script", "-qec")
    before = fabric.port(client)["counters"]["port_xmit_data"]
    _, out = fabric.pair(*((h, *terminal, f"{command} {to}", "/dev/null") for h, to in ((server, ""), (client, ip))))
    assert re.search(r"^Final:\s+100\s", out, re.M), out
    assert (fabric.port(client)["counters"]["port_xmit_data"] - before) * 4 > 100 * 1024


@ucx.HAS_VERBS
def test_ucx_says_why_it_has_no_iwarp(ethernet):
    """It names its transports then; its rc and ud are of InfiniBand and RoCE."""
    variables = ["env", "UCX_TLS=rc", "UCX_NET_DEVICES=siw0:1"]
    out = ethernet.run("w1", *variables, "ucx_info", "-e", "-u", "t", status=None)
    assert "no usable transports" in out, out
    assert "network device 'siw0:1' is not available" in out and "transport 'rc' is not available" in out, out


def test_extended_attributes(shared_fabric):
    """`ls -l` reads them; the files have none, as in sysfs."""
    assert "No such file" not in shared_fabric.run("h1", "ls", "-l", "/sys/class/infiniband/", "/dev/infiniband/")


RESOLVE = """
import socket, sys
name, ip = sys.argv[1:]
assert socket.gethostbyname(name) == ip
assert socket.gethostbyname_ex(name) == (name, [], [ip])
assert socket.gethostbyaddr(ip) == (name, [], [ip])
assert socket.getnameinfo((ip, 80), socket.NI_NUMERICSERV) == (name, "80")
assert socket.getnameinfo((ip, 80), socket.NI_NUMERICHOST)[0] == ip
print("END")
"""


def test_names_of_hosts(shared_fabric):
    """By each call of the resolver; `getent hosts` uses gethostbyname2() and gethostbyaddr()."""
    ip = shared_fabric.ip("h5")
    assert "END" in shared_fabric.run("h1", sys.executable, "-c", RESOLVE, "h5", ip)
    assert re.search(r"\bh5$", shared_fabric.run("h1", "getent", "hosts", "h5").strip())
    assert shared_fabric.run("h1", "getent", "hosts", ip).split() == [ip, "h5"]
    assert shared_fabric.run("h1", "getent", "hosts", "localhost").split()[1] == "localhost"


def test_lists_of_datagrams(shared_fabric, program):
    assert "END" in shared_fabric.run("h1", program("datagram_lists"), shared_fabric.ip("h1"))


def test_the_users_preloads_stay(shared_fabric, folder, compiled):
    """They precede muslin's library, also in a `muslin run` within another one."""
    lib = compiled(folder / "mine.so", "-shared", source="int mine;")
    muslin = str(shared_fabric.muslin)
    inner = [muslin, "run", "--name", shared_fabric.name, "h5", "--", "env"]
    out = shared_fabric.run("h1", "env", f"LD_PRELOAD={lib}", muslin, "run", "h2", "--", *inner)
    first, *others = re.search(r"^LD_PRELOAD=(.*)$", out, re.M)[1].split(":")
    assert first == str(lib) and len(others) == 1 and others[0].endswith("libmuslin-shim.so")


def test_rsockets_by_preload(ends, program):
    fabric, server, client, ip = ends
    run = [*RSOCKETS, fabric.muslin, "run"]
    port = free_port()
    one = fabric.start(server, *run, server, "--", program("echo"), "server", ip, port)
    one.expect("listening")
    assert "END" in fabric.run(client, *run, client, "--", program("echo"), "client", ip, port, timeout=30)
    one.wait(20)


def test_what_cannot_be_preloaded_is_reported(shared_fabric, folder, compiled):
    out = shared_fabric.run("h1", compiled(folder / "fixed", "-static"))
    assert "is statically linked" in out
    plain = compiled(folder / "plain")
    assert "warning" not in shared_fabric.run("h1", plain)


ENV = {
    "-i": True,
    "-": True,
    "--ignore-environment": True,
    "-vi": True,
    "-C / -i": True,
    "-u LD_PRELOAD": True,
    "-uLD_PRELOAD": True,
    "--unset=LD_PRELOAD": True,
    "-u HOME": False,
    "-u i": False,
    "-ui": False,
    "-C /": False,
    "X=1": False,
}


@pytest.mark.parametrize("options", ENV)
def test_env_without_the_preload_is_reported(shared_fabric, options):
    """By its options alone: those of the program after them are not env's."""
    out = shared_fabric.run("h1", "env", *options.split(), "/bin/echo", "-i", "-u", "LD_PRELOAD")
    assert ("warning: env removes LD_PRELOAD" in out) == ENV[options], out


@pytest.mark.parametrize("name", ["sudo", "su", "doas", "pkexec", "runuser"])
def test_programs_that_clear_the_environment_are_reported(shared_fabric, folder, compiled, name):
    """By their names: these are empty programs."""
    assert f"{name} clears the environment" in shared_fabric.run("h1", compiled(folder / name))


@pytest.mark.parametrize("mode", [0o4755, 0o2755], ids=["user", "group"])
def test_programs_of_another_user_are_reported(shared_fabric, folder, compiled, mode):
    if os.getuid():
        pytest.skip("only root can make a program of another user")
    path = compiled(folder / "set-id")
    os.chown(path, 1, 1)
    path.chmod(mode)
    assert "has a set-user-ID or set-group-ID bit" in shared_fabric.run("h1", path)
    path.chmod(0o755)
    assert "warning" not in shared_fabric.run("h1", path)


OPEN = """
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    char *buf = malloc(4096);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buf, 4096, 0) : NULL;

    if (!mr || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || ibv_close_device(context))
        return 3;
    ibv_free_device_list(list);
    free(buf);
    return argc > 1 ? buf[0] : 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_programs_with_sanitizers(shared_fabric, folder, compiled, sanitizer):
    """gcc's shared ones, without any option: they find nothing, and AddressSanitizer finds a wrong access."""
    if is_sanitized(shared_fabric):
        pytest.skip("the preload library has a sanitizer of its own")
    source = folder / "open.c"
    source.write_text(OPEN)
    program = folder / sanitizer
    subprocess.run(["gcc", f"-fsanitize={sanitizer}", "-o", program, source, "-libverbs"], check=True)
    program.chmod(0o755)
    harness = [word for name in ("ASAN", "LSAN", "UBSAN") for word in ("-u", f"{name}_OPTIONS")]
    plain = ["env", *harness, shared_fabric.muslin, "run", "h2", "--", program]
    assert shared_fabric.run("h1", *plain) == ""
    if sanitizer == "address":
        assert "heap-use-after-free" in shared_fabric.run("h1", *plain, "wrong", status=1)


def test_a_loopback_address_attaches_no_device(ends, program):
    """libfabric probes for devices by binding to it."""
    fabric, host, *_ = ends
    assert "END" in fabric.run(host, program("bind_loopback"))


@pytest.mark.parametrize("provider, endpoint", [("verbs", "msg"), ("verbs;ofi_rxm", "rdm")])
def test_libfabric(ends, provider, endpoint):
    fabric, server, client, ip = ends
    args, port = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "50", "-S", "64"], free_port()
    before = fabric.port(client)["counters"]["port_xmit_packets"]
    _, out = fabric.pair((server, *args, "-B", port), (client, *args, "-P", port, ip))
    assert re.search(r"^64\s+50\s", out, re.M), out
    assert fabric.port(client)["counters"]["port_xmit_packets"] - before >= 50
