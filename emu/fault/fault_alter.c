// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The packet fault alter, of targets whose packets are struct wire_packet: payload bytes, or a MAD's status. */
#include <stdlib.h>

#include "emu/fault/fault.h"
#include "emu/wire/mad.h"

/* Hexadecimal bytes: "0a1b2c" */
bool fault_parse_bytes(void *to, const char *value)
{
	struct fault_bytes *b = to;
	size_t len = strlen(value), i;

	if (!len || len % 2 || len / 2 > FAULT_BYTES_MAX || strspn(value, "0123456789abcdefABCDEF") != len)
		return false;
	b->n = (u8)(len / 2);
	for (i = 0; i < b->n; i++) {
		char byte[3] = { value[2 * i], value[2 * i + 1], 0 };

		b->data[i] = (u8)strtoul(byte, NULL, 16);
	}
	return true;
}

enum fault_verdict fault_alter(struct fault_hook *h, void *packet)
{
	const struct fault *ft = h->fault;
	bool status = fault_given(ft, FAULT_STATUS);
	struct wire_packet *p = packet;

	if ((status && !wire_match_mad(p)) || p->len < ft->offset + ft->to.n || !fault_hit(h, p))
		return FAULT_PASS;
	if (!p->len || !wire_packet_unshare(p))
		return FAULT_PASS;
	memcpy(p->buf->data + ft->offset, ft->to.data, ft->to.n);
	if (status) /* beside the D bit of directed routes */
		wire_set(p->buf->data, MAD_STATUS, (wire_get(p->buf->data, MAD_STATUS) & 0x8000) | ft->status);
	return FAULT_PASS;
}

int fault_check_alter(struct fault *ft, char *err, size_t err_len)
{
	if (!ft->to.n && !fault_given(ft, FAULT_STATUS))
		return spec_refuse(err, err_len, "alter: it needs to=HEX or status=");
	return 0;
}
