# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Programs that people run, from the distribution's packages: MPI, qperf, fio. Others are in test_clients.py and
test_perftest.py; `ci/works-with` writes docs/works-with.md.

    h1 h2 -- leaf1 ... leaf2 -- h5 h6        r1 -- sw1 -- sw2 -- r2        w1, w2: iWARP on loopback addresses
"""

import re
import subprocess

import pytest
from conftest import PROGRAMS
from muslin import free_port
from test_clients import ETHERNET

IWARP = "host w1 iwarp 127.83.9.1\nhost w2 iwarp 127.83.9.2\n"
RANKS = ("h1", "h2", "h5", "h6")
AGENT = """#!/bin/sh
# What MPI's launchers call in place of ssh: HOST COMMAND...
host=$1
shift
exec "$MUSLIN" run "$host" -- /bin/sh -c "$*"
"""
# Open MPI 5 asks the machine's kernel, by netlink, for routes to hosts' addresses if it is not told to compare them.
# Its IPv6 listeners do not accept IPv4-mapped addresses, by which hosts reach each other's IPv6 addresses.
OPENMPI = ("PRTE_MCA_prtereachable=weighted", "OMPI_MCA_reachable=weighted", "OMPI_MCA_btl_tcp_disable_family=6")


@pytest.fixture(scope="module")
def others(muslin_make_fabric):
    fabric = muslin_make_fabric("programs").up(ETHERNET + IWARP)
    yield fabric
    fabric.down()


@pytest.fixture(params=["ib", "roce", "iwarp"])
def ends(request):
    """The fabric, a server, a client and the server's address."""
    if request.param == "ib":
        fabric = request.getfixturevalue("shared_fabric")
        return fabric, "h1", "h5", fabric.ip("h1")
    where = {"roce": ("r1", "r2", "10.1.0.1"), "iwarp": ("w1", "w2", "127.83.9.1")}
    return request.getfixturevalue("others"), *where[request.param]


@pytest.fixture
def mpi(shared_fabric, folder):
    """mpi("openmpi", options...): four ranks on four hosts, and how many packets h5 has sent."""
    agent = folder / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)

    def packets():
        return shared_fabric.port("h5")["counters"]["port_xmit_packets"]

    def run(kind, *options):
        binary = folder / kind
        subprocess.run([f"mpicc.{kind}", "-O1", "-Wall", "-o", binary, PROGRAMS / "mpi.c"], check=True)
        binary.chmod(0o755)
        before = packets()
        if kind == "openmpi":
            where = ["--host", ",".join(RANKS), "--mca", "plm_rsh_agent", agent, "--map-by", "ppr:1:node"]
        else:  # whose ranks else get the launcher's own environment, and with it the launcher's host
            where = ["-genvnone", "-launcher", "rsh", "-launcher-exec", agent, "-hosts", ",".join(RANKS)]
        env = ["env", *OPENMPI, f"MUSLIN={shared_fabric.muslin}"]
        out = shared_fabric.run("h1", *env, f"mpirun.{kind}", "-np", "4", *where, *options, binary, timeout=60)
        assert sorted(re.findall(r"rank \d of 4 on (\w+)", out)) == list(RANKS), out
        return packets() - before

    return run


LAYERS = {
    "ucx": ("--mca", "pml", "ucx", "-x", "UCX_TLS=rc,self"),
    "ofi_rxm": ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"),
}


VECTOR = 300000 * 4 // 4096  # packets of one rank's numbers, which no other way may take


@pytest.mark.parametrize("layer", LAYERS)
def test_openmpi(mpi, layer):
    assert mpi("openmpi", *LAYERS[layer]) > VECTOR


def test_openmpi_on_sockets(mpi):
    """Of all of a host's interfaces, over TCP."""
    mpi("openmpi", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self")


def test_mpich(mpi):
    assert mpi("mpich") > VECTOR


def test_qperf(ends):
    """
    By rdma_cm; its datagrams are of InfiniBand alone, for it makes address handles of LIDs. On iWARP only
    its latency: its SENDs outrun the receives, for which iWARP has no RNR NAK.
    """
    fabric, server, client, ip = ends
    words, tests = ["qperf", "-lp", free_port()], [["-cm", "1", "-t", "1", ip, "rc_lat", "quit"]]
    if server != "w1":
        tests[0].insert(-1, "rc_bw")
    if server == "h1":
        tests.append(["-t", "1", ip, "ud_lat", "quit"])
    for test in tests:
        out = fabric.pair((server, *words), (client, *words, *test))[1]
        assert re.search(r"^ +latency +=", out, re.M), out


def test_fio(ends, folder):
    """By RDMA WRITEs into the server's memory."""
    fabric, server, client, ip = ends
    words = ["fio", "--ioengine=rdma", "--verb=write", f"--port={free_port()}", f"--directory={folder}"]
    words += ["--bs=64k", "--size=4m", "--iodepth=4"]
    receive = ["--name=server", "--rw=read"]
    send = ["--name=client", "--rw=write", f"--hostname={ip}"]
    # fio's client ends with status 0 where nobody listens, too
    _, out = fabric.pair((server, *words, *receive), (client, *words, *send), ready="waiting for connection")
    assert "err= 0" in out and re.search(r"io=4096Ki", out), out
