#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints the numbers of a device's asynchronous events, a line each: async_events.py DEVICE."""

import sys

from pyverbs.device import Context

with Context(name=sys.argv[1]) as ctx:
    print("ready", flush=True)
    while True:
        event = ctx.get_async_event()
        print(event.event_type, flush=True)
        event.ack()
