# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# ruff: noqa: E501, I001, PLC3002, PLR0911, PLR0917, PLW2901 (a row of a table is one line, and says all that it differs in)
"""
Rules of communication management (IBTA volume 1, chapter 12, annex A11), a row each: hand-made MADs of its class from
h1 to librdmacm's listeners on h2. A row moves a connection to a state, sends one message, and names the expected
messages and the events of the program.

    h1 (datagrams made by hand) ---- leaf1 ---- h2 (rdma_cm programs)
"""

import itertools
import types

import mad
import pytest

PORT = 7471
SERVICE, UDP_SERVICE, NOBODY = 0x01060000 | PORT, 0x01110000 | PORT, 0x01060000 | 7999
RC, UC, RD, XRC = 0, 1, 2, 3


def message(attr, **fields):
    """Fields count from the end of the MAD header, as in chapter 12: name = (byte, bit, width)."""
    return mad.Format(attr, 256, tid=(64, 64), status=(32, 16), **{n: (192 + 8 * byte + bit, w) for n, (byte, bit, w) in fields.items()})


IDS = {"local": (0, 0, 32), "remote": (4, 0, 32)}
REQ = message(
    0x10, local=(0, 0, 32), service=(8, 0, 64), guid=(16, 0, 64), qpn=(32, 0, 24), resources=(35, 0, 8), depth=(39, 0, 8),
    remote_timeout=(43, 0, 5), transport=(43, 5, 2), psn=(44, 0, 24), local_timeout=(47, 0, 5), retry=(47, 5, 3),
    pkey=(48, 0, 16), mtu=(50, 0, 4), rnr=(50, 5, 3), cm_retries=(51, 0, 4), ext_transport=(51, 5, 3), llid=(52, 0, 16),
    rlid=(54, 0, 16), lgid=(56, 0, 128), rgid=(72, 0, 128), rate=(91, 2, 6), hops=(93, 0, 8), sl=(94, 0, 4),
    subnet_local=(94, 4, 1), ack_timeout=(95, 0, 5), alt_llid=(96, 0, 16), alt_rlid=(98, 0, 16), alt_lgid=(100, 0, 128),
    alt_rgid=(116, 0, 128), ip_version=(142, 0, 4), private=(140, 0, 736), major=(140, 0, 4), version=(141, 0, 4),
    src_port=(142, 0, 16), src_ip=(156, 0, 32), dst_ip=(172, 0, 32), src_ip6=(144, 0, 128), dst_ip6=(160, 0, 128), user=(176, 0, 448),
)  # fmt: skip
MRA = message(0x11, **IDS, message=(8, 0, 2), timeout=(9, 0, 5))
REJ = message(0x12, **IDS, message=(8, 0, 2), info_len=(9, 0, 7), reason=(10, 0, 16), info=(12, 0, 128), user=(84, 0, 1184))
REP = message(
    0x13, **IDS, qpn=(12, 0, 24), psn=(20, 0, 24), resources=(24, 0, 8), depth=(25, 0, 8), ack_delay=(26, 0, 5),
    failover=(26, 5, 2), rnr=(27, 0, 3), guid=(28, 0, 64), user=(36, 0, 1568),
)  # fmt: skip
RTU = message(0x14, **IDS)
DREQ = message(0x15, **IDS, qpn=(8, 0, 24), user=(12, 0, 1760))
DREP = message(0x16, **IDS)
SIDR_REQ = message(
    0x17, request=(0, 0, 32), pkey=(4, 0, 16), service=(8, 0, 64), major=(16, 0, 4), version=(17, 0, 4), src_port=(18, 0, 16),
    src_ip=(32, 0, 32), dst_ip=(48, 0, 32), user=(52, 0, 1440),
)  # fmt: skip
SIDR_REP = message(0x18, request=(0, 0, 32), code=(4, 0, 8), qpn=(8, 0, 24), service=(12, 0, 64), qkey=(20, 0, 32), user=(96, 0, 1088))
LAP = message(
    0x19, **IDS, qpn=(12, 0, 24), llid=(20, 0, 16), rlid=(22, 0, 16), lgid=(24, 0, 128), rgid=(40, 0, 128), sl=(62, 0, 4),
)  # fmt: skip
APR = message(0x1A, **IDS, code=(9, 0, 8))
FORMATS = {f.attr: (name, f) for name, f in globals().items() if isinstance(f, mad.Format)}
NAMES = {f: name for name, f in FORMATS.values()}


