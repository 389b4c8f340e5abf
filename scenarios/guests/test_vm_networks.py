# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Programs that configure IPoIB interfaces, in guests with Debian's packages: DHCP (RFC 4390) by systemd-networkd and by
NetworkManager, NetworkManager's connections of InfiniBand, and names by GUID from udev.

    h1 (guest a: the client)     h5 (guest b: 10.0.0.5, the DHCP server dnsmasq)
        leaf1 ---------+--------- leaf2
"""

import contextlib
import re

import pytest
from muslin import WaitTimeout

pytestmark = pytest.mark.guest

OPTIONS = ["--mem", "1G", "--packages", "network-manager,udev,dnsmasq-base"]
HTYPE, BROADCAST = 32, 0x8000  # of InfiniBand (RFC 4390 2.1), and the flag (2.2)
TYPE_4361 = "ff"  # of a client identifier of IAID and DUID
GUID = "00:02:c9:03:00:00:00:51"  # of h1's port
SERVER = """exec dnsmasq --no-daemon --port=0 --conf-file=/dev/null --interface=ib0 --bind-interfaces --no-ping
    --dhcp-authoritative --dhcp-range=10.0.0.100,10.0.0.120,255.255.255.0,1h --dhcp-leasefile=/tmp/leases --log-dhcp"""
# What the packages' scripts and systemd would do
SYSTEM = """echo 0123456789abcdef0123456789abcdef >/etc/machine-id
for user in messagebus:900 systemd-network:901; do
    echo "${user%:*}:x:${user#*:}:${user#*:}::/:/bin/false" >>/etc/passwd
    echo "${user%:*}:x:${user#*:}:" >>/etc/group
done
killall ip  # by which the init gives a new ib0 its addresses
mkdir -p /run/dbus /run/systemd /etc/systemd/network
/lib/systemd/systemd-udevd --daemon
udevadm trigger --subsystem-match=net && udevadm settle
dbus-daemon --system --fork --nopidfile"""
NETWORKD = """[Match]
Name=ib0
[Network]
DHCP=ipv4
LinkLocalAddressing=no
[DHCPv4]
ClientIdentifier=duid
"""
MANAGER = """[main]
plugins=keyfile
dhcp=internal
dns=none
auth-polkit=false
no-auto-default=*
"""
# systemd 252 ignores a message that comes between its accept() and its SO_PASSCRED: "Invalid sender uid 65534"
RELOAD = "for i in 1 2 3; do udevadm control --reload; done"
CHILD = "ib0.8001"
PARTITIONS = "Default=0x7fff, ipoib : ALL=full;\nred=0x0001, ipoib : ALL=full;\n"
RULE = f"""ACTION=="add", SUBSYSTEM=="net", DRIVERS=="?*", ATTR{{type}}=="32", ATTR{{address}}=="?*{GUID}", NAME="%s"
"""
CONNECTIONS = "rdma res show qp | grep -c 'type RC'"
SIZE = 8 << 20
MTU = {"connected": 65520, "datagram": 2044}
SHORT_ADDRESS = 262  # the version of systemd since which networkd's DHCP client sends nothing on InfiniBand


@pytest.fixture(scope="module")
def two(shared_fabric):
    conf = shared_fabric.folder / "partitions.conf"
    conf.write_text(PARTITIONS)
    conf.chmod(0o644)
    shared_fabric.command("partitions", conf)
    a, b = (shared_fabric.vm(host, *OPTIONS, timeout=600).wait_ib0() for host in ("h1", "h5"))
    a.run(SYSTEM)
    serve_files(b)
    yield a, b
    for vm in (a, b):
        vm.stop()


@pytest.fixture
def manager(two):
    """NetworkManager in guest a, without any connection."""
    a = two[0]
    write(a, "/etc/NetworkManager/NetworkManager.conf", MANAGER)
    job = a.start("exec NetworkManager --debug", "manager")
    try:
        a.wait("nmcli -g RUNNING general | grep -x running", 60, "NetworkManager")
        yield a
    finally:
        print(a.log("manager")[-6000:])
        job.kill()
    a.run("rm -f /etc/NetworkManager/system-connections/* /run/NetworkManager/system-connections/*")
    a.run(f"echo 0x8001 >/sys/class/net/ib0/delete_child; ip addr flush dev {CHILD}", status=None)
    set_mode(a, "ib0", "datagram")


def write(vm, path, text):
    vm.run(f"mkdir -p {path.rpartition('/')[0]}; printf %s '{text}' >{path}")


def first_message(a, b, start):
    """What reaches the server's port after start(): the job that it returns, and a DHCP message or None."""
    a.run("ip addr flush dev ib0")
    sink = b.start("exec socat -u UDP4-RECV:67 OPEN:/tmp/message,creat,trunc", "sink")
    try:
        b.wait("grep -q ':0043 ' /proc/net/udp", what="the receiver")
        client = start()
        try:
            b.wait("[ $(stat -c %s /tmp/message) -ge 240 ]", 60, "a message")
        except WaitTimeout:
            return client, None
        return client, b.read("/tmp/message")
    finally:
        sink.kill()


