// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Trains of packets in any order at a RoCEv2 port, for a queue pair with a READ outstanding: what comes straight to its place, what is
 * held behind a gap, what is somebody else's. Nothing behind the region may change, and nothing be left.
 */
#include "rxe/roce_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Four bytes of input are a packet; the last bit of them says that the next one is in the same train. */
static struct sent packet(const u8 d[4])
{
	struct sent s = { .opcode = wire_opcode(d[0]) ? d[0] : WIRE_RC_WRITE_MIDDLE, .stranger = d[3] & 4 };

	s.psn = (u32)(PSN + (signed char)d[1]) & WIRE_PSN_MASK;
	s.len = d[2] == 255 ? 1024 : d[2] * 5;
	s.va = (u64)(uintptr_t)mem + (d[3] & 0x80 ? SIZE - 2048 : 0);
	s.dmalen = d[3] & 0x40 ? s.len : 16 * 1024;
	s.rkey = d[3] & 0x20 ? rkey ^ 0x5500 : rkey;
	s.flags = d[3] & 0x10 ? WIRE_PKT_BAD_ICRC : 0;
	s.qpn = d[3] & 8 ? qpn ^ 0x10 : 0;
	s.syndrome = d[3] & 2 ? d[2] : 31;
	return s;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 want[GUARD];
	static struct sending all;

	if (!loop)
		open_port();
	memset(want, 0xee, sizeof(want));
	memset(mem, 0xee, sizeof(mem));
	open_qp();
	start_sending();
	post_read(16 * 1024);
	for (; size >= 4; data += 4, size -= 4) {
		struct sent s = packet(data);

		put_packet(&all, &s);
		if (!(data[3] & 1))
			send_all(&all);
	}
	send_all(&all);
	close_qp();
	if (memcmp(mem + SIZE, want, GUARD) || wire_packet_live() > ROCE_RECVS)
		abort();
	return 0;
}
