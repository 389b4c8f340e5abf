# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# ruff: noqa: E501, I001, PLC3002, PLR0911, PLR0917, PLW2901 (a row of a table is one line, and says all that it differs in)
"""
MADs for tables of rules: formats (fields by bit offset and width, as in the tables of IBTA volume 1) and the agents on
hosts that send and receive them.
"""

import contextlib
import itertools
import json
import pathlib
import socket
import types

import pytest
from muslin import wait_until

GET, SET, SEND, TRAP, REPORT, REPRESS = 1, 2, 3, 5, 6, 7
TABLE, MULTI, DELETE = 0x12, 0x14, 0x15
RESP = 0x80
# MAD status (13.4.7), and that of subnet administration (15.2.3)
OK, BAD_VERSION, BAD_METHOD, BAD_METHOD_ATTR, BAD_VALUE = 0, 0x04, 0x08, 0x0C, 0x1C
NO_RESOURCES, REQ_INVALID, NO_RECORDS, TOO_MANY = 0x100, 0x200, 0x300, 0x400
INVALID_GID, INSUFFICIENT, DENIED = 0x500, 0x600, 0x700
SILENCE = "no response"
PERMISSIVE = 0xFFFF

SMP, SA, PMA, BM, DEV_MGT, CM, DIRECTED = 1, 3, 4, 5, 6, 7, 0x81
VERSION = {SMP: 1, DIRECTED: 1, SA: 2, PMA: 1, CM: 2, BM: 1, DEV_MGT: 1}

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"
TIDS = itertools.count(1)


def get(data, bit, width):
    return int.from_bytes(data, "big") >> len(data) * 8 - bit - width & (1 << width) - 1


