# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A ping-pong that is ended by a fault."""

import signal

from muslin import wait_until


def outcome(fabric, *args):
    """Output of a ping-pong from h1 to h5 at h1, and at h5, when the first of both has ended."""
    srv = fabric.start("h5", *args)

    def attempt():
        cli = fabric.start("h1", *args, fabric.ip("h5"))
        wait_until(lambda: not (cli.running() and srv.running()), 60, "the end of one side")
        cli.signal(signal.SIGTERM)
        out = cli.wait(10, status=None)
        return (out or " ") if not srv.running() or "remote address" in out else None

    out = wait_until(attempt, 20, "a connection", 0.1)
    srv.signal(signal.SIGTERM)
    return out, srv.wait(10, status=None)
