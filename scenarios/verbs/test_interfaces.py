# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The network interfaces of a host: lo, and that of its port with the addresses of the topology.

    h1 -- leaf1 ...       r1, v1 (VLAN 10) -- sw1       w1: iWARP on the machine's lo
    w2, w3: iWARP and RoCE on other addresses of 127.0.0.0/8
"""

import socket
import sys

import pytest
from muslin import free_port
from test_sysfs import ETHERNET as SYSFS

ETHERNET = SYSFS.replace("127.83.13.", "127.83.14.")  # files run side by side, and a RoCE port binds its address


@pytest.fixture
def interfaces(program):
    """interfaces(FABRIC, HOST): the lines of the program's output, without those about lo."""

    def run(fabric, host):
        out = fabric.run(host, program("interfaces"))
        assert "END" in out
        assert "lo: 127.0.0.1/255.0.0.0" in out
        return [line for line in out.splitlines() if not line.startswith(("lo:", "END"))]

    return run


def test_ipoib(shared_fabric, interfaces):
    wanted = ["mtu 2044 type 32 length 20", "10.0.0.1/255.0.0.0", "fd00::1/ffff:ffff:ffff:ffff::"]
    assert interfaces(shared_fabric, "h1") == [f"ib0: {x}" for x in wanted]


def test_ethernet(ethernet, interfaces):
    r1 = ["eth0: mtu 4200 type 1 length 6", "eth0: 10.1.0.1/255.255.255.0", "eth0: fd10::1/ffff:ffff:ffff:ffff::"]
    assert interfaces(ethernet, "r1") == r1
    links, addresses = ["eth0: mtu 4200", "eth0.10: mtu 4200"], ["eth0: 10.1.0.3", "eth0.10: 10.1.10.3"]
    wanted = [f"{x} type 1 length 6" for x in links] + [f"{x}/255.255.255.0" for x in addresses]
    assert interfaces(ethernet, "v1") == wanted


def test_a_network_card_beside_the_adapter(new_fabric, interfaces):
    """The card of a host of the fabric is its guest's: programs on the host have the interface of its port."""
    new_fabric.up("leafs 1 hosts 2\nethernet sw1\nhost h1 nic sw1 ip 10.5.0.1/24\n")
    wanted = ["10.0.0.1/255.0.0.0", "fd00::1/ffff:ffff:ffff:ffff::"]
    assert interfaces(new_fabric, "h1")[1:] == [f"ib0: {x}" for x in wanted]
    bind = "import socket, sys; s = socket.socket(); s.bind((sys.argv[1], 0)); print(s.getsockname()[0])"
    assert new_fabric.run("h1", "python3", "-c", bind, "10.0.0.1").strip() == "10.0.0.1"


NAMES = "import os, socket; print(socket.gethostname(), os.uname().nodename)"


def test_a_host_has_its_name(shared_fabric):
    assert shared_fabric.run("h3", "hostname").strip() == "h3"
    assert shared_fabric.run("h3", "python3", "-c", NAMES).split() == ["h3", "h3"]


def test_a_host_has_an_identifier(shared_fabric):
    """gethostid(3), by which programs find those on the same machine: the IPv4 address with its halves exchanged."""
    for host, ip in ("h1", "10.0.0.1"), ("h3", "10.0.0.3"):
        own = int.from_bytes(socket.inet_aton(ip), sys.byteorder)
        assert shared_fabric.run(host, "hostid").strip() == f"{(own << 16 | own >> 16) & 0xFFFFFFFF:08x}"


def test_a_host_on_sockets_has_those_of_the_machine(ethernet):
    name = socket.gethostname()
    assert ethernet.run("w1", "python3", "-c", NAMES).split() == [name, name]
    out = ethernet.run("w1", "python3", "-c", "import socket; print(socket.if_nameindex())")
    assert out.strip() == str(socket.if_nameindex())


