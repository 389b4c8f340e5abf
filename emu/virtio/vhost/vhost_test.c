// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The back end with a conforming front end and with a misbehaving one: messages, queues, memory, connections. */
#include <fcntl.h>

#include "emu/lib/row.h"
#include "emu/virtio/vhost/fixture.h"

#define QUEUES 3

static u32 starts, stops;
static struct vhost *dev;
static char path[64];

static void config(void *ctx, u8 *c)
{
	memcpy(c, "muslin", 6);
}

/* Returns each chain with its bytes reversed. */
static void kick(void *ctx, u32 queue)
{
	struct vhost_chain c;

	while (vhost_pop(dev, queue, &c) > 0) {
		u8 buf[256], out[256];
		u32 n = vhost_chain_read(&c, 0, buf, sizeof(buf)), i;

		for (i = 0; i < n; i++)
			out[i] = buf[n - 1 - i];
		vhost_push(dev, queue, c.head, vhost_chain_write(&c, 0, out, n));
	}
	vhost_signal(dev, queue);
}

static void start(void *ctx, u32 queue)
{
	starts++;
}

static void stop(void *ctx, u32 queue)
{
	struct vhost_chain c;

	stops++;
	vhost_pop(dev, !queue, &c); /* what waits in the other one is lost */
}

static void memory(void *ctx) {}

static const struct vhost_ops ops = {
	.queues = QUEUES,
	.features = 1 << 6,
	.config = config,
	.kick = kick,
	.start = start,
	.stop = stop,
	.memory = memory,
};

static struct vhost_stats stats(void)
{
	struct vhost_stats st;

	vhost_stats(dev, &st);
	return st;
}

static struct vhost_queue_stats queue_stats(u32 queue)
{
	struct vhost_queue_stats st;

	vhost_queue_stats(dev, queue, &st);
	return st;
}

static void test_messages(struct front *f)
{
	u64 features = front_get(f, VHOST_GET_FEATURES), v;
	struct {
		u32 offset, size, flags;
		u8 data[64];
	} cfg = { .offset = 0, .size = 60 };
	u32 bad[2] = { QUEUES, 16 };
	struct {
		u32 n, padding;
		struct vhost_mem_region r;
	} within = { .n = 1, .r = { .gpa = 8, .size = 4096, .user = FRONT_USER, .offset = 2 } };

	row(1, "the device's bits and the transport's", features == (1ull << 6 | 1ull << 28 | 1ull << 30 | 1ull << 32));
	row(2, "protocol features", front_get(f, VHOST_GET_PROTOCOL_FEATURES) == 0x629);
	row(3, "queues", front_get(f, VHOST_GET_QUEUE_NUM) == QUEUES);
	front_send(f, VHOST_GET_CONFIG, 0, &cfg, 72, -1);
	row(4, "config", front_reply(f, &cfg, sizeof(cfg)) == 72 && cfg.size == 60 && !memcmp(cfg.data, "muslin", 6));
	cfg.offset = 250;
	front_send(f, VHOST_GET_CONFIG, 0, &cfg, 72, -1);
	row(5, "config past its end", front_reply(f, &cfg, sizeof(cfg)) == 12 && cfg.size == 0);
	v = 1ull << VHOST_PF_REPLY_ACK;
	front_send(f, VHOST_SET_PROTOCOL_FEATURES, 0, &v, sizeof(v), -1);
	front_send(f, VHOST_SET_VRING_NUM, VHOST_MSG_NEED_REPLY, bad, sizeof(bad), -1);
	row(6, "a queue that is not there is refused", front_reply(f, &v, sizeof(v)) == 8 && v == 1);
	bad[0] = 0;
	front_send(f, VHOST_SET_VRING_NUM, VHOST_MSG_NEED_REPLY, bad, sizeof(bad), -1);
	row(7, "one that is there is not", front_reply(f, &v, sizeof(v)) == 8 && v == 0);
	front_send(f, 99, VHOST_MSG_NEED_REPLY, NULL, 0, -1);
	row(8, "an unknown request is refused", front_reply(f, &v, sizeof(v)) == 8 && v == 1);
	front_memory(f, FRONT_MEM * 2ull);
	row(9, "a region beyond its file is not there", !vhost_memory(dev, 0, 1));
	front_send(f, VHOST_SET_MEM_TABLE, 0, &within, sizeof(within), f->memfd);
	row(11, "nor is one whose aligned addresses are misaligned in its file", !vhost_memory(dev, 8, 1));
	within.r.offset = 4096 + 8;
	front_send(f, VHOST_SET_MEM_TABLE, 0, &within, sizeof(within), f->memfd);
	row(12, "one that begins within a page of both is", vhost_memory(dev, 8, 1) != NULL);
	front_memory(f, FRONT_MEM);
	row(10, "a good one is", vhost_memory(dev, FRONT_MEM - 1, 1) && !vhost_memory(dev, FRONT_MEM - 1, 2));
}

