// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Commands of a program at the rdma_cm device file. Input: command, length in 4 bytes, room in 8 bytes, body;
 * repeated. With two more commands a peer connects to one of eight ports (length), and destroys its connections.
 */
#include "emu/host/ucma_fixture.h"

#define PEER_CONNECT 0x1e
#define PEER_DESTROY 0x1f
#define PORT         7471

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Makes small numbers of the id field, which most commands have at these offsets, so that existing ids are hit. */
static void tame(u8 cmd, u8 *body, size_t n)
{
	static const u8 at[] = { [RDMA_USER_CM_CMD_DESTROY_ID] = 8,
				 [RDMA_USER_CM_CMD_QUERY] = 8,
				 [RDMA_USER_CM_CMD_INIT_QP_ATTR] = 8,
				 [RDMA_USER_CM_CMD_SET_OPTION] = 8 };
	u8 i = (cmd & 0x1f) < sizeof(at) ? at[cmd & 0x1f] : 0;

	if (cmd & 0x80 && n >= i + 4u) {
		body[i] &= 7;
		memset(body + i + 1, 0, 3);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct ucma_fixture f;
	u8 body[1024];
	size_t n;

	fixture_open(&f);
	while (size > 3) {
		n = min(data[1] * 4u, size - 3);
		memset(body, 0, sizeof(body));
		memcpy(body, data + 3, n);
		tame(data[0], body, n);
		if ((data[0] & 0x1f) == PEER_CONNECT)
			peer_connect(&f, PORT + (data[1] & 7));
		else if ((data[0] & 0x1f) == PEER_DESTROY)
			peer_destroy(&f, data[1] & 7);
		else
			command(&f, data[0] >> 6 & 1, data[0] & 0x1f, body, n, (u16)(data[2] * 8u), f.fd[0]);
		if (data[2] & 1)
			cable_run(&f.c, data[2]);
		data += 3 + n;
		size -= 3 + n;
	}
	cable_run(&f.c, 5000);
	fixture_close(&f);
	assert(!wire_packet_live());
	return 0;
}
