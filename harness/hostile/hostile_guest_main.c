// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile guest without QEMU: speaks vhost-user to a host's device, and drives it with invalid input: hostile-guest
 * SOCKET MODE [SEED]. Exits with 0 if the device rejected all invalid input and still works for the next guest;
 * otherwise prints the first failure.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "emu/virtio/fixture.h"
#include "harness/hostile/draw.h"

#define WILD_NS  1500000000ull
#define CQ_AT    0x20000
#define SQ_AT(i) (0x24000 + (i)*0x4000u)
#define RQ_AT(i) (0x26000 + (i)*0x4000u)
#define QPS      4 /* RC, each connected to itself */
#define MESSAGE  1000
#define MAY_ALL  0xf

static struct guest g; /* only the front end is used */
static const char *socket_path;
static u32 wrong, pd, key, cq, qp[QPS];

static void fail(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(-err));
	exit(1);
}

static void must(int err, const char *what)
{
	if (err)
		fail(what, err);
}

static u32 answered(int err, const char *what)
{
	must(err, what);
	return guest_number(&g)->number;
}

/* Checks that the daemon accepts a front end and answers its driver. */
static void attach(void)
{
	must(front_open(&g.f, NULL, socket_path), "the device's socket");
	front_start(&g.f, MUSLIN_VQS);
	must(guest_hello(&g), "hello");
}

static void move_qp(u32 handle, u32 qpn, u16 lid)
{
	static const u32 masks[] = { 0x39, 0x129181, 0x12e01 };
	struct muslin_qp_modify m = {
		.cmd = { .op = MUSLIN_QP_MODIFY },
		.handle = handle,
		.attr = { .path_mtu = 3,
			  .dest_qpn = qpn,
			  .access = MAY_ALL,
			  .port = 1,
			  .timeout = 10,
			  .retry_cnt = 1,
			  .rnr_retry = 1,
			  .min_rnr_timer = 1,
			  .max_rd_atomic = 1,
			  .max_dest_rd_atomic = 1,
			  .av = { .dlid = lid, .port = 1 } },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		m.attr.state = (u8)(HCA_QPS_INIT + i);
		m.mask = masks[i];
		must(guest_command(&g, &m, sizeof(m)), "modify");
	}
}

static void make_qp(u32 i, u16 lid)
{
	struct muslin_qp_create c = guest_qp(&g, HCA_QPT_RC, pd, cq, SQ_AT(i), RQ_AT(i));

	c.port = 1;
	qp[i] = answered(guest_command(&g, &c, sizeof(c)), "a queue pair");
	move_qp(qp[i], guest_number(&g)->arg, lid);
}

/* Creates the objects of a correct driver. */
static void furnish(void)
{
	const struct muslin_port_answer *p = (const void *)(g.f.mem + GUEST_OUT);
	struct muslin_cq_create c = guest_cq(&g, CQ_AT);
	u16 lid;
	u32 i;

	must(guest_object(&g, MUSLIN_QUERY_PORT, 1, 0), "the port");
	lid = p->lid;
	pd = answered(guest_object(&g, MUSLIN_PD_ALLOC, 0, 0), "a protection domain");
	key = answered(guest_object(&g, MUSLIN_MR_DMA, pd, MAY_ALL), "a key");
	c.flags = MUSLIN_CQ_KERNEL;
	cq = answered(guest_command(&g, &c, sizeof(c)), "a completion queue");
	for (i = 0; i < QPS; i++)
		make_qp(i, lid);
}

static void start(void)
{
	attach();
	furnish();
}

static void ring_all(void)
{
	struct muslin_shared *sh = (void *)(g.f.mem + GUEST_SHARED);
	u64 one = 1;
	u32 q;

	memset(sh->doorbell, 0xff, sizeof(sh->doorbell));
	__atomic_store_n(&sh->rung, 1, __ATOMIC_SEQ_CST);
	for (q = 0; q < MUSLIN_VQS; q++)
		if (write(g.f.kick[q], &one, sizeof(one)) != sizeof(one))
			return;
}

