# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two independent daemons, with hosts on addresses of the machine."""

import os
import re

from muslin.pair import RESTART_BOTH

# The same over iWARP, where a server that receives the MPA Request too early closes the TCP connection.
RESTART_ON_TCP = re.compile(r"socket/rdma_cm|Failed to exchange data|Failed to create RDMA CM|" + RESTART_BOTH.pattern)


def own_addresses(letter, first=1):
    """Loopback addresses for this process only, from @first on, for hosts 1 to 3."""
    net = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
    return {f"{letter}{i}": f"{net}.{first + i}" for i in (1, 2, 3)}


class Two:
    """The host @second is of fabric b, all others are of a. @device: the name of their adapter."""

    restart = RESTART_BOTH

    def __init__(self, a, b, second, device):
        self.a, self.b, self.second, self.device = a, b, second, device

    def of(self, host):
        return self.b if host == self.second else self.a

    def run(self, host, *argv, **kw):
        return self.of(host).run(host, *argv, **kw)

    def pair(self, server, client, timeout=60.0):
        clients = self.of(client[0])
        return self.of(server[0]).pair(server, client, client_fabric=clients, restart=self.restart, timeout=timeout)

    def counter(self, host, name):
        return int(self.run(host, "cat", f"/sys/class/infiniband/{self.device}/ports/1/counters/{name}"))
