# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
QEMU's live migration by RDMA, between two QEMUs on hosts: of machines that do not run, whose memory is compared.

    h1 -- leaf1 ... leaf2 -- h5        r1 -- sw1 -- sw2 -- r2        w1, w2: iWARP on loopback addresses
"""

import hashlib
import json
import os
import shutil
import socket

import pytest
from muslin import free_port, wait_until
from test_programs import ETHERNET  # noqa: F401

QEMU = "qemu-system-x86_64"
pytestmark = pytest.mark.skipif(not shutil.which(QEMU), reason=f"no {QEMU} here: ci/deps test")
MEMORY, DATA, AT = 24 << 20, 16 << 20, 2 << 20  # machine, its non-zero part, and the address of that


class Machine:
    """A QEMU on a host, whose machine does not run; controlled by QMP."""

    def __init__(self, fabric, host, folder, *options):
        self.path = folder / f"{host}.qmp"
        argv = [QEMU, "-accel", "tcg", "-nodefaults", "-display", "none", "-S", "-m", f"{MEMORY >> 20}M"]
        self.process = fabric.start(host, *argv, "-qmp", f"unix:{self.path},server=on,wait=off", *options)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        wait_until(lambda: self.path.exists() or not self.process.running(), what="QEMU's socket")
        wait_until(lambda: self.socket.connect_ex(str(self.path)) == 0, what=f"a connection to {self.process.output}")
        self.lines = self.socket.makefile("r")
        self.qmp("qmp_capabilities")

    def qmp(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for line in self.lines:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            assert "error" not in answer, (answer, self.process.output)
        raise AssertionError(self.process.output)

    def migrated(self):
        info = self.qmp("query-migrate")
        assert info.get("status") != "failed", self.process.output
        return info if info.get("status") == "completed" else None

    def digest(self, file):
        """Digest of all memory, by a file that any user may write."""
        self.qmp("pmemsave", val=0, size=MEMORY, filename=str(file))
        return hashlib.sha256(file.read_bytes()).hexdigest()

    def quit(self):
        self.qmp("quit")
        self.process.wait(30)


@pytest.mark.parametrize("pinned", [False, True], ids=["chunks", "pinned"])
def test_migration(ends, folder, pinned):
    """Memory is registered in parts as it is sent, or completely before."""
    fabric, server, client, ip = ends
    folder.chmod(0o777)
    data = folder / "data"
    data.write_bytes(os.urandom(DATA))
    data.chmod(0o644)
    uri = f"rdma:{ip}:{free_port()}"
    target = Machine(fabric, server, folder, "-incoming", "defer")
    source = Machine(fabric, client, folder, "-device", f"loader,file={data},addr={AT},force-raw=on")
    for machine in (source, target):
        machine.qmp("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pinned}])
        machine.qmp("migrate-set-parameters", **{"max-bandwidth": 1 << 30})
    target.qmp("migrate-incoming", uri=uri)
    before = source.digest(folder / "source")  # the target's memory cannot be read yet, since QEMU 11.1
    assert before != hashlib.sha256(bytes(MEMORY)).hexdigest()
    source.qmp("migrate", uri=uri)
    sent = wait_until(source.migrated, 60, "the end of the migration")["ram"]
    wait_until(target.migrated, 30, "the end of the migration at the target")
    assert sent["normal"] * 4096 >= DATA
    assert target.digest(folder / "target") == before == source.digest(folder / "source")
    for machine in (source, target):
        machine.quit()
