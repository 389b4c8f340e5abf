# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Credit loops: a ring of switches whose buffers are full of packets that wait for each other. Each host sends to the one
two places further on, clockwise, on links of 10 Mb/s; by the shortest paths every link of the ring carries two flows.

           h1
          sw1
     h5  /   \\  h2         h1 -> h3, h2 -> h4, h3 -> h5, h4 -> h1, h5 -> h2
      sw5     sw2
        \\     /
    h4  sw4-sw3  h3

The simulation has a virtual clock: links, credits, switches and the subnet manager are those of any other fabric.
"""

import pytest

RATE = ["--rates", "nominal", "--fault", "all rate bps=10M opcode=uc"]
TRAFFIC = [*RATE, "--seconds", 60, "--to", 2, "--traffic", 600, "--size", 2048]
FOR_EVER = ["--hoq", 20]  # no lifetime limit of packets in a switch


@pytest.fixture
def ring(tmp_path, sim):
    topology = tmp_path / "ring"
    topology.write_text("ring 5 hosts 1\n")
    return lambda *args: sim(*TRAFFIC, *args, topology)


def test_shortest_paths_deadlock(ring):
    """
    Within seconds all traffic stops: no packet arrives in the last 50 seconds, none is discarded, and PortXmitWait
    increases: in 60 s of a longer deadlock by the same amount again.
    """
    dead = ring("--routing", "minhop", *FOR_EVER)
    assert dead["last_arrival"] < 10 and not any(dead["discarded"].values())
    longer = ring("--routing", "minhop", *FOR_EVER, "--seconds", 120)
    assert longer["arrived"] == dead["arrived"]
    assert longer["xmit_wait"] > 1.9 * dead["xmit_wait"]


@pytest.mark.parametrize("routing", ["updn", "auto"])
def test_up_and_down_does_not(ring, routing):
    """Up/down paths form no credit loop: all links are busy to the end."""
    alive = ring("--routing", routing, *FOR_EVER)
    assert alive["routing"] == "updn" and alive["last_arrival"] > 60
    assert alive["arrived"] > 50 * ring("--routing", "minhop", *FOR_EVER)["arrived"]


def test_packet_lifetimes_resolve_it(ring):
    """With the lifetimes that the manager sets by default, switches discard packets after a second: loss instead."""
    lossy = ring("--routing", "minhop")
    assert lossy["last_arrival"] > 60
    assert lossy["discarded"]["xmit_sw_lifetime"] + lossy["discarded"]["xmit_sw_hoq"] > 1000