def put(data, bit, width, value):
    """@data with a changed field. @value: a number, or bytes of the field's size (padded)."""
    if isinstance(value, bytes):
        value = int.from_bytes(value.ljust(width // 8, b"\0"), "big")
    shift = len(data) * 8 - bit - width
    mask = (1 << width) - 1 << shift
    whole = int.from_bytes(data, "big") & ~mask | value << shift & mask
    return whole.to_bytes(len(data), "big")


class Format:
    """The fields of an attribute of @size bytes: name = (bit, width)."""

    def __init__(self, attr, size, **fields):
        self.attr, self.size, self.fields = attr, size, fields

    def pack(self, data=None, **values):
        data = bytes(self.size) if data is None else data
        for name, value in values.items():
            data = put(data, *self.fields[name], value)
        return data

    def unpack(self, data):
        return {name: get(data, *f) for name, f in self.fields.items()}


class Record(Format):
    """A record of subnet administration: name = (bit, width, bit of the component mask or None)."""

    def __init__(self, attr, size, **fields):
        super().__init__(attr, size, **{n: f[:2] for n, f in fields.items()})
        self.comp = {n: f[2] for n, f in fields.items()}

    def mask(self, names):
        return sum(1 << self.comp[n] for n in names if self.comp[n] is not None)


# ---- attributes of subnet management (14.2.5) and performance management (16.1) ----

NODE_DESC = Format(0x10, 64, text=(0, 512))
NODE_INFO = Format(
    0x11, 40, base=(0, 8), cls=(8, 8), type=(16, 8), ports=(24, 8), sysguid=(32, 64), guid=(96, 64), port_guid=(160, 64),
    pkeys=(224, 16), device=(240, 16), revision=(256, 32), local_port=(288, 8), vendor=(296, 24),
)  # fmt: skip
SWITCH_INFO = Format(
    0x12, 20, lft_cap=(0, 16), rft_cap=(16, 16), mft_cap=(32, 16), lft_top=(48, 16), default_port=(64, 8),
    mc_primary=(72, 8), mc_not_primary=(80, 8), life=(88, 5), state_change=(93, 1), lids_per_port=(96, 16),
    enforce_cap=(112, 16), mft_top=(144, 16),
)  # fmt: skip
GUID_INFO = Format(0x14, 64, **{f"guid{i}": (64 * i, 64) for i in range(8)})
PORT_INFO = Format(
    0x15, 64, mkey=(0, 64), prefix=(64, 64), lid=(128, 16), sm_lid=(144, 16), caps=(160, 32), diag=(192, 16),
    lease=(208, 16), local_port=(224, 8), width_enabled=(232, 8), width_supported=(240, 8), width_active=(248, 8),
    speed_supported=(256, 4), state=(260, 4), phys=(264, 4), down_default=(268, 4), protect=(272, 2), lmc=(277, 3),
    speed_active=(280, 4), speed_enabled=(284, 4), mtu=(288, 4), sm_sl=(292, 4), vl_cap=(296, 4), init_type=(300, 4),
    vl_high_limit=(304, 8), arb_high_cap=(312, 8), arb_low_cap=(320, 8), mtu_cap=(332, 4), stall=(336, 3), hoq=(339, 5),
    vls=(344, 4), enforce_in=(348, 1), enforce_out=(349, 1), mkey_violations=(352, 16), pkey_violations=(368, 16),
    qkey_violations=(384, 16), guid_cap=(400, 8), reregister=(408, 1), timeout=(411, 5), resp_time=(419, 5),
    phy_errors=(424, 4), overruns=(428, 4), caps2=(480, 16), ext_active=(496, 4), ext_supported=(500, 4),
    ext_enabled=(507, 5),
)  # fmt: skip
PKEY_TABLE = Format(0x16, 64, **{f"pkey{i}": (16 * i, 16) for i in range(32)})
SL_TO_VL = Format(0x17, 8, **{f"vl{i}": (4 * i, 4) for i in range(16)})
VL_ARB = Format(0x18, 64, **{f"vl{i}": (16 * i + 4, 4) for i in range(32)}, **{f"weight{i}": (16 * i + 8, 8) for i in range(32)})
LFT = Format(0x19, 64, **{f"port{i}": (8 * i, 8) for i in range(64)})
MFT = Format(0x1B, 64, **{f"mask{i}": (16 * i, 16) for i in range(32)})
SM_INFO = Format(0x20, 21, guid=(0, 64), key=(64, 64), act=(128, 32), priority=(160, 4), state=(164, 4))
LED_INFO = Format(0x31, 4, led=(0, 1))
NOTICE = Format(
    0x02, 80, generic=(0, 1), type=(1, 7), producer=(8, 24), trap=(32, 16), lid=(48, 16), toggle=(64, 1), count=(65, 15),
    lid_128=(80, 16), lid_144=(96, 16), caps_144=(128, 32), flags_144=(160, 16), lid_256=(96, 16), method_256=(128, 8),
    attr_256=(144, 16), mod_256=(160, 32), mkey_256=(192, 64), gid_64=(128, 128), issuer=(512, 128),
)  # fmt: skip
CLASS_PORT_INFO = Format(0x01, 72, base=(0, 8), cls=(8, 8), caps=(16, 16), caps2=(32, 27), resp_time=(59, 5))
COUNTERS = Format(
    0x12, 44, port=(8, 8), select=(16, 16), symbol=(32, 16), recoveries=(48, 8), downed=(56, 8), rcv_errors=(64, 16),
    discards=(112, 16), select2=(144, 8), vl15=(176, 16), tx_words=(192, 32), rx_words=(224, 32), tx=(256, 32),
    rx=(288, 32), wait=(320, 32),
)  # fmt: skip
COUNTERS_EXT = Format(
    0x1D, 184, port=(8, 8), select=(16, 16), select2=(32, 32), tx_words=(64, 64), rx_words=(128, 64), tx=(192, 64),
    rx=(256, 64), uc_tx=(320, 64), uc_rx=(384, 64), mc_tx=(448, 64), mc_rx=(512, 64), symbol=(576, 64),
)  # fmt: skip
SAMPLES = Format(0x10, 192, opcode=(0, 8), port=(8, 8), tick=(16, 8), width=(29, 3), status=(94, 2))
RCV_ERR = Format(0x15, 16, port=(8, 8), select=(16, 16), phys=(32, 16), malformed=(48, 16))

# ---- records of subnet administration (15.2.5) ----

NODE_REC = Record(
    0x11, 108, lid=(0, 16, 0), base=(32, 8, 2), cls=(40, 8, 3), type=(48, 8, 4), ports=(56, 8, 5), sysguid=(64, 64, 6),
    guid=(128, 64, 7), port_guid=(192, 64, 8), pkeys=(256, 16, 9), device=(272, 16, 10), revision=(288, 32, 11),
    local_port=(320, 8, 12), vendor=(328, 24, 13), text=(352, 512, 14),
)  # fmt: skip
PORT_REC = Record(
    0x12, 68, lid=(0, 16, 0), port=(16, 8, 1), mkey=(32, 64, 3), prefix=(96, 64, 4), base_lid=(160, 16, 5),
    sm_lid=(176, 16, 6), caps=(192, 32, 7), width_active=(280, 8, 13), state=(292, 4, 15), phys=(296, 4, 16),
    lmc=(309, 3, 20), mtu=(320, 4, 23), vl_cap=(328, 4, 25), mtu_cap=(364, 4, 31), guid_cap=(432, 8, 42),
)  # fmt: skip
SL_REC = Record(0x13, 16, lid=(0, 16, 0), inp=(16, 8, 1), outp=(24, 8, 2))
SWITCH_REC = Record(0x14, 24, lid=(0, 16, 0), lft_cap=(32, 16, None))
LFT_REC = Record(0x15, 72, lid=(0, 16, 0), block=(16, 16, 1), port0=(64, 8, None))
MFT_REC = Record(0x17, 72, lid=(0, 16, 0), position=(16, 4, 1), block=(23, 9, 3))
SM_REC = Record(0x18, 25, lid=(0, 16, 0), guid=(32, 64, 2), key=(96, 64, 3), priority=(192, 4, 5), state=(196, 4, 6))
LINK_REC = Record(0x20, 6, lid=(0, 16, 0), port=(16, 8, 1), to_port=(24, 8, 2), to_lid=(32, 16, 3))
GUID_REC = Record(0x30, 72, lid=(0, 16, 0), block=(16, 8, 1), guid0=(64, 64, 4))
SERVICE_REC = Record(
    0x31, 176, id=(0, 64, 0), gid=(64, 128, 1), pkey=(192, 16, 2), lease=(224, 32, 4), key=(256, 128, 5),
    name=(384, 512, 6), data8_0=(896, 8, 7), data64_1=(1344, 64, 36),
)  # fmt: skip
PKEY_REC = Record(0x33, 72, lid=(0, 16, 0), block=(16, 16, 1), port=(32, 8, 2), pkey0=(64, 16, None))
PATH_REC = Record(
    0x35, 64, service=(0, 64, None), service_hi=(0, 8, 0), service_lo=(8, 56, 1), dgid=(64, 128, 2), sgid=(192, 128, 3),
    dlid=(320, 16, 4), slid=(336, 16, 5), raw=(352, 1, 6), flow=(356, 20, 8), hops=(376, 8, 9), tclass=(384, 8, 10),
    reversible=(392, 1, 11), numb=(393, 7, 12), pkey=(400, 16, 13), sl=(428, 4, 15), mtu_sel=(432, 2, 16),
    mtu=(434, 6, 17), rate_sel=(440, 2, 18), rate=(442, 6, 19), life_sel=(448, 2, 20), life=(450, 6, 21),
)  # fmt: skip
VL_ARB_REC = Record(0x36, 72, lid=(0, 16, 0), port=(16, 8, 1), block=(24, 8, 2))
MC_REC = Record(
    0x38, 52, mgid=(0, 128, 0), gid=(128, 128, 1), qkey=(256, 32, 2), mlid=(288, 16, 3), mtu_sel=(304, 2, 4),
    mtu=(306, 6, 5), tclass=(312, 8, 6), pkey=(320, 16, 7), rate_sel=(336, 2, 8), rate=(338, 6, 9),
    life_sel=(344, 2, 10), life=(346, 6, 11), sl=(352, 4, 12), flow=(356, 20, 13), hops=(376, 8, 14), scope=(384, 4, 15),
    state=(388, 4, 16), proxy=(392, 1, 17),
)  # fmt: skip
MULTI_REC = Record(
    0x3A, 200, flow=(4, 20, 2), reversible=(40, 1, 5), numb=(41, 7, 6), pkey=(48, 16, 7), sl=(76, 4, 9),
    mtu_sel=(80, 2, 10), mtu=(82, 6, 11), sgids=(120, 8, 19), dgids=(128, 8, 20), gid0=(192, 128, None),
    gid1=(320, 128, None), gid2=(448, 128, None), gid3=(576, 128, None),
)  # fmt: skip
INFORM = Record(
    0x03, 36, gid=(0, 128, 0), begin=(128, 16, 1), end=(144, 16, 2), generic=(176, 8, 4), subscribe=(184, 8, 5),
    type=(192, 16, 6), trap=(208, 16, 7), qpn=(224, 24, 8), resp_time=(251, 5, 10), producer=(264, 24, 12),
)  # fmt: skip
INFORM_REC = Record(
    0xF3, 60, gid=(0, 128, 0), enum=(128, 16, 1), begin=(320, 16, 4), generic=(368, 8, 7), subscribe=(376, 8, 8),
    trap=(400, 16, 10),
)  # fmt: skip
CPI_REC = Record(0x01, 72, base=(0, 8, None), cls=(8, 8, None), caps=(16, 16, None), caps2=(32, 27, None), resp_time=(59, 5, None))
TRACE_REC = Record(0x39, 56)
NO_REC = Record(0x0999, 64)


# ---- datagrams ----


def header(cls, method, attr, mod=0, *, version=None, base=1, tid=None):
    version = VERSION.get(cls, 1) if version is None else version
    tid = next(TIDS) if tid is None else tid
    head = bytes([base, cls, version, method]) + bytes(4) + tid.to_bytes(8, "big")
    return head + attr.to_bytes(2, "big") + bytes(2) + mod.to_bytes(4, "big")


def smp(method, attr, mod=0, data=b"", *, mkey=0, path=None, slid=PERMISSIVE, dlid=PERMISSIVE, hops=None, pointer=0, **head):
    """LID routed; with @path (ports, one per hop) directed route."""
    mad = header(SMP if path is None else DIRECTED, method, attr, mod, **head) + mkey.to_bytes(8, "big")
    if path is None:
        return (mad + bytes(32) + data).ljust(256, b"\0")
    count = len(path) if hops is None else hops
    mad = mad[:6] + bytes([pointer, count]) + mad[8:] + slid.to_bytes(2, "big") + dlid.to_bytes(2, "big")
    mad = mad.ljust(64, b"\0") + data.ljust(64, b"\0")
    return (mad + bytes([0, *path])).ljust(256, b"\0")


def gmp(cls, method, attr, mod=0, data=b"", **head):
    return (header(cls, method, attr, mod, **head).ljust(64, b"\0") + data).ljust(256, b"\0")


def sa(method, attr, mod=0, data=b"", *, key=0, mask=0, **head):
    mad = header(SA, method, attr, mod, **head) + bytes(12) + key.to_bytes(8, "big") + bytes(4)
    return (mad + mask.to_bytes(8, "big") + data).ljust(256, b"\0")


class Answer:
    """A received MAD, or none."""

    def __init__(self, reply, fmt=None, at=64):
        self.mad = bytes.fromhex(reply.get("mad", "")) if reply["status"] == 0 else b""
        self.source, self.fmt, self.at = reply.get("lid"), fmt, at
        self.answered = bool(self.mad)

    def __getattr__(self, name):
        """A field: of the header, or of the (first) attribute."""
        if name in HEAD:
            if not self.answered:
                return SILENCE if name == "status" else None
            value = get(self.mad, *HEAD[name])
            return value & 0x7FFF if name == "status" and self.mad[1] == DIRECTED else value
        if name == "count":
            return len(self.records)
        return self.records[0][name] if self.records else None

    @property
    def records(self):
        if not self.answered:
            return []
        body = self.mad[self.at :]
        if self.at == 56 and self.rmpp_type == 1:
            stride = self.offset * 8
            n = len(body) // stride if stride else 0
            return [self.fmt.unpack(body[i * stride : i * stride + self.fmt.size]) for i in range(n)]
        return [self.fmt.unpack(body[: self.fmt.size].ljust(self.fmt.size, b"\0"))]


HEAD = {
    "base_version": (0, 8), "mgmt_class": (8, 8), "class_version": (16, 8), "method": (24, 8), "status": (32, 16),
    "d_bit": (32, 1), "pointer": (48, 8), "hop_count": (56, 8), "tid": (64, 64), "attr": (128, 16), "mod": (160, 32),
    "rmpp_version": (192, 8), "rmpp_type": (200, 8), "rmpp_flags": (213, 3), "segment": (224, 32),
    "payload": (256, 32), "sm_key": (288, 64), "offset": (352, 16), "mask": (384, 64), "mkey_field": (192, 64),
    "return1": (1544, 8), "return2": (1552, 8), "initial1": (1032, 8),
}  # fmt: skip


class Program:
    """programs/@name.py on @host, and the requests to it by its socket (programs/agent.py)."""

    def __init__(self, fabric, host, name):
        folder = fabric.folder / "agents"
        folder.mkdir(exist_ok=True)
        for file in PROGRAMS.glob("*.py"):
            (folder / file.name).write_bytes(file.read_bytes())
        path = fabric.folder / f"{name}-{host}.sock"
        self.host = host
        self.process = fabric.start(host, "/usr/bin/python3", folder / f"{name}.py", path)
        wait_until(lambda: path.exists() or not self.process.running(), 20, f"the agent on {host}", 0.01)
        assert path.exists(), self.process.output
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")

    def call(self, op, **q):
        self.file.write(json.dumps({"op": op, **q}) + "\n")
        self.file.flush()
        line = self.file.readline()
        assert line, self.process.output
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer

    def close(self):
        self.socket.close()
        self.process.kill()


class Agent(Program):
    """Sends and receives management datagrams by libibumad on @host."""

    def __init__(self, fabric, host):
        super().__init__(fabric, host, "mad_agent")

    def query(self, mad, *, lid, fmt=None, at=64, **q):
        qpn = 0 if mad[1] in (SMP, DIRECTED) else 1
        rmpp = q.pop("rmpp", int(mad[1] == SA))
        version = q.pop("version", VERSION.get(mad[1], 1))
        words = {"class": mad[1], "version": version, "qpn": qpn, "lid": lid, "rmpp": rmpp, "mad": mad.hex(), **q}
        return Answer(self.call("request", **words), fmt, at)

    def respond(self, mad, *, lid, port="send", methods=(), **q):
        qpn = 0 if mad[1] in (SMP, DIRECTED) else 1
        words = {"class": mad[1], "version": VERSION[mad[1]], "qpn": qpn, "lid": lid, "mad": mad.hex(), "port": port}
        self.call("respond", methods=list(methods), **words, **q)

    def register_agent(self, port, cls, methods, rmpp=0):
        self.call("register_agent", port=port, version=VERSION[cls], methods=list(methods), rmpp=rmpp, **{"class": cls})

    def recv(self, port, fmt=None, at=64, timeout=3000):
        return Answer(self.call("recv", port=port, timeout=timeout), fmt, at)


def check(row, net, cannot=None):
    """
    Asserts each (answer, {field: expected}) of a row. An expected set means one of its members. @cannot: why the row does
    not hold; it fails if it does.
    """
    if cannot:
        with pytest.raises(AssertionError):
            check(row, net)
        pytest.xfail(cannot)
    steps = row.fn(net)
    with contextlib.closing(steps) if hasattr(steps, "close") else contextlib.nullcontext():
        _check(row.name, row.clause, steps)


def _check(name, clause, steps):
    for i, (answer, want) in enumerate(steps):
        want = want if isinstance(want, dict) else {"status": want}
        for field, expected in ({"status": OK} | want).items():
            got = getattr(answer, field)
            good = got in expected if isinstance(expected, set) else got == expected
            shown = [hex(x) if isinstance(x, int) else x for x in (expected, got)]
            assert good, f"{name} (IBTA {clause}), step {i + 1}: {field}: expected {shown[0]}, got {shown[1]}"


def rule_table():
    """
    An empty table of rules, and a function that adds a row: rule(name, clause, fn), or as a decorator. @cannot: the
    reason why it does not hold.
    """
    rules = []

    def rule(name, clause, fn=None, *, cannot=None):
        def add(fn):
            rules.append(types.SimpleNamespace(name=name, clause=clause, fn=fn, cannot=cannot))
            return fn

        return add(fn) if fn else add

    return rules, rule
