// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: any lines as faults; valid ones are applied to a few packets. */
#include "fabric/fault.h"

#include "fabric/fabric_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char text[600], *line, *rest = text, err[200];
	struct test_host h1, h2;
	u32 i;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	test_start("leafs 1 hosts 2\n");
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_bring_up(&h1, 2);
	for (i = 0; i < 8 && (line = strsep(&rest, "\n")); i++) {
		err[0] = 0;
		if (!fault_add(fabric_faults(test_fabric), line, err, sizeof(err)) && !err[0])
			abort(); /* an error without a message */
	}
	for (i = 1; i < 20; i++)
		test_send(&h1, 2, 0, 300, i);
	test_get(&h1, "\1\2", SMP_ATTR_NODE_INFO, 0);
	test_run(10 * NSEC_PER_MSEC);
	while (!fault_set_empty(fabric_faults(test_fabric)))
		fault_remove(list_first(&fabric_faults(test_fabric)->faults, struct fault, link));
	test_run(0);
	test_stop();
	if (wire_packet_live())
		abort(); /* a packet leaked */
	return 0;
}
