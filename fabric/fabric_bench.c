// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packets a second through one switch, and directed-route SMPs a second, on one core. */
#include <time.h>

#include "fabric/test.h"

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(void)
{
	struct test_host h1, h2;
	u32 psn = 0, round, n;
	double start, spent;

	test_start("leafs 1 hosts 2\n");
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_bring_up(&h1, 2);
	start = seconds();
	for (round = 0; round < 8000; round++) {
		for (n = 0; n < 256; n++)
			test_send(&h1, 2, 0, 0, ++psn);
		test_run(0);
	}
	spent = seconds() - start;
	if (h2.packets != 8000 * 256 || h2.order_errors)
		return 1;
	printf("switch_mpps %.2f\n", (double)h2.packets / spent / 1e6);
	start = seconds();
	for (n = 0; n < 200000; n++)
		if (test_get(&h1, "\1\2", SMP_ATTR_NODE_INFO, 0))
			return 1;
	spent = seconds() - start;
	printf("smp_us %.3f\n", spent * 1e6 / 200000);
	test_stop();
	return 0;
}
