# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
IBTA rules for requesters, responders, datagrams, SRQs, memory windows, CQs, QP states, objects and on-demand paging:
tables in programs/rules, whose rows name their clauses. Requester and responder are queue pairs of one program on the
two ports of h1.

    h1:1 --+
           leaf1
    h1:2 --+
"""

import pytest

SUBJECTS = ("states", "requests", "order", "datagrams", "srq", "windows", "cq", "objects", "paging")
PARTITIONS = "Default=0x7fff, ipoib : ALL=full;\nBlue=0x8001 : ALL=full;\n"


@pytest.fixture(scope="module")
def rules(muslin_make_fabric, program):
    """
    Runs the rules of a subject; returns its rows as (verdict, name, clause, failure or reason why it cannot hold).
    """
    fabric = muslin_make_fabric("rules-verbs")
    path = fabric.folder / "partitions.conf"
    path.write_text(PARTITIONS)
    path.chmod(0o644)
    fabric.up("leafs 1 spines 1 hosts 1 ports 2 mtu 2048\n", "--partitions", path)

    def run(subject):
        *lines, end = fabric.run("h1", program("rules"), subject, timeout=300).splitlines()
        assert end == "END"
        return [line.split(" | ") for line in lines]

    yield run
    fabric.down()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_rules(rules, subject):
    rows = rules(subject)
    for row in rows:
        if row[0].startswith("CANNOT "):
            print(" | ".join(row))
    assert not [" | ".join(row) for row in rows if not row[0].startswith(("HOLDS ", "CANNOT "))]
    assert all(len(row) == (3 if row[0].startswith("CANNOT ") else 2) and row[1] for row in rows)
