# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server and its client: the client starts again while the server is not listening yet."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable

from .errors import ProcessFailed, WaitTimeout
from .errors import hide as __tracebackhide__  # noqa: F401
from .process import Process, wait_until

# Output of clients without a listener: rdma_cm programs as rping, perftest, libibverbs' pingpongs, UCX, libfabric.
CONNECT_REFUSED = re.compile(
    r"ouldn't connect|refused|REJECTED|UNREACHABLE|ADDR_ERROR|status -?(8|111)|event 8|blka 8", re.I
)
# Output of perftest when both sides have to start again: with -R the client connected a second time before the server
# listened for that; or the clock of the processor could not be measured on a busy machine.
RESTART_BOTH = re.compile("Failed to connect RDMA CM events|Correlation coefficient")
CONNECT_SECONDS = 60  # a busy machine takes seconds to start a server


def run(
    server: Process, start_client: Callable[[], Process], timeout: float, restart: re.Pattern[str] = RESTART_BOTH
) -> str:
    """
    Runs clients, each created by @start_client(), until one succeeds, and returns its output. After one whose
    connection was refused, or when it or @server (a Process) has printed a match of @restart, both start again.
    """
    pauses = (0.1 * 2**n for n in itertools.count())
    outputs = ""

    def attempt() -> str | None:
        nonlocal outputs
        client = start_client()
        text = client.wait(timeout, status=None)
        if client.popen.returncode == 0 and not restart.search(text):
            return text or " "
        outputs = _outputs(client, server)
        if not restart.search(text + server.output) and not CONNECT_REFUSED.search(text):
            raise ProcessFailed(outputs)
        server.restart()  # it may have accepted some of several connections, and would wait for their end
        time.sleep(next(pauses))
        return None

    try:
        return wait_until(attempt, CONNECT_SECONDS, f"a connection to {server}", 0.2) or ""
    except WaitTimeout as e:
        raise WaitTimeout(f"{e}: {outputs}") from None


def _outputs(client: Process | None, server: Process) -> str:
    if client is None:
        return f"the server {server}:\n{server.output}"
    state = f"ended with {client.popen.returncode}" if client.popen.poll() is not None else "runs"
    return f"{client} {state}:\n{client.output}\nthe server {server}:\n{server.output}"


def start(
    server: Process, start_client: Callable[[], Process], until: Callable[[], object], timeout: float, what: str
) -> Process:
    """
    Starts clients until one is connected, so that @until() is true, and returns that one, which runs on. A client that
    has ended starts again; with a match of RESTART_BOTH, or when it has ended, so does @server.
    """
    client: Process | None = None

    def connected() -> Process | None:
        nonlocal client
        if client and until():
            return client
        if client and client.running():
            return None
        if client and (not server.running() or RESTART_BOTH.search(client.output + server.output)):
            server.restart()
        client = start_client()
        return None

    try:
        wait_until(connected, timeout, what, 0.1)
    except WaitTimeout as e:
        raise WaitTimeout(f"{e}: {_outputs(client, server)}") from None
    assert client
    return client
