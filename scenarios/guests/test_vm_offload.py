# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Checksums and large sends that the guests' IPoIB offloads to the HCA. The packets on the link are the same as without:

    h1 (guest a, client)        h5 (guest b, server)
        leaf1 ------ trace ------ leaf2
"""

import pytest
from muslin import wait_until

pytestmark = pytest.mark.guest

SIZE = 6 << 20
FIELDS = "infiniband.lrh.slid ip.checksum.status ip.id".split()
FIELDS += "tcp.checksum tcp.checksum.status tcp.len tcp.seq tcp.flags".split()
GOOD = "1"
V4, V6 = "http://10.0.0.5:8000/sent", "http://[fd00::5]:8000/sent"


@pytest.fixture(scope="module")
def served(guests):
    """Guest b serves a file; returns its checksum."""
    _, b = guests
    b.run(f"head -c {SIZE} /dev/urandom >/tmp/sent; busybox httpd -p 8000 -h /tmp")
    return b.run("md5sum </tmp/sent")


def features(vm):
    """Output of `ethtool -k ib0`, by name."""
    lines = [line.strip().partition(": ") for line in vm.run("ethtool -k ib0").splitlines()[1:]]
    return {name: value.split()[0] for name, _, value in lines}


def switch(guests, state):
    for vm in guests:
        vm.run(f"ethtool -K ib0 tx {state} tso {state} rx {state}")
        got = features(vm)
        assert (got["tx-checksumming"], got["tcp-segmentation-offload"], got["rx-checksumming"]) == (state,) * 3


def sent(vm):
    return int(vm.run("cat /sys/class/net/ib0/statistics/tx_packets"))


def captured(fabric, action):
    """The TCP segments at h1's port during @action, each a dictionary of FIELDS."""
    pcap = fabric.folder / "offload.pcapng"
    pcap.unlink(missing_ok=True)
    trace = fabric.start_muslin("trace", "-w", pcap, "h1")
    wait_until(pcap.exists, 10, "the capture")
    action()
    trace.signal(2)
    trace.wait(20)
    fields = [w for f in FIELDS for w in ("-e", f)]
    options = "-o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -o tcp.relative_sequence_numbers:FALSE".split()
    show = fabric._start(["tshark", "-r", pcap, *options, "-Y", "tcp", "-T", "fields", *fields])
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in show.wait(60).splitlines() if "\t" in line]


def test_reported(guests):
    for vm in guests:
        got = features(vm)
        assert got["tx-checksum-ipv4"] == "on" and got["rx-checksumming"] == "on"
        assert got["tx-tcp-segmentation"] == "on"
        assert "UD_IP_CSUM" in vm.run("ibv_devinfo -v")


@pytest.mark.also_connectx
@pytest.mark.parametrize("state", ["on", pytest.param("off", marks=pytest.mark.one_model)])
@pytest.mark.parametrize("url", [V4, pytest.param(V6, marks=pytest.mark.one_model)])
def test_bulk(shared_fabric, guests, served, url, state):
    a, b = guests
    switch(guests, state)
    before = sent(b)

    def fetch():
        a.run(f"wget -q -O /tmp/got '{url}'")

    segments = captured(shared_fabric, fetch)
    handed_down = sent(b) - before
    assert a.run("md5sum </tmp/got") == served
    lid = str(shared_fabric.port("h5")["lid"])
    data = [s for s in segments if s["infiniband.lrh.slid"] == lid and int(s["tcp.len"]) > 0]
    assert sum(int(s["tcp.len"]) for s in data) >= SIZE
    # The kernel writes a checksum of zero as all ones, which is equivalent; tshark reports it as wrong.
    own = "0xffff" if state == "off" or "[" in url else None
    assert {s["tcp.checksum.status"] for s in segments if s["tcp.checksum"] != own} == {GOOD}
    if "[" not in url:
        assert {s["ip.checksum.status"] for s in segments} == {GOOD}
    if state == "on" and "[" not in url:  # IPoIB has no offload for IPv6
        # TCP on a slow machine sends two segments at a time, and never fewer
        assert handed_down < 0.75 * len(data), "the kernel has cut the packets itself"
    else:
        assert handed_down >= len(data)
    switch(guests, "on")


def test_flags_of_segments(shared_fabric, guests, served):
    """Only the last segment of a large send has PSH or FIN; each has an identification of its own."""
    a, b = guests
    before = sent(b)
    segments = captured(shared_fabric, lambda: a.run("wget -q -O /tmp/got http://10.0.0.5:8000/sent"))
    handed_down = sent(b) - before
    lid = str(shared_fabric.port("h5")["lid"])
    by_sequence = {}
    for s in segments:
        if s["infiniband.lrh.slid"] == lid and int(s["tcp.len"]) > 0:
            by_sequence.setdefault(s["tcp.seq"], s)  # retransmissions, by tail loss probes too, do not count
    data = list(by_sequence.values())
    assert len({s["ip.id"] for s in data}) > 0.95 * len(data)
    assert sum(bool(int(s["tcp.flags"], 0) & 8) for s in data) <= handed_down < len(data)
    assert [s for s in data if int(s["tcp.flags"], 0) & 1] in ([], data[-1:])


def csum_errors(vm):
    names, values = vm.run("grep ^Tcp: /proc/net/snmp").splitlines()
    return int(dict(zip(names.split(), values.split(), strict=True))["InCsumErrors"])


def test_a_wrong_checksum_is_not_reported_valid(shared_fabric, guests, served):
    """Bytes change with valid CRCs: the kernel verifies the checksum, TCP retransmits, and the file is correct."""
    a, _ = guests
    before = csum_errors(a)
    keys = {"what": "payload", "offset": 700, "dir": "in", "opcode": "ud", "len": "1500-4096", "every": 100, "count": 5}
    with shared_fabric.fault("h1", "corrupt", "silent", **keys):
        a.run("wget -q -O /tmp/got http://10.0.0.5:8000/sent")
    assert a.run("md5sum </tmp/got") == served
    assert csum_errors(a) - before == 5