/* Posts a send of @len bytes at @addr from queue pair @i, and a receive for it. */
static void post(u32 i, u64 addr, u32 len, u32 lkey)
{
	struct rxe_queue_buf *sq = (void *)(g.f.mem + SQ_AT(i)), *rq = (void *)(g.f.mem + RQ_AT(i));
	struct rxe_send_wqe *s = (void *)(sq->data + (sq->producer_index & 3) * 512);
	struct rxe_recv_wqe *r = (void *)(rq->data + (rq->producer_index & 3) * 128);

	memset(s, 0, sizeof(*s));
	s->wr.opcode = HCA_WR_SEND;
	s->dma.num_sge = r->dma.num_sge = 1;
	s->dma.sge[0] = (struct rxe_sge){ addr, len, lkey };
	r->dma.sge[0] = (struct rxe_sge){ FRONT_DATA + 8192, 8192, key };
	rq->producer_index = (rq->producer_index + 1) & 3;
	__atomic_store_n(&sq->producer_index, (sq->producer_index + 1) & 3, __ATOMIC_RELEASE);
	ring_all();
}

/* The next completion's status; -1: none. */
static int completion(void)
{
	struct rxe_queue_buf *buf = (void *)(g.f.mem + CQ_AT);
	u64 end = clock_read() + 5 * NSEC_PER_SEC;
	int status;

	while ((__atomic_load_n(&buf->producer_index, __ATOMIC_ACQUIRE) & 3) == (buf->consumer_index & 3)) {
		if (clock_read() > end)
			return -1;
		guest_pause(20);
	}
	status = (int)((struct ib_uverbs_wc *)(void *)(buf->data + (buf->consumer_index & 3) * 64))->status;
	buf->consumer_index = (buf->consumer_index + 1) & 3;
	return status;
}

static void expect(const char *what, int got, int want)
{
	if (got == want)
		return;
	wrong++;
	printf("%s: %d, not %d\n", what, got, want);
}

/* Random values in all memory: rings, indexes, doorbells, and virtqueues. */
static void rings(void)
{
	u64 end = clock_read() + WILD_NS;
	u32 *words, i, n;

	while (clock_read() < end) {
		start();
		words = (u32 *)(void *)g.f.mem;
		for (n = 0; n < 300; n++) {
			for (i = 0; i < 256; i++) {
				u32 from = n % 3 ? CQ_AT / 4 : 0, at = from + draw() % (FRONT_MEM / 4 - from),
				    v = draw();

				words[at] = v & 1 ? v : v & 2 ? key : v & 4 ? v % 16 : v % 256;
			}
			ring_all();
		}
		front_close(&g.f);
	}
}

/* Descriptor chains that are invalid, cyclic, or outside of memory. */
static void descriptors(void)
{
	u32 n, i, q;

	for (n = 0; n < 400; n++) {
		attach();
		q = draw() % MUSLIN_VQS;
		for (i = 0; i < FRONT_NUM; i++)
			front_fill(front_desc(&g.f, q, i), n & 1 ? draw() : (u64)draw() << (draw() % 33),
				   draw() >> (draw() % 32), (u16)(draw() % 8),
				   (u16)(draw() % (n & 2 ? FRONT_NUM : 65536)));
		for (i = 0; i < FRONT_NUM; i++)
			front_offer(&g.f, q, (u16)(draw() % (n & 4 ? FRONT_NUM : 65536)));
		front_close(&g.f);
	}
}

/* The send fails, and so the queue pair, which flushes its receive. */
static void refused(u32 i, const char *what, u64 addr, u32 lkey)
{
	post(i, addr, MESSAGE, lkey);
	expect(what, completion(), HCA_WC_LOC_PROT_ERR);
	expect("its receive", completion(), HCA_WC_WR_FLUSH_ERR);
}

