// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MADs from the wire to QP0 and QP1 of a port whose agents respond, with RMPP. Input: QP, then 256 bytes, repeated. */
#include "emu/mad/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void answer(struct seen *s)
{
	u8 resp[1024] = { 0 };

	memcpy(resp, s->mad, MAD_SIZE);
	resp[3] |= 0x80;
	mad_send(s->agent, resp, rmpp_active(resp) ? sizeof(resp) : MAD_SIZE, &s->from, 0, 1, NULL);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct seen seen[3] = { { .then = answer }, { .then = answer }, { .then = answer } };
	static const u8 classes[] = { MAD_CLASS_SUBN_ADM, MAD_CLASS_SUBN_LID, MAD_CLASS_OPENIB_PING };
	u8 mad[MAD_SIZE];
	struct cable c;
	size_t n;
	u32 i;

	cable_open(&c);
	for (i = 0; i < 3; i++)
		seen_register(c.mb, &seen[i], classes[i], i ? 1 : 2, i != 1);
	mad_fill(mad, MAD_CLASS_SUBN_ADM, 2, 0x14, 0x11, 1); /* a message in progress, to be acknowledged */
	wire_set(mad, RMPP_FLAGS, RMPP_FLAG_ACTIVE);
	wire_set(mad, RMPP_TYPE, RMPP_TYPE_DATA);
	mad_send(seen[0].agent, mad, MAD_SIZE, &TO_LID(1), 100, 1, NULL);
	for (; size > 1; data += n, size -= n) {
		struct mad_addr to = { .qpn = data[0] & 1, .qkey = MAD_QKEY_WELL_KNOWN, .lid = 2 };

		n = min(size, (size_t)MAD_SIZE + 1);
		memset(mad, 0, sizeof(mad));
		memcpy(mad, data + 1, n - 1);
		mad_port_xmit(c.ma, to.qpn, mad, &to);
		cable_run(&c, data[0]);
	}
	cable_run(&c, 100000);
	for (i = 0; i < 3; i++)
		free(seen[i].data);
	cable_close(&c);
	assert(!wire_packet_live());
	return 0;
}
