# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The kernel's siw as a test peer: Debian ships its source only. Constants of that for connection establishment become
parameters of the module.
"""

import re

import kernel_source

SOURCE = "drivers/infiniband/sw/siw"
NEEDED = ("crc32c_generic", "libcrc32c")
PARAMETERS = {"mpa_crc_required": "bool", "peer_to_peer": "bool", "mpa_version": "byte"}


def _give_parameters(folder):
    for name, kind in PARAMETERS.items():
        for file in ("siw.h", "siw_main.c"):
            path = folder / SOURCE / file
            path.write_text(re.sub(rf"\bconst (\w+ {name}\b)", r"\1", path.read_text()))
        with (folder / SOURCE / "siw_main.c").open("a") as f:
            f.write(f"module_param({name}, {kind}, 0644);\n")


def modules(cache):
    """The module files for the kernel that guests boot, in the order of loading."""
    return kernel_source.modules(cache, "siw", [SOURCE], ["siw"], needed=NEEDED, edit=_give_parameters)
