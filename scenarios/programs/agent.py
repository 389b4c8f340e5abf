# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the agents of tests share: requests by a Unix socket, a JSON object a line, each answered by one."""

import json
import os
import socket


def serve(server, path):
    """Calls server.OP(request) for each; several connections are served in turn. The socket exists when it is ready."""
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
