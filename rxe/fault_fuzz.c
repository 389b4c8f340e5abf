// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any text as a fault of a RoCE port, and what comes and goes by it, if it is one: nothing may be left of either. */
#include "rxe/roce_fixture.h"

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
	struct roce_fault *ft;
	char text[400], err[300];

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!loop)
		open_port();
	ft = roce_fault_add(port, text, 1, err, sizeof(err));
	if (!ft)
		return 0;
	open_qp();
	start_sending();
	pass();
	roce_fault_remove(ft);
	loop_run_idle(loop, 0);
	close_qp();
	if (wire_packet_live() > ROCE_RECVS)
		abort();
	return 0;
}
