// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reference limits of two processes: a copy by process_vm, an eventfd ping-pong, and datagrams over the loopback
 * interface in trains that the kernel neither splits nor merges one by one (UDP GSO and GRO).
 */
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE    (1u << 20)
#define MEASURE 1.0 /* seconds per measurement */

#define DATAGRAM 4112 /* bytes: an RDMA WRITE Middle packet of RoCEv2, with 4096 bytes of payload */
#define TRAIN    (15 * DATAGRAM)

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Forks a process that keeps @mem (at the same address) until its parent closes the pipe. */
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

/* MB/s of reading 1 MiB from one process and writing it to another one. */
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

/* Microseconds per direction between two processes that wake each other by eventfd. */
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

/* Opens two sockets on one address, with the largest possible buffers. */
static void open_sockets(int *from, int *to)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int on = 1, segment = DATAGRAM, room = 4 << 20;

	*from = socket(AF_INET, SOCK_DGRAM, 0);
	*to = socket(AF_INET, SOCK_DGRAM, 0);
	if (setsockopt(*to, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(*to, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(*to, (struct sockaddr *)&addr, len) || getsockname(*to, (struct sockaddr *)&addr, &len) ||
	    connect(*from, (struct sockaddr *)&addr, len) || setsockopt(*to, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) ||
	    setsockopt(*from, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		exit(1);
}

/* Sends a message in trains, in a loop. */
static void send_messages(int fd, const char *buf, size_t size)
{
	size_t at;

	for (;;) {
		for (at = 0; at < size; at += TRAIN)
			send(fd, buf + at, at + TRAIN < size ? TRAIN : size - at, 0);
	}
}

/* MB/s received of messages of @size bytes, which another process sends without pause. */
static double trains(size_t size)
{
	char *buf = malloc(size + TRAIN);
	size_t bytes = 0, at = 0, got;
	double start, end;
	int from, to;
	pid_t pid;

	if (!buf)
		exit(1);
	memset(buf, 1, size + TRAIN);
	open_sockets(&from, &to);
	pid = fork();
	if (pid < 0)
		exit(1);
	if (!pid)
		send_messages(from, buf, size);
	start = seconds();
	do {
		got = (size_t)recv(to, buf + at, TRAIN, 0);
		bytes += got;
		at = at + got < size ? at + got : 0;
		end = seconds();
	} while (end - start < MEASURE);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(buf);
	return (double)bytes / 1e6 / (end - start);
}

int main(void)
{
	printf("bounce_mb_s %.0f\n", bounce());
	printf("udp_trains_mb_s %.0f\n", trains(SIZE));
	printf("udp_train_mb_s %.0f\n", trains(TRAIN));
	printf("eventfd_us %.3f\n", eventfd_pingpong());
	return 0;
}
