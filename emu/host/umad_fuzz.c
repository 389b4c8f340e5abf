// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A hostile umad application. Input, repeated: an action, a length (2 bytes), that many
 * bytes for an ioctl or a write. */
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <unistd.h>

#include "emu/host/umad.h"
#include "emu/mad/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u32 requests[] = { IB_USER_MAD_REGISTER_AGENT, IB_USER_MAD_UNREGISTER_AGENT,
					IB_USER_MAD_ENABLE_PKEY, IB_USER_MAD_REGISTER_AGENT2 };
	struct umad_file *file;
	struct umad_port *port;
	struct cable c;
	u8 buf[4096];
	size_t n;
	int fd;

	cable_open(&c);
	port = umad_port_create(c.loop, c.ma);
	if (umad_file_open(port, &file, &fd) < 0)
		abort();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (; size > 3; data += n, size -= n) {
		u8 action = data[0];

		n = min(min(size - 3, sizeof(buf)), (size_t)(data[1] << 8 | data[2]));
		data += 3, size -= 3;
		memcpy(buf, data, n);
		if (action & 4)
			umad_file_ioctl(file, requests[action & 3], buf, n);
		else if (write(fd, buf, n) < 0 && errno != EAGAIN && errno != EINVAL)
			abort();
		cable_run(&c, action >> 3);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
	}
	umad_file_close(file);
	umad_port_destroy(port);
	close(fd);
	cable_close(&c);
	return 0;
}
