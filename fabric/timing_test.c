// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Links with rates and delays, with exact times. A data packet of these tests has 1024 bytes from LRH to ICRC and 2 of
 * VCRC, a MAD 288 and 2. A byte takes 250 ps on 4xQDR (32 Gb/s of data), a cable 5 ns, and a switch 130 ns.
 */
#include "fabric/fabric_fixture.h"
#include "fabric/fault.h"

#define PAYLOAD 1000

static struct test_host h[5];

static struct fabric_port *port_of(const char *node, u32 num)
{
	return fabric_node_port(fabric_node_find(test_fabric, node), num);
}

/* A leaf with h1 to h4, brought up before its links have rates. */
static void start(const char *rate)
{
	char text[160], name[4] = "h1";
	u32 i;

	snprintf(text, sizeof(text), "leafs 1 hosts 4 vls 4 mtu 2048 speed %s propagation 5ns switch-latency 130ns\n",
		 rate);
	test_start(text);
	for (i = 1; i <= 4; i++) {
		name[1] = (char)('0' + i);
		test_attach(&h[i], name);
	}
	test_bring_up(&h[1], 4);
	test_run(NSEC_PER_MSEC);
	test_fabric->timing.on = true;
}

static bool run_to(u64 at)
{
	test_run(at - loop_now(test_loop).ns);
	return true;
}

/* Is @what false until just before @t ns after @begin, and true then? */
#define BECOMES(t, what) (run_to(begin + (t)-1) && !(what) && run_to(begin + (t)) && (what))

static void test_rates(void)
{
	static const struct {
		const char *rate;
		u64 ps; /* of a data packet; signalling rate less the code's overhead: 8b/10b, from FDR10 on 64b/66b */
		u64 less; /* rounding error of the table's kb/s */
	} rates[] = {
		{ "1xSDR", 4104000, 0 },  { "4xSDR", 1026000, 0 }, { "4xDDR", 513000, 0 }, { "4xQDR", 256500, 0 },
		{ "4xFDR10", 205200, 0 }, { "4xFDR", 150480, 4 },  { "4xEDR", 82080, 0 },  { "12xEDR", 27360, 3 },
		{ "4xHDR", 41040, 0 },    { "2xHDR", 82080, 0 },   { "4xNDR", 20520, 0 },  { "4xXDR", 10260, 0 },
	};
	u64 ps;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		start(rates[i].rate);
		test_send(&h[1], 3, 0, PAYLOAD, 1);
		test_run(NSEC_PER_MSEC);
		ps = port_of("h1", 1)->busy_ps;
		row_of(rates[i].rate, "time of a packet", ps <= rates[i].ps && ps + rates[i].less >= rates[i].ps);
		row_of(rates[i].rate, "the switch takes as long", port_of("leaf1", 3)->busy_ps == ps);
		row_of(rates[i].rate, "it arrives", h[3].packets == 1);
		test_stop();
	}
}

/*
 * h1 transmits from 0 to 256.5 ns; the head reaches the output at 5 + 130, the tail leaves it at 391.5 and reaches h3 5
 * ns later. The packet of h2, which arrives at the same time, follows: from 391.5 to 648, at h3 at 653.
 */
static void test_switch(void)
{
	const struct fabric_port *in;
	u64 begin;

	start("4xQDR");
	begin = loop_now(test_loop).ns;
	in = port_of("leaf1", 1);
	row(1, "a packet is sent", test_send(&h[1], 3, 0, PAYLOAD, 1) == 0);
	row(2, "the port is busy", test_send(&h[1], 3, 0, PAYLOAD, 2) == -EAGAIN);
	row(3, "another port is not", test_send(&h[2], 3, 0, PAYLOAD, 3) == 0);
	row(4, "the port is ready when its packet has left", BECOMES(257, h[1].ready == 1));
	row(5, "the input buffer is free when the tail has left", in->rx_blocks[0] && BECOMES(392, !in->rx_blocks[0]));
	row(6, "the first packet arrives", BECOMES(397, h[3].packets == 1));
	row(7, "the second one follows", BECOMES(653, h[3].packets == 2));
	row(8, "in order, without a loss", h[3].bytes == 2 * PAYLOAD);
	row(9, "the output was busy all the time", port_of("leaf1", 3)->busy_ps == 2 * 256500);
	test_stop();
}

