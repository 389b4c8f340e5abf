# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Faults of an adapter under a running program: it is unplugged, its posts fail, or it has smaller limits than expected.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import re

import pytest
from muslin import free_port, wait_until


def test_unplugged_under_a_program(fabric, program):
    """
    The program gets DEVICE_FATAL; then its files fail with EIO, and the device is absent. The new device works for any
    program that opens it.
    """
    watch = fabric.start("h1", program("unplug")).expect("watching")
    fault = fabric.fault("h1", "unplug")
    out = watch.wait(20)
    assert "event: local catastrophic error\n" in out
    assert "no more events: Input/output error\n" in out and "completion channel: Input/output error\n" in out
    assert "alloc_pd: Input/output error\n" in out
    assert "devices: 0\n" in out
    assert "No IB devices found" in fabric.run("h1", "ibv_devinfo", status=None)
    assert fabric.port("h1")["state"] == "Down"
    said = fabric.command("fault", "add", "h1", "unplug", status=1)
    assert said.startswith("muslin: unplug: fault 1 has unplugged it already")
    fault.clear()
    wait_until(lambda: fabric.port("h1")["state"] == "Active", 20, "h1's port", 0.2)
    assert "PORT_ACTIVE" in fabric.run("h1", "ibv_devinfo")


def test_a_fault_before_the_first_program(fabric):
    """The adapter of a host that was not used has its IP address nevertheless, and its own objects do not count."""
    fatal = fabric.fault("h1", "fatal")
    small = fabric.fault("h5", "caps", max_mr_size=4096)
    refused = fabric.fault("h5", "refuse", object="mr", nth=1)
    for host in "h1", "h5":
        fabric.run(host, "ibstat")
        wait_until(lambda host=host: fabric.node(host)["objects"]["qp"], 10, "the queue pair for ARP")
    assert "Couldn't allocate PD" in fabric.run("h1", "ibv_rc_pingpong", status=1)
    assert "Couldn't register MR" in fabric.run("h5", "ibv_rc_pingpong", status=1)
    assert "has no IP" not in fabric.daemon_log() and refused.fired == [1]
    for fault in fatal, small, refused:
        fault.clear()
    args = ["rping", "-a", fabric.ip("h5"), "-C", 3, "-v"]
    assert fabric.pair(("h5", *args, "-s"), ("h1", *args, "-c"))[1].count("ping data") == 3


def test_unplugged_under_a_connection(fabric):
    """rdma_cm reports DEVICE_REMOVAL to rping's server; the other side only misses responses."""
    ip = fabric.ip("h5")
    server = fabric.start("h5", "rping", "-s", "-a", ip, "-v")
    client = wait_until(lambda: busy(fabric, ip), 20, "rping", 0.2)
    fabric.fault("h5", "unplug")
    assert "device removal" in server.wait(30, status=None)
    assert client.running()  # its retries continue


def busy(fabric, ip):
    client = fabric.start("h1", "rping", "-c", "-a", ip, "-v", "-C", "1000000")
    wait_until(lambda: "ping data" in client.output or not client.running(), 10, "rping's data")
    return client if client.running() else None


@pytest.mark.parametrize("errno, words", [("ENOMEM", "Cannot allocate memory"), ("EIO", "Input/output error")])
def test_posts_fail(fabric, program, errno, words):
    """
    Every fifth call of ibv_post_send() fails: none of its work requests is sent, now or later, and the rest arrives.
    """
    fault = fabric.fault("h1", "post", every=5, errno=errno)
    port = free_port()
    server = fabric.start("h5", program("post"), "serve", port).expect("serving")
    out = fabric.run("h1", program("post"), "send", fabric.ip("h5"), port, "23")
    assert re.findall(r"post (\d+): " + words, out) == ["5", "10", "15", "20"]
    assert "posted 19, completed 19\n" in out
    arrived = [str(i) for i in range(1, 24) if i % 5]
    assert f"received {' '.join(arrived)}\n" in server.wait(10)
    assert fault.fired == [5, 10, 15, 20]


PINGPONG = ["-p", free_port(), "-n", "100"]


@pytest.mark.parametrize(
    "profile, tool, words",
    [
        ("no-srq", ["ibv_srq_pingpong"], "Couldn't create SRQ"),
        ("few-qps", ["ibv_srq_pingpong"], "Couldn't create QP"),
        ("one-read", ["ibv_rc_pingpong"], None),
        ("plain", ["ibv_rc_pingpong"], "Couldn't create QP"),  # it needs 500 receives
        ("plain", ["ibv_rc_pingpong", "-r", "32"], None),
    ],
)
def test_reduced_capabilities(fabric, profile, tool, words):
    """
    Requirements of a program show on an adapter with smaller limits: some work anyway, others report what is missing.
    """
    fabric.fault("h1", "caps", profile=profile)
    if words:
        assert words in fabric.run("h1", *tool, *PINGPONG, status=1)
    else:
        _, out = fabric.pair(("h5", *tool, *PINGPONG), ("h1", *tool, *PINGPONG, fabric.ip("h5")))
        assert "100 iters" in out


def test_small_packets(fabric):
    """h1's port has an MTU of 1024: the subnet manager limits paths to it, and perftest uses them."""
    fabric.fault("h1", "degrade", mtu=1024)
    wait_until(lambda: fabric.port("h1")["state"] == "Active", 20, "h1's port", 0.2)
    assert re.search(r"max_mtu:\s+1024.*active_mtu:\s+1024", fabric.run("h1", "ibv_devinfo"), re.S)
    lids = {h: str(fabric.port(h)["lid"]) for h in ("h1", "h5")}
    path = fabric.run("h5", "saquery", "PR", "--slid", lids["h5"], "--dlid", lids["h1"])
    assert re.search(r"mtu\.+0x83", path), path
    args = ["ib_write_lat", "-p", free_port(), "-s", "4096", "-n", "100"]
    _, out = fabric.pair(("h5", *args), ("h1", *args, fabric.ip("h5")))
    assert re.search(r"^ Mtu\s+: 1024", out, re.M), out