def ip(text):
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


class Net:
    def __init__(self, fabric):
        self.fabric = fabric
        self.forger, self.program = (mad.Program(fabric, h, "cm_agent") for h in ("h1", "h2"))
        self.here, self.there = (dict(a.call("info"), ip=fabric.ip(a.host)) for a in (self.forger, self.program))
        for end in (self.here, self.there):
            end["gid"] = int("".join(end["gid"].split(":")), 16)
        self.numbers = itertools.count(0x1000)
        self.listeners = [self.listen("tcp"), self.listen("udp")]
        self.ids, self.dreqs, self.unread = [], [], []

    def listen(self, ps):
        ident = self.program.call("create", ps=ps)["id"]
        self.program.call("listen", id=ident, to=["0.0.0.0", PORT])
        return ident

    def send(self, fmt, **fields):
        fields = {"tid": next(self.numbers)} | fields
        data = bytearray(fmt.pack(**fields))
        data[:4] = bytes([1, mad.CM, mad.VERSION[mad.CM], mad.SEND])
        data[16:18] = fmt.attr.to_bytes(2, "big")
        self.forger.call("send", lid=self.there["lid"], mad=bytes(data).hex())

    def wire(self):
        """Messages received by h1. An SIDR request, which is answered at once, shows that no other message follows."""
        fence = next(self.numbers)
        self.sidr(request=fence, service=0x7777)
        got = []
        for _ in range(4000):
            self.unread += self.forger.call("received")["mads"]
            while self.unread:
                data = bytes.fromhex(self.unread.pop(0))
                name, fmt = FORMATS[mad.get(data, 128, 16)]
                fields = types.SimpleNamespace(name=name, **fmt.unpack(data))
                if name == "SIDR_REP" and fields.request == fence:
                    return got
                got.append(fields)
                self.dreqs += [fields] if name == "DREQ" else []
        raise AssertionError("no answer to service ID resolution")

    def until(self, name, tries=4000):
        """Waits for a message of that name to h1."""
        for _ in range(tries):
            for m in self.wire():
                if m.name == name:
                    return m
        raise AssertionError(f"no {name} came")

    def event(self, timeout=0):
        ev = self.program.call("event", timeout=timeout)
        return types.SimpleNamespace(**ev) if ev else None

    def events(self):
        return list(iter(self.event, None))

    # messages

    def req(self, **more):
        """Sends a complete REQ of a new connection; returns its fields."""
        number = next(self.numbers)
        fields = {
            "local": number, "service": SERVICE, "guid": 0xF0F0, "qpn": number, "resources": 3, "depth": 4, "psn": 0x1234,
            "remote_timeout": 20, "local_timeout": 20, "retry": 6, "rnr": 5, "cm_retries": 3, "pkey": 0xFFFF, "mtu": 3,
            "llid": self.here["lid"], "rlid": self.there["lid"], "lgid": self.here["gid"], "rgid": self.there["gid"],
            "rate": 3, "subnet_local": 1, "ack_timeout": 20, "tid": number, "major": 0, "version": 4, "src_port": 5555,
            "src_ip": ip(self.here["ip"]), "dst_ip": ip(self.there["ip"]), "user": b"hello",
        } | more  # fmt: skip
        self.send(REQ, **fields)
        return fields

    def sidr(self, **more):
        fields = {
            "request": next(self.numbers), "service": UDP_SERVICE, "pkey": 0xFFFF, "major": 0, "version": 4, "src_port": 5555,
            "src_ip": ip(self.here["ip"]), "dst_ip": ip(self.there["ip"]),
        } | more  # fmt: skip
        self.send(SIDR_REQ, **fields)
        return fields

    def requested(self):
        """The event of a connection request, and its id."""
        ev = self.event(2000)
        assert ev and ev.type == "CONNECT_REQUEST", ev
        self.ids.append(ev.id)
        return ev

    def connection(self, state):
        """A connection in that state; the last message of h2, if any, is in .last."""
        c = types.SimpleNamespace(req=self.req(), remote=0, rep=None)
        c.id = self.requested().id
        if state == "REQ_RCVD":
            return c
        if state == "MRA_REQ_SENT":
            self.send(REQ, **c.req)
            c.remote = self.until("MRA").local
            return c
        self.program.call("accept", id=c.id, qpn=0x77)
        c.rep = self.until("REP")
        c.remote = c.rep.local
        if state == "REP_SENT":
            return c
        if state == "MRA_REP_RCVD":
            self.send(MRA, **self.both(c), message=1, timeout=20)
            assert not self.wire()
            return c
        self.send(RTU, **self.both(c))
        assert self.event(2000).type == "ESTABLISHED"
        if state == "ESTABLISHED":
            return c
        if state == "DREQ_RCVD":
            self.send(DREQ, **self.both(c), qpn=0x77)
            assert self.event(2000).type == "DISCONNECTED"
            c.wire = self.wire()
            return c
        self.program.call("disconnect", id=c.id)
        self.until("DREQ")
        if state == "DREQ_SENT":
            return c
        self.send(DREP, **self.both(c))
        self.wire()
        self.events()
        assert state == "TIMEWAIT"
        return c

    def both(self, c):
        return {"local": c.req["local"], "remote": c.remote, "tid": c.req["tid"]}

    def clean(self):
        for i in self.ids:
            self.program.call("destroy", id=i)
        self.ids = []
        self.wire()
        for m in self.dreqs:  # it would be retransmitted
            self.send(DREP, local=m.remote, remote=m.local, tid=m.tid)
        self.dreqs = []
        self.wire()
        self.events()

    def close(self):
        self.forger.close()
        self.program.close()


