# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fabrics, and programs on their hosts, for tests. muslin-pytest(7) is the reference."""

from .errors import FabricError, MuslinError, ProcessFailed, WaitTimeout
from .fabric import Fabric, FabricFactory
from .fault import Fault
from .host import Host, Link, Trace
from .job import Job
from .process import Process, free_port, wait_until
from .vm import VM

__version__ = "1.0.0"

__all__ = [
    "Fabric",
    "FabricError",
    "FabricFactory",
    "Fault",
    "Host",
    "Job",
    "Link",
    "MuslinError",
    "Process",
    "ProcessFailed",
    "Trace",
    "VM",
    "WaitTimeout",
    "free_port",
    "wait_until",
]