static bool echo(struct front *f, u32 q)
{
	u16 used = front_used(f, q);

	memcpy(f->mem + FRONT_DATA, "abcdef", 6);
	memset(f->mem + FRONT_DATA + 4096, 0, 16);
	front_post(f, q, FRONT_DATA, 6, FRONT_DATA + 4096, 16);
	return front_used(f, q) == (u16)(used + 1) && !memcmp(f->mem + FRONT_DATA + 4096, "fedcba", 7);
}

static void test_queues(struct front *f)
{
	struct vring_avail_le *a = (struct vring_avail_le *)(void *)(front_ring(f, 0) + 1024);
	struct vring_desc_le *table = (struct vring_desc_le *)(void *)(f->mem + FRONT_DATA + 8192);
	u32 state[2] = { 1, 0 }, i;
	bool all = true;

	row(20, "queues have begun", starts == QUEUES);
	row(21, "there and back", echo(f, 0) && front_called(f, 0));
	a->flags = cpu_to_le16(1);
	row(22, "no interrupt where none is requested",
	    echo(f, 0) && !front_called(f, 0) && queue_stats(0).suppressed == 1);
	a->flags = 0;
	row(27, "and counted by queue",
	    queue_stats(0).signals == 1 && queue_stats(0).kicks == 2 && !queue_stats(1).kicks);
	/* As where the front end reads its kick between the loop's epoll_wait() and read(). */
	fcntl(f->kick[0], F_SETFL, 0);
	alarm(10);
	dev->q[0].kick.fn(&dev->q[0].kick, EPOLLIN, (struct now){ 0 });
	alarm(0);
	row(28, "a kick that the front end has taken back", queue_stats(0).kicks == 2 && echo(f, 0));
	for (i = 0; i < 4 * FRONT_NUM; i++)
		all &= echo(f, 0);
	row(23, "round the ring", all);
	front_fill(&table[0], FRONT_DATA, 6, 1, 1);
	front_fill(&table[1], FRONT_DATA + 4096, 16, 2, 0);
	front_fill(front_desc(f, 0, 5), FRONT_DATA + 8192, 32, 4, 0);
	memset(f->mem + FRONT_DATA + 4096, 0, 16);
	front_offer(f, 0, 5);
	row(24, "an indirect table", !memcmp(f->mem + FRONT_DATA + 4096, "fedcba", 7));
	front_send(f, VHOST_GET_VRING_BASE, 0, state, sizeof(state), -1);
	row(25, "a stopped queue reports its index",
	    front_reply(f, state, sizeof(state)) == 8 && state[1] == 0 && stops == 1);
	front_queue(f, 1);
	row(26, "and starts again", echo(f, 1));
}

