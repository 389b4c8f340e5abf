#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs the test suite of pyverbs in FOLDER and writes to RESULT, as JSON, its tests, which failed, which were skipped and
why:

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
    """Its test of a queue that shrinks counts on the completion of what it has just posted: that takes a moment."""
    suite = module.u
    module.u = types.SimpleNamespace(**vars(suite))

    def send(*args, **kw):
        suite.send(*args, **kw)
        time.sleep(0.1)

    module.u.send = send


def each(suite):
    """The tests of a suite of suites."""
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else [test]


def main():
    folder, result, address = sys.argv[1:4]
    sys.argv[1:] = sys.argv[4:]
    sys.path.insert(0, folder)
    from args_parser import parser

    random.seed(1)  # the suite draws attributes
    parser.parse_args()
    tests = SourceFileLoader("tests", str(pathlib.Path(folder) / "__init__.py")).load_module()
    base = sys.modules["tests.base"]
    mac = "00:00:00:00:00:00"
    base.RDMATestCase._get_ip_mac = lambda self, dev, port, gid: self.args.append([dev, port, gid, address, mac])
    completes(sys.modules["tests.test_cq"])
    names = [test.id() for test in each(unittest.defaultTestLoader.loadTestsFromModule(tests))]
    gc.disable()  # pyverbs does not keep a device open for what is of it: a collected cycle may end in any order
    done = unittest.main(module=tests, exit=False).result
    report = {
        "tests": names,
        "failed": {test.id(): trace for test, trace in done.failures + done.errors},
        "skipped": {test.id(): " ".join(why.split()) for test, why in done.skipped},
    }
    pathlib.Path(result).write_text(json.dumps(report, indent=1))
    sys.stderr.flush()
    os._exit(0)  # for the interpreter's end collects, too


if __name__ == "__main__":
    main()
