// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* P_Keys of a port's table: of a partition, and of a received packet (IBTA 10.9). */
#include "emu/lib/row.h"
#include "emu/port/port.h"

static const struct {
	const char *name;
	u16 table[4], pkey;
	u16 index; /* of the partition */
	int match; /* of a packet's P_Key */
} rows[] = {
	{ "the only P_Key", { 0xffff }, 0xffff, 0, 0 },
	{ "the second one", { 0xffff, 0x8001 }, 0x8001, 1, 1 },
	{ "a limited member's", { 0xffff, 0x0001 }, 0x8001, 1, 1 },
	{ "both memberships: the full member's", { 0x7fff, 0xffff }, 0xffff, 1, 0 },
	{ "both memberships, by the limited P_Key", { 0x7fff, 0xffff, 0x0001 }, 0x7fff, 1, 1 },
	{ "two limited members do not match", { 0x7fff, 0x0001 }, 0x0001, 1, -1 },
	{ "another partition", { 0xffff, 0x8001 }, 0x8002, 0, -1 },
	{ "an empty table", { 0 }, 0xffff, 0, -1 },
};

int main(void)
{
	struct wire_port port;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		port = (struct wire_port){ .attr.pkeys = ARRAY_SIZE(rows[i].table) };
		memcpy(port.attr.pkey, rows[i].table, sizeof(rows[i].table));
		row(0, rows[i].name,
		    wire_port_pkey_index(&port, rows[i].pkey) == rows[i].index &&
			    wire_port_pkey_match(&port, rows[i].pkey) == rows[i].match);
	}
	return rows_end();
}