/* Each case breaks its queue; the other queue keeps running. */
static void test_damage(struct front *f)
{
	static const struct {
		int n;
		const char *what;
		u64 addr;
		u32 len;
		u16 flags, next, head;
	} rows[] = {
		{ 40, "memory that is not there", FRONT_MEM, 1, 0, 0, 0 },
		{ 41, "memory that ends too early", FRONT_MEM - 4, 8, 0, 0, 0 },
		{ 42, "an address near the top", ~0ull - 3, 16, 0, 0, 0 },
		{ 43, "a loop", FRONT_DATA, 1, 1, 0, 0 },
		{ 44, "a next past the table", FRONT_DATA, 1, 1, FRONT_NUM, 0 },
		{ 45, "a head past the table", FRONT_DATA, 1, 0, 0, FRONT_NUM },
		{ 46, "an indirect table of odd size", FRONT_DATA, 17, 4, 0, 0 },
		{ 47, "an indirect table with a next descriptor", FRONT_DATA, 16, 5, 1, 0 },
		{ 48, "an indirect table in nowhere", FRONT_MEM, 16, 4, 0, 0 },
		{ 49, "four gigabytes", FRONT_DATA, ~0u, 0, 0, 0 },
	};
	struct vring_avail_le *a = (struct vring_avail_le *)(void *)(front_ring(f, 2) + 1024);
	u32 state[2] = { 2, 0 }, i;
	u64 before;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		before = stats().broken_queues;
		front_fill(front_desc(f, 2, 0), rows[i].addr, rows[i].len, rows[i].flags, rows[i].next);
		front_offer(f, 2, rows[i].head);
		row(rows[i].n, rows[i].what, stats().broken_queues == before + 1 && !front_used(f, 2) && echo(f, 0));
		front_send(f, VHOST_GET_VRING_BASE, 0, state, sizeof(state), -1);
		front_reply(f, state, sizeof(state));
		state[0] = 2;
		front_queue(f, 2);
	}
	before = stats().broken_queues;
	a->idx = cpu_to_le16(FRONT_NUM + 1);
	front_kick(f, 2);
	row(60, "an index too far", stats().broken_queues == before + 1 && echo(f, 0));
	front_fill(front_desc(f, 1, 0), FRONT_DATA, 4, 3, 1);
	front_fill(front_desc(f, 1, 1), FRONT_DATA, 4, 0, 0);
	front_offer(f, 1, 0);
	row(61, "what is read after what is written", stats().broken_queues == before + 2);
}

/* A long list of empty descriptors must not block the device. */
static void test_endless_table(struct front *f)
{
	struct vring_desc_le *table = (struct vring_desc_le *)(void *)(f->mem + FRONT_DATA + 8192);
	u64 before = stats().broken_queues;
	u32 state[2] = { 1, 0 }, i, n = 2 * VHOST_DESCS_MAX;

	front_send(f, VHOST_GET_VRING_BASE, 0, state, sizeof(state), -1);
	front_reply(f, state, sizeof(state));
	front_queue(f, 1);
	for (i = 0; i < n; i++)
		front_fill(&table[i], FRONT_DATA, 0, i < n - 1, (u16)(i + 1));
	front_fill(front_desc(f, 1, 0), FRONT_DATA + 8192, n * (u32)sizeof(*table), 4, 0);
	front_offer(f, 1, 0);
	row(62, "a chain of more descriptors than drivers make",
	    stats().broken_queues == before + 1 && !front_used(f, 1) && echo(f, 0));
}

