// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The limits that host mode is measured against: a process_vm bounce and an eventfd ping-pong between two processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE    (1u << 20)
#define MEASURE 1.0 /* seconds a measurement */

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* A process that holds @mem (at the same address as here) until its parent closes the pipe. */
static pid_t holder(char *mem, int *hold)
{
	int fds[2];
	pid_t pid;
	char c;

	if (pipe(fds))
		exit(1);
	pid = fork();
	if (pid < 0)
		exit(1);
	if (!pid) {
		close(fds[1]);
		memset(mem, 1, SIZE);
		_exit(read(fds[0], &c, 1) < 0);
	}
	close(fds[0]);
	*hold = fds[1];
	return pid;
}

/* MB/s of reading 1 MiB from one process and writing it into another one. */
static double bounce(void)
{
	char *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *buf = malloc(SIZE);
	struct iovec local = { buf, SIZE }, remote = { mem, SIZE };
	int hold[2];
	pid_t a, b;
	double start, end;
	unsigned int n = 0;

	if (mem == MAP_FAILED || !buf)
		exit(1);
	a = holder(mem, &hold[0]);
	b = holder(mem, &hold[1]);
	usleep(100000);
	start = seconds();
	do {
		if (process_vm_readv(a, &local, 1, &remote, 1, 0) != SIZE ||
		    process_vm_writev(b, &local, 1, &remote, 1, 0) != SIZE)
			exit(1);
		n++;
		end = seconds();
	} while (end - start < MEASURE);
	close(hold[0]);
	close(hold[1]);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	free(buf);
	return n * (double)SIZE / 1e6 / (end - start);
}

/* Microseconds of one way between two processes that wake each other by eventfd. */
static double eventfd_pingpong(void)
{
	int to = eventfd(0, 0), fro = eventfd(0, 0), i, rounds = 50000;
	unsigned long long v = 1;
	double start;
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (!pid) {
		for (i = 0; i < rounds; i++) {
			if (read(to, &v, 8) != 8 || write(fro, &v, 8) != 8)
				_exit(1);
		}
		_exit(0);
	}
	start = seconds();
	for (i = 0; i < rounds; i++) {
		v = 1;
		if (write(to, &v, 8) != 8 || read(fro, &v, 8) != 8)
			exit(1);
	}
	waitpid(pid, NULL, 0);
	return (seconds() - start) / rounds / 2 * 1e6;
}

int main(void)
{
	printf("bounce_mb_s %.0f\n", bounce());
	printf("eventfd_us %.3f\n", eventfd_pingpong());
	return 0;
}
