// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Incast: several senders and one receiver at a simulated switch, with queue pairs, RoCE ports and links. Measures
 * drops of the switch without and with congestion control, utilisation of its link, and fairness between the senders.
 *
 *     s1 ... sN --- sw1 --- a, by a slow link
 *
 * The clock is virtual: it jumps to the next timer, or advances while the loop works, and the loop wakes up late.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

#include "emu/hca/bring.h"
#include "emu/hca/soft_queue.h"
#include "emu/lib/rng.h"
#include "emu/lib/row.h"
#include "emu/packet/roce.h"
#include "fabric/eth/eth.h"
#include "rxe/roce/roce.h"
#include "rxe/rxe_internal.h"

#define SENDERS 16
#define SIZE    65536u
#define DEPTH   32

struct host {
	struct roce_port *port;
	struct hca *hca;
	struct hca_ctx *ctx;
	struct hca_soft_cq *cq;
	u32 pdn, lkey, rkey;
	u8 *mem;
};

struct flow {
	struct host from;
	struct hca_soft_wq *wq, *to;
	u64 done, before; /* messages completed; of them, in the start phase */
	bool failed;
};

struct incast {
	const char *what;
	u64 rate; /* of the receiver's link, bit/s */
	u32 senders, queue, ecn;
	bool all; /* the senders' links have that rate, too; else they have no transmission time */
	bool late, reads;
};

static const struct incast cases[] = {
	{ "2 to 1 at 200 Mb/s", 200000000, 2, 65536, 16384, false, false, false },
	{ "8 to 1 at 200 Mb/s", 200000000, 8, 65536, 16384, true, false, false },
	{ "4 to 1 at 1 Gb/s", 1000000000, 4, 65536, 16384, true, false, false },
	{ "2 to 1 at 2 Gb/s", 2000000000, 2, 65536, 16384, true, false, false },
	{ "READs of 4 at 1 Gb/s", 1000000000, 4, 65536, 16384, false, false, true },
	{ "2 to 1 at 200 Mb/s, late", 200000000, 2, 65536, 16384, false, true, false },
	{ "4 to 1 at 1 Gb/s, late", 1000000000, 4, 65536, 16384, true, true, false },
	{ "2 to 1 at 2 Gb/s, late", 2000000000, 2, 131072, 32768, true, true, false },
};

#define START_MS 300 /* start phase, until the rates have settled */
#define LONG_MS  500

static struct loop *loop;
static struct eth *net;
static struct host sink;
static struct flow flows[SENDERS];
static bool reads;

/* A clock that advances by itself */

static bool own_clock;
static u64 clock_ns, end_ns;
static struct rng rng;

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_epoll_wait(int fd, struct epoll_event *ev, int n, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int ms);
long __real_syscall(long n, ...);
long __wrap_syscall(long n, int fd, struct epoll_event *ev, int most, const struct timespec *ts, const sigset_t *set,
		    size_t size);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!own_clock)
		return __real_clock_gettime(id, ts);
	clock_ns += 2000;
	if (loop && clock_ns >= end_ns)
		loop_stop(loop);
	ts->tv_sec = (time_t)(clock_ns / NSEC_PER_SEC);
	ts->tv_nsec = (long)(clock_ns % NSEC_PER_SEC);
	return 0;
}

/* Sleeps mostly by the inexactness of a timer, sometimes until the scheduler runs the process again. */
static void sleep_for(u64 ns)
{
	u64 n = rng_next(&rng);

	clock_ns = min(clock_ns + ns, end_ns) + 60000;
	if (!(n % 50))
		clock_ns += (n >> 8) % (4 * NSEC_PER_MSEC);
}

int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int ms)
{
	if (!own_clock)
		return __real_epoll_wait(fd, ev, n, ms);
	if (ms)
		sleep_for((u64)ms * NSEC_PER_MSEC);
	return 0;
}

/* epoll_pwait2(), which the loop calls without the C library */
long __wrap_syscall(long n, int fd, struct epoll_event *ev, int most, const struct timespec *ts, const sigset_t *set,
		    size_t size)
{
	if (!own_clock || n != SYS_epoll_pwait2)
		return __real_syscall(n, fd, ev, most, ts, set, size);
	sleep_for((u64)ts->tv_sec * NSEC_PER_SEC + (u64)ts->tv_nsec);
	return 0;
}

static void run(u32 ms)
{
	u64 until = loop_now(loop).ns + ms * NSEC_PER_MSEC;

	end_ns = until;
	if (own_clock)
		loop_run(loop);
	else
		loop_run_idle(loop, until);
}

