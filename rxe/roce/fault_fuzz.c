// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: any text as a fault of a RoCE port. If it is valid, packets pass in both directions; no packet may be leaked.
 */
#include "rxe/roce/roce_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void pass(void)
{
	static struct sending all;
	u32 i;

	for (i = 0; i < 6; i++) {
		struct sent s = {
			.opcode = WIRE_RC_WRITE_ONLY, .psn = PSN + i, .len = 100, .dmalen = 100, .rkey = rkey
		};

		s.va = (u64)(uintptr_t)mem;
		put_packet(&all, &s);
	}
	send_all(&all);
	post_read(64);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct fault *ft;
	char text[400] = "h1 ", err[300];

	if (size + 3 >= sizeof(text))
		return 0;
	memcpy(text + 3, data, size);
	text[size + 3] = 0;
	if (!loop)
		open_port();
	ft = fault_add(roce_port_faults(port), text, err, sizeof(err));
	if (!ft)
		return 0;
	open_qp();
	start_sending();
	pass();
	fault_remove(ft);
	loop_run_idle(loop, 0);
	close_qp();
	if (wire_packet_live() > ROCE_RECVS)
		abort();
	return 0;
}
