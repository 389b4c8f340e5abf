// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a program sends on a socket of NETLINK_RDMA. Input: length of a message in two bytes, then its bytes; repeated. */
#include <sys/socket.h>

#include "emu/host/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 in[1024], out[1024]; /* aligned as the server's buffers */
	size_t n, out_len;
	int fd, extra = -1, out_fd = -1;
	struct uv_file f;
	struct desk d;

	desk_open(&d);
	d.host.device = "muslin0";
	f = (struct uv_file){ .server = d.server, .host = &d.host };
	assert(!nldev_file_ops.open(&f, 0, &fd, &extra));
	for (; size > 2; data += n, size -= n) {
		n = min((size_t)(data[0] | data[1] << 8), sizeof(in));
		data += 2, size -= 2;
		n = min(n, size);
		memcpy(in, data, n);
		out_len = sizeof(out);
		nldev_file_ops.command(&f, in, n, -1, out, &out_len, &out_fd);
		while (n & 4 && recv(fd, out, sizeof(out), MSG_DONTWAIT) > 0)
			continue;
	}
	nldev_file_ops.close(&f);
	close(fd);
	desk_close(&d);
	return 0;
}
