# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Stock programs on a failing adapter: completions, queues, registrations, limits.

    h1 -- leaf1 --+-- spine1 --+-- leaf2 -- h5
                  +-- spine2 --+
"""

import re
import signal

import pytest
from muslin import ProcessFailed, WaitTimeout, free_port, pair, wait_until
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


@pytest.mark.parametrize(
    "tool, fault, words",
    [
        ("ib_write_bw", {"action": "complete", "opcode": "write", "nth": 10, "status": "REM_OP_ERR"}, "status 11"),
        ("ib_read_bw", {"action": "complete", "opcode": "read", "nth": 10, "status": "GENERAL_ERR"}, "status 21"),
        ("ib_atomic_bw", {"action": "post", "opcode": "atomic", "nth": 10, "errno": "EIO"}, "post send"),
    ],
)
def test_an_error_path_by_opcode(fabric, tool, fault, words):
    """The tenth request of an opcode fails, and no other: perftest reports it. Its other SENDs do not count."""
    armed = fabric.fault("h1", **fault)
    other = fabric.fault("h1", "complete", opcode="comp_swap,bind_mw", status="FATAL_ERR", expect=False)
    said = outcome(fabric, tool, "-p", free_port(), "-n", 100, "-Q", 1)
    assert words in "".join(said).lower(), said
    assert armed.fired == [10] and not other.matches


@pytest.fixture
def immediate(fabric):
    """immediate(): the outputs of client h1 and server h5 of qperf, which posts RDMA WRITEs with immediate data."""
    qperf = ["qperf", "-lp", free_port()]
    server = fabric.start("h5", *qperf)

    def run():
        out = fabric.run("h1", *qperf, "-t", "1", fabric.ip("h5"), "rc_rdma_write_bw", status=None)
        return out + server.output

    yield run
    server.kill()


@pytest.mark.parametrize(
    "place, keys, words",
    [
        ("h1", {"action": "post", "opcode": "write_imm", "errno": "EIO"}, "write with immediate: Input/output error"),
        ("h5", {"action": "complete", "opcode": "recv_imm", "status": "LOC_PROT_ERR"}, "Local protection error"),
    ],
    ids=["write_imm", "recv_imm"],
)
def test_an_error_of_writes_with_immediate_data(fabric, immediate, place, keys, words):
    """The client cannot post the third one, or the receive that it completes at the server fails."""
    armed = fabric.fault(place, after=2, **keys)
    wait_until(lambda: words in immediate(), 60, "qperf's message", 0.3)  # a client may come before the server listens
    assert armed.fired[0] == 3


def test_an_event_of_a_write_with_immediate_data(fabric, immediate):
    event = fabric.fault("h1", "event", name="SM_CHANGE", opcode="write_imm", nth=3)
    watch = fabric.start("h1", "ibv_asyncwatch")
    wait_until(lambda: "async event" in watch.output, 10, "ibv_asyncwatch")
    wait_until(lambda: "bw  =" in immediate() and event.hits, 60, "qperf's result", 0.3)
    assert event.fired == [3]
    watch.expect("IBV_EVENT_SM_CHANGE")
    watch.kill()


def test_writes_without_immediate_data_are_others(fabric):
    """ib_write_bw posts none with immediate data."""
    others = fabric.fault("h1", "complete", opcode="write_imm", status="REM_OP_ERR", expect=False)
    armed = fabric.fault("h1", "event", opcode="write", name="SM_CHANGE", nth=50)
    args = ["ib_write_bw", "-p", free_port(), "-n", 100]
    fabric.pair(("h5", *args), ("h1", *args, fabric.ip("h5")))
    assert armed.fired == [50] and not others.matches


# Two hosts h1 and h2; the adapter has the same faults on links of all kinds.
LINKS = {
    "InfiniBand": "leafs 1 hosts 2\n",
    "Ethernet": "ethernet sw1\nhost h1 ether sw1 ip 192.168.1.1/24\nhost h2 ether sw1 ip 192.168.1.2/24\n",
    "iWARP": "host h1 iwarp {}\nhost h2 iwarp {}\n",
}


@pytest.fixture(scope="module", params=LINKS)
def linked(request, muslin_make_fabric, muslin_addresses):
    fabric = muslin_make_fabric("hca-" + request.param.lower())
    fabric.up(LINKS[request.param].format(*muslin_addresses(2)))
    yield fabric
    fabric.down()


def rping(fabric, count=50):
    """An rping whose server is h2: returns the outputs of server and client, and the server's process."""
    args = ["-a", fabric.ip("h2"), "-C", count]
    server = fabric.start("h2", "rping", "-s", *args)
    try:
        said = pair.run(server, lambda: fabric.start("h1", "rping", "-c", *args, "-v"), 30)
    except ProcessFailed as failed:
        said = str(failed)
    return server.wait(30, status=None), said, server


