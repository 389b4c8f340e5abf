// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Descriptors passed by clients, some of which take long to close. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/passed.h"
#include "emu/lib/passed_fixture.h"
#include "emu/lib/row.h"

#define WAIT  20000
#define FILLS 20000 /* a soft limit: the table is looked at again before it is full */

static u32 open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	u32 n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct passed_stats stats(void)
{
	struct passed_stats st;

	passed_stats(&st);
	return st;
}

/* Waits until @closed have been closed, and @open files are open (0: any number). */
static bool reached(u64 closed, u32 open)
{
	u32 i;

	for (i = 0; i < WAIT && (stats().closed < closed || (open && open_files() != open)); i++)
		poll(NULL, 0, 1);
	return i < WAIT;
}

static bool ended(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char c;

	return poll(&p, 1, WAIT) == 1 && recv(sock, &c, 1, MSG_DONTWAIT) == 0;
}

static void test_kinds(void)
{
	int p[2], s[2], event = eventfd(0, EFD_CLOEXEC), memory = memfd_create("x", MFD_CLOEXEC);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (pipe2(p, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		exit(1);
	row(1, "kinds",
	    passed_kind(event) == PASSED_EVENTFD && passed_kind(memory) == PASSED_MEMORY &&
		    passed_kind(p[0]) == PASSED_PIPE && passed_kind(s[0]) == PASSED_SOCKET &&
		    passed_kind(null) == PASSED_OTHER && passed_kind(-1) == PASSED_OTHER);
	row(2, "a socket is known again",
	    passed_socket(s[0]) && passed_socket(s[0]) != passed_socket(s[1]) && !passed_socket(null));
	row(3, "its owner", passed_owner(s[0]) == getpid());
	passed_close(event, 1);
	passed_close(memory, 1);
	passed_close(p[0], 1);
	passed_close(p[1], 1);
	row(4, "what cannot block is closed at once", stats().closed == 0 && fcntl(event, F_GETFD) < 0);
	passed_close(null, 1);
	passed_close_socket(s[0], 1);
	row(5, "the rest by a thread", ended(s[1]) && reached(2, 0));
	close(s[1]);
}

static void test_slow(void)
{
	int peer[PASSED_THREADS_OWNER + 3], fd, s[2], queued[2], i, n = PASSED_THREADS_OWNER + 3;
	u64 closed = stats().closed, delayed = stats().delayed;
	u32 before = open_files();

	alarm(LINGER / 2);
	for (i = 0; i < n - 1; i++)
		passed_close(slow_socket(&peer[i]), 7);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, queued))
		exit(1);
	fd = slow_socket(&peer[n - 1]);
	if (!pass(queued[0], &fd, 1))
		exit(1);
	close(fd);
	passed_close_socket(queued[1], 8);
	row(10, "slow ones, and those queued behind them, do not block", stats().closed <= closed + 1);
	row(11, "a client has few threads", stats().delayed == delayed + 2);
	passed_close_socket(s[0], 9);
	row(12, "and others have their own", ended(s[1]) && !passed_refused(7));
	alarm(0);
	for (i = 0; i < n; i++)
		close(peer[i]);
	close(s[1]);
	close(queued[0]);
	row(13, "in the end all are closed", reached(closed + (u64)n + 1, before) && stats().waiting == 0);
}

static void test_refused(void)
{
	int peer[PASSED_THREADS_OWNER], fds[PASSED_OWNER_MOST + 1], i;
	u32 before = open_files();

	for (i = 0; i <= PASSED_OWNER_MOST; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		passed_close(slow_socket(&peer[i]), 7);
	for (i = 0; i <= PASSED_OWNER_MOST; i++)
		passed_close(fds[i], 7);
	row(20, "too many wait", passed_refused(7) && !passed_refused(8));
	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		close(peer[i]);
	row(21, "and then no more", reached(0, before) && !passed_refused(7));
}

/* Looked up by file name: the address may be reused immediately. */
static bool is_mapped(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[256];
	bool found = false;

	if (!f)
		exit(1);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, name) != NULL;
	fclose(f);
	return found;
}

static void *memory_map(const char *name, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)len))
		exit(1);
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		exit(1);
	close(fd);
	return at;
}

static void test_memory(void)
{
	int peer[PASSED_THREADS_OWNER], i;
	void *small = memory_map("memory-small", 4096), *large = memory_map("memory-large", PASSED_UNMAP_LARGE);
	u64 closed = stats().closed;

	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		passed_close(slow_socket(&peer[i]), 7);
	passed_unmap(small, 4096, 7);
	passed_unmap(large, PASSED_UNMAP_LARGE, 7);
	row(40, "small memory is unmapped at once, large memory by a thread",
	    !is_mapped("memory-small") && is_mapped("memory-large"));
	for (i = 0; i < PASSED_THREADS_OWNER; i++)
		close(peer[i]);
	row(41, "which has unmapped it", reached(closed + PASSED_THREADS_OWNER + 1, 0) && !is_mapped("memory-large"));
}

/* The maximum number per message, when no descriptors are left: none must be truncated,
 * which the kernel would close here. */