/* Keys and pages of memory that does not exist. */
static void memory(void)
{
	struct {
		struct muslin_mr_reg r;
		u64 list[1];
	} reg = { .r = { .cmd = { .op = MUSLIN_MR_REG },
			 .length = 4096,
			 .npages = 1,
			 .page_shift = 12,
			 .access = MAY_ALL },
		  .list = { 0x50000 } };
	u32 nowhere;

	start();
	*(u64 *)(void *)(g.f.mem + 0x50000) = 1ull << 40;
	reg.r.pdn = pd;
	nowhere = answered(guest_command(&g, &reg, sizeof(reg)), "a region");
	post(0, FRONT_DATA, MESSAGE, key);
	expect("a correct send", completion(), HCA_WC_SUCCESS);
	expect("its receive", completion(), HCA_WC_SUCCESS);
	refused(0, "a page that is not there", 0, nowhere);
	refused(1, "past the end of memory", FRONT_MEM - 4, key);
	refused(2, "round the end of all addresses", ~0ull - 8, key);
	refused(3, "another's key", FRONT_DATA, key ^ 0x5a5a00);
	front_close(&g.f);
}

/* Each command with every length, and with random bytes. */
static void commands(void)
{
	static u8 in[2048];
	u32 op, len, i;

	attach();
	for (op = 0; op <= MUSLIN_OPS; op++) {
		for (len = 0; len < 400; len += 1 + draw() % 9) {
			for (i = 0; i < len; i++)
				in[i] = (u8)(draw() % 3 ? draw() % 4 : draw());
			memcpy(in, &op, sizeof(op));
			expect("an answer", guest_command(&g, in, len) == -ETIMEDOUT, 0);
		}
	}
	front_close(&g.f);
}

/* Handles that this guest does not own, some of another guest. */
static void handles(void)
{
	static const u32 ops[] = { MUSLIN_PD_FREE,   MUSLIN_CQ_DESTROY,  MUSLIN_QP_QUERY,   MUSLIN_QP_DESTROY,
				   MUSLIN_SRQ_QUERY, MUSLIN_SRQ_DESTROY, MUSLIN_AH_DESTROY, MUSLIN_MR_DMA,
				   MUSLIN_MR_FREE,   MUSLIN_MW_ALLOC,    MUSLIN_MW_FREE };
	u32 i, k, number;

	attach();
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		for (k = 0; k < 600; k++) {
			number = k < 200 ? k : k < 400 ? draw() % 64 << 8 | draw() % 256 : draw();
			if (guest_object(&g, ops[i], number, 1) >= 0) {
				wrong++;
				printf("command %u took %#x\n", ops[i], number);
			}
		}
	}
	front_close(&g.f);
}

/* The guest must not be able to write the device's configuration. */
static void config(void)
{
	struct {
		u32 offset, size, flags;
		u8 data[64];
	} c, got;
	u32 i;

	attach();
	for (i = 0; i < 500; i++) {
		c = (typeof(c)){ .offset = i < 60 ? i : draw(), .size = i & 1 ? draw() % 65 : draw() };
		memset(c.data, 0x5a, sizeof(c.data));
		front_send(&g.f, VHOST_SET_CONFIG, 0, &c, sizeof(c), -1);
		if (i % 50 == 0) {
			front_close(&g.f);
			attach();
		}
	}
	front_close(&g.f);
	attach();
	c = (typeof(c)){ .size = 60 };
	front_send(&g.f, VHOST_GET_CONFIG, 0, &c, 12 + 60, -1);
	expect("the configuration", front_reply(&g.f, &got, sizeof(got)) > 20, 1);
	expect("is what it was", memcmp(got.data, "muslin01", 8), 0);
	front_close(&g.f);
}

