# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Errors of a fabric, a program or a condition. All are assertions, which pytest reports as failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class MuslinError(AssertionError):
    """Base class of the errors."""


class FabricError(MuslinError):
    """The fabric has no such node, port or state."""


class ProcessFailed(MuslinError):
    """A program ended with another status than expected, or did not end; the message has its output."""


class WaitTimeout(MuslinError):
    """A condition did not become true in time."""


def hide(excinfo: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """As __tracebackhide__ of a module: pytest shows the lines of a test that failed, not those of the module."""
    return excinfo is not None and excinfo.errisinstance(AssertionError)
