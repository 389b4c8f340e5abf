// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as the stream of a peer: after its hello and the training of the link, or (first byte odd) instead of them. */
#include "fabric/trunk/trunk_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 live = wire_packet_live();
	struct side s;
	char rest[4096];
	int fd;

	if (!size)
		return 0;
	log_level = LOG_ERROR;
	side_start(&s, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = *data & 1 ? stranger_connect() : stranger_train();
	for (data++, size--; size;) {
		size_t n = min(size, (size_t)1 + data[0] * 16u); /* in pieces of any length */

		if (send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		test_run(0);
		data += n;
		size -= n;
	}
	test_run(2 * NSEC_PER_SEC);
	while (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
	close(fd);
	test_run(NSEC_PER_SEC);
	if (s.f->remotes[0].info.phys_state == PHYS_STATE_LINK_UP)
		abort();
	side_stop(&s);
	loop_destroy(test_loop);
	test_loop = NULL;
	if (wire_packet_live() != live)
		abort();
	return 0;
}
