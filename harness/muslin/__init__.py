# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fabrics, and programs on their hosts, for tests."""

from .fabric import Fabric, FabricError
from .fault import Fault
from .job import Job
from .process import Process, ProcessFailed, free_port, wait_until
from .vm import VM

__all__ = ["Fabric", "FabricError", "Fault", "Job", "VM", "Process", "ProcessFailed", "free_port", "wait_until"]
