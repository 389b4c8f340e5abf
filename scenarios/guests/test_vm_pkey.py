# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Partitions of guests, by IPoIB's child interfaces, which are created, changed and removed while the subnet is up:

    h1 (guest a)   h2 (guest c)      h5 (guest b)
        leaf1 -------------+----------- leaf2
"""

import pytest

pytestmark = pytest.mark.guest

DEFAULT = "Default=0x7fff, ipoib : ALL=full;\n"
RED, BLUE = "ib0.8001", "ib0.8002"


@pytest.fixture(scope="module")
def three(shared_fabric, guests):
    """The pair and one more, each with an address 10.1.0.N of red and 10.2.0.N of blue, in no partition yet."""
    a, b = guests
    c = shared_fabric.vm("h2").wait_ib0()
    for n, vm in enumerate((a, b, c), 1):
        for net, (child, key) in enumerate(((RED, "0x8001"), (BLUE, "0x8002")), 1):
            make = f"echo {key} >/sys/class/net/ib0/create_child"
            vm.run(make if net == 1 else f"ip link add link ib0 name {child} type ipoib pkey {key}")
            vm.run(f"ip addr add 10.{net}.0.{n}/24 dev {child}; ip link set {child} up")
    yield a, b, c
    c.stop()


@pytest.fixture
def partition(shared_fabric, three):
    """partition(red={"h1": "full", ...}, blue=...) sets the subnet's partitions; afterwards there are none."""

    def change(**members):
        text = DEFAULT
        for name, key in (("red", 1), ("blue", 2)):
            who = [f"{shared_fabric.port(h)['guid']}={m}" for h, m in members.get(name, {}).items()]
            if who:
                text += f"{name}={key:#06x}, ipoib : {', '.join(who)};\n"
        conf = shared_fabric.folder / "partitions.conf"
        conf.write_text(text)
        conf.chmod(0o644)
        shared_fabric.command("partitions", conf)

    yield change
    change()
    for vm in three:
        for child in (RED, BLUE):
            vm.wait(f"[ $(cat /sys/class/net/{child}/carrier) = 0 ]", what=f"the end of {child}")


def full(*hosts):
    return dict.fromkeys(hosts, "full")


def up(dev, *vms):
    for vm in vms:
        vm.wait_ib0(dev)


def reaches(vm, address):
    """An echo returns; the first ones may be lost while the interface joins its groups."""
    vm.wait(f"ping -c 1 -W 1 {address}", what=f"an echo of {address}")


def no_echo(vm, address):
    assert " 100% packet loss" in vm.run(f"ping -c 2 -i 0.2 -W 1 {address}", status=None)


def keys(vm):
    """The used part of the port's P_Key table."""
    return vm.run(f"cd /sys/class/infiniband/{vm.device}/ports/1/pkeys; grep -v 0x0000 0 1 2 3", status=None).split()


def test_a_key_is_added_removed_and_added(partition, three):
    a, b, _ = three
    assert keys(a) == ["0:0xffff"]
    assert a.run(f"cat /sys/class/net/{RED}/carrier").strip() == "0"
    for _ in range(2):
        partition(red=full("h1", "h5"))
        up(RED, a, b)
        assert keys(a) == ["0:0xffff", "1:0x8001"]
        reaches(a, "10.1.0.2")
        partition()
        a.wait(f"[ $(cat /sys/class/net/{RED}/carrier) = 0 ]", what="the end of red")
        no_echo(a, "10.1.0.2")
    a.ping("10.0.0.5")


@pytest.mark.also_connectx
def test_partitions_are_isolated(partition, three):
    a, b, c = three
    partition(red=full("h1", "h5"), blue=full("h1", "h2"))
    up(RED, a, b)
    up(BLUE, a, c)
    reaches(a, "10.1.0.2")
    reaches(a, "10.2.0.3")
    assert b.run(f"cat /sys/class/net/{BLUE}/carrier").strip() == "0"
    b.run(f"ip addr add 10.2.0.22/32 dev {RED}; ip route add 10.2.0.3/32 dev {RED}")  # blue's addresses, red's key
    no_echo(b, "10.2.0.3")
    b.run(f"ip addr del 10.2.0.22/32 dev {RED}; ip route del 10.2.0.3/32 dev {RED}", status=None)
    b.ping("10.0.0.2")


def test_one_is_removed_while_the_other_works(partition, three):
    """Blue's key keeps its index, and its traffic is not affected when red is removed and added again."""
    a, _, c = three
    partition(red=full("h1", "h2"), blue=full("h1", "h2"))
    up(BLUE, a, c)
    reaches(a, "10.2.0.3")
    a.start("ping -i 0.1 -c 40 10.2.0.3", "steady")
    for members in (full("h2"), full("h1", "h2"), {}, full("h1")):
        partition(red=members, blue=full("h1", "h2"))
        assert "2:0x8002" in keys(a)
    a.wait("grep -q 'packet loss' /tmp/steady.log", what="the end of ping")
    assert " 0% packet loss" in a.log("steady"), a.log("steady")


def test_limited_members(partition, three):
    """They communicate with full members and not with each other, until one becomes a full member."""
    a, b, c = three
    partition(red={"h1": "full", "h5": "limited", "h2": "limited"})
    up(RED, a, b, c)
    assert "1:0x0001" in keys(b)
    reaches(a, "10.1.0.2")
    reaches(c, "10.1.0.1")
    no_echo(b, "10.1.0.3")
    partition(red={"h1": "full", "h5": "full", "h2": "limited"})
    reaches(b, "10.1.0.3")
    reaches(a, "10.1.0.3")


def test_wrong_file(shared_fabric, three):
    """An error is reported with its line, and nothing changes."""
    conf = shared_fabric.folder / "wrong.conf"
    conf.write_text(DEFAULT + "red=0x0001, ipoib\n")
    conf.chmod(0o644)
    before = keys(three[0])
    assert "wrong.conf:" in shared_fabric.command("partitions", conf, status=1)
    assert "No such file" in shared_fabric.command("partitions", "/nowhere/p", status=1)
    assert keys(three[0]) == before
