// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MADs of the CM class at a manager with a connection and a listener. Input: how to respond, the message
 * type, its 232 bytes; repeated. */
#include "emu/cm/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Fills in the communication IDs, which a fuzzer does not guess. */
static void aim(const struct pair *p, u8 *mad, u8 how)
{
	if (how & 8 && p->b.id) {
		wire_set(mad, CM_LOCAL_COMM_ID, p->b.id->remote_id);
		wire_set(mad, CM_REMOTE_COMM_ID, p->b.id->local_id);
	}
	if (how & 16)
		wire_set(mad, CM_REQ_SERVICE_ID, SERVICE);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct pair p;
	struct mad_addr to;
	u8 mad[MAD_SIZE];
	size_t n;

	pair_open(&p);
	to = TO_LID(2);
	pair_connect(&p);
	cable_run(&p.c, 100);
	for (; size > 1; data += n, size -= n) {
		n = min(size, (size_t)MAD_SIZE - MAD_HDR_SIZE + 2);
		p.b.answer = data[0] % 5;
		cm_mad_init(mad, CM_ATTR_REQ + data[1] % 14, 7);
		memcpy(mad + MAD_HDR_SIZE, data + 2, n - 2);
		aim(&p, mad, data[0]);
		mad_port_xmit(p.c.ma, 1, mad, &to);
		cable_run(&p.c, data[0]);
	}
	cable_run(&p.c, 100000);
	pair_close(&p);
	assert(!wire_packet_live());
	return 0;
}
