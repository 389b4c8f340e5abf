// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random operations on two fabrics with a trunk: packets of all VLs in both directions, receivers that accept nothing,
 * rings that nobody reads, cables, faults, and the loss of connections and daemons. After each round all packets have
 * left, no credit is in use, and none has arrived twice, out of order on its VL, or with another payload.
 */
#include "emu/lib/rng.h"
#include "fabric/fault.h"
#include "fabric/trunk/pair_fixture.h"

#define SEEDS  3
#define ROUNDS 60
#define STEPS  40
#define FAULTS 4

static struct rng rng;

/* Packets of one direction, whose payload is the low byte of the PSN. */
static struct flow {
	struct test_host *from, *to;
	u16 slid, dlid;
	u32 psn, last[TRUNK_DATA_VLS], received, wrong;
} flows[2] = { { .from = &h1, .to = &h101, .slid = 1, .dlid = 3 }, { .from = &h101, .to = &h1, .slid = 3, .dlid = 1 } };

static const char *const fault_lines[] = {
	"drop prob=0.3 dir=in",
	"drop prob=0.3 dir=out",
	"drop opcode=UD dir=in",
	"delay time=3ms dir=in",
	"delay time=3ms dir=out",
	"rate bps=1G dir=in",
	"rate bps=1G dir=out",
	"stall for=20ms dir=in",
	"stall for=20ms dir=out",
	"truncate bytes=8 prob=0.3 dir=in",
	"truncate bytes=16 silent prob=0.2 dir=out",
	"corrupt what=header prob=0.1 dir=out",
	"corrupt what=icrc prob=0.2 dir=in",
	"corrupt what=vcrc prob=0.2 dir=out",
	"ecn prob=0.5 dir=in",
	"starve lane=0",
	"down for=3ms",
	"flap up=2ms down=1ms times=5",
	"degrade speed=DDR",
};
static struct fault *armed[FAULTS];

static u32 pick(u32 n)
{
	return (u32)(rng_next(&rng) % n);
}

static int flow_receive(void *ctx, struct wire_packet *p)
{
	struct test_host *h = ctx;
	struct flow *fl = &flows[h != flows[0].to];
	u32 psn = wire_bth_psn(wire_packet_bth(p)), i;

	if (h->stalled)
		return -EAGAIN;
	if (!(p->flags & WIRE_PKT_BAD_ICRC)) {
		for (i = 0; i < p->len && p->data[i] == (u8)psn; i++)
			;
		fl->wrong += psn <= fl->last[p->vl] || i < p->len;
		fl->last[p->vl] = psn;
		fl->received++;
	}
	wire_packet_free(p);
	return 0;
}

/* @zcopy: from memory that is overwritten afterwards. */
static void flow_send(struct flow *fl, u8 sl, u32 len, bool zcopy)
{
	static u8 memory[4096];
	struct wire_packet *p = test_packet(fl->slid, fl->dlid, sl, zcopy ? 0 : len, fl->psn, 0xffff);

	memset(zcopy || !len ? memory : p->buf->data, (u8)fl->psn, len);
	if (zcopy) {
		p->data = memory;
		p->len = len;
		p->flags |= WIRE_PKT_ZCOPY;
		wire_lrh_set_words(wire_packet_lrh(p), wire_packet_link_len(p) / 4);
	}
	fl->psn++;
	if (wire_port_send(fl->from->port, p))
		wire_packet_free(p);
	memset(memory, 0xee, sizeof(memory));
}

static void receiver_accepts(struct test_host *h)
{
	h->stalled = false;
	h->port->resume(h->port);
}

static void fault_toggle(u32 i)
{
	bool of_a = pick(2);
	char line[100], err[200];

	if (armed[i]) {
		test_run(0); /* what the fault holds is queued behind what is in flight */
		fault_remove(armed[i]);
		armed[i] = NULL;
		return;
	}
	snprintf(line, sizeof(line), "%s:9 %s", of_a ? "leaf1" : "leaf101", fault_lines[pick(ARRAY_SIZE(fault_lines))]);
	armed[i] = fault_add(fabric_faults(of_a ? a.f : b.f), line, err, sizeof(err));
	if (!armed[i])
		row(1, err, false);
}

/* Does the daemon read its ring, and write what waits for space in the other one? */
static void rings_serve(struct side *s, bool serve)
{
	struct trunk_conn *c = s->set->trunks[0].conn;

	if (!c || (!c->rx.shared && !c->tx.shared))
		return;
	list_del(&c->rings);
	if (serve)
		list_add(&s->set->rings, &c->rings);
}

static void daemon_restart(u64 ns)
{
	trunk_set_destroy(b.set);
	test_run(ns);
	side_connect(&b);
}