RULES, rule = mad.rule_table()


def same(what, expected, got):
    assert got == expected or (isinstance(expected, set) and got in expected), f"{what}: expected {expected}, got {got}"


def seen(n, wire=(), events=()):
    """Names of the received messages, and of the program's events. A set: one of its members."""
    same("messages", wire if isinstance(wire, set) else tuple(wire), tuple(m.name for m in n.wire()))
    same("events", events if isinstance(events, set) else tuple(events), tuple(e.type for e in n.events()))


def rejected(n, reason, message=0, **more):
    """The REQ with these fields is rejected by a REJ."""
    req = n.req(**more)
    got = n.wire()
    same("messages", ["REJ"], [m.name for m in got])
    same("remote communication ID", req["local"], got[0].remote)
    same("TID", req["tid"], got[0].tid)
    same("message rejected", message, got[0].message)
    same("reason", reason, got[0].reason)
    same("events", [], [e.type for e in n.events()])
    return got[0]


# ---- REQ ----

rule("REQ for a service without a listener: 'invalid service ID'", "12.6.7.2, 12.9.7.2", lambda n: rejected(n, 8, service=NOBODY))
rule("REQ for a service of another kind", "12.6.7.2", lambda n: rejected(n, 8, service=0x1122334455667788))
rule("REQ for reliable datagrams: 'invalid transport service type'", "12.6.7.2", lambda n: rejected(n, 9, transport=RD))
rule("REQ for XRC: 'invalid transport service type'", "12.6.7.2", lambda n: rejected(n, 9, transport=XRC, ext_transport=1))
for mtu in (0, 6, 15):
    rule(f"REQ with path MTU {mtu}: 'invalid path MTU'", "12.6.7.2", lambda n, mtu=mtu: rejected(n, 26, mtu=mtu))
rule("REQ to a GID that is not this port's: 'primary remote port GID rejected'", "12.6.7.2", lambda n: rejected(n, 12, rgid=0xFE80 << 112 | 0xDEAD))
rule("that REJ names the GID that would do", "12.6.7.2, table 109",
     lambda n: same("ARI", (16, n.there["gid"]), (lambda r: (r.info_len, r.info))(rejected(n, 12, rgid=0xFE80 << 112 | 0xDEAD))))  # fmt: skip
rule("REQ to a LID that is not this port's: 'primary remote port LID rejected'", "12.6.7.2", lambda n: rejected(n, 13, rlid=0x1234))
rule("REQ to LID 0", "12.6.7.2", lambda n: rejected(n, 13, rlid=0))


def accepted(n, **more):
    n.req(**more)
    return n.requested()


rule("the listener gets the REQ with its private data", "12.6.5, A11",
     lambda n: same("data", (b"hello".ljust(56, b"\0").hex(), n.listeners[0]), (lambda e: (e.data, e.listener))(accepted(n))))  # fmt: skip
