// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages and RDMA over RDS, with every byte checked (rds(7), rds-rdma(7)).
 *
 *     rds server IP               serves until it is killed
 *     rds client IP SERVER FILE   sends requests until FILE exists, and one round more
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rds.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "must.h"

#define PORT          4000
#define BIG           200000
#define REGION        100000
#define WAIT_S        40
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Request to the server: return the data, write it to the client's memory, or read it from there. */
enum {
	ECHO,
	WRITE,
	READ
};

struct message {
	uint32_t number, kind, len;
	uint8_t data[BIG];
};

static struct message request, answer;
static uint8_t region[REGION];
static rds_rdma_cookie_t cookie; /* of the client's memory; received with the last message */
static int fd;

static uint8_t byte_at(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static void check_data(const uint8_t *data, uint32_t len, uint32_t number, const char *what)
{
	uint32_t i, first = len, last = 0;

	for (i = 0; i < len; i++) {
		if (data[i] == byte_at(number, i))
			continue;
		first = first < i ? first : i;
		last = i;
	}
	if (first == len)
		return;
	fprintf(stderr, "rds: %s, message %u: wrong from byte %u to %u of %u, 0x%02x instead of 0x%02x\n", what, number,
		first, last, len, data[first], byte_at(number, first));
	exit(1);
}

static void fill(uint8_t *data, uint32_t len, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		data[i] = byte_at(number, i);
}

static size_t size_of(const struct message *m)
{
	return offsetof(struct message, data) + (m->kind == ECHO ? m->len : 0);
}

/* An RDMA of the server, by the number of its request. */
struct outcome {
	uint64_t number;
	int ended, status;
};

/*
 * Receives the next message, or the notification that an RDMA has ended, for which it returns 0. @out: NULL, or of
 * which one.
 */
static ssize_t receive(struct message *m, struct sockaddr_in *from, struct outcome *out)
{
	char control[256];
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr h = { .msg_name = from,
			    .msg_namelen = sizeof(*from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &h, 0);
	struct rds_rdma_notify ended;
	struct cmsghdr *c;

	must(n >= 0, "recvmsg");
	for (c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		if (c->cmsg_level == SOL_RDS && c->cmsg_type == RDS_CMSG_RDMA_STATUS) {
			memcpy(&ended, CMSG_DATA(c), sizeof(ended));
			if (out && out->number == ended.user_token) {
				out->ended = 1;
				out->status = ended.status;
			}
		}
		if (c->cmsg_level == SOL_RDS && c->cmsg_type == RDS_CMSG_RDMA_DEST)
			memcpy(&cookie, CMSG_DATA(c), sizeof(cookie));
	}
	return n;
}

/* @type: of the control message. */
static void send_with(struct message *m, struct sockaddr_in *to, int type, const void *args, size_t len)
{
	char control[256] = {};
	struct iovec iov = { m, size_of(m) };
	struct msghdr h = { .msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (args) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(len);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_RDS;
		c->cmsg_type = type;
		c->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(c), args, len);
	}
	must(sendmsg(fd, &h, 0) == (ssize_t)size_of(m), "sendmsg");
}

/*
 * Returns the size of the next request, if that came before the notification, else 0: RDS loses the notification when
 * it handles the receive with the peer's acknowledgement before the completion of its send. The client has the answer
 * then, which RDS delivers after the RDMA.
 */
static ssize_t serve_rdma(struct sockaddr_in *to)
{
	uint32_t len = request.len, number = request.number, writes = request.kind == WRITE;
	struct rds_iovec local = { (uint64_t)(uintptr_t)region, len };
	/*
	 * Without the fence the client may have the answer, and clear its memory, before the READ's responses are made.
	 */
	struct rds_rdma_args rdma = {
		.cookie = cookie,
		.remote_vec = { 0, len },
		.local_vec_addr = (uint64_t)(uintptr_t)&local,
		.nr_local = 1,
		.flags = RDS_RDMA_NOTIFY_ME | (writes ? RDS_RDMA_READWRITE : RDS_RDMA_FENCE),
		.user_token = number,
	};
	struct outcome out = { .number = number };
	ssize_t n = 0;

	memset(region, 0, sizeof(region));
	if (writes)
		fill(region, len, number);
	send_with(&request, to, RDS_CMSG_RDMA_ARGS, &rdma, sizeof(rdma));
	while (!out.ended && !n)
		n = receive(&request, to, &out);
	must(out.status == RDS_RDMA_SUCCESS, "the RDMA's status");
	check_data(region, len, number, writes ? "the data that was written" : "the data that was read");
	return n;
}

static void serve(void)
{
	struct sockaddr_in from;
	ssize_t n = 0;

	for (;;) {
		if (!n)
			n = receive(&request, &from, NULL);
		if (n < (ssize_t)offsetof(struct message, data)) {
			n = 0;
		} else if (request.kind == ECHO) {
			check_data(request.data, request.len, request.number, "the client's data");
			send_with(&request, &from, 0, NULL, 0);
			n = 0;
		} else {
			n = serve_rdma(&from);
		}
	}
}

static void request_once(struct sockaddr_in *to, uint32_t number)
{
	static const uint32_t sizes[] = { 1, 1000, 4096, 8193, 65536, BIG };
	rds_rdma_cookie_t mine;
	struct rds_get_mr_args mr = { .vec = { (uint64_t)(uintptr_t)region, REGION },
				      .cookie_addr = (uint64_t)(uintptr_t)&mine,
				      .flags = RDS_RDMA_USE_ONCE | RDS_RDMA_READWRITE };
	struct sockaddr_in from;

	request.number = number;
	request.kind = number % 3;
	request.len = request.kind == ECHO ? sizes[number / 3 % ARRAY_SIZE(sizes)] : REGION - number % 4096;
	memset(region, 0, sizeof(region));
	fill(request.kind == ECHO ? request.data : region, request.len, number);
	if (request.kind == WRITE)
		memset(region, 0, sizeof(region));
	send_with(&request, to, RDS_CMSG_RDMA_MAP, request.kind == ECHO ? NULL : &mr, sizeof(mr));
	must(receive(&answer, &from, NULL) == (ssize_t)size_of(&request), "the answer's length");
	must(answer.number == number && answer.len == request.len, "the answer's number");
	check_data(request.kind == ECHO ? answer.data : region, request.len, number, "the data that came back");
}

/* To port 0: the kernel of the peer answers, as for rds-ping. */
static void ping(struct sockaddr_in to)
{
	struct sockaddr_in from;

	to.sin_port = 0;
	must(!sendto(fd, "", 0, 0, (struct sockaddr *)&to, sizeof(to)), "the ping");
	must(!receive(&answer, &from, NULL) && !from.sin_port, "the pong");
	puts("pong");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sockaddr_in me = { .sin_family = AF_INET, .sin_port = htons(PORT) }, to = me;
	struct timeval tv = { .tv_sec = WAIT_S };
	int room = 4 * BIG;
	uint32_t n;

	if (argc < 3)
		return 2;
	me.sin_addr.s_addr = inet_addr(argv[2]);
	fd = socket(PF_RDS, SOCK_SEQPACKET, 0);
	must(fd >= 0, "socket");
	must(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), "SO_SNDBUF");
	must(!bind(fd, (struct sockaddr *)&me, sizeof(me)), "bind");
	puts("bound");
	fflush(stdout);
	if (!strcmp(argv[1], "server"))
		serve();
	must(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), "SO_RCVTIMEO");
	to.sin_addr.s_addr = inet_addr(argv[3]);
	ping(to);
	for (n = 0; n % 18 || access(argv[4], F_OK); n++)
		request_once(&to, n);
	for (; n % 18 != 17; n++)
		request_once(&to, n);
	printf("%u answers\n", n);
	return 0;
}
