# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What goes wrong with a fabric, a program or a condition. All are assertions, which pytest reports as failures."""


class MuslinError(AssertionError):
    """The base of the others."""


class FabricError(MuslinError):
    """A fabric has no such node, port or state."""


class ProcessFailed(MuslinError):
    """A program ended with another status than asked for, or did not end; the message holds its output."""


class WaitTimeout(MuslinError):
    """A condition did not come true in time."""