rule("the event of a REQ has the peer's QPN", "12.6.5", lambda n: same("QPN", 0x4321, accepted(n, qpn=0x4321).qpn))
rule("REQ: the offered initiator depth is the listener's responder resources", "12.7.29", lambda n: same("resources", 9, accepted(n, depth=9).responder_resources))
rule("REQ: the offered responder resources are the listener's initiator depth", "12.7.28", lambda n: same("depth", 11, accepted(n, resources=11).initiator_depth))
rule("REQ: retry counts", "12.7.38, 12.7.39", lambda n: same("counts", (4, 3), (lambda e: (e.retry, e.rnr))(accepted(n, retry=4, rnr=3))))
rule("REQ for unreliable connections", "12.6.5", lambda n: accepted(n, transport=UC))
for mtu in (1, 2, 3, 4, 5):
    rule(f"REQ with path MTU code {mtu}", "12.7.26", lambda n, mtu=mtu: accepted(n, mtu=mtu))
rule("the same communication ID from another CA is another connection", "12.9.8.3.1", lambda n: [accepted(n, local=0x777, guid=g, qpn=q) for g, q in ((1, 71), (2, 72))])
rule("REQ has no response until the program responds", "12.9.7.2", lambda n: [accepted(n), seen(n)])


@rule("an REQ with the QP of a connection: 'stale connection', and that one is disconnected", "12.9.8.3.1")
def _(n):
    c = n.connection("ESTABLISHED")
    new = n.req(qpn=c.req["qpn"], local=next(n.numbers))
    got = n.wire()
    same("messages", ["DREQ", "REJ"], sorted(m.name for m in got))
    rej = next(m for m in got if m.name == "REJ")
    same("REJ", (10, new["local"], 0), (rej.reason, rej.remote, rej.message))


# ---- annex A11 ----

rule("A11: an unknown major version", "A11.4", lambda n: rejected(n, {8, 28}, major=3))
rule("A11: an unknown version of IP", "A11.4", lambda n: rejected(n, {8, 28}, version=5))
rule("A11: IPv6 to a listener of IPv4", "A11.4", lambda n: rejected(n, {8, 28}, version=6, src_ip6=1, dst_ip6=2))
rule("A11: the private data begin behind the header", "A11.4", lambda n: same("bytes", 112, len(accepted(n).data)))
rule("A11: the header's other fields may be anything", "A11.4", lambda n: accepted(n, src_port=0))
rule("A11: the service ID has the protocol and the port", "A11.3", lambda n: rejected(n, 8, service=0x01110000 | PORT))


# ---- replies of the program ----


def accept(n, **more):
    req = n.req()
    ev = n.requested()
    n.program.call("accept", id=ev.id, **more)
    return req, n.until("REP")


rule("REP has both communication IDs and the REQ's TID", "12.6.8", lambda n: (lambda r: same("REP", (r[0]["local"], r[0]["tid"]), (r[1].remote, r[1].tid)))(accept(n)))
rule("REP has the program's QPN", "12.6.8", lambda n: same("QPN", 0x123, accept(n, qpn=0x123)[1].qpn))
rule("REP has the program's private data", "12.6.8", lambda n: same("data", b"welcome".ljust(196, b"\0"), accept(n, data=b"welcome".hex())[1].user.to_bytes(196, "big")))
rule("REP has the program's RNR retry count", "12.6.8", lambda n: same("count", 2, accept(n, rnr=2)[1].rnr))
rule("REP has a CA GUID", "12.6.8", lambda n: same("GUID", int(n.fabric.node("h2")["guid"], 16), accept(n)[1].guid))
rule("REP: no alternate path, no failover", "12.6.8, 12.7.37", lambda n: same("failover", 1, accept(n)[1].failover))
rule("REP has the responder resources that the program wants", "12.6.8", lambda n: same("resources", (1, 1), (lambda r: (r.resources, r.depth))(accept(n)[1])))


def reject(n, **more):
    req = n.req()
    n.program.call("reject", id=n.requested().id, **more)
    return req, n.until("REJ")


rule("the program rejects: 'consumer reject' of an REQ", "12.6.7.2", lambda n: same("REJ", (28, 0), (lambda r: (r.reason, r.message))(reject(n)[1])))
rule("REJ has the REQ's communication ID and TID", "12.6.7", lambda n: (lambda r: same("REJ", (r[0]["local"], r[0]["tid"]), (r[1].remote, r[1].tid)))(reject(n)))
rule("REJ has the program's private data", "12.6.7", lambda n: same("data", b"no", reject(n, data=b"no".hex())[1].user.to_bytes(148, "big")[:2]))
rule("the program destroys the id of a request: REJ", "12.9.7", lambda n: [n.req(), n.program.call("destroy", id=n.requested().id), n.ids.clear(), n.until("REJ")])


