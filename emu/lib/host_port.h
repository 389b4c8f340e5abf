/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses HOST:PORT, whose host may be an IPv6 address in brackets. */
#ifndef MUSLIN_HOST_PORT_H
#define MUSLIN_HOST_PORT_H

#include <stddef.h>

#define HOST_MAX 256 /* size of a buffer for any name of DNS */

/*
 * Splits "HOST:PORT": @host gets the host without brackets. Returns the port, a part of @text: a number from 1 to
 * 65535. NULL: @text is something else, or @size is too small for its host.
 */
const char *host_port_split(const char *text, char *host, size_t size);

#endif