static void test_received(void)
{
	int s[2], fds[PASSED_MAX], got[2], taken[256], peer, n = 0, i;
	char c[8];
	const struct iovec iov = { c, sizeof(c) };
	struct rlimit old, few;
	u32 before, nfds;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
		exit(1);
	before = open_files();
	row(30, "no message", passed_recv(s[0], &iov, got, 2, &nfds) < 0 && errno == EAGAIN && !nfds);
	fds[PASSED_MAX - 1] = slow_socket(&peer);
	for (i = 0; i < PASSED_MAX - 1; i++)
		fds[i] = 0;
	if (!pass(s[1], fds, PASSED_MAX))
		exit(1);
	close(fds[PASSED_MAX - 1]);
	getrlimit(RLIMIT_NOFILE, &old);
	passed_reserve(); /* the limit changes */
	few = (struct rlimit){ 64, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < 256 && (taken[n] = dup(0)) >= 0)
		n++;
	alarm(LINGER / 2);
	row(31, "a message with all that the kernel lets pass", passed_recv(s[0], &iov, got, 2, &nfds) == 1);
	alarm(0);
	setrlimit(RLIMIT_NOFILE, &old);
	row(32, "of which the caller takes two", nfds == 2 && got[0] >= 64 && got[1] >= 64);
	while (n)
		close(taken[--n]);
	close(got[0]);
	close(got[1]);
	close(peer);
	row(33, "the others are closed", reached(0, before));
	close(s[1]);
	row(34, "the end", passed_recv(s[0], &iov, got, 2, &nfds) == 0 && !nfds);
	close(s[0]);
	few = (struct rlimit){ old.rlim_max, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	passed_reserve();
	getrlimit(RLIMIT_NOFILE, &few);
	row(35, "descriptors are reserved", old.rlim_max < 4 * PASSED_MAX || few.rlim_cur == old.rlim_max - PASSED_MAX);
	setrlimit(RLIMIT_NOFILE, &old);
}

/* Messages with the maximum number, all of which are kept, until the table is full up to the reserve. */
static void test_table_fills(void)
{
	static int kept[FILLS + PASSED_MAX];
	int s[2], fds[PASSED_MAX] = { 0 };
	struct rlimit old, limit;
	char c[8];
	const struct iovec iov = { c, sizeof(c) };
	u32 nfds = PASSED_MAX, n = 0;

	getrlimit(RLIMIT_NOFILE, &old);
	limit = old;
	limit.rlim_cur = min(old.rlim_max - PASSED_MAX, (rlim_t)FILLS);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
		exit(1);
	passed_reserve();
	setrlimit(RLIMIT_NOFILE, &limit);
	while (n < limit.rlim_cur && nfds == PASSED_MAX && pass(s[1], fds, PASSED_MAX)) {
		if (passed_recv(s[0], &iov, kept + n, PASSED_MAX, &nfds) != 1)
			break;
		n += nfds;
	}
	row(36, "no message is truncated while the table fills", nfds == PASSED_MAX && n >= limit.rlim_cur);
	while (n)
		close(kept[--n]);
	close(s[0]);
	close(s[1]);
	setrlimit(RLIMIT_NOFILE, &old);
	passed_reserve();
	setrlimit(RLIMIT_NOFILE, &old);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * A client that fills the counter and clears O_NONBLOCK, again and again. Exits with 1 if @signals, which the other
 * process counts, then stops for longer than a busy machine lets it wait.
 */
static void fill(int event, const volatile u64 *signals)
{
	u64 v, all = ~0ull - 1;
	double end = seconds() + 0.3, since;

	while (seconds() < end) {
		fcntl(event, F_SETFL, O_NONBLOCK);
		if (read(event, &v, sizeof(v)) < 0 || write(event, &all, sizeof(all)) < 0)
			continue;
		fcntl(event, F_SETFL, 0);
		v = *signals;
		for (since = seconds(); *signals == v;) {
			if (seconds() < since + LINGER / 4)
				continue;
			if (read(event, &v, sizeof(v)) > 0) /* lets it go on */
				_exit(1);
		}
	}
	_exit(0);
}

static void test_signals(void)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), status = 1;
	volatile u64 *signals = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	u64 v = 0, i;
	pid_t pid;
	int err;

	passed_signal(event);
	row(50, "a signal by write()", read(event, &v, sizeof(v)) == sizeof(v) && v == 1);
	err = passed_signal_init();
	if (err) {
		printf("SKIP signals by AIO: %s\n", strerror(-err));
		return;
	}
	for (i = 0; i < 1000; i++)
		passed_signal(event);
	row(51, "a thousand by AIO", read(event, &v, sizeof(v)) == sizeof(v) && v == 1000);
	pid = fork();
	if (!pid)
		fill(event, signals);
	do
		passed_signal(event);
	while (++*signals % 64 || !waitpid(pid, &status, WNOHANG));
	row(52, "a client that fills the counter blocks none", !status);
	close(event);
}

static void test_taken(void)
{
	int event = eventfd(3, EFD_CLOEXEC);
	u64 n = 0;

	row(53, "the counter of an eventfd", !passed_take(event, &n) && n == 3);
	alarm(LINGER / 2);
	row(54, "that another process has taken, and whose reads wait", passed_take(event, &n) == -EAGAIN);
	alarm(0);
	close(event);
}

int main(void)
{
	test_kinds();
	test_slow();
	test_refused();
	test_memory();
	test_received();
	test_table_fills();
	test_signals();
	test_taken();
	return rows_end();
}