@rule("the program destroys the id of a connection: DREQ", "12.9.7")
def _(n):
    c = n.connection("ESTABLISHED")
    n.program.call("destroy", id=c.id)
    n.ids.clear()
    m = n.until("DREQ")
    same("DREQ", (c.req["local"], c.remote, c.req["qpn"]), (m.remote, m.local, m.qpn))


@rule("the program disconnects: DREQ names the peer's QPN", "12.6.10")
def _(n):
    c = n.connection("ESTABLISHED")
    n.program.call("disconnect", id=c.id)
    m = n.until("DREQ")
    same("DREQ", (c.req["local"], c.remote, c.req["qpn"]), (m.remote, m.local, m.qpn))


# ---- time-outs ----


@rule("REP is retried Max CM Retries times, then REJ 'timeout'", "12.9.8.5")
def _(n):
    n.req(local_timeout=5, remote_timeout=5, ack_timeout=1, cm_retries=3)
    n.program.call("accept", id=n.requested().id)
    ev = n.event(3000)
    same("event", "UNREACHABLE", ev and ev.type)
    got = n.wire()
    same("messages", ["REP"] * 4 + ["REJ"], [m.name for m in got])
    same("the same REP", 1, len({(m.local, m.remote, m.qpn, m.psn, m.tid) for m in got[:4]}))
    same("REJ", (4, 2), (got[4].reason, got[4].message))  # of no message


@rule("a REJ 'timeout' has the CA GUID", "12.6.7.2, table 109")
def _(n):
    n.req(local_timeout=5, remote_timeout=5, ack_timeout=1, cm_retries=0)
    n.program.call("accept", id=n.requested().id)
    m = n.until("REJ")
    same("ARI", (8, int(n.fabric.node("h2")["guid"], 16)), (m.info_len, m.info >> 64))


@rule("DREQ is retried Max CM Retries times, then timewait", "12.9.8.5")
def _(n):
    req = n.req(local_timeout=14, remote_timeout=14, ack_timeout=1, cm_retries=15)
    c = types.SimpleNamespace(req=req, id=n.requested().id)
    n.program.call("accept", id=c.id)
    c.remote = n.until("REP").local
    n.send(RTU, **n.both(c))
    assert n.event(2000).type == "ESTABLISHED"
    n.wire()
    n.program.call("disconnect", id=c.id)
    ev = n.event(5000)
    same("event", True, ev.type in ("DISCONNECTED", "TIMEWAIT_EXIT"))
    same("messages", ["DREQ"] * 16, [m.name for m in n.wire()])


@rule("an MRA for REP delays its retries", "12.6.6, 12.9.8.5")
def _(n):
    req = n.req(local_timeout=16, remote_timeout=16, ack_timeout=1, cm_retries=1)
    c = types.SimpleNamespace(req=req, id=n.requested().id)
    n.program.call("accept", id=c.id)
    c.remote = n.until("REP").local
    n.send(MRA, **n.both(c), message=1, timeout=20)  # 4.3 s
    same("event", None, n.event(700))  # the REP would have timed out after 537 ms
    n.send(RTU, **n.both(c))
    same("event", "ESTABLISHED", n.event(2000).type)


# ---- each message in each state (12.9.7.2) ----