/* Disconnects, resets and restarts while queue pairs send. */
static void resets(void)
{
	u32 n, i, at[2] = { 0, 0 };

	for (n = 0; n < 300; n++) {
		start();
		for (i = 0; i < QPS * 2; i++)
			post(i % QPS, FRONT_DATA, MESSAGE + 1000 * (i % 4), key);
		at[0] = n % MUSLIN_VQS;
		if (n % 7 == 1)
			guest_hello(&g);
		if (n % 7 == 2)
			front_memory(&g.f, FRONT_MEM / 16);
		if (n % 7 == 3)
			front_send(&g.f, VHOST_GET_VRING_BASE, 0, at, sizeof(at), -1);
		if (n % 7 == 4)
			front_send(&g.f, VHOST_SET_FEATURES, 0, &state, sizeof(state), -1);
		if (n % 7 == 5)
			front_queue(&g.f, at[0]);
		if (n % 7 == 6)
			front_send(&g.f, VHOST_RESET_OWNER, 0, NULL, 0, -1);
		ring_all();
		front_close(&g.f);
	}
}

/* Killed with full queues, repeatedly. */
static void killed(void)
{
	u32 n;

	for (n = 0; n < 60; n++) {
		int ready[2], status;
		char c;
		pid_t pid;

		if (pipe(ready))
			fail("pipe", -errno);
		pid = fork();
		if (!pid) {
			close(ready[0]);
			start();
			close(ready[1]);
			for (;;)
				post(draw() % QPS, FRONT_DATA, draw() % 8192, key);
		}
		close(ready[1]);
		if (read(ready[0], &c, 1)) {
			/* closed by the child: it sends now */
		}
		close(ready[0]);
		guest_pause(draw() % 3000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		expect("the guest's end", WIFSIGNALED(status), 1);
	}
}

/*
 * Truncates the file of the guest's memory while queue pairs send from it. Neither the daemon nor this program may
 * access that memory afterwards.
 */
static void cut(void)
{
	u32 n, i;

	for (n = 0; n < 60; n++) {
		start();
		for (i = 0; i < QPS * 2; i++)
			post(i % QPS, FRONT_DATA, MESSAGE + 1000 * (i % 4), key);
		if (ftruncate(g.f.memfd, n & 1 ? 0 : FRONT_DATA))
			fail("ftruncate", -errno);
		for (i = 0; i < MUSLIN_VQS; i++)
			front_kick(&g.f, i);
		front_close(&g.f);
	}
}

/* Messages of the front end: truncated, of unknown types, of any length, and with unexpected descriptors. */
static void messages(void)
{
	static u8 bytes[512];
	u32 n, i;

	for (n = 0; n < 300; n++) {
		must(front_open(&g.f, NULL, socket_path), "the device's socket");
		if (n & 1)
			front_start(&g.f, MUSLIN_VQS);
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (u8)(draw() % 3 ? draw() % 9 : draw());
		for (i = 0; i < 1 + draw() % 4; i++)
			front_send(&g.f, draw() % (VHOST_REQUESTS + 4), draw() % 16, bytes,
				   draw() % (sizeof(bytes) - 1), draw() % 3 ? -1 : g.f.memfd);
		if (n & 2 && send(g.f.fd, bytes, draw() % 40, MSG_NOSIGNAL) < 0)
			expect("a closed connection", errno, EPIPE);
		front_close(&g.f);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} modes[] = { { "rings", rings },       { "descriptors", descriptors }, { "memory", memory },
		      { "commands", commands }, { "handles", handles },         { "config", config },
		      { "resets", resets },     { "killed", killed },           { "cut", cut },
		      { "messages", messages } };
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	state = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	for (i = 0; argc > 2 && i < ARRAY_SIZE(modes); i++) {
		if (strcmp(argv[2], modes[i].name))
			continue;
		socket_path = argv[1];
		modes[i].fn();
		attach();
		printf("%s: done, %u wrong\n", argv[2], wrong);
		return wrong != 0;
	}
	fprintf(stderr, "usage: hostile-guest SOCKET MODE [SEED]\n");
	return 2;
}
