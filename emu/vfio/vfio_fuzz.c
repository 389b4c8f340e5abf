// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: a client, optionally started as a driver does, then its messages, with or without descriptors. */
#include "emu/vfio/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct loop *loop;
	static struct device dev;
	static char path[64];
	struct client c;

	if (!loop) {
		client_path(path, sizeof(path));
		loop = loop_create();
		dev_create(&dev, loop, path);
	}
	if (!dev.s || client_open(&c, loop, path) || (size && data[0] & 1 && !client_start(&c)))
		abort();
	/* A message: one byte command and descriptors; one: flags; two: length. */
	while (size >= 4) {
		u32 n = min((u32)(data[2] | data[3] << 8), (u32)size - 4);
		int fds[5] = { c.memfd, c.memfd, c.event[0], c.event[1], c.memfd };

		if (c.event[0] < 0) /* it was not started */
			fds[2] = fds[3] = c.memfd;
		client_send(&c, data[0] >> 4, data[1], data + 4, n, fds + (data[0] >> 1 & 2), data[0] & 3);
		while (client_reply(&c) != -EPIPE)
			;
		data += 4 + n;
		size -= 4 + n;
	}
	client_close(&c);
	return 0;
}
