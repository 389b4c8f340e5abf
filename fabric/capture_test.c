// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Captures: valid blocks, batches, a slow reader, and one that closes. An optional argument is a file for the capture.
 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "fabric/fabric_fixture.h"

static struct test_host h1, h2;
static u32 done_calls;

static void on_done(void *ctx)
{
	done_calls++;
}

static u8 file[1 << 20];

/* Parses the blocks; counts[type] for types below 8. False: a length is wrong. */
static bool walk(u32 len, u32 counts[8], u32 *outs)
{
	u32 at = 0, type, n, tail, flags;

	memset(counts, 0, 8 * sizeof(u32));
	*outs = 0;
	while (at + 12 <= len) {
		memcpy(&type, file + at, 4);
		memcpy(&n, file + at + 4, 4);
		if (n < 12 || n % 4 || at + n > len)
			return false;
		memcpy(&tail, file + at + n - 4, 4);
		if (tail != n)
			return false;
		counts[type < 8 ? type : 0]++;
		if (type == 6) {
			memcpy(&flags, file + at + n - 12, 4);
			*outs += flags == 2;
		}
		at += n;
	}
	return at == len;
}

static void traffic(void)
{
	u32 i;

	for (i = 0; i < 20; i++)
		test_send(&h1, 2, 0, i * 13, i + 1);
	test_send(&h2, 1, 0, 5, 1);
	test_run(0);
	test_get(&h1, "\1\2", SMP_ATTR_NODE_INFO, 0);
	test_run(0);
}

static void test_file(const char *path)
{
	struct fabric_capture_stats st, of_second;
	struct fabric_capture *c, *second;
	u32 counts[8], outs = 0;
	int null = open("/dev/null", O_WRONLY);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	c = fabric_capture_start(test_fabric, fd, on_done, NULL);
	row(1, "two ports in one capture",
	    c && !fabric_capture_add(c, fabric_node_port(fabric_node_find(test_fabric, "leaf1"), 2)) &&
		    !fabric_capture_add(c, fabric_node_port(fabric_node_find(test_fabric, "h1"), 1)));
	row(2, "a port is in a capture once",
	    fabric_capture_add(c, fabric_node_port(fabric_node_find(test_fabric, "h1"), 1)) == -EBUSY);
	second = fabric_capture_start(test_fabric, null, on_done, NULL);
	row(7, "and in another one",
	    second && !fabric_capture_add(second, fabric_node_port(fabric_node_find(test_fabric, "h1"), 1)));
	traffic();
	fabric_capture_stats(second, &of_second);
	fabric_capture_stop(second);
	close(null);
	row(8, "which has its packets, too", of_second.packets == 20 + 1 + 2);
	fabric_capture_stats(c, &st);
	fabric_capture_stop(c);
	n = pread(fd, file, sizeof(file), 0);
	close(fd);
	row(3, "the blocks fit together", n > 0 && walk((u32)n, counts, &outs));
	row(4, "one section, two interfaces", counts[0] == 1 && counts[1] == 2);
	row(5, "each packet at each port", counts[6] == st.packets && st.packets == 2 * 21 + 4 && !st.dropped);
	row(6, "directions", outs == 20 + 20 + 2);
	traffic();
}

/* Without a reader the pipe and the buffer fill, the loop continues, and dropped packets are counted. */
static void test_slow(void)
{
	struct fabric_capture_stats st;
	struct fabric_capture *c;
	int fds[2];
	u32 i;

	if (pipe(fds))
		exit(1);
	c = fabric_capture_start(test_fabric, fds[1], on_done, NULL);
	fabric_capture_add(c, fabric_node_port(fabric_node_find(test_fabric, "h1"), 1));
	for (i = 0; i < 6000; i++) {
		test_send(&h1, 2, 0, 2048, i + 100);
		if (i % 8 == 0)
			test_run(0);
	}
	test_run(0);
	fabric_capture_stats(c, &st);
	row(20, "packets are dropped from the capture", st.dropped > 0 && st.packets > 1000);
	row(21, "not from the fabric", test_counter("h1", 1, FABRIC_CTR_XMIT_DISCARDS) == 0);
	close(fds[0]);
	test_run(0);
	row(22, "a disconnected reader is detected", done_calls == 1);
	test_send(&h1, 2, 0, 10, 9000);
	test_run(0);
	fabric_capture_stop(c);
	close(fds[1]);
}

/* A capture that ends while its reader is slow: the reader gets every packet before the end, and none after it. */
static void test_end(void)
{
	u32 counts[8], outs, before = done_calls, len = 0, i;
	struct fabric_capture_stats st;
	struct fabric_capture *c;
	ssize_t n = 0;
	int fds[2];

	if (pipe(fds) || fcntl(fds[0], F_SETFL, O_NONBLOCK))
		exit(1);
	c = fabric_capture_start(test_fabric, fds[1], on_done, NULL);
	fabric_capture_add(c, fabric_node_port(fabric_node_find(test_fabric, "h1"), 1));
	for (i = 0; i < 200; i++) {
		test_send(&h1, 2, 0, 2048, i + 20000);
		test_run(0);
	}
	fabric_capture_stats(c, &st);
	fabric_capture_end(c);
	test_send(&h1, 2, 0, 10, 21000);
	test_run(0);
	row(30, "it is not done before the reader has all", st.packets == 200 && !st.dropped && done_calls == before);
	for (i = 0; i < 1000 && (n > 0 || done_calls == before); i++) {
		n = read(fds[0], file + len, sizeof(file) - len);
		len += n > 0 ? (u32)n : 0;
		test_run(0);
	}
	row(31, "it is done then, once", done_calls == before + 1);
	fabric_capture_stats(c, &st);
	row(32, "the packets before the end", walk(len, counts, &outs) && counts[6] == 200 && st.packets == 200);
	fabric_capture_stop(c);
	close(fds[0]);
	close(fds[1]);
}

/* Packets are written together: after a time, or when there are many. */
static void test_batches(void)
{
	struct fabric_capture *c;
	int fds[2];
	u32 i;

	if (pipe(fds) || fcntl(fds[0], F_SETFL, O_NONBLOCK))
		exit(1);
	c = fabric_capture_start(test_fabric, fds[1], on_done, NULL);
	fabric_capture_add(c, fabric_node_port(fabric_node_find(test_fabric, "h1"), 1));
	test_run(0);
	row(40, "the interface is written at once", read(fds[0], file, sizeof(file)) > 0);
	for (i = 0; i < 3; i++) {
		test_send(&h1, 2, 0, 16, i + 30000);
		test_run(0);
	}
	row(41, "few packets wait", read(fds[0], file, sizeof(file)) < 0);
	test_run(NSEC_PER_MSEC);
	row(42, "for a millisecond", read(fds[0], file, sizeof(file)) > 0);
	for (i = 0; i < 40; i++) {
		test_send(&h1, 2, 0, 2048, i + 31000);
		test_run(0);
	}
	row(43, "many packets do not wait", read(fds[0], file, sizeof(file)) >= 1 << 15);
	fabric_capture_stop(c);
	close(fds[0]);
	close(fds[1]);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/muslin-capture-XXXXXX";
	int fd = argc > 1 ? -1 : mkstemp(path);

	signal(SIGPIPE, SIG_IGN);
	test_start("leafs 1 hosts 2\n");
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_bring_up(&h1, 2);
	test_file(argc > 1 ? argv[1] : path);
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	test_slow();
	test_end();
	test_batches();
	test_stop();
	return rows_end();
}