/* Hosts */

static void post(struct flow *f)
{
	struct hca_send_wr wr = { .token = 1,
				  .opcode = reads ? HCA_WR_RDMA_READ : HCA_WR_RDMA_WRITE,
				  .num_sge = 1,
				  .remote_addr = (u64)(uintptr_t)(reads ? f->from.mem : sink.mem),
				  .rkey = reads ? f->from.rkey : sink.rkey };
	struct host *own = reads ? &sink : &f->from;

	wr.sge[0] = (struct hca_sge){ (u64)(uintptr_t)own->mem, SIZE, own->lkey };
	hca_soft_post_send(reads ? f->to : f->wq, &wr);
}

static void done(struct flow *f, const struct hca_cqe *cqe)
{
	f->failed |= cqe->status != HCA_WC_SUCCESS;
	if (f->done++ && !f->failed)
		post(f);
}

static void on_cq(void *arg)
{
	struct hca_cqe cqe;
	struct flow *f;

	while (hca_soft_cq_poll(((struct host *)arg)->cq, &cqe, 1))
		for (f = flows; f < flows + SENDERS; f++)
			if (f->wq && hca_soft_wq_number(arg == &sink ? f->to : f->wq) == cqe.qpn &&
			    (arg == &sink || arg == &f->from))
				done(f, &cqe);
}

static void on_event(void *fe, const struct hca_event *ev) {}

static void host_open(struct host *h, struct eth_switch *sw, u32 n, const struct eth_link_config *link, bool dcqcn)
{
	u8 mac[ETHER_ALEN] = { 2, 0, 0, 0, 0, (u8)(n + 1) };
	struct eth_end *end = eth_station_add(sw, "h", mac, link);
	struct roce_config cfg = { .loop = loop,
				   .name = "h",
				   .node_guid = n + 1,
				   .port_guid = n + 1,
				   .naddr = 1,
				   .seed = n + 1,
				   .ether = eth_station_port(end) };
	struct hca_config hcfg = { .name = "h", .node_guid = n + 1, .nports = 1, .seed = n + 1 };
	struct wire_port *ports[1];

	cfg.addr[0] = wire_gid_from_v4(10u << 24 | (n + 1));
	h->port = roce_port_create(&cfg);
	roce_port_set_dcqcn(h->port, dcqcn);
	ports[0] = roce_port_wire(h->port);
	hcfg.ports = ports;
	h->hca = hca_create(loop, &hcfg);
	hca_set_transport(h->hca, &rxe_transport);
	h->ctx = hca_ctx_create(h->hca, &hca_local_dma, NULL, on_event, h);
	hca_pd_alloc(h->ctx, &h->pdn);
	h->mem = calloc(1, SIZE);
	hca_mr_reg(h->ctx, h->pdn, (u64)(uintptr_t)h->mem, (u64)(uintptr_t)h->mem, SIZE, 0xf, &h->lkey, &h->rkey);
	hca_soft_cq_create(h->ctx, 1024, on_cq, h, &h->cq);
}

static void host_close(struct host *h)
{
	hca_soft_cq_destroy(h->cq);
	hca_ctx_destroy(h->ctx);
	hca_destroy(h->hca);
	roce_port_destroy(h->port);
	free(h->mem);
	*h = (struct host){ 0 };
}

static struct hca_soft_wq *qp_make(struct host *h)
{
	struct hca_qp_init init = { .type = HCA_QPT_RC,
				    .pdn = h->pdn,
				    .send_cqn = hca_soft_cq_number(h->cq),
				    .recv_cqn = hca_soft_cq_number(h->cq),
				    .max_send_wr = DEPTH,
				    .max_recv_wr = 1,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .sq_sig_all = true };
	struct hca_soft_wq *wq;

	if (hca_soft_qp_create(h->ctx, &init, &wq))
		exit(1);
	return wq;
}

static void qp_move(struct host *h, struct hca_soft_wq *wq, const struct host *to, u32 qpn)
{
	struct hca_qp_attr at = { .port = 1,
				  .access = 0xf,
				  .path_mtu = WIRE_MTU_1024,
				  .dest_qpn = qpn,
				  .max_rd_atomic = 16,
				  .max_dest_rd_atomic = 16,
				  .min_rnr_timer = 1,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .av = { .port = 1, .grh = true, .hop_limit = 64 } };

	at.av.dgid = roce_port_wire(to->port)->attr.gid[0];
	if (bring_to(hca_qp_lookup(h->hca, hca_soft_wq_number(wq)), at, HCA_QPS_RTS))
		exit(1);
}