def test_a_post_fails_on_each_link(linked):
    """The third RDMA WRITE of the server cannot be posted."""
    with linked.fault("h2", "post", opcode="write", nth=3, errno="EIO") as post:
        out, said, server = rping(linked)
        assert post.fired == [3] and server.popen.returncode, (out, said)
        assert said.count("ping data") == 2


@pytest.mark.parametrize("opcode", ["send", "read", "recv"])
def test_an_event_on_each_link(linked, opcode):
    """The tenth request of an opcode, or receive, raises an event for every program that waits for one."""
    with linked.fault("h2", "event", name="SM_CHANGE", opcode=opcode, nth=10) as event:
        watch = linked.start("h2", "ibv_asyncwatch")
        wait_until(lambda: "async event" in watch.output, 10, "ibv_asyncwatch")
        assert rping(linked)[1].count("ping data") == 50
        assert event.fired == [10]
        watch.expect("IBV_EVENT_SM_CHANGE")
        watch.kill()


def test_a_lost_completion_on_each_link(linked):
    """The third WRITE of the server is executed, and its completion lost: it waits for ever, and so does its client."""
    args = ["-a", linked.ip("h2"), "-C", 50]
    with linked.fault("h2", "lose", opcode="write", nth=3) as lose:
        server, client = linked.start_pair(
            ("h2", "rping", "-s", *args), ("h1", "rping", "-c", *args, "-v"), lambda: lose.hits, timeout=30
        )
        with pytest.raises(WaitTimeout):
            wait_until(lambda: not (server.running() and client.running()), 1, "the end of either")
        assert lose.fired == [3]
        client.kill()
        server.kill()


def test_a_lost_completion(fabric):
    """A request is executed, and its completion is lost: the program waits forever."""
    lost = fabric.fault("h1", "lose", opcode="write", nth=5)
    args = ["ib_write_lat", "-p", free_port(), "-n", "1000"]
    srv, cli = fabric.start_pair(("h5", *args), ("h1", *args, fabric.ip("h5")), lambda: lost.hits, timeout=30)
    with pytest.raises(ProcessFailed, match="still ran"):
        cli.wait(1)
    srv.kill()


def test_an_event_by_opcode(fabric):
    """The twentieth send raises an event, for every program that waits for events of the adapter."""
    event = fabric.fault("h1", "event", name="SM_CHANGE", opcode="send", nth=20)
    watch = fabric.start("h1", "ibv_asyncwatch")
    wait_until(lambda: "async event" in watch.output, 10, "ibv_asyncwatch")
    fabric.pair(("h5", *PINGPONG), ("h1", *PINGPONG, fabric.ip("h5")))
    assert event.fired == [20]
    watch.expect("IBV_EVENT_SM_CHANGE")


def test_the_sa_drops_responses_of_one_attribute(fabric):
    silent = fabric.fault("sm", "silent", attr="PathRecord")
    assert "NodeRecord" in fabric.run("h2", "saquery", "NR")
    fabric.run("h2", "saquery", "-t", "300", "--src-to-dst", "h1:h5", status=None)
    assert silent.hits


def test_receiver_not_ready_storm(fabric):
    """Fifty times in a row h5 has no receive posted: with unlimited RNR retries the traffic continues afterwards."""
    storm = fabric.fault("h5", "rnr", after=100, first=50)
    fabric.pair(("h5", *PINGPONG), ("h1", *PINGPONG, fabric.ip("h5")), timeout=60)
    assert storm.hits == 50