S = ("REQ_RCVD", "MRA_REQ_SENT", "REP_SENT", "MRA_REP_RCVD", "ESTABLISHED", "DREQ_SENT", "DREQ_RCVD", "TIMEWAIT")
NOTHING = ((), ())
MESSAGES = {
    "REQ again": lambda n, c: n.send(REQ, **c.req),
    "MRA for REP": lambda n, c: n.send(MRA, **n.both(c), message=1, timeout=20),
    "MRA for REQ": lambda n, c: n.send(MRA, **n.both(c), message=0, timeout=20),
    "MRA for LAP": lambda n, c: n.send(MRA, **n.both(c), message=2, timeout=20),
    "REJ": lambda n, c: n.send(REJ, **n.both(c), message=1, reason=28),
    "REP": lambda n, c: n.send(REP, **n.both(c), qpn=c.req["qpn"], guid=c.req["guid"]),
    "RTU": lambda n, c: n.send(RTU, **n.both(c)),
    "DREQ": lambda n, c: n.send(DREQ, **n.both(c), qpn=0x77),
    "DREP": lambda n, c: n.send(DREP, **n.both(c)),
    "APR": lambda n, c: n.send(APR, **n.both(c)),
}
# (state, message): received messages, events. Others are discarded. As in Linux, a program gets no event of a
# connection that it has not accepted yet, and a DREQ is answered when the program disconnects.
ANSWERS = {
    ("REQ_RCVD", "REQ again"): (("MRA",), ()),
    ("MRA_REQ_SENT", "REQ again"): (("MRA",), ()),
    ("REP_SENT", "REQ again"): (("REP",), ()),
    ("REP_SENT", "REJ"): ((), ("REJECTED",)),
    ("REP_SENT", "RTU"): ((), ("ESTABLISHED",)),
    ("REP_SENT", "DREQ"): ((), ("DISCONNECTED",)),
    ("MRA_REP_RCVD", "REJ"): ((), ("REJECTED",)),
    ("MRA_REP_RCVD", "RTU"): ((), ("ESTABLISHED",)),
    ("MRA_REP_RCVD", "DREQ"): ((), ("DISCONNECTED",)),
    ("ESTABLISHED", "REJ"): ((), ("REJECTED",)),
    ("ESTABLISHED", "DREQ"): ((), ("DISCONNECTED",)),
    ("DREQ_SENT", "REJ"): ((), ("REJECTED",)),
    ("DREQ_SENT", "DREQ"): ((), ("DISCONNECTED",)),
    ("DREQ_SENT", "DREP"): ((), {(), ("DISCONNECTED",)}),
    ("DREQ_RCVD", "DREP"): ((), {(), ("DISCONNECTED",)}),
    ("TIMEWAIT", "REQ again"): (("REJ",), ()),
    ("TIMEWAIT", "DREQ"): (("DREP",), ()),
}
for state in S:
    for word, fn in MESSAGES.items():
        if state == "REQ_RCVD" and word not in ("REQ again",):
            continue  # the peer does not know the communication ID yet

        @rule(f"{word} in state {state}", "12.9.7.2")
        def _(n, state=state, word=word, fn=fn):
            c = n.connection(state)
            fn(n, c)
            seen(n, *ANSWERS.get((state, word), NOTHING))


for state in ("ESTABLISHED", "DREQ_SENT", "REP_SENT"):

    @rule(f"DREQ in state {state}: the program disconnects, DREP has the DREQ's TID", "12.6.11, 12.9.7.2")
    def _(n, state=state):
        c = n.connection(state)
        n.send(DREQ, **(n.both(c) | {"tid": 0x4711}), qpn=0x77)
        assert n.event(2000).type == "DISCONNECTED"
        n.program.call("disconnect", id=c.id)
        m = n.until("DREP")
        same("DREP", (c.remote, c.req["local"], 0x4711), (m.local, m.remote, m.tid))


@rule("a request that its peer has withdrawn by REJ is not accepted", "12.9.7.2")
def _(n):
    c = n.connection("MRA_REQ_SENT")
    MESSAGES["REJ"](n, c)
    seen(n)
    with pytest.raises(AssertionError, match="errno"):
        n.program.call("accept", id=c.id)


@rule("messages discarded in REP_SENT do not change the state", "12.9.7.2")
def _(n):
    c = n.connection("REP_SENT")
    for word in ("MRA for REQ", "MRA for LAP", "REP", "DREP", "APR"):
        MESSAGES[word](n, c)
    MESSAGES["RTU"](n, c)
    seen(n, (), ("ESTABLISHED",))


@rule("messages discarded in ESTABLISHED do not change the state", "12.9.7.2")
def _(n):
    c = n.connection("ESTABLISHED")
    for word in ("REQ again", "MRA for REP", "MRA for REQ", "REP", "RTU", "DREP", "APR"):
        MESSAGES[word](n, c)
    seen(n)
    MESSAGES["DREQ"](n, c)
    seen(n, (), ("DISCONNECTED",))


# ---- communication IDs ----

for state, word in (("REP_SENT", "RTU"), ("REP_SENT", "REJ"), ("REP_SENT", "DREQ"), ("ESTABLISHED", "DREQ"), ("DREQ_SENT", "DREP")):
    for wrong in ("local", "remote"):

        @rule(f"{word} in state {state} with a wrong {wrong} communication ID does not match the connection", "12.9.7, 12.7.1")
        def _(n, state=state, word=word, wrong=wrong):
            c = n.connection(state)
            if wrong == "local":
                c.req["local"] ^= 0x5000
            else:
                c.remote ^= 0x5000
            MESSAGES[word](n, c)
            seen(n, ("DREP",) if word == "DREQ" else (), ())