def test_hosts_on_sockets_of_the_loopback_network(ethernet, interfaces):
    """They have an interface, a name and their addresses, as other hosts do."""
    assert interfaces(ethernet, "w2") == ["eth0: mtu 65536 type 1 length 6", "eth0: 127.83.14.2/255.0.0.0"]
    assert interfaces(ethernet, "w3")[1:] == ["eth0: 127.83.14.3/255.0.0.0"]
    assert ethernet.run("w2", "python3", "-c", NAMES).split() == ["w2", "w2"]
    assert ethernet.run("w2", "getent", "hosts", "w3").split() == ["127.83.14.3", "w3"]
    device = "/sys/class/infiniband/rxe0"
    out = ethernet.run("w3", "cat", f"{device}/ports/1/gid_attrs/ndevs/0", f"{device}/device/net/eth0/address")
    assert out.split() == ["eth0", "02:6d:7f:53:0e:03"]


def test_a_name_on_sockets_is_an_address_of_rdma_cm(ethernet):
    args = ["-a", "w2", "-p", free_port(), "-C", "3", "-v"]
    assert ethernet.pair(("w2", "rping", "-s", *args), ("w2", "rping", "-c", *args))[1].count("ping data") == 3


def test_one_program_on_two_hosts(new_fabric):
    """A program that sets MUSLIN_HOST opens the devices of another host, which no other program has used."""
    script = (
        "import os; h = 'MUSLIN_HOST'; read = lambda: open('/sys/class/infiniband/muslin0/node_guid').read().strip(); "
        "a = read(); os.environ[h] = 'h2'; os.close(os.open('/dev/infiniband/uverbs0', os.O_RDWR)); print(a, read())"
    )
    a, b = new_fabric.up("leafs 1 hosts 2").run("h1", "python3", "-c", script).split()
    assert a != b


ADDRESSES = """
import os, socket, sys
one, two = sys.argv[1:]
listener = socket.socket()
listener.bind((one, 0))
listener.listen()
os.environ["MUSLIN_HOST"] = "h2"
client = socket.create_connection(listener.getsockname())
print(socket.gethostname(), client.getsockname()[0], listener.accept()[1][0])
del os.environ["MUSLIN_HOST"]
for address in one, two:
    try:
        socket.socket().bind((address, 0))
    except OSError as e:
        print(e.strerror)
"""


def test_addresses_of_one_program_on_two_hosts(new_fabric):
    """They are those of the host that MUSLIN_HOST names at the time; without it, the program is on none of them."""
    fabric = new_fabric.up("leafs 1 hosts 2")
    ips = [fabric.ip(host) for host in ("h1", "h2")]
    out = fabric.run("h1", "python3", "-c", ADDRESSES, *ips).splitlines()
    assert out == [f"h2 {ips[1]} {ips[1]}"] + 2 * ["Cannot assign requested address"]


def test_a_host_that_no_program_has_used(new_fabric):
    """As in a container by `muslin cdi`: the name is the first that the program asks for."""
    out = new_fabric.up("leafs 1 hosts 2").run("h1", "env", "MUSLIN_HOST=h2", "python3", "-c", NAMES)
    assert out.split() == ["h2", "h2"]


@pytest.mark.parametrize("host", ["h1", "r1", "w2"])
def test_libfabric_lists_their_addresses(request, host):
    fabric = request.getfixturevalue("shared_fabric" if host == "h1" else "ethernet")
    ip = fabric.ip("h1") if host == "h1" else {"r1": "10.1.0.1", "w2": "127.83.14.2"}[host]
    assert f"src_addr: fi_sockaddr_in://{ip}:0" in fabric.run(host, "fi_info", "-p", "verbs", "-v")


def test_an_interface_is_removed_with_its_adapter(shared_fabric, program):
    with shared_fabric.fault("h3", "unplug"):
        assert "ib0" not in shared_fabric.run("h3", "ls", "/sys/class/net/")
        assert "ib0" not in shared_fabric.run("h3", program("interfaces"))
    assert "ib0" in shared_fabric.run("h3", program("interfaces"))
