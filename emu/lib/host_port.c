// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses HOST:PORT, whose host may be an IPv6 address in brackets. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/lib/host_port.h"

const char *host_port_split(const char *text, char *host, size_t size)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : "";
	size_t digits = strspn(port, "0123456789"), len = colon ? (size_t)(colon - text) : 0;
	unsigned long number = digits && digits <= 5 ? strtoul(port, NULL, 10) : 0;
	bool brackets = len > 2 && text[0] == '[' && colon[-1] == ']';

	if (port[digits] || !number || number > 65535 || !len || len >= size)
		return NULL;
	snprintf(host, size, "%.*s", (int)len - (brackets ? 2 : 0), text + brackets);
	return port;
}