static void packets_send(u32 n)
{
	while (n--)
		flow_send(&flows[pick(2)], (u8)pick(TRUNK_DATA_VLS), 4 * pick(pick(3) ? 1025 : 16), pick(2));
}

static void step(void)
{
	struct test_host *h = pick(2) ? &h1 : &h101;
	struct side *s = pick(2) ? &a : &b;

	switch (pick(18)) {
	case 0:
		fabric_link_unplug(side_port(s));
		break;
	case 1:
		fabric_link_plug(side_port(s));
		break;
	case 2:
		if (!pick(4) && s->set->trunks[0].conn)
			trunk_conn_end(s->set->trunks[0].conn);
		break;
	case 3:
		if (!pick(4))
			daemon_restart(pick(3) * NSEC_PER_MSEC);
		break;
	case 4:
		h->stalled = true;
		break;
	case 5:
		receiver_accepts(h);
		break;
	case 6:
	case 7:
		fault_toggle(pick(FAULTS));
		break;
	case 8:
		rings_serve(s, pick(2));
		break;
	case 9:
		test_run(pick(10) * NSEC_PER_MSEC);
		break;
	case 10:
		bring_up();
		break;
	case 11:
	case 12:
		loop_run_tasks(test_loop);
		break;
	default:
		packets_send(pick(60));
	}
}

/* Are all input buffers empty, and are the credits at the other end known, but for a part that is not reported? */
static bool buffers_are_empty(const struct fabric *f)
{
	const struct fabric_remote *r = fabric_remote(f, 0);
	u32 i, p, vl, used = 0;

	for (vl = 0; vl < TRUNK_DATA_VLS; vl++) {
		used += r->port.rx_blocks[vl] + (r->beyond[vl] > FABRIC_REMOTE_BLOCKS / 2);
		for (i = 0; i < f->nnodes; i++)
			for (p = 0; p <= f->nodes[i].nports; p++)
				used += f->nodes[i].ports[p].rx_blocks[vl];
	}
	return !used;
}

/* Each VL carries packets. */
static bool flow_flows(struct flow *fl)
{
	u32 i, before = fl->received;

	for (i = 0; i < 4 * TRUNK_DATA_VLS; i++)
		flow_send(fl, (u8)(i % TRUNK_DATA_VLS), 4096, i % 2);
	test_run(0);
	return fl->received == before + i;
}

/* All that disturbs ends. */
static bool settles(u32 live)
{
	u32 i;

	for (i = 0; i < FAULTS; i++)
		if (armed[i])
			fault_toggle(i);
	rings_serve(&a, true);
	rings_serve(&b, true);
	receiver_accepts(&h1);
	receiver_accepts(&h101);
	test_run(NSEC_PER_SEC);
	fabric_link_plug(side_port(&a));
	test_run(4 * TRUNK_REFUSED_WAIT);
	bring_up();
	test_run(NSEC_PER_SEC);
	return at(PORT_STATE_ACTIVE) && buffers_are_empty(a.f) && buffers_are_empty(b.f) && flow_flows(&flows[0]) &&
	       flow_flows(&flows[1]) && wire_packet_live() == live;
}

static void chaos(u64 seed)
{
	u32 live = wire_packet_live(), i, k;
	char what[80];

	rng.state = seed;
	trunk_start("", "");
	bring_up();
	for (i = 0; i < ARRAY_SIZE(flows); i++) {
		memset(flows[i].last, 0, sizeof(flows[i].last));
		flows[i].psn = 1;
		flows[i].received = flows[i].wrong = 0;
		flows[i].to->port->data.receive = flow_receive;
	}
	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < STEPS; k++)
			step();
		snprintf(what, sizeof(what), "seed %llu, round %u: it works on", (unsigned long long)seed, i);
		row(2, what, settles(live));
	}
	row(3, "nothing arrived twice, out of order, or changed", !flows[0].wrong && !flows[1].wrong);
	row(4, "enough arrived, on several connections",
	    min(flows[0].received, flows[1].received) > 2000 && side_counter(&a, TRUNK_CTR_CONNECTED) > 10);
	row(5, "neither peer violates the protocol",
	    !side_counter(&a, TRUNK_CTR_VIOLATIONS) && !side_counter(&b, TRUNK_CTR_VIOLATIONS));
	trunk_stop();
}

int main(void)
{
	u32 live = wire_packet_live();
	char path[64];
	u64 seed;

	log_level = LOG_ERROR;
	for (seed = 1; seed <= SEEDS; seed++)
		chaos(seed);
	if (trunk_tls_in_build()) {
		tls_begin(path, sizeof(path));
		chaos(seed);
		tls_end(path);
	}
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}
