// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: trains of packets at a RoCEv2 port that waits for READ responses. Checks memory beside the region, leaks, and
 * the data read.
 */
#include "rxe/roce/roce_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Four bytes of input are one packet; the last bit says that the next packet is in the same train. */
static struct sent packet(const u8 d[4])
{
	struct sent s = { .opcode = wire_opcode(d[0]) ? d[0] : WIRE_RC_WRITE_MIDDLE, .stranger = d[3] & 4 };

	s.psn = (u32)(PSN + (signed char)d[1]) & WIRE_PSN_MASK;
	s.fill = (u8)(d[1] + 1);
	s.len = d[2] == 255 ? 1024 : d[2] * 5;
	s.va = (u64)(uintptr_t)mem + (d[3] & 0x80 ? SIZE - 2048 : SIZE / 2);
	s.dmalen = d[3] & 0x40 ? s.len : 16 * 1024;
	s.rkey = d[3] & 0x20 ? rkey ^ 0x5500 : rkey;
	s.flags = d[3] & 0x10 ? WIRE_PKT_BAD_ICRC : 0;
	s.qpn = d[3] & 8 ? qpn ^ 0x10 : 0;
	s.syndrome = d[3] & 2 ? d[2] : 31;
	return s;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct sending all;
	struct hca_cqe c;

	if (!loop)
		open_port();
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
	if (hca_soft_cq_poll(cq, &c, 1) && !c.status && !is_filled(16))
		abort();
	close_qp();
	if (mem[SIZE] != 0xee || memcmp(mem + SIZE, mem + SIZE + 1, GUARD - 1) || wire_packet_live() > ROCE_RECVS)
		abort();
	return 0;
}
