# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the harness of this tree pytest's plugin; names each failure at once, since a whole run takes 20 minutes."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "harness"))
pytest_plugins = ["muslin.plugin"]


class Failures:
    def __init__(self, terminal):
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message.partition("\n")[0] if crash else ""
            self.terminal.write_line(f"\nFAILED at {report.when} {report.nodeid} {reason}"[:300])


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(terminal))
