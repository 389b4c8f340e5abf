// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bench: packets per second through one switch, and directed-route SMPs per second, on one core. */
#include <time.h>

#include "fabric/fabric_fixture.h"
#include "fabric/fault.h"

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#define ROUNDS 8000
#define BURST  256

static struct test_host h1, h2;

/* Nanoseconds for a packet from h1 to h2; the best of a few tries. */
static double packet_ns(void)
{
	double best = 0, start, ns;
	u32 try, round, n, psn = 0;

	for (try = 0; try < 4; try++) {
		start = seconds();
		for (round = 0; round < ROUNDS; round++) {
			for (n = 0; n < BURST; n++)
				test_send(&h1, 2, 0, 0, ++psn);
			test_run(0);
		}
		ns = (seconds() - start) * 1e9 / (ROUNDS * BURST);
		best = !try || ns < best ? ns : best;
	}
	return best;
}

/* Arms a hundred faults at h2's link that inspect every packet and match none. */
static int arm(void)
{
	static const char *const keys[] = { "opcode=atomic", "qpn=2", "class=SA", "opcode=uc len=3000-4096",
					    "slid=0xbfff" };
	char text[100], err[200];
	u32 i;

	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "h2 drop %s", keys[i % ARRAY_SIZE(keys)]);
		if (!fault_add(fabric_faults(test_fabric), text, err, sizeof(err)))
			return 1;
	}
	return 0;
}

int main(void)
{
	double start, spent, bare;
	u32 n;

	test_start("leafs 1 hosts 2\n");
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_bring_up(&h1, 2);
	bare = packet_ns();
	printf("switch_mpps %.2f\n", 1e3 / bare);
	start = seconds();
	for (n = 0; n < 200000; n++)
		if (test_get(&h1, "\1\2", SMP_ATTR_NODE_INFO, 0))
			return 1;
	spent = seconds() - start;
	printf("smp_us %.3f\n", spent * 1e6 / 200000);
	if (arm())
		return 1;
	printf("faults_ns %.2f\n", packet_ns() - bare);
	if (h2.packets != 8ull * ROUNDS * BURST)
		return 1;
	test_stop();
	return 0;
}
