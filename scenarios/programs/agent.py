# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests' agents: requests on a Unix socket, one JSON object per line, with one response each."""

import json
import os
import socket


def serve(server, path):
    """
    Calls server.OP(request) for each; several connections are served in turn. The socket exists when the agent is
    ready.
    """
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path + ".tmp")
        s.listen()
        os.rename(path + ".tmp", path)
        while True:
            with s.accept()[0] as c, c.makefile("rw") as f:
                for line in f:
                    q = json.loads(line)
                    try:
                        answer = getattr(server, q["op"])(q)
                    except (AssertionError, OSError) as e:
                        answer = {"error": str(e)}
                    f.write(json.dumps(answer) + "\n")
                    f.flush()