@rule("DREQ with a wrong QPN does not match the connection", "12.6.10, 12.7.13")
def _(n):
    c = n.connection("ESTABLISHED")
    n.send(DREQ, **n.both(c), qpn=0x78)
    seen(n)


rule("the response to DREQ for no connection is DREP with its IDs", "12.9.8.3",
     lambda n: [n.send(DREQ, local=0x91, remote=0x92, qpn=1, tid=0x93),
                same("DREP", [("DREP", 0x92, 0x91, 0x93)], [(m.name, m.local, m.remote, m.tid) for m in n.wire()])])  # fmt: skip
rule("REP for no connection is rejected: 'invalid communication ID'", "12.6.7.2",
     lambda n: [n.send(REP, local=0x91, remote=0x92, qpn=1, tid=0x93),
                same("REJ", [("REJ", 6, 1, 0x91)], [(m.name, m.reason, m.message, m.remote) for m in n.wire()])])  # fmt: skip
for fmt in (RTU, REJ, MRA, DREP, APR):
    rule(f"{NAMES[fmt]} for no connection is discarded", "12.9.7", lambda n, fmt=fmt: [n.send(fmt, local=0x91, remote=0x92), seen(n)])
rule("LAP for no connection is refused: 'invalid communication ID'", "12.8.2, table 117",
     lambda n: [n.send(LAP, local=0x91, remote=0x92), same("APR", [("APR", 1)], [(m.name, getattr(m, "code", None)) for m in n.wire()])],
     cannot="as in Linux, a LAP for no connection is discarded")  # fmt: skip


# ---- alternate paths ----


def lap(n, state="ESTABLISHED", **more):
    c = n.connection(state)
    fields = {"qpn": 0x77, "llid": n.here["lid"], "rlid": n.there["lid"], "lgid": n.here["gid"], "rgid": n.there["gid"]} | more
    n.send(LAP, **n.both(c), **fields)
    return [(m.name, m.code) for m in n.wire()]


rule("LAP with the path in use: 'the path is the current one'", "12.8.2, table 117", lambda n: same("APR", [("APR", 5)], lap(n)))
rule("LAP with a wrong QPN", "12.8.2, table 117", lambda n: same("APR", [("APR", 6)], lap(n, qpn=0x78)))
rule("LAP with a LID that is not this port's", "12.8.2, table 117", lambda n: same("APR", [("APR", 7)], lap(n, rlid=0x1234)))
rule("LAP with a GID that is not this port's", "12.8.2, table 117", lambda n: same("APR", [("APR", 8)], lap(n, rgid=0xFE80 << 112 | 0xDEAD)))
rule("LAP for a connection without a queue pair", "12.8.2, table 117", lambda n: same("APR", {(("APR", 2),), (("APR", 3),)}, tuple(lap(n, llid=0x33))))
for state in ("REP_SENT", "DREQ_SENT", "TIMEWAIT"):
    rule(f"LAP in state {state} is discarded", "12.9.7.2", lambda n, state=state: same("messages", [], lap(n, state)))


@rule("a repeated LAP gets its APR again", "12.9.8.6")
def _(n):
    c = n.connection("ESTABLISHED")
    for _ in range(2):
        n.send(LAP, **(n.both(c) | {"tid": 0x777}), qpn=0x78)
    same("APRs", [("APR", 6, 0x777)] * 2, [(m.name, m.code, m.tid) for m in n.wire()])


# ---- service ID resolution ----


def resolved(n, **more):
    """The SIDR_REP of the CM itself to a SIDR_REQ with these fields."""
    req = n.sidr(**more)
    got = n.wire()
    same("messages", ["SIDR_REP"], [m.name for m in got])
    same("IDs", (req["request"], req["service"]), (got[0].request, got[0].service))
    return got[0]


rule("SIDR_REQ for a service without a listener: 'service ID not supported'", "12.11.2, table 121", lambda n: same("status", 1, resolved(n, service=0x01110000 | 7999).code))
rule("SIDR_REQ for a listener of connections", "12.11.2", lambda n: same("status", 1, resolved(n, service=SERVICE).code))
rule("SIDR_REQ: A11's version is checked", "A11.4", lambda n: same("status", {1, 2}, resolved(n, version=5).code))