def options(message):
    """By their numbers (RFC 2132)."""
    assert message[236:240] == bytes([99, 130, 83, 99])
    found, rest = {}, message[240:]
    while rest and rest[0] != 255:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        found[rest[0]] = rest[2 : 2 + rest[1]]
        rest = rest[2 + rest[1] :]
    return found


def check_message(message, identifier):
    """RFC 4390 2.1, 2.2. The client identifier begins with the byte @identifier."""
    assert message, "no message within 60 s"
    assert message[:3] == bytes([1, HTYPE, 0]), message[:44].hex()
    assert int.from_bytes(message[10:12], "big") == BROADCAST
    assert message[28:44] == bytes(16)  # chaddr
    assert options(message)[61].hex().startswith(identifier)


def leased(a, b, identifier):
    """The address that a has got of the server, which knows it by that identifier."""
    found = a.wait("ip -4 -br addr show ib0 | grep -o '10\\.0\\.0\\.1[012][0-9]/24'", 90, "a lease")
    address = found.strip().split("/")[0]
    b.wait(f"grep ' {address} .* {identifier}:' /tmp/leases", what="the lease")
    return address


def serve_files(b):
    b.run(f"head -c {SIZE} /dev/urandom >/tmp/sent; busybox httpd -p 8000 -h /tmp")


@contextlib.contextmanager
def files_throughout(a, b, server):
    """Guest a gets files from guest b, repeatedly, until some have come after the block; the last one is as sent."""
    get = f"timeout 20 wget -O /tmp/got http://{server}:8000/sent && echo one"
    a.run("rm -f /tmp/go")
    job = a.start(f"until [ -e /tmp/go ]; do {get}; done; {get}", "files")
    try:
        a.wait("grep -qx one /tmp/files.log", what="the first file")
    except WaitTimeout as e:
        raise WaitTimeout(f"{e}:\n{a.log('files')}\n{a.run('ip -s addr')}\n{b.run('ip -s addr')}") from None
    yield
    a.wait("n=$(grep -cx one /tmp/files.log); sleep 1; [ $(grep -cx one /tmp/files.log) -gt $n ]", 90, "files again")
    a.run("touch /tmp/go")
    job.wait(90)
    assert a.run("md5sum </tmp/got") == b.run("md5sum </tmp/sent")
    for vm in (a, b):
        vm.check()


def data_while_the_link_flaps(fabric, a, b, server="10.0.0.5", name="ib0"):
    """Files from guest b while the link of guest a's interface @name goes down and up."""
    with files_throughout(a, b, server):
        with fabric.link("h1:1").down():
            a.wait(f"[ $(cat /sys/class/net/{name}/carrier) = 0 ]", what="the carrier's loss")
        a.wait_ib0(name)


def test_dhcp_by_networkd(shared_fabric, two):
    """Its client identifier is of RFC 4361, as RFC 4390 demands; the lease is the same after the link was down."""
    a, b = two
    write(a, "/etc/systemd/network/10-ib.network", NETWORKD)
    start = "exec env SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console /lib/systemd/systemd-networkd"
    version = int(re.search(r"systemd (\d+)", a.run("/lib/systemd/systemd-networkd --version")).group(1))
    client, message = first_message(a, b, lambda: a.start(start, "networkd"))
    try:
        if not message and version >= SHORT_ADDRESS:
            pytest.xfail(f"systemd {version} gives sendmsg() 20 bytes of an address that has 32: EINVAL")
        check_message(message, TYPE_4361)
        server = b.start(SERVER.replace("\n", " "), "dnsmasq")
        address = leased(a, b, TYPE_4361)
        a.ping("10.0.0.5")
        b.ping(address)
        data_while_the_link_flaps(shared_fabric, a, b)
        assert leased(a, b, TYPE_4361) == address
        server.kill()
    finally:
        print(a.log("networkd")[-4000:], b.log("dnsmasq")[-4000:])
        client.kill()
        a.run("rm /etc/systemd/network/10-ib.network")


@pytest.mark.parametrize("asked, identifier", [("duid", TYPE_4361), ("mac", "20")])
def test_dhcp_by_networkmanager(shared_fabric, two, manager, asked, identifier):
    """By its own client, whose identifier is of RFC 4361 on request, and else hardware type and GUID."""
    a, b = two
    add = "nmcli con add type infiniband con-name dhcp ifname ib0 autoconnect no ipv6.method disabled"
    a.run(f"{add} ipv4.method auto ipv4.dhcp-timeout 120 ipv4.dhcp-client-id {asked}")
    up = "nmcli -w 120 con up dhcp"
    client, message = first_message(a, b, lambda: a.start(up, "up"))
    check_message(message, identifier)
    if asked == "mac":
        assert options(message)[61] == bytes.fromhex("20" + GUID.replace(":", ""))
    server = b.start(SERVER.replace("\n", " "), "dnsmasq")
    client.wait(150)
    address = leased(a, b, identifier)
    b.ping(address)
    data_while_the_link_flaps(shared_fabric, a, b)
    assert leased(a, b, identifier) == address
    server.kill()