/* Rings outside the guest's memory: never inside, unmapped later, or partly outside. */
static void test_unmapped(struct loop *loop)
{
	u32 num[2] = { 0, VHOST_NUM_MAX }, one[2] = { 0, 1 }, enable[2] = { 0, 1 }, before = starts;
	u64 unmapped = stats().unmapped_queues, end = FRONT_MEM - 64, index = 0;
	struct front f;
	int kick_fd;

	front_open(&f, loop, path);
	front_memory_at(&f, FRONT_MEM, 0);
	front_queue_at(&f, 0, 0);
	front_queue_at(&f, 1, FRONT_QSIZE);
	row(100, "rings at address 0", starts == before + 2 && echo(&f, 0));
	stops = 0;
	front_no_memory(&f);
	front_kick(&f, 0);
	row(101, "no memory: every queue is stopped",
	    stops == 2 && stats().unmapped_queues == unmapped + 2 && vhost_connected(dev));
	front_memory_at(&f, FRONT_MEM, 0);
	front_queue_at(&f, 0, 0);
	front_queue_at(&f, 1, FRONT_QSIZE);
	row(102, "memory and addresses again: they run", echo(&f, 0) && echo(&f, 1));
	stops = 0;
	front_addr(&f, 0, 1ull << 40, 1ull << 40, 1ull << 40);
	front_kick(&f, 0);
	row(103, "addresses in nowhere for a running queue stop it",
	    stops == 1 && stats().unmapped_queues == unmapped + 3 && echo(&f, 1));
	front_addr(&f, 0, 0, 1024, FRONT_MEM);
	row(104, "a used ring alone in nowhere", stats().unmapped_queues == unmapped + 4);
	front_addr(&f, 0, 4, 1024, 2048);
	row(105, "descriptors that are not aligned", stats().unmapped_queues == unmapped + 5);
	front_close(&f);

	front_open(&f, loop, path);
	front_memory_at(&f, FRONT_MEM, 0);
	before = starts;
	front_send(&f, VHOST_SET_VRING_NUM, 0, one, sizeof(one), -1);
	front_addr(&f, 0, end, end + 16, end + 32);
	front_send(&f, VHOST_SET_VRING_NUM, 0, num, sizeof(num), -1);
	kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	front_send(&f, VHOST_SET_VRING_KICK, 0, &index, sizeof(index), kick_fd);
	front_send(&f, VHOST_SET_VRING_ENABLE, 0, enable, sizeof(enable), -1);
	row(106, "rings that grow past the end after their address was set",
	    starts == before && stats().unmapped_queues == unmapped + 6);
	close(kick_fd);
	front_close(&f);
}

/* As QEMU does when it connects to another back end: the rings are those of before. */
static void test_restart(struct loop *loop)
{
	u32 state[2] = { 0, 0 };
	u64 index = 0;
	struct front f;

	front_open(&f, loop, path);
	front_start(&f, 1);
	row(130, "a queue that begins is not signalled", !front_called(&f, 0) && echo(&f, 0) && front_called(&f, 0));
	front_send(&f, VHOST_GET_VRING_BASE, 0, state, sizeof(state), -1);
	row(131, "it stops", front_reply(&f, state, sizeof(state)) == 8 && state[1] == 1);
	state[0] = 0;
	front_send(&f, VHOST_SET_VRING_BASE, 0, state, sizeof(state), -1);
	front_send(&f, VHOST_SET_VRING_KICK, 0, &index, sizeof(index), f.kick[0]);
	row(132, "one that continues is, since the back end before may have ended before it did so",
	    front_called(&f, 0) && echo(&f, 0) && front_called(&f, 0));
	front_close(&f);
}

static u64 seen_messages;

static void on_other(struct loop_fd *w, u32 events, struct now now)
{
	seen_messages = stats().messages;
	loop_fd_del(w);
}

