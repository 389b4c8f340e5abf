# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
`muslin cp`: files to and from a guest that runs, by a virtio port that its init serves (root/init). A request is a
line; a file that goes to the guest follows in whole blocks, since a guest's shell reads no other amount exactly.
"""

import base64
import os
import pathlib
import re
import shutil
import socket
import sys

BLOCK = 65536
PATH_MAX = 107  # of a socket
NAMED = re.compile(r"([\w][^/:]*):(/.*|)", re.S)  # HOST:PATH


def socket_of(folder, host):
    """Where QEMU listens for who copies; None: the path is too long for a socket."""
    path = f"{folder}/{host}.files"
    return path if folder and len(path.encode()) <= PATH_MAX else None


def files_argv(folder, host):
    """For QEMU."""
    path = socket_of(folder, host)
    if not path or "," in path:
        return []
    chardev = f"socket,id=files,path={path},server=on,wait=off"
    return ["-chardev", chardev, "-device", "virtserialport,chardev=files,name=muslin.files"]


def end(text):
    sys.exit(f"muslin: {text}")


def connect(folder, host):
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(socket_of(folder, host) or "")
    except OSError:
        end(f"no guest runs on host {host}")
    sock.settimeout(60)
    return sock


def answer(stream, what):
    """The guest's status and number; it says why not."""
    line = stream.readline().decode(errors="replace").split(None, 2)
    if len(line) < 2:
        end(f"{what}: the guest has ended")
    if line[0] != "0":
        end(f"{what}: {line[2].strip() if len(line) > 2 else 'failed'}")
    return int(line[1])


def named(path):
    return base64.b64encode(path.encode()).decode()


def put(folder, source, host, path):
    if not source.is_file():
        end(f"{source}: not a file; `muslin vm --share` mounts directories")
    size, mode = source.stat().st_size, source.stat().st_mode & 0o777
    with source.open("rb") as src, connect(folder, host) as sock, sock.makefile("rwb") as stream:
        target = path or "/root/"
        stream.write(f"put {mode:o} {size} {-(-size // BLOCK)} {named(source.name)} {named(target)}\n".encode())
        shutil.copyfileobj(src, stream)
        stream.write(bytes(-size % BLOCK))
        stream.flush()
        answer(stream, f"{host}:{target}")


def get(folder, host, path, target):
    if target.is_dir():
        target /= os.path.basename(path)
    with connect(folder, host) as sock, sock.makefile("rwb") as stream:
        stream.write(f"get 0 0 0 - {named(path)}\n".encode())
        stream.flush()
        left = answer(stream, f"{host}:{path}")
        with target.open("wb") as dst:
            while left:
                data = stream.read(min(left, BLOCK))
                if not data:
                    end(f"{host}:{path}: the guest has ended")
                dst.write(data)
                left -= len(data)


def copy(words):
    """FILE... HOST:PATH, or HOST:PATH FILE."""
    folder = os.environ.get("MUSLIN_VM_FILES", "")
    *sources, target = words if len(words) > 1 else ("", "")
    to, ours = NAMED.fullmatch(target), [NAMED.fullmatch(s) for s in sources]
    if not any(sources) or bool(to) == any(ours) or (ours[0] and len(sources) > 1):
        print("muslin: usage: muslin cp [--name FABRIC] FILE... HOST:PATH | HOST:PATH FILE", file=sys.stderr)
        return 2
    try:
        for source, our in zip(sources, ours):
            if to:
                put(folder, pathlib.Path(source), to[1], to[2])
            else:
                get(folder, our[1], our[2], pathlib.Path(target))
    except OSError as e:
        end(f"{e.filename or words}: {e.strerror or e}")
    return 0