/* A cable with its own delay: 1 us to h4. */
static void test_propagation(void)
{
	u64 begin;

	start("4xQDR");
	begin = loop_now(test_loop).ns;
	port_of("leaf1", 4)->delay_ps = 1000000;
	test_send(&h[1], 4, 0, PAYLOAD, 1);
	row(20, "propagation of one cable", BECOMES(1392, h[4].packets == 1));
	test_stop();
}

/*
 * The SMI of a switch receives an SMP when all of it has arrived: after 72.5 ns, the cable and the switch's latency.
 * The response takes the times of link and cable.
 */
static void test_vl15(void)
{
	u64 begin;

	start("4xQDR");
	begin = loop_now(test_loop).ns;
	row(30, "an SMP takes time", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == -1);
	row(31, "there and back",
	    BECOMES(285, h[1].mads && wire_get(h[1].last.raw, MAD_ATTR_ID) == SMP_ATTR_NODE_INFO));
	begin = loop_now(test_loop).ns;
	test_send(&h[1], 3, 0, PAYLOAD, 1);
	test_get(&h[1], "\1", SMP_ATTR_NODE_DESC, 0);
	row(32, "an SMP waits for the packet before it: 256.5 ns more",
	    BECOMES(542, wire_get(h[1].last.raw, MAD_ATTR_ID) == SMP_ATTR_NODE_DESC));
	row(33, "nothing was discarded", !test_counter("h1", 1, FABRIC_CTR_XMIT_DISCARDS));
	test_stop();
}

/* Responses of a CA's agent take transmission time, too. */
static void test_agent(void)
{
	struct wire_mad m;

	start("4xQDR");
	test_smp_init(&m, MAD_CLASS_PERF, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 0);
	memset(m.raw + 24, 0, MAD_SIZE - 24);
	wire_set(m.raw + PMA_DATA, PMA_PORT_SELECT, 1);
	test_send_mad(&h[1], m.raw, 2, MAD_QPN_GSI);
	test_run(NSEC_PER_MSEC);
	row(40, "the PMA of h2 responds", wire_get(h[1].last.raw, MAD_CLASS) == MAD_CLASS_PERF);
	row(41, "its response takes 290 bytes' time", port_of("h2", 1)->busy_ps == 72500);
	test_stop();
}

static u32 psns[8], npsns;

static int record(void *ctx, struct wire_packet *p)
{
	psns[npsns++ % ARRAY_SIZE(psns)] = wire_bth_psn(wire_packet_bth(p));
	return test_receive(ctx, p);
}

/* The loop is late: packets are due when the delay of those before them is removed. */
static void test_fault(void)
{
	struct fault *ft;
	char err[100];

	start("4xQDR");
	h[3].port->data.receive = record;
	ft = fault_add(fabric_faults(test_fabric), "h3 delay time=1s dir=in", err, sizeof(err));
	test_send(&h[1], 3, 0, PAYLOAD, 1);
	test_run(NSEC_PER_MSEC);
	test_send(&h[1], 3, 0, PAYLOAD, 2);
	row(50, "the second one is not due", loop_timer_armed(&test_fabric->timing.timer));
	run_to(loop_now(test_loop).ns + 396);
	fault_remove(ft);
	fabric_receive_events(&test_fabric->timing.timer, (struct now){ loop_now(test_loop).ns + NSEC_PER_USEC });
	row(51, "what the fault released is first", npsns == 2 && psns[0] == 1 && psns[1] == 2);
	test_run(NSEC_PER_MSEC);
	row(52, "each arrives once", npsns == 2);
	test_stop();
}

int main(void)
{
	test_rates();
	test_switch();
	test_propagation();
	test_vl15();
	test_agent();
	test_fault();
	return rows_end();
}