/* Networks */

static void build(const struct incast *c, bool dcqcn)
{
	struct eth_link_config fast = { .queue = c->queue, .ecn = c->ecn }, slow = fast;
	struct eth_switch *sw;
	u32 i;

	own_clock = c->late;
	clock_ns = NSEC_PER_SEC;
	end_ns = ~0ull;
	rng.state = 1;
	reads = c->reads;
	loop = c->late ? loop_create() : loop_create_virtual();
	net = eth_create(loop, 1);
	sw = eth_switch_add(net, "sw1", 0);
	slow.rate = c->rate;
	host_open(&sink, sw, 0, &slow, dcqcn);
	for (i = 0; i < c->senders; i++) {
		struct flow *f = &flows[i];

		host_open(&f->from, sw, i + 1, c->all ? &slow : &fast, dcqcn);
		f->wq = qp_make(&f->from);
		f->to = qp_make(&sink);
		qp_move(&f->from, f->wq, &sink, hca_soft_wq_number(f->to));
		qp_move(&sink, f->to, &f->from, hca_soft_wq_number(f->wq));
		post(f); /* the stations have resolved each other then */
		run(50);
	}
}

static void finish(void)
{
	struct flow *f;

	for (f = flows; f < flows + SENDERS && f->wq; f++) {
		hca_soft_wq_destroy(f->wq);
		hca_soft_wq_destroy(f->to);
		host_close(&f->from);
		*f = (struct flow){ 0 };
	}
	host_close(&sink);
	eth_destroy(net);
	loop_destroy(loop);
	loop = NULL;
	own_clock = false;
}

static u64 count(enum eth_counter c)
{
	return eth_end_counter(eth_find(net, "sw1:1"), c);
}

struct outcome {
	u64 first, dropped;      /* drops in the start phase, and after it */
	double use, least, most; /* fraction of the link's rate; of a fair share */
	bool failed;
};

static struct outcome incast(const struct incast *c, bool dcqcn)
{
	struct outcome o = { .least = 1e9 };
	struct flow *f, *end = flows + c->senders;
	u64 bytes, all = 0;
	u32 n;

	build(c, dcqcn);
	for (f = flows; f < end; f++)
		for (n = 0; n < DEPTH / 2; n++)
			post(f);
	run(START_MS);
	o.first = count(ETH_CTR_TX_DROPPED);
	bytes = count(ETH_CTR_TX_BYTES);
	for (f = flows; f < end; f++)
		f->before = f->done;
	run(LONG_MS);
	o.dropped = count(ETH_CTR_TX_DROPPED) - o.first;
	o.use = (double)(count(ETH_CTR_TX_BYTES) - bytes) * 8000 / LONG_MS / (double)c->rate;
	for (f = flows; f < end; f++)
		all += f->done - f->before;
	for (f = flows; f < end; f++) {
		double share = (double)(f->done - f->before) * c->senders / (double)max(all, (u64)1);

		o.least = share < o.least ? share : o.least;
		o.most = share > o.most ? share : o.most;
		o.failed |= f->failed;
	}
	finish();
	return o;
}

static void print(const char *what, const struct outcome *o)
{
	printf("  %s: %llu dropped at first, %llu then; use %.2f, shares %.2f to %.2f\n", what,
	       (unsigned long long)o->first, (unsigned long long)o->dropped, o->use, o->least, o->most);
}

static void test_incasts(void)
{
	const struct incast *c;

	for (c = cases; c < cases + ARRAY_SIZE(cases); c++) {
		struct outcome off = incast(c, false), on = incast(c, true);
		u32 failed = rows_seen.failed;

		row_of(c->what, "no request fails, with and without DCQCN", !off.failed && !on.failed);
		row_of(c->what, "without DCQCN: packets dropped", off.dropped > 1000);
		row_of(c->what, "with DCQCN: less than a hundredth of that", on.dropped * 100 < off.dropped);
		row_of(c->what, "with DCQCN and the start phase: less than a third",
		       3 * (on.first + on.dropped) < off.first + off.dropped);
		row_of(c->what, "with DCQCN: use of the link", on.use > (c->late ? 0.5 : 0.75));
		row_of(c->what, "with DCQCN: share of each sender", on.least > 0.4 && on.most < 1.7);
		if (rows_seen.failed == failed)
			continue;
		print("without", &off);
		print("with", &on);
	}
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_incasts();
	return rows_end();
}