def test_receiver_never_ready(fabric):
    """h5 never has a receive posted: perftest retries forever."""
    fabric.fault("h5", "rnr", after=50)
    args = ["ib_send_lat", "-p", free_port(), "-n", "2000"]
    srv, cli = fabric.start_pair(
        ("h5", *args), ("h1", *args, fabric.ip("h5")), lambda: fabric.faults[0].hits > 100, timeout=30
    )
    assert cli.running() and srv.running()


def test_a_queue_pair_fails_under_its_program(fabric):
    """A forced transition to the error state: posted requests are flushed."""
    fabric.fault("h1", "error", nth=30)
    assert re.search(r"Work Request Flushed Error \(5\)|retry counter exceeded", outcome(fabric, *PINGPONG)[0], re.I)


@pytest.mark.parametrize("what, words", [("mr", "register MR"), ("cq", "create CQ"), ("pd", "allocate PD"),
                                         ("qp", "create QP")])
def test_an_object_is_refused(fabric, what, words):
    fabric.fault("h1", "refuse", object=what)
    assert words in fabric.run("h1", *PINGPONG, status=1)


def test_capabilities(fabric):
    """Smaller limits, to test whether a program copes: the device enforces the limits that it reports."""
    fabric.fault("h1", "caps", max_qp=10, max_srq=0, max_qp_rd_atom=1, max_sge=2)
    out = fabric.run("h1", "ibv_devinfo", "-v")
    for name, value in {"max_qp": 10, "max_srq": 0, "max_qp_rd_atom": 1, "max_sge": 2}.items():
        assert re.search(rf"{name}:\s+{value}\b", out), name
    assert "max_qp:\t\t\t\t10" not in fabric.run("h2", "ibv_devinfo", "-v")
    assert "SRQ" in fabric.run("h1", "ibv_srq_pingpong", status=1)


def test_device_fatal(fabric):
    """DEVICE_FATAL under a program: the event is raised, its queue pairs fail, and no object can be created."""
    watch = fabric.start("h1", "ibv_asyncwatch")
    wait_until(lambda: "async event" in watch.output, 10, "ibv_asyncwatch")
    fault = fabric.fault("h1", "fatal")
    assert "allocate PD" in fabric.run("h1", *PINGPONG, status=1)
    fault.clear()
    fabric.pair(("h5", *PINGPONG), ("h1", *PINGPONG, fabric.ip("h5")))
    watch.signal(signal.SIGTERM)


@pytest.mark.parametrize("line, words", [
    ("h9 drop", "h9: there is no such node, but h1"),
    ("leaf9:1 drop", "leaf9:1: there is no such node, but leaf1"),
    ("h1 drp", "drp: there is no such fault"),
    ("h1 drop opcode=foo", "opcode=foo: opcode takes"),
    ("h1 drop nth=1 every=2", "every: it contradicts nth"),
    ("leaf1 rnr", "leaf1: this fault needs a host"),
    ("leaf1 unplug", "leaf1: this fault needs a host"),
    ("h1 unplug now", "now: there is no \"now\""),
    ("h1 post nth=0", "nth=0: it would never fire"),
    ("h1 caps profile=poor", "profile=poor: profile takes"),
    ("h1 rnr opcode=write", 'opcode=write: there is no "opcode"; there are: qpn= nth= every= first='),
    ("h1 starve lane=9", "lane=9: ports have 8 data lanes"),
    ("h1 degrade mtu=1000", "mtu=1000: mtu takes"),
    ("sm die", "die: there is no such fault; of the subnet manager there are kill"),
    ("sm kill nth=1", "nth=1: there is no \"nth\"; there are: for="),
    ("sm slow", "slow: it needs time="),
    ("h1 manager", "h1: it has a subnet manager"),
    ("h2 manager priority=16", "priority=16: priority takes"),
    ("h1 refuse object=mr errno=EFOO", "errno=EFOO: errno takes"),
])
def test_what_is_refused_names_the_word(shared_fabric, line, words):
    out = shared_fabric.command("fault", "add", *line.split(), status=1)
    assert out.startswith("muslin: " + words), out
    assert shared_fabric.command("fault", "list", "--json").strip() == "[]"
