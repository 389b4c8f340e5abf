// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of addresses HOST:PORT. */
#include <string.h>

#include "emu/lib/host_port.h"
#include "emu/lib/row.h"
#include "emu/lib/types.h"

int main(void)
{
	static const struct {
		const char *text, *host, *port; /* NULL: invalid */
	} rows[] = {
		{ "192.0.2.7:4000", "192.0.2.7", "4000" },
		{ "[2001:db8::7]:4000", "2001:db8::7", "4000" },
		{ "[::]:1", "::", "1" },
		{ "*:65535", "*", "65535" },
		{ "node-7.cluster:4000", "node-7.cluster", "4000" },
		{ "a-name-of-fifteen-and-more:4000", NULL, NULL },
		{ "192.0.2.7", NULL, NULL },
		{ "192.0.2.7:", NULL, NULL },
		{ ":4000", NULL, NULL },
		{ "192.0.2.7:0", NULL, NULL },
		{ "192.0.2.7:65536", NULL, NULL },
		{ "192.0.2.7:000000080", NULL, NULL },
		{ "192.0.2.7:40x", NULL, NULL },
		{ "192.0.2.7:+40", NULL, NULL },
		{ "[]:4000", "[]", "4000" },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		char host[16] = "";
		const char *port = host_port_split(rows[i].text, host, sizeof(host));

		row_of(rows[i].text, "split",
		       rows[i].port ? port && !strcmp(port, rows[i].port) && !strcmp(host, rows[i].host) : !port);
	}
	return rows_end();
}
