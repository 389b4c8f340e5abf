# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Commands of ibsim's console, for scripts that use them for failures.

    h1..h4 -- leaf1 --+-- spine1 --+-- leaf2 -- h5..h8
                      +-- spine2 --+
"""

import json

from muslin import wait_until


def console(fabric, *lines, status=0):
    script = fabric.folder / "console.txt"
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o644)
    return fabric._start(["sh", "-c", f"'{fabric.muslin}' console <'{script}'"]).wait(20, status)


def down(fabric, node):
    return [p["num"] for p in fabric.node(node)["ports"] if p.get("peer") and p["state"] == "Down"]


def test_links(fabric):
    """One cable, or all of a node, is disconnected and connected again."""
    console(fabric, 'Unlink "h8"[1]', "unlink spine2")
    assert down(fabric, "h8") == [1] and down(fabric, "spine2") == [1, 2] and down(fabric, "spine1") == []
    console(fabric, 'ReLink "h8"[1]', "Link spine2:1", "Link spine2[2]", "quit", "Unlink h1")
    wait_until(lambda: not down(fabric, "h8") + down(fabric, "spine2"), 20, "the links")
    assert down(fabric, "h1") == []


def test_errors_and_clear(fabric):
    """Part of a port's management packets is lost, those of one attribute alone, until that is cleared."""
    console(fabric, 'Error "h5"[1] 50', 'Error "h6"[1] 100 NodeDescription')
    armed = [f["fault"] for f in json.loads(fabric.command("fault", "list", "--json"))]
    some, all_of_one = "h5:1 drop prob=50% opcode=ud qpn=0-1", "h6:1 drop prob=100% opcode=ud qpn=0-1"
    assert armed == [some, f"{all_of_one} attr=NodeDescription"]
    lid = str(fabric.port("h6")["lid"])
    assert "Channel Adapter" in fabric.run("h1", "smpquery", "nodeinfo", lid)
    assert "failed" in fabric.run("h1", "smpquery", "nodedesc", lid, status=None)
    console(fabric, 'Clear "h6"[1]', "Error h5[1] 0")
    assert fabric.command("fault", "list", "--json").strip() == "[]"
    assert "h6" in fabric.run("h1", "smpquery", "nodedesc", lid)


def test_what_is_wrong_is_named(fabric):
    """Each invalid line is reported, the others are executed, and the exit status shows that there was one."""
    lines = ['Unlink "h9"[1]', "Unlink h1[x]", "Unlik h1[1]", "help", 'Unlink "h8', "Error h1[1] much", "Unlink h8[1]"]
    out = console(fabric, *lines, status=1)
    assert 'no node "h9"' in out and "Unlik: unknown command; there are Link" in out
    assert "help: unknown command; there are Link" in out and out.count('of which "node"[port]?') == 2
    assert "Error: expected a rate from 0 to 100" in out and down(fabric, "h8") == [1]
