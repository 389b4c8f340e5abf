# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# ruff: noqa: E501, I001, PLC3002, PLR0911, PLR0917, PLW2901 (a row of a table is one line, and says all that it differs in)
"""
Rules of subnet management (IBTA volume 1, chapter 14), its agents' attributes, and performance management (chapter
16), a row each, through libibumad. h1 is the only manager of the subnet: it has set LID 1 for itself, LID 2 for h2 and
LID 3 for leaf1, and receives the traps.

    h1 (LID 1) ---- leaf1 (LID 3) ---- h2 (LID 2)
                      |
                    spine1 (no LID)
"""

import time
import types

import mad
import pytest
from mad import BAD_METHOD, BAD_METHOD_ATTR, BAD_VALUE, BAD_VERSION, GET, OK, RESP, SET, SILENCE, TRAP
from muslin import wait_until

NODE, SWITCH, GUIDS, PORT, PKEYS = mad.NODE_INFO, mad.SWITCH_INFO, mad.GUID_INFO, mad.PORT_INFO, mad.PKEY_TABLE
SLVL, ARB, LFT, MFT, DESC, SM = mad.SL_TO_VL, mad.VL_ARB, mad.LFT, mad.MFT, mad.NODE_DESC, mad.SM_INFO
COUNTERS, EXT = mad.COUNTERS, mad.COUNTERS_EXT
DOWN, INIT, ARMED, ACTIVE = 1, 2, 3, 4
SLEEP, POLLING, DISABLED, TRAINING, LINK_UP = 1, 2, 3, 4, 5
KEY, OTHER = 0x1122334455667788, 0x99
QUIET = 150  # ms to wait where no response is expected


