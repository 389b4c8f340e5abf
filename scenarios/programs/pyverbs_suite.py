#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs the test suite of pyverbs in FOLDER and writes to RESULT, as JSON, its tests, and the failed and the skipped ones
with their reasons:

    pyverbs_suite.py FOLDER RESULT ADDRESS [suite's options]

The suite finds the address of the RDMA device by its network interface. A host of a fabric has an address
but no interface, so that address is given.
"""

import gc
import json
import os
import pathlib
import random
import sys
import time
import types
import unittest
from importlib.machinery import SourceFileLoader


def completes(module):
    """Its test of a smaller queue expects the completion of a request at once: it takes a moment."""
    suite = module.u
    module.u = types.SimpleNamespace(**vars(suite))

    def send(*args, **kw):
        suite.send(*args, **kw)
        time.sleep(0.1)

    module.u.send = send


def asks_for_odp(tests, utils):
    """A test of ODP over DC registers memory before it looks whether there is ODP, which ib_core refuses as invalid."""
    register = tests.OdpDc.create_mr

    def create_mr(self):
        utils.odp_supported(self.ctx, "rc", 0)
        register(self)

    tests.OdpDc.create_mr = create_mr


def each(suite):
    """The tests of a suite of suites."""
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else [test]


def main():
    folder, result, address = sys.argv[1:4]
    sys.argv[1:] = sys.argv[4:]
    sys.path.insert(0, folder)
    from args_parser import parser

    random.seed(1)  # the suite draws random attributes
    parser.parse_args()
    tests = SourceFileLoader("tests", str(pathlib.Path(folder) / "__init__.py")).load_module()
    base = sys.modules["tests.base"]
    mac = "00:00:00:00:00:00"
    base.RDMATestCase._get_ip_mac = lambda self, dev, port, gid: self.args.append([dev, port, gid, address, mac])
    completes(sys.modules["tests.test_cq"])
    asks_for_odp(sys.modules["tests.test_mlx5_dc"], sys.modules["tests.utils"])
    names = [test.id() for test in each(unittest.defaultTestLoader.loadTestsFromModule(tests))]
    gc.disable()  # pyverbs does not keep a device open for its objects: a collected cycle may be freed in any order
    done = unittest.main(module=tests, exit=False).result
    report = {
        "tests": names,
        "failed": {test.id(): trace for test, trace in done.failures + done.errors},
        "skipped": {test.id(): " ".join(why.split()) for test, why in done.skipped},
    }
    pathlib.Path(result).write_text(json.dumps(report, indent=1))
    sys.stderr.flush()
    os._exit(0)  # the interpreter's exit collects, too


if __name__ == "__main__":
    main()
