// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: any bytes as an iWARP stream after MPA negotiation, with and without CRCs and markers, split in two at any
 * byte. Bit 2 of the first byte: zero-copy receive for payload of any length.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "siw/siw_internal.h"
#include "siw/stream_fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const struct mpa_terms terms[4] = {
		{ .initiator = true, .ird = 2, .ord = 2 },
		{ .crc = true, .ird = 2, .ord = 2 },
		{ .initiator = true, .mark_in = true, .mark_out = true, .ird = 2, .ord = 2 },
		{ .mark_in = true, .rtr_zero = true, .ird = 2, .ord = 2 },
	};
	struct fuzz_side s;
	size_t cut;
	int fds[2];

	if (size < 3 || size > 65536)
		return 0;
	cut = 1 + data[1] % (size - 1);
	fuzz_open(&s);
	if (data[0] & 4)
		((struct siw *)hca_transport_data(s.hca))->direct_min = 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		abort();
	if (siw_qp_attach(s.hca, s.qpn, fds[0], &terms[data[0] & 3], data + 2, (u32)(cut > 2 ? cut - 2 : 0), NULL,
			  NULL))
		abort();
	if (cut < size && send(fds[1], data + (cut > 2 ? cut : 2), size - (cut > 2 ? cut : 2), MSG_NOSIGNAL) < 0)
		fuzz_idle(&s);
	fuzz_idle(&s);
	close(fds[1]);
	fuzz_idle(&s);
	fuzz_close(&s);
	return 0;
}