class Net:
    """A fabric without a manager, and its only manager: the agent on h1."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.a, self.b = mad.Agent(fabric, "h1"), mad.Agent(fabric, "h2")
        ports = fabric.node("leaf1")["ports"]
        number = {p.get("peer"): p["num"] for p in ports}
        self.to_h1, self.to_h2, self.to_spine = number["h1"], number["h2"], number["spine1"]
        self.nports = len([p for p in ports if p["num"]])
        self.sw, self.ca, self.spine = [1], [1, self.to_h2], [1, self.to_spine]
        self.a.register_agent("traps", mad.SMP, [TRAP])
        self.mkey = 0  # of h2
        for path, lid, port in (([], 1, 1), (self.ca, 2, 1), (self.sw, 3, 0)):
            a = self.set(PORT, path, port, lid=lid, sm_lid=1)
            assert a.status == OK, f"LID {lid}: status {a.status:#x}"
        assert self.set(SWITCH, self.sw, lft_top=64).status == OK
        assert self.set(LFT, self.sw, **{"port1": self.to_h1, "port2": self.to_h2, "port3": 0}).status == OK

    def query(self, method, fmt, path, mod=0, data=b"", timeout=2000, lid=None, by=None, **head):
        """By directed route; with @lid by LID."""
        request = mad.smp(method, fmt.attr, mod, data, path=None if lid else path, **head)
        version = head.get("version", 1)
        return (by or self.a).query(request, lid=lid or mad.PERMISSIVE, fmt=fmt, timeout=timeout, version=version)

    def get(self, fmt, path, mod=0, **head):
        return self.query(GET, fmt, path, mod, **head)

    def set(self, fmt, path, mod=0, *, head=None, zero=False, **values):
        """
        Sets @values, and leaves the rest unchanged (@zero: sets it to 0); for PortInfo without a change of state.
        """
        head = head or {}
        data = bytes(64)
        if not zero:
            old = self.get(fmt, path, mod, mkey=head.get("mkey", 0))
            assert old.status == OK, f"Get before Set: {old.status}"
            data = old.mad[64:128]
        if fmt is PORT:
            data = fmt.pack(data, state=0, phys=0, down_default=0)
        return self.query(SET, fmt, path, mod, fmt.pack(data, **values), **head)

    def gmp(self, cls, method, attr, fmt, lid=2, mod=0, timeout=2000, version=None, values=None):
        data = fmt.pack(**(values or {}))
        head = {} if version is None else {"version": version}
        return self.a.query(mad.gmp(cls, method, attr, mod, data, **head), lid=lid, fmt=fmt, timeout=timeout, **head)

    def counters(self, method=GET, lid=2, fmt=COUNTERS, **values):
        return self.gmp(mad.PMA, method, fmt.attr, fmt, lid, values={"port": 1} | values)

    def trap(self, number, timeout=3000, repress=True, **want):
        """The next trap with that number and these fields; represses all traps. None if there is none."""
        end = time.monotonic() + timeout / 1000
        while True:
            left = int(1000 * (end - time.monotonic()))
            t = self.a.recv("traps", mad.NOTICE, timeout=max(left, 0))
            if not t.answered:
                return None
            wanted = t.trap == number and all(getattr(t, k) == v for k, v in want.items())
            if repress or not wanted:
                self.repress(t)
            if wanted:
                return t

    def repress(self, t, mkey=None):
        reply = bytearray(t.mad)
        reply[3] = mad.REPRESS
        reply[24:32] = (self.mkey if mkey is None else mkey).to_bytes(8, "big")
        self.a.respond(bytes(reply), lid=t.source, port="traps", methods=[TRAP])

    def no_traps(self):
        while self.trap(0, timeout=10):
            pass

    def wait_state(self, path, mod, state):
        wait_until(lambda: self.get(PORT, path, mod).state == state, 20, f"state {state}", 0.01)

    def train(self):
        """Trains the link between leaf1 and h2, from Down to Initialize."""
        self.set(PORT, self.sw, self.to_h2, state=DOWN, phys=POLLING)
        self.wait_state(self.sw, self.to_h2, INIT)
        wait_until(lambda: self.get(PORT, self.ca, 1).state == INIT, 20, "the link", 0.01)

    def activate(self):
        """Sets all ports on the path from h1 to h2 Active."""
        for path, mod in (([], 1), (self.sw, self.to_h1), (self.sw, self.to_h2), (self.ca, 1)):
            if self.get(PORT, path, mod).state == INIT:
                assert self.set(PORT, path, mod, state=ARMED).status == OK
        for path, mod in (([], 1), (self.sw, self.to_h1), (self.sw, self.to_h2), (self.ca, 1)):
            assert self.set(PORT, path, mod, state=ACTIVE).status == OK

    def close(self):
        self.a.close()
        self.b.close()


RULES, rule = mad.rule_table()


def one(answer, want=OK, **fields):
    return [(answer, fields or want)]


# ---- methods, versions, attributes ----

rule("the response to Get is GetResp", "13.4.5", lambda n: one(n.get(NODE, n.ca), method=GET | RESP, base=1, cls=1))
rule("the response to Set is GetResp", "13.4.5", lambda n: one(n.set(DESC, n.ca), method=GET | RESP))
rule("an unknown attribute", "13.4.7", lambda n: one(n.get(mad.Format(0x00FE, 64), n.ca), BAD_METHOD_ATTR))
rule("an unknown attribute, at a switch", "13.4.7", lambda n: one(n.get(mad.Format(0x00FE, 64), n.sw), BAD_METHOD_ATTR))
rule("a vendor's attribute", "13.4.7", lambda n: one(n.get(mad.Format(0xFF12, 64), n.sw), BAD_METHOD_ATTR))
rule("SubnSet(NodeInfo): it is read-only", "14.2.5.3", lambda n: one(n.set(NODE, n.ca), BAD_METHOD_ATTR))
rule("SubnSet(Notice) of an agent without pending notices", "14.2.5.1", lambda n: one(n.set(mad.Format(0x02, 64), n.ca), BAD_METHOD_ATTR))
rule("SubnGet(RandomForwardingTable) of a switch with a linear one", "14.2.5.11", lambda n: one(n.get(mad.Format(0x1A, 64), n.sw), BAD_METHOD_ATTR))
for where, path in (("a host", lambda n: n.ca), ("a switch", lambda n: n.sw), ("the own port", lambda n: [])):
    rule(f"an unknown method at {where}", "13.4.7", lambda n, path=path: one(n.query(0x0B, NODE, path(n)), BAD_METHOD))
rule("an unknown class version", "13.4.7", lambda n: one(n.get(NODE, n.ca, version=2), BAD_VERSION))
rule("an unknown class version at a switch", "13.4.7", lambda n: one(n.get(NODE, n.sw, version=2), BAD_VERSION))
rule("an unknown base version", "13.4.7", lambda n: one(n.get(NODE, n.sw, base=2), BAD_VERSION))
rule("the response repeats the TID and the modifier", "13.4.6.4", lambda n: one(n.get(PORT, n.ca, 1, tid=0x1234), mod=1, attr=0x15))

# ---- directed routes ----

rule("no hops: the own node", "14.2.2", lambda n: one(n.get(NODE, []), type=1, local_port=1))
rule("one hop", "14.2.2", lambda n: one(n.get(NODE, n.sw), type=2))
rule("two hops", "14.2.2", lambda n: one(n.get(NODE, n.ca), type=1))
rule("the response has the D bit", "14.2.1.2", lambda n: one(n.get(NODE, n.ca), d_bit=1))
rule("the response's hop pointer is back at 0", "14.2.2.4", lambda n: one(n.get(NODE, n.ca), pointer=0, hop_count=2))
rule("the return path has the ports of arrival", "14.2.2.2", lambda n: one(n.get(NODE, n.ca), return1=n.to_h1, return2=1))
rule("the initial path is unchanged", "14.2.1.2", lambda n: one(n.get(NODE, n.ca), initial1=1))
rule("there and back within the path", "14.2.2", lambda n: one(n.get(NODE, [1, n.to_spine, 1]), type=2, ports=n.nports))
rule("a route through a host ends", "14.2.2.2", lambda n: one(n.get(NODE, [1, n.to_h2, 1], timeout=QUIET), SILENCE))
rule("a route by a nonexistent port ends", "14.2.2.2", lambda n: one(n.get(NODE, [1, 200], timeout=QUIET), SILENCE))
rule("a route by port 0 ends", "14.2.2.2", lambda n: one(n.get(NODE, [1, 0], timeout=QUIET), SILENCE))
rule("more than 63 hops", "14.2.2.2", lambda n: one(n.get(NODE, [1], hops=64, timeout=QUIET), SILENCE))
rule("a hop pointer beyond the hop count", "14.2.2.2", lambda n: one(n.get(NODE, [1], pointer=5, timeout=QUIET), SILENCE))
rule("LID routed", "14.2.1.1", lambda n: one(n.get(NODE, None, lid=2), type=1))
rule("LID routed to a switch", "14.2.1.1", lambda n: one(n.get(NODE, None, lid=3), type=2))
rule("LID routed to the own port", "14.2.1.1", lambda n: one(n.get(NODE, None, lid=1), type=1))
rule("LID routed to an unassigned LID", "14.2.1.1", lambda n: one(n.get(NODE, None, lid=9, timeout=QUIET), SILENCE))
rule("LID routed has no D bit", "14.2.1.1", lambda n: one(n.get(NODE, None, lid=2), d_bit=0))


@rule("LID routed up to a switch, directed from there", "14.2.2.1")
def _(n):
    request = mad.smp(GET, NODE.attr, path=[n.to_h2], slid=1)
    yield n.a.query(request, lid=3, fmt=NODE, timeout=1000), {"type": 1, "d_bit": 1}


@rule("directed up to a switch, LID routed from there", "14.2.2.1")
def _(n):
    request = mad.smp(GET, NODE.attr, path=[1], dlid=2)
    yield n.a.query(request, lid=mad.PERMISSIVE, fmt=NODE, timeout=1000), {"type": 1}


# ---- NodeInfo, NodeDescription, SwitchInfo ----

rule("NodeInfo of a host", "14.2.5.3", lambda n: one(n.get(NODE, n.ca), type=1, ports=1, local_port=1))
rule("NodeInfo: LocalPortNum is the port of arrival", "14.2.5.3", lambda n: one(n.get(NODE, n.sw), type=2, local_port=n.to_h1))
rule("NodeInfo: a switch's PortGUID is port 0's", "14.2.5.3", lambda n: one(n.get(NODE, n.sw), port_guid=n.get(GUIDS, n.sw).guid0))
rule("NodeInfo: a host's PortGUID is the port's", "14.2.5.3", lambda n: one(n.get(NODE, n.ca), port_guid=n.get(GUIDS, n.ca).guid0))
rule("NodeInfo: PartitionCap is at least 1", "14.2.5.3, C10-122", lambda n: one(n.get(NODE, n.ca), pkeys={128, 64, 32, 1}))


@rule("NodeDescription is set, and trap 144 reports it", "14.2.5.2, 14.2.5.1")
def _(n):
    n.no_traps()
    yield n.set(DESC, n.ca, text=b"another"), {"text": int.from_bytes(b"another".ljust(64, b"\0"), "big")}
    t = n.trap(144)
    assert t and t.lid_144 == 2 and t.flags_144 & 1, t
    yield n.set(DESC, n.ca, text=b"h2"), OK
    assert n.trap(144)


@rule("a NodeDescription that is the same is no change", "14.2.5.1")
def _(n):
    n.no_traps()
    yield n.set(DESC, n.ca), OK
    assert not n.trap(144, timeout=50)


rule("SwitchInfo of a switch", "14.2.5.4", lambda n: one(n.get(SWITCH, n.sw), rft_cap=0, lft_cap=0xC000))
rule("SwitchInfo of a host", "14.2.5.4", lambda n: one(n.get(SWITCH, n.ca), BAD_METHOD_ATTR))
rule("SwitchInfo: LinearFDBTop is set", "14.2.5.4", lambda n: one(n.set(SWITCH, n.sw, lft_top=64), lft_top=64))
rule("SwitchInfo: LinearFDBTop beyond the table", "14.2.5.4", lambda n: one(n.set(SWITCH, n.sw, lft_top=0xFFFF), BAD_VALUE))
rule("SwitchInfo: LinearFDBCap is read-only", "14.2.5.4", lambda n: one(n.set(SWITCH, n.sw, lft_cap=5), lft_cap=0xC000))
rule("SwitchInfo: LifeTimeValue is set", "14.2.5.4", lambda n: one(n.set(SWITCH, n.sw, life=18), life=18))
rule("SwitchInfo: MulticastFDBTop is set", "14.2.5.4", lambda n: one(n.set(SWITCH, n.sw, mft_top=0xC010), mft_top=0xC010))


@rule("SwitchInfo: PortStateChange is cleared by writing 1, and kept by 0", "14.2.5.4")
def _(n):
    n.train()
    yield n.get(SWITCH, n.sw), {"state_change": 1}
    yield n.set(SWITCH, n.sw, state_change=0), {"state_change": 1}
    yield n.set(SWITCH, n.sw, state_change=1), {"state_change": 0}


# ---- GUIDInfo ----

rule("GUIDInfo: entry 0 is read-only", "14.2.5.5", lambda n: one(n.set(GUIDS, n.ca, guid0=5), guid0=n.get(NODE, n.ca).port_guid))
rule("GUIDInfo: a block beyond GUIDCap", "14.2.5.5", lambda n: one(n.get(GUIDS, n.ca, 32), BAD_VALUE))
rule("GUIDInfo: a block beyond GUIDCap is not set", "14.2.5.5", lambda n: one(n.query(SET, GUIDS, n.ca, 32), BAD_VALUE))


@rule("GUIDInfo: entry 1 is set and cleared", "14.2.5.5")
def _(n):
    yield n.set(GUIDS, n.ca, guid1=0xABCD), {"guid1": 0xABCD}
    yield n.get(GUIDS, n.ca), {"guid1": 0xABCD}
    yield n.set(GUIDS, n.ca, guid1=0), {"guid1": 0}


# ---- PortInfo ----

rule("PortInfo of a host", "14.2.5.6", lambda n: one(n.get(PORT, n.ca, 1), lid=2, sm_lid=1, local_port=1))
rule("PortInfo: modifier 0 of a host is the port of arrival", "14.2.5.6", lambda n: one(n.get(PORT, n.ca, 0), lid=2))
rule("PortInfo: LocalPortNum of a switch is the port of arrival", "14.2.5.6", lambda n: one(n.get(PORT, n.sw, n.to_h2), local_port=n.to_h1))
rule("PortInfo of a switch's port 0 has its LID", "14.2.5.6", lambda n: one(n.get(PORT, n.sw, 0), lid=3))
rule("PortInfo of a switch's external port has no LID", "14.2.5.6", lambda n: one(n.get(PORT, n.sw, n.to_h2), lid=0))
rule("PortInfo of a nonexistent port", "14.2.5.6", lambda n: one(n.get(PORT, n.sw, 99), BAD_VALUE))
rule("PortInfo of a nonexistent port of a host", "14.2.5.6", lambda n: one(n.get(PORT, n.ca, 9), BAD_VALUE))
rule("SubnSet(PortInfo) of a nonexistent port", "14.2.5.6", lambda n: one(n.query(SET, PORT, n.sw, 99), BAD_VALUE))
for field, value in [("caps", 0), ("guid_cap", 200), ("vl_cap", 1), ("mtu_cap", 1), ("width_supported", 1), ("local_port", 9), ("resp_time", 3)]:
    rule(f"PortInfo: {field} is read-only", "14.2.5.6",
         lambda n, f=field, v=value: one(n.set(PORT, n.ca, 1, **{f: v}), **{f: getattr(n.get(PORT, n.ca, 1), f)}))  # fmt: skip
for word, lid in (("0", 0), ("of a group", 0xC001), ("0xffff", 0xFFFF)):
    rule(f"PortInfo: LID {word} is not a unicast LID", "14.2.5.6, 4.1.3", lambda n, lid=lid: one(n.set(PORT, n.ca, 1, lid=lid), BAD_VALUE))
    rule(f"PortInfo: MasterSMLID {word} is not a unicast LID", "14.2.5.6", lambda n, lid=lid: one(n.set(PORT, n.ca, 1, sm_lid=lid), BAD_VALUE))
rule("PortInfo: a wrong LID is not set", "14.2.5.6", lambda n: one(n.get(PORT, n.ca, 1), lid=2, sm_lid=1))
for field, value in [("mtu", 9), ("mtu", 6), ("vls", 9), ("width_enabled", 0x60), ("ext_enabled", 16)]:
    rule(f"PortInfo: {field} {value} is not supported", "14.2.5.6", lambda n, f=field, v=value: one(n.set(PORT, n.ca, 1, **{f: v}), BAD_VALUE))
rule("PortInfo: NeighborMTU is set", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, mtu=3), mtu=3))
rule("PortInfo: OperationalVLs is set", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, vls=2), vls=2))
rule("PortInfo: OperationalVLs 0 is no change", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, vls=0), vls=2))
rule("PortInfo: LinkWidthEnabled 0 is no change", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, width_enabled=0), width_enabled=n.get(PORT, n.ca, 1).width_enabled))
rule("PortInfo: LinkWidthEnabled 255 is all supported", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, width_enabled=255), width_enabled=n.get(PORT, n.ca, 1).width_supported))
rule("PortInfo: LinkSpeedEnabled 15 is all supported", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, speed_enabled=15), speed_enabled=n.get(PORT, n.ca, 1).speed_supported))
rule("PortInfo: LinkSpeedEnabled 0 is no change", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, speed_enabled=0), speed_enabled=n.get(PORT, n.ca, 1).speed_supported))
rule("PortInfo: SubnetTimeOut is set", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, timeout=17), timeout=17))
rule("PortInfo: HOQLife is set", "14.2.5.6", lambda n: one(n.set(PORT, n.sw, n.to_h2, hoq=16), hoq=16))
rule("PortInfo: LocalPhyErrors and OverrunErrors are set", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, phy_errors=8, overruns=8), phy_errors=8, overruns=8))
rule("PortInfo: ClientReregister reads as 0", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, reregister=1), reregister=0))
rule("PortInfo: LMC of a host is set", "14.2.5.6", lambda n: [(n.set(PORT, n.ca, 1, lmc=1), {"lmc": 1}), (n.set(PORT, n.ca, 1, lmc=0), {"lmc": 0})])
rule("PortInfo: LinkDownDefaultState is set", "14.2.5.6", lambda n: one(n.set(PORT, n.ca, 1, down_default=POLLING), down_default=POLLING))


def start(n, state):
    n.train()
    for s in range(ARMED, state + 1):
        assert n.set(PORT, n.sw, n.to_h2, state=s).status == OK
    return n.sw, n.to_h2


NAMES = {INIT: "Initialize", ARMED: "Armed", ACTIVE: "Active"}
for state, name in NAMES.items():
    for to, word, legal in [
        (0, "no change", True), (INIT, "Initialize", False), (ARMED, "Armed", state != ACTIVE), (ACTIVE, "Active", state != INIT),
        (5, "reserved 5", False), (15, "reserved 15", False),
    ]:  # fmt: skip

        @rule(f"PortState from {name} to {word}", "14.2.5.6, 7.2.7")
        def _(n, state=state, to=to, legal=legal):
            path, mod = start(n, state)
            yield n.set(PORT, path, mod, state=to), {"status": OK if legal else BAD_VALUE}
            yield n.get(PORT, path, mod), {"state": to if legal and to else state, "phys": LINK_UP}

    @rule(f"PortState from {name} to Down: the link trains again", "14.2.5.6, 7.2.7")
    def _(n, state=state):
        path, mod = start(n, state)
        yield n.set(PORT, path, mod, state=DOWN), OK
        n.wait_state(path, mod, INIT)
        n.wait_state(n.ca, 1, INIT)


for phys, word in ((TRAINING, "Training"), (LINK_UP, "LinkUp"), (6, "error recovery"), (9, "reserved 9")):
    rule(f"PortPhysicalState is not set to {word}", "14.2.5.6", lambda n, p=phys: one(n.set(PORT, n.sw, n.to_spine, phys=p), BAD_VALUE))
rule("a physical state is set only with PortState Down or no change", "14.2.5.6", lambda n: one(n.set(PORT, *start(n, INIT), state=ARMED, phys=POLLING), BAD_VALUE))


@rule("PortPhysicalState Disabled ends the link until Polling", "14.2.5.6, 5.6")
def _(n):
    path, mod = start(n, INIT)
    yield n.set(PORT, path, mod, state=DOWN, phys=DISABLED), OK
    wait_until(lambda: n.get(PORT, path, mod).phys == DISABLED, 20, "Disabled", 0.01)
    yield n.get(PORT, path, mod), {"state": DOWN}
    yield n.set(PORT, path, mod, phys=POLLING), OK
    n.wait_state(path, mod, INIT)


@rule("an Armed port becomes Active with the data of its peer, or by Set; the other end is unchanged", "7.2.7")
def _(n):
    start(n, ACTIVE)
    yield n.get(PORT, n.ca, 1), {"state": {INIT, ARMED}}


@rule("a change of a switch's port state raises trap 128", "14.2.5.1, C14-36")
def _(n):
    n.no_traps()
    n.set(PORT, n.sw, n.to_h2, state=DOWN, phys=POLLING)
    t = n.trap(128)
    assert t and t.lid_128 == 3 and t.producer == 2 and t.type == 1, t
    n.wait_state(n.ca, 1, INIT)
    yield n.get(SWITCH, n.sw), {"state_change": 1}


# ---- tables ----

rule("P_KeyTable of a host: the default P_Key at first", "14.2.5.7, 10.9.1", lambda n: one(n.get(PKEYS, n.ca), pkey0={0xFFFF, 0x7FFF}))
rule("P_KeyTable: a block beyond PartitionCap", "14.2.5.7", lambda n: one(n.get(PKEYS, n.ca, 0x100), BAD_VALUE))
rule("P_KeyTable: a block beyond PartitionCap is not set", "14.2.5.7", lambda n: one(n.query(SET, PKEYS, n.ca, 0x100), BAD_VALUE))
rule("P_KeyTable of a nonexistent port of a switch", "14.2.5.7", lambda n: one(n.get(PKEYS, n.sw, 99 << 16), BAD_VALUE))
rule("P_KeyTable of a switch's port is set", "14.2.5.7", lambda n: one(n.set(PKEYS, n.sw, n.to_spine << 16, pkey3=0x8001), pkey3=0x8001))


@rule("P_KeyTable of a host is set and read back", "14.2.5.7")
def _(n):
    yield n.set(PKEYS, n.ca, pkey1=0x8001), {"pkey1": 0x8001}
    yield n.get(PKEYS, n.ca), {"pkey1": 0x8001}
    yield n.set(PKEYS, n.ca, pkey1=0), {"pkey1": 0}


rule("SLtoVLMappingTable of a host", "14.2.5.8", lambda n: one(n.set(SLVL, n.ca, vl1=1), vl1=1))
rule("SLtoVLMappingTable of a pair of a switch's ports", "14.2.5.8", lambda n: one(n.set(SLVL, n.sw, n.to_h1 << 8 | n.to_h2, vl5=0), vl5=0))
rule("SLtoVLMappingTable: the opposite direction is another row", "14.2.5.8", lambda n: one(n.get(SLVL, n.sw, n.to_h2 << 8 | n.to_h1), vl1=1))
rule("SLtoVLMappingTable of a nonexistent output port", "14.2.5.8", lambda n: one(n.get(SLVL, n.sw, 99), BAD_VALUE))
rule("SLtoVLMappingTable of a nonexistent input port", "14.2.5.8", lambda n: one(n.get(SLVL, n.sw, 99 << 8 | 1), BAD_VALUE))
for block in (1, 2, 3, 4):
    rule(f"VLArbitrationTable: block {block} is set", "14.2.5.9",
         lambda n, b=block: one(n.set(ARB, n.sw, b << 16 | n.to_spine, vl3=1, weight3=b), vl3=1, weight3=b))  # fmt: skip
for block in (0, 5):
    rule(f"VLArbitrationTable: block {block} is invalid", "14.2.5.9", lambda n, b=block: one(n.get(ARB, n.sw, b << 16 | 1), BAD_VALUE))
rule("VLArbitrationTable of a nonexistent port", "14.2.5.9", lambda n: one(n.get(ARB, n.sw, 1 << 16 | 99), BAD_VALUE))
rule("VLArbitrationTable of a host", "14.2.5.9", lambda n: one(n.set(ARB, n.ca, 1 << 16, vl0=0, weight0=9), weight0=9))
rule("LinearForwardingTable is set and read back", "14.2.5.10", lambda n: [(n.set(LFT, n.sw, 1, port5=2), {"port5": 2}), (n.get(LFT, n.sw, 1), {"port5": 2, "port6": 255})])
rule("LinearForwardingTable: the last block", "14.2.5.10", lambda n: one(n.get(LFT, n.sw, 767), port0=255))
rule("LinearForwardingTable: a block beyond the table", "14.2.5.10", lambda n: one(n.get(LFT, n.sw, 768), BAD_VALUE))
rule("LinearForwardingTable: a block beyond the table is not set", "14.2.5.10", lambda n: one(n.query(SET, LFT, n.sw, 768), BAD_VALUE))
rule("LinearForwardingTable of a host", "14.2.5.10", lambda n: one(n.get(LFT, n.ca), BAD_METHOD_ATTR))
rule("MulticastForwardingTable is set and read back", "14.2.5.12", lambda n: [(n.set(MFT, n.sw, 0, mask5=6), {"mask5": 6}), (n.get(MFT, n.sw, 0), {"mask5": 6}), (n.set(MFT, n.sw, 0, mask5=0), OK)])
rule("MulticastForwardingTable: a position beyond the ports", "14.2.5.12", lambda n: one(n.get(MFT, n.sw, 15 << 28), BAD_VALUE))
rule("MulticastForwardingTable: a block beyond the table", "14.2.5.12", lambda n: one(n.get(MFT, n.sw, 511), BAD_VALUE))
rule("MulticastForwardingTable of a host", "14.2.5.12", lambda n: one(n.get(MFT, n.ca), BAD_METHOD_ATTR))
rule("LedInfo is set", "14.2.5.15", lambda n: [(n.set(mad.LED_INFO, n.sw, 1, led=1), {"led": 1}), (n.set(mad.LED_INFO, n.sw, 1, led=0), {"led": 0})])
rule("LedInfo of a nonexistent port", "14.2.5.15", lambda n: one(n.get(mad.LED_INFO, n.sw, 99), BAD_VALUE))
rule("SubnGet(Notice) without one pending", "14.2.5.1, 13.4.8.2", lambda n: one(n.get(mad.NOTICE, n.ca), type=0x7F))
rule("SubnGet(SMInfo) of a port without a manager", "14.2.5.13, 14.4.1", lambda n: one(n.get(SM, n.ca), BAD_METHOD_ATTR))
rule("SubnGet(SMInfo) of a switch without a manager", "14.2.5.13, 14.4.1", lambda n: one(n.get(SM, n.sw), BAD_METHOD_ATTR))


@rule("VL arbitration and SL to VL of one port do not change another's", "14.2.5.9")
def _(n):
    yield n.set(ARB, n.sw, 1 << 16 | n.to_h1, weight7=3), OK
    yield n.get(ARB, n.sw, 1 << 16 | n.to_h2), {"weight7": 0}


# ---- M_Key ----


def locked(name, clause, protect, lease=0, **words):
    """A row for h2 with an M_Key, which is removed afterwards."""

    def add(fn):
        def run(n):
            n.no_traps()
            yield n.set(PORT, n.ca, 1, mkey=KEY, protect=protect, lease=lease, mkey_violations=0), OK
            n.mkey = KEY
            try:
                yield from fn(n)
            finally:
                n.no_traps()
                a = n.set(PORT, n.ca, 1, mkey=0, protect=0, lease=0, mkey_violations=0, head={"mkey": KEY})
                n.mkey = 0
                assert a.status == OK

        return rule(name, clause, run, **words)

    return add


@locked("level 0: Get with a wrong M_Key shows it", "14.2.4.1", 0)
def _(n):
    yield n.get(PORT, n.ca, 1, mkey=OTHER), {"mkey": KEY}


@locked("level 0: Set with a wrong M_Key has no response and no effect", "14.2.4.1", 0)
def _(n):
    yield n.query(SET, DESC, n.ca, data=b"stolen", mkey=OTHER, timeout=QUIET), SILENCE
    yield n.get(DESC, n.ca), {"text": int.from_bytes(b"h2".ljust(64, b"\0"), "big")}


@locked("a Set with the M_Key has a response", "14.2.4.1", 0)
def _(n):
    yield n.set(DESC, n.ca, head={"mkey": KEY}), OK


@locked("level 1: Get with a wrong M_Key reads 0 for it", "14.2.4.1", 1)
def _(n):
    yield n.get(PORT, n.ca, 1, mkey=OTHER), {"mkey": 0, "lid": 2}


@locked("level 1: Get with the M_Key shows it", "14.2.4.1", 1)
def _(n):
    yield n.get(PORT, n.ca, 1, mkey=KEY), {"mkey": KEY}


@locked("level 1: Set with a wrong M_Key has no response", "14.2.4.1", 1)
def _(n):
    yield n.query(SET, DESC, n.ca, data=b"stolen", mkey=OTHER, timeout=QUIET), SILENCE


for level in (2, 3):

    @locked(f"level {level}: Get with a wrong M_Key has no response", "14.2.4.1", level)
    def _(n):
        yield n.get(NODE, n.ca, mkey=OTHER, timeout=QUIET), SILENCE

    @locked(f"level {level}: Get with the M_Key has a response", "14.2.4.1", level)
    def _(n):
        yield n.get(PORT, n.ca, 1, mkey=KEY), {"mkey": KEY}


@locked("a wrong M_Key is counted", "14.2.5.6, M_KeyViolations", 0)
def _(n):
    for _ in range(2):
        yield n.query(SET, DESC, n.ca, data=b"stolen", mkey=OTHER, timeout=30), SILENCE
    yield n.get(PORT, n.ca, 1), {"mkey_violations": 2}


@locked("a Get with a response is not a violation", "14.2.4.1", 1)
def _(n):
    yield n.get(PORT, n.ca, 1, mkey=OTHER), {"mkey_violations": 0}


@locked("a wrong M_Key raises trap 256", "14.2.5.1", 0)
def _(n):
    yield n.query(SET, DESC, n.ca, 0, data=b"stolen", mkey=OTHER, timeout=30), SILENCE
    t = n.trap(256)
    assert t, "no trap"
    yield t, {"mkey_256": OTHER, "method_256": SET, "attr_256": DESC.attr, "type": 2, "producer": 1, "lid": 2}


@locked("a TrapRepress with a wrong M_Key does not end a trap", "14.2.4.1, 13.4.9", 0)
def _(n):
    yield n.query(SET, DESC, n.ca, 0, data=b"stolen", mkey=OTHER, timeout=30), SILENCE
    first = n.trap(256, repress=False)
    assert first, "no trap"
    n.repress(first, mkey=OTHER)
    assert n.trap(256, tid=first.tid), "the trap does not come again"
    yield n.get(PORT, n.ca, 1), {"mkey_violations": 2}


@locked("a trap does not contain the M_Key", "13.4.9, o14-1", 0)
def _(n):
    yield n.query(SET, DESC, n.ca, 0, data=b"stolen", mkey=OTHER, timeout=30), SILENCE
    yield n.trap(256), {"mkey_field": 0}


@locked("the protection ends when the lease period expires", "14.2.4.2", 2, lease=1)
def _(n):
    yield n.get(NODE, n.ca, mkey=OTHER, timeout=30), SILENCE
    wait_until(lambda: n.get(PORT, n.ca, 1, mkey=OTHER, timeout=100).status == OK, 20, "the end of the lease")
    yield n.get(PORT, n.ca, 1, mkey=OTHER), {"protect": 0, "mkey": KEY}


@locked("without a lease period the protection does not end", "14.2.4.2", 2, lease=0)
def _(n):
    yield n.get(NODE, n.ca, mkey=OTHER, timeout=30), SILENCE
    yield n.get(NODE, n.ca, mkey=OTHER, timeout=QUIET), SILENCE


@locked("M_KeyViolations is cleared by writing 0", "14.2.5.6", 0)
def _(n):
    yield n.query(SET, DESC, n.ca, data=b"stolen", mkey=OTHER, timeout=30), SILENCE
    yield n.set(PORT, n.ca, 1, mkey_violations=0, head={"mkey": KEY}), {"mkey_violations": 0}


rule("M_Key 0 accepts any", "14.2.4.1", lambda n: one(n.set(DESC, n.ca, head={"mkey": OTHER})))


# ---- traps ----


@rule("a trap that is not repressed is repeated with the same TID", "13.4.9")
def _(n):
    n.no_traps()
    yield n.set(DESC, n.ca, text=b"another"), OK
    first = n.trap(144, repress=False)
    yield n.trap(144), {"tid": first.tid, "method": TRAP, "generic": 1}
    yield n.set(DESC, n.ca, text=b"h2"), OK
    assert n.trap(144)


@rule("a trap that is repressed is not repeated", "13.4.9")
def _(n):
    n.no_traps()
    yield n.set(DESC, n.ca, text=b"another"), OK
    first = n.trap(144)
    assert first and not n.trap(144, timeout=700)
    yield n.set(DESC, n.ca, text=b"h2"), OK
    assert n.trap(144)


@rule("a port without MasterSMLID sends no trap", "13.4.9, 14.2.5.6")
def _(n):
    n.no_traps()
    yield n.set(DESC, n.spine, text=b"another"), OK
    assert not n.trap(144, timeout=50)


# ---- performance management ----


def active(name, clause, fn, **words):
    """A row with data packets from h1 to h2."""

    def run(n):
        if n.get(PORT, n.ca, 1).state != ACTIVE or n.get(PORT, n.sw, n.to_h2).state != ACTIVE:
            n.train()
            n.activate()
        return fn(n)

    rule(name, clause, run, **words)


def pma(n, method, attr, fmt=COUNTERS, **q):
    return n.gmp(mad.PMA, method, attr, fmt, **q)


active("PerfMgt: ClassPortInfo", "16.1.2", lambda n: one(pma(n, GET, 1, mad.CLASS_PORT_INFO), cls=1, base=1))
active("PerfMgt: ClassPortInfo of a switch", "16.1.2", lambda n: one(pma(n, GET, 1, mad.CLASS_PORT_INFO, lid=3), cls=1, base=1))
active("PerfMgt: an unknown attribute", "13.4.7", lambda n: one(pma(n, GET, 0x99), BAD_METHOD_ATTR))
active("PerfMgt: an unknown class version", "13.4.7", lambda n: one(pma(n, GET, 0x12, version=2), BAD_VERSION))
active("PerfMgt: an unknown method", "13.4.7", lambda n: one(pma(n, 0x0B, 0x12), BAD_METHOD))
active("PortCounters of a host", "16.1.3.5", lambda n: one(n.counters(), port=1, method=GET | RESP))
active("PortCounters of a switch's port", "16.1.3.5", lambda n: one(n.counters(lid=3, port=n.to_h2), port=n.to_h2))
active("PortCounters of port 0 of a host", "16.1.3.5", lambda n: one(n.counters(port=0), BAD_VALUE))
active("PortCounters of a nonexistent port of a host", "16.1.3.5", lambda n: one(n.counters(port=2), BAD_VALUE))
active("PortCounters of a nonexistent port of a switch", "16.1.3.5", lambda n: one(n.counters(lid=3, port=99), BAD_VALUE))
active("PortCounters of all ports of a switch", "16.1.2, 16.1.3.5", lambda n: one(n.counters(lid=3, port=255), port=255))
active("PortCounters: CounterSelect selects the counters that Set clears", "16.1.3.5",
       lambda n: [(n.counters(SET, select=0xFFFF), OK), (n.counters(), OK), (n.counters(SET, select=1 << 12), {"tx_words": 0}),
                  (n.counters(), {"rx": n.counters().rx - 1})])  # fmt: skip


@rule("PortCounters: packets and words are counted both ways", "16.1.3.5")
def _(n):
    n.train()
    n.activate()
    yield n.counters(SET, select=0xFFFF), {"rx": 0, "tx": 0}
    for _ in range(5):  # a trap that is not repressed yet may pass meanwhile
        before = n.counters()
        for _ in range(3):
            after = n.counters()
        if (after.rx - before.rx, after.tx - before.tx) == (3, 3):
            break
    yield after, {"rx": before.rx + 3, "tx": before.tx + 3}
    words = (8 + 12 + 8 + 256 + 4) // 4  # LRH, BTH, DETH, the MAD, ICRC
    yield after, {"rx_words": before.rx_words + 3 * words, "tx_words": before.tx_words + 3 * words}


active("PortCounters: Set of symbol errors to a value", "16.1.3.5",
       lambda n: [(n.counters(SET, select=1, symbol=5), {"symbol": 5}), (n.counters(), {"symbol": 5}), (n.counters(SET, select=1), {"symbol": 0})])  # fmt: skip
active("PortCounters: counters that CounterSelect does not select are unchanged", "16.1.3.5",
       lambda n: [(n.counters(SET, select=1, symbol=5), OK), (n.counters(SET, select=0xFFFE, symbol=9), {"symbol": 5}), (n.counters(SET, select=1), OK)])  # fmt: skip
active("PortCounters: counters stop at their maximum", "16.1.3.5",
       lambda n: [(n.counters(SET, select=2, recoveries=255), {"recoveries": 255}), (n.counters(SET, select=2), {"recoveries": 0})])  # fmt: skip
active("PortCounters: CounterSelect2 selects PortXmitWait", "16.1.3.5",
       lambda n: [(n.counters(SET, select2=1, wait=7), {"wait": 7}), (n.counters(SET, select=0xFFFF), {"wait": 7}), (n.counters(SET, select2=1), {"wait": 0})])  # fmt: skip
active("PortCountersExtended: 64 bits", "16.1.4.11", lambda n: one(n.counters(SET, fmt=EXT, select=1, tx_words=1 << 40), tx_words=1 << 40))
active("PortCountersExtended: clearing them does not change PortCounters", "16.1.4.11",
       lambda n: [(n.counters(SET, select=1 << 15), OK), (n.counters(SET, fmt=EXT, select=8), {"rx": 0}), (n.counters(), {"rx": {2, 3}})])  # fmt: skip
active("PortCountersExtended: unicast and multicast packets", "16.1.4.11",
       lambda n: [(n.counters(SET, fmt=EXT, select=0xFF), OK), (n.counters(fmt=EXT), {"uc_rx": 1, "mc_rx": 0})])  # fmt: skip
active("PortSamplesControl of an idle sampler", "16.1.3.2", lambda n: one(pma(n, GET, 0x10, mad.SAMPLES, values={"port": 1}), status=OK, width={0, 1, 2, 3, 4}))
active("PortRcvErrorDetails", "16.1.4.1", lambda n: one(pma(n, GET, 0x15, mad.RCV_ERR, values={"port": 1}), phys=0))
active("PortRcvErrorDetails of a nonexistent port", "16.1.4.1", lambda n: one(pma(n, GET, 0x15, mad.RCV_ERR, values={"port": 7}), BAD_VALUE))
for cls, word in ((mad.BM, "baseboard management"), (mad.DEV_MGT, "device management")):
    active(f"a class without an agent: {word}", "13.4.7", lambda n, c=cls: one(n.gmp(c, GET, 1, mad.CLASS_PORT_INFO), status={BAD_METHOD_ATTR, BAD_VERSION}))
    active(f"a class without an agent at a switch: {word}", "13.4.7", lambda n, c=cls: one(n.gmp(c, GET, 1, mad.CLASS_PORT_INFO, lid=3), status={BAD_METHOD_ATTR, BAD_VERSION}))
active("CM: ClassPortInfo", "13.4.8.1, C13-27", lambda n: one(n.gmp(mad.CM, GET, 1, mad.CLASS_PORT_INFO), OK),
       cannot="as in Linux, the connection manager does not implement ClassPortInfo")  # fmt: skip


# ---- SMInfo of a manager, in a fabric of its own ----

MANAGER = []


def manager(name, clause, fn, *, cannot=None):
    MANAGER.append(types.SimpleNamespace(name=name, clause=clause, fn=fn, cannot=cannot))


class Managed:
    """The default fabric: its manager is on h1; h2 is the client."""

    def __init__(self, fabric):
        self.fabric, self.a = fabric, mad.Agent(fabric, "h2")
        self.sm = fabric.port("h1")["lid"]
        self.key = 0

    def get(self, lid=None, **head):
        return self.a.query(mad.smp(GET, SM.attr, **head), lid=lid or self.sm, fmt=SM)

    def set(self, mod, **values):
        data = SM.pack(**{"guid": 5, "priority": 15, "state": 2} | values)
        return self.a.query(mad.smp(SET, SM.attr, mod, data), lid=self.sm, fmt=SM)

    def close(self):
        self.a.close()


def stays(answer, n, status=BAD_VALUE):
    """The request is rejected, and the manager is still master."""
    return [(answer, {"status": status}), (n.get(), {"state": 3})]


manager("SubnGet(SMInfo) of the master", "14.2.5.13", lambda n: one(n.get(), state=3))
manager("SubnGet(SMInfo) hides the SM_Key from a requester that is not the master", "14.2.5.13", lambda n: one(n.get(), key=0),
        cannot="OpenSM ignores a manager whose SMInfo does not show the SM_Key, so that handover between both would end")  # fmt: skip
manager("SubnGet(SMInfo) of a host without a manager", "14.4.1", lambda n: one(n.get(n.fabric.port("h5")["lid"]), BAD_METHOD_ATTR))
for mod, word in ((0, "0"), (6, "6"), (0xFFFFFFFF, "0xffffffff")):
    manager(f"SubnSet(SMInfo), control {word}", "14.4.1", lambda n, mod=mod: stays(n.set(mod), n))
for mod, word in ((3, "DISABLE"), (4, "STANDBY"), (5, "DISCOVER")):
    manager(f"{word} is not for a master", "14.4.1, states of an SM", lambda n, mod=mod: stays(n.set(mod), n))
for mod, word in ((3, "DISABLE"), (4, "STANDBY")):
    manager(f"{word} from a subnet manager that is not the master", "14.4.1", lambda n, mod=mod: stays(n.set(mod, state=0), n))
for mod, word in ((1, "HANDOVER"), (2, "ACKNOWLEDGE")):
    manager(f"{word} of an unknown subnet manager has no effect", "14.4.1",
            lambda n, mod=mod: [(n.set(mod), {"status": {OK, BAD_VALUE}}), (n.get(), {"state": 3})])  # fmt: skip
manager("ActCount increases", "14.2.5.13", lambda n: [(n.get(), {"act": {n.get().act, n.get().act + 1}})])


@pytest.fixture(scope="module")
def net(request, muslin_make_fabric):
    fabric = muslin_make_fabric("smp")
    try:
        n = Net(fabric.up("leafs 1 spines 1 hosts 2\n", "--no-sm"))
        yield n
        n.close()
    finally:
        fabric.down()


@pytest.fixture(scope="module")
def managed(shared_fabric):
    n = Managed(shared_fabric)
    yield n
    n.close()


@pytest.mark.parametrize("row", RULES, ids=[f"{r.name} ({r.clause})" for r in RULES])
def test_rule(row, net):
    mad.check(row, net, row.cannot)


@pytest.mark.parametrize("row", MANAGER, ids=[f"{r.name} ({r.clause})" for r in MANAGER])
def test_rule_of_managers(row, managed):
    mad.check(row, managed, row.cannot)