def requested(n, **more):
    req = n.sidr(**more)
    return req, n.requested()


@rule("the response to SIDR_REQ has QPN and Q_Key", "12.11.2")
def _(n):
    req, ev = requested(n)
    n.program.call("accept", id=ev.id, qpn=0x99)
    m = n.until("SIDR_REP")
    same("SIDR_REP", (req["request"], 0, 0x99, UDP_SERVICE), (m.request, m.code, m.qpn, m.service))
    assert m.qkey, "no Q_Key"


@rule("the listener gets the SIDR_REQ with its private data", "12.11.1, A11")
def _(n):
    _, ev = requested(n, user=b"who?")
    same("data", b"who?".hex(), ev.data[:8])


@rule("SIDR_REP has the program's private data", "12.11.2")
def _(n):
    _, ev = requested(n)
    n.program.call("accept", id=ev.id, qpn=0x99, data=b"me".hex())
    same("data", b"me", n.until("SIDR_REP").user.to_bytes(136, "big")[:2])


@rule("the program rejects a SIDR_REQ", "12.11.2, table 121")
def _(n):
    _, ev = requested(n)
    n.program.call("reject", id=ev.id)
    same("status", 2, n.until("SIDR_REP").code)


@rule("a repeated SIDR_REQ is one request", "12.11.3")
def _(n):
    req, ev = requested(n)
    n.send(SIDR_REQ, **req)
    seen(n)
    n.program.call("accept", id=ev.id, qpn=0x99)
    n.until("SIDR_REP")


rule("an unrequested SIDR_REP is discarded", "12.11.3", lambda n: [n.send(SIDR_REP, request=0x55), seen(n)])


# ---- active side: a program on h2 ----


def resolve(n, host, port, ps="tcp"):
    """An id with resolved address and route to @host."""
    ident = n.program.call("create", ps=ps)["id"]
    n.ids.append(ident)
    n.program.call("resolve", id=ident, to=[n.fabric.ip(host), port])
    same("event", "ADDR_RESOLVED", n.event(3000).type)
    n.program.call("route", id=ident)
    same("event", "ROUTE_RESOLVED", n.event(3000).type)
    return ident


@rule("a program connects without a listener: REJECTED, status 8", "12.6.7.2")
def _(n):
    n.program.call("connect", id=resolve(n, "h3", 7999))
    ev = n.event(3000)
    same("event", ("REJECTED", 8), (ev.type, ev.status))


@rule("a program resolves an unknown service: UNREACHABLE, status 1", "12.11.2")
def _(n):
    n.program.call("connect", id=resolve(n, "h3", 7999, "udp"))
    ev = n.event(3000)
    same("event", ("UNREACHABLE", 1), (ev.type, ev.status))


@rule("a program that connects twice is refused", "12.9.6")
def _(n):
    ident = resolve(n, "h3", 7999)
    n.program.call("connect", id=ident)
    with pytest.raises(AssertionError, match="Invalid|errno"):
        n.program.call("connect", id=ident)


@rule("a program that accepts twice is refused", "12.9.6")
def _(n):
    c = n.connection("REP_SENT")
    with pytest.raises(AssertionError, match="errno"):
        n.program.call("accept", id=c.id)


@rule("a program connects to itself", "12.9.6, 12.9.7")
def _(n):
    ident = resolve(n, "h2", PORT)
    n.program.call("connect", id=ident, data=b"self".hex())
    ev = n.requested()
    same("data", b"self".hex(), ev.data[:8])
    n.program.call("accept", id=ev.id)
    same("event", "CONNECT_RESPONSE", n.event(3000).type)
    n.program.call("establish", id=ident)
    same("event", "ESTABLISHED", n.event(3000).type)


@pytest.fixture(scope="module")
def net(shared_fabric):
    n = Net(shared_fabric)
    yield n
    n.close()


@pytest.mark.parametrize("row", RULES, ids=[f"{r.name} ({r.clause})" for r in RULES])
def test_rule(row, net):
    try:
        if row.cannot:
            with pytest.raises(AssertionError):
                row.fn(net)
            pytest.xfail(row.cannot)
        row.fn(net)
    except AssertionError as e:
        raise AssertionError(f"{row.name} (IBTA {row.clause}): {e}") from None
    finally:
        net.clean()