/* A front end that fills its socket must not starve other events. */
static void test_flood(struct loop *loop)
{
	static struct {
		struct vhost_hdr hdr;
		u32 state[2];
	} flood[8 * VHOST_TURN];
	struct loop_fd other = { .fd = eventfd(1, EFD_CLOEXEC), .fn = on_other };
	u64 before, index = 0, bad, full = ~0ull - 1;
	struct front f;
	int p[2];
	u32 i;

	front_open(&f, loop, path);
	before = stats().messages;
	for (i = 0; i < ARRAY_SIZE(flood); i++)
		flood[i].hdr = (struct vhost_hdr){ VHOST_SET_VRING_BASE, VHOST_MSG_VERSION, 8 };
	row(110, "a flood of messages", send(f.fd, flood, sizeof(flood), 0) == sizeof(flood));
	loop_fd_add(loop, &other, EPOLLIN);
	loop_run_idle(loop, 0);
	row(111, "others are not starved", seen_messages - before <= VHOST_TURN);
	row(112, "and all is done", stats().messages == before + ARRAY_SIZE(flood));
	bad = stats().bad_messages;
	front_start(&f, 1);
	row(113, "a pipe", pipe2(p, O_CLOEXEC) == 0);
	front_send(&f, VHOST_SET_VRING_KICK, 0, &index, sizeof(index), p[0]);
	front_send(&f, VHOST_SET_VRING_CALL, 0, &index, sizeof(index), p[1]);
	row(114, "is neither kick nor call", stats().bad_messages == bad + 2 && echo(&f, 0) && front_called(&f, 0));
	fcntl(f.call[0], F_SETFL, 0);
	alarm(10); /* a blocked back end would hang the test */
	row(115, "a call eventfd is full", write(f.call[0], &full, sizeof(full)) == sizeof(full));
	row(116, "and waits, which is not waited for", echo(&f, 0));
	alarm(0);
	close(p[0]);
	close(p[1]);
	close(other.fd);
	front_close(&f);
}

static void test_life(struct loop *loop, struct front *f)
{
	struct front g, h;
	u32 i;

	row(80, "a second front end is refused",
	    !front_open(&g, loop, path) && recv(g.fd, &h, 1, 0) == 0 && echo(f, 0));
	front_close(&g);
	stops = 0;
	front_close(f);
	row(81, "queues end with the connection", stops == QUEUES && !vhost_connected(dev));
	row(82, "and so does the memory", !vhost_memory(dev, 0, 1));
	row(83, "the next one is accepted", !front_open(&g, loop, path));
	front_start(&g, QUEUES);
	row(84, "with queues", echo(&g, 0) && echo(&g, 2));
	row(85, "noise ends the connection", send(g.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0) == 18);
	loop_run_idle(loop, 0);
	row(86, "at once", !vhost_connected(dev));
	front_close(&g);
	front_open(&g, loop, path);
	front_start(&g, QUEUES);
	row(87, "its memory is truncated", echo(&g, 0) && !ftruncate(g.memfd, 0));
	front_kick(&g, 0);
	loop_run_idle(loop, 0);
	loop_run_idle(loop, 0);
	row(88, "and so does the connection", !vhost_connected(dev) && stats().lost_memory == 1);
	front_close(&g);
	row(89, "but not the device", !front_open(&g, loop, path));
	front_start(&g, QUEUES);
	row(90, "which accepts the next one", echo(&g, 0));
	g.loop = NULL;
	for (i = 0; i < 3 * VHOST_TURN; i++)
		front_send(&g, VHOST_SET_OWNER, 0, NULL, 0, -1);
	front_close(&g);
	row(120, "a front end is accepted before the last messages of a disconnected one are read",
	    !front_open(&g, loop, path) && recv(g.fd, &h, 1, MSG_DONTWAIT) < 0);
	front_start(&g, QUEUES);
	row(121, "with queues", echo(&g, 0));
	front_close(&g);
}

int main(void)
{
	struct loop *loop = loop_create();
	struct front f;

	front_path(path, sizeof(path));
	dev = vhost_create(loop, path, &ops, NULL);
	if (!dev || front_open(&f, loop, path)) {
		row(0, "no device", false);
		return rows_end();
	}
	test_messages(&f);
	front_start(&f, QUEUES);
	test_queues(&f);
	test_damage(&f);
	test_endless_table(&f);
	test_life(loop, &f);
	test_unmapped(loop);
	test_restart(loop);
	test_flood(loop);
	vhost_destroy(dev);
	loop_destroy(loop);
	return rows_end();
}
