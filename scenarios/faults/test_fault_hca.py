# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What stock programs see of an adapter that fails: completions, queues, registrations, limits.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import re
import signal

import pytest
from muslin import free_port, wait_until
from pingpong import outcome

PINGPONG = ["ibv_rc_pingpong", "-p", free_port(), "-n", "500"]


@pytest.mark.parametrize(
    "status, words",
    [
        ("LOC_PROT_ERR", "local protection error (4)"),
        ("REM_ACCESS_ERR", "remote access error (10)"),
        ("REM_OP_ERR", "remote operation error (11)"),
        ("FATAL_ERR", "fatal error (19)"),
    ],
)
def test_a_completion_with_a_chosen_status(fabric, status, words):
    fabric.fault("h1", "complete", status=status, queue="send", nth=20)
    assert words in outcome(fabric, *PINGPONG)[0]


def test_receiver_not_ready_storm(fabric):
    """Fifty times in a row h5 has no receive posted: with endless RNR retries the traffic goes on after it."""
    storm = fabric.fault("h5", "rnr", after=100, first=50)
    fabric.pair(("h5", *PINGPONG), ("h1", *PINGPONG, fabric.ip("h5")), timeout=60)
    assert storm.hits == 50


def test_receiver_never_ready(fabric):
    """h5 never has a receive: perftest retries for ever."""
    fabric.fault("h5", "rnr", after=50)
    args = ["ib_send_lat", "-p", free_port(), "-n", "2000"]
    srv = fabric.start("h5", *args)
    cli = None

    def waits():
        nonlocal cli
        if cli is None or not cli.running():
            cli = fabric.start("h1", *args, fabric.ip("h5"))
        return fabric.faults[0].hits > 100

    wait_until(waits, 30, "RNR NAKs", 0.3)
    assert cli.running() and srv.running()


def test_a_queue_pair_fails_under_its_program(fabric):
    """What a forced transition to the error state looks like: what is posted is flushed."""
    fabric.fault("h1", "error", nth=30)
    assert re.search(r"Work Request Flushed Error \(5\)|retry counter exceeded", outcome(fabric, *PINGPONG)[0], re.I)


@pytest.mark.parametrize("what, words", [("mr", "register MR"), ("cq", "create CQ"), ("pd", "allocate PD"),
                                         ("qp", "create QP")])
def test_an_object_is_refused(fabric, what, words):
    fabric.fault("h1", "refuse", object=what)
    assert words in fabric.run("h1", *PINGPONG, status=1)


def test_capabilities(fabric):
    """A poorer adapter, to see whether a program copes: what it tells is what it does."""
    fabric.fault("h1", "caps", max_qp=10, max_srq=0, max_qp_rd_atom=1, max_sge=2)
    out = fabric.run("h1", "ibv_devinfo", "-v")
    for name, value in {"max_qp": 10, "max_srq": 0, "max_qp_rd_atom": 1, "max_sge": 2}.items():
        assert re.search(rf"{name}:\s+{value}\b", out), name
    assert "max_qp:\t\t\t\t10" not in fabric.run("h2", "ibv_devinfo", "-v")
    assert "SRQ" in fabric.run("h1", "ibv_srq_pingpong", status=1)


def test_device_fatal(fabric):
    """The device dies under a program: its event comes, its queue pairs fail, and nothing new can be made."""
    watch = fabric.start("h1", "ibv_asyncwatch")
    wait_until(lambda: "async event" in watch.output, 10, "ibv_asyncwatch")
    fault = fabric.fault("h1", "fatal")
    assert "allocate PD" in fabric.run("h1", *PINGPONG, status=1)
    fault.clear()
    fabric.pair(("h5", *PINGPONG), ("h1", *PINGPONG, fabric.ip("h5")))
    watch.signal(signal.SIGTERM)


@pytest.mark.parametrize("line, words", [
    ("h9 drop", "h9: there is no such node"),
    ("h1 drp", "drp: there is no such fault"),
    ("h1 drop opcode=foo", "opcode=foo: opcode takes"),
    ("h1 drop nth=1 every=2", "every: it contradicts nth"),
    ("leaf1 rnr", "leaf1: this fault needs a host"),
    ("leaf1 unplug", "leaf1: this fault needs a host"),
    ("h1 unplug now", "now: there is no \"now\""),
    ("h1 post nth=0", "nth=0: it would never fire"),
    ("h1 caps profile=poor", "profile=poor: profile takes"),
    ("h1 starve lane=9", "lane=9: ports have 8 data lanes"),
    ("h1 degrade mtu=1000", "mtu=1000: mtu takes"),
    ("sm die", "die: there is no such fault; of the subnet manager there are kill"),
    ("sm kill nth=1", "nth: kill takes no such key"),
    ("sm slow", "slow: it needs time="),
    ("h1 manager", "h1: it has a subnet manager"),
    ("h2 manager priority=16", "priority=16: priority takes"),
    ("h1 refuse object=mr errno=EFOO", "errno=EFOO: errno takes"),
])
def test_what_is_refused_names_the_word(shared_fabric, line, words):
    out = shared_fabric.command("fault", "add", *line.split(), status=1)
    assert out.startswith("muslin: " + words), out
    assert shared_fabric.command("fault", "list", "--json").strip() == "[]"
