# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two daemons, which know nothing of each other, with hosts on addresses of the machine."""

import os


class Two:
    """@letter's hosts 1 and 3 are of fabric a, 2 is of b. Their addresses are this process's own, from @first on."""

    def __init__(self, a, b, letter, device, first=1):
        net = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
        self.a, self.b, self.device, self.second = a, b, device, f"{letter}2"
        self.ip = {f"{letter}{i}": f"{net}.{first + i}" for i in (1, 2, 3)}

    def of(self, host):
        return self.b if host == self.second else self.a

    def run(self, host, *argv, **kw):
        return self.of(host).run(host, *argv, **kw)

    def pair(self, server, client, timeout=60.0):
        srv = self.of(server[0]).start(*server)
        out = self.of(client[0])._retry(srv, client, timeout)
        return srv.wait(timeout, status=None), out

    def counter(self, host, name):
        return int(self.run(host, "cat", f"/sys/class/infiniband/{self.device}/ports/1/counters/{name}"))