def set_mode(vm, name, mode):
    vm.run(f"echo {mode} >/sys/class/net/{name}/mode; ip link set {name} mtu {MTU[mode]} up")


@pytest.mark.parametrize("mode, childs", [("connected", "datagram"), ("datagram", "connected")])
def test_networkmanager(shared_fabric, two, manager, mode, childs):
    """A connection in each mode, and a child of a P_Key in the other one, as Red Hat's guide makes them."""
    a, b = two
    modes = {"ib0": mode, CHILD: childs}
    set_mode(b, "ib0", mode)
    before = b.run(f"{CONNECTIONS} || true").strip()
    # A child that comes by netlink has no mode in sysfs
    b.run(f"ip link add link ib0 name {CHILD} type ipoib pkey 0x8001 mode {childs}")
    b.run(f"ip addr add 10.1.0.5/24 dev {CHILD}; ip link set {CHILD} mtu {MTU[childs]} up")
    parts = {"ib0": ("storage", "10.0.0.1/24", ""), CHILD: ("red", "10.1.0.1/24", "p-key 0x8001 parent ib0")}
    for name, (con, address, pkey) in parts.items():
        add = f"nmcli con add type infiniband con-name {con} ifname {name} {pkey}"
        how = f"transport-mode {modes[name].capitalize()} mtu {MTU[modes[name]]}"
        a.run(f"{add} {how} ipv4.method manual ipv6.method disabled ipv4.addresses {address}")
    for con, _, _ in parts.values():
        a.run(f"nmcli -w 60 con up {con}", 90)
    for name, server in (("ib0", "10.0.0.5"), (CHILD, "10.1.0.5")):
        got = a.run(f"cat /sys/class/net/{name}/mode /sys/class/net/{name}/mtu").split()
        assert got == [modes[name], str(MTU[modes[name]])]
        a.wait_ib0(name)
        b.wait_ib0(name)
        a.wait(f"ping -c 1 -W 1 {server}", what=f"an echo by {name}")
        a.ping(server, size=MTU[modes[name]] - 100)
    assert a.run(f"cat /sys/class/net/{CHILD}/pkey").strip() == "0x8001"
    data_while_the_link_flaps(shared_fabric, a, b, "10.1.0.5")
    assert re.search(rf"^{CHILD}:infiniband:connected:red$", a.run("nmcli -t device"), re.M)
    a.run("nmcli con down red")
    a.wait(f"[ ! -e /sys/class/net/{CHILD} ]", what="the child's end")
    b.run(f"ip link set {CHILD} down")
    if childs == "connected":  # IPoIB destroys a child's CQ without a wait for the work that destroys its RC QPs
        b.wait(f"[ $({CONNECTIONS}) -le {before} ]", what="the end of the child's connections")
    b.run(f"ip link del {CHILD}")
    set_mode(b, "ib0", "datagram")


def reload(a, name):
    """IPoIB's interface comes anew, and gets the name."""
    write(a, "/etc/udev/rules.d/70-persistent-ipoib.rules", RULE % name)
    a.run(f"{RELOAD}; rmmod ib_ipoib && modprobe ib_ipoib; udevadm settle")
    a.wait(f"ip link set {name} up", what=name)
    a.wait_ib0(name)


def test_name_by_rule(shared_fabric, two):
    """By the GUID in the hardware address, whose QPN is another one then."""
    a, b = two
    reload(a, "storage")
    a.run("ip addr replace 10.0.0.1/24 dev storage")
    a.ping("10.0.0.5")
    data_while_the_link_flaps(shared_fabric, a, b, name="storage")
    assert not a.run("ls -d /sys/class/net/ib0", status=None).startswith("/sys/class/net/ib0")
    reload(a, "ib0")
    a.run("ip addr replace 10.0.0.1/24 dev ib0")
    a.ping("10.0.0.5")


def test_name_by_link_file(shared_fabric, two):
    """By the whole hardware address, of 20 bytes, as systemd.link(5) matches it."""
    a, b = two
    address = a.run("cat /sys/class/net/ib0/address").strip()
    assert address.endswith(GUID)
    write(a, "/etc/systemd/network/70-ipoib.link", f"[Match]\nMACAddress={address}\n[Link]\nName=storage\n")
    a.run(f"rm -f /etc/udev/rules.d/70-persistent-ipoib.rules; ip link set ib0 down; {RELOAD}")
    a.run("udevadm trigger --action=add /sys/class/net/ib0; udevadm settle")
    a.run("ip link set storage up && ip addr replace 10.0.0.1/24 dev storage")
    a.wait_ib0("storage").ping("10.0.0.5")
    data_while_the_link_flaps(shared_fabric, a, b, name="storage")
    a.run("rm /etc/systemd/network/70-ipoib.link; ip link set storage down; ip link set storage name ib0")
    a.run("ip link set ib0 up; ip addr replace 10.0.0.1/24 dev ib0")
    b.ping("10.0.0.1")
