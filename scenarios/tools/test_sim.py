# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
muslin-sim: fabric, subnet manager and traffic under a virtual clock.

    h1-h4 -- leaf1 --+-- spine1 --+-- leaf2 -- h5-h8
                     +-- spine2 --+
"""

import pytest


def test_everything_arrives(sim):
    r = sim("--seconds", 100)
    assert r["active_hosts"] == r["hosts"] == 8 and r["heavy_sweeps"] == 1 and r["light_sweeps"] >= 9
    assert 7000 < r["sent"] == r["arrived"] and r["out_of_order"] == 0


FAULTS = ["--fault", "all drop prob=5% opcode=uc", "--fault", "h3 reorder prob=30% depth=2 time=1s"]


def test_the_same_seed_is_the_same_run(sim):
    """Packet by packet, with chance in losses, order and traffic; another seed is another run."""
    runs = [sim("--seconds", 50, "--seed", s, *FAULTS) for s in (7, 7, 8)]
    for r in runs:
        del r["real_seconds"], r["times_real_time"]
        assert r["out_of_order"] > 0 and all(f["hits"] > 0 for f in r["faults"])
    assert runs[0] == runs[1]
    assert runs[0]["digest"] != runs[2]["digest"]


def test_a_spine_dies_for_a_while(sim):
    """What is under way is lost, and nothing after the manager has found the other spine."""
    r = sim("--seconds", 100, "--fault", "30:spine1 kill for=20s")
    assert r["traps"] > 0 and r["heavy_sweeps"] >= 3
    assert 0.99 * r["sent"] < r["arrived"] <= r["sent"]


def test_a_manager_that_hears_nothing(sim):
    """Without SMPs nothing comes up; once they are let through, everything does."""
    r = sim("--seconds", 60, "--fault", "h1 drop class=SubnDR dir=in")
    assert r["active_hosts"] < 8 and r["arrived"] == 0 and r["faults"][0]["hits"] > 0
    assert sim("--seconds", 60, "--fault", "h1 drop class=SubnDR dir=in count=30")["active_hosts"] == 8


def test_much_faster_than_time(sim, tmp_path):
    """A hundred hosts and more, swept every ten seconds: a thousand times as fast as time at the least."""
    topology = tmp_path / "tree"
    topology.write_text("fattree k=8 levels=3\n")
    r = sim("--seconds", 1000, "--traffic", 0.1, topology)
    assert r["active_hosts"] == 128 and r["light_sweeps"] >= 95
    assert r["times_real_time"] > 1000


@pytest.mark.parametrize(
    "args, words",
    [
        (["--fault", "h1 drp"], "drp: there is no such fault"),
        (["--fault", "5:h9 drop"], "h9: there is no such node"),
        (["--fault", "-1:h1 drop"], "no such time"),
        (["/nonexistent"], "/nonexistent"),
    ],
)
def test_what_is_wrong_is_named(sim, args, words):
    assert words in sim(*args, status=1)
