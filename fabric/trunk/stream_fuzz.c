// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz target of a peer's messages: on the socket after the hello and the training of the link, or (bit 0 of the first
 * byte) from the start; or (bit 1) in a ring, whose index (bit 2) is fuzzed, too; or (bit 3) instead of the handshake
 * of TLS; or (bit 4) at a listener that has a key, after a hello.
 */
#include "fabric/trunk/trunk_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Writes pieces of any length, and runs the loop after each. */
static void to_ring(int fd, const u8 *data, size_t size, bool wild)
{
	struct trunk_ring r;

	raw_peer_ring(fd, &r, TRUNK_RING);
	while (size) {
		size_t n = min(size, (size_t)1 + data[0] * 16u);
		bool bad = false;
		u8 *to = trunk_ring_reserve(&r, (u32)n, &bad);

		if (!to)
			break;
		memcpy(to, data, n);
		trunk_ring_write(&r, wild ? data[n - 1] * 2000u : (u32)n);
		data += n;
		size -= n;
		test_run(0);
	}
	trunk_ring_destroy(&r);
}

static void to_socket(int fd, const u8 *data, size_t size)
{
	while (size) {
		size_t n = min(size, (size_t)1 + data[0] * 16u);

		if (send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		test_run(0);
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 live = wire_packet_live();
	struct trunk_hello h = raw_peer_hello();
	char key[64], options[80];
	struct side s;
	char rest[4096];
	int fd;

	if (!size)
		return 0;
	log_level = LOG_ERROR;
	test_tls = *data & 8 && trunk_tls_in_build();
	key_file(key, sizeof(key), "a key of both sides\n");
	snprintf(options, sizeof(options), "key %s", key);
	side_start(&s, "leafs 1 hosts 2", "leaf1", "listen", *data & 16 ? options : "");
	unlink(key);
	fd = *data & 25 ? raw_peer_connect() : raw_peer_train();
	if (*data & 16)
		raw_peer_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	if (*data & 2 && !(*data & 24))
		to_ring(fd, data + 1, size - 1, *data & 4);
	else
		to_socket(fd, data + 1, size - 1);
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
